// Documents whose terminals are marked in bitmaps. Include after counters.cuh, scan.cuh and spans.cuh.
#ifndef POLARS_TADOC_MARKED_DOCUMENTS
#define POLARS_TADOC_MARKED_DOCUMENTS

#ifndef TOP_DOWN
#define TOP_DOWN 0
#endif

// Zeros at the start.
struct Report {
    u64 total;  // size of the result
    u64 written;  // entries of the documents, written or not
    u32 failed;  // whether there was no room, or a count could exceed 32 bits
    u32 members;  // documents for which classes have reserved room
    u32 large;  // documents at the front of the list
    u32 small;  // at its back
    u32 rows;
    u32 taken;  // taken from the list
};

// Rules' tables, unsorted.
struct Tables {
    const i64* starts;
    const u32* sizes;
    const u32* terminals;
};

// The document at an index of the list: large ones from the front, small ones from the back.
__device__ __forceinline__ u32 listed_document(const u32* __restrict__ list, u32 documents, u32 larges, u32 place)
{
    return list[place < larges ? place : documents - 1 - (place - larges)];
}

__device__ __forceinline__ void mark(u32* bits, u32 position)
{
    const u32 bit = 1u << position % 32;
    if ((bits[position / 32] & bit) == 0)  // may miss concurrent marks, which only costs an atomic
        atomicOr(bits + position / 32, bit);
}

// Calls direct(symbol) for terminals among 32 symbols, top-down for rules too, and item(place) for entries of the
// others' tables. Called by a whole warp. waiting: null if long tables are not deferred to the block.
template <typename Direct, typename Item>
__device__ __forceinline__ void visit_roots(
    LongSpans* waiting, const Tables& tables, u32 terminals, const u32* __restrict__ roots, i64 first, i64 stop,
    Direct direct, Item item)
{
    const i64 i = first + threadIdx.x % 32;
    const u32 symbol = i < stop ? roots[i] : NONE;
    u64 start = 0;
    u32 size = 0;
    if (symbol != NONE && (TOP_DOWN || symbol < terminals)) {
        direct(symbol);
    } else if (symbol != NONE) {
        start = static_cast<u64>(tables.starts[symbol - terminals]);
        size = tables.sizes[symbol - terminals];
        if (waiting != nullptr && waiting->take(start, size, 1))
            size = 0;
    }
    __syncwarp();
    if (!TOP_DOWN)
        visit_spans(start, size, Count{1}, [&](u64 place, Count) { item(place); });
}

// Like visit_roots, for a whole document and by a whole block.
template <typename Direct, typename Item>
__device__ __forceinline__ void visit_document(
    LongSpans& waiting, const Tables& tables, u32 terminals, const u32* __restrict__ roots, i64 first, i64 stop,
    Direct direct, Item item)
{
    if (!TOP_DOWN && stop - first == 1 && roots[first] >= terminals) {
        const u32 rule = roots[first] - terminals;
        for (u32 i = threadIdx.x; i < tables.sizes[rule]; i += blockDim.x)
            item(static_cast<u64>(tables.starts[rule]) + i);
        return;
    }
    for (i64 i = first + threadIdx.x / 32 * 32; i < stop; i += blockDim.x)
        visit_roots(&waiting, tables, terminals, roots, i, stop, direct, item);
    if (!TOP_DOWN)
        waiting.visit([&](u64 place, Count) { item(place); });
}

// Calls visit(document, row, first, stop) for pieces of the long documents with a row. Called by whole blocks, which
// process as many roots at a time as a long document has at least.
template <typename Visit>
__device__ __forceinline__ void visit_pieces(
    const i64* __restrict__ root_offsets, u64 root_count, u32 documents, u32 long_roots, const u32* __restrict__ rows,
    Visit visit)
{
    for (u64 begin = static_cast<u64>(blockIdx.x) * long_roots; begin < root_count;
         begin += static_cast<u64>(gridDim.x) * long_roots) {
        const i64 end = static_cast<i64>(min(begin + long_roots, root_count));
        const u32 first = find_owner(root_offsets, 0u, documents, begin);
        const u32 last = find_owner(root_offsets, 0u, documents, static_cast<u64>(end) - 1);
        // none between them is long
        for (u32 turn = 0; turn < 1 + (first != last); ++turn) {
            const u32 document = turn == 0 ? first : last;
            const i64 start = root_offsets[document];
            const i64 stop = root_offsets[document + 1];
            if (stop - start >= long_roots && rows[document] != NONE)
                visit(document, rows[document], max(start, static_cast<i64>(begin)), min(stop, end));
        }
    }
}

#endif
