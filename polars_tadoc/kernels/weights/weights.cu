// Weights of the terms of documents: BM25 and TF-IDF, in float64. A posting is a document's terminal with its count.
//
// Arithmetic is rounded after each operation, so that every engine returns the same BM25 weights, and the order of sums
// depends on the documents' lengths only.
#include "primitives/counters.cuh"
#include "primitives/scan.cuh"
#include "traverse/spans.cuh"
#include "traverse/terminal_table.cuh"
#include "weights/balanced_postings.cuh"

constexpr u32 COUNT_THREADS = 1024;
constexpr u32 SLOTS = 1 << 12;  // slots of each block's table of terminals
constexpr u32 PROBES = 8;
constexpr u32 FEW_TILES = 16;  // tiles whose sums one thread adds up for a document

// Counts the documents of each terminal. Frequent terminals recur among a block's adjacent postings and are counted in
// shared memory. frequencies: zeros.
extern "C" __global__ void __launch_bounds__(COUNT_THREADS) count_frequencies(
    const u32* __restrict__ terminals, u64 postings, u64 share, u64* frequencies)
{
    __shared__ u32 held[SLOTS];
    __shared__ Count counts[SLOTS];
    TerminalTable table{held, counts, SLOTS};
    table.clear(threadIdx.x, COUNT_THREADS);
    __syncthreads();
    const u64 begin = blockIdx.x * share;
    const u64 stop = min(begin + share, postings);
    for (u64 i = begin + threadIdx.x; i < stop; i += COUNT_THREADS) {
        const u32 terminal = terminals[i];
        if (!table.add_within(terminal, 1, PROBES))
            atomicAdd(frequencies + terminal, 1ull);
    }
    __syncthreads();
    for (u32 slot = threadIdx.x; slot < SLOTS; slot += COUNT_THREADS)
        if (counts[slot] != 0)
            atomicAdd(frequencies + held[slot], static_cast<u64>(counts[slot]));
}

// weights, bases: by terminal; bases may be null. norms: by document.
extern "C" __global__ void __launch_bounds__(BALANCED_THREADS) weigh_bm25(
    const i64* __restrict__ offsets, u64 documents, u64 postings, const u32* __restrict__ terminals,
    const u64* __restrict__ counts, const double* __restrict__ weights, const double* __restrict__ norms,
    const double* __restrict__ bases, double* __restrict__ weighed)
{
    visit_balanced(offsets, documents, postings, [&](u64 position, u64 document) {
        const u32 terminal = terminals[position];
        const double count = __ull2double_rn(counts[position]);
        const double weight = __dmul_rn(weights[terminal], __ddiv_rn(count, __dadd_rn(count, norms[document])));
        weighed[position] = bases == nullptr ? weight : __dadd_rn(weight, bases[terminal]);
    });
}

// idf: by terminal, or null for 1.
__device__ __forceinline__ double weigh_term(
    u64 count, u32 terminal, const double* __restrict__ idf, u32 sublinear)
{
    double weight = __ull2double_rn(count);
    if (sublinear != 0)
        weight = __dadd_rn(1.0, log(weight));
    return idf == nullptr ? weight : __dmul_rn(weight, idf[terminal]);
}

