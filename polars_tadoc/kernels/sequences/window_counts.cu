// Windows and pairs of bodies and documents, counted.
#include "primitives/counters.cuh"
#include "sequences/bodies.cuh"
#include "sequences/packing.cuh"
#include "sequences/own_windows.cuh"
#include "sequences/survey.cuh"
#include "primitives/block_scan.cuh"

constexpr u32 THREADS = 256;

// How often each owner occurs: a rule by its weight, a document once.
struct Weights {
    const u64* weights;  // null for documents
    const long long* offsets;
    u32 owners;

    __device__ __forceinline__ u64 at(u64 position) const
    {
        return weights == nullptr ? 1 : __ldg(weights + owner_at(position, offsets, owners));
    }
};

extern "C" __global__ void __launch_bounds__(SURVEY_THREADS) survey_windows(
    const u32* __restrict__ symbols, u64 size, const u32* __restrict__ starts, const u32* __restrict__ ends,
    u32 stride, u32 terminals, const u32* __restrict__ rank, u32 reach, u32 words, u32 bits, u32 per_column,
    u32 column_count, u32 spare, u32 digit_bits, u32 document_bits, u64 low, u64 last,
    const u64* __restrict__ weights, const long long* __restrict__ offsets, u32 owners, u32 shift, u32 buckets,
    u64* counts, u32* sketch)
{
    const Weights weigh = {weights, offsets, owners};
    const auto digits = [&](u64 i) { return static_cast<u64>(digits_in(weigh.at(i), digit_bits)); };
    survey<Windows>(
        {symbols, size, starts, ends, stride, terminals, rank, reach},
        {words, bits, per_column, column_count, spare, digit_bits, document_bits}, digits, {low, last}, shift, buckets,
        counts, sketch);
}

extern "C" __global__ void __launch_bounds__(SURVEY_THREADS) survey_pairs(
    const u32* __restrict__ symbols, u64 size, const u32* __restrict__ starts, const u32* __restrict__ ends,
    u32 stride, u32 terminals, const u32* __restrict__ rank, u32 reach, u32 words, u32 bits, u32 per_column,
    u32 column_count, u32 spare, u32 digit_bits, u32 document_bits, u64 low, u64 last,
    const u64* __restrict__ weights, const long long* __restrict__ offsets, u32 owners, u32 shift, u32 buckets,
    u64* counts, u32* sketch)
{
    const Weights weigh = {weights, offsets, owners};
    const auto digits = [&](u64 i) { return static_cast<u64>(digits_in(weigh.at(i), digit_bits)); };
    survey<Pairs>(
        {symbols, size, starts, ends, stride, terminals, rank, reach},
        {words, bits, per_column, column_count, spare, digit_bits, document_bits}, digits, {low, last}, shift, buckets,
        counts, sketch);
}

// Writes the entries of a batch in any order: each block takes the next room there is.
// columns   `capacity` entries of the first column, then of the second, ...
template <typename Kind>
__device__ __forceinline__ void write_entries(
    const Text& text, const Packing& packing, Range range, const Weights& weights, u64* columns, u64 capacity, u64* taken)
{
    __shared__ u64 block_start;
    const u64 position = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    Held<Kind> own;
    own.read(text, position, packing, range);
    const u64 weight = own.count == 0 ? 0 : weights.at(position);
    const u32 entries = own.count * digits_in(weight, packing.digit_bits);
    u32 all;
    const u32 before = block_before<THREADS>(entries, all);
    if (all == 0)
        return;
    if (threadIdx.x == 0)
        block_start = atomicAdd(taken, static_cast<u64>(all));
    __syncthreads();
    if (entries == 0)
        return;
    const u64 start = block_start + before;
    for (u32 column = min(packing.columns - 1, 1u); column < packing.columns; ++column) {
        const bool last = column + 1 == packing.columns;
        u64* at_first = columns + start;
        u64* at = columns + column * capacity + start;
        own.visit(text, position, packing, range, column, [&](u64 first, u64 key) {
            if (column == 1)
                write_digits(at_first, first, weight, packing, false);
            write_digits(at, key, weight, packing, last);
        });
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) write_windows(
    const u32* __restrict__ symbols, u64 size, const u32* __restrict__ starts, const u32* __restrict__ ends,
    u32 stride, u32 terminals, const u32* __restrict__ rank, u32 reach, u32 words, u32 bits, u32 per_column,
    u32 column_count, u32 spare, u32 digit_bits, u32 document_bits, u64 low, u64 last,
    const u64* __restrict__ weights, const long long* __restrict__ offsets, u32 owners, u64* columns, u64 capacity,
    u64* taken)
{
    write_entries<Windows>(
        {symbols, size, starts, ends, stride, terminals, rank, reach},
        {words, bits, per_column, column_count, spare, digit_bits, document_bits}, {low, last},
        {weights, offsets, owners}, columns, capacity, taken);
}

extern "C" __global__ void __launch_bounds__(THREADS) write_pairs(
    const u32* __restrict__ symbols, u64 size, const u32* __restrict__ starts, const u32* __restrict__ ends,
    u32 stride, u32 terminals, const u32* __restrict__ rank, u32 reach, u32 words, u32 bits, u32 per_column,
    u32 column_count, u32 spare, u32 digit_bits, u32 document_bits, u64 low, u64 last,
    const u64* __restrict__ weights, const long long* __restrict__ offsets, u32 owners, u64* columns, u64 capacity,
    u64* taken)
{
    write_entries<Pairs>(
        {symbols, size, starts, ends, stride, terminals, rank, reach},
        {words, bits, per_column, column_count, spare, digit_bits, document_bits}, {low, last},
        {weights, offsets, owners}, columns, capacity, taken);
}

// The largest count. most: zero.
extern "C" __global__ void __launch_bounds__(THREADS) find_most(const u64* __restrict__ counts, u64 size, u64* most)
{
    u64 largest = 0;
    const u64 threads = static_cast<u64>(gridDim.x) * THREADS;
    for (u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x; i < size; i += threads)
        largest = max(largest, counts[i]);
    for (u32 step = 16; step > 0; step /= 2)
        largest = max(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, step));
    if (threadIdx.x % 32 == 0 && largest > *const_cast<volatile u64*>(most))
        atomicMax(most, largest);
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
