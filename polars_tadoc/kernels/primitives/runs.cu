// Scans and operations based on them: compaction, sums of runs and of segments, the segment of each position.
#include "primitives/counters.cuh"
#include "primitives/scan.cuh"
#include "primitives/segments.cuh"

// The scanned, summed or kept type.
#ifndef VALUE
#define VALUE u64
#endif

constexpr u32 THREADS = 256;

using Value = VALUE;

constexpr u32 ITEMS = 8;  // adjacent items per thread
constexpr u32 TILE = ITEMS * THREADS;

// Sum over all items before this thread's; `own` is the sum of its own. tiles: all ones before the first block.
__device__ __forceinline__ u64 items_before(u64* tiles, u32 tile, u64 own)
{
    const u64 before = lanes_before(own);
    const u64 warp_sum = __shfl_sync(ALL_LANES, before + own, 31);
    return warps_before<THREADS / 32>(tiles, tile, warp_sum) + before;
}

// Like items_before, after all tiles have been summed.
__device__ __forceinline__ u64 items_before_known(const u64* tiles, u32 tile, u64 own)
{
    __shared__ u64 sums[THREADS / 32];
    const u64 before = lanes_before(own);
    if (threadIdx.x % 32 == 31)
        sums[threadIdx.x / 32] = before + own;
    __syncthreads();
    u64 whole = tile == 0 ? 0 : tiles[tile - 1] & SUM;
    for (u32 warp = 0; warp < threadIdx.x / 32; ++warp)
        whole += sums[warp];
    return whole + before;
}

// sums: size + 1, the last one is the total.
extern "C" __global__ void __launch_bounds__(THREADS) exclusive_scan(
    const Value* __restrict__ values, u64 size, u64* tiles, u32* taken, i64* sums)
{
    const u32 tile = take_tile(taken);
    const u64 begin = static_cast<u64>(tile) * TILE + threadIdx.x * ITEMS;
    u64 value[ITEMS];
    u64 own = 0;
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        value[i] = begin + i < size ? static_cast<u64>(values[begin + i]) : 0;
        own += value[i];
    }
    u64 before = items_before(tiles, tile, own);
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        if (begin + i <= size)
            sums[begin + i] = static_cast<i64>(before);
        before += value[i];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) count_kept(
    const u8* __restrict__ keep, u64 size, u64* tiles, u32* taken)
{
    const u32 tile = take_tile(taken);
    const u64 begin = static_cast<u64>(tile) * TILE + threadIdx.x * ITEMS;
    u64 own = 0;
    for (u32 i = 0; i < ITEMS; ++i)
        own += begin + i < size && keep[begin + i] != 0;
    items_before(tiles, tile, own);
}

extern "C" __global__ void __launch_bounds__(THREADS) write_kept(
    const Value* __restrict__ values, const u8* __restrict__ keep, u64 size, const u64* tiles, Value* kept)
{
    const u64 begin = static_cast<u64>(blockIdx.x) * TILE + threadIdx.x * ITEMS;
    u64 own = 0;
    for (u32 i = 0; i < ITEMS; ++i)
        own += begin + i < size && keep[begin + i] != 0;
    u64 place = items_before_known(tiles, blockIdx.x, own);
    for (u32 i = 0; i < ITEMS; ++i)
        if (begin + i < size && keep[begin + i] != 0)
            kept[place++] = values[begin + i];
}

extern "C" __global__ void __launch_bounds__(THREADS) count_runs(
    const Value* __restrict__ keys, u64 size, u64* tiles, u32* taken)
{
    const u32 tile = take_tile(taken);
    const u64 begin = static_cast<u64>(tile) * TILE + threadIdx.x * ITEMS;
    u64 own = 0;
    for (u32 i = 0; i < ITEMS; ++i)
        own += begin + i < size && (begin + i == 0 || keys[begin + i] != keys[begin + i - 1]);
    items_before(tiles, tile, own);
}

// Adds an item's weight to its sum, once for adjacent items that share it: in a thread, and if a whole warp does.
struct Sum {
    static constexpr u64 NOBODY = ~0ull;

    u64* sums;
    u64 owner = NOBODY;
    u64 weight = 0;
    bool alone = true;  // only the last sum was added to

