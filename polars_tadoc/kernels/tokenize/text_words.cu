// The words of a text with concatenated rows: their spans, and the number of words before each row.
#include "primitives/counters.cuh"
#include "primitives/bitmap.cuh"

// offsets: words before each row, and all.
extern "C" __global__ void count_before_rows(const u32* __restrict__ row_offsets, u32 rows,
    const u32* __restrict__ start_bits, const u32* __restrict__ start_ranks, i64* __restrict__ offsets)
{
    const u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row <= rows)
        offsets[row] = rank_before(start_bits, start_ranks, row_offsets[row]);
}

// One thread per 32 bytes writes the words that start there.
extern "C" __global__ void place_spans(const u32* __restrict__ start_bits, const u32* __restrict__ start_ranks,
    const u32* __restrict__ stop_bits, u32 bitmap_words, u32* __restrict__ word_starts, u32* __restrict__ word_stops)
{
    const u32 word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word >= bitmap_words)
        return;
    u32 rank = start_ranks[word];
    for (u32 starts = start_bits[word]; starts != 0; starts &= starts - 1, ++rank) {
        const u32 bit = __ffs(starts) - 1;
        u32 at = word;
        u32 stops = stop_bits[word] & ~(0xFFFFFFFFu >> (31 - bit));
        while (stops == 0)
            stops = stop_bits[++at];
        word_starts[rank] = 32 * word + bit;
        word_stops[rank] = 32 * at + __ffs(stops) - 1;
    }
}

// places: by id the index of a word with that id; NONE at the start. Reads may miss concurrent writes, which only
// causes more writes.
extern "C" __global__ void note_places(const u32* __restrict__ ids, u32 words, u32* places)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < words && places[ids[i]] == NONE)
        places[ids[i]] = i;
}
