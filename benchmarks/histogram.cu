// Word counts of uncompressed word ids: what the counts on the grammar are measured against.
#include "primitives/counters.cuh"

#ifndef THREADS
#define THREADS 1024
#endif

// The honest baseline: ids are ranked by frequency, so the first `held` take most of the additions, and
// those go to shared memory. Four 16-byte loads per thread are in flight.
extern "C" __global__ void __launch_bounds__(THREADS) histogram(
    const u32* __restrict__ ids, u64 size, u32 held, u64* counts)
{
    extern __shared__ u32 low[];
    for (u32 i = threadIdx.x; i < held; i += THREADS)
        low[i] = 0;
    __syncthreads();
    const auto add = [&](u32 id) {
        if (id < held)
            atomicAdd(low + id, 1u);
        else
            atomicAdd(counts + id, 1ull);
    };
    const uint4* quads = reinterpret_cast<const uint4*>(ids);
    const u64 quad_count = size / 4;
    const u64 threads = static_cast<u64>(gridDim.x) * THREADS;
    const u64 thread = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    u64 i = thread;
    for (; i + 3 * threads < quad_count; i += 4 * threads) {
        uint4 quad[4];
#pragma unroll
        for (u32 r = 0; r < 4; ++r)
            quad[r] = __ldg(quads + i + r * threads);
#pragma unroll
        for (u32 r = 0; r < 4; ++r) {
            add(quad[r].x);
            add(quad[r].y);
            add(quad[r].z);
            add(quad[r].w);
        }
    }
    for (; i < quad_count; i += threads) {
        const uint4 quad = __ldg(quads + i);
        add(quad.x);
        add(quad.y);
        add(quad.z);
        add(quad.w);
    }
    if (thread < size % 4)
        add(ids[4 * quad_count + thread]);
    __syncthreads();
    flush_held(low, held, counts);
}

extern "C" __global__ void naive(const u32* __restrict__ ids, u64 size, u64* counts)
{
    const u64 threads = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += threads)
        atomicAdd(counts + ids[i], 1ull);
}

// Keeps the device busy while the host queues what is to be timed, so that no launch gap is timed.
extern "C" __global__ void delay(u64 nanoseconds)
{
    u64 start;
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - start < nanoseconds);
}
