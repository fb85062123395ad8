// Gaps between words: finds those that differ from the default, predicts them from the position in a rule's body, or the
// word, after them, and encodes the others; see kernels/repair/gaps.py.
#include "primitives/counters.cuh"
#include "primitives/segments.cuh"
#include "primitives/bitmap.cuh"
#include "primitives/scan.cuh"

constexpr u32 THREADS = 512;

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

// Words represent themselves.
extern "C" __global__ void measure_words(u32 words, u32* __restrict__ lengths, u32* __restrict__ firsts)
{
    const u32 word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word >= words)
        return;
    lengths[word] = 1;
    firsts[word] = word;
}

constexpr u32 MEASURING = 256;  // threads of a block that measures rules

// Number of words and first word of a rule's expansion, and the number of words before each position of its body. Called
// by a whole warp, or by a whole block.
template <u32 TOGETHER>
__device__ __forceinline__ void measure_rule(u32 rule, u32 vocabulary, const u32* __restrict__ rule_offsets,
    const u32* __restrict__ symbols, u32* lengths, u32* firsts, u32* __restrict__ words_before)
{
    constexpr u32 EACH = 4;
    const u32 thread = threadIdx.x % TOGETHER;
    const u32 begin = rule_offsets[rule];
    const u32 end = rule_offsets[rule + 1];
    u32 total = 0;
    for (u32 at = begin; at < end; at += TOGETHER * EACH) {
        const u32 place = at + thread * EACH;
        u32 own[EACH], sum = 0;
        for (u32 i = 0; i < EACH; ++i) {
            own[i] = place + i < end ? lengths[symbols[place + i]] : 0;
            sum += own[i];
        }
        u32 before, all;
        if constexpr (TOGETHER == 32) {
            before = lanes_before(sum);
            all = __shfl_sync(ALL_LANES, before + sum, 31);
        } else {
            before = block_before<TOGETHER>(sum, all);
            __syncthreads();  // block_before is called again
        }
        before += total;
        total += all;
        for (u32 i = 0; i < EACH; ++i) {
            if (place + i < end)
                words_before[place + i] = before;
            before += own[i];
        }
    }
    if (thread == 0) {
        lengths[vocabulary + rule] = total;
        firsts[vocabulary + rule] = firsts[symbols[begin]];
    }
}

// Measures the rules from first to stop, whose bodies refer to lower ones only. A warp for each rule; its block for a
// long one, as of a repeated book, which all others of the level would wait for.
extern "C" __global__ void measure_rules(u32 first, u32 stop, u32 vocabulary, const u32* __restrict__ rule_offsets,
    const u32* __restrict__ symbols, u32* lengths, u32* firsts, u32* __restrict__ words_before)
{
    constexpr u32 WARPS = MEASURING / 32, LONG = 2048;
    const u32 begin = first + blockIdx.x * WARPS;
    const u32 own = begin + threadIdx.x / 32;
    if (own < stop && rule_offsets[own + 1] - rule_offsets[own] < LONG)
        measure_rule<32>(own, vocabulary, rule_offsets, symbols, lengths, firsts, words_before);
    for (u32 rule = begin; rule < min(begin + WARPS, stop); ++rule) {
        if (rule_offsets[rule + 1] - rule_offsets[rule] >= LONG)
            measure_rule<MEASURING>(rule, vocabulary, rule_offsets, symbols, lengths, firsts, words_before);
    }
}

extern "C" __global__ void measure_roots(
    const u32* __restrict__ roots, u32 count, const u32* __restrict__ lengths, u32* __restrict__ root_lengths)
{
    const u32 root = blockIdx.x * blockDim.x + threadIdx.x;
    if (root < count)
        root_lengths[root] = lengths[roots[root]];
}

// Position of each top-level symbol among the tokens; each row has an additional token at its end. words_up_to: number
// of words up to each top-level symbol, inclusive.
extern "C" __global__ void place_roots(const u32* __restrict__ roots, u32 count, const u32* __restrict__ lengths,
    const u32* __restrict__ words_up_to, const i64* __restrict__ root_offsets, u32 rows,
    u32* __restrict__ root_tokens, u32* __restrict__ root_bits)
{
    const u32 root = blockIdx.x * blockDim.x + threadIdx.x;
    if (root >= count)
        return;
    const u32 row = find_owner(root_offsets, 0u, rows, root);
    const u32 token = words_up_to[root] - lengths[roots[root]] + row;
    root_tokens[root] = token;
    atomicOr(root_bits + (token >> 5), 1u << (token & 31));
}

// Marks the first token of each row and the one at its end: the gaps before them are not predicted.
extern "C" __global__ void mark_edges(const u32* __restrict__ row_tokens, u32 rows, u32* __restrict__ edge_bits)
{
    const u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    const u32 last = row_tokens[row + 1] - 1;
    atomicOr(edge_bits + (row_tokens[row] >> 5), 1u << (row_tokens[row] & 31));
    atomicOr(edge_bits + (last >> 5), 1u << (last & 31));
}

