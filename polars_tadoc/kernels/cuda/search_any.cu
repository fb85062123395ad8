// Documents that hold any of a query's words: accumulators in shared memory, one tile of documents after another, and
// the best keys of each tile. Lists are decoded and scored by the warps that add them up; nothing is written between.
#include "counters.cuh"
#include "scan.cuh"
#include "coded_postings.cuh"
#include "best_keys.cuh"

#ifndef THREADS
#define THREADS 512
#endif

#ifndef BLOCKS_PER_MULTIPROCESSOR
#define BLOCKS_PER_MULTIPROCESSOR 3
#endif

constexpr u32 WARPS = THREADS / 32;
constexpr u32 LISTS = 32;  // that are looked up at once
constexpr u32 UNTOUCHED = 0x80000000u;  // -0.0: adding a number that is not negative gives that number

// Parts of some lists that may be in the tile.
struct Parts {
    List lists[LISTS];
    float weights[LISTS];
    u32 firsts[LISTS];
    u32 sizes[LISTS];  // blocks
    u32 starts[LISTS + 1];  // blocks before it
};

// Looks up the parts of lists [base, base + count) of the query, and what is before each. Barriers at both ends.
__device__ __forceinline__ void look_up(
    Parts& parts, const Coded& coded, const Plain& plain, const u32* lists, const float* weights, u32 count,
    u32 first_document, u32 stop_document)
{
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    __syncthreads();
    for (u32 i = warp; i < count; i += WARPS) {
        const List list = open_list(coded, plain, lists[i]);
        // the block before the first that begins beyond the tile's first document may reach into it
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

// One block takes a query's tile.
//
// tiles, tile_size  how many tiles all documents are cut into, of how many documents each: a multiple of 128
// room              keys that a tile may add; 0: all are wanted
// floors            by query: a key that k keys of it reach, zeros at first
// written           by query: keys, zeros at first
// keys              by query, tiles x room; of the only one, all
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_MULTIPROCESSOR) score_tiles(
    const Coded coded, const Plain plain, const float* __restrict__ norms, const u32* __restrict__ allowed,
    const i64* __restrict__ query_offsets, const u32* __restrict__ query_lists, const float* __restrict__ query_weights,
    u32 tiles, u32 tile_size, u32 k, u32 room, u64* floors, u64* written, u64* keys)
{
    extern __shared__ u64 shared[];
    __shared__ Parts parts;
    __shared__ Selection chosen;
    __shared__ uint4 scratches[WARPS][BLOCK / OWN];
    u64* kept = shared;
    u32* scores = reinterpret_cast<u32*>(shared + room);
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    u32* scratch = reinterpret_cast<u32*>(scratches[warp]);

    const u32 query = blockIdx.x / tiles;
    const u32 tile = blockIdx.x % tiles;
    const u32 first_document = tile * tile_size;
    const u32 stop_document = first_document + min(static_cast<u32>(coded.documents) - first_document, tile_size);
    const i64 begin = query_offsets[query];
    const i64 end = query_offsets[query + 1];
    bool cleared = false;

    for (i64 base = begin; base < end; base += LISTS) {
        const u32 count = static_cast<u32>(min(end - base, static_cast<i64>(LISTS)));
        look_up(parts, coded, plain, query_lists + base, query_weights + base, count, first_document, stop_document);
        const u32 all = parts.starts[LISTS];
        if (all != 0 && !cleared) {
            for (u32 i = 4 * threadIdx.x; i < tile_size; i += 4 * THREADS)
                *reinterpret_cast<uint4*>(scores + i) = make_uint4(UNTOUCHED, UNTOUCHED, UNTOUCHED, UNTOUCHED);
            cleared = true;
        }
        // Warps take a block each and score it, then add it in the order of the lists, which alone needs barriers.
        u32 adding = NONE;
        for (u32 turn = 0; turn < all; turn += WARPS) {
            const u32 own = turn + warp;
            const u32 last = min(turn + WARPS, all) - 1;
            const u32 own_list = __popc(__ballot_sync(ALL_LANES, parts.starts[lane] <= own)) - 1;
            const u32 first_list = __popc(__ballot_sync(ALL_LANES, parts.starts[lane] <= turn)) - 1;
            const u32 last_list = __popc(__ballot_sync(ALL_LANES, parts.starts[lane] <= last)) - 1;
            u32 documents[OWN];
            float added[OWN];
            u32 size = 0;
            if (own < all) {
                const List list = parts.lists[own_list];
                const u32 block = parts.firsts[own_list] + own - parts.starts[own_list];
                size = list.block_size(block);
                if (size != 0) {
                    u32 counts[OWN];
                    decode_documents(coded, list, block, size, scratch, documents);
                    decode_counts(coded, plain, list, block, size, scratch, counts);
                    const float weight = parts.weights[own_list];
#pragma unroll
                    for (u32 i = 0; i < OWN; ++i) {
                        const bool valid = OWN * lane + i < size && documents[i] >= first_document &&
                                           documents[i] < stop_document;
                        added[i] = valid ? __fmul_rn(weight, fraction(counts[i], norms[documents[i]])) : 0;
                        documents[i] = valid ? documents[i] - first_document : NONE;
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
                        if (documents[i] != NONE)
                            scores[documents[i]] =
                                __float_as_uint(__fadd_rn(__uint_as_float(scores[documents[i]]), added[i]));
                }
            }
        }
    }
    if (!cleared)
        return;
    __syncthreads();

    const u32 size = stop_document - first_document;
    if (allowed != nullptr) {
        for (u32 i = threadIdx.x; i < size; i += THREADS)
            if ((allowed[(first_document + i) / 32] >> i % 32 & 1) == 0)
                scores[i] = UNTOUCHED;
        __syncthreads();
    }
    // as signed numbers the bits of scores order as scores do, and those of -0.0 are below 0
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
                    take(key_of(static_cast<u32>(score[j]), first_document + i + j));
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
    if (threadIdx.x == 0 && held >= k && tiles > 1)
        atomicMax(floors + query, low);
    append_keys(kept, held, written + query, keys + static_cast<u64>(query) * tiles * room);
}
