// Windows and pairs of documents without rules, as keys of packed ranks in the order of their places.
#include "primitives/counters.cuh"

// Where the first word of a window is.
// offsets  words before each document
// before   windows before each document
// owners   document of each window
__device__ __forceinline__ u64 first_word(
    const i64* __restrict__ offsets, const i64* __restrict__ before, const u32* __restrict__ owners, u64 window)
{
    const u32 document = owners[window];
    return static_cast<u64>(offsets[document]) + (window - static_cast<u64>(before[document]));
}

__device__ __forceinline__ u64 place_of(const u32* __restrict__ rank, u32 word)
{
    return rank == nullptr ? word : __ldg(rank + word);
}

// Packs n neighbours, `per_column` in each column, above `spare` bits of the last one, which hold a one.
// rank  by word, or null where words are numbered so
extern "C" __global__ void pack_windows(
    const u32* __restrict__ words, const u32* __restrict__ rank, const i64* __restrict__ offsets,
    const i64* __restrict__ before, const u32* __restrict__ owners, u64 size, u32 n, u32 bits, u32 per_column,
    u32 columns, u32 spare, u64* __restrict__ keys)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= size)
        return;
    const u64 first = first_word(offsets, before, owners, i);
    for (u32 column = 0; column < columns; ++column) {
        const u32 stop = column + 1 == columns ? n : (column + 1) * per_column;
        u64 key = 0;
        for (u32 word = column * per_column; word < stop; ++word)
            key = key << bits | place_of(rank, words[first + word]);
        if (column + 1 == columns)
            key = (spare < 64 ? key << spare : 0) | 1;
        keys[column * size + i] = key;
    }
}

// Packs the words `apart` places apart, the one of lower rank first, in one column.
extern "C" __global__ void pack_pairs(
    const u32* __restrict__ words, const u32* __restrict__ rank, const i64* __restrict__ offsets,
    const i64* __restrict__ before, const u32* __restrict__ owners, u64 size, u32 apart, u32 bits, u32 spare,
    u64* __restrict__ keys)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= size)
        return;
    const u64 first = first_word(offsets, before, owners, i);
    const u64 one = place_of(rank, words[first]);
    const u64 other = place_of(rank, words[first + apart]);
    keys[i] = (min(one, other) << bits | max(one, other)) << spare | 1;
}
