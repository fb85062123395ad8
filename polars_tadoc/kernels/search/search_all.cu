// AND: documents in all of a query's lists. A stretch of the first list is intersected with the others (Ding et al.,
// section 5). Skip heads tell which blocks of a list may contain a candidate; only those are decoded, and counts only
// of blocks that contain one.
#include "primitives/counters.cuh"
#include "primitives/scan.cuh"
#include "postings/coded_postings.cuh"
#include "search/best_keys.cuh"

#ifndef THREADS
#define THREADS 128
#endif

#ifndef STRETCH
#define STRETCH 4
#endif

#ifndef BLOCKS_PER_MULTIPROCESSOR
#define BLOCKS_PER_MULTIPROCESSOR 8
#endif

constexpr u32 WARPS = THREADS / 32;
constexpr u32 CANDIDATES = STRETCH * BLOCK;
constexpr u32 EACH = (CANDIDATES + THREADS - 1) / THREADS;  // adjacent candidates per thread
constexpr u32 MISSING = 0xFFFFFFFFu;

static_assert(STRETCH <= WARPS, "a warp decodes one block of the stretch");

struct Candidates {
    u32 documents[CANDIDATES];
    float scores[CANDIDATES];
    u32 blocks[CANDIDATES];  // of the next list, which may contain the document; MISSING if none does
    u32 begins[CANDIDATES + 1];  // first candidate of each needed block
    u32 sums[WARPS];
    u32 first;
    u32 stop;
};

// Sum over the threads before this one, and over all. Barriers at both ends.
__device__ __forceinline__ u32 threads_before(u32* sums, u32 own, u32& all)
{
    __syncthreads();
    const u32 before = lanes_before(own);
    if (threadIdx.x % 32 == 31)
        sums[threadIdx.x / 32] = before + own;
    __syncthreads();
    u32 sum = before;
    all = 0;
    for (u32 warp = 0; warp < WARPS; ++warp) {
        if (warp < threadIdx.x / 32)
            sum += sums[warp];
        all += sums[warp];
    }
    return sum;
}

// The index of a document in a decoded block, or NONE.
__device__ __forceinline__ u32 find_document(const u32* documents, u32 document)
{
    u32 place = 0;
#pragma unroll
    for (u32 step = BLOCK / 2; step > 0; step /= 2)
        if (documents[place + step - 1] < document)
            place += step;
    return documents[place] == document ? place : NONE;
}

// Decodes a stretch of the first list; returns its number of candidates.
__device__ __forceinline__ u32 start_candidates(
    Candidates& own, const Coded& coded, const Plain& plain, const List& list, u32 first_block, float weight,
    const float* norms, const u32* allowed, u32* scratch)
{
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    u32 documents[OWN];
    u32 counts[OWN];
    u32 kept = 0;  // a bit per candidate
    const u32 block = first_block + warp;
    if (warp < STRETCH && block < list.blocks) {
        const u32 size = list.block_size(block);
        if (size != 0) {
            decode_documents(coded, list, block, size, scratch, documents);
            decode_counts(coded, plain, list, block, size, scratch, counts);
#pragma unroll
            for (u32 i = 0; i < OWN; ++i) {
                const bool valid = OWN * lane + i < size && documents[i] < coded.documents;
                if (valid && (allowed == nullptr || (allowed[documents[i] / 32] >> documents[i] % 32 & 1) != 0))
                    kept |= 1u << i;
            }
        }
    }
    u32 all;
    u32 place = threads_before(own.sums, __popc(kept), all);
#pragma unroll
    for (u32 i = 0; i < OWN; ++i)
        if ((kept >> i & 1) != 0) {
            own.documents[place] = documents[i];
            own.scores[place] = __fmul_rn(weight, fraction(counts[i], norms[documents[i]]));
            ++place;
        }
    __syncthreads();
    return all;
}

