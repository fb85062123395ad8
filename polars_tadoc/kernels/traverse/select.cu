// The words of a result: those with a minimum count, or the most frequent ones.
#include "primitives/counters.cuh"

constexpr u32 BUCKETS = 2048;
constexpr u32 THREADS = 1024;

// A count's bucket on a scale of 32 steps per power of two: monotonic, with additional ties.
__device__ __forceinline__ u32 bucket_of(u64 count)
{
    const int exponent = 63 - __clzll(count | 1);
    if (exponent < 5)
        return static_cast<u32>(count);
    return (exponent - 4) * 32 + (static_cast<u32>(count >> (exponent - 5)) & 31);  // maximum 1919
}

// buckets    zero at the start
// report     [0] words with the minimum count, [1] adjacent pairs that are not in result order
// ascending  whether each word but the last precedes its successor in code point order, or null
extern "C" __global__ void __launch_bounds__(THREADS) survey(
    const u64* __restrict__ counts, const bool* __restrict__ ascending, u32 size, u64 least, u32* buckets, u64* report)
{
    __shared__ u32 held[BUCKETS];
    for (u32 i = threadIdx.x; i < BUCKETS; i += THREADS)
        held[i] = 0;
    __syncthreads();
    u32 kept = 0;
    u32 disordered = 0;
    for (u64 word = blockIdx.x * THREADS + threadIdx.x; word < size; word += static_cast<u64>(gridDim.x) * THREADS) {
        const u64 count = counts[word];
        if (count >= least) {
            atomicAdd(held + bucket_of(count), 1);
            ++kept;
        }
        if (ascending != nullptr && word + 1 < size) {
            const u64 after = counts[word + 1];
            disordered += count < after || (count == after && count >= least && !ascending[word]);
        }
    }
    for (u32 lanes = 16; lanes > 0; lanes /= 2) {
        kept += __shfl_down_sync(0xFFFFFFFFu, kept, lanes);
        disordered += __shfl_down_sync(0xFFFFFFFFu, disordered, lanes);
    }
    if (threadIdx.x % 32 == 0) {
        if (kept != 0)
            atomicAdd(report, static_cast<u64>(kept));
        if (disordered != 0)
            atomicAdd(report + 1, static_cast<u64>(disordered));
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < BUCKETS; i += THREADS)
        if (held[i] != 0)
            atomicAdd(buckets + i, held[i]);
}

// Writes count and id of every word that may be among the `top` most frequent: all of the bucket of the last one and
// above. found: [0] their number, zero at the start; then the first `capacity` pairs.
extern "C" __global__ void __launch_bounds__(THREADS) collect(
    const u64* __restrict__ counts, u32 size, u64 least, u64 top, const u32* __restrict__ buckets, u32 capacity,
    u64* found)
{
    __shared__ u64 sums[THREADS];
    __shared__ u32 lowest;
    // Thread t owns buckets BUCKETS - 1 - 2 t and the one below: running sums go from high counts to low.
    const u32 upper = BUCKETS - 1 - 2 * threadIdx.x;
    const u64 upper_words = buckets[upper];
    const u64 own = upper_words + buckets[upper - 1];
    sums[threadIdx.x] = own;
    if (threadIdx.x == 0)
        lowest = 0;
    __syncthreads();
    for (u32 reach = 1; reach < THREADS; reach *= 2) {
        const u64 before = threadIdx.x >= reach ? sums[threadIdx.x - reach] : 0;
        __syncthreads();
        sums[threadIdx.x] += before;
        __syncthreads();
    }
    const u64 through = sums[threadIdx.x];
    if (through >= top && through - own < top)  // true in at most one thread
        lowest = through - own + upper_words >= top ? upper : upper - 1;
    __syncthreads();
    for (u64 word = blockIdx.x * THREADS + threadIdx.x; word < size; word += static_cast<u64>(gridDim.x) * THREADS) {
        const u64 count = counts[word];
        if (count < least || bucket_of(count) < lowest)
            continue;
        const u64 place = atomicAdd(found, 1ull);
        if (place < capacity) {
            found[1 + 2 * place] = count;
            found[2 + 2 * place] = word;
        }
    }
}

// Puts words in code point order with a key that sorts them by descending count, dropped words last.
extern "C" __global__ void order_keys(
    const u64* __restrict__ counts, const u32* __restrict__ rank, u32 size, u64 least, u64* keys, u32* by_rank)
{
    const u64 threads = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 word = blockIdx.x * blockDim.x + threadIdx.x; word < size; word += threads) {
        const u32 place = rank[word];
        const u64 count = counts[word];
        keys[place] = count >= least ? ~count : ~0ull;  // least is at least 1
        by_rank[place] = static_cast<u32>(word);
    }
}

extern "C" __global__ void gather(
    const u64* __restrict__ counts, const u32* __restrict__ by_rank, const i64* __restrict__ order, u32 size,
    u32* ids, u64* chosen)
{
    const u64 threads = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = blockIdx.x * blockDim.x + threadIdx.x; i < size; i += threads) {
        const u32 word = by_rank[order[i]];
        ids[i] = word;
        chosen[i] = counts[word];
    }
}
