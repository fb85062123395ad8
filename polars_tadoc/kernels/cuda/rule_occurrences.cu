// Where rules occur, words not counted (G-TADOC, Zhang et al., ICDE 2021).
#include "counters.cuh"
#include "bodies.cuh"
#include "packing.cuh"
#include "reduced_text.cuh"
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

// Marks the words at which windows start, and the rules that have some.
extern "C" __global__ void __launch_bounds__(THREADS) find_windows(
    const u32* __restrict__ words, u64 size, u64 of_rules, const u32* __restrict__ owners, u32 reach,
    unsigned char* __restrict__ found, unsigned char* __restrict__ rules)
{
    const u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= size)
        return;
    found[i] = 0;
    TextWindows::visit_first({words, size, of_rules, owners, nullptr, reach}, i, [&](u64) {
        found[i] = 1;
        if (i < of_rules)
            rules[owners[i]] = 1;
    });
}

// The children that hold windows.
extern "C" __global__ void __launch_bounds__(THREADS) find_children(
    const u32* __restrict__ symbols, u64 size, const u32* __restrict__ ends, u32 stride, u32 terminals, u32 least,
    unsigned char* __restrict__ found)
{
    const u64 position = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (position < size)
        found[position] = symbols[position] >= terminals && ends[ends_of(symbols[position] - terminals, stride)] >= least;
}

// Writes the children that hold windows, over one terminal for each rule; body r starts `markers[r]` later.
// places  children before each position; markers may be null
extern "C" __global__ void __launch_bounds__(THREADS) keep_children(
    const u32* __restrict__ symbols, u64 size, const long long* __restrict__ offsets, u32 owners, u32 terminals,
    u32 rules, const unsigned char* __restrict__ found, const u64* __restrict__ places,
    const u64* __restrict__ markers, u32* __restrict__ target)
{
    const u64 position = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (position >= size || found[position] == 0)
        return;
    const u64 later = markers == nullptr ? 0 : markers[owner_at(position, offsets, owners) + 1];
    target[places[position] + later] = symbols[position] - terminals + rules;
}

// Writes the marker of each rule that has windows at the start of its body.
extern "C" __global__ void __launch_bounds__(THREADS) mark_rules(
    u32 rules, const unsigned char* __restrict__ found, const long long* __restrict__ body_offsets,
    u32* __restrict__ target)
{
    const u32 rule = blockIdx.x * THREADS + threadIdx.x;
    if (rule < rules && found[rule] != 0)
        target[body_offsets[rule]] = rule;
}
