// Occurrences of rules; words are not counted (G-TADOC, Zhang et al., ICDE 2021).
#include "primitives/counters.cuh"
#include "primitives/segments.cuh"
#include "sequences/bodies.cuh"
#include "primitives/scan.cuh"
#include "primitives/grid_barrier.cuh"

constexpr u32 THREADS = 256;

// Rules among the documents' symbols. Each occurs in fewer than 2^32 symbols.
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

// Threads are assigned symbol positions, not rules: a long body gets many threads. A level is finished when all blocks
// have finished it; other blocks' additions are read past level 1, which is not coherent. weights, arrived: zero.
extern "C" __global__ void __launch_bounds__(THREADS) weigh_rules(
    const i64* __restrict__ level_offsets, u32 levels, const i64* __restrict__ rule_offsets,
    const u32* __restrict__ symbols, u32 terminals, const u32* __restrict__ root_counts, u64* weights, u32* arrived)
{
    const u64 thread = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    const u64 threads = static_cast<u64>(gridDim.x) * THREADS;
    for (u64 rule = thread; rule < static_cast<u64>(level_offsets[levels]); rule += threads)
        weights[rule] = root_counts[rule];
    u32 target = 0;
    for (u32 level = levels; level-- > 1;) {  // the lowest level only has words
        grid_barrier(arrived, target);
        const u64 first = level_offsets[level];
        const u64 stop = level_offsets[level + 1];
        const u64 end = rule_offsets[stop];
        for (u64 position = rule_offsets[first] + thread; position < end; position += threads) {
            const u32 symbol = __ldg(symbols + position);
            if (symbol < terminals)
                continue;
            const auto begun = [&](u64 i) { return static_cast<u64>(__ldg(rule_offsets + i)) <= position; };
            const u64 rule = last_with(first, stop, begun);
            const u64 weight = __ldcg(weights + rule);
            if (weight != 0)
                atomicAdd(weights + (symbol - terminals), weight);
        }
    }
}

// Marks the rules with own windows: of two children or more, except for sequences of one word.
extern "C" __global__ void __launch_bounds__(THREADS) find_owners(
    const Text text, u32 least,
    const i64* __restrict__ offsets, u32 owners, unsigned char* __restrict__ marked)
{
    const u64 position = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (position >= text.size || text.length(position) == 0)
        return;
    u64 before = position;
    while (!text.owner_ends(before) && text.length(before - 1) == 0)
        --before;
    if (text.reach == 0 ? text.is_rule(position) : text.owner_ends(before))
        return;
    const u32 rule = owner_at(position, offsets, owners);
    if (__ldg(text.ends + ends_of(rule, text.stride)) >= least)
        marked[rule] = 1;
}

// A rule of at least `least` words.
__device__ __forceinline__ bool holds_windows(const Text& text, u64 position, u32 least)
{
    return position < text.size && text.is_rule(position) && text.length(position) >= least;
}

// Number of children that contain windows, by block of positions.
extern "C" __global__ void __launch_bounds__(THREADS) count_children(
    const Text text, u32 least, u32* __restrict__ blocks)
{
    u32 all;
    block_before<THREADS>(holds_windows(text, static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x, least), all);
    if (threadIdx.x == 0)
        blocks[blockIdx.x] = all;
}

// Writes the children that contain windows, with one terminal per rule, and the offsets of each owner's symbols.
// blocks          number of children before each block
// markers         by owner: number of markers of earlier owners, which precede their children; or null
// target_offsets  initially the value for empty owners at the end
extern "C" __global__ void __launch_bounds__(THREADS) keep_children(
    const Text text, u32 least,
    const i64* __restrict__ offsets, u32 owners, u32 rules, const u64* __restrict__ blocks,
    const u64* __restrict__ markers, i64* __restrict__ target_offsets, u32* __restrict__ target)
{
    const u64 position = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    const bool held = holds_windows(text, position, least);
    u32 all;
    const u64 before = blocks[blockIdx.x] + block_before<THREADS>(held, all);
    if (position >= text.size)
        return;
    const bool first = text.owner_ends(position);
    if (!first && (!held || markers == nullptr)) {
        if (held)
            target[before] = __ldg(text.symbols + position) - text.terminals + rules;
        return;
    }
    u32 owner = owner_at(position, offsets, owners);
    if (held)
        target[before + (markers == nullptr ? 0 : markers[owner + 1])] = __ldg(text.symbols + position) - text.terminals + rules;
    if (!first)
        return;
    do
        target_offsets[owner] = static_cast<i64>(before + (markers == nullptr ? 0 : markers[owner]));
    while (owner-- > 0 && static_cast<u64>(offsets[owner]) == position);  // empty owners
}

// Writes the marker of each rule that contains windows at the start of its body.
extern "C" __global__ void __launch_bounds__(THREADS) write_markers(
    u32 rules, const unsigned char* __restrict__ marked, const i64* __restrict__ body_offsets,
    u32* __restrict__ target)
{
    const u32 rule = blockIdx.x * THREADS + threadIdx.x;
    if (rule < rules && marked[rule] != 0)
        target[body_offsets[rule]] = rule;
}
