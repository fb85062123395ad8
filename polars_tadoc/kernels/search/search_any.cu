// OR: documents in any of a query's lists. Accumulators are in shared memory, from which the best keys are selected.
// Warps decode and score lists and add them up without intermediate writes. A query of few postings has an accumulator
// per document of its lists, in a hash table; others have one per document of a tile, one tile after another.
#include "primitives/counters.cuh"
#include "primitives/scan.cuh"
#include "postings/coded_postings.cuh"
#include "search/best_keys.cuh"

#ifndef THREADS
#define THREADS 512
#endif

#ifndef BLOCKS_PER_MULTIPROCESSOR
#define BLOCKS_PER_MULTIPROCESSOR 3
#endif

constexpr u32 WARPS = THREADS / 32;
constexpr u32 LISTS = 32;  // lists looked up at once
constexpr u32 SLOTS = 4096;  // slots of a table
constexpr u32 FEW = SLOTS / 2;  // maximum postings of a query that uses a table
constexpr u32 UNTOUCHED = 0x80000000u;  // -0.0: adding a nonnegative number gives that number

// Parts of some lists that may overlap the tile.
struct Parts {
    List lists[LISTS];
    float weights[LISTS];
    u32 firsts[LISTS];
    u32 sizes[LISTS];  // blocks
    u32 starts[LISTS + 1];  // number of blocks before it
};

// Looks up the parts of lists [base, base + count) of the query, and their prefix sums. Barriers at both ends.
__device__ __forceinline__ void look_up(
    Parts& parts, const Coded& coded, const Plain& plain, const u32* lists, const float* weights, u32 count,
    u32 first_document, u32 stop_document)
{
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    __syncthreads();
    for (u32 i = warp; i < count; i += WARPS) {
        const List list = open_list(coded, plain, lists[i]);
        // the block before the first that begins beyond the tile's first document may overlap it
        const u32 begun = first_document == 0 ? 0 : blocks_below(list, first_document + 1);
        const u32 stop = stop_document >= coded.documents ? list.blocks : blocks_below(list, stop_document);
        if (lane == 0) {
            parts.lists[i] = list;
            parts.weights[i] = weights[i];
            parts.firsts[i] = begun - min(begun, 1u);
            parts.sizes[i] = stop - min(stop, parts.firsts[i]);
        }
    }
    __syncthreads();
    if (warp == 0) {
        const u32 own = lane < count ? parts.sizes[lane] : 0;
        const u32 before = lanes_before(own);
        parts.starts[lane] = before;
        if (lane == 31)
            parts.starts[LISTS] = before + own;
    }
    __syncthreads();
}

// Slot of a document's accumulator: there is always a free one.
__device__ __forceinline__ u32 find_slot(u32* table, u32 document)
{
    for (u32 slot = document * 0x9E3779B1u % SLOTS;; slot = (slot + 1) % SLOTS) {
        u32 holder = *const_cast<volatile u32*>(table + slot);
        if (holder == NONE)
            holder = atomicCAS(table + slot, NONE, document);
        if (holder == NONE || holder == document)
            return slot;
    }
}

