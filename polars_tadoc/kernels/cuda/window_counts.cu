// Windows and pairs in the reduced text, counted.
#include "counters.cuh"
#include "packing.cuh"
#include "reduced_text.cuh"
#include "count_entries.cuh"
#include "block_scan.cuh"

constexpr u32 THREADS = 256;

extern "C" __global__ void __launch_bounds__(1024) count_windows(
    const u32* __restrict__ words, u64 size, u64 of_rules, const u32* __restrict__ owners,
    const u64* __restrict__ weights, u32 reach, u32 digit_bits, u64 low, u64 high, u32 shift, u32 buckets,
    u64* counts)
{
    const Words text = {words, size, of_rules, owners, weights, reach};
    const auto digits = [&](u64 i) { return digits_in(text.weight(i), digit_bits); };
    count_entries<TextWindows>(text, digits, {low, high}, shift, buckets, counts);
}

extern "C" __global__ void __launch_bounds__(1024) count_pairs(
    const u32* __restrict__ words, u64 size, u64 of_rules, const u32* __restrict__ owners,
    const u64* __restrict__ weights, u32 reach, u32 digit_bits, u64 low, u64 high, u32 shift, u32 buckets,
    u64* counts)
{
    const Words text = {words, size, of_rules, owners, weights, reach};
    const auto digits = [&](u64 i) { return digits_in(text.weight(i), digit_bits); };
    count_entries<TextPairs>(text, digits, {low, high}, shift, buckets, counts);
}

// Writes the entries of a batch in any order: each block takes the next room there is.
// columns   `capacity` entries of the first column, then of the second, ...
template <typename Kind>
__device__ __forceinline__ void write_entries(
    const Words& text, const Packing& packing, Range range, u64* columns, u64 capacity, u64* taken)
{
    __shared__ u64 block_start;
    const u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    u64 weight = 0;
    u32 entries = 0;
    if (i < text.size) {
        Kind::visit_first(text, i, [&](u64 ranks) { entries += range.holds(ranks); });
        if (entries != 0) {
            weight = text.weight(i);
            entries *= digits_in(weight, packing.digit_bits);
        }
    }
    u32 all;
    const u32 before = block_before<THREADS>(entries, all);
    if (all == 0)
        return;
    if (threadIdx.x == 0)
        block_start = atomicAdd(taken, static_cast<u64>(all));
    __syncthreads();
    if (entries != 0)
        Kind::write(text, i, packing, range, weight, columns + block_start + before, capacity);
}

extern "C" __global__ void __launch_bounds__(THREADS) write_windows(
    const u32* __restrict__ text_words, u64 size, u64 of_rules, const u32* __restrict__ owners,
    const u64* __restrict__ weights, u32 reach, u32 words, u32 bits, u32 per_column, u32 column_count, u32 spare,
    u32 digit_bits, u32 document_bits, u64 low, u64 high, u64* columns, u64 capacity, u64* taken)
{
    write_entries<TextWindows>(
        {text_words, size, of_rules, owners, weights, reach},
        {words, bits, per_column, column_count, spare, digit_bits, document_bits}, {low, high}, columns, capacity, taken);
}

extern "C" __global__ void __launch_bounds__(THREADS) write_pairs(
    const u32* __restrict__ text_words, u64 size, u64 of_rules, const u32* __restrict__ owners,
    const u64* __restrict__ weights, u32 reach, u32 words, u32 bits, u32 per_column, u32 column_count, u32 spare,
    u32 digit_bits, u32 document_bits, u64 low, u64 high, u64* columns, u64 capacity, u64* taken)
{
    write_entries<TextPairs>(
        {text_words, size, of_rules, owners, weights, reach},
        {words, bits, per_column, column_count, spare, digit_bits, document_bits}, {low, high}, columns, capacity, taken);
}

// What rising order sorts by falling count, where it fits, and each key's own place.
extern "C" __global__ void fall(
    const u64* __restrict__ counts, u64 size, u64 most, u32* __restrict__ falling, u32* __restrict__ order)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= size)
        return;
    order[i] = static_cast<u32>(i);
    if (falling != nullptr)
        falling[i] = static_cast<u32>(most - counts[i]);
}
