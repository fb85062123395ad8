// A barrier for all blocks of a cooperative launch. Include after counters.cuh.
#ifndef POLARS_TADOC_GRID_BARRIER
#define POLARS_TADOC_GRID_BARRIER

// Waits until every block has called this as often as this one. `target` counts arrivals since the launch's start; the
// cooperative launch guarantees that all blocks are resident. The count may wrap: targets are compared by distance.
__device__ __forceinline__ void grid_barrier(u32* arrived, u32& target)
{
    target += gridDim.x;
    __syncthreads();  // the release below covers everything this block's threads did before
    if (threadIdx.x == 0) {
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" : : "l"(arrived) : "memory");
        u32 count;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(count) : "l"(arrived) : "memory");
        } while (static_cast<int>(count - target) < 0);
    }
    __syncthreads();
}

#endif
