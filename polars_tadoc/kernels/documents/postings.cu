// The documents that contain each terminal, without counts.
//
// A block marks a document's terminals in a bitmap in shared memory: top-down from the roots through the rules, or
// bottom-up from the tables of the rules among its roots. Marked terminals append the document to their lists in any
// order; a bitmap of documents sorts each list. Equal documents of one symbol are marked once.
#include "primitives/counters.cuh"
#include "primitives/scan.cuh"
#include "primitives/segments.cuh"
#include "traverse/spans.cuh"
#include "documents/marked_documents.cuh"

constexpr u32 THREADS = 256;
constexpr u32 WARPS = THREADS / 32;
constexpr u32 ORDER_THREADS = 128;
constexpr u32 ORDER_WARPS = ORDER_THREADS / 32;
constexpr u32 CHUNK = 32;  // terminals of one document that are stored together

// Writes each listed document's terminals in chunks. pairs: room for chunks of terminals, padded with NONE; owners:
// each chunk's document. sizes: by terminal, number of documents: zeros.
extern "C" __global__ void __launch_bounds__(THREADS) list_terminals(
    u32 terminals, const i64* __restrict__ rule_offsets, const u32* __restrict__ symbols,
    const i64* __restrict__ level_offsets, u32 levels, const i64* __restrict__ table_starts,
    const u32* __restrict__ table_sizes, const u32* __restrict__ table_terminals,
    const i64* __restrict__ root_offsets, const u32* __restrict__ roots, u32 documents,
    const u32* __restrict__ class_sizes, const u32* __restrict__ places, const u32* __restrict__ symbol_starts,
    u32* members, const u32* __restrict__ rows, const u32* __restrict__ list, u32 row_words,
    const u32* __restrict__ row_bits, u32 most_chunks, u32* pairs, u32* owners, u32* sizes, Report* report)
{
    extern __shared__ u64 shared[];
    __shared__ LongSpans waiting;
    __shared__ u32 next;
    __shared__ u32 found;
    __shared__ u64 start;

    // all members of classes have reserved room by now
    for (u64 document = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x; document < documents;
         document += static_cast<u64>(gridDim.x) * THREADS)
        if (root_offsets[document + 1] - root_offsets[document] == 1)
            members[symbol_starts[roots[root_offsets[document]]] + places[document]] = static_cast<u32>(document);

    u32* bits = reinterpret_cast<u32*>(shared);
    const Tables tables{table_starts, table_sizes, table_terminals};
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    const u32 words = (terminals + 31) / 32;
    const u32 last_bits = terminals % 32 == 0 ? ALL_LANES : (1u << terminals % 32) - 1;
    const u32 larges = report->large;
    const u32 listed = larges + report->small;
    if (threadIdx.x == 0)
        waiting.clear();
    while (true) {
        __syncthreads();
        if (threadIdx.x == 0) {
            next = atomicAdd(&report->taken, 1u);
            found = 0;
        }
        __syncthreads();
        if (next >= listed)
            return;
        const u32 document = listed_document(list, documents, larges, next);
        const u32 row = rows[document];
        for (u32 i = threadIdx.x; i < row_words; i += THREADS)
            bits[i] = row == NONE ? 0 : row_bits[static_cast<u64>(row) * row_words + i];
        __syncthreads();
        const i64 root_first = root_offsets[document];
        const i64 root_stop = root_offsets[document + 1];
        if (row == NONE)
            visit_document(
                waiting, tables, terminals, roots, root_first, root_stop, [&](u32 symbol) { mark(bits, symbol); },
                [&](u64 item) { mark(bits, table_terminals[item]); });

        for (u32 level = TOP_DOWN ? levels : 0; level-- > 0;) {
            __syncthreads();
            const u32 level_first = terminals + static_cast<u32>(level_offsets[level]);
            const u32 level_stop = terminals + static_cast<u32>(level_offsets[level + 1]);
            const auto give = [&](u64 item, Count) { mark(bits, symbols[item]); };
            for (u32 first = level_first / 32 + 32 * warp; 32 * first < level_stop; first += THREADS) {
                const u32 word = first + lane;
                u32 left = 32 * word < level_stop ? *const_cast<volatile u32*>(bits + word) : 0;
                if (left != 0 && 32 * word < level_first)
                    left &= ALL_LANES << (level_first - 32 * word);
                if (left != 0 && level_stop - 32 * word < 32)
                    left &= (1u << (level_stop - 32 * word)) - 1;
                while (__any_sync(ALL_LANES, left != 0)) {
                    u64 begin = 0;
                    u32 size = 0;
                    if (left != 0) {
                        const u32 rule = 32 * word + static_cast<u32>(__ffs(left)) - 1 - terminals;
                        left &= left - 1;
                        begin = static_cast<u64>(rule_offsets[rule]);
                        size = static_cast<u32>(rule_offsets[rule + 1] - rule_offsets[rule]);
                        if (waiting.take(begin, size, 1))
                            size = 0;
                    }
                    __syncwarp();
                    visit_spans(begin, size, Count{1}, give);
                }
            }
            waiting.visit(give);
        }
        __syncthreads();

        if (TOP_DOWN && threadIdx.x == 0)  // the last word may have bits of rules
            bits[words - 1] &= last_bits;
        if (TOP_DOWN)
            __syncthreads();
        u32 own = 0;
        for (u32 i = threadIdx.x; i < words; i += THREADS)
            own += __popc(bits[i]);
        own = lanes_sum(own);
        if (lane == 0 && own != 0)
            atomicAdd(&found, own);
        __syncthreads();
        const u32 size = found;
        const u32 chunks = (size + CHUNK - 1) / CHUNK;
        const u32 class_size = root_stop - root_first == 1 ? class_sizes[roots[root_first]] : 1;
        __syncthreads();
        if (threadIdx.x == 0) {
            start = atomicAdd(&report->written, static_cast<u64>(chunks));
            found = 0;
            atomicAdd(&report->total, static_cast<u64>(size) * class_size);
        }
        __syncthreads();
        if (start + chunks > most_chunks)
            continue;
        for (u32 i = threadIdx.x; i < chunks; i += THREADS)
            owners[start + i] = document;
        u32* own_pairs = pairs + start * CHUNK;
        if (threadIdx.x < chunks * CHUNK - size)
            own_pairs[size + threadIdx.x] = NONE;
        for (u32 base = 32 * warp; base < words; base += THREADS) {
            u32 left = base + lane < words ? bits[base + lane] : 0;
            const u32 count = __popc(left);
            const u32 before = lanes_before(count);
            u32 place = 0;
            if (lane == 31 && before + count != 0)
                place = atomicAdd(&found, before + count);
            place = __shfl_sync(ALL_LANES, place, 31) + before;
            for (; left != 0; left &= left - 1)
                own_pairs[place++] = 32 * (base + lane) + static_cast<u32>(__ffs(left)) - 1;
        }
        __syncthreads();
        // adjacent terminals at a time, so that few requests hit the same line of sizes
        for (u32 i = threadIdx.x; i < size; i += THREADS)
            atomicAdd(sizes + own_pairs[i], class_size);
    }
}

