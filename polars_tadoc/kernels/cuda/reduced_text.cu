// The words that own windows are made of, as plain text: of each child the first and the last ones.
#include "counters.cuh"
#include "bodies.cuh"
#include "block_scan.cuh"
#include "packing.cuh"
#include "reduced_text.cuh"

constexpr u32 THREADS = 256;

// How many words are written of the child at a position.
__device__ __forceinline__ u32 kept_words(const Text& text, u64 position)
{
    const bool first = text.owner_ends(position);
    const bool last = text.owner_ends(position + 1);
    if (text.reach == 0)
        return text.is_rule(position) ? 0 : 1;
    if (first && last)
        return 0;
    return min(text.length(position), first || last ? text.reach : 2 * text.reach);
}

// Words that each block of positions writes, from position `begin` on: an owner starts there.
// most: zero at the start, then the largest weight.
extern "C" __global__ void __launch_bounds__(THREADS) measure_text(
    const u32* __restrict__ symbols, u64 begin, u64 size, const u32* __restrict__ starts, const u32* __restrict__ ends,
    u32 stride, u32 terminals, u32 reach, const u64* __restrict__ weights, const long long* __restrict__ offsets,
    u32 owners, u64* blocks, u64* most)
{
    const Text text = {symbols, size, starts, ends, stride, terminals, nullptr, reach};
    const u64 position = begin + static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    u32 kept = 0;
    u64 weight = 1;
    if (position < size) {
        if (weights != nullptr)
            weight = __ldg(weights + owner_at(position, offsets, owners));
        kept = weight == 0 ? 0 : kept_words(text, position);
    }
    u32 all;
    block_before<THREADS>(kept, all);
    if (threadIdx.x == 0)
        blocks[blockIdx.x] = all;
    if (weights != nullptr && weight > *const_cast<volatile u64*>(most))
        atomicMax(most, weight);
}

// blocks  words before each block's
// owner_of_word  by word: whose it is; or null, then
// owner_starts   from owner `first_owner` on: its first word. At the start, the number of all words.
extern "C" __global__ void __launch_bounds__(THREADS) write_text(
    const u32* __restrict__ symbols, u64 begin, u64 size, const u32* __restrict__ starts,
    const u32* __restrict__ ends, u32 stride, u32 terminals, u32 reach, const u32* __restrict__ rank,
    const u64* __restrict__ weights, const long long* __restrict__ offsets, u32 owners,
    const u64* __restrict__ blocks, u32* __restrict__ words, u32* __restrict__ owner_of_word, u32 first_owner,
    u64* __restrict__ owner_starts)
{
    const Text text = {symbols, size, starts, ends, stride, terminals, rank, reach};
    const u64 position = begin + static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    u32 kept = 0;
    u32 owner = 0;
    const bool starts_owner = position < size && text.owner_ends(position);
    if (position < size) {
        kept = kept_words(text, position);
        if (owner_of_word != nullptr || (owner_starts != nullptr && starts_owner))
            owner = owner_at(position, offsets, owners);
        if (weights != nullptr && __ldg(weights + owner) == 0)
            kept = 0;
    }
    u32 all;
    const u64 first = blocks[blockIdx.x] + block_before<THREADS>(kept, all);
    if (owner_starts != nullptr && starts_owner) {
        owner_starts[owner - first_owner] = first;
        for (; owner > first_owner && static_cast<u64>(offsets[owner - 1]) == position; --owner)
            owner_starts[owner - 1 - first_owner] = first;  // owners of nothing
    }
    if (kept == 0)
        return;
    // children of no words may stand between this one and its owner's start
    u64 before = position;
    while (!text.owner_ends(before) && text.length(before - 1) == 0)
        --before;
    u32 mark = CHILD | (text.owner_ends(before) ? BREAK : 0);
    u32* target = words + first;
    if (!text.is_rule(position)) {
        *target = rank_of(rank, __ldg(symbols + position)) | mark;
    } else {
        const u32* own = text.ends_at(position);
        const u32 length = __ldg(own);
        const bool tail_only = text.owner_ends(position);
        const u32 heads = tail_only ? 0 : min(length, reach);
        for (u32 i = 0; i < heads; ++i) {
            target[i] = __ldg(own + 1 + i) | mark;
            mark = 0;
        }
        const u32* tail = own + 1 + reach + (min(length, reach) - (kept - heads));
        if (length > 2 * reach)
            mark |= BREAK;
        for (u32 i = heads; i < kept; ++i) {
            target[i] = __ldg(tail + i - heads) | mark;
            mark = 0;
        }
    }
    if (owner_of_word != nullptr)
        for (u32 i = 0; i < kept; ++i)
            owner_of_word[first + i] = owner;
}

// What the host must know: words of rules, all words, the largest weight.
extern "C" __global__ void tell(const u64* before, u64 rule_blocks, u64 blocks, const u64* most, u64* told)
{
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        told[0] = before[rule_blocks];
        told[1] = before[blocks];
        told[2] = *most;
    }
}
