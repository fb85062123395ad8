// A trie's arrays (kernels/trie/arrays.py) and the steps on them. Whatever the arrays contain, no step reads out of
// bounds and each one ends. Include after counters.cuh and bytes.cuh.
#ifndef POLARS_TADOC_TRIE
#define POLARS_TADOC_TRIE

struct Trie {
    const unsigned char* labels;  // padded for load_eight
    const u64* blocks;
    const unsigned char* codes;
    const u64* code_ends;
    const u64* phrases;
    const u32* phrase_starts;
    const u64* inner_words;
    const u32* inner_words_before;
    const u32* root_edges;  // the root's edge by first byte, NONE if it has none
    const u32* child_starts;  // first child of each of the first inner edges
    u64 words;
    u64 edges;
    u64 inner;
    u64 longest;
    u64 codes_size;
    u64 phrases_size;
    u64 known_starts;
};

constexpr u32 BLOCK = 128;  // edges
constexpr u32 COUNTED = 512;  // inner edges
constexpr u32 WIDEST = 256;  // edges of a group
constexpr u32 HALF = 0xFFFFFFFFu;

enum Kind : u32 { INNER, FIRST, TAILED, DIRECTORY };

// 128 bits, of which the first is the lowest of `low`.
struct Bits {
    u64 low;
    u64 high;
};

__device__ __forceinline__ Bits load_bits(const Trie& trie, u32 block, Kind kind)
{
    const ulonglong2 pair = __ldg(reinterpret_cast<const ulonglong2*>(trie.blocks) + 4ull * block + kind);
    return {pair.x, pair.y};
}

__device__ __forceinline__ u32 count(Bits bits)
{
    return __popcll(bits.low) + __popcll(bits.high);
}

// Mask of the bits before a position below 128.
__device__ __forceinline__ Bits before(Bits bits, u32 place)
{
    const u64 mask = (1ull << (place & 63)) - 1;
    return place < 64 ? Bits{bits.low & mask, 0} : Bits{bits.low, bits.high & mask};
}

__device__ __forceinline__ Bits from(Bits bits, u32 place)
{
    const Bits left_out = before(bits, place);
    return {bits.low ^ left_out.low, bits.high ^ left_out.high};
}

__device__ __forceinline__ bool has(Bits bits, u32 place)
{
    return ((place < 64 ? bits.low : bits.high) >> (place & 63) & 1) != 0;
}

// Position of the k-th set bit, from 0; any position if there are fewer.
__device__ __forceinline__ u32 select_in(u64 word, u32 k)
{
    u32 place = 0;
#pragma unroll
    for (u32 width = 32; width > 0; width /= 2) {
        const u32 low = __popcll(word >> place & ((1ull << width) - 1));
        if (k >= low) {
            k -= low;
            place += width;
        }
    }
    return place;
}

__device__ __forceinline__ u32 select_in(Bits bits, u32 k)
{
    const u32 low = __popcll(bits.low);
    return k < low ? select_in(bits.low, k) : 64 + select_in(bits.high, k - low);
}

// The edge of the k-th set bit of a kind from an edge on, searched in at most this many blocks; NONE if not found.
__device__ __forceinline__ u32 select_from(const Trie& trie, Kind kind, u32 edge, u32 k, u32 most_blocks)
{
    if (edge >= trie.edges)
        return NONE;
    const u32 last = static_cast<u32>((trie.edges - 1) / BLOCK);
    u32 block = edge / BLOCK;
    Bits bits = from(load_bits(trie, block, kind), edge % BLOCK);
    for (u32 turn = 0; turn < most_blocks; ++turn) {
        const u32 held = count(bits);
        if (k < held) {
            const u32 found = BLOCK * block + select_in(bits, k);
            return found < trie.edges ? found : NONE;
        }
        if (block == last)
            break;
        k -= held;
        bits = load_bits(trie, ++block, kind);
    }
    return NONE;
}

// Number of inner edges before each block.
__device__ __forceinline__ u32 inner_before(const Trie& trie, u32 block)
{
    return static_cast<u32>(load_bits(trie, block, DIRECTORY).low >> 32);
}

