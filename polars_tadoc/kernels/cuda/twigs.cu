// Twigs matched against documents by bits: a lane holds words of a node set, and shares nothing with other lanes.
#include "counters.cuh"
#include "scan.cuh"
#include "twigs.cuh"

constexpr u32 THREADS = 128;
constexpr u32 WARPS = THREADS / 32;
constexpr u32 AT_ONCE = 4;  // elements whose rows are loaded together

// What a warp has put aside, the latest last: `levels` sets in shared memory, and what is more in global memory.
struct Stack {
    u64* near;
    u64* far;
    u32 levels;
    u32 depth;

    __device__ __forceinline__ u64* at(u32 level)
    {
        return level < levels ? near + level * COLUMN : far + static_cast<u64>(level - levels) * COLUMN;
    }

    __device__ __forceinline__ void put(const u64* found)
    {
        u64* to = at(depth++);
#pragma unroll
        for (u32 j = 0; j < WORDS; ++j)
            to[32 * j] = found[j];
    }

    __device__ __forceinline__ void take_into(u64* found)
    {
        const u64* from = at(--depth);
#pragma unroll
        for (u32 j = 0; j < WORDS; ++j)
            found[j] |= from[32 * j];
    }
};

// Finds the nodes that are satisfied in each document. A warp takes a document and a column; neighbours take the same
// column, whose rows stay in the cache nearest to them.
//
// columns: those of twigs that fit into a word, the first ones. levels: sets that a warp's stack holds in shared memory;
// more: those in spilled. found: by document and word.
extern "C" __global__ void __launch_bounds__(THREADS) match_words(
    const __grid_constant__ Twigs twigs, const u32* __restrict__ elements, const i64* __restrict__ offsets,
    const u32* __restrict__ counts, u64 documents, u64 columns, u32 levels, u64 more, u64* spilled,
    u64* __restrict__ found)
{
    extern __shared__ u64 shared[];
    const u32 lane = threadIdx.x % 32;
    const u32 warp = threadIdx.x / 32;
    const u64 slot = static_cast<u64>(blockIdx.x) * WARPS + warp;
    const u64 slots = static_cast<u64>(gridDim.x) * WARPS;
    Stack stack{shared + warp * levels * COLUMN + lane, spilled + slot * more * COLUMN + lane, levels, 0};
    const u32 nothing = static_cast<u32>(twigs.row_count) << FLAGS | LEAF | JOINED;

    for (u64 item = slot; item < documents * columns; item += slots) {
        const u32 column = static_cast<u32>(item / documents);
        const u64 document = item % documents;
        const u64 first_word = static_cast<u64>(column) * COLUMN + lane;
        const unsigned char* moves = twigs.moves + static_cast<u64>(column) * 64 * COLUMN + lane;
        u64 descendants[WORDS];
        u64 highest[WORDS];
        u64 lowest[WORDS];
        u64 sides[WORDS];
        u64 now[WORDS];  // found among the children of the element that is open
#pragma unroll
        for (u32 j = 0; j < WORDS; ++j) {
            descendants[j] = twigs.descendants[first_word + 32 * j];
            highest[j] = twigs.highest[first_word + 32 * j];
            lowest[j] = twigs.lowest[first_word + 32 * j];
            sides[j] = twigs.sides[first_word + 32 * j];
            now[j] = 0;
        }
        const auto close = [&](u32 element, const u64* leaves, const u64* inner) {
            if ((element & LEAF) != 0) {
                if ((element & JOINED) == 0) {
                    stack.put(now);
#pragma unroll
                    for (u32 j = 0; j < WORDS; ++j)
                        now[j] = 0;
                }
#pragma unroll
                for (u32 j = 0; j < WORDS; ++j)
                    now[j] |= leaves[j];
            } else {
#pragma unroll
                for (u32 j = 0; j < WORDS; ++j)
                    now[j] = (now[j] & descendants[j]) | leaves[j]
                        | satisfied(now[j], inner[j], highest[j], lowest[j], sides[j], moves + 32 * j);
                if ((element & JOINED) != 0)
                    stack.take_into(now);
            }
        };

        const u32 count = counts[document];
        const u32* own = elements + offsets[document] / 2;
        u32 element = lane < count ? own[lane] : 0;
        for (u32 start = 0; start < count; start += 32) {
            const u32 located = start + lane < count
                ? find_row(twigs, column, element >> FLAGS) << FLAGS | (element & (LEAF | JOINED))
                : nothing;
            element = start + 32 + lane < count ? own[start + 32 + lane] : 0;
            for (u32 k = 0; k < min(32u, count - start); k += AT_ONCE) {
                u32 each[AT_ONCE];
                u64 leaves[AT_ONCE][WORDS];
                u64 inner[AT_ONCE][WORDS];
#pragma unroll
                for (u32 a = 0; a < AT_ONCE; ++a) {
                    each[a] = __shfl_sync(ALL_LANES, located, k + a);
                    const u64* row = twigs.rows + static_cast<u64>(each[a] >> FLAGS) * (2 * COLUMN) + lane;
#pragma unroll
                    for (u32 j = 0; j < WORDS; ++j) {
                        leaves[a][j] = __ldg(row + 32 * j);
                        inner[a][j] = (each[a] & LEAF) != 0 ? 0 : __ldg(row + COLUMN + 32 * j);
                    }
                }
#pragma unroll
                for (u32 a = 0; a < AT_ONCE; ++a)
                    close(each[a], leaves[a], inner[a]);
            }
        }
#pragma unroll
        for (u32 j = 0; j < WORDS; ++j)
            found[document * twigs.columns * COLUMN + first_word + 32 * j] = now[j];
    }
}

