// Binary searches. Include after counters.cuh.
#ifndef POLARS_TADOC_SEGMENTS
#define POLARS_TADOC_SEGMENTS

// The last number in [low, high) for which a predicate holds; it must hold for the first, and stay false once false.
template <typename Number, typename Has>
__device__ __forceinline__ Number last_with(Number low, Number high, Has has)
{
    while (high - low > 1) {
        const Number middle = low + (high - low) / 2;
        if (has(middle))
            low = middle;
        else
            high = middle;
    }
    return low;
}

// The first number in [low, high) for which a predicate is false, as for all after it; `high` if there is none.
template <typename Number, typename Has>
__device__ __forceinline__ Number first_without(Number low, Number high, Has has)
{
    while (low < high) {
        const Number middle = low + (high - low) / 2;
        if (has(middle))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

// The segment of a position, among those in [low, high): the last one that starts at or before it. The first of them
// must.
template <typename Number>
__device__ __forceinline__ Number find_owner(const i64* __restrict__ offsets, Number low, Number high, u64 position)
{
    return last_with(low, high, [&](Number i) { return static_cast<u64>(offsets[i]) <= position; });
}

// Calls visit(position, segment) for a thread's positions from `first` to `stop` - 1. A warp's positions are adjacent:
// each thread takes every 32nd.
template <u32 BLOCK_THREADS, u32 EACH, typename Visit>
__device__ __forceinline__ void visit_owned(
    const i64* __restrict__ offsets, u32 segments, u64 first, u64 stop, Visit visit)
{
    const u64 warp = (static_cast<u64>(blockIdx.x) * BLOCK_THREADS + threadIdx.x) / 32;
    const u64 begin = first + warp * 32 * EACH + threadIdx.x % 32;
    if (begin >= stop)
        return;
    u32 owner = find_owner(offsets, 0u, segments, begin);
    for (u64 position = begin; position < stop && position < begin + 32 * EACH; position += 32) {
        while (static_cast<u64>(offsets[owner + 1]) <= position)
            ++owner;
        visit(position, owner);
    }
}

#endif