__device__ __forceinline__ u32 number_among_inner(const Trie& trie, u32 edge)
{
    return inner_before(trie, edge / BLOCK) + count(before(load_bits(trie, edge / BLOCK, INNER), edge % BLOCK));
}

// First child of an inner edge; NONE in a damaged trie.
__device__ __forceinline__ u32 children_of(const Trie& trie, u32 edge)
{
    const u32 groups = count(before(load_bits(trie, edge / BLOCK, INNER), edge % BLOCK));
    const u64 directory = load_bits(trie, edge / BLOCK, DIRECTORY).low;
    const u32 number = static_cast<u32>(directory >> 32) + groups;
    if (number < trie.known_starts)
        return __ldg(trie.child_starts + number);
    return select_from(trie, FIRST, static_cast<u32>(directory), groups, WIDEST + 1);
}

// The edge with a label in the group that starts at an edge; NONE if there is none. Labels ascend.
__device__ __forceinline__ u32 find_label(const Trie& trie, u32 start, u32 label)
{
    if (start >= trie.edges)
        return NONE;
    const u32 next = select_from(trie, FIRST, start + 1, 0, WIDEST / BLOCK + 1);
    const u32 stop = next == NONE ? static_cast<u32>(min(trie.edges, static_cast<u64>(start) + WIDEST)) : next;
    for (u32 edge = start; edge < stop; edge += 8) {
        const u64 others = load_eight(trie.labels, edge) ^ label * 0x0101010101010101ull;
        // the lowest set bit is exact
        const u64 zeros = (others - 0x0101010101010101ull) & ~others & 0x8080808080808080ull;
        if (zeros != 0) {
            const u32 found = edge + (__ffsll(zeros) - 1) / 8;
            return found < stop ? found : NONE;
        }
    }
    return NONE;
}

// Start of an edge's tail among the codes, NONE if it has none.
__device__ __forceinline__ u32 tail_of(const Trie& trie, u32 edge)
{
    const Bits tailed = load_bits(trie, edge / BLOCK, TAILED);
    if (!has(tailed, edge % BLOCK))
        return NONE;
    u32 skipped = count(before(tailed, edge % BLOCK));
    const u32 start = static_cast<u32>(load_bits(trie, edge / BLOCK, DIRECTORY).high);
    if (skipped == 0 || start >= trie.codes_size)
        return start;
    // a code is at least a byte, so the tails of a valid block end there
    const u32 last = static_cast<u32>(min(trie.codes_size - 1, start + BLOCK * trie.longest) / 64);
    u32 word = start / 64;
    u64 ends = __ldg(trie.code_ends + word) & ~0ull << start % 64;
    for (u32 held = __popcll(ends); held < skipped && word < last; held = __popcll(ends)) {
        skipped -= held;
        ends = __ldg(trie.code_ends + ++word);
    }
    return 64 * word + select_in(ends, skipped - 1) + 1;
}

// One code of a tail.
struct Phrase {
    u64 bytes;
    u32 length;  // 1 to 7
    bool ends;  // the tail ends here
    bool sound;
};

__device__ __forceinline__ Phrase load_phrase(const Trie& trie, u32 code, u32 last_byte)
{
    if (code >= trie.codes_size)
        return {0, 0, true, false};
    const u64 place = static_cast<u64>(__ldg(trie.phrase_starts + last_byte)) + __ldg(trie.codes + code);
    const u64 phrase = place < trie.phrases_size ? __ldg(trie.phrases + place) : 0;
    const u32 length = static_cast<u32>(phrase & 0xFF);
    const bool ends = (__ldg(trie.code_ends + code / 64) >> code % 64 & 1) != 0;
    return {phrase >> 8, length, ends, length - 1 < 7};
}

__device__ __forceinline__ u32 last_of(const Phrase& phrase)
{
    return static_cast<u32>(phrase.bytes >> (8 * phrase.length - 8) & 0xFF);
}

