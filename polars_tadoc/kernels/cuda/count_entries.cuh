// Entries of windows by their keys' first words. Include after counters.cuh and reduced_text.cuh.
#ifndef POLARS_TADOC_COUNT_ENTRIES
#define POLARS_TADOC_COUNT_ENTRIES

constexpr u32 BUCKETS = 4096;

// Entries of a range by their first two ranks, put together: `counts` has one for each 2^shift of them.
template <typename Kind, typename Entries>
__device__ __forceinline__ void count_entries(
    const Words& text, Entries entries_of, Range range, u32 shift, u32 buckets, u64* counts)
{
    __shared__ u32 held[BUCKETS];
    for (u32 i = threadIdx.x; i < buckets; i += blockDim.x)
        held[i] = 0;
    __syncthreads();
    const u64 threads = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < text.size; i += threads) {
        const u64 entries = entries_of(i);
        Kind::visit_first(text, i, [&](u64 ranks) {
            const u64 bucket = (ranks - range.low) >> shift;
            if (range.holds(ranks))
                add_held(held + bucket, entries, counts + bucket);
        });
    }
    __syncthreads();
    flush_held(held, buckets, counts);
}

#endif
