// Counts in global memory of which each block holds those that it meets often. Include after counters.cuh.
#ifndef POLARS_TADOC_HELD_COUNTS
#define POLARS_TADOC_HELD_COUNTS

#ifndef HOT_SLOTS
#define HOT_SLOTS 2048
#endif

// One number that comes all over must not queue at one address: a warp adds up equal ones, the block holds
// what it meets first in shared memory until its end.
struct HeldCounts {
    u32 keys[HOT_SLOTS];
    u32 counts[HOT_SLOTS];
    u32* whole;

    // All threads of the block call this first.
    __device__ void clear(u32* global_counts)
    {
        for (u32 i = threadIdx.x; i < HOT_SLOTS; i += blockDim.x) {
            keys[i] = NONE;
            counts[i] = 0;
        }
        if (threadIdx.x == 0)
            whole = global_counts;
        __syncthreads();
    }

    // A whole warp calls this; NONE counts for nothing.
    __device__ void add_warp(u32 number)
    {
        __syncwarp();
        const u32 peers = __match_any_sync(0xFFFFFFFFu, number);
        if (number != NONE && (threadIdx.x & 31) == __ffs(peers) - 1)
            add(number, __popc(peers));
        __syncwarp();
    }

    __device__ void add(u32 number, u32 amount)
    {
        const u32 i = (number * 0x9E3779B1u >> 16) % HOT_SLOTS;
        u32 key = *const_cast<volatile u32*>(keys + i);
        if (key == NONE) {
            key = atomicCAS(keys + i, NONE, number);
            key = key == NONE ? number : key;
        }
        atomicAdd(key == number ? counts + i : whole + number, amount);
    }

    // All threads of the block call this last.
    __device__ void flush()
    {
        __syncthreads();
        for (u32 i = threadIdx.x; i < HOT_SLOTS; i += blockDim.x)
            if (counts[i] != 0)
                atomicAdd(whole + keys[i], counts[i]);
    }
};

#endif
