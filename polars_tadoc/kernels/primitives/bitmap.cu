// Ranks of a bitmap, in two passes.
#include "primitives/counters.cuh"
#include "primitives/bitmap.cuh"

constexpr u32 THREADS = 1024;
constexpr u32 WORDS_PER_THREAD = 8;
constexpr u32 TILE = THREADS * WORDS_PER_THREAD;

__device__ __forceinline__ u32 warp_sum(u32 value)
{
    for (u32 step = 16; step > 0; step /= 2)
        value += __shfl_xor_sync(0xFFFFFFFFu, value, step);
    return value;
}

// Sum over the block, returned to all threads.
__device__ u32 block_sum(u32 value)
{
    __shared__ u32 sums[32];
    value = warp_sum(value);
    if ((threadIdx.x & 31) == 0)
        sums[threadIdx.x >> 5] = value;
    __syncthreads();
    return warp_sum(sums[threadIdx.x & 31]);
}

// Sum over the threads of the block before this one.
__device__ u32 sum_before(u32 value)
{
    __shared__ u32 sums[32];
    const u32 lane = threadIdx.x & 31;
    const u32 warp = threadIdx.x >> 5;
    u32 running = value;
    for (u32 step = 1; step < 32; step *= 2) {
        const u32 lower = __shfl_up_sync(0xFFFFFFFFu, running, step);
        running += lane >= step ? lower : 0;
    }
    if (lane == 31)
        sums[warp] = running;
    __syncthreads();
    const u32 lower_warps = warp_sum(lane < warp ? sums[lane] : 0);
    return lower_warps + running - value;
}

// totals[block]: bits set in the block's tile of words.
extern "C" __global__ void __launch_bounds__(THREADS) count_tiles(
    const u32* __restrict__ bits, u32 words, u32* __restrict__ totals)
{
    u32 count = 0;
    for (u32 i = 0; i < WORDS_PER_THREAD; ++i) {
        const u32 word = blockIdx.x * TILE + i * THREADS + threadIdx.x;
        count += word < words ? __popc(bits[word]) : 0;
    }
    count = block_sum(count);
    if (threadIdx.x == 0)
        totals[blockIdx.x] = count;
}

// ranks[word]: bits set before each word; ranks[words]: all of them. Each block sums the totals of the preceding tiles
// itself: they are few enough (a tile is 32 KiB of bitmap) to save a launch.
extern "C" __global__ void __launch_bounds__(THREADS) rank_words(
    const u32* __restrict__ bits, u32 words, const u32* __restrict__ totals, u32* __restrict__ ranks)
{
    u32 before = 0;
    for (u32 tile = threadIdx.x; tile < blockIdx.x; tile += THREADS)
        before += totals[tile];
    before = block_sum(before);
    const u32 first = blockIdx.x * TILE + threadIdx.x * WORDS_PER_THREAD;
    u32 own[WORDS_PER_THREAD];
    u32 count = 0;
#pragma unroll
    for (u32 i = 0; i < WORDS_PER_THREAD; ++i) {
        own[i] = first + i < words ? __popc(bits[first + i]) : 0;
        count += own[i];
    }
    before += sum_before(count);
#pragma unroll
    for (u32 i = 0; i < WORDS_PER_THREAD; ++i) {
        if (first + i <= words)
            ranks[first + i] = before;
        before += own[i];
    }
}
