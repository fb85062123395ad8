// Bitmaps with ranks: the number of bits set before a position.
#ifndef POLARS_TADOC_BITMAP
#define POLARS_TADOC_BITMAP

#include "primitives/counters.cuh"

// Bits set before position p; ranks[w] is the number before word w.
__device__ __forceinline__ u32 rank_before(const u32* __restrict__ bits, const u32* __restrict__ ranks, u32 p)
{
    return ranks[p >> 5] + __popc(bits[p >> 5] & ((1u << (p & 31)) - 1));
}

#endif
