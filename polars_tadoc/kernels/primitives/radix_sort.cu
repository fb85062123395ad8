// Stable radix sort, 8 bits per pass, with one read and one write per pass (Adinets and Merrill, Onesweep, 2022).
#include "primitives/counters.cuh"
#include "primitives/scan.cuh"

#ifndef KEY
#define KEY u64
#endif

// Numbers sorted with the keys, or void.
#ifndef VALUE
#define VALUE u64
#endif

constexpr u32 THREADS = 256;

using Key = KEY;
using Value = VALUE;

constexpr u32 DIGITS = 256;
constexpr u32 WARPS = THREADS / 32;
constexpr u32 ITEMS = 16;  // per thread, in registers
constexpr u32 TILE = ITEMS * THREADS;

constexpr u32 OWN = 1u << 30;  // a tile's count of a digit is published
constexpr u32 ALL_BEFORE = 2u << 30;  // it includes the tiles before
constexpr u32 COUNT = OWN - 1;

template <typename A, typename B>
constexpr bool SAME = false;
template <typename A>
constexpr bool SAME<A, A> = true;
constexpr bool HAS_VALUES = !SAME<Value, void>;

template <typename T>
struct OrNumber {
    using Type = T;
};
template <>
struct OrNumber<void> {
    using Type = u32;
};
using Stored = OrNumber<Value>::Type;

__device__ __forceinline__ u32 digit_of(Key key, u32 shift, u32 mask)
{
    return static_cast<u32>(key >> shift) & mask;
}

// Counts the digits of all passes. counts: passes x DIGITS, zeros.
extern "C" __global__ void __launch_bounds__(THREADS) count_digits(
    const Key* __restrict__ keys, u64 size, u32 first_bit, u32 bits, u32 width, u32 passes, u32* counts)
{
    __shared__ u32 held[8 * DIGITS];
    for (u32 i = threadIdx.x; i < passes * DIGITS; i += THREADS)
        held[i] = 0;
    __syncthreads();
    const u64 stride = static_cast<u64>(gridDim.x) * THREADS;
    for (u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x; i < size; i += stride) {
        const Key key = keys[i];
        for (u32 pass = 0; pass < passes; ++pass) {
            const u32 begun = pass * width;
            const u32 mask = (1u << min(width, bits - begun)) - 1;
            atomicAdd(held + pass * DIGITS + digit_of(key, first_bit + begun, mask), 1u);
        }
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < passes * DIGITS; i += THREADS)
        if (held[i] != 0)
            atomicAdd(counts + i, held[i]);
}

// Sum over the threads before this one.
__device__ __forceinline__ u64 threads_before(u64 own)
{
    __shared__ u64 sums[WARPS];
    const u64 before = lanes_before(own);
    if (threadIdx.x % 32 == 31)
        sums[threadIdx.x / 32] = before + own;
    __syncthreads();
    u64 whole = 0;
    for (u32 warp = 0; warp < threadIdx.x / 32; ++warp)
        whole += sums[warp];
    return whole + before;
}

// One pass. counts: number of each of this pass's digits in all keys. states: tiles x DIGITS, zeros; taken: zero.
extern "C" __global__ void __launch_bounds__(THREADS) sort_pass(
    const Key* __restrict__ keys, const Stored* __restrict__ values, u64 size, u32 shift, u32 mask,
    const u32* __restrict__ counts, u32* states, u32* taken, Key* sorted_keys, Stored* sorted_values)
{
    __shared__ u32 warp_counts[WARPS][DIGITS];
    __shared__ u32 starts[DIGITS];  // first position of a digit in the tile
    __shared__ u32 targets[DIGITS];  // target of its first key, minus its position in the tile
    __shared__ u64 staged[TILE];
    Key* staged_keys = reinterpret_cast<Key*>(staged);
    Stored* staged_values = reinterpret_cast<Stored*>(staged);

    const u32 tile = take_tile(taken);
    const u64 begin = static_cast<u64>(tile) * TILE;
    const u32 filled = static_cast<u32>(size - begin < TILE ? size - begin : TILE);
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    const u32 first = warp * 32 * ITEMS + lane;

    // The last tile is padded with the largest digit, which keeps the others in place.
    Key key[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i)
        key[i] = first + 32 * i < filled ? keys[begin + first + 32 * i] : static_cast<Key>(~0ull);

    u32* own_counts = warp_counts[warp];
    for (u32 digit = lane; digit < DIGITS; digit += 32)
        own_counts[digit] = 0;
    __syncwarp();
    u32 place[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        const u32 digit = digit_of(key[i], shift, mask);
        const u32 peers = __match_any_sync(ALL_LANES, digit);
        const u32 leader = static_cast<u32>(__ffs(peers)) - 1;
        u32 before = 0;
        if (lane == leader) {
            before = own_counts[digit];
            own_counts[digit] = before + __popc(peers);
        }
        place[i] = __shfl_sync(ALL_LANES, before, leader) + __popc(peers & ((1u << lane) - 1));
        __syncwarp();
    }
    __syncthreads();

    const u32 digit = threadIdx.x;
    u32 own = 0;
    if (digit < DIGITS) {
        for (u32 w = 0; w < WARPS; ++w) {
            const u32 count = warp_counts[w][digit];
            warp_counts[w][digit] = own;
            own += count;
        }
        const_cast<volatile u32*>(states)[tile * DIGITS + digit] = own | (tile == 0 ? ALL_BEFORE : OWN);
    }
    const u64 before_digit = threads_before(digit < DIGITS ? static_cast<u64>(counts[digit]) << 32 | own : 0);
    if (digit < DIGITS) {
        const u32 start = static_cast<u32>(before_digit);
        u32 before = 0;
        if (tile > 0) {
            for (u32 other = tile - 1;; --other) {
                u32 state;
                do {
                    state = const_cast<volatile u32*>(states)[other * DIGITS + digit];
                } while (state == 0);
                before += state & COUNT;
                if ((state & ALL_BEFORE) != 0)
                    break;
            }
            const_cast<volatile u32*>(states)[tile * DIGITS + digit] = (before + own) | ALL_BEFORE;
        }
        starts[digit] = start;
        targets[digit] = static_cast<u32>(before_digit >> 32) + before - start;
    }
    __syncthreads();

#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        const u32 digit_i = digit_of(key[i], shift, mask);
        place[i] += starts[digit_i] + own_counts[digit_i];
        staged_keys[place[i]] = key[i];
    }
    __syncthreads();
    u32 target[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; ++i) {
        const u32 j = threadIdx.x + i * THREADS;
        const Key moved = staged_keys[j];
        target[i] = targets[digit_of(moved, shift, mask)] + j;
        if (j < filled)
            sorted_keys[target[i]] = moved;
    }
    if constexpr (HAS_VALUES) {
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i)
            if (first + 32 * i < filled)
                staged_values[place[i]] = values[begin + first + 32 * i];
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < ITEMS; ++i) {
            const u32 j = threadIdx.x + i * THREADS;
            if (j < filled)
                sorted_values[target[i]] = staged_values[j];
        }
    }
}
