// The first and the last words of rules.
#include "primitives/counters.cuh"
#include "primitives/segments.cuh"
#include "sequences/bodies.cuh"
#include "primitives/grid_barrier.cuh"

constexpr u32 THREADS = 256;

// Bodies refer to rules of lower levels: a level starts when all blocks have finished the previous one. Other blocks'
// writes are read past level 1, which is not coherent.
extern "C" __global__ void __launch_bounds__(THREADS) fill_ends(
    const i64* __restrict__ level_offsets, u32 levels, const i64* __restrict__ rule_offsets,
    const u32* __restrict__ symbols, const u64* __restrict__ lengths, u32 terminals, const u32* __restrict__ rank,
    u32 reach, u32 stride, u32* ends, u32* arrived)
{
    u32 target = 0;
    for (u32 level = 0; level < levels; ++level) {
        const u64 stop = 2 * static_cast<u64>(level_offsets[level + 1]);
        const u64 threads = static_cast<u64>(gridDim.x) * THREADS;
        u64 half = 2 * static_cast<u64>(level_offsets[level]) + static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
        for (; half < stop; half += threads) {
            const u32 rule = static_cast<u32>(half / 2);
            u32* own = ends + ends_of(rule, stride);
            const i64 begin = rule_offsets[rule];
            const i64 end = rule_offsets[rule + 1];
            const u32 length = static_cast<u32>(min(lengths[rule], 2 * static_cast<u64>(reach) + 1));
            u32 left = min(length, reach);
            if (half % 2 == 0) {
                own[0] = length;
                u32* head = own + 1;
                for (i64 position = begin; left > 0 && position < end; ++position) {
                    const u32 symbol = __ldg(symbols + position);
                    if (symbol < terminals) {
                        *head++ = rank_of(rank, symbol);
                        --left;
                        continue;
                    }
                    const u32* child = ends + ends_of(symbol - terminals, stride);
                    const u32 taken = min(__ldcg(child), left);
                    for (u32 i = 0; i < taken; ++i)
                        *head++ = __ldcg(child + 1 + i);
                    left -= taken;
                }
            } else {
                u32* tail = own + 1 + reach;
                for (i64 position = end - 1; left > 0 && position >= begin; --position) {
                    const u32 symbol = __ldg(symbols + position);
                    if (symbol < terminals) {
                        tail[--left] = rank_of(rank, symbol);
                        continue;
                    }
                    const u32* child = ends + ends_of(symbol - terminals, stride);
                    u32 held = min(__ldcg(child), reach);
                    while (held > 0 && left > 0)
                        tail[--left] = __ldcg(child + reach + held--);
                }
            }
        }
        if (level + 1 < levels)
            grid_barrier(arrived, target);
    }
}

// Sets the bit of each position at which a nonempty owner starts. starts: all zero.
extern "C" __global__ void mark_starts(const i64* __restrict__ offsets, u32 owners, u32* starts)
{
    const u64 owner = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (owner < owners && offsets[owner] < offsets[owner + 1])
        atomicOr(starts + offsets[owner] / 32, 1u << (offsets[owner] % 32));
}
