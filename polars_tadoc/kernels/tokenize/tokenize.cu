// Cuts rows into words by character classes: bitmaps of the starts and stops of words, then spans.
#include "primitives/counters.cuh"
#include "primitives/bitmap.cuh"

constexpr u32 GAP = 0;
constexpr u32 SINGLE = 1;
constexpr u32 WORD = 2;
constexpr u32 MARK = 3;

constexpr u32 MARKS_NEAR = 32;  // marks that one thread scans backwards

// The rows are concatenated in one array, with 32 readable bytes after the last.
struct Text {
    const unsigned char* __restrict__ bytes;
    const unsigned short* __restrict__ page_of;
    const unsigned char* __restrict__ pages;

    // Class of the character whose first byte is at p.
    __device__ __forceinline__ u32 class_at(u32 p) const
    {
        const u32 lead = bytes[p];
        if (lead < 0x80)
            return pages[lead];
        u32 point = (lead & 0x1F) << 6 | (bytes[p + 1] & 0x3F);
        if (lead >= 0xE0)
            point = (point & 0x3FF) << 6 | (bytes[p + 2] & 0x3F);
        if (lead >= 0xF0)
            point = (point & 0x7FFF) << 6 | (bytes[p + 3] & 0x3F);
        point = min(point, 0x10FFFFu);
        return pages[page_of[point >> 8] << 8 | (point & 0xFF)];
    }

    // First byte of the character that ends before p > 0.
    __device__ __forceinline__ u32 previous(u32 p) const
    {
        const u32 lowest = p > 4 ? p - 4 : 0;
        --p;
        while (p > lowest && (bytes[p] & 0xC0) == 0x80)
            --p;
        return p;
    }

    // Bytes of the character whose first byte is at p, judged by that byte alone; 1 for invalid bytes.
    __device__ __forceinline__ u32 width_at(u32 p) const
    {
        const u32 lead = bytes[p];
        return lead < 0xC2 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 1;
    }

    // Whether a multi-byte character can start at p: no surrogate, not overlong, up to U+10FFFF.
    __device__ __forceinline__ bool may_start(u32 p) const
    {
        const u32 lead = bytes[p];
        const u32 second = bytes[p + 1];
        const u32 least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
        const u32 most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
        return lead >= 0xC2 && lead < 0xF5 && second >= least && second <= most;
    }
};

constexpr u32 NO = 0;
constexpr u32 YES = 1;
constexpr u32 FAR = 2;

// Whether the one or more marks that end before p belong to a SINGLE in their row; FAR if there are many.
__device__ u32 marks_follow_single(const Text& text, const u32* __restrict__ row_bits, u32 p)
{
    for (u32 marks = 0; marks < MARKS_NEAR; ++marks) {
        p = text.previous(p);
        const u32 kind = text.class_at(p);
        if (kind != MARK || (row_bits[p >> 5] >> (p & 31) & 1))
            return kind == SINGLE ? YES : NO;
    }
    return FAR;
}

// Sets a bit at the first byte of each nonempty row, and one after the text.
extern "C" __global__ void mark_rows(const u32* __restrict__ row_offsets, u32 rows, u32* __restrict__ row_bits)
{
    const u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row > rows)
        return;
    const u32 begin = row_offsets[row];
    if (row == rows || begin < row_offsets[row + 1])
        atomicOr(row_bits + (begin >> 5), 1u << (begin & 31));
}

// One thread per 32 bytes. start_bits: the first byte of each word; stop_bits: the byte after each word, which may be
// the next row's first or the one after the text. Only a WORD character after marks requires looking back further than
// one character; if the marks are many, resolve_marks does that. report: whether the text is not UTF-8, row by row, in
// which case the bitmaps are invalid; and the number of characters left, listed in far.
extern "C" __global__ void __launch_bounds__(256) classify(const unsigned char* __restrict__ bytes, u32 size,
    const unsigned short* __restrict__ page_of, const unsigned char* __restrict__ pages,
    const u32* __restrict__ row_bits, u32* __restrict__ start_bits, u32* __restrict__ stop_bits, u32 bitmap_words,
    u32* __restrict__ far, u32* __restrict__ report)
{
    const u32 word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word >= bitmap_words)
        return;
    const Text text = {bytes, page_of, pages};
    const u32 base = 32 * word;
    const u32 row_starts = row_bits[word];
    u32 starts = 0;
    u32 stops = 0;
    u32 before = GAP;
    u32 covered = 0;  // bytes covered by characters so far
    bool valid = true;
    if (base > 0) {
        const u32 last = text.previous(base);
        before = text.class_at(last);
        covered = last + text.width_at(last);
    }
    for (u32 eighth = 0; eighth < 32; eighth += 8) {
        if (base + eighth > size)
            break;
        u64 chunk = *reinterpret_cast<const u64*>(bytes + base + eighth);
        for (u32 i = eighth; i < eighth + 8; ++i, chunk >>= 8) {
            const u32 p = base + i;
            const u32 bit = 1u << i;
            if (row_starts & bit) {
                stops |= before != GAP ? bit : 0;
                before = GAP;
                valid &= p >= covered;
            }
            const u32 byte = static_cast<u32>(chunk) & 0xFF;
            if (p >= size)
                break;
            const bool continuing = (byte & 0xC0) == 0x80;
            valid &= continuing == (p < covered);
            if (continuing)
                continue;
            u32 kind;
            if (byte < 0x80) {
                kind = pages[byte];
            } else {
                valid &= text.may_start(p);
                covered = p + text.width_at(p);
                kind = text.class_at(p);
            }
            bool starting = kind == SINGLE || (kind != GAP && before == GAP) || (kind == WORD && before == SINGLE);
            if (kind == WORD && before == MARK) {
                const u32 after_single = marks_follow_single(text, row_bits, p);
                starting = after_single == YES;
                if (after_single == FAR)
                    far[atomicAdd(report + 1, 1u)] = p;
            }
            starts |= starting ? bit : 0;
            stops |= before != GAP && (starting || kind == GAP) ? bit : 0;
            before = kind;
        }
    }
    start_bits[word] = starts;
    stop_bits[word] = stops;
    if (!valid)
        report[0] = 1;
}

