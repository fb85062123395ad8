// Counts of terminals by document, from the tables of the rules among their roots.
//
// A document's terminals are marked in a bitmap, so that the number of bits before a terminal's is its index in the
// document: they are counted without a hash table and are in order of rank. A second pass sorts them by count. Equal
// documents of one symbol are counted once.
#include "primitives/counters.cuh"
#include "primitives/bitmap.cuh"
#include "primitives/scan.cuh"
#include "primitives/segments.cuh"
#include "traverse/spans.cuh"
#include "documents/marked_documents.cuh"
#include "weights/balanced_postings.cuh"

constexpr u32 COUNT_THREADS = 512;
constexpr u32 THREADS = 256;
constexpr u32 WARPS = THREADS / 32;
constexpr u32 BINS = THREADS;  // counts of BINS - 1 and more share the first one
constexpr u32 ITEMS = 8;  // per thread while terminals are sorted

// Terminals of documents, as positions of their bits, and their counts. entry_starts, entry_sizes: of each document.
struct Entries {
    u32* positions;
    u32* counts;
    u64 most;
};

// Ranks of a bitmap's words, computed by a whole block; returns the number of all bits. sums: shared, one per warp.
// ranks may be read afterwards.
__device__ __forceinline__ u32 rank_words(const u32* bits, u32* ranks, u32 words, u32* sums)
{
    const u32 warps = blockDim.x / 32;
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    const u32 own_words = (words + blockDim.x - 1) / blockDim.x * 32;
    const u32 begin = min(warp * own_words, words);
    const u32 end = min(begin + own_words, words);
    u32 own = 0;
    for (u32 i = begin + lane; i < end; i += 32)
        own += __popc(bits[i]);
    own = lanes_sum(own);
    if (lane == 0)
        sums[warp] = own;
    __syncthreads();
    u32 before = 0;
    u32 all = 0;
    for (u32 i = 0; i < warps; ++i) {
        before += i < warp ? sums[i] : 0;
        all += sums[i];
    }
    for (u32 base = begin; base < end; base += 32) {
        const u32 count = base + lane < end ? __popc(bits[base + lane]) : 0;
        const u32 lower = lanes_before(count);
        if (base + lane < end)
            ranks[base + lane] = before + lower;
        before += __shfl_sync(ALL_LANES, lower + count, 31);
    }
    __syncthreads();
    return all;
}

// Writes the positions of all bits, by a whole block.
__device__ __forceinline__ void write_positions(const u32* bits, const u32* ranks, u32 words, u32* positions)
{
    for (u32 i = threadIdx.x; i < words; i += blockDim.x) {
        u32 place = ranks[i];
        for (u32 left = bits[i]; left != 0; left &= left - 1)
            positions[place++] = 32 * i + static_cast<u32>(__ffs(left)) - 1;
    }
}

// Reserves entries, with counts of zero, for the terminals of documents with a row. row_ranks: of the rows' words.
// most_count: in any table.
extern "C" __global__ void __launch_bounds__(COUNT_THREADS) rank_long_documents(
    const i64* __restrict__ root_offsets, u32 documents, u32 most_count, const u32* __restrict__ rows,
    const u32* __restrict__ list, u32 row_words, const u32* __restrict__ row_bits, u32* row_ranks, u32* positions,
    u32* counts, u64 most_entries, u64* entry_starts, u32* entry_sizes, Report* report)
{
    __shared__ u32 sums[COUNT_THREADS / 32];
    __shared__ u64 start;
    const u32 larges = report->rows == 0 ? 0 : report->large;
    for (u32 i = blockIdx.x; i < larges; i += gridDim.x) {
        const u32 document = listed_document(list, documents, larges, i);
        if (rows[document] == NONE)
            continue;
        const u32* bits = row_bits + static_cast<u64>(rows[document]) * row_words;
        u32* ranks = row_ranks + static_cast<u64>(rows[document]) * row_words;
        const u32 size = rank_words(bits, ranks, row_words, sums);
        if (threadIdx.x == 0) {
            start = atomicAdd(&report->written, static_cast<u64>(size));
            entry_starts[document] = start;
            entry_sizes[document] = size;
            const u64 root_count = static_cast<u64>(root_offsets[document + 1] - root_offsets[document]);
            if (root_count >> 32 != 0 || root_count * most_count >> 32 != 0 || start + size > most_entries)
                report->failed = 1;
        }
        __syncthreads();
        if (start + size <= most_entries) {
            write_positions(bits, ranks, row_words, positions + start);
            for (u32 k = threadIdx.x; k < size; k += COUNT_THREADS)
                counts[start + k] = 0;
        }
        __syncthreads();
    }
}