// Finds each candidate's block of the list, and the first candidate of each block; returns the number of blocks.
__device__ __forceinline__ u32 find_blocks(Candidates& own, const List& list, u32 count)
{
    const u32 warp = threadIdx.x / 32;
    if (warp == 0) {
        const u32 begun = blocks_below(list, own.documents[0] + 1);
        if (threadIdx.x == 0)
            own.first = begun - min(begun, 1u);
    } else if (warp == 1) {
        const u32 stop = blocks_below(list, own.documents[count - 1] + 1);
        if (threadIdx.x == 32)
            own.stop = stop;
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < count; i += THREADS) {
        const u32 document = own.documents[i];
        u32 low = own.first;  // blocks before this begin with the document or a lower one
        u32 high = max(own.first, own.stop);
        while (low < high) {
            const u32 middle = low + (high - low) / 2;
            if (list.head(middle) <= document)
                low = middle + 1;
            else
                high = middle;
        }
        own.blocks[i] = low == own.first ? MISSING : low - 1;
    }
    __syncthreads();
    u32 begins = 0;  // a bit per candidate
#pragma unroll
    for (u32 i = 0; i < EACH; ++i) {
        const u32 candidate = EACH * threadIdx.x + i;
        if (candidate < count && own.blocks[candidate] != MISSING &&
            (candidate == 0 || own.blocks[candidate - 1] != own.blocks[candidate]))
            begins |= 1u << i;
    }
    u32 all;
    u32 place = threads_before(own.sums, __popc(begins), all);
#pragma unroll
    for (u32 i = 0; i < EACH; ++i)
        if ((begins >> i & 1) != 0)
            own.begins[place++] = EACH * threadIdx.x + i;
    if (threadIdx.x == 0)
        own.begins[all] = count;
    __syncthreads();
    return all;
}

// Adds the list's scores of the candidates; missing ones become MISSING. Warps process the needed blocks in turn.
__device__ __forceinline__ void look_in_blocks(
    Candidates& own, const Coded& coded, const Plain& plain, const List& list, u32 needed, float weight,
    const float* norms, u32* scratch, u32* held)
{
    const u32 lane = threadIdx.x % 32;
    for (u32 turn = threadIdx.x / 32; turn < needed; turn += WARPS) {
        const u32 begin = own.begins[turn];
        const u32 end = own.begins[turn + 1];
        const u32 block = own.blocks[begin];
        const u32 size = list.block_size(block);
        bool any = false;
        u32 decoded[OWN];
        if (size != 0) {
            decode_documents(coded, list, block, size, scratch, decoded);
            reinterpret_cast<uint4*>(held)[lane] = make_uint4(
                OWN * lane < size ? decoded[0] : NONE, OWN * lane + 1 < size ? decoded[1] : NONE,
                OWN * lane + 2 < size ? decoded[2] : NONE, OWN * lane + 3 < size ? decoded[3] : NONE);
        }
        __syncwarp();
        for (u32 i = begin + lane; i < end; i += 32) {
            const u32 place = size == 0 ? NONE : find_document(held, own.documents[i]);
            own.blocks[i] = place == NONE ? MISSING : place;
            any |= place != NONE;
        }
        if (__any_sync(ALL_LANES, any)) {
            decode_counts(coded, plain, list, block, size, scratch, decoded);
            __syncwarp();
            reinterpret_cast<uint4*>(held)[lane] = make_uint4(decoded[0], decoded[1], decoded[2], decoded[3]);
            __syncwarp();
            for (u32 i = begin + lane; i < end; i += 32)
                if (own.blocks[i] != MISSING) {
                    const float added = __fmul_rn(weight, fraction(held[own.blocks[i]], norms[own.documents[i]]));
                    own.scores[i] = __fadd_rn(own.scores[i], added);
                }
        }
        __syncwarp();
    }
    __syncthreads();
}

// Drops the candidates that are MISSING; returns the number of the others.
__device__ __forceinline__ u32 leave_out(Candidates& own, u32 count)
{
    u32 documents[EACH];
    float scores[EACH];
    u32 kept = 0;
#pragma unroll
    for (u32 i = 0; i < EACH; ++i) {
        const u32 candidate = EACH * threadIdx.x + i;
        if (candidate < count && own.blocks[candidate] != MISSING) {
            documents[i] = own.documents[candidate];
            scores[i] = own.scores[candidate];
            kept |= 1u << i;
        }
    }
    u32 all;
    u32 place = threads_before(own.sums, __popc(kept), all);
#pragma unroll
    for (u32 i = 0; i < EACH; ++i)
        if ((kept >> i & 1) != 0) {
            own.documents[place] = documents[i];
            own.scores[place] = scores[i];
            ++place;
        }
    __syncthreads();
    return all;
}

