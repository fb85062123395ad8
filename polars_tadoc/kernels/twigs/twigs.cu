// Twigs matched against documents by bits: a lane holds words of a node set and is independent of other lanes.
#include "primitives/counters.cuh"
#include "primitives/scan.cuh"
#include "twigs/twigs.cuh"

constexpr u32 THREADS = 128;
constexpr u32 WARPS = THREADS / 32;
constexpr u32 AT_ONCE = 4;  // leaves whose rows are loaded together
constexpr u32 BATCH = 31;  // elements that the lanes of a warp hold; the last lane has none
constexpr u32 ROW_STEPS = 2 * COLUMN * 8 / 16;

// Node sets on a warp's stack: `levels` in shared memory, and the rest in global memory.
struct Stack {
    u64* near;
    u64* far;
    u32 levels;
    u32 depth;

    __device__ __forceinline__ void put(const u64* found)
    {
#pragma unroll
        for (u32 j = 0; j < WORDS; ++j) {
            if (depth < levels)
                near[depth * COLUMN + 32 * j] = found[j];
            else
                far[static_cast<u64>(depth - levels) * COLUMN + 32 * j] = found[j];
        }
        ++depth;
    }

    __device__ __forceinline__ void take(u64* found)
    {
        --depth;
#pragma unroll
        for (u32 j = 0; j < WORDS; ++j) {
            if (depth < levels)
                found[j] = near[depth * COLUMN + 32 * j];
            else
                found[j] = far[static_cast<u64>(depth - levels) * COLUMN + 32 * j];
        }
    }
};

// Finds the nodes that are satisfied in each document. One warp per document and column; adjacent warps process the
// same column, whose rows stay in the nearest cache. Most elements are joined leaves: they just add their rows, several
// at a time. The loads of another element are issued before the leaves that precede it.
//
// columns: of twigs that fit in a word, the first ones. levels: sets of a warp's stack in shared memory; more: those in
// spilled. found: by document and word.
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
    // A located element is its row, in units of 16 bytes, and its flags.
    const char* const rows = reinterpret_cast<const char*>(twigs.rows + lane);
    const char* const joined_rows = rows - 16 * (LEAF | JOINED);
    const auto at_step = [](const char* from, u32 step) {
        return reinterpret_cast<const u64*>(from + 16 * static_cast<u64>(step));
    };
    const u32 nothing = static_cast<u32>(twigs.row_count) * ROW_STEPS | LEAF | JOINED;

    for (u64 item = slot; item < documents * columns; item += slots) {
        const u32 column = static_cast<u32>(item / documents);
        const u64 document = item % documents;
        Masks masks[WORDS];
        u64 now[WORDS];  // found among the children of the open element
#pragma unroll
        for (u32 j = 0; j < WORDS; ++j) {
            masks[j].load(twigs, column, 32 * j + lane);
            now[j] = 0;
        }
        const u32 count = counts[document];
        const u32* own = elements + offsets[document] / 2;
        u32 element = lane < count ? own[lane] : 0;
        for (u32 start = 0; start < count; start += BATCH) {
            const u32 batch = min(BATCH, count - start);
            const u32 located = lane < batch
                ? find_row(twigs, column, element >> FLAGS) * ROW_STEPS | (element & (LEAF | JOINED))
                : nothing;
            element = start + BATCH + lane < count ? own[start + BATCH + lane] : 0;
            const bool adds = (located & (LEAF | JOINED)) == (LEAF | JOINED);
            const u32 adding = adds ? located : nothing;
            u32 others = __ballot_sync(ALL_LANES, !adds);
            for (u32 at = 0; at < batch;) {
                const u32 stop = others == 0 ? batch : __ffs(others) - 1;
                const u32 other = __shfl_sync(ALL_LANES, located, stop);
                const u64* const row = at_step(rows, other & ~(LEAF | JOINED));
                u64 leaves[WORDS];
                u64 inner[WORDS];
                u64 elder[WORDS];  // added by its earlier siblings
#pragma unroll
                for (u32 j = 0; j < WORDS; ++j) {
                    leaves[j] = __ldg(row + 32 * j);
                    inner[j] = __ldg(row + COLUMN + 32 * j);
                    elder[j] = 0;
                }
                if ((other & (LEAF | JOINED)) == JOINED)
                    stack.take(elder);
                for (; at < stop; at += AT_ONCE) {
                    u32 each[AT_ONCE];
                    u64 added[AT_ONCE][WORDS];
#pragma unroll
                    for (u32 a = 0; a < AT_ONCE; ++a)
                        each[a] = __shfl_sync(ALL_LANES, adding, min(at + a, stop));  // at the stop it adds nothing
#pragma unroll
                    for (u32 a = 0; a < AT_ONCE; ++a)
#pragma unroll
                        for (u32 j = 0; j < WORDS; ++j)
                            added[a][j] = __ldg(at_step(joined_rows, each[a]) + 32 * j);
#pragma unroll
                    for (u32 a = 0; a < AT_ONCE; ++a)
#pragma unroll
                        for (u32 j = 0; j < WORDS; ++j)
                            now[j] |= added[a][j];
                }
                at = stop + 1;
                others &= others - 1;
                if ((other & LEAF) == 0) {
#pragma unroll
                    for (u32 j = 0; j < WORDS; ++j)
                        now[j] = masks[j].close(now[j], leaves[j], inner[j]) | elder[j];
                } else if ((other & JOINED) == 0) {
                    stack.put(now);
#pragma unroll
                    for (u32 j = 0; j < WORDS; ++j)
                        now[j] = leaves[j];
                }
            }
        }
#pragma unroll
        for (u32 j = 0; j < WORDS; ++j)
            found[(document * twigs.columns + column) * COLUMN + 32 * j + lane] = now[j];
    }
}

