// Word counts by top-down weights (G-TADOC, Zhang et al., ICDE 2021, Algorithm 1), all levels in one launch.
//
// A rule's weight is its number of occurrences in the text. Roots add weights to the symbols they contain, then each
// step adds every rule's weight to the symbols of its body; a step starts when all blocks have finished the one before.
// Threads are assigned symbol positions, not rules: a long body gets many threads.
#include "primitives/counters.cuh"
#include "primitives/grid_barrier.cuh"

#ifndef THREADS
#define THREADS 1024
#endif

// Resident blocks per multiprocessor. The compiler must know it: otherwise it would spill registers for two.
#ifndef BLOCKS
#define BLOCKS 1
#endif

// Slots of the block's table of frequent rules, 0 for none.
#ifndef HOT_SLOTS
#define HOT_SLOTS 2048
#endif

constexpr u32 RUNS = 4;  // loads in flight per lane before the first is used
constexpr u32 TILE = 32 * RUNS;  // adjacent positions per warp and step

// The body of a position: the number of bodies that start before its word of 32 positions, and a bit per start in it. A
// quarter of a byte per position; an array of owners takes four bytes. `x` is one less, as the first body has number 0.
struct RankedOwners {
    using Mark = uint2;

    static __device__ __forceinline__ Mark load(const void* owners, u32 position)
    {
        return __ldg(static_cast<const Mark*>(owners) + position / 32);
    }

    static __device__ __forceinline__ u32 body(Mark mark)  // lane l has position l of the word
    {
        return mark.x + __popc(mark.y & (0xFFFFFFFFu >> (31 - threadIdx.x % 32)));
    }
};

// Weights change during the launch, and level 1 caches are not coherent: read them where atomics write.
__device__ __forceinline__ u64 load_weight(const u64* address)
{
    u64 value;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}

struct Counters {
    u32* words;  // shared: low halves of the first `held` words' counts, for all steps
    u32* hot_rules;  // shared: rule of each slot
    u32* hot_low;  // shared: low halves of those rules' weights, for one step
    u64* counts;
    u64* weights;
    u32 held;
    u32 vocabulary;

    __device__ __forceinline__ void add(u32 symbol, u64 amount)
    {
        if (symbol < held)
            add_held(words + symbol, amount, counts + symbol);
        else if (symbol < vocabulary)
            atomicAdd(counts + symbol, static_cast<u64>(amount));
        else
            add_rule(symbol - vocabulary, amount);
    }

    // Rules are not numbered by frequency, and all blocks would contend for a frequent one's address. The first rule to
    // probe a slot gets it; frequent rules come early, so most of them get one.
    __device__ __forceinline__ void add_rule(u32 rule, u64 amount)
    {
        if constexpr (HOT_SLOTS > 0) {
            const u32 slot = __umulhi(rule * 2654435769u, HOT_SLOTS);
            u32 holder = *static_cast<volatile u32*>(hot_rules + slot);
            if (holder == NONE) {
                holder = atomicCAS(hot_rules + slot, NONE, rule);
                if (holder == NONE)
                    holder = rule;
            }
            if (holder == rule) {
                add_held(hot_low + slot, amount, weights + rule);
                return;
            }
        }
        atomicAdd(weights + rule, amount);
    }

    // Rules' weights must be complete before the step that reads them.
    __device__ __forceinline__ void flush_rules()
    {
        if constexpr (HOT_SLOTS > 0) {
            __syncthreads();
            for (u32 slot = threadIdx.x; slot < HOT_SLOTS; slot += THREADS) {
                const u32 rule = hot_rules[slot];
                if (rule != NONE) {
                    if (hot_low[slot] != 0)
                        atomicAdd(weights + rule, static_cast<u64>(hot_low[slot]));
                    hot_rules[slot] = NONE;
                    hot_low[slot] = 0;
                }
            }
        }
    }
};

using Owners = RankedOwners;

// As loaded: nothing here reads a value, so that the loads do not wait for each other.
struct Tile {
    u32 symbol[RUNS];
    Owners::Mark mark[RUNS];
};

__device__ __forceinline__ void load_tile(
    Tile& tile, const u32* __restrict__ symbols, const void* __restrict__ owners, u32 number)
{
#pragma unroll
    for (u32 r = 0; r < RUNS; ++r) {
        const u32 position = number * TILE + 32 * r + threadIdx.x % 32;
        tile.symbol[r] = __ldg(symbols + position);
        tile.mark[r] = Owners::load(owners, position);
    }
}

