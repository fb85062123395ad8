// Bodies of rules or documents, with the first and last words of the rules in them (G-TADOC, Zhang et al., ICDE 2021,
// section on sequences: head and tail buffers). Include after counters.cuh.
//
// An owner (a rule's body, or a document) owns the windows that span two or more of its children. They start in the
// last words of a child; `reach` is the maximum number of words beyond its first. One thread per position of a body, so
// that a long body gets many threads.
#ifndef POLARS_TADOC_BODIES
#define POLARS_TADOC_BODIES

// The ends of a rule: [0] its length, at most 2 reach + 1; then its first words; then its last words, up to `reach` of
// each. Words are represented by ranks.
__device__ __forceinline__ u64 ends_of(u32 rule, u32 stride)
{
    return static_cast<u64>(rule) * stride;
}

__device__ __forceinline__ u32 rank_of(const u32* rank, u32 terminal)
{
    return rank == nullptr ? terminal : __ldg(rank + terminal);
}

__device__ __forceinline__ u32 owner_at(u64 position, const i64* __restrict__ offsets, u32 owners)
{
    return last_with(0u, owners, [&](u32 i) { return static_cast<u64>(__ldg(offsets + i)) <= position; });
}

struct Text {
    const u32* symbols;
    u64 size;
    const u32* starts;
    const u32* ends;
    u32 stride;
    u32 terminals;
    const u32* rank;
    u32 reach;

    __device__ __forceinline__ bool is_rule(u64 position) const { return __ldg(symbols + position) >= terminals; }

    __device__ __forceinline__ const u32* ends_at(u64 position) const
    {
        return ends + ends_of(__ldg(symbols + position) - terminals, stride);
    }

    // At most 2 reach + 1.
    __device__ __forceinline__ u32 length(u64 position) const
    {
        return is_rule(position) ? __ldg(ends_at(position)) : 1;
    }

    __device__ __forceinline__ bool owner_ends(u64 position) const
    {
        return position >= size || (__ldg(starts + position / 32) >> (position % 32) & 1u) != 0;
    }

    // Words of the owner after this child, counted up to `reach`.
    __device__ __forceinline__ u32 words_after(u64 position) const
    {
        u32 words = 0;
        for (u64 next = position + 1; words < reach && !owner_ends(next); ++next)
            words += min(length(next), reach - words);
        return words;
    }
};

#endif
