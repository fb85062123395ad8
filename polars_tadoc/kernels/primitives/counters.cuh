// Counters in shared memory that stand for counters in global memory.
#ifndef POLARS_TADOC_COUNTERS
#define POLARS_TADOC_COUNTERS

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

// No symbol, rule or word has this id: words and rules together are fewer than 2^32.
constexpr u32 NONE = 0xFFFFFFFFu;

// Shared memory has no native 64-bit add (it compiles to a compare-and-swap loop): the low half is
// held, and what leaves it goes to the whole counter at once. Exact in any order of the additions.
__device__ __forceinline__ void add_held(u32* low, u64 amount, u64* whole)
{
    const u32 added = static_cast<u32>(amount);
    const u32 before = atomicAdd(low, added);
    const u64 high = (amount >> 32) + (before + added < before ? 1u : 0u);
    if (high != 0)
        atomicAdd(whole, high << 32);
}

// Adds to a counter, of which the first `held` are held in shared memory.
__device__ __forceinline__ void add_count(u32* low, u32 held, u64* whole, u32 id, u64 amount)
{
    if (id < held)
        add_held(low + id, amount, whole + id);
    else
        atomicAdd(whole + id, amount);
}

// Adds the block's counters to the whole ones. Each block starts elsewhere, so that the blocks, which
// all end together, do not queue at the same addresses.
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
