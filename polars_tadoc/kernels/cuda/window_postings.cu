// The documents that hold each window of the reduced text.
#include "counters.cuh"
#include "packing.cuh"
#include "reduced_text.cuh"
#include "block_scan.cuh"

constexpr u32 THREADS = 256;

// Documents that hold the window of each word: as many as the rule's list, or one.
extern "C" __global__ void __launch_bounds__(THREADS) count_documents(
    const unsigned char* __restrict__ found, u64 size, u64 of_rules, const u32* __restrict__ owners,
    const long long* __restrict__ list_offsets, u32* __restrict__ counts)
{
    const u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= size)
        return;
    u32 count = found[i];
    if (i < of_rules && count != 0)
        count = static_cast<u32>(list_offsets[owners[i] + 1] - list_offsets[owners[i]]);
    counts[i] = count;
}

// Writes a window's key, and its document above its count there in the column after.
__device__ __forceinline__ void write_posting(
    const Words& text, u64 i, const Packing& packing, u64 document, u64 count, u64* target, u64 capacity)
{
    TextWindows::write(text, i, packing, {0, 0}, 1, target, capacity);
    target[packing.columns * capacity] = document << 32 | count;
}

// Windows of documents themselves. places: entries before each word.
extern "C" __global__ void __launch_bounds__(THREADS) write_own_postings(
    const u32* __restrict__ text_words, u64 size, u64 of_rules, const u32* __restrict__ owners, u32 reach, u32 words,
    u32 bits, u32 per_column, u32 column_count, const unsigned char* __restrict__ found,
    const u64* __restrict__ places, u64* columns, u64 capacity)
{
    const u64 i = of_rules + static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < size && found[i] != 0)
        write_posting(
            {text_words, size, of_rules, owners, nullptr, reach}, i, {words, bits, per_column, column_count, 0, 0},
            owners[i], 1, columns + places[i], capacity);
}

// Windows of rules, one entry for each document that holds the rule. word_of_entry: which word starts it.
extern "C" __global__ void __launch_bounds__(THREADS) write_rule_postings(
    const u32* __restrict__ text_words, u64 size, u64 of_rules, const u32* __restrict__ owners, u32 reach, u32 words,
    u32 bits, u32 per_column, u32 column_count, const u32* __restrict__ word_of_entry, u64 entries,
    const u64* __restrict__ places, const long long* __restrict__ list_offsets, const u32* __restrict__ documents,
    const u64* __restrict__ counts, u64* columns, u64 capacity)
{
    const u64 entry = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (entry >= entries)
        return;
    const u32 i = word_of_entry[entry];
    const u64 listed = list_offsets[owners[i]] + (entry - places[i]);
    write_posting(
        {text_words, size, of_rules, owners, nullptr, reach}, i, {words, bits, per_column, column_count, 0, 0},
        documents[listed], counts[listed], columns + entry, capacity);
}

// Where each list starts. offsets: one more than lists.
extern "C" __global__ void __launch_bounds__(THREADS) find_lists(
    const u32* __restrict__ lists, u64 size, u32 list_count, long long* __restrict__ offsets)
{
    const u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < size && (i == 0 || lists[i] != lists[i - 1]))
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
