// Prefix sums over the tiles of a grid in one pass: decoupled look-back (Merrill and Garland, 2016).
// A sum has two parts below 2^31 each, added together. Include after counters.cuh.
#ifndef POLARS_TADOC_SCAN
#define POLARS_TADOC_SCAN

constexpr u32 ALL_LANES = 0xFFFFFFFFu;

constexpr u64 SUM = (1ull << 62) - 1;
constexpr u64 WHOLE = 1ull << 62;  // the sum covers all tiles up to this one, not only this one
constexpr u64 WAITING = 3;  // flag bits of a tile without a sum: tiles start as all ones

__device__ __forceinline__ u64 two_sums(u32 first, u32 second)
{
    return static_cast<u64>(first) << 31 | second;
}

__device__ __forceinline__ u32 first_sum(u64 sums)
{
    return static_cast<u32>(sums >> 31 & 0x7FFFFFFFu);
}

__device__ __forceinline__ u32 second_sum(u64 sums)
{
    return static_cast<u32>(sums & 0x7FFFFFFFu);
}

// Sum over the lanes before this one.
template <typename Number>
__device__ __forceinline__ Number lanes_before(Number own)
{
    Number sum = own;
    for (u32 step = 1; step < 32; step *= 2) {
        const Number other = __shfl_up_sync(ALL_LANES, sum, step);
        if (threadIdx.x % 32 >= step)
            sum += other;
    }
    return sum - own;
}

// Sum over all lanes, returned to every lane.
template <typename Number>
__device__ __forceinline__ Number lanes_sum(Number sum)
{
    for (u32 step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(ALL_LANES, sum, step);
    return sum;
}

// Maximum over all lanes, returned to every lane.
template <typename Number>
__device__ __forceinline__ Number lanes_max(Number largest)
{
    for (u32 step = 16; step > 0; step /= 2)
        largest = max(largest, __shfl_xor_sync(ALL_LANES, largest, step));
    return largest;
}

// Position for each lane that writes, after all earlier ones: a warp reserves room once. Called by a whole warp.
template <typename Number>
__device__ __forceinline__ Number take_room(Number* taken, bool wants)
{
    const u32 members = __ballot_sync(ALL_LANES, wants);
    Number first = 0;
    if (threadIdx.x % 32 == 0 && members != 0)
        first = atomicAdd(taken, static_cast<Number>(__popc(members)));
    return __shfl_sync(ALL_LANES, first, 0) + __popc(members & ((1u << threadIdx.x % 32) - 1));
}

// Sum over the threads before this one; `all` is the sum over all of them. Called by every thread, once per kernel or
// with a barrier in between.
template <u32 BLOCK_THREADS>
__device__ __forceinline__ u32 block_before(u32 own, u32& all)
{
    __shared__ u32 warps[BLOCK_THREADS / 32];
    const u32 in_warp = lanes_before(own);
    if (threadIdx.x % 32 == 31)
        warps[threadIdx.x / 32] = in_warp + own;
    __syncthreads();
    u32 before = 0;
    all = 0;
    for (u32 warp = 0; warp < BLOCK_THREADS / 32; ++warp) {
        if (warp < threadIdx.x / 32)
            before += warps[warp];
        all += warps[warp];
    }
    return before + in_warp;
}

// Start of a thread's entries in an array that all blocks append to; returns whether it has any. Called once by every
// thread.
template <u32 BLOCK_THREADS>
__device__ __forceinline__ bool append_entries(u32 entries, u64* taken, u64& start)
{
    __shared__ u64 block_start;
    u32 all;
    const u32 before = block_before<BLOCK_THREADS>(entries, all);
    if (all == 0)
        return false;
    if (threadIdx.x == 0)
        block_start = atomicAdd(taken, static_cast<u64>(all));
    __syncthreads();
    if (entries == 0)
        return false;
    start = block_start + before;
    return true;
}

// Blocks take tiles in the order in which they start, so that no block waits for one that has not started.
__device__ __forceinline__ u32 take_tile(u32* taken)
{
    __shared__ u32 tile;
    if (threadIdx.x == 0)
        tile = atomicAdd(taken, 1u);
    __syncthreads();
    return tile;
}

// Sum over the tiles before this one. Called by one whole warp.
__device__ __forceinline__ u64 tiles_before(u64* tiles, u32 tile, u64 own)
{
    volatile u64* published = tiles;
    const u32 lane = threadIdx.x % 32;
    if (lane == 0)
        published[tile] = tile == 0 ? own | WHOLE : own;
    u64 before = 0;
    for (u32 stop = tile; stop > 0; stop -= 32) {
        u64 seen = WHOLE;
        do {
            if (lane < stop)
                seen = published[stop - 1 - lane];
        } while (__any_sync(ALL_LANES, seen >> 62 == WAITING));
        const u32 whole = __ballot_sync(ALL_LANES, (seen & WHOLE) != 0);
        const u32 last = whole == 0 ? 31 : __ffs(whole) - 1;
        before += lanes_sum(lane <= last ? seen & SUM : 0);
        if (whole != 0)
            break;
    }
    if (lane == 0 && tile > 0)
        published[tile] = (before + own) | WHOLE;
    return before;
}

// Sum over all warps before this one, in this block and in the tiles before; `own` is the warp's sum.
template <u32 WARPS>
__device__ __forceinline__ u64 warps_before(u64* tiles, u32 tile, u64 own)
{
    __shared__ u64 sums[WARPS];
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    if (lane == 0)
        sums[warp] = own;
    __syncthreads();
    if (warp == 0) {
        const u64 sum = lane < WARPS ? sums[lane] : 0;
        const u64 before = lanes_before(sum);
        const u64 all = lanes_sum(sum);
        const u64 tiles_sum = tiles_before(tiles, tile, all);
        if (lane < WARPS)
            sums[lane] = tiles_sum + before;
    }
    __syncthreads();
    return sums[warp];
}

#endif