__device__ __forceinline__ void load_roots(
    u32 (&symbol)[RUNS], const u32* __restrict__ roots, u32 number, u64 root_count)
{
    const u64 position = static_cast<u64>(number) * TILE + threadIdx.x % 32;
#pragma unroll
    for (u32 r = 0; r < RUNS; ++r)
        symbol[r] = position + 32 * r < root_count ? __ldg(roots + position + 32 * r) : NONE;
}

// symbols       bodies of the rules, lowest step first, padded to whole tiles
// owners        index that Owners uses to find a position's body
// body_rules    rule of each body, or null if body b is rule b's
// steps         positions [x, y) of each step, lowest first
// held          words counted in shared memory
// weights       by rule; counts by word; arrived one counter: all zero at the start
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) top_down_weights(
    const u32* __restrict__ symbols, const void* __restrict__ owners, const u32* __restrict__ body_rules,
    const uint2* __restrict__ steps, u32 step_count, const u32* __restrict__ roots, u64 root_count,
    u32 vocabulary, u32 held, u64* weights, u64* counts, u32* arrived)
{
    extern __shared__ u32 shared[];
    Counters counters = {
        shared + 2 * HOT_SLOTS, shared, shared + HOT_SLOTS, counts, weights, held, vocabulary};
    for (u32 i = threadIdx.x; i < 2 * HOT_SLOTS + held; i += THREADS)
        shared[i] = i < HOT_SLOTS ? NONE : 0;
    __syncthreads();

    // Adjacent tiles go to different blocks, so that a short step is spread over all multiprocessors.
    const u32 warp = threadIdx.x / 32 * gridDim.x + blockIdx.x;
    const u32 warps = THREADS / 32 * gridDim.x;

    const u32 root_tiles = static_cast<u32>((root_count + TILE - 1) / TILE);
    u32 root[RUNS];
    load_roots(root, roots, warp, root_count);
    for (u32 number = warp; number < root_tiles; number += warps) {
        u32 next[RUNS];
        load_roots(next, roots, number + warps, root_count);
#pragma unroll
        for (u32 r = 0; r < RUNS; ++r) {
            if (root[r] != NONE)
                counters.add(root[r], 1);
            root[r] = next[r];
        }
    }
    bool busy = blockIdx.x < root_tiles;  // the block's first warp processes this tile

    Tile tile = {};
    uint2 step = step_count > 0 ? __ldg(steps + step_count - 1) : make_uint2(0, 0);
    u32 number = step.x / TILE + warp;
    if (number * static_cast<u64>(TILE) < step.y)
        load_tile(tile, symbols, owners, number);
    u32 target = 0;
    for (u32 s = 0; s < step_count; ++s) {
        if (busy)
            counters.flush_rules();
        grid_barrier(arrived, target);
        const u32 tiles = (step.y + TILE - 1) / TILE;
        busy = step.x / TILE + blockIdx.x < tiles;
        while (number < tiles) {
            u32 symbol[RUNS];
            u64 weight[RUNS];
#pragma unroll
            for (u32 r = 0; r < RUNS; ++r) {
                const u32 position = number * TILE + 32 * r + threadIdx.x % 32;
                weight[r] = 0;
                symbol[r] = tile.symbol[r];
                if (position >= step.x && position < step.y) {
                    const u32 body = Owners::body(tile.mark[r]);
                    weight[r] = load_weight(weights + (body_rules == nullptr ? body : __ldg(body_rules + body)));
                }
            }
            number += warps;
            if (number < tiles)
                load_tile(tile, symbols, owners, number);
#pragma unroll
            for (u32 r = 0; r < RUNS; ++r)
                if (weight[r] != 0)
                    counters.add(symbol[r], weight[r]);
        }
        // Symbols and owners do not depend on weights: a step's first tile is loaded before its barrier.
        if (s + 1 < step_count) {
            step = __ldg(steps + step_count - 2 - s);
            number = step.x / TILE + warp;
            if (number * static_cast<u64>(TILE) < step.y)
                load_tile(tile, symbols, owners, number);
        }
    }

    __syncthreads();
    // the last step refers to no rules: the slots for frequent rules are empty
    flush_held(counters.words, held, counts);
}