// Counts the terminals of documents with a row. held: number of first terminals that a block counts in shared memory.
extern "C" __global__ void __launch_bounds__(COUNT_THREADS) count_long_documents(
    u32 terminals, const i64* __restrict__ table_starts, const u32* __restrict__ table_sizes,
    const u32* __restrict__ table_terminals, const u32* __restrict__ table_counts, const u32* __restrict__ rank, u32 held,
    const u32* __restrict__ row_ranks, u32* counts, const u64* __restrict__ entry_starts,
    const i64* __restrict__ root_offsets, const u32* __restrict__ roots, u64 root_count, u32 documents, u32 long_roots,
    const u32* __restrict__ rows, u32 row_words, const u32* __restrict__ row_bits, const Report* report)
{
    extern __shared__ u64 shared[];
    if (report->rows == 0 || report->failed != 0)
        return;
    u32* hot = reinterpret_cast<u32*>(shared);
    const Tables tables{table_starts, table_sizes, table_terminals};
    visit_pieces(root_offsets, root_count, documents, long_roots, rows, [&](u32 document, u32 row, i64 first, i64 stop) {
        const u32* bits = row_bits + static_cast<u64>(row) * row_words;
        const u32* ranks = row_ranks + static_cast<u64>(row) * row_words;
        u32* own = counts + entry_starts[document];
        const auto add_to_whole = [&](u32 terminal, u32 amount) {
            atomicAdd(own + rank_before(bits, ranks, rank == nullptr ? terminal : rank[terminal]), amount);
        };
        const auto add = [&](u32 terminal, u32 amount) {
            if (terminal < held)
                atomicAdd(hot + terminal, amount);
            else
                add_to_whole(terminal, amount);
        };
        for (u32 i = threadIdx.x; i < held; i += COUNT_THREADS)
            hot[i] = 0;
        __syncthreads();
        for (i64 i = first + threadIdx.x / 32 * 32; i < stop; i += COUNT_THREADS)
            visit_roots(
                nullptr, tables, terminals, roots, i, stop, [&](u32 symbol) { add(symbol, 1); },
                [&](u64 item) { add(table_terminals[item], table_counts[item]); });
        __syncthreads();
        for (u32 i = threadIdx.x; i < held; i += COUNT_THREADS)
            if (hot[i] != 0)
                add_to_whole(i, hot[i]);
        __syncthreads();
    });
}

// Counts the terminals of all listed documents without a row. held: counts that fit in shared memory with the bitmap
// and its ranks; those of a document with more are in global memory.
extern "C" __global__ void __launch_bounds__(COUNT_THREADS) count_marked_documents(
    u32 terminals, const i64* __restrict__ table_starts, const u32* __restrict__ table_sizes,
    const u32* __restrict__ table_terminals, const u32* __restrict__ table_counts, u32 most_count,
    const u32* __restrict__ rank, const i64* __restrict__ root_offsets, const u32* __restrict__ roots, u32 documents,
    const u32* __restrict__ rows, const u32* __restrict__ list, u32 row_words, u32 held, u32* positions, u32* counts,
    u64 most_entries, u64* entry_starts, u32* entry_sizes, Report* report)
{
    extern __shared__ u64 shared[];
    __shared__ LongSpans waiting;
    __shared__ u32 sums[COUNT_THREADS / 32];
    __shared__ u32 next;
    __shared__ u64 start;
    u32* bits = reinterpret_cast<u32*>(shared);
    u32* ranks = bits + row_words;
    u32* held_counts = ranks + row_words;
    const Tables tables{table_starts, table_sizes, table_terminals};
    const u32 larges = report->large;
    const u32 listed = larges + report->small;
    if (threadIdx.x == 0)
        waiting.clear();
    while (true) {
        __syncthreads();
        if (threadIdx.x == 0)
            next = atomicAdd(&report->taken, 1u);
        __syncthreads();
        if (next >= listed)
            return;
        const u32 document = listed_document(list, documents, larges, next);
        if (rows[document] != NONE)
            continue;
        for (u32 i = threadIdx.x; i < row_words; i += COUNT_THREADS)
            bits[i] = 0;
        __syncthreads();
        const i64 first = root_offsets[document];
        const i64 stop = root_offsets[document + 1];
        const auto position_of = [&](u32 terminal) { return rank == nullptr ? terminal : rank[terminal]; };
        visit_document(
            waiting, tables, terminals, roots, first, stop, [&](u32 symbol) { mark(bits, position_of(symbol)); },
            [&](u64 item) { mark(bits, position_of(table_terminals[item])); });
        __syncthreads();
        const u32 size = rank_words(bits, ranks, row_words, sums);
        if (threadIdx.x == 0) {
            start = atomicAdd(&report->written, static_cast<u64>(size));
            entry_starts[document] = start;
            entry_sizes[document] = size;
            const u64 root_count = static_cast<u64>(stop - first);
            if (root_count >> 32 != 0 || root_count * most_count >> 32 != 0 || start + size > most_entries)
                report->failed = 1;
        }
        __syncthreads();
        if (start + size > most_entries)
            continue;
        const auto count = [&](u32* own) {
            for (u32 k = threadIdx.x; k < size; k += COUNT_THREADS)
                own[k] = 0;
            __syncthreads();
            const auto add = [&](u32 terminal, u32 amount) {
                const u32 position = position_of(terminal);
                atomicAdd(
                    own + ranks[position / 32] + __popc(bits[position / 32] & ((1u << position % 32) - 1)), amount);
            };
            visit_document(
                waiting, tables, terminals, roots, first, stop, [&](u32 symbol) { add(symbol, 1); },
                [&](u64 item) { add(table_terminals[item], table_counts[item]); });
        };
        if (size <= held) {
            count(held_counts);
            __syncthreads();
            for (u32 k = threadIdx.x; k < size; k += COUNT_THREADS)
                counts[start + k] = held_counts[k];
        } else {
            count(counts + start);
        }
        write_positions(bits, ranks, row_words, positions + start);
    }
}

