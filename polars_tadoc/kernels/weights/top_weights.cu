// The postings of highest weight of each document. A block sorts pieces of documents in shared memory and keeps the top
// of each; the rest of a document's pieces is merged, a few at a time, until one piece is left.
#include "primitives/counters.cuh"
#include "primitives/segments.cuh"
#include "primitives/scan.cuh"
#include "weights/balanced_postings.cuh"
#include "primitives/merge_sort.cuh"

// Postings per block; per sorted piece of a document; pieces merged at a time: defined in weights_cuda.py.
#ifndef TILE
#define TILE 2048u
#define PIECE 512u
#define FAN 32u
#endif

constexpr u32 THREADS = 256;
constexpr u32 ITEMS = TILE / THREADS;  // per thread
constexpr u32 WINDOW = TILE - PIECE;  // positions at which pieces may begin so that a tile has room for all of them
constexpr u32 NO_PIECE = 0xFFFF;

// Ascends as weights descend; 0 and -0 are equal.
__device__ __forceinline__ u64 order_of(double weight)
{
    const u64 bits = static_cast<u64>(__double_as_longlong(__dadd_rn(weight, 0.0)));
    return ~(bits ^ (bits >> 63 != 0 ? ~0ull : 1ull << 63));
}

// Number of postings that remain of each document, `top` per piece. report: their sum, the final number, and the length
// of the longest document; zeros.
extern "C" __global__ void __launch_bounds__(THREADS) size_pieces(
    const i64* __restrict__ offsets, u64 documents, u64 piece, u64 top, u64* sizes, u64* report)
{
    const u64 document = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    u64 length = 0;
    u64 size = 0;
    u64 last = 0;
    if (document < documents) {
        length = static_cast<u64>(offsets[document + 1] - offsets[document]);
        size = length / piece * min(piece, top) + min(length % piece, top);
        last = min(length, top);
        sizes[document] = size;
    }
    size = lanes_sum(size);
    last = lanes_sum(last);
    for (u32 step = 16; step > 0; step /= 2)
        length = max(length, __shfl_xor_sync(ALL_LANES, length, step));
    if (threadIdx.x % 32 == 0 && size != 0) {
        atomicAdd(report, size);
        atomicAdd(report + 1, last);
        atomicMax(report + 2, length);
    }
}

// kept: start of each document's remaining postings.
extern "C" __global__ void __launch_bounds__(THREADS) sort_pieces(
    const i64* __restrict__ offsets, u64 documents, u64 postings, const u32* __restrict__ terminals,
    const double* __restrict__ weights, const u32* __restrict__ rank, u64 top, const i64* __restrict__ kept,
    u32* __restrict__ kept_terminals, double* __restrict__ kept_weights)
{
    __shared__ SharedPairs<THREADS, ITEMS> shared;
    __shared__ u32 ranks[TILE];
    __shared__ u64 bounds[2];  // bounds of the tile
    __shared__ u64 owners[2];  // documents that postings of the tile can belong to: the first and the last one

    if (threadIdx.x < 64) {
        const u64 position = (static_cast<u64>(blockIdx.x) + threadIdx.x / 32) * WINDOW;
        const u64 document = document_at(offsets, documents, position);
        u64 bound = postings;
        if (position < postings) {  // the first piece that begins here or later
            const u64 start = static_cast<u64>(offsets[document]);
            bound = min(
                start + (position - start + PIECE - 1) / PIECE * PIECE, static_cast<u64>(offsets[document + 1]));
        }
        if (threadIdx.x % 32 == 0) {
            bounds[threadIdx.x / 32] = bound;
            owners[threadIdx.x / 32] = document;
        }
    }
    __syncthreads();
    const u64 begin = bounds[0];
    const u32 size = static_cast<u32>(bounds[1] - begin);
    const u32 own = threadIdx.x * ITEMS;
    // calls visit(index in the thread's share, index in the tile, document)
    const auto visit_own = [&](auto visit) {
        u64 document = 0;
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            const u32 place = own + i;
            if (place < size) {
                const u64 position = begin + place;
                if (i == 0 || static_cast<u64>(offsets[document + 1]) <= position)
                    document = find_owner(offsets, i == 0 ? owners[0] : document + 1, owners[1] + 1, position);
                visit(i, place, document);
            }
        }
    };

    // for a posting: its sort key; in its tag the start of its piece in the tile, and its index there
    u64 order[ITEMS];
    u32 tag[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        order[i] = 0;
        tag[i] = NO_PIECE << 16 | (own + i);
        ranks[own + i] = 0;
    }
    visit_own([&](u32 i, u32 place, u64 document) {
        const u64 position = begin + place;
        const u64 start = static_cast<u64>(offsets[document]);
        const u32 terminal = terminals[position];
        order[i] = order_of(weights[position]);
        tag[i] = static_cast<u32>(start + (position - start) / PIECE * PIECE - begin) << 16 | place;
        ranks[place] = rank == nullptr ? terminal : rank[terminal];
    });
    __syncthreads();

    const auto precedes = [&](u64 order_a, u32 tag_a, u64 order_b, u32 tag_b) {
        if (tag_a >> 16 != tag_b >> 16)
            return tag_a < tag_b;
        if (order_a != order_b)
            return order_a < order_b;
        const u32 rank_a = ranks[tag_a & 0xFFFF];
        const u32 rank_b = ranks[tag_b & 0xFFFF];
        return rank_a != rank_b ? rank_a < rank_b : tag_a < tag_b;
    };
    sort_block(order, tag, size, shared, precedes);

    visit_own([&](u32 i, u32 place, u64 document) {
        const u32 piece = tag[i] >> 16;
        if (place - piece < top) {
            const u64 source = begin + (tag[i] & 0xFFFF);
            const u64 number = (begin + piece - static_cast<u64>(offsets[document])) / PIECE;
            const u64 target =
                static_cast<u64>(kept[document]) + number * min(static_cast<u64>(PIECE), top) + (place - piece);
            kept_terminals[target] = terminals[source];
            kept_weights[target] = weights[source];
        }
    });
}