// The same for twigs for which a word is too small: a block takes a document and a twig, which has the words from
// ranges[2 * i] to ranges[2 * i + 1] - 1, its nodes in preorder. Sets are in global memory (scratch: 2 + levels of `widest`
// words for each block).
extern "C" __global__ void __launch_bounds__(THREADS) match_large(
    const __grid_constant__ Twigs twigs, const u32* __restrict__ elements, const i64* __restrict__ offsets,
    const u32* __restrict__ counts, u64 documents, const u32* __restrict__ ranges, u64 large, u64 widest,
    u64 levels, u64* scratch, u64* found)
{
    u64* const sets = scratch + static_cast<u64>(blockIdx.x) * (2 + levels) * widest;
    for (u64 item = blockIdx.x; item < documents * large; item += gridDim.x) {
        const u64 document = item % documents;
        const u32 first = ranges[2 * (item / documents)];
        const u32 words = ranges[2 * (item / documents) + 1] - first;
        u64* now = sets;
        u64* after = sets + widest;
        u64* top = sets + widest;  // of the stack
        __syncthreads();  // the last document is read no more
        for (u32 word = threadIdx.x; word < words; word += THREADS)
            now[word] = 0;
        const u32* own = elements + offsets[document] / 2;
        for (u32 i = 0; i < counts[document]; ++i) {
            const u32 element = own[i];
            const bool leaf = (element & LEAF) != 0;
            const bool joined = (element & JOINED) != 0;
            if (!leaf)
                __syncthreads();  // what others have found, and nobody reads `after` any more
            if (leaf && !joined)
                top += widest;
            for (u32 word = threadIdx.x; word < words; word += THREADS) {
                const u32 column = (first + word) / COLUMN;
                const u32 place = (first + word) % COLUMN;
                const u64* row = twigs.rows
                    + static_cast<u64>(find_row(twigs, column, element >> FLAGS)) * (2 * COLUMN) + place;
                if (leaf) {
                    if (!joined) {
                        top[word] = now[word];
                        now[word] = 0;
                    }
                    now[word] |= row[0];
                    continue;
                }
                const u64 below = now[word];
                u64 nodes = row[COLUMN] & (below >> 1 | (word + 1 < words ? now[word + 1] << 63 : 0));
                for (u64 left = nodes; left != 0; left &= left - 1) {
                    const u32 node = static_cast<u32>(__ffsll(static_cast<i64>(left))) - 1;
                    u32 child = twigs.siblings[64 * static_cast<u64>(first + word) + node + 1];
                    for (; child != 0; child = twigs.siblings[child])
                        if ((now[child / 64 - first] >> child % 64 & 1) == 0)
                            break;
                    if (child != 0)
                        nodes &= ~(1ull << node);
                }
                nodes |= row[0] | (below & twigs.descendants[first + word]);
                after[word] = joined ? nodes | top[word] : nodes;
            }
            if (!leaf) {
                u64* const other = now;
                now = after;
                after = other;
                if (joined)
                    top -= widest;
            }
        }
        for (u32 word = threadIdx.x; word < words; word += THREADS)
            found[document * twigs.columns * COLUMN + first + word] = now[word];
    }
}

// Whether the root of a twig has been found in a document.
__device__ __forceinline__ bool is_found(const u64* __restrict__ found, const u32* __restrict__ roots, u64 twig)
{
    const u32 root = roots[twig];
    return (found[root / 64] >> root % 64 & 1) != 0;
}

// Counts the twigs that match each document, and sums up: where each document's begin, and where the last one's end. A
// warp takes a document. words: of a document in found. tiles: one for each block, and the number of those taken, all ones.
extern "C" __global__ void __launch_bounds__(THREADS) count_matches(
    const u64* __restrict__ found, u64 documents, u64 words, const u32* __restrict__ roots, u64 twigs, u64* tiles,
    i64* __restrict__ offsets)
{
    const u32 tile = take_tile(reinterpret_cast<u32*>(tiles + gridDim.x)) + 1;  // from all ones on
    const u64 document = static_cast<u64>(tile) * WARPS + threadIdx.x / 32;
    u32 count = 0;
    if (document < documents) {
#pragma unroll 4
        for (u64 twig = threadIdx.x % 32; twig < twigs; twig += 32)
            count += is_found(found + document * words, roots, twig);
    }
    count = lanes_sum(count);
    const u64 before = warps_before<WARPS>(tiles, tile, count);
    if (threadIdx.x % 32 == 0 && document < documents) {
        offsets[document] = before;
        if (document + 1 == documents)
            offsets[documents] = before + count;
    }
}

// Writes them, ascending. offsets: where each document's begin.
extern "C" __global__ void __launch_bounds__(THREADS) write_matches(
    const u64* __restrict__ found, u64 documents, u64 words, const u32* __restrict__ roots, u64 twigs,
    const i64* __restrict__ offsets, u32* __restrict__ matches)
{
    const u64 document = static_cast<u64>(blockIdx.x) * WARPS + threadIdx.x / 32;
    if (document >= documents)
        return;
    const u32 lane = threadIdx.x % 32;
    u64 at = offsets[document];
#pragma unroll 4
    for (u64 first = 0; first < twigs; first += 32) {
        const u64 twig = first + lane;
        const u32 matching
            = __ballot_sync(ALL_LANES, twig < twigs && is_found(found + document * words, roots, twig));
        if (matching >> lane & 1)
            matches[at + __popc(matching & ((1u << lane) - 1))] = static_cast<u32>(twig);
        at += __popc(matching);
    }
}
