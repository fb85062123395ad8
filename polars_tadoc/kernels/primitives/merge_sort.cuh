// Sorts pairs of a sort key (order) and a tag in a block: each thread sorts its share, then shares are merged pairwise
// (Green, McColl and Bader, GPU Merge Path, ICS 2012). Include after counters.cuh.
#ifndef POLARS_TADOC_MERGE_SORT
#define POLARS_TADOC_MERGE_SORT

// Shared memory for a block's pairs, with a gap after each thread's share to avoid bank conflicts.
template <u32 THREADS, u32 ITEMS>
struct SharedPairs {
    u64 orders[THREADS * (ITEMS + 1)];
    u32 tags[THREADS * (ITEMS + 1)];

    static __device__ __forceinline__ u32 slot_of(u32 place)
    {
        return place + place / ITEMS;
    }
};

// Sorts a block's pairs, ITEMS per thread, of which the first `size` are valid: the others must sort last.
// precedes(order, tag, other's order, other's tag) tells whether a pair comes before another.
template <u32 THREADS, u32 ITEMS, typename Precedes>
__device__ __forceinline__ void sort_block(
    u64 (&order)[ITEMS], u32 (&tag)[ITEMS], u32 size, SharedPairs<THREADS, ITEMS>& shared, const Precedes& precedes)
{
    const u32 own = threadIdx.x * ITEMS;
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
    for (u32 group = 2; group <= THREADS; group *= 2) {  // threads whose shares are merged
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            shared.orders[shared.slot_of(own + i)] = order[i];
            shared.tags[shared.slot_of(own + i)] = tag[i];
        }
        __syncthreads();
        const u32 half = group / 2 * ITEMS;
        const u32 first = threadIdx.x / group * group * ITEMS;
        if (first + half >= size)
            continue;  // the second half is empty
        const u32 before = own - first;  // pairs of both halves that precede this thread's
        u32 low = before > half ? before - half : 0;
        u32 high = min(before, half);
        while (low < high) {
            const u32 middle = (low + high) / 2;
            const u32 slot_a = shared.slot_of(first + middle);
            const u32 slot_b = shared.slot_of(first + half + before - 1 - middle);
            if (precedes(shared.orders[slot_b], shared.tags[slot_b], shared.orders[slot_a], shared.tags[slot_a]))
                high = middle;
            else
                low = middle + 1;
        }
        u32 a = first + low;
        u32 b = first + half + before - low;
        const u32 a_stop = first + half;
        const u32 b_stop = first + 2 * half;
        u64 order_a = a < a_stop ? shared.orders[shared.slot_of(a)] : 0;
        u64 order_b = b < b_stop ? shared.orders[shared.slot_of(b)] : 0;
        u32 tag_a = a < a_stop ? shared.tags[shared.slot_of(a)] : 0;
        u32 tag_b = b < b_stop ? shared.tags[shared.slot_of(b)] : 0;
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            const bool second = a == a_stop || (b < b_stop && precedes(order_b, tag_b, order_a, tag_a));
            order[i] = second ? order_b : order_a;
            tag[i] = second ? tag_b : tag_a;
            const u32 next = second ? ++b : ++a;
            if (next < (second ? b_stop : a_stop)) {
                const u64 next_order = shared.orders[shared.slot_of(next)];
                const u32 next_tag = shared.tags[shared.slot_of(next)];
                order_a = second ? order_a : next_order;
                tag_a = second ? tag_a : next_tag;
                order_b = second ? next_order : order_b;
                tag_b = second ? next_tag : tag_b;
            }
        }
    }
}

#endif