// The document that was counted for a document with terminals.
__device__ __forceinline__ u32 counted_for(
    u32 document, const i64* __restrict__ root_offsets, const u32* __restrict__ roots, const u32* __restrict__ places,
    const u32* __restrict__ symbol_starts, const u32* __restrict__ members)
{
    return places[document] == 0 ? document : members[symbol_starts[roots[root_offsets[document]]]];
}

// Sizes of all documents, at most `top`.
extern "C" __global__ void __launch_bounds__(THREADS) size_marked_documents(
    const i64* __restrict__ root_offsets, const u32* __restrict__ roots, u32 documents, u32 top,
    const u32* __restrict__ places, const u32* __restrict__ symbol_starts, const u32* __restrict__ members,
    const u32* __restrict__ entry_sizes, u32* sizes, Report* report)
{
    const u64 document = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    u64 size = 0;
    if (document < documents) {
        if (root_offsets[document] != root_offsets[document + 1])
            size = min(
                entry_sizes[counted_for(
                    static_cast<u32>(document), root_offsets, roots, places, symbol_starts, members)],
                top);
        sizes[document] = static_cast<u32>(size);
    }
    size = lanes_sum(size);
    if (threadIdx.x % 32 == 0 && size != 0)
        atomicAdd(&report->total, size);
}

