// Counts windows and pairs of bodies and documents.
#include "primitives/counters.cuh"
#include "primitives/segments.cuh"
#include "sequences/bodies.cuh"
#include "sequences/own_windows.cuh"
#include "sequences/survey.cuh"
#include "primitives/scan.cuh"

// The counted kind: Windows or Pairs.
#ifndef KIND
#define KIND Windows
#endif

constexpr u32 THREADS = 256;

// Occurrences of each owner: a rule's weight, 1 for a document.
struct Weights {
    const u64* weights;  // null for documents
    const i64* offsets;
    u32 owners;

    __device__ __forceinline__ u64 at(u64 position) const
    {
        return weights == nullptr ? 1 : __ldg(weights + owner_at(position, offsets, owners));
    }
};

extern "C" __global__ void __launch_bounds__(SURVEY_THREADS) survey_entries(
    const Text text, const Packing packing, u64 low, u64 last, const u64* __restrict__ weights,
    const i64* __restrict__ offsets, u32 owners, u32 shift, u32 buckets, u64* counts, u32* sketch)
{
    const Weights weigh = {weights, offsets, owners};
    const auto digits = [&](u64 i) { return static_cast<u64>(digits_in(weigh.at(i), packing.digit_bits)); };
    survey<KIND>(text, packing, digits, {low, last}, shift, buckets, counts, sketch);
}

// Writes the entries of a batch in any order: each block reserves the next free range.
// columns   `capacity` entries of the first column, then of the second, ...
extern "C" __global__ void __launch_bounds__(THREADS) write_entries(
    const Text text, const Packing packing, u64 low, u64 last, const u64* __restrict__ weights,
    const i64* __restrict__ offsets, u32 owners, u64* columns, u64 capacity, u64* taken)
{
    const Range range = {low, last};
    const u64 position = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    Held<KIND> own;
    own.read(text, position, packing, range);
    const u64 weight = own.count == 0 ? 0 : Weights{weights, offsets, owners}.at(position);
    const u32 entries = own.count * digits_in(weight, packing.digit_bits);
    u64 start;
    if (!append_entries<THREADS>(entries, taken, start))
        return;
    for (u32 column = min(packing.columns - 1, 1u); column < packing.columns; ++column) {
        const bool is_last = column + 1 == packing.columns;
        u64* at_first = columns + start;
        u64* at = columns + column * capacity + start;
        own.visit(text, position, packing, range, column, [&](u64 first, u64 key) {
            if (column == 1)
                write_digits(at_first, first, weight, packing, false);
            write_digits(at, key, weight, packing, is_last);
        });
    }
}