// Separates queries of few postings, written from chosen[0] on, from others, at chosen[queries]; counts: number of
// both, initially zero. One warp per query.
extern "C" __global__ void sort_out(
    const Coded coded, const Plain plain, const i64* __restrict__ query_offsets, const u32* __restrict__ query_lists,
    u32 queries, u32* __restrict__ chosen, u32* counts)
{
    const u64 query = (static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    if (query >= queries)
        return;
    u64 sum = 0;
    for (i64 i = query_offsets[query] + threadIdx.x % 32; i < query_offsets[query + 1]; i += 32)
        sum += open_list(coded, plain, query_lists[i]).postings();
    sum = lanes_sum(sum);
    if (threadIdx.x % 32 == 0 && sum != 0) {
        const u32 kind = sum > FEW;
        chosen[kind * queries + atomicAdd(counts + kind, 1u)] = static_cast<u32>(query);
    }
}

struct Batch {
    const Coded& coded;
    const Plain& plain;
    const float* norms;
    const u32* allowed;
    const i64* offsets;
    const u32* lists;
    const float* weights;
};

// Scores documents [first_document, stop_document) of a query, at most as many as there are accumulators, or all in a
// table, and appends the best ones to its keys.
template <bool TABLE>
__device__ __forceinline__ void score(
    const Batch& batch, u32 query, u32 first_document, u32 stop_document, u32 accumulators, u32 k, u32 room,
    u64* floors, u64* written, u64* keys)
{
    extern __shared__ u64 shared[];
    __shared__ Parts parts;
    __shared__ Selection chosen;
    __shared__ uint4 scratches[WARPS][BLOCK / OWN];
    u64* kept = shared;
    u32* scores = reinterpret_cast<u32*>(shared + room);
    u32* table = scores + accumulators;
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    u32* scratch = reinterpret_cast<u32*>(scratches[warp]);
    const Coded& coded = batch.coded;
    const i64 begin = batch.offsets[query];
    const i64 end = batch.offsets[query + 1];
    bool cleared = false;

    for (i64 base = begin; base < end; base += LISTS) {
        const u32 count = static_cast<u32>(min(end - base, static_cast<i64>(LISTS)));
        look_up(
            parts, coded, batch.plain, batch.lists + base, batch.weights + base, count, first_document, stop_document);
        const u32 all = parts.starts[LISTS];
        if (all != 0 && !cleared) {
            for (u32 i = 4 * threadIdx.x; i < accumulators; i += 4 * THREADS) {
                *reinterpret_cast<uint4*>(scores + i) = make_uint4(UNTOUCHED, UNTOUCHED, UNTOUCHED, UNTOUCHED);
                if (TABLE)
                    *reinterpret_cast<uint4*>(table + i) = make_uint4(NONE, NONE, NONE, NONE);
            }
            cleared = true;
            if (TABLE)
                __syncthreads();
        }
        // Each warp scores a block, then the blocks are added in the order of the lists, which is all that needs
        // barriers.
        u32 adding = NONE;
        for (u32 turn = 0; turn < all; turn += WARPS) {
            const u32 own = turn + warp;
            const u32 last = min(turn + WARPS, all) - 1;
            const u32 own_list = __popc(__ballot_sync(ALL_LANES, parts.starts[lane] <= own)) - 1;
            const u32 first_list = __popc(__ballot_sync(ALL_LANES, parts.starts[lane] <= turn)) - 1;
            const u32 last_list = __popc(__ballot_sync(ALL_LANES, parts.starts[lane] <= last)) - 1;
            u32 places[OWN];
            float added[OWN];
            u32 size = 0;
            if (own < all) {
                const List list = parts.lists[own_list];
                const u32 block = parts.firsts[own_list] + own - parts.starts[own_list];
                size = list.block_size(block);
                if (size != 0) {
                    u32 counts[OWN];
                    decode_documents(coded, list, block, size, scratch, places);
                    decode_counts(coded, batch.plain, list, block, size, scratch, counts);
                    const float weight = parts.weights[own_list];
#pragma unroll
                    for (u32 i = 0; i < OWN; ++i) {
                        const u32 document = places[i];
                        const bool valid =
                            OWN * lane + i < size && document >= first_document && document < stop_document;
                        added[i] = valid ? __fmul_rn(weight, fraction(counts[i], batch.norms[document])) : 0;
                        places[i] = !valid ? NONE : TABLE ? find_slot(table, document) : document - first_document;
                    }
                }
            }
            for (u32 list = first_list; list <= last_list; ++list) {
                if (list != adding)
                    __syncthreads();
                adding = list;
                if (own_list == list && size != 0) {
#pragma unroll
                    for (u32 i = 0; i < OWN; ++i)
                        if (places[i] != NONE)
                            scores[places[i]] = __float_as_uint(__fadd_rn(__uint_as_float(scores[places[i]]), added[i]));
                }
            }
        }
    }
    if (!cleared)
        return;
    __syncthreads();

    const u32 size = TABLE ? accumulators : stop_document - first_document;
    const auto document_of = [&](u32 place) { return TABLE ? table[place] : first_document + place; };
    if (batch.allowed != nullptr) {
        for (u32 i = threadIdx.x; i < size; i += THREADS) {
            const u32 document = document_of(i);
            if (!TABLE || document != NONE)
                if ((batch.allowed[document / 32] >> document % 32 & 1) == 0)
                    scores[i] = UNTOUCHED;
        }
        __syncthreads();
    }
    // as signed numbers, the bits of scores sort as scores do, and those of -0.0 are negative
    const auto visit = [&](u64 from, auto take) {
        const int least = static_cast<int>(from >> 32);
        for (u32 i = 4 * threadIdx.x; i < size; i += 4 * THREADS) {
            const int4 four = *reinterpret_cast<const int4*>(scores + i);
            if (max(max(four.x, four.y), max(four.z, four.w)) < least)
                continue;
            const int score[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
            for (u32 j = 0; j < 4; ++j)
                if (score[j] >= least)
                    take(key_of(static_cast<u32>(score[j]), document_of(i + j)));
        }
    };
    if (room == 0) {
        visit(0, [&](u64 key) { keys[atomicAdd(written, 1ull)] = ~key; });
        return;
    }
    const auto survey = [&](int least, int& best, u32& count) {
        for (u32 i = 4 * threadIdx.x; i < size; i += 4 * THREADS) {
            const int4 four = *reinterpret_cast<const int4*>(scores + i);
            best = max(best, max(max(four.x, four.y), max(four.z, four.w)));
            count += (four.x >= least) + (four.y >= least) + (four.z >= least) + (four.w >= least);
        }
    };
    u64 low;
    const u32 held = keep_best<THREADS>(chosen, k, room, floors + query, kept, low, survey, visit);
    if (held == 0)
        return;
    if (threadIdx.x == 0 && held >= k)
        atomicMax(floors + query, low);
    append_keys(kept, held, written + query, keys);
}

// One block per query and tile.
//
// chosen, count     queries, and their number; nullptr: all, one per block
// tiles, tile_size  number of tiles, and documents per tile: a multiple of 128
// room              maximum keys per tile; 0: all
// floors            by query: a key that k of its keys reach, initially zero
// written           by query: number of keys, initially zero
// keys              by query, tiles x room; for a single query, all
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_MULTIPROCESSOR) score_tiles(
    const Coded coded, const Plain plain, const float* __restrict__ norms, const u32* __restrict__ allowed,
    const i64* __restrict__ query_offsets, const u32* __restrict__ query_lists, const float* __restrict__ query_weights,
    const u32* __restrict__ chosen, const u32* __restrict__ count, u32 tiles, u32 tile_size, u32 k, u32 room,
    u64* floors, u64* written, u64* keys)
{
    const u32 turn = blockIdx.x / tiles;
    if (chosen != nullptr && turn >= *count)
        return;
    const u32 query = chosen == nullptr ? turn : chosen[turn];
    const u32 first_document = blockIdx.x % tiles * tile_size;
    const u32 stop_document = first_document + min(static_cast<u32>(coded.documents) - first_document, tile_size);
    const Batch batch = {coded, plain, norms, allowed, query_offsets, query_lists, query_weights};
    score<false>(
        batch, query, first_document, stop_document, tile_size, k, room, floors, written,
        keys + static_cast<u64>(query) * tiles * room);
}

// One block per query of few postings. The other arguments are as above.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_MULTIPROCESSOR) score_few(
    const Coded coded, const Plain plain, const float* __restrict__ norms, const u32* __restrict__ allowed,
    const i64* __restrict__ query_offsets, const u32* __restrict__ query_lists, const float* __restrict__ query_weights,
    const u32* __restrict__ chosen, const u32* __restrict__ count, u32 tiles, u32 k, u32 room, u64* floors,
    u64* written, u64* keys)
{
    if (blockIdx.x >= *count)
        return;
    const u32 query = chosen[blockIdx.x];
    const Batch batch = {coded, plain, norms, allowed, query_offsets, query_lists, query_weights};
    score<true>(
        batch, query, 0, static_cast<u32>(coded.documents), SLOTS, k, room, floors, written,
        keys + static_cast<u64>(query) * tiles * room);
}
