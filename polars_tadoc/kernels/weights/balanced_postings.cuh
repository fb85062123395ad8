// Distributes documents and their postings evenly over blocks and threads, whatever their lengths: merge path over the
// ends of documents and the positions of postings (Merrill and Garland, Merge-Based Parallel Sparse Matrix-Vector
// Multiplication, SC 2016). Include after counters.cuh and scan.cuh.
#ifndef POLARS_TADOC_BALANCED_POSTINGS
#define POLARS_TADOC_BALANCED_POSTINGS

constexpr u32 BALANCED_THREADS = 256;
constexpr u32 BALANCED_ITEMS = 8;  // ends and postings per thread
constexpr u32 BALANCED_TILE = BALANCED_THREADS * BALANCED_ITEMS;  // per block

// The first number of [low, high) for which a monotonic predicate is false, or high. Called by a whole warp; tests 32
// numbers at a time.
template <typename Holds>
__device__ __forceinline__ u64 warp_first_without(u64 low, u64 high, Holds holds)
{
    const u32 lane = threadIdx.x % 32;
    while (low < high) {
        const u64 step = (high - low) / 32 + 1;
        const u64 asked = low + lane * step;
        const u32 held = __popc(__ballot_sync(ALL_LANES, asked < high && holds(asked)));
        high = min(high, low + held * step);
        if (held != 0)
            low += (held - 1) * step + 1;
    }
    return low;
}

// The last document that begins at or before a position. Called by a whole warp.
__device__ __forceinline__ u64 document_at(const i64* __restrict__ offsets, u64 documents, u64 position)
{
    return warp_first_without(1, documents, [&](u64 document) { return static_cast<u64>(offsets[document]) <= position; }) -
        1;
}

// A block's share: the ends of `documents` documents, and `postings` postings. The last postings may belong to a
// document that ends in another share.
struct BalancedTile {
    u64 first_document;
    u64 first_posting;
    u32 documents;
    u32 postings;
    u16 ends[BALANCED_TILE];  // relative to the first posting

    // Called by the whole block.
    __device__ __forceinline__ void load(const i64* __restrict__ offsets, u64 all_documents, u64 all_postings)
    {
        __shared__ u64 before[2];  // documents that end before the tile, and before the next one
        const u64 begin = static_cast<u64>(blockIdx.x) * BALANCED_TILE;
        const u64 stop = min(begin + BALANCED_TILE, all_documents + all_postings);
        if (threadIdx.x < 64) {
            const u64 item = threadIdx.x < 32 ? begin : stop;
            const u64 found = warp_first_without(
                item < all_postings ? 0 : item - all_postings, min(item, all_documents),
                [&](u64 document) { return static_cast<u64>(offsets[document + 1]) + document < item; });
            if (threadIdx.x % 32 == 0)
                before[threadIdx.x / 32] = found;
        }
        __syncthreads();
        const u64 own_first = before[0];
        const u32 own_documents = static_cast<u32>(before[1] - own_first);
        const u64 own_posting = begin - own_first;
        for (u32 i = threadIdx.x; i < own_documents; i += BALANCED_THREADS)
            ends[i] = static_cast<u16>(static_cast<u64>(offsets[own_first + i + 1]) - own_posting);
        if (threadIdx.x == 0) {
            first_document = own_first;
            first_posting = own_posting;
            documents = own_documents;
            postings = static_cast<u32>(stop - begin) - own_documents;
        }
        __syncthreads();
    }

    // Calls end(document) and posting(place, document) for a thread's own items in order; both numbers are relative to
    // the tile's first ones.
    template <typename End, typename Posting>
    __device__ __forceinline__ void walk(End end, Posting posting) const
    {
        const u32 items = documents + postings;
        const u32 begin = min(threadIdx.x * BALANCED_ITEMS, items);
        const u32 stop = min(begin + BALANCED_ITEMS, items);
        u32 document = begin < postings ? 0 : begin - postings;
        u32 high = min(begin, documents);
        while (document < high) {
            const u32 middle = (document + high) / 2;
            if (ends[middle] + middle < begin)
                document = middle + 1;
            else
                high = middle;
        }
        u32 place = begin - document;
        for (u32 item = begin; item < stop; ++item) {
            if (document < documents && ends[document] <= place)
                end(document++);
            else
                posting(place++, document);
        }
    }
};

// Calls visit(position, document) for all postings; adjacent threads have adjacent positions. offsets: of documents,
// ends with the number of postings. One block per tile of documents and postings.
template <typename Visit>
__device__ __forceinline__ void visit_balanced(
    const i64* __restrict__ offsets, u64 documents, u64 postings, Visit visit)
{
    __shared__ BalancedTile tile;
    __shared__ u16 owners[BALANCED_TILE];
    tile.load(offsets, documents, postings);
    tile.walk([](u32) {}, [&](u32 place, u32 document) { owners[place] = static_cast<u16>(document); });
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < BALANCED_ITEMS; ++i) {
        const u32 place = threadIdx.x + i * BALANCED_THREADS;
        if (place < tile.postings)
            visit(tile.first_posting + place, tile.first_document + owners[place]);
    }
}

#endif
