// A prefix sum over the threads of one block.
#ifndef POLARS_TADOC_BLOCK_SCAN
#define POLARS_TADOC_BLOCK_SCAN

// Sum over the threads before this one; `all` is the sum over all of them. Every thread calls it, once per kernel
// or with a barrier in between.
template <u32 THREADS>
__device__ __forceinline__ u32 block_before(u32 own, u32& all)
{
    __shared__ u32 warps[THREADS / 32];
    const u32 lane = threadIdx.x % 32;
    u32 sum = own;
    for (u32 step = 1; step < 32; step *= 2) {
        const u32 other = __shfl_up_sync(0xFFFFFFFFu, sum, step);
        if (lane >= step)
            sum += other;
    }
    if (lane == 31)
        warps[threadIdx.x / 32] = sum;
    __syncthreads();
    u32 before = 0;
    all = 0;
    for (u32 warp = 0; warp < THREADS / 32; ++warp) {
        if (warp < threadIdx.x / 32)
            before += warps[warp];
        all += warps[warp];
    }
    return before + sum - own;
}

#endif
