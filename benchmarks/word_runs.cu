// Windows and pairs of uncompressed words: what sequences on the grammar are measured against.
#include "primitives/counters.cuh"

// A document has `after` words at least behind this one.
__device__ __forceinline__ bool has_after(const u32* __restrict__ starts, u64 size, u64 i, u32 after)
{
    if (i + after >= size)
        return false;
    for (u64 next = i + 1; next <= i + after; ++next)
        if ((starts[next / 32] >> (next % 32) & 1u) != 0)
            return false;
    return true;
}

// Packs `words` neighbours, `per_column` in each column; above `spare` bits of the last one, which hold a one.
// Places without a window are all ones and come last.
extern "C" __global__ void pack_windows(
    const u32* __restrict__ words, const u32* __restrict__ starts, u64 size, u32 n, u32 bits, u32 per_column,
    u32 columns, u32 spare, u64* __restrict__ keys)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= size)
        return;
    const bool there = has_after(starts, size, i, n - 1);
    for (u32 column = 0; column < columns; ++column) {
        const u32 first = column * per_column;
        const u32 stop = column + 1 == columns ? n : first + per_column;
        u64 key = 0;
        for (u32 word = first; there && word < stop; ++word)
            key = key << bits | words[i + word];
        if (column + 1 == columns)
            key = key << spare | 1;
        keys[column * size + i] = there ? key : ~0ull;
    }
}

extern "C" __global__ void pack_pairs(
    const u32* __restrict__ words, const u32* __restrict__ starts, u64 size, u32 window, u32 bits, u32 spare,
    u64* __restrict__ keys)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= size)
        return;
    bool there = true;
    for (u32 apart = 1; apart <= window; ++apart) {
        const u64 next = i + apart;
        there = there && next < size && (starts[next / 32] >> (next % 32) & 1u) == 0;
        u64 key = ~0ull;
        if (there) {
            const u64 low = min(words[i], words[next]);
            key = (low << bits | max(words[i], words[next])) << spare | 1;
        }
        keys[(apart - 1) * size + i] = key;
    }
}
