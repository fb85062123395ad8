// Tokens to ids and ids to words by walking a trie.
#include "primitives/counters.cuh"
#include "primitives/bytes.cuh"
#include "trie/trie.cuh"

constexpr u32 THREADS = 256;
constexpr u32 ALL = 0xFFFFFFFFu;
constexpr u32 CODES = 8;  // codes of a tail that a step compares

// The root's edge by first byte, and the first children of the first inner edges: near the root, blocks refer to groups
// that are far apart.
extern "C" __global__ void __launch_bounds__(THREADS) start_ways(
    Trie trie, u32* __restrict__ root_edges, u32* __restrict__ child_starts, u32 starts)
{
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i < 256)
        root_edges[i] = find_label(trie, 0, i);
    if (i < starts) {
        const u32 edge = inner_edge(trie, i);
        child_starts[i] = edge < trie.edges ? children_of(trie, edge) : NONE;
    }
}

// State of a walk down along a token.
struct Walk {
    u32 at;  // position in the text
    u32 end;
    u32 edge;  // current edge, NONE: the root
    u32 code;  // next code of its tail, NONE: after the tail
    u32 last_byte;

    // Follows one edge or some codes of a tail. Returns NONE if there is more to do, otherwise the token's id.
    __device__ __forceinline__ u32 step(const Trie& trie, const unsigned char* __restrict__ text)
    {
        const u32 unknown = static_cast<u32>(trie.words);
        if (code == NONE) {
            last_byte = text[at++];
            edge = edge == NONE ? __ldg(trie.root_edges + last_byte)
                                : find_label(trie, children_of(trie, edge), last_byte);
            if (edge == NONE)
                return unknown;
            code = tail_of(trie, edge);
        } else {
            for (u32 turn = 0; turn < CODES && code != NONE; ++turn) {
                const Phrase phrase = load_phrase(trie, code, last_byte);
                if (!phrase.sound || phrase.length > end - at
                    || load_part(text, at, phrase.length) != phrase.bytes)
                    return unknown;
                at += phrase.length;
                last_byte = last_of(phrase);
                code = phrase.ends ? NONE : code + 1;
            }
        }
        if (code != NONE)
            return NONE;
        if (at == end)
            return word_at(trie, edge);
        return has(load_bits(trie, edge / BLOCK, INNER), edge % BLOCK) ? NONE : unknown;
    }
};

// Ids of the tokens text[starts[i]:stops[i]]. Each warp has a chunk of them; a lane that has finished one takes the
// next, so that a long walk delays no other lane.
extern "C" __global__ void __launch_bounds__(THREADS) walk_words(Trie trie, const unsigned char* __restrict__ text,
    const u32* __restrict__ starts, const u32* __restrict__ stops, u32 tokens, u32 chunk, u32* __restrict__ ids)
{
    const u64 first = (static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x) / 32 * chunk;
    if (first >= tokens)
        return;
    const u32 stop = static_cast<u32>(min(first + chunk, static_cast<u64>(tokens)));
    const u32 lanes_before = (1u << (threadIdx.x & 31)) - 1;
    const u32 unknown = static_cast<u32>(trie.words);
    u32 next = static_cast<u32>(first);
    u32 token = NONE;
    Walk walk = {0, 0, NONE, NONE, 0};
    for (;;) {
        const u32 idle = __ballot_sync(ALL, token == NONE);
        if (token == NONE && __popc(idle & lanes_before) < stop - next) {
            token = next + __popc(idle & lanes_before);
            walk = {starts[token], stops[token], NONE, NONE, 0};
            if (walk.at == walk.end || walk.end - walk.at > trie.longest) {
                ids[token] = unknown;
                token = NONE;
            }
        }
        next += min(static_cast<u32>(__popc(idle)), stop - next);
        if (token != NONE) {
            const u32 id = walk.step(trie, text);
            if (id != NONE) {
                ids[token] = id;
                token = NONE;
            }
        }
        if (!__any_sync(ALL, token != NONE) && next == stop)
            break;
    }
}

// Bytes of an edge's label and tail, more than `longest` for damaged ones.
__device__ __forceinline__ u64 edge_length(const Trie& trie, u32 edge)
{
    u64 length = 1;
    u32 last_byte = trie.labels[edge];
    for (u32 code = tail_of(trie, edge); code != NONE && length <= trie.longest; ++code) {
        const Phrase phrase = load_phrase(trie, code, last_byte);
        if (!phrase.sound)
            return trie.longest + 1;
        length += phrase.length;
        last_byte = last_of(phrase);
        if (phrase.ends)
            break;
    }
    return length;
}

// Bytes of the words of some ids; 0 for invalid ids.
extern "C" __global__ void __launch_bounds__(THREADS) measure_words(
    Trie trie, const u32* __restrict__ ids, u32 count, u32* __restrict__ lengths)
{
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count)
        return;
    u64 length = 0;
    for (u32 edge = edge_of(trie, ids[i]); edge != NONE && length <= trie.longest; edge = parent_of(trie, edge))
        length += edge_length(trie, edge);
    lengths[i] = length <= trie.longest ? static_cast<u32>(length) : 0;
}

// Writes the words of some ids contiguously, each from its end.
extern "C" __global__ void __launch_bounds__(THREADS) spell_words(Trie trie, const u32* __restrict__ ids, u32 count,
    const i64* __restrict__ offsets, unsigned char* __restrict__ bytes)
{
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count)
        return;
    u64 left = offsets[i + 1] - offsets[i];
    unsigned char* __restrict__ word = bytes + offsets[i];
    for (u32 edge = left == 0 ? NONE : edge_of(trie, ids[i]); edge != NONE; edge = parent_of(trie, edge)) {
        const u64 length = edge_length(trie, edge);
        if (length > left)
            return;
        left -= length;
        u32 last_byte = trie.labels[edge];
        unsigned char* __restrict__ to = word + left;
        *to++ = static_cast<unsigned char>(last_byte);
        u32 code = tail_of(trie, edge);
        for (u64 written = 1; written < length; ++code) {
            const Phrase phrase = load_phrase(trie, code, last_byte);
            for (u32 k = 0; k < phrase.length; ++k)
                *to++ = static_cast<unsigned char>(phrase.bytes >> 8 * k);
            written += phrase.length;
            last_byte = last_of(phrase);
        }
    }
}