// Id of the word that ends at an edge, `words` if there is none.
__device__ __forceinline__ u32 word_at(const Trie& trie, u32 edge)
{
    const u32 number = number_among_inner(trie, edge);
    if (!has(load_bits(trie, edge / BLOCK, INNER), edge % BLOCK))
        return static_cast<u32>(min(static_cast<u64>(edge - number), trie.words));
    if (number >= trie.inner)
        return static_cast<u32>(trie.words);
    const u64 own = __ldg(trie.inner_words + number / 64);
    if ((own >> number % 64 & 1) == 0)
        return static_cast<u32>(trie.words);
    u32 ends = __ldg(trie.inner_words_before + number / COUNTED) + __popcll(own & ((1ull << number % 64) - 1));
    for (u32 word = number / COUNTED * (COUNTED / 64); word < number / 64; ++word)
        ends += __popcll(__ldg(trie.inner_words + word));
    return static_cast<u32>(min(trie.edges - trie.inner + ends, trie.words));
}

// The last of `size` whose number is at most a value; numbers ascend, and the first is at most the value.
template <typename Number>
__device__ __forceinline__ u32 last_not_above(u32 size, u32 value, const Number& number)
{
    u32 low = 0;
    for (u32 high = size; high - low > 1;) {
        const u32 middle = low + (high - low) / 2;
        if (number(middle) <= value)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// The inner edge with a number.
__device__ __forceinline__ u32 inner_edge(const Trie& trie, u32 number)
{
    const u32 blocks = static_cast<u32>((trie.edges + BLOCK - 1) / BLOCK);
    const u32 block = last_not_above(blocks, number, [&](u32 i) { return inner_before(trie, i); });
    return BLOCK * block + select_in(load_bits(trie, block, INNER), number - inner_before(trie, block));
}

// The edge at which the word of an id ends; NONE for invalid ids.
__device__ __forceinline__ u32 edge_of(const Trie& trie, u32 id)
{
    const u32 leaves = static_cast<u32>(trie.edges - trie.inner);
    u32 edge = NONE;
    if (id < leaves) {
        const u32 blocks = static_cast<u32>((trie.edges + BLOCK - 1) / BLOCK);
        const u32 block = last_not_above(blocks, id, [&](u32 i) { return BLOCK * i - inner_before(trie, i); });
        const Bits inner = load_bits(trie, block, INNER);
        edge = BLOCK * block + select_in(Bits{~inner.low, ~inner.high}, id - (BLOCK * block - inner_before(trie, block)));
    } else if (id < trie.words) {
        u32 left = id - leaves;
        const u32 counts = static_cast<u32>((trie.inner + COUNTED - 1) / COUNTED);
        const u32 counted = last_not_above(counts, left, [&](u32 i) { return __ldg(trie.inner_words_before + i); });
        left -= __ldg(trie.inner_words_before + counted);
        u32 word = counted * (COUNTED / 64);
        const u32 last = word + COUNTED / 64 - 1;
        u64 ends = __ldg(trie.inner_words + word);
        for (u32 held = __popcll(ends); held <= left && word < last; held = __popcll(ends)) {
            left -= held;
            ends = __ldg(trie.inner_words + ++word);
        }
        edge = inner_edge(trie, 64 * word + select_in(ends, left));
    }
    return edge < trie.edges ? edge : NONE;
}

// The parent of an edge, NONE for an edge at the root. It precedes the edge, so every walk up ends.
__device__ __forceinline__ u32 parent_of(const Trie& trie, u32 edge)
{
    const Bits firsts = load_bits(trie, edge / BLOCK, FIRST);
    // groups that start after the block's first edge, up to this one
    const u32 groups = count(before(firsts, edge % BLOCK)) + has(firsts, edge % BLOCK) - (firsts.low & 1);
    const u32 above = static_cast<u32>(load_bits(trie, edge / BLOCK, DIRECTORY).high >> 32);
    if (above == NONE && groups == 0)
        return NONE;
    const u32 number = above == NONE ? groups - 1 : above < trie.edges ? number_among_inner(trie, above) + groups : NONE;
    const u32 found = inner_edge(trie, number);
    return found < edge ? found : NONE;
}

#endif
