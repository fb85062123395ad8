// Segments that lie one after another, by where each of them starts. Include after counters.cuh.
#ifndef POLARS_TADOC_SEGMENTS
#define POLARS_TADOC_SEGMENTS

using i64 = long long;

// The segment that holds a position, of those from `low` to `high` - 1: the last one that starts there or before. The
// first of them does.
__device__ __forceinline__ u64 find_owner(const i64* __restrict__ offsets, u64 low, u64 high, u64 position)
{
    while (high - low > 1) {
        const u64 middle = low + (high - low) / 2;
        if (static_cast<u64>(offsets[middle]) <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

#endif
