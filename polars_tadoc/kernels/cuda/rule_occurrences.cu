// How often each rule occurs (G-TADOC, Zhang et al., ICDE 2021, Algorithm 1), words not counted.
#include "counters.cuh"
#include "grid_barrier.cuh"
#include "held_counts.cuh"

constexpr u32 THREADS = 256;

// Rules among the documents' symbols. Fewer than 2^32 symbols name each.
extern "C" __global__ void __launch_bounds__(512) count_roots(
    const u32* __restrict__ roots, u64 size, u32 terminals, u32* counts)
{
    __shared__ HeldCounts held;
    held.clear(counts);
    const u64 threads = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += threads) {
        const u32 symbol = __ldg(roots + i);
        if (symbol >= terminals)
            held.add(symbol - terminals, 1);
    }
    held.flush();
}

// Threads are dealt symbol positions, not rules: a long body gets many threads. A level is done when all blocks are
// through; other blocks' additions are read past level 1, which is not coherent.
// weights, arrived: zero.
extern "C" __global__ void __launch_bounds__(THREADS) weigh_rules(
    const long long* __restrict__ level_offsets, u32 levels, const long long* __restrict__ rule_offsets,
    const u32* __restrict__ symbols, u32 terminals, const u32* __restrict__ root_counts, u64* weights, u32* arrived)
{
    const u64 thread = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    const u64 threads = static_cast<u64>(gridDim.x) * THREADS;
    for (u64 rule = thread; rule < static_cast<u64>(level_offsets[levels]); rule += threads)
        weights[rule] = root_counts[rule];
    u32 target = 0;
    for (u32 level = levels; level-- > 1;) {  // the lowest level names words only
        grid_barrier(arrived, target);
        const u64 first = level_offsets[level];
        const u64 stop = level_offsets[level + 1];
        const u64 end = rule_offsets[stop];
        for (u64 position = rule_offsets[first] + thread; position < end; position += threads) {
            const u32 symbol = __ldg(symbols + position);
            if (symbol < terminals)
                continue;
            u64 rule = first;
            for (u64 after = stop; after - rule > 1;) {
                const u64 middle = rule + (after - rule) / 2;
                if (static_cast<u64>(__ldg(rule_offsets + middle)) <= position)
                    rule = middle;
                else
                    after = middle;
            }
            const u64 weight = __ldcg(weights + rule);
            if (weight != 0)
                atomicAdd(weights + (symbol - terminals), weight);
        }
    }
}
