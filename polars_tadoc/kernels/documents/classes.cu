// Groups documents by the maximum number of their terminals, so that each is counted by a suitable number of threads.
#include "primitives/counters.cuh"
#include "primitives/scan.cuh"
#include "primitives/segments.cuh"

constexpr u32 THREADS = 256;

constexpr u32 CLASSES = 5;

struct Report {
    u64 longest;  // document or rule
    u64 bounds;  // sum over all counted documents
    u64 classes[CLASSES];  // number of documents in each
};

// Computes for each document the total length of its symbols and the entries in its symbols' tables. items: adjacent
// symbols per thread. entries, lengths: zeros.
extern "C" __global__ void __launch_bounds__(THREADS) weigh_roots(
    u32 terminals, const u64* __restrict__ rule_lengths, u32 rules, const u32* __restrict__ table_sizes,
    const i64* __restrict__ root_offsets, u64 documents, const u32* __restrict__ roots, u64 root_count, u32 items,
    u64* entries, u64* lengths, Report* report)
{
    const u64 thread = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    u64 longest = 0;
    for (u64 rule = thread; rule < rules; rule += static_cast<u64>(gridDim.x) * THREADS)
        longest = max(longest, rule_lengths[rule]);
    if (longest >> 32 != 0)
        atomicMax(&report->longest, longest);

    const u64 begin = thread * items;
    if (begin - threadIdx.x % 32 * items >= root_count)
        return;
    u64 document = find_owner(root_offsets, u64{0}, documents, begin);
    u64 length = 0;
    u64 entry_count = 0;  // without tables, every symbol counts 1
    const auto flush = [&] {
        if (length != 0) {
            atomicAdd(lengths + document, length);
            atomicAdd(entries + document, entry_count);
        }
        length = 0;
        entry_count = 0;
    };
    for (u32 i = 0; i < items && begin + i < root_count; ++i) {
        while (static_cast<u64>(root_offsets[document + 1]) <= begin + i) {
            flush();
            ++document;
        }
        const u32 symbol = roots[begin + i];
        length += symbol < terminals ? 1 : rule_lengths[symbol - terminals];
        entry_count += symbol < terminals || table_sizes == nullptr ? 1 : table_sizes[symbol - terminals];
    }
    // a whole warp inside one document adds once
    __syncwarp();
    if (__all_sync(ALL_LANES, document == __shfl_sync(ALL_LANES, document, 0))) {
        length = lanes_sum(length);
        entry_count = lanes_sum(entry_count);
        if (threadIdx.x % 32 != 0)
            return;
    }
    flush();
}

// Equal documents of one symbol are counted once. first_with, by symbol: all ones.
extern "C" __global__ void __launch_bounds__(THREADS) find_equal(
    const i64* __restrict__ root_offsets, const u32* __restrict__ roots, u32 first, u32 stop, u32* first_with)
{
    const u64 document = static_cast<u64>(first) + blockIdx.x * THREADS + threadIdx.x;
    if (document < stop && root_offsets[document + 1] - root_offsets[document] == 1)
        atomicMin(first_with + roots[root_offsets[document]], static_cast<u32>(document));
}

// Sizes are lengths, or maximum numbers of terminals. first_most and so on: maximum sizes of all classes but the last.
// representatives: by document, the one that is counted for it. lists: CLASSES x (stop - first).
extern "C" __global__ void __launch_bounds__(THREADS) class_documents(
    u32 terminals, const i64* __restrict__ root_offsets, const u32* __restrict__ roots, u32 first, u32 stop,
    const u32* __restrict__ first_with, const u64* __restrict__ entries, const u64* __restrict__ lengths, u32 by_length,
    u32 first_most, u32 second_most, u32 third_most, u32 fourth_most, u32* representatives, u32* bounds, u32* lists,
    Report* report)
{
    const u64 document = static_cast<u64>(first) + blockIdx.x * THREADS + threadIdx.x;
    u32 number = CLASSES;
    u32 bound = 0;
    u64 length = 0;
    if (document < stop) {
        length = lengths[document];
        bound = static_cast<u32>(min(min(length, entries[document]), u64{terminals}));
        u32 representative = static_cast<u32>(document);
        if (root_offsets[document + 1] - root_offsets[document] == 1)
            representative = first_with[roots[root_offsets[document]]];
        representatives[document] = representative;
        bounds[document] = bound;
        const u64 size = by_length != 0 ? length : bound;
        if (representative == document && bound > 0)
            number = (size > first_most) + (size > second_most) + (size > third_most) + (size > fourth_most);
    }
    for (u32 c = 0; c < CLASSES; ++c) {
        const u64 place = take_room(report->classes + c, number == c);
        if (number == c)
            lists[static_cast<u64>(c) * (stop - first) + place] = static_cast<u32>(document);
    }
    const u64 sum = lanes_sum(number < CLASSES ? u64{bound} : u64{0});
    length = lanes_max(length);
    if (threadIdx.x % 32 == 0) {
        if (sum != 0)
            atomicAdd(&report->bounds, sum);
        atomicMax(&report->longest, length);
    }
}
