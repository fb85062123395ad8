// Lists one document of each class of equal ones, and marks the terminals of long documents in rows in global memory.
#include "primitives/counters.cuh"
#include "primitives/scan.cuh"
#include "primitives/segments.cuh"
#include "traverse/spans.cuh"
#include "documents/marked_documents.cuh"

constexpr u32 THREADS = 256;
constexpr u32 LONG_THREADS = 512;

// Ranks documents within each class of equal single symbols. class_sizes: by symbol, zeros. places: by document.
extern "C" __global__ void __launch_bounds__(THREADS) join_equal(
    const i64* __restrict__ root_offsets, const u32* __restrict__ roots, u32 documents, u32* class_sizes, u32* places)
{
    const u64 document = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    u32 symbol = NONE;
    if (document < documents && root_offsets[document + 1] - root_offsets[document] == 1)
        symbol = roots[root_offsets[document]];
    const u32 peers = __match_any_sync(ALL_LANES, symbol);
    const int leader = __ffs(peers) - 1;
    const u32 lane = threadIdx.x % 32;
    u32 first = 0;
    if (symbol != NONE && static_cast<int>(lane) == leader)
        first = atomicAdd(class_sizes + symbol, static_cast<u32>(__popc(peers)));
    first = __shfl_sync(ALL_LANES, first, leader);
    if (document < documents)
        places[document] = symbol == NONE ? 0 : first + __popc(peers & ((1u << lane) - 1));
}

// Lists one document of each class, those with much to mark first, and reserves room for each class's members.
// table_sizes: null top-down. long_roots: minimum roots of a document that gets a row in global memory, if fewer than
// `most_rows` have one. class_starts: by listed document. symbol_starts: by symbol with a class. members: receives the
// first one of each class.
extern "C" __global__ void __launch_bounds__(THREADS) list_classes(
    u32 terminals, const u32* __restrict__ table_sizes, const i64* __restrict__ root_offsets,
    const u32* __restrict__ roots, u32 documents, u32 large_size, u32 long_roots, u32 most_rows,
    const u32* __restrict__ class_sizes, const u32* __restrict__ places, u32* class_starts, u32* symbol_starts,
    u32* members, u32* rows, u32* list, Report* report)
{
    const u64 document = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    const u32 lane = threadIdx.x % 32;
    u64 size = 0;
    u32 symbol = NONE;
    if (document < documents) {
        size = static_cast<u64>(root_offsets[document + 1] - root_offsets[document]);
        if (size == 1) {
            symbol = roots[root_offsets[document]];
            if (places[document] != 0)
                size = 0;
            else if (symbol >= terminals && table_sizes != nullptr)
                size = max(table_sizes[symbol - terminals], 1u);
        }
    }
    const u32 room = size == 0 ? 0 : symbol == NONE ? 1 : class_sizes[symbol];
    const u32 before = lanes_before(room);
    u32 start = 0;
    if (lane == 31 && before + room != 0)
        start = atomicAdd(&report->members, before + room);
    start = __shfl_sync(ALL_LANES, start, 31) + before;
    const bool large = size >= large_size;
    const u32 first_large = take_room(&report->large, large);
    const u32 first_small = take_room(&report->small, size != 0 && !large);
    if (size == 0)
        return;
    list[large ? first_large : documents - 1 - first_small] = static_cast<u32>(document);
    class_starts[document] = start;
    u32 row = NONE;
    members[start] = static_cast<u32>(document);
    if (symbol != NONE)
        symbol_starts[symbol] = start;
    else if (size >= long_roots)
        row = atomicAdd(&report->rows, 1u);
    rows[document] = row < most_rows ? row : NONE;
}

// Marks the roots of long documents in their rows (zeros), first in a block's shared memory. rank: position of a
// terminal's bit; null for its own number.
extern "C" __global__ void __launch_bounds__(LONG_THREADS) mark_long_documents(
    u32 terminals, const i64* __restrict__ table_starts, const u32* __restrict__ table_sizes,
    const u32* __restrict__ table_terminals, const u32* __restrict__ rank, const i64* __restrict__ root_offsets,
    const u32* __restrict__ roots, u64 root_count, u32 documents, u32 long_roots, const u32* __restrict__ rows,
    u32 row_words, u32* row_bits, const Report* report)
{
    extern __shared__ u64 shared[];
    if (report->rows == 0)
        return;
    u32* bits = reinterpret_cast<u32*>(shared);
    const Tables tables{table_starts, table_sizes, table_terminals};
    visit_pieces(root_offsets, root_count, documents, long_roots, rows, [&](u32, u32 row, i64 first, i64 stop) {
        u32* whole = row_bits + static_cast<u64>(row) * row_words;
        for (u32 i = threadIdx.x; i < row_words; i += LONG_THREADS)
            bits[i] = 0;
        __syncthreads();
        const auto direct = [&](u32 symbol) { mark(bits, rank == nullptr ? symbol : rank[symbol]); };
        for (i64 i = first + threadIdx.x / 32 * 32; i < stop; i += LONG_THREADS)
            visit_roots(nullptr, tables, terminals, roots, i, stop, direct, [&](u64 item) {
                direct(table_terminals[item]);
            });
        __syncthreads();
        for (u32 i = threadIdx.x; i < row_words; i += LONG_THREADS)
            if ((bits[i] & ~__ldcg(whole + i)) != 0)
                atomicOr(whole + i, bits[i]);
        __syncthreads();
    });
}
