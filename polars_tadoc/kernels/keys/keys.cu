// Sorted keys of windows: runs of equal keys, their numbers, their words.
#include "primitives/counters.cuh"
#include "primitives/scan.cuh"

constexpr u32 THREADS = 256;
constexpr u32 ROUNDS = 8;  // of 32 adjacent entries that a warp sums

// Sorted entries: their columns, compared without the digits of weights.
struct Sorted {
    const u64* columns;
    u64 capacity;
    u32 column_count;
    u32 spare;
    const u32* order;
    u64 size;

    __device__ __forceinline__ u64 entry(u64 i) const { return order == nullptr ? i : __ldg(order + i); }

    __device__ __forceinline__ u64 key(u64 entry, u32 column) const
    {
        const u64 value = __ldg(columns + column * capacity + entry);
        if (column + 1 < column_count)
            return value;
        return spare < 64 ? value >> spare : 0;
    }

    // Whether the entry differs from the one before.
    __device__ __forceinline__ bool starts_run(u64 i) const
    {
        if (i >= size)
            return false;
        if (i == 0)
            return true;
        const u64 own = entry(i);
        const u64 other = entry(i - 1);
        for (u32 column = column_count; column-- > 0;)
            if (key(own, column) != key(other, column))
                return true;
        return false;
    }
};

// Runs that start in each tile of THREADS * ROUNDS entries.
extern "C" __global__ void __launch_bounds__(THREADS) count_runs(
    const u64* __restrict__ columns, u64 capacity, u32 column_count, u32 spare, const u32* __restrict__ order,
    u64 size, u64* tiles)
{
    const Sorted sorted = {columns, capacity, column_count, spare, order, size};
    u32 runs = 0;
    for (u32 round = 0; round < ROUNDS; ++round)
        runs += sorted.starts_run((static_cast<u64>(blockIdx.x) * ROUNDS + round) * THREADS + threadIdx.x);
    u32 all;
    block_before<THREADS>(runs, all);
    if (threadIdx.x == 0)
        tiles[blockIdx.x] = all;
}

// Sums the weights of each run, and writes its key.
// tiles  runs before each tile
// keys   `run_count` of each column
// sums   all zero, or null
// slots  positions in `derived` for the number of each entry's run; null for the entry's own position
extern "C" __global__ void __launch_bounds__(THREADS) sum_runs(
    const u64* __restrict__ columns, u64 capacity, u32 column_count, u32 spare, u32 digit_bits,
    const u32* __restrict__ order, u64 size, const u64* __restrict__ tiles, u64 run_count, u64* keys, u64* sums,
    const u32* __restrict__ slots, u32* derived)
{
    const Sorted sorted = {columns, capacity, column_count, spare, order, size};
    const u32 lane = threadIdx.x % 32;
    const u64 begin = static_cast<u64>(blockIdx.x) * THREADS * ROUNDS + threadIdx.x / 32 * 32 * ROUNDS;
    u32 starts[ROUNDS];
    u32 runs = 0;
#pragma unroll
    for (u32 round = 0; round < ROUNDS; ++round) {
        starts[round] = __ballot_sync(0xFFFFFFFFu, sorted.starts_run(begin + 32 * round + lane));
        runs += __popc(starts[round]);
    }
    u32 all;
    u64 before = tiles[blockIdx.x] + block_before<THREADS>(lane == 0 ? runs : 0, all);
    before = __shfl_sync(0xFFFFFFFFu, before, 0);
#pragma unroll
    for (u32 round = 0; round < ROUNDS; ++round) {
        const u64 i = begin + 32 * round + lane;
        const bool first = (starts[round] >> lane & 1u) != 0;
        const u64 run = before + __popc(starts[round] << (31 - lane)) - 1;
        const u64 entry = i < size ? sorted.entry(i) : 0;
        if (first)
            for (u32 column = 0; column < column_count; ++column)
                keys[column * run_count + run] = sorted.key(entry, column);
        if (sums == nullptr) {
            if (i < size)
                derived[slots == nullptr ? entry : slots[entry]] = static_cast<u32>(run);
        } else {
            u64 sum = 0;
            if (i < size) {
                const u64 value = __ldg(columns + (column_count - 1) * capacity + entry);
                const u64 code = spare < 64 ? value & ((1ull << spare) - 1) : value;
                sum = (code & ((1ull << digit_bits) - 1)) << ((code >> digit_bits) * digit_bits);
            }
            // the lanes of one run sum up in its last lane
            const u32 run_start = 31 - __clz(starts[round] << (31 - lane) >> (31 - lane) | 1u);
#pragma unroll
            for (u32 step = 1; step < 32; step *= 2) {
                const u64 other = __shfl_up_sync(0xFFFFFFFFu, sum, step);
                if (lane >= run_start + step)
                    sum += other;
            }
            const bool last = lane == 31 || i + 1 >= size || (starts[round] >> (lane + 1) & 1u) != 0;
            if (i < size && last)
                atomicAdd(sums + run, sum);
        }
        before += __popc(starts[round]);
    }
}

// Converts ranks to words, one window after another. order: index of each window's key, or null.
extern "C" __global__ void __launch_bounds__(THREADS) read_keys(
    const u64* __restrict__ keys, u64 key_count, const u32* __restrict__ order, u64 size, u32 words, u32 bits,
    u32 per_column, u32 column_count, const u32* __restrict__ words_by_rank, u32* __restrict__ target)
{
    const u64 threads = static_cast<u64>(gridDim.x) * THREADS;
    for (u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x; i < size * words; i += threads) {
        const u64 window = i / words;
        const u32 word = static_cast<u32>(i % words);
        const u32 column = min(word / per_column, column_count - 1);
        const u32 in_column = column + 1 < column_count ? per_column : words - column * per_column;
        const u32 below = in_column - 1 - (word - column * per_column);
        const u64 key = keys[column * key_count + (order == nullptr ? window : order[window])];
        const u64 mask = (1ull << bits) - 1;
        const u32 rank = static_cast<u32>(key >> (below * bits) & mask);
        target[i] = words_by_rank == nullptr ? rank : __ldg(words_by_rank + rank);
    }
}

extern "C" __global__ void invert(const u32* __restrict__ rank, u32 size, u32* __restrict__ words)
{
    const u32 word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word < size)
        words[rank[word]] = word;
}

// The largest count. most: zero.
extern "C" __global__ void __launch_bounds__(THREADS) find_most(const u64* __restrict__ counts, u64 size, u64* most)
{
    u64 largest = 0;
    const u64 threads = static_cast<u64>(gridDim.x) * THREADS;
    for (u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x; i < size; i += threads)
        largest = max(largest, counts[i]);
    largest = lanes_max(largest);
    if (threadIdx.x % 32 == 0 && largest > *const_cast<volatile u64*>(most))
        atomicMax(most, largest);
}

// Keys that sort by descending count in ascending order, if they fit, with each key's index.
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
