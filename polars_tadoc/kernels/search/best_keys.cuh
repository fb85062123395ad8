// The best of many scored documents. Include after counters.cuh and scan.cuh.
//
// A key has the score's bits above the document's complement: scores are not negative, so keys sort by score, then by
// document, and are unique. 0 is not a key.
#ifndef POLARS_TADOC_BEST_KEYS
#define POLARS_TADOC_BEST_KEYS

__device__ __forceinline__ u64 key_of(u32 score, u32 document)
{
    return static_cast<u64>(score) << 32 | ~document;
}

// Keys are counted in ranges of equal width: 32 per doubling of a score.
constexpr u32 LOG_BINS = 9;
constexpr u32 BINS = 1u << LOG_BINS;
constexpr u64 WINDOW = 1ull << (32 + 23 + 4);  // scores down to 2^-16 of the highest

struct Selection {
    u32 bins[BINS];
    u64 floor;
    int best;
    u32 held;
    u32 bin;  // the highest one that together with those above has enough keys, or NONE
    u32 above;  // keys above it
    u32 inside;  // keys in it
};

__device__ __forceinline__ u32 bin_shift(u64 low, u64 high)
{
    const u32 bits = 64 - static_cast<u32>(__clzll(static_cast<long long>((high - low) | 1)));
    return bits > LOG_BINS ? bits - LOG_BINS : 0;
}

__device__ __forceinline__ void clear_bins(Selection& chosen)
{
    __syncthreads();
    for (u32 i = threadIdx.x; i < BINS; i += blockDim.x)
        chosen.bins[i] = 0;
    __syncthreads();
}

// Finds the bin of the key with this rank, the highest key having rank 1.
__device__ __forceinline__ void find_bin(Selection& chosen, u32 rank)
{
    __syncthreads();
    if (threadIdx.x < 32) {
        constexpr u32 EACH = BINS / 32;
        const u32 top = BINS - 1 - EACH * threadIdx.x;
        u32 sum = 0;
        for (u32 i = 0; i < EACH; ++i)
            sum += chosen.bins[top - i];
        u32 before = lanes_before(sum);
        if (threadIdx.x == 0)
            chosen.bin = NONE;
        __syncwarp();
        if (before < rank && before + sum >= rank)
            for (u32 i = top;; --i) {
                if (before + chosen.bins[i] >= rank) {
                    chosen.bin = i;
                    chosen.above = before;
                    chosen.inside = chosen.bins[i];
                    break;
                }
                before += chosen.bins[i];
            }
    }
    __syncthreads();
}

// Copies the k highest keys to `kept`, unsorted, and possibly some more, at most `room` in all; keys below
// `*least_wanted`, which other blocks may raise at any time, are irrelevant. Returns the number of keys, and sets `low`
// so that no key below it was copied and, if there are k keys, k keys reach it. Called by the whole block of
// BLOCK_THREADS threads.
//
// survey(score, best, count)  raises `best`, initially -1, to the highest score of this thread's keys, as bits, and
// adds to
//                             `count` the number of keys with this score or a higher one
// visit(low, f)               calls f(key) for each of this thread's keys from `low` on, and possibly for lower ones
template <u32 BLOCK_THREADS, typename Survey, typename Visit>
__device__ __forceinline__ u32 keep_best(
    Selection& chosen, u32 k, u32 room, const u64* least_wanted, u64* kept, u64& low, Survey survey, Visit visit)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        chosen.floor = max(1ull, *const_cast<const volatile u64*>(least_wanted));  // the same for all threads
        chosen.best = -1;
        chosen.held = 0;
    }
    __syncthreads();
    const u64 floor = chosen.floor;
    int best = -1;
    u32 held = 0;
    survey(static_cast<int>(floor >> 32), best, held);
    held = lanes_sum(held);
    int warp_best = best;
    for (u32 step = 16; step > 0; step /= 2)
        warp_best = max(warp_best, __shfl_xor_sync(ALL_LANES, warp_best, step));
    if (threadIdx.x % 32 == 0 && held != 0) {
        atomicAdd(&chosen.held, held);
        atomicMax(&chosen.best, warp_best);
    }
    __syncthreads();
    held = chosen.held;
    low = floor;
    if (held == 0)
        return 0;
    u64 high = static_cast<u64>(chosen.best) << 32 | 0xFFFFFFFFu;
    if (held > room && k <= BLOCK_THREADS / 2) {
        // the k-th highest of the threads' best keys is reached by k keys
        const u64 least = max(floor, high > WINDOW ? high - WINDOW : 0);
        const u32 shift = bin_shift(least, high);
        const u64 own = best < 0 ? 0 : static_cast<u64>(best) << 32;
        clear_bins(chosen);
        if (own >= least)
            atomicAdd(chosen.bins + ((own - least) >> shift), 1u);
        find_bin(chosen, k);
        if (chosen.bin != NONE)
            low = least + (static_cast<u64>(chosen.bin) << shift);
    }
    u32 above = 0;  // keys known to be among the best
    for (bool exact = false;; exact = true) {
        if (exact) {
            for (u64 least = low;;) {
                const u32 shift = bin_shift(least, high);
                clear_bins(chosen);
                visit(least, [&](u64 key) {
                    if (key >= least && key <= high)
                        atomicAdd(chosen.bins + ((key - least) >> shift), 1u);
                });
                find_bin(chosen, k - above);
                if (chosen.bin == NONE)  // a duplicate key: damaged
                    break;
                low = least + (static_cast<u64>(chosen.bin) << shift);
                if (above + chosen.above + chosen.inside <= room || shift == 0)
                    break;
                above += chosen.above;
                least = low;
                high = low + (1ull << shift) - 1;
            }
        }
        __syncthreads();
        if (threadIdx.x == 0)
            chosen.held = 0;
        __syncthreads();
        visit(low, [&](u64 key) {
            if (key >= low) {
                const u32 place = atomicAdd(&chosen.held, 1u);
                if (place < room)
                    kept[place] = key;
            }
        });
        __syncthreads();
        held = chosen.held;
        if (held <= room || exact)
            return min(held, room);
    }
}

// Appends keys to those of a query. Returns after this block's threads have written the keys; called by the whole
// block.
__device__ __forceinline__ void append_keys(const u64* kept, u32 held, u64* written, u64* target)
{
    __shared__ u64 place;
    if (threadIdx.x == 0)
        place = atomicAdd(written, static_cast<u64>(held));
    __syncthreads();
    for (u32 i = threadIdx.x; i < held; i += blockDim.x)
        target[place + i] = kept[i];
}

#endif
