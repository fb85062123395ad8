// The documents that hold each window of the reduced text.
//
// An entry is a window's key, then a document, then a digit of how often the document holds it: as for counts, but
// a window of a rule has as many entries as the rule's documents. What follows the key, the code, is the same for
// all windows of a rule, and written once for its list.
#include "counters.cuh"
#include "packing.cuh"
#include "reduced_text.cuh"
#include "count_entries.cuh"
#include "block_scan.cuh"

constexpr u32 THREADS = 256;

// How many codes each document of a list has.
extern "C" __global__ void __launch_bounds__(THREADS) measure_codes(
    const u64* __restrict__ counts, u64 size, u32 digit_bits, unsigned char* __restrict__ sizes)
{
    const u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < size)
        sizes[i] = static_cast<unsigned char>(digits_in(counts[i], digit_bits));
}

// Writes the codes of lists of documents. places: codes before each document; null for one each, which may then
// take the counts' places.
extern "C" __global__ void __launch_bounds__(THREADS) write_codes(
    const u32* __restrict__ documents, const u64* counts, u64 size, u32 spare, u32 digit_bits,
    const u64* __restrict__ places, u64* codes)
{
    const u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= size)
        return;
    u64* target = codes + (places == nullptr ? i : places[i]);
    write_digits(target, documents[i], counts[i], {0, 0, 0, 0, spare, digit_bits, 0}, true);
}

// The reduced text, and the codes of each rule.
struct Lists {
    const Words text;
    const long long* offsets;
    const u64* codes;
    const u64* document_starts;
    u32 first_document;
    u32 document_count;

    __device__ __forceinline__ u64 entries(u64 i) const
    {
        if (i >= text.of_rules)
            return 1;
        const u32 rule = __ldg(text.owners + i);
        return static_cast<u64>(__ldg(offsets + rule + 1) - __ldg(offsets + rule));
    }

    __device__ __forceinline__ u64 code(u64 i, u64 entry, u32 spare) const
    {
        if (i < text.of_rules)
            return __ldg(codes + __ldg(offsets + __ldg(text.owners + i)) + entry);
        u32 low = 0;
        u32 high = document_count;
        while (high - low > 1) {
            const u32 middle = low + (high - low) / 2;
            if (__ldg(document_starts + middle) <= i)
                low = middle;
            else
                high = middle;
        }
        return static_cast<u64>(first_document + low) << spare | 1;
    }
};

extern "C" __global__ void __launch_bounds__(1024) count_postings(
    const u32* __restrict__ words, u64 size, u64 of_rules, const u32* __restrict__ owners, u32 reach,
    const long long* __restrict__ list_offsets, u64 low, u64 high, u32 shift, u32 buckets, u64* counts)
{
    const Lists lists = {{words, size, of_rules, owners, nullptr, reach}, list_offsets, nullptr, nullptr, 0, 0};
    const auto entries = [&](u64 i) { return lists.entries(i); };
    count_entries<TextWindows>(lists.text, entries, {low, high}, shift, buckets, counts);
}

// Writes the entries of a batch in any order. A block's threads share its entries evenly: one window may have very
// many documents. columns: `capacity` entries of the first column, then of the second, ...
extern "C" __global__ void __launch_bounds__(THREADS) write_postings(
    const u32* __restrict__ text_words, u64 size, u64 of_rules, const u32* __restrict__ owners, u32 reach, u32 words,
    u32 bits, u32 per_column, u32 column_count, u32 spare, u32 digit_bits, u32 document_bits, u64 low, u64 high,
    const long long* __restrict__ list_offsets, const u64* __restrict__ codes,
    const u64* __restrict__ document_starts, u32 first_document, u32 document_count, u64* columns, u64 capacity,
    u64* taken)
{
    __shared__ u32 before[THREADS];
    __shared__ u64 block_start;
    const Lists lists = {
        {text_words, size, of_rules, owners, nullptr, reach}, list_offsets, codes, document_starts, first_document,
        document_count};
    const Range range = {low, high};
    const u64 block_words = static_cast<u64>(blockIdx.x) * THREADS;
    const u64 own = block_words + threadIdx.x;
    u32 entries = 0;
    if (own < size)
        TextWindows::visit_first(lists.text, own, [&](u64 ranks) {
            if (range.holds(ranks))
                entries = static_cast<u32>(lists.entries(own));
        });
    u32 all;
    const u32 own_before = block_before<THREADS>(entries, all);
    if (all == 0)
        return;
    before[threadIdx.x] = own_before;
    if (threadIdx.x == 0)
        block_start = atomicAdd(taken, static_cast<u64>(all));
    __syncthreads();
    const u32 tail = spare + document_bits;
    for (u32 entry = threadIdx.x; entry < all; entry += THREADS) {
        u32 word = 0;  // the last one whose entries begin here or before
        for (u32 after = THREADS; after - word > 1;) {
            const u32 middle = word + (after - word) / 2;
            if (before[middle] <= entry)
                word = middle;
            else
                after = middle;
        }
        const u64 i = block_words + word;
        u64* target = columns + block_start + entry;
        for (u32 column = 0; column < column_count; ++column) {
            const bool last = column + 1 == column_count;
            const u32 first = column * per_column;
            const u32 stop = last ? words : first + per_column;
            u64 key = 0;
            for (u32 next = first; next < stop; ++next)
                key = key << bits | lists.text.rank(i + next);
            if (last)
                key = (tail < 64 ? key << tail : 0) | lists.code(i, entry - before[word], spare);
            target[column * capacity] = key;
        }
    }
}

// Where each list starts, and its documents. offsets: one more than lists. keys: windows' last columns.
extern "C" __global__ void __launch_bounds__(THREADS) find_lists(
    const u32* __restrict__ lists, const u64* __restrict__ keys, u64 size, u32 list_count, u32 document_bits,
    long long* __restrict__ offsets, u32* __restrict__ documents)
{
    const u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= size)
        return;
    documents[i] = static_cast<u32>(keys[i] & ((1ull << document_bits) - 1));
    if (i == 0 || lists[i] != lists[i - 1])
        offsets[lists[i]] = static_cast<long long>(i);
    if (i == 0)
        offsets[list_count] = static_cast<long long>(size);
}

// Marks the lists in which a document stands after one that counts less.
extern "C" __global__ void mark_disordered(
    const u32* __restrict__ lists, const u64* __restrict__ counts, u64 size, unsigned char* __restrict__ disordered)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i > 0 && i < size && lists[i] == lists[i - 1] && counts[i] > counts[i - 1])
        disordered[lists[i]] = 1;
}

// Keeps the first `most` of each list that is wanted at all.
extern "C" __global__ void keep_first(
    const u32* __restrict__ lists, const long long* __restrict__ offsets, const unsigned char* __restrict__ wanted,
    u64 size, u64 most, unsigned char* __restrict__ keep)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < size)
        keep[i] = wanted[lists[i]] != 0 && i - static_cast<u64>(offsets[lists[i]]) < most;
}
