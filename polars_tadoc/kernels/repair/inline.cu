// Writes the stored grammar: the kept rules' bodies in level order, and the rows, with dropped rules inlined.
#include "primitives/counters.cuh"
#include "primitives/scan.cuh"
#include "repair/rules.cuh"

constexpr u32 THREADS = 256;

constexpr u32 WARPS = THREADS / 32;
constexpr u32 WORDS = 8;
constexpr u32 TILE = THREADS * WORDS;
constexpr u32 LONG = 16;  // longer inlined bodies are written by several threads
constexpr u32 CHUNK = 256;

// Numbers the kept rules in the order of their keys and computes the offsets of their bodies.
extern "C" __global__ void __launch_bounds__(THREADS)
    number_rules(const u64* __restrict__ keys, u32 kept, Node* nodes, u32 vocabulary, u32* rule_offsets, u64* tiles,
        u32* tiles_taken)
{
    const u32 tile = take_tile(tiles_taken);
    const u32 lane = threadIdx.x % 32;
    const u32 first = tile * TILE + threadIdx.x / 32 * 32 * WORDS;
    u32 length[WORDS];
    u32 sum = 0;
#pragma unroll
    for (u32 k = 0; k < WORDS; ++k) {
        const u32 i = first + 32 * k + lane;
        length[k] = 0;
        if (i < kept) {
            const u32 rule = static_cast<u32>(keys[i]);
            length[k] = nodes[rule].x & LENGTH;
            nodes[rule].y = vocabulary + i;
        }
        sum += length[k];
    }
    u32 offset = second_sum(warps_before<WARPS>(tiles, tile, two_sums(0, lanes_sum(sum))));
#pragma unroll
    for (u32 k = 0; k < WORDS; ++k) {
        const u32 i = first + 32 * k + lane;
        const u32 begin = offset + lanes_before(length[k]);
        if (i < kept)
            rule_offsets[i] = begin;
        if (i + 1 == kept)
            rule_offsets[kept] = begin + length[k];
        offset += lanes_sum(length[k]);
    }
}

// Long inlined bodies, split into chunks: symbol, position in its body, length, target.
struct Chunks {
    uint4* list;
    u32* count;

    __device__ void add(u32 symbol, u32 size, u32 begin) const
    {
        const u32 number = (size + CHUNK - 1) / CHUNK;
        const u32 at = atomicAdd(count, number);
        for (u32 c = 0; c < number; ++c)
            list[at + c] = make_uint4(symbol, c * CHUNK, min(CHUNK, size - c * CHUNK), begin + c * CHUNK);
    }
};

// Writes a symbol, or its body if it is inlined.
__device__ __forceinline__ void write_inlined(
    const Rules& rules, u32 symbol, u32 size, u32* target, u32 begin, const Chunks& chunks)
{
    if (size > LONG) {
        chunks.add(symbol, size, begin);
        return;
    }
    for (u32 place = 0; place < size; ++place)
        target[begin + place] = rules.symbol_at(symbol, place);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    write_bodies(const u64* __restrict__ keys, u32 kept, const u32* __restrict__ left, const u32* __restrict__ right,
        Node* nodes, u32 vocabulary, const u32* __restrict__ rule_offsets, u32* symbols, uint4* chunk_list,
        u32* chunk_count)
{
    const Rules rules{left, right, nodes, vocabulary};
    const Chunks chunks{chunk_list, chunk_count};
    const u32 number = blockIdx.x * THREADS + threadIdx.x;
    if (number >= kept)
        return;
    const u32 rule = static_cast<u32>(keys[number]);
    const u32 begin = rule_offsets[number];
    const u32 left_size = rules.size(left[rule]);
    write_inlined(rules, left[rule], left_size, symbols, begin, chunks);
    write_inlined(rules, right[rule], (nodes[rule].x & LENGTH) - left_size, symbols, begin + left_size, chunks);
}

// Writes the rows' concatenated symbols, and the end of each row.
extern "C" __global__ void __launch_bounds__(THREADS)
    write_rows(const u32* __restrict__ sequence, u32 size, const u32* __restrict__ left, const u32* __restrict__ right,
        Node* nodes, u32 vocabulary, i64* root_offsets, u32* roots, uint4* chunk_list, u32* chunk_count, u64* tiles,
        u32* tiles_taken)
{
    const Rules rules{left, right, nodes, vocabulary};
    const Chunks chunks{chunk_list, chunk_count};
    const u32 tile = take_tile(tiles_taken);
    const u32 lane = threadIdx.x % 32;
    const u32 first = tile * TILE + threadIdx.x / 32 * 32 * WORDS;
    u32 symbol[WORDS];
    u32 sizes[WORDS];
    u64 sum = 0;
#pragma unroll
    for (u32 k = 0; k < WORDS; ++k) {
        const u32 i = first + 32 * k + lane;
        symbol[k] = i < size ? sequence[i] : SEPARATOR;
        sizes[k] = rules.size(symbol[k]);
        sum += two_sums(i < size && symbol[k] == SEPARATOR, sizes[k]);
    }
    u64 before = warps_before<WARPS>(tiles, tile, lanes_sum(sum));
#pragma unroll
    for (u32 k = 0; k < WORDS; ++k) {
        const u32 i = first + 32 * k + lane;
        const u64 own = two_sums(i < size && symbol[k] == SEPARATOR, sizes[k]);
        const u64 here = before + lanes_before(own);
        if (first_sum(own) != 0)
            root_offsets[first_sum(here) + 1] = second_sum(here);
        write_inlined(rules, symbol[k], sizes[k], roots, second_sum(here), chunks);
        before += lanes_sum(own);
    }
}

// One warp per chunk.
extern "C" __global__ void __launch_bounds__(THREADS)
    write_chunks(const uint4* __restrict__ chunk_list, const u32* __restrict__ chunk_count,
        const u32* __restrict__ left, const u32* __restrict__ right, Node* nodes, u32 vocabulary, u32* target)
{
    const Rules rules{left, right, nodes, vocabulary};
    const u32 chunks = *chunk_count;
    for (u32 c = blockIdx.x * WARPS + threadIdx.x / 32; c < chunks; c += gridDim.x * WARPS) {
        const uint4 chunk = chunk_list[c];
        for (u32 place = threadIdx.x % 32; place < chunk.z; place += 32)
            target[chunk.w + place] = rules.symbol_at(chunk.x, chunk.y + place);
    }
}
