// The words of documents, from rules: one thread finds its word from the top-level symbol down.
#include "primitives/counters.cuh"
#include "primitives/segments.cuh"

// before      words before each symbol of the bodies, and of all
// root_words  words before each top-level symbol, and of all
// owners      top-level symbol of each word
// rank        number of each word in the result, or null for its own
extern "C" __global__ void expand_words(
    const i64* __restrict__ rule_offsets, const u32* __restrict__ symbols, const i64* __restrict__ before,
    u32 terminals, const u32* __restrict__ roots, const i64* __restrict__ root_words,
    const u32* __restrict__ owners, u64 size, const u32* __restrict__ rank, u32* __restrict__ words)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= size)
        return;
    u32 symbol = roots[owners[i]];
    u64 place = i - static_cast<u64>(root_words[owners[i]]);
    while (symbol >= terminals) {
        const u32 rule = symbol - terminals;
        const u64 first = rule_offsets[rule];
        const u64 stop = rule_offsets[rule + 1];
        const u64 position = static_cast<u64>(before[first]) + place;
        const u64 child = find_owner(before, first, stop, position);
        place = position - static_cast<u64>(before[child]);
        symbol = symbols[child];
    }
    words[i] = rank == nullptr ? symbol : rank[symbol];
}
