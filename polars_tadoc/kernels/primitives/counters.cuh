// Counters in shared memory that accumulate for counters in global memory.
#ifndef POLARS_TADOC_COUNTERS
#define POLARS_TADOC_COUNTERS

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

// No symbol, rule or word has this id: words and rules together are fewer than 2^32.
constexpr u32 NONE = 0xFFFFFFFFu;

// Shared memory has no native 64-bit add (it compiles to a compare-and-swap loop): the low half is in shared memory,
// and overflow is added to the global counter at once. Exact in any order of the additions.
__device__ __forceinline__ void add_held(u32* low, u64 amount, u64* whole)
{
    const u32 added = static_cast<u32>(amount);
    const u32 before = atomicAdd(low, added);
    const u64 high = (amount >> 32) + (before + added < before ? 1u : 0u);
    if (high != 0)
        atomicAdd(whole, high << 32);
}

// Adds to a counter; the first `held` counters are in shared memory.
__device__ __forceinline__ void add_count(u32* low, u32 held, u64* whole, u32 id, u64 amount)
{
    if (id < held)
        add_held(low + id, amount, whole + id);
    else
        atomicAdd(whole + id, amount);
}

// Adds the block's counters to the global ones. Each block starts at a different counter, so that blocks, which finish
// together, do not contend for the same addresses.
__device__ __forceinline__ void flush_held(const u32* low, u32 held, u64* whole)
{
    const u32 start = static_cast<u32>(static_cast<u64>(held) * blockIdx.x / gridDim.x) & ~31u;
    for (u32 i = threadIdx.x; i < held; i += blockDim.x) {
        const u32 id = i + start < held ? i + start : i + start - held;
        const u32 value = low[id];
        if (value != 0)
            atomicAdd(whole + id, static_cast<u64>(value));
    }
}

#ifndef HOT_SLOTS
#define HOT_SLOTS 2048
#endif

// Avoids contention for the address of a frequent number: a warp adds up equal ones, and the block keeps the first ones
// it sees in shared memory until its end.
struct HeldCounts {
    u32 keys[HOT_SLOTS];
    u32 counts[HOT_SLOTS];
    u32* whole;

    // Called first by all threads of the block.
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

    // Called by a whole warp; NONE counts nothing.
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

    // Called last by all threads of the block.
    __device__ void flush()
    {
        __syncthreads();
        for (u32 i = threadIdx.x; i < HOT_SLOTS; i += blockDim.x)
            if (counts[i] != 0)
                atomicAdd(whole + keys[i], counts[i]);
    }
};

#endif