// Writes each chunk's documents to its terminals, in any order. offsets: of each terminal's documents. sizes: number of
// documents not yet written, by terminal.
extern "C" __global__ void __launch_bounds__(THREADS) scatter_documents(
    const u32* __restrict__ pairs, const u32* __restrict__ owners, u32 chunks, const i64* __restrict__ root_offsets,
    const u32* __restrict__ roots, const u32* __restrict__ class_sizes, const u32* __restrict__ class_starts,
    const u32* __restrict__ members, const i64* __restrict__ offsets, u32* sizes, u32* postings)
{
    const u64 chunk = static_cast<u64>(blockIdx.x) * WARPS + threadIdx.x / 32;
    if (chunk >= chunks)
        return;
    const u32 lane = threadIdx.x % 32;
    const u32 document = owners[chunk];
    const i64 root = root_offsets[document];
    const u32 class_size = root_offsets[document + 1] - root == 1 ? class_sizes[roots[root]] : 1;
    const u32* own_members = members + class_starts[document];
    const u32 terminal = pairs[chunk * CHUNK + lane];
    u64 place = 0;
    if (terminal != NONE)
        place = static_cast<u64>(offsets[terminal]) + (atomicSub(sizes + terminal, class_size) - class_size);
    if (class_size == 1) {
        if (terminal != NONE)
            postings[place] = own_members[0];
        return;
    }
    // documents of one terminal after another's, by adjacent lanes
    const u64 filled = static_cast<u64>(__popc(__ballot_sync(ALL_LANES, terminal != NONE))) * class_size;
    for (u64 base = 0; base < filled; base += 32) {
        const u32 turn = static_cast<u32>(min(base + lane, filled - 1) / class_size);
        const u32 i = static_cast<u32>(base + lane - static_cast<u64>(turn) * class_size);
        const u64 target = __shfl_sync(ALL_LANES, place, static_cast<int>(turn));
        if (base + lane < filled)
            postings[target + i] = own_members[i];
    }
}