// Key of the gap before each token: the word, if a top-level symbol starts there, otherwise the position in a body,
// after the vocabulary; NONE at the ends of rows.
extern "C" __global__ void find_keys(u32 tokens, const u32* __restrict__ edge_bits,
    const u32* __restrict__ root_bits, const u32* __restrict__ root_ranks, const u32* __restrict__ root_tokens,
    const u32* __restrict__ roots, u32 vocabulary, const u32* __restrict__ rule_offsets,
    const u32* __restrict__ symbols, const u32* __restrict__ firsts, const u32* __restrict__ words_before,
    u32* __restrict__ keys)
{
    const u32 token = blockIdx.x * blockDim.x + threadIdx.x;
    if (token >= tokens)
        return;
    u32 key = NONE;
    if ((edge_bits[token >> 5] >> (token & 31) & 1) == 0) {
        const u32 root = rank_before(root_bits, root_ranks, token + 1) - 1;
        u32 symbol = roots[root];
        u32 offset = token - root_tokens[root];
        key = firsts[symbol];
        while (offset > 0) {
            const u32* body = rule_offsets + (symbol - vocabulary);
            const u32 place = last_with(body[0], body[1], [&](u32 i) { return words_before[i] <= offset; });
            offset -= words_before[place];
            symbol = symbols[place];
            key = vocabulary + place;
        }
    }
    keys[token] = key;
}

// A noted gap's code is its id plus 1; 0 means any other gap.
extern "C" __global__ void scatter_codes(
    const u32* __restrict__ gap_tokens, const u32* __restrict__ gap_ids, u32 gaps, u32* __restrict__ codes)
{
    const u32 gap = blockIdx.x * blockDim.x + threadIdx.x;
    if (gap < gaps)
        codes[gap_tokens[gap]] = gap_ids[gap] + 1;
}

// Counts each code under each key: code 0 at counts[key], others after all keys, at their slot. slots: key in the high
// half, code in the low half, plus 1; at least as many as there are pairs, and a power of two.
extern "C" __global__ void __launch_bounds__(THREADS) count_codes(const u32* __restrict__ keys,
    const u32* __restrict__ codes, u32 tokens, u32 key_count, u64* slots, u32 mask, u32* counts)
{
    __shared__ HeldCounts held;
    held.clear(counts);
    const u64 stride = static_cast<u64>(gridDim.x) * THREADS;
    const u32 lane = threadIdx.x & 31;
    for (u64 first = blockIdx.x * THREADS + (threadIdx.x & ~31u); first < tokens; first += stride) {
        u32 place = NONE;
        if (first + lane < tokens && keys[first + lane] != NONE) {
            const u32 key = keys[first + lane];
            const u32 code = codes[first + lane];
            place = key;
            if (code != 0) {
                const u64 pair = (static_cast<u64>(key) << 32 | code) + 1;
                u64 h = pair * 0x9E3779B97F4A7C15ull;
                h ^= h >> 32;
                u32 slot = static_cast<u32>(h * 0xD6E8FEB86659FD93ull >> 32) & mask;
                while (true) {
                    u64 seen = __ldcg(slots + slot);
                    if (seen == 0)
                        seen = atomicCAS(slots + slot, 0ull, pair);
                    if (seen == 0 || seen == pair)
                        break;
                    slot = (slot + 1) & mask;
                }
                place = key_count + slot;
            }
        }
        held.add_warp(place);
    }
    held.flush();
}

// Code 0 exists for each key with count at least 1. A vote has the count and the inverted code: the largest vote is the
// most frequent code, with ties going to the smallest.
extern "C" __global__ void start_votes(const u32* __restrict__ counts, u32 key_count, u64* __restrict__ votes)
{
    const u32 key = blockIdx.x * blockDim.x + threadIdx.x;
    if (key < key_count)
        votes[key] = static_cast<u64>(max(counts[key], 1u)) << 32 | 0xFFFFFFFFu;
}

extern "C" __global__ void vote(
    const u64* __restrict__ slots, u32 slot_count, const u32* __restrict__ slot_counts, u64* votes)
{
    const u32 slot = blockIdx.x * blockDim.x + threadIdx.x;
    if (slot >= slot_count || slot_counts[slot] < 2)
        return;
    const u64 pair = slots[slot] - 1;
    atomicMax(votes + (pair >> 32), static_cast<u64>(slot_counts[slot]) << 32 | (~pair & 0xFFFFFFFFu));
}

extern "C" __global__ void decide(const u64* __restrict__ votes, u32 key_count, u32* __restrict__ predicted)
{
    const u32 key = blockIdx.x * blockDim.x + threadIdx.x;
    if (key < key_count)
        predicted[key] = ~static_cast<u32>(votes[key]);
}

// Sets a bit for each token whose gap differs from the prediction, which is 0 at the ends of rows.
extern "C" __global__ void mark_surprises(const u32* __restrict__ keys, const u32* __restrict__ codes, u32 tokens,
    const u32* __restrict__ predicted, u32 bitmap_words, u32* __restrict__ bits)
{
    const u64 token = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    bool surprising = false;
    if (token < tokens)
        surprising = codes[token] != (keys[token] == NONE ? 0 : predicted[keys[token]]);
    const u32 word = __ballot_sync(0xFFFFFFFFu, surprising);
    if ((threadIdx.x & 31) == 0 && token / 32 < bitmap_words)
        bits[token / 32] = word;
}

// One thread per 32 tokens lists the marked ones, and their codes.
extern "C" __global__ void list_surprises(const u32* __restrict__ bits, const u32* __restrict__ ranks,
    u32 bitmap_words, const u32* __restrict__ codes, u32* __restrict__ tokens, u32* __restrict__ token_codes)
{
    const u32 word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word >= bitmap_words)
        return;
    u32 at = ranks[word];
    for (u32 left = bits[word]; left != 0; left &= left - 1, ++at) {
        const u32 token = 32 * word + __ffs(left) - 1;
        tokens[at] = token;
        token_codes[at] = codes[token];
    }
}