// The same for twigs that do not fit in a word: one block per document and twig, which has the words ranges[2 * i] to
// ranges[2 * i + 1] - 1, its nodes in preorder. Sets are in global memory (scratch: 2 + levels of `widest` words per
// block).
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
        __syncthreads();  // the previous document has been read
        for (u32 word = threadIdx.x; word < words; word += THREADS)
            now[word] = 0;
        const u32* own = elements + offsets[document] / 2;
        for (u32 i = 0; i < counts[document]; ++i) {
            const u32 element = own[i];
            const bool leaf = (element & LEAF) != 0;
            const bool joined = (element & JOINED) != 0;
            if (!leaf)
                __syncthreads();  // others' results are visible, and `after` is no longer read
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

// Lists the twigs that match each document, ascending, and each document's offset. One warp per document and 1024
// twigs, in order. words: per document in found. chunks: of 1024 twigs. tiles: one per block, and the number of those
// taken, initially all ones. matches: room for all twigs of each document.
extern "C" __global__ void __launch_bounds__(THREADS) list_matches(
    const u64* __restrict__ found, u64 documents, u64 words, const u32* __restrict__ roots, u64 twigs, u64 chunks,
    u64* tiles, i64* __restrict__ offsets, u32* __restrict__ matches)
{
    const u32 lane = threadIdx.x % 32;
    const u32 tile = take_tile(reinterpret_cast<u32*>(tiles + gridDim.x)) + 1;  // starts at all ones
    const u64 item = static_cast<u64>(tile) * WARPS + threadIdx.x / 32;
    const u64 document = item / chunks;
    const u64 first = item % chunks * 1024;
    const u32 turns = document < documents ? static_cast<u32>((min(twigs - first, 1024ull) + 31) / 32) : 0;
    const u64* const own = found + document * words;
    u32 held = 0;  // the matching twigs of turn `lane`
#pragma unroll 4
    for (u32 turn = 0; turn < turns; ++turn) {
        const u64 twig = first + 32 * turn + lane;
        const u32 root = twig < twigs ? roots[twig] : 0;
        const u32 matching = __ballot_sync(ALL_LANES, twig < twigs && (own[root / 64] >> root % 64 & 1) != 0);
        held = lane == turn ? matching : held;
    }
    const u32 count = lanes_sum(static_cast<u32>(__popc(held)));
    u64 at = warps_before<WARPS>(tiles, tile, count);
    if (lane == 0 && document < documents) {
        if (first == 0)
            offsets[document] = at;
        if (item + 1 == documents * chunks)
            offsets[documents] = at + count;
    }
    for (u32 turn = 0; turn < turns; ++turn) {
        const u32 matching = __shfl_sync(ALL_LANES, held, turn);
        if (matching >> lane & 1)
            matches[at + __popc(matching & ((1u << lane) - 1))] = static_cast<u32>(first) + 32 * turn + lane;
        at += __popc(matching);
    }
}
