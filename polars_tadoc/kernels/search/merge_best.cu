// The best of each query's keys, sorted.
#include "primitives/counters.cuh"
#include "primitives/scan.cuh"
#include "search/best_keys.cuh"

#ifndef THREADS
#define THREADS 128
#endif

using i64 = long long;

constexpr u32 ROOM = 2048;  // maximum number of sorted keys

// Sorts `size` keys, a power of two, in descending order: a bitonic sort. Barriers at both ends.
__device__ __forceinline__ void sort_keys(u64* keys, u32 size)
{
    __syncthreads();
    for (u32 run = 2; run <= size; run *= 2)
        for (u32 apart = run / 2; apart > 0; apart /= 2) {
            for (u32 i = threadIdx.x; i < size / 2; i += THREADS) {
                const u32 one = 2 * apart * (i / apart) + i % apart;
                const u32 other = one + apart;
                const bool falling = (one & run) == 0;
                const u64 a = keys[one];
                const u64 b = keys[other];
                if ((a < b) == falling) {
                    keys[one] = b;
                    keys[other] = a;
                }
            }
            __syncthreads();
        }
}

// One block per query.
//
// keys     of queries, concatenated; `room` per part
// starts   parts before each query; nullptr if each query has `parts`
// written  keys by query
// k        maximum number of results, up to ROOM
// row      entries per query in the result; unused ones become 0
extern "C" __global__ void __launch_bounds__(THREADS) merge_best(
    const u64* __restrict__ keys, const i64* __restrict__ starts, u64 first_part, u32 parts, u32 room,
    const u64* __restrict__ floors, const u64* __restrict__ written, u32 k, u64 row, i64* __restrict__ found,
    u32* __restrict__ documents, float* __restrict__ scores)
{
    __shared__ u64 kept[ROOM];
    __shared__ Selection chosen;
    const u32 query = blockIdx.x;
    const u64 part = starts == nullptr ? static_cast<u64>(query) * parts : static_cast<u64>(starts[query]) - first_part;
    const u64* own = keys + part * room;
    const u64 count = written[query];
    const auto visit = [&](u64, auto take) {
        for (u64 i = threadIdx.x; i < count; i += THREADS)
            take(own[i]);
    };
    const auto survey = [&](int least, int& best, u32& reached) {
        for (u64 i = threadIdx.x; i < count; i += THREADS) {
            const int score = static_cast<int>(own[i] >> 32);
            best = max(best, score);
            reached += score >= least;
        }
    };
    u64 low;
    const u32 held =
        count == 0 ? 0 : keep_best<THREADS>(chosen, k, ROOM, floors + query, kept, low, survey, visit);
    u32 size = 2;
    while (size < held)
        size *= 2;
    for (u32 i = held + threadIdx.x; i < size; i += THREADS)
        kept[i] = 0;
    sort_keys(kept, size);
    const u32 best = min(held, k);
    if (threadIdx.x == 0)
        found[query] = best;
    for (u64 i = threadIdx.x; i < row; i += THREADS) {
        documents[query * row + i] = i < best ? ~static_cast<u32>(kept[i]) : 0;
        scores[query * row + i] = i < best ? __uint_as_float(static_cast<u32>(kept[i] >> 32)) : 0.0f;
    }
}

// The first of one query's sorted keys; keys: complements, so that the best one is the lowest.
extern "C" __global__ void write_best(
    const u64* __restrict__ keys, u64 count, u32* __restrict__ documents, float* __restrict__ scores)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < count) {
        documents[i] = static_cast<u32>(keys[i]);
        scores[i] = __uint_as_float(static_cast<u32>(~keys[i] >> 32));
    }
}
