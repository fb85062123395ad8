// Inverted index and term vector of uncompressed text, for gpu_analytics.py to compare with. A key holds a word
// above its document; keys come in the documents' order.
#include "primitives/counters.cuh"
#include "primitives/scan.cuh"

using i64 = long long;

constexpr u32 THREADS = 256;
constexpr u32 ITEMS = 16;  // of a thread
constexpr u32 TILE = ITEMS * THREADS;

// Runs of equal keys: each one's key, and where it starts. tiles: all ones; taken: zero.
extern "C" __global__ void __launch_bounds__(THREADS) find_runs(
    const u32* __restrict__ keys, u64 size, u64* tiles, u32* taken, u32* run_keys, u32* run_starts)
{
    __shared__ u32 staged[TILE + 1];
    const u32 tile = take_tile(taken);
    const u64 begin = static_cast<u64>(tile) * TILE;
    for (u32 i = threadIdx.x; i <= TILE; i += THREADS)
        staged[i] = begin + i > 0 && begin + i <= size ? keys[begin + i - 1] : NONE;
    __syncthreads();
    const u32 first = threadIdx.x * ITEMS;
    u32 heads = 0;
    for (u32 i = 0; i < ITEMS; ++i) {
        const bool head = begin + first + i < size &&
            (begin + first + i == 0 || staged[first + i + 1] != staged[first + i]);
        heads |= static_cast<u32>(head) << i;
    }
    const u64 own = __popc(heads);
    const u64 before = lanes_before(own);
    u64 place = before + warps_before<THREADS / 32>(tiles, tile, __shfl_sync(ALL_LANES, before + own, 31));
    for (u32 i = 0; i < ITEMS; ++i) {
        if ((heads >> i & 1) != 0) {
            run_keys[place] = staged[first + i + 1];
            run_starts[place] = static_cast<u32>(begin + first + i);
            ++place;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) write_postings(
    const u32* __restrict__ run_keys, u32 runs, u32 document_mask, u32* documents)
{
    const u32 run = blockIdx.x * THREADS + threadIdx.x;
    if (run < runs)
        documents[run] = run_keys[run] & document_mask;
}

// Keys that sort by document, in it by count falling, then by word.
extern "C" __global__ void __launch_bounds__(THREADS) order_vectors(
    const u32* __restrict__ run_keys, const u32* __restrict__ run_starts, u32 runs, u64 size, u32 document_bits,
    u32 word_bits, u32 count_bits, u64* keys)
{
    const u32 run = blockIdx.x * THREADS + threadIdx.x;
    if (run >= runs)
        return;
    const u64 count = (run + 1 < runs ? run_starts[run + 1] : size) - run_starts[run];
    const u64 document = run_keys[run] & ((1u << document_bits) - 1);
    const u64 falling = count ^ ((1ull << count_bits) - 1);
    keys[run] = document << (word_bits + count_bits) | falling << word_bits | run_keys[run] >> document_bits;
}

extern "C" __global__ void __launch_bounds__(THREADS) write_vectors(
    const u64* __restrict__ keys, u32 runs, u32 word_bits, u32 count_bits, u32* words, u64* counts)
{
    const u32 run = blockIdx.x * THREADS + threadIdx.x;
    if (run >= runs)
        return;
    const u64 mask = (1ull << count_bits) - 1;
    words[run] = static_cast<u32>(keys[run] & ((1ull << word_bits) - 1));
    counts[run] = (keys[run] >> word_bits & mask) ^ mask;
}

// Where each group's keys begin; the last one is their number.
template <typename Key>
__device__ __forceinline__ void find_offsets(const Key* __restrict__ keys, u32 size, u32 shift, u32 groups, i64* offsets)
{
    const u32 group = blockIdx.x * THREADS + threadIdx.x;
    if (group > groups)
        return;
    u32 low = 0;
    u32 high = size;
    while (low < high) {
        const u32 middle = low + (high - low) / 2;
        if (keys[middle] >> shift < group)
            low = middle + 1;
        else
            high = middle;
    }
    offsets[group] = low;
}

extern "C" __global__ void __launch_bounds__(THREADS) word_offsets(
    const u32* __restrict__ keys, u32 size, u32 shift, u32 groups, i64* offsets)
{
    find_offsets(keys, size, shift, groups, offsets);
}

extern "C" __global__ void __launch_bounds__(THREADS) document_offsets(
    const u64* __restrict__ keys, u32 size, u32 shift, u32 groups, i64* offsets)
{
    find_offsets(keys, size, shift, groups, offsets);
}
