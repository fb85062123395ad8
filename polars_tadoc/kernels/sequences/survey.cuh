// Counts entries of windows by key, and estimates the number of keys. Include after counters.cuh and own_windows.cuh.
#ifndef POLARS_TADOC_SURVEY
#define POLARS_TADOC_SURVEY

constexpr u32 BUCKETS = 4096;
constexpr u32 SURVEY_THREADS = 512;

__device__ __forceinline__ u64 mixed(u64 first, u64 other)
{
    u64 x = first + other * 0x9E3779B97F4A7C14ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}

// Number of leading zeros of a hash plus one, under its lowest bits: HyperLogLog (Flajolet, Fusy, Gandouet and Meunier,
// 2007).
__device__ __forceinline__ void note(u32* sketch, u64 hash)
{
    const u32 zeros = static_cast<u32>(__clzll(static_cast<i64>(hash))) + 1;
    u32* most = sketch + hash % BUCKETS;
    if (*const_cast<volatile u32*>(most) < zeros)
        atomicMax(most, zeros);
}

// Entries of a range by their keys' first columns: `counts` has one per 2^shift of them.
// entries_of  number of entries of each window of a position
// sketch      of their keys
template <typename Kind, typename Entries>
__device__ __forceinline__ void survey(
    const Text& text, const Packing& packing, Entries entries_of, Range range, u32 shift, u32 buckets, u64* counts,
    u32* sketch)
{
    __shared__ u32 held[BUCKETS];
    __shared__ u32 held_sketch[BUCKETS];
    for (u32 i = threadIdx.x; i < BUCKETS; i += blockDim.x) {
        held[i] = 0;
        held_sketch[i] = 0;
    }
    __syncthreads();
    const u64 threads = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < text.size; i += threads) {
        const u64 entries = entries_of(i);
        if (entries == 0)
            continue;
        Kind::visit(text, i, packing, packing.columns - 1, [&](u64 first, u64 other) {
            if (!range.holds(first))
                return;
            const u64 bucket = (first - range.low) >> shift;
            add_held(held + bucket, entries, counts + bucket);
            note(held_sketch, mixed(first, other));
        });
    }
    __syncthreads();
    flush_held(held, buckets, counts);
    for (u32 i = threadIdx.x; i < BUCKETS; i += blockDim.x)
        if (held_sketch[i] > *const_cast<volatile u32*>(sketch + i))
            atomicMax(sketch + i, held_sketch[i]);
}

#endif