// Writes each listed document's terminals by descending count, then rank, up to its room. offsets: of all documents.
// by_rank: terminal of each bit, or null. positions, counts: their first entries are overwritten.
extern "C" __global__ void __launch_bounds__(THREADS) order_marked_documents(
    u32 documents, const u32* __restrict__ list, const Report* __restrict__ report, u32* positions, u32* counts,
    const u64* __restrict__ entry_starts, const u32* __restrict__ entry_sizes, const i64* __restrict__ offsets,
    const u32* __restrict__ by_rank, u32* result_terminals, u64* result_counts)
{
    __shared__ u32 places[BINS];  // of the next one with such a count
    __shared__ u32 warp_counts[WARPS][BINS];
    __shared__ u32 sums[WARPS];
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    const u32 larges = report->large;
    const u32 listed = larges + report->small;
    const auto bin_of = [](u32 count) { return count >= BINS - 1 ? 0 : BINS - 1 - count; };
    for (u32 turn = blockIdx.x; turn < listed; turn += gridDim.x) {
        const u32 document = listed_document(list, documents, larges, turn);
        const u32 size = entry_sizes[document];
        u32* own_positions = positions + entry_starts[document];
        u32* own_counts = counts + entry_starts[document];
        const u64 target = static_cast<u64>(offsets[document]);
        const u32 room = static_cast<u32>(offsets[document + 1] - offsets[document]);
        const auto write = [&](u32 place, u32 position, u32 count) {
            if (place < room) {
                result_terminals[target + place] = by_rank == nullptr ? position : by_rank[position];
                result_counts[target + place] = count;
            }
        };
        places[threadIdx.x] = 0;
        __syncthreads();
        for (u32 base = 32 * warp; base < size; base += THREADS) {
            const u32 bin = base + lane < size ? bin_of(own_counts[base + lane]) : NONE;
            const u32 peers = __match_any_sync(ALL_LANES, bin);
            if (bin != NONE && (peers & ((1u << lane) - 1)) == 0)
                atomicAdd(places + bin, static_cast<u32>(__popc(peers)));
        }
        __syncthreads();
        const u32 own = places[threadIdx.x];
        const u32 lower = lanes_before(own);
        if (lane == 31)
            sums[warp] = lower + own;
        __syncthreads();
        u32 start = lower;
        for (u32 i = 0; i < warp; ++i)
            start += sums[i];
        places[threadIdx.x] = start;
        __syncthreads();
        const u32 high = places[1];  // terminals whose counts share the first bin

        for (u32 base = 0; base < size;) {
            const u32 items = min(ITEMS, (size - base + THREADS - 1) / THREADS);
            const u32 begin = base + 32 * items * warp + lane;
            for (u32 bin = lane; bin < BINS; bin += 32)
                warp_counts[warp][bin] = 0;
            __syncwarp();
            u32 position[ITEMS];
            u32 count[ITEMS];
            u32 place[ITEMS];
#pragma unroll
            for (u32 i = 0; i < ITEMS; ++i) {
                if (i >= items)
                    break;
                const bool has = begin + 32 * i < size;
                position[i] = has ? own_positions[begin + 32 * i] : 0;
                count[i] = has ? own_counts[begin + 32 * i] : 0;
                const u32 bin = has ? bin_of(count[i]) : NONE;
                const u32 peers = __match_any_sync(ALL_LANES, bin);
                const u32 leader = static_cast<u32>(__ffs(peers)) - 1;
                u32 before = 0;
                if (has && lane == leader) {
                    before = warp_counts[warp][bin];
                    warp_counts[warp][bin] = before + __popc(peers);
                }
                place[i] = __shfl_sync(ALL_LANES, before, static_cast<int>(leader)) + __popc(peers & ((1u << lane) - 1));
                __syncwarp();
            }
            __syncthreads();
            u32 next = places[threadIdx.x];
            for (u32 w = 0; w < WARPS; ++w) {
                const u32 those = warp_counts[w][threadIdx.x];
                warp_counts[w][threadIdx.x] = next;
                next += those;
            }
            places[threadIdx.x] = next;
            __syncthreads();
#pragma unroll
            for (u32 i = 0; i < ITEMS; ++i) {
                if (i >= items)
                    break;
                if (begin + 32 * i < size) {
                    const u32 bin = bin_of(count[i]);
                    const u32 to = warp_counts[warp][bin] + place[i];
                    if (bin != 0) {
                        write(to, position[i], count[i]);
                    } else {  // only positions that have been read
                        own_positions[to] = position[i];
                        own_counts[to] = count[i];
                    }
                }
            }
            __syncthreads();
            base += THREADS * items;
        }
        for (u32 i = threadIdx.x; i < high; i += THREADS) {
            const u32 count = own_counts[i];
            u32 place = 0;
            for (u32 other = 0; other < high; ++other)
                place += own_counts[other] > count || (own_counts[other] == count && other < i);
            write(place, own_positions[i], count);
        }
        __syncthreads();
    }
}

// Writes each document's terminals by rank, from the document that was counted for it. by_rank: terminal of each bit,
// or null.
extern "C" __global__ void __launch_bounds__(BALANCED_THREADS) gather_entries(
    const i64* __restrict__ root_offsets, const u32* __restrict__ roots, u32 documents,
    const u32* __restrict__ places, const u32* __restrict__ symbol_starts, const u32* __restrict__ members,
    const u32* __restrict__ positions, const u32* __restrict__ counts, const u64* __restrict__ entry_starts,
    const i64* __restrict__ offsets, u64 total, const u32* __restrict__ by_rank, u32* result_terminals,
    u64* result_counts)
{
    visit_balanced(offsets, documents, total, [&](u64 position, u64 document) {
        const u32 source =
            counted_for(static_cast<u32>(document), root_offsets, roots, places, symbol_starts, members);
        const u64 entry = entry_starts[source] + (position - static_cast<u64>(offsets[document]));
        result_terminals[position] = by_rank == nullptr ? positions[entry] : by_rank[positions[entry]];
        result_counts[position] = counts[entry];
    });
}

// Copies to each document that was not counted the result of the one counted for it. A warp's positions of the result
// are adjacent.
extern "C" __global__ void __launch_bounds__(THREADS) copy_equal_documents(
    const i64* __restrict__ root_offsets, const u32* __restrict__ roots, u32 documents,
    const u32* __restrict__ places, const u32* __restrict__ symbol_starts, const u32* __restrict__ members,
    const i64* __restrict__ offsets, u64 total, u32* terminals, u64* counts)
{
    visit_owned<THREADS, ITEMS>(offsets, documents, 0, total, [&](u64 position, u32 document) {
        const u32 source = counted_for(document, root_offsets, roots, places, symbol_starts, members);
        if (source != document) {
            const u64 from = position - static_cast<u64>(offsets[document]) + static_cast<u64>(offsets[source]);
            terminals[position] = terminals[from];
            counts[position] = counts[from];
        }
    });
}