// Stretches of each query's first list, and its maximum number of keys; damaged lists may repeat a document. One warp
// per query.
extern "C" __global__ void plan_queries(
    const Coded coded, const Plain plain, const i64* __restrict__ query_offsets, const u32* __restrict__ query_lists,
    u32 queries, u32 require_all, u32* __restrict__ stretches, i64* __restrict__ most)
{
    const u64 query = (static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    const u32 lane = threadIdx.x % 32;
    if (query >= queries)
        return;
    const i64 begin = query_offsets[query];
    const i64 end = query_offsets[query + 1];
    u64 sum = 0;
    for (i64 i = begin + lane; i < (require_all != 0 ? min(begin + 1, end) : end); i += 32)
        sum += open_list(coded, plain, query_lists[i]).postings();
    sum = lanes_sum(sum);
    if (require_all == 0)
        sum = min(sum, coded.documents);
    if (lane == 0) {
        const u32 blocks = begin < end ? open_list(coded, plain, query_lists[begin]).blocks : 0;
        stretches[query] = (blocks + STRETCH - 1) / STRETCH;
        most[query] = static_cast<i64>(sum);
    }
}

// One block per stretch of a query's first list.
//
// first_stretch  number of the first block's stretch among those of all queries
// owners         query by stretch
// starts         number of stretches before each query
// room, floors, written  as in search_any.cu
// keys           room for each stretch from the first one on; a launch processes whole queries
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_MULTIPROCESSOR) intersect(
    const Coded coded, const Plain plain, const float* __restrict__ norms, const u32* __restrict__ allowed,
    const i64* __restrict__ query_offsets, const u32* __restrict__ query_lists, const float* __restrict__ query_weights,
    u64 first_stretch, const u32* __restrict__ owners, const i64* __restrict__ starts, u32 k, u32 room, u64* floors,
    u64* written, u64* keys)
{
    extern __shared__ u64 kept[];
    __shared__ Candidates own;
    __shared__ Selection chosen;
    __shared__ uint4 scratches[2 * WARPS][BLOCK / OWN];
    u32* scratch = reinterpret_cast<u32*>(scratches[2 * (threadIdx.x / 32)]);
    u32* held = reinterpret_cast<u32*>(scratches[2 * (threadIdx.x / 32) + 1]);

    const u64 stretch = first_stretch + blockIdx.x;
    const u32 query = owners[stretch];
    const u64 start = static_cast<u64>(starts[query]);
    const i64 begin = query_offsets[query];
    const i64 end = query_offsets[query + 1];
    const List first = open_list(coded, plain, query_lists[begin]);
    u32 count = start_candidates(
        own, coded, plain, first, static_cast<u32>(stretch - start) * STRETCH, query_weights[begin], norms, allowed,
        scratch);
    for (i64 i = begin + 1; i < end && count != 0; ++i) {
        const List list = open_list(coded, plain, query_lists[i]);
        const u32 needed = find_blocks(own, list, count);
        look_in_blocks(own, coded, plain, list, needed, query_weights[i], norms, scratch, held);
        count = leave_out(own, count);
    }
    if (count == 0)
        return;

    const auto visit = [&](u64, auto take) {
        for (u32 i = threadIdx.x; i < count; i += THREADS)
            take(key_of(__float_as_uint(own.scores[i]), own.documents[i]));
    };
    if (room == 0) {
        visit(0, [&](u64 key) { keys[atomicAdd(written, 1ull)] = ~key; });
        return;
    }
    const auto survey = [&](int least, int& highest, u32& reached) {
        for (u32 i = threadIdx.x; i < count; i += THREADS) {
            const int score = __float_as_int(own.scores[i]);
            highest = max(highest, score);
            reached += score >= least;
        }
    };
    u64 low;
    const u32 best = keep_best<THREADS>(chosen, k, room, floors + query, kept, low, survey, visit);
    if (best == 0)
        return;
    if (threadIdx.x == 0 && best >= k)
        atomicMax(floors + query, low);
    append_keys(kept, best, written + query, keys + (start - first_stretch) * room);
}
