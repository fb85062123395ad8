// The heaviest postings of each document. A block sorts pieces of documents in shared memory and keeps the heaviest of
// each; what is left of a document's pieces is merged, a few at a time, until it is in one piece.
#include "counters.cuh"
#include "scan.cuh"
#include "balanced_postings.cuh"

constexpr u32 THREADS = 256;
constexpr u32 ITEMS = 8;  // of a thread
constexpr u32 TILE = THREADS * ITEMS;
constexpr u32 PIECE = TILE / 4;  // postings of a document that are sorted together
constexpr u32 WINDOW = TILE - PIECE;  // positions of which a tile has room for all pieces that begin there
constexpr u32 NO_PIECE = 0xFFFF;
constexpr u32 FAN = 32;  // pieces that are merged at a time

// Ascends as weights fall; 0 and -0 are equal.
__device__ __forceinline__ u64 order_of(double weight)
{
    const u64 bits = static_cast<u64>(__double_as_longlong(__dadd_rn(weight, 0.0)));
    return ~(bits ^ (bits >> 63 != 0 ? ~0ull : 1ull << 63));
}

// How many postings pieces of so many leave of each document, `top` of a piece. report: their sum, what is left in the
// end, and how long the longest document was; zeros.
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

// The document of a position, of those from low to high - 1; the position is not before the first one.
__device__ __forceinline__ u64 find_document(const i64* __restrict__ offsets, u64 low, u64 high, u64 position)
{
    while (high - low > 1) {
        const u64 middle = low + (high - low) / 2;
        if (static_cast<u64>(offsets[middle]) <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// kept: where what is left of each document begins.
extern "C" __global__ void __launch_bounds__(THREADS) sort_pieces(
    const i64* __restrict__ offsets, u64 documents, u64 postings, const u32* __restrict__ terminals,
    const double* __restrict__ weights, const u32* __restrict__ rank, u64 top, const i64* __restrict__ kept,
    u32* __restrict__ kept_terminals, double* __restrict__ kept_weights)
{
    // a gap after each thread's share: no bank conflicts
    __shared__ u64 shared_orders[TILE + THREADS];
    __shared__ u32 shared_tags[TILE + THREADS];
    __shared__ u32 ranks[TILE];
    __shared__ u64 bounds[2];  // of the tile
    __shared__ u64 owners[2];  // documents that postings of the tile can belong to: the first and the last one

    if (threadIdx.x < 64) {
        const u64 position = (static_cast<u64>(blockIdx.x) + threadIdx.x / 32) * WINDOW;
        const u64 document = document_at(offsets, documents, position);
        u64 bound = postings;
        if (position < postings) {  // the first piece that begins there or later
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
    // calls visit(place in the thread's share, place in the tile, document)
    const auto visit_own = [&](auto visit) {
        u64 document = 0;
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            const u32 place = own + i;
            if (place < size) {
                const u64 position = begin + place;
                if (i == 0 || static_cast<u64>(offsets[document + 1]) <= position)
                    document =
                        find_document(offsets, i == 0 ? owners[0] : document + 1, owners[1] + 1, position);
                visit(i, place, document);
            }
        }
    };

    // a posting: its order; in its tag where its piece begins in the tile, and its place there
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
#pragma unroll
    for (u32 turn = 0; turn < ITEMS; ++turn) {
#pragma unroll
        for (u32 i = turn % 2; i + 1 < ITEMS; i += 2) {
            if (precedes(order[i + 1], tag[i + 1], order[i], tag[i])) {
                const u64 other_order = order[i];
                const u32 other_tag = tag[i];
                order[i] = order[i + 1];
                tag[i] = tag[i + 1];
                order[i + 1] = other_order;
                tag[i + 1] = other_tag;
            }
        }
    }
    const auto slot_of = [](u32 place) { return place + place / ITEMS; };
    for (u32 group = 2; group <= THREADS; group *= 2) {  // threads whose shares are merged
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            shared_orders[slot_of(own + i)] = order[i];
            shared_tags[slot_of(own + i)] = tag[i];
        }
        __syncthreads();
        const u32 half = group / 2 * ITEMS;
        const u32 first = threadIdx.x / group * group * ITEMS;
        if (first + half >= size)
            continue;  // nothing in the second half
        const u32 before = own - first;  // postings of both halves that stand before this thread's
        u32 low = before > half ? before - half : 0;
        u32 high = min(before, half);
        while (low < high) {
            const u32 middle = (low + high) / 2;
            const u32 slot_a = slot_of(first + middle);
            const u32 slot_b = slot_of(first + half + before - 1 - middle);
            if (precedes(shared_orders[slot_b], shared_tags[slot_b], shared_orders[slot_a], shared_tags[slot_a]))
                high = middle;
            else
                low = middle + 1;
        }
        u32 a = first + low;
        u32 b = first + half + before - low;
        const u32 a_stop = first + half;
        const u32 b_stop = first + 2 * half;
        u64 order_a = a < a_stop ? shared_orders[slot_of(a)] : 0;
        u64 order_b = b < b_stop ? shared_orders[slot_of(b)] : 0;
        u32 tag_a = a < a_stop ? shared_tags[slot_of(a)] : 0;
        u32 tag_b = b < b_stop ? shared_tags[slot_of(b)] : 0;
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            const bool second = a == a_stop || (b < b_stop && precedes(order_b, tag_b, order_a, tag_a));
            order[i] = second ? order_b : order_a;
            tag[i] = second ? tag_b : tag_a;
            const u32 next = second ? ++b : ++a;
            if (next < (second ? b_stop : a_stop)) {
                const u64 next_order = shared_orders[slot_of(next)];
                const u32 next_tag = shared_tags[slot_of(next)];
                order_a = second ? order_a : next_order;
                tag_a = second ? tag_a : next_tag;
                order_b = second ? next_order : order_b;
                tag_b = second ? next_tag : tag_b;
            }
        }
    }

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

// Merges sorted pieces of so many postings: each posting's place is the number of those that come before it. A thread
// has one posting: few are left of long documents, and each asks all other pieces.
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
    const u64 document = find_document(offsets, owners[0], owners[1] + 1, position);
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
