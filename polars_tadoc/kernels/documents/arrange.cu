// Puts counted terminals in result order. A key has a terminal (or its rank), its document and, if they all fit, its
// count.
#include "primitives/counters.cuh"
#include "primitives/segments.cuh"

constexpr u32 THREADS = 256;

#ifndef KEY
#define KEY u64
#endif

using Key = KEY;

constexpr u32 ITEMS = 8;  // adjacent items per thread

// sizes: of each document, its representative's, at most `top`. own_sizes: of representatives, 0 for all others. total:
// sum of sizes, initially zero.
extern "C" __global__ void __launch_bounds__(THREADS) size_documents(
    const u32* __restrict__ representatives, const u32* __restrict__ counted, u32 first, u32 stop, u32 top,
    u32* sizes, u32* own_sizes, u64* total)
{
    const u64 document = static_cast<u64>(first) + blockIdx.x * THREADS + threadIdx.x;
    u64 size = 0;
    if (document < stop) {
        const u32 representative = representatives[document];
        size = min(counted[representative], top);
        sizes[document - first] = static_cast<u32>(size);
        own_sizes[document - first] = representative == document ? counted[document] : 0;
    }
    for (u32 step = 16; step > 0; step /= 2)
        size += __shfl_xor_sync(0xFFFFFFFFu, size, step);
    if (threadIdx.x % 32 == 0 && size != 0)
        atomicAdd(total, size);
}

// Calls visit(position, document, place) for a thread's positions in document order; place is within the document.
// offsets: of these documents, the first of which has position `first_position` there and 0 here.
template <typename Visit>
__device__ __forceinline__ void visit_positions(
    const i64* __restrict__ offsets, u32 documents, u64 first_position, u64 total, Visit visit)
{
    const u64 stop = first_position + total;
    visit_owned<THREADS, ITEMS>(offsets, documents, first_position, stop, [&](u64 position, u32 owner) {
        visit(position - first_position, owner, position - static_cast<u64>(offsets[owner]));
    });
}

// From keys sorted by document. own_offsets: offsets of representatives. count_flip: as in CountedKeys.
extern "C" __global__ void __launch_bounds__(THREADS) write_by_document(
    const u64* __restrict__ keys, const u64* __restrict__ key_counts, const i64* __restrict__ offsets,
    const i64* __restrict__ own_offsets, const u32* __restrict__ representatives, u32 first, u32 documents,
    u64 first_position, u64 total, u32 rank_shift, u64 rank_mask, u32 count_shift, u64 count_mask, u64 count_flip,
    const u32* __restrict__ by_rank, u32* terminals, u64* counts)
{
    visit_positions(offsets, documents, first_position, total, [&](u64 position, u32 document, u64 place) {
        const u64 source = static_cast<u64>(own_offsets[representatives[first + document] - first]) + place;
        const u64 key = keys[source];
        const u32 rank = static_cast<u32>(key >> rank_shift & rank_mask);
        terminals[position] = by_rank == nullptr ? rank : by_rank[rank];
        counts[position] = key_counts != nullptr ? key_counts[source] : (key >> count_shift & count_mask) ^ count_flip;
    });
}

// Copies each document's keys, in document order, with the document's own number in them.
extern "C" __global__ void __launch_bounds__(THREADS) gather_documents(
    const Key* __restrict__ keys, const u64* __restrict__ key_counts, const i64* __restrict__ offsets,
    const u32* __restrict__ starts, const u32* __restrict__ representatives, u32 first, u32 documents,
    u64 first_position, u64 total, u32 document_shift, u32 terminal_shift, Key* gathered, u64* gathered_counts)
{
    const u64 document_mask = (1ull << terminal_shift) - (1ull << document_shift);
    visit_positions(offsets, documents, first_position, total, [&](u64 position, u32 document, u64 place) {
        const u64 source = starts[representatives[first + document]] + place;
        gathered[position] = static_cast<Key>(
            (keys[source] & ~document_mask) | static_cast<u64>(first + document) << document_shift);
        if (key_counts != nullptr)
            gathered_counts[position] = key_counts[source];
    });
}

// offsets: of each terminal among sorted keys; the last one is the total.
extern "C" __global__ void __launch_bounds__(THREADS) find_terminals(
    const Key* __restrict__ keys, u64 total, u32 terminal_shift, u32 terminals, i64* offsets)
{
    const u64 terminal = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (terminal > terminals)
        return;
    offsets[terminal] = static_cast<i64>(
        first_without(u64{0}, total, [&](u64 i) { return keys[i] >> terminal_shift < terminal; }));
}

// Adds to each terminal's number of documents. counts: by terminal.
extern "C" __global__ void __launch_bounds__(THREADS) count_terminals(
    const Key* __restrict__ keys, u64 total, u32 terminal_shift, u64* counts)
{
    const u64 position = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (position < total)
        atomicAdd(counts + (keys[position] >> terminal_shift), 1ull);
}

// From keys sorted by terminal. offsets: of each terminal among them. places: positions of each terminal's documents,
// or null if all are here.
extern "C" __global__ void __launch_bounds__(THREADS) write_by_terminal(
    const Key* __restrict__ keys, const u64* __restrict__ key_counts, u64 total, u32 terminal_shift,
    u32 document_shift, u64 count_mask, const i64* __restrict__ offsets, const i64* __restrict__ places,
    u32* documents, u64* counts)
{
    const u64 position = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (position >= total)
        return;
    const u64 key = keys[position];
    const u64 terminal = key >> terminal_shift;
    const u64 target = places == nullptr ? position : position - offsets[terminal] + places[terminal];
    documents[target] = static_cast<u32>((key & ((1ull << terminal_shift) - 1)) >> document_shift);
    if (counts != nullptr)
        counts[target] = key_counts != nullptr ? key_counts[position] : key & count_mask;
}

// places: advanced by each terminal's number of keys with these offsets.
extern "C" __global__ void __launch_bounds__(THREADS) advance_places(
    const i64* __restrict__ offsets, u32 terminals, i64* places)
{
    const u32 terminal = blockIdx.x * THREADS + threadIdx.x;
    if (terminal < terminals)
        places[terminal] += offsets[terminal + 1] - offsets[terminal];
}
