// How often each rule occurs (G-TADOC, Zhang et al., ICDE 2021, Algorithm 1), words not counted.
#include "counters.cuh"
#include "grid_barrier.cuh"
#include "held_counts.cuh"

constexpr u32 THREADS = 256;
constexpr u32 SHORT = 16;  // symbols of a body that one thread deals with

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

// Gives a rule's weight to a symbol of its body.
__device__ __forceinline__ void pass_on(
    const u32* __restrict__ symbols, u64 position, u32 terminals, u64 weight, u64* weights)
{
    const u32 symbol = __ldg(symbols + position);
    if (symbol >= terminals)
        atomicAdd(weights + (symbol - terminals), weight);
}

// weights, arrived: zero. A level is done when all blocks are through; what roots name is added where a rule is read.
extern "C" __global__ void __launch_bounds__(THREADS) weigh_rules(
    const long long* __restrict__ level_offsets, u32 levels, const long long* __restrict__ rule_offsets,
    const u32* __restrict__ symbols, u32 terminals, const u32* __restrict__ root_counts, u64* weights, u32* arrived)
{
    const u32 lane = threadIdx.x % 32;
    const u64 threads = static_cast<u64>(gridDim.x) * THREADS;
    u32 target = 0;
    for (u32 level = levels; level-- > 0;) {
        const u64 stop = level_offsets[level + 1];
        for (u64 first = level_offsets[level] + static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x - lane;
             first < stop; first += threads) {
            const u64 rule = first + lane;
            u64 weight = 0;
            u64 begin = 0;
            u64 end = 0;
            if (rule < stop) {
                weight = __ldcg(weights + rule) + root_counts[rule];
                weights[rule] = weight;
                begin = rule_offsets[rule];
                end = rule_offsets[rule + 1];
            }
            const bool is_long = weight != 0 && end - begin > SHORT;
            if (weight != 0 && !is_long)
                for (u64 position = begin; position < end; ++position)
                    pass_on(symbols, position, terminals, weight, weights);
            for (u32 left = __ballot_sync(0xFFFFFFFFu, is_long); left != 0; left &= left - 1) {
                const u32 source = __ffs(left) - 1;
                const u64 long_weight = __shfl_sync(0xFFFFFFFFu, weight, source);
                const u64 long_end = __shfl_sync(0xFFFFFFFFu, end, source);
                for (u64 position = __shfl_sync(0xFFFFFFFFu, begin, source) + lane; position < long_end; position += 32)
                    pass_on(symbols, position, terminals, long_weight, weights);
            }
        }
        if (level > 0)
            grid_barrier(arrived, target);
    }
}
