// Gaps between words: finds those that differ from the default, and encodes them.
#include "primitives/counters.cuh"
#include "primitives/bitmap.cuh"

// Sets a bit for each token with a noted gap before it: inside a row any gap but one space, at a row's ends any
// nonempty gap. An empty token ends a row.
extern "C" __global__ void mark_gaps(const unsigned char* __restrict__ bytes, const u32* __restrict__ token_starts,
    const u32* __restrict__ token_stops, u32 tokens, u32 bitmap_words, u32* __restrict__ gap_bits)
{
    const u64 token = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    bool noted = false;
    if (token < tokens) {
        const u32 start = token_starts[token];
        const u32 begin = token == 0 ? 0 : token_stops[token - 1];
        const bool first = token == 0 || token_starts[token - 1] == begin;
        const bool last = token_stops[token] == start;
        noted = first || last ? start != begin : start - begin != 1 || bytes[begin] != ' ';
    }
    const u32 word = __ballot_sync(0xFFFFFFFFu, noted);
    if ((threadIdx.x & 31) == 0 && token / 32 < bitmap_words)
        gap_bits[token / 32] = word;
}

// One thread per 32 tokens writes the noted gaps: the token after each, and its span.
extern "C" __global__ void place_gaps(const u32* __restrict__ gap_bits, const u32* __restrict__ gap_ranks,
    u32 bitmap_words, const u32* __restrict__ token_starts, const u32* __restrict__ token_stops,
    u32* __restrict__ gap_tokens, u32* __restrict__ gap_starts, u32* __restrict__ gap_stops)
{
    const u32 word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word >= bitmap_words)
        return;
    u32 gap = gap_ranks[word];
    for (u32 bits = gap_bits[word]; bits != 0; bits &= bits - 1, ++gap) {
        const u32 token = 32 * word + __ffs(bits) - 1;
        gap_tokens[gap] = token;
        gap_starts[gap] = token == 0 ? 0 : token_stops[token - 1];
        gap_stops[gap] = token_starts[token];
    }
}

// Number of noted gaps before each row, and in total.
extern "C" __global__ void place_gap_rows(const u32* __restrict__ row_tokens, u32 rows,
    const u32* __restrict__ gap_bits, const u32* __restrict__ gap_ranks, u32* __restrict__ row_gaps)
{
    const u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row <= rows)
        row_gaps[row] = rank_before(gap_bits, gap_ranks, row_tokens[row]);
}

// first_tokens[g]: first token of the row whose first noted gap is g; unchanged for other gaps.
extern "C" __global__ void mark_first_gaps(const u32* __restrict__ row_tokens, const u32* __restrict__ row_gaps,
    u32 rows, u32* __restrict__ first_tokens)
{
    const u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && row_gaps[row] < row_gaps[row + 1])
        first_tokens[row_gaps[row]] = row_tokens[row];
}

__device__ __forceinline__ u32 varint_size(u32 value)
{
    return value == 0 ? 1 : (38 - __clz(value)) / 7;
}

__device__ __forceinline__ u64 write_varint(unsigned char* __restrict__ data, u64 at, u32 value)
{
    for (; value >= 0x80; value >>= 7)
        data[at++] = value & 0x7F | 0x80;
    data[at] = value;
    return at + 1;
}

// Number of the row's gaps skipped since its last noted one, or since its first gap.
__device__ __forceinline__ u32 gaps_skipped(
    const u32* __restrict__ gap_tokens, const u32* __restrict__ first_tokens, u32 gap)
{
    const u32 since = gap == 0 ? 0 : gap_tokens[gap - 1] + 1;
    return gap_tokens[gap] - max(since, first_tokens[gap]);
}

// Bytes of each noted gap's pair of varints.
extern "C" __global__ void measure_gaps(const u32* __restrict__ gap_tokens, const u32* __restrict__ first_tokens,
    const u32* __restrict__ gap_ids, u32 gaps, unsigned char* __restrict__ sizes)
{
    const u32 gap = blockIdx.x * blockDim.x + threadIdx.x;
    if (gap < gaps)
        sizes[gap] = varint_size(gaps_skipped(gap_tokens, first_tokens, gap)) + varint_size(gap_ids[gap]);
}

// Writes the pairs; stops: end of each pair.
extern "C" __global__ void write_gaps(const u32* __restrict__ gap_tokens, const u32* __restrict__ first_tokens,
    const u32* __restrict__ gap_ids, u32 gaps, const u64* __restrict__ stops, unsigned char* __restrict__ data)
{
    const u32 gap = blockIdx.x * blockDim.x + threadIdx.x;
    if (gap >= gaps)
        return;
    const u64 at = gap == 0 ? 0 : stops[gap - 1];
    write_varint(data, write_varint(data, at, gaps_skipped(gap_tokens, first_tokens, gap)), gap_ids[gap]);
}

// Offsets of each row's bytes, and the total.
extern "C" __global__ void place_gap_bytes(
    const u32* __restrict__ row_gaps, u32 rows, const u64* __restrict__ stops, i64* __restrict__ offsets)
{
    const u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row <= rows)
        offsets[row] = row_gaps[row] == 0 ? 0 : static_cast<i64>(stops[row_gaps[row] - 1]);
}