// Sums the squares, or the absolute values, of the weights of documents that begin and end in a tile. For other
// documents a tile has the sum up to the end of the first one (heads) and from the start of the last one (tails).
extern "C" __global__ void __launch_bounds__(BALANCED_THREADS) sum_weights(
    const i64* __restrict__ offsets, u64 documents, u64 postings, const u32* __restrict__ terminals,
    const u64* __restrict__ counts, const double* __restrict__ idf, u32 sublinear, u32 squares, double* sums,
    double* heads, double* tails)
{
    constexpr u32 WARPS = BALANCED_THREADS / 32;
    __shared__ BalancedTile tile;
    __shared__ double amounts[BALANCED_TILE + BALANCED_THREADS];  // one spare element per thread: avoids bank conflicts
    __shared__ double warp_sums[WARPS];
    __shared__ u32 warp_ended[WARPS];
    const auto place_of = [](u32 place) { return place + place / BALANCED_ITEMS; };
    tile.load(offsets, documents, postings);
#pragma unroll
    for (u32 i = 0; i < BALANCED_ITEMS; ++i) {
        const u32 place = threadIdx.x + i * BALANCED_THREADS;
        if (place < tile.postings) {
            const u64 position = tile.first_posting + place;
            const double weight = weigh_term(counts[position], terminals[position], idf, sublinear);
            amounts[place_of(place)] = squares != 0 ? __dmul_rn(weight, weight) : fabs(weight);
        }
    }
    __syncthreads();

    double sum = 0.0;  // since the last document's end
    double first_sum = 0.0;  // up to the thread's first document's end
    u32 first = 0;
    u32 ended = 0;
    tile.walk(
        [&](u32 document) {
            if (ended == 0) {
                first = document;
                first_sum = sum;
            } else {
                sums[tile.first_document + document] = sum;
            }
            ended = 1;
            sum = 0.0;
        },
        [&](u32 place, u32) { sum = __dadd_rn(sum, amounts[place_of(place)]); });

    // sum over earlier threads since the last document's end
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    const u32 own_ended = ended;
    for (u32 step = 1; step < 32; step *= 2) {
        const double other = __shfl_up_sync(ALL_LANES, sum, step);
        const u32 other_ended = __shfl_up_sync(ALL_LANES, ended, step);
        if (lane >= step) {
            sum = ended != 0 ? sum : __dadd_rn(other, sum);
            ended |= other_ended;
        }
    }
    if (lane == 31) {
        warp_sums[warp] = sum;
        warp_ended[warp] = ended;
    }
    double before = __shfl_up_sync(ALL_LANES, sum, 1);
    u32 ended_before = __shfl_up_sync(ALL_LANES, ended, 1);
    if (lane == 0) {
        before = 0.0;
        ended_before = 0;
    }
    __syncthreads();
    double carried = 0.0;
    u32 ended_ever = 0;
    for (u32 i = 0; i < warp; ++i) {
        carried = warp_ended[i] != 0 ? warp_sums[i] : __dadd_rn(carried, warp_sums[i]);
        ended_ever |= warp_ended[i];
    }
    before = ended_before != 0 ? before : __dadd_rn(carried, before);
    if (own_ended != 0) {
        const double whole = __dadd_rn(before, first_sum);
        const u64 document = tile.first_document + first;
        if (first == 0 && static_cast<u64>(offsets[document]) < tile.first_posting)
            heads[blockIdx.x] = whole;
        else
            sums[document] = whole;
    }
    if (threadIdx.x == BALANCED_THREADS - 1) {
        const double tail = ended != 0 ? sum : __dadd_rn(carried, sum);
        tails[blockIdx.x] = tail;
        if ((ended | ended_ever) == 0)
            heads[blockIdx.x] = tail;
    }
}

// Divisor of each document: its sum, or the sum's root; 1 if it is 0. sums: of documents within a tile.
extern "C" __global__ void __launch_bounds__(BALANCED_THREADS) find_norms(
    const i64* __restrict__ offsets, u64 documents, const double* __restrict__ heads,
    const double* __restrict__ tails, u32 squares, double* sums)
{
    const u64 document = static_cast<u64>(blockIdx.x) * BALANCED_THREADS + threadIdx.x;
    const u32 lane = threadIdx.x % 32;
    u64 first = 0;
    u64 last = 0;
    if (document < documents) {
        first = (static_cast<u64>(offsets[document]) + document) / BALANCED_TILE;
        last = (static_cast<u64>(offsets[document + 1]) + document) / BALANCED_TILE;
    }
    double sum = 0.0;
    if (first != last) {
        sum = tails[first];
        if (last - first <= FEW_TILES)
            for (u64 tile = first + 1; tile <= last; ++tile)
                sum = __dadd_rn(sum, heads[tile]);
    } else if (document < documents) {
        sum = sums[document];
    }
    for (u32 left = __ballot_sync(ALL_LANES, last - first > FEW_TILES); left != 0; left &= left - 1) {
        const u32 owner = static_cast<u32>(__ffs(left)) - 1;
        const u64 begin = __shfl_sync(ALL_LANES, first, owner) + 1;
        const u64 stop = __shfl_sync(ALL_LANES, last, owner) + 1;
        double part = 0.0;
        for (u64 tile = begin + lane; tile < stop; tile += 32)
            part = __dadd_rn(part, heads[tile]);
        part = lanes_sum(part);
        if (lane == owner)
            sum = __dadd_rn(sum, part);
    }
    if (squares != 0)
        sum = sqrt(sum);
    if (document < documents)
        sums[document] = sum == 0.0 ? 1.0 : sum;
}

// norms: by document, or null if all are 1.
extern "C" __global__ void __launch_bounds__(BALANCED_THREADS) weigh_tfidf(
    const i64* __restrict__ offsets, u64 documents, u64 postings, const u32* __restrict__ terminals,
    const u64* __restrict__ counts, const double* __restrict__ idf, u32 sublinear, const double* __restrict__ norms,
    double* __restrict__ weighed)
{
    visit_balanced(offsets, documents, postings, [&](u64 position, u64 document) {
        const double weight = weigh_term(counts[position], terminals[position], idf, sublinear);
        weighed[position] = norms == nullptr ? weight : __ddiv_rn(weight, norms[document]);
    });
}
