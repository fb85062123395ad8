// Windows and pairs of documents without rules, as keys of packed ranks.
#include "primitives/counters.cuh"

// Packs n neighbours, `per_column` in each column, above `spare` bits of the last one, which hold a one.
// ranks    of all words
// offsets  words before each document
// before   windows before each document
// owners   document of each window
extern "C" __global__ void pack_windows(
    const u32* __restrict__ ranks, const i64* __restrict__ offsets, const i64* __restrict__ before,
    const u32* __restrict__ owners, u64 size, u32 n, u32 bits, u32 per_column, u32 columns, u32 spare,
    u64* __restrict__ keys)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= size)
        return;
    const u32 document = owners[i];
    const u64 first = static_cast<u64>(offsets[document]) + (i - static_cast<u64>(before[document]));
    for (u32 column = 0; column < columns; ++column) {
        const u32 stop = column + 1 == columns ? n : (column + 1) * per_column;
        u64 key = 0;
        for (u32 word = column * per_column; word < stop; ++word)
            key = key << bits | ranks[first + word];
        if (column + 1 == columns)
            key = (spare < 64 ? key << spare : 0) | 1;
        keys[column * size + i] = key;
    }
}

// Packs each word with those up to `reach` places after it, the one of lower rank first, in one column.
// before  pairs before those of each distance and document: distance by distance, document by document
// owners  document of each word
extern "C" __global__ void pack_pairs(
    const u32* __restrict__ ranks, const i64* __restrict__ offsets, const i64* __restrict__ before, u32 documents,
    const u32* __restrict__ owners, u64 size, u32 reach, u32 bits, u32 spare, u64* __restrict__ keys)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= size)
        return;
    const u32 document = owners[i];
    const u64 place = i - static_cast<u64>(offsets[document]);
    const u64 stop = offsets[document + 1];
    const u64 one = ranks[i];
    for (u32 distance = 1; distance <= reach && i + distance < stop; ++distance) {
        const u64 other = ranks[i + distance];
        const u64 own = static_cast<u64>(before[static_cast<u64>(distance - 1) * documents + document]) + place;
        keys[own] = (min(one, other) << bits | max(one, other)) << spare | 1;
    }
}

// Makes keys without their spare bits the first column, documents above a weight of one the second.
extern "C" __global__ void pack_postings(
    const u64* __restrict__ keys, const u32* __restrict__ documents, u64 size, u32 spare, u64* __restrict__ columns)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= size)
        return;
    columns[i] = keys[i] >> spare;
    columns[size + i] = static_cast<u64>(documents[i]) << 32 | 1;
}