// One block per WORD character after many marks finds the character before the marks, and starts a word there if that
// is a SINGLE in the row. Runs of marks do not overlap: all blocks together read at most the whole text.
extern "C" __global__ void __launch_bounds__(256) resolve_marks(const unsigned char* __restrict__ bytes,
    const unsigned short* __restrict__ page_of, const unsigned char* __restrict__ pages,
    const u32* __restrict__ row_bits, const u32* __restrict__ far, u32* __restrict__ start_bits,
    u32* __restrict__ stop_bits)
{
    __shared__ u32 base_end;  // after the first byte of the last character before p that is not a mark or starts a row
    const Text text = {bytes, page_of, pages};
    const u32 p = far[blockIdx.x];
    if (threadIdx.x == 0)
        base_end = 0;
    __syncthreads();
    for (u32 stop = p;;) {
        const u32 behind = 32 * threadIdx.x;
        for (u32 i = 0; i < 32 && behind + i < stop; ++i) {
            const u32 at = stop - 1 - behind - i;
            if ((bytes[at] & 0xC0) == 0x80)
                continue;
            if (text.class_at(at) != MARK || (row_bits[at >> 5] >> (at & 31) & 1)) {
                atomicMax(&base_end, at + 1);
                break;
            }
        }
        __syncthreads();
        const bool done = base_end != 0 || stop <= 32 * blockDim.x;
        __syncthreads();  // all have read it before it is written again
        if (done)
            break;
        stop -= 32 * blockDim.x;
    }
    if (threadIdx.x == 0 && base_end != 0 && text.class_at(base_end - 1) == SINGLE) {
        atomicOr(start_bits + (p >> 5), 1u << (p & 31));
        atomicOr(stop_bits + (p >> 5), 1u << (p & 31));
    }
}

// Tokens are the words of all rows, each row followed by an empty token at its end, so that token t of the text has
// position t in the sequence. row_tokens: number of tokens before each row, and in total. filled_rows: the nonempty
// rows.
extern "C" __global__ void place_rows(const u32* __restrict__ row_offsets, u32 rows,
    const u32* __restrict__ row_bits, const u32* __restrict__ row_ranks, const u32* __restrict__ start_bits,
    const u32* __restrict__ start_ranks, u32* __restrict__ row_tokens, u32* __restrict__ filled_rows,
    u32* __restrict__ token_starts, u32* __restrict__ token_stops)
{
    const u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row > rows)
        return;
    const u32 begin = row_offsets[row];
    const u32 tokens = rank_before(start_bits, start_ranks, begin) + row;
    row_tokens[row] = tokens;
    if (row > 0) {
        token_starts[tokens - 1] = begin;
        token_stops[tokens - 1] = begin;
    }
    if (row < rows && begin < row_offsets[row + 1])
        filled_rows[rank_before(row_bits, row_ranks, begin)] = row;
}

// One thread per 32 bytes writes the words that start there.
extern "C" __global__ void place_words(const u32* __restrict__ row_bits, const u32* __restrict__ row_ranks,
    const u32* __restrict__ start_bits, const u32* __restrict__ start_ranks, const u32* __restrict__ stop_bits,
    u32 bitmap_words, const u32* __restrict__ filled_rows, u32* __restrict__ token_starts,
    u32* __restrict__ token_stops)
{
    const u32 word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word >= bitmap_words)
        return;
    u32 starts = start_bits[word];
    if (starts == 0)
        return;
    u32 rank = start_ranks[word];
    const u32 row_starts = row_bits[word];
    const u32 row_rank = row_ranks[word];
    for (; starts != 0; starts &= starts - 1, ++rank) {
        const u32 bit = __ffs(starts) - 1;
        const u32 up_to = 0xFFFFFFFFu >> (31 - bit);
        const u32 token = rank + filled_rows[row_rank + __popc(row_starts & up_to) - 1];
        u32 at = word;
        u32 stops = stop_bits[word] & ~up_to;
        while (stops == 0)
            stops = stop_bits[++at];
        token_starts[token] = 32 * word + bit;
        token_stops[token] = 32 * at + __ffs(stops) - 1;
    }
}