// Sorts each terminal's documents: few by a warp that compares them all, many by a bitmap in shared memory.
extern "C" __global__ void __launch_bounds__(ORDER_THREADS) order_documents(
    const i64* __restrict__ offsets, u32 terminals, u32 document_words, u32* postings)
{
    extern __shared__ u64 shared[];
    __shared__ u32 sums[ORDER_WARPS];
    __shared__ i64 firsts[ORDER_WARPS];  // start of each warp's terminal if it has many documents
    __shared__ i64 stops[ORDER_WARPS];  // 0 if it has few
    u32* bits = reinterpret_cast<u32*>(shared);
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    // adjacent terminals, of which the first have most documents, go to different blocks
    const u64 own = static_cast<u64>(warp) * gridDim.x + blockIdx.x;
    if (lane == 0)
        stops[warp] = 0;
    if (own < terminals) {
        const i64 first = offsets[own];
        const i64 size = offsets[own + 1] - first;
        if (size > 32 && lane == 0) {
            firsts[warp] = first;
            stops[warp] = first + size;
        }
        if (size > 1 && size <= 32) {
            const u32 document = lane < size ? postings[first + lane] : NONE;
            u32 place = 0;
            for (int i = 0; i < size; ++i)
                place += __shfl_sync(ALL_LANES, document, i) < document;
            __syncwarp();
            if (lane < size)
                postings[first + place] = document;
        }
    }
    __syncthreads();
    const u32 words = (document_words + ORDER_THREADS - 1) / ORDER_THREADS;  // per thread
    for (u32 turn = 0; turn < ORDER_WARPS; ++turn) {
        const i64 first = firsts[turn];
        const i64 stop = stops[turn];
        if (stop == 0)
            continue;
        for (u32 i = threadIdx.x; i < document_words; i += ORDER_THREADS)
            bits[i] = 0;
        __syncthreads();
#pragma unroll 4
        for (i64 i = first + threadIdx.x; i < stop; i += ORDER_THREADS)
            atomicOr(bits + postings[i] / 32, 1u << postings[i] % 32);
        __syncthreads();
        const u32 begin = min(threadIdx.x * words, document_words);
        const u32 end = min(begin + words, document_words);
        u32 count = 0;
        for (u32 i = begin; i < end; ++i)
            count += __popc(bits[i]);
        const u32 before = lanes_before(count);
        if (lane == 31)
            sums[warp] = before + count;
        __syncthreads();
        i64 place = first + before;
        for (u32 i = 0; i < warp; ++i)
            place += sums[i];
        for (u32 i = begin; i < end; ++i)
            for (u32 left = bits[i]; left != 0; left &= left - 1)
                postings[place++] = 32 * i + static_cast<u32>(__ffs(left)) - 1;
        __syncthreads();
    }
}