// Merges sorted pieces of a given size: a posting's position is the number of postings that precede it. One posting per
// thread: few remain of long documents, and each searches all other pieces.
extern "C" __global__ void __launch_bounds__(THREADS) merge_pieces(
    const i64* __restrict__ offsets, u64 documents, u64 postings, const u32* __restrict__ terminals,
    const double* __restrict__ weights, const u32* __restrict__ rank, u64 length, u64 top,
    const i64* __restrict__ kept, u32* __restrict__ kept_terminals, double* __restrict__ kept_weights)
{
    __shared__ u64 owners[2];  // documents of the block's first and last posting
    const u64 begin = static_cast<u64>(blockIdx.x) * THREADS;
    const u64 position = begin + threadIdx.x;
    if (threadIdx.x < 64) {
        const u64 document =
            document_at(offsets, documents, threadIdx.x < 32 ? begin : min(begin + THREADS, postings) - 1);
        if (threadIdx.x % 32 == 0)
            owners[threadIdx.x / 32] = document;
    }
    __syncthreads();
    if (position >= postings)
        return;
    const u64 document = find_owner(offsets, owners[0], owners[1] + 1, position);
    const u64 start = static_cast<u64>(offsets[document]);
    const u64 size = static_cast<u64>(offsets[document + 1]) - start;
    const u64 piece = (position - start) / length;
    const u64 group = piece / FAN;
    const u32 terminal = terminals[position];
    const double weight = weights[position];
    const u64 own_order = order_of(weight);
    const u32 own_rank = rank == nullptr ? terminal : rank[terminal];
    u64 place = position - start - piece * length;
    for (u64 other = group * FAN; other < (group + 1) * FAN && other * length < size && place < top; ++other) {
        if (other == piece)
            continue;
        u64 low = other * length;
        u64 high = min(low + length, size);
        const u64 first = low;
        while (low < high) {
            const u64 middle = low + (high - low) / 2;
            const u64 order = order_of(weights[start + middle]);
            bool before = order < own_order;
            if (order == own_order) {
                const u32 its_terminal = terminals[start + middle];
                const u32 its_rank = rank == nullptr ? its_terminal : rank[its_terminal];
                before = its_rank != own_rank ? its_rank < own_rank : other < piece;
            }
            if (before)
                low = middle + 1;
            else
                high = middle;
        }
        place += low - first;
    }
    if (place < top) {
        const u64 target = static_cast<u64>(kept[document]) + group * min(length * FAN, top) + place;
        kept_terminals[target] = terminal;
        kept_weights[target] = weight;
    }
}