    __device__ __forceinline__ void add(u64 item_owner, u64 item_weight)
    {
        if (item_owner != owner) {
            if (owner != NOBODY) {
                atomicAdd(sums + owner, weight);
                alone = false;
            }
            owner = item_owner;
            weight = 0;
        }
        weight += item_weight;
    }

    // Called last by the whole warp.
    __device__ __forceinline__ void flush()
    {
        const u64 first = __shfl_sync(ALL_LANES, owner, 0);
        if (__all_sync(ALL_LANES, alone && owner == first)) {
            weight = lanes_sum(weight);
            if (threadIdx.x % 32 != 0)
                owner = NOBODY;
        }
        if (owner != NOBODY)
            atomicAdd(sums + owner, weight);
    }
};

// sums: zeros.
extern "C" __global__ void __launch_bounds__(THREADS) sum_runs(
    const Value* __restrict__ keys, const u64* __restrict__ weights, u64 size, const u64* tiles, Value* run_keys,
    u64* sums)
{
    const u64 begin = static_cast<u64>(blockIdx.x) * TILE + threadIdx.x * ITEMS;
    bool head[ITEMS];
    u64 own = 0;
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        head[i] = begin + i < size && (begin + i == 0 || keys[begin + i] != keys[begin + i - 1]);
        own += head[i];
    }
    u64 run = items_before_known(tiles, blockIdx.x, own) - 1;  // of the previous item
    Sum sum{sums};
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        if (begin + i < size) {
            if (head[i])
                run_keys[++run] = keys[begin + i];
            sum.add(run, weights[begin + i]);
        }
    }
    sum.flush();
}

// Segments of a thread's adjacent positions. Any number of empty segments may be between two.
struct Owner {
    const i64* __restrict__ offsets;
    u64 count;
    u64 owner;

    // segments in [low, high)
    __device__ __forceinline__ Owner(const i64* __restrict__ segment_offsets, u64 low, u64 high, u64 position)
        : offsets(segment_offsets), count(high), owner(find_owner(segment_offsets, low, high, position))
    {
    }

    __device__ __forceinline__ u64 advance(u64 position)
    {
        if (static_cast<u64>(offsets[owner + 1]) <= position) {
            ++owner;
            if (static_cast<u64>(offsets[owner + 1]) <= position)
                owner = find_owner(offsets, owner + 1, count, position);
        }
        return owner;
    }
};

// offsets: segments + 1, the first one 0. sums: zeros.
extern "C" __global__ void __launch_bounds__(THREADS) segmented_sum(
    const Value* __restrict__ values, const i64* __restrict__ offsets, u64 segments, u64 size, u64* sums)
{
    const u64 begin = static_cast<u64>(blockIdx.x) * TILE + threadIdx.x * ITEMS;
    Sum sum{sums};
    if (begin < size) {
        Owner owner(offsets, 0, segments, begin);
        for (u32 i = 0; i < ITEMS && begin + i < size; ++i)
            sum.add(owner.advance(begin + i), static_cast<u64>(values[begin + i]));
    }
    __syncwarp();
    sum.flush();
}

extern "C" __global__ void __launch_bounds__(THREADS) expand(
    const i64* __restrict__ offsets, u64 segments, u64 size, u32* owners)
{
    // A block looks up the segments of its first and its last item; its threads search between these.
    __shared__ u64 ends[2];
    const u64 tile = static_cast<u64>(blockIdx.x) * TILE;
    if (threadIdx.x < 2)
        ends[threadIdx.x] = find_owner(offsets, u64{0}, segments, threadIdx.x == 0 ? tile : min(tile + TILE, size) - 1);
    __syncthreads();
    const u64 begin = tile + threadIdx.x * ITEMS;
    if (begin >= size)
        return;
    Owner owner(offsets, ends[0], ends[1] + 1, begin);
    u32 own[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i)
        own[i] = begin + i < size ? static_cast<u32>(owner.advance(begin + i)) : 0;
    if (begin + ITEMS <= size) {  // in stores of 16 bytes
        uint4* target = reinterpret_cast<uint4*>(owners + begin);
#pragma unroll
        for (u32 i = 0; i < ITEMS / 4; ++i)
            target[i] = make_uint4(own[4 * i], own[4 * i + 1], own[4 * i + 2], own[4 * i + 3]);
        return;
    }
    for (u32 i = 0; begin + i < size; ++i)
        owners[begin + i] = own[i];
}
