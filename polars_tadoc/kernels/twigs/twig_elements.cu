// Documents as elements in the order of their end tags.
#include "primitives/counters.cuh"
#include "primitives/scan.cuh"
#include "twigs/twigs.cuh"

constexpr u32 THREADS = 128;
constexpr u32 WARPS = THREADS / 32;
constexpr u32 OPEN_LEVELS = 64;  // open elements that a warp holds in shared memory

// Converts events to elements in the order of their end tags. An element's content comes right before it, so the nodes
// found there are at hand. At a leaf that is not joined, the nodes found so far are pushed on a stack; the next element
// that is joined and not a leaf pops them. Of consecutive leaves with the same symbol one suffices.
//
// One warp per document, 32 events at a time. opened, elements: half as long as the events. counts: elements by
// document. most: maximum number of sets on a stack, or null.
extern "C" __global__ void __launch_bounds__(THREADS) order_elements(
    const SYMBOL* __restrict__ symbols, const i64* __restrict__ offsets, u64 documents, u32* opened,
    u32* __restrict__ elements, u32* __restrict__ counts, u32* most)
{
    __shared__ u32 held[WARPS][OPEN_LEVELS];
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    const u32 lanes_below = (1u << lane) - 1;
    const u64 document = static_cast<u64>(blockIdx.x) * WARPS + warp;
    if (document >= documents)
        return;
    const u64 begin = offsets[document];
    const u64 stop = offsets[document + 1];
    u32* own_elements = elements + begin / 2;
    u32* own_opened = opened + begin / 2;
    u32 depth = 0;
    u32 waiting = 0;
    u32 most_waiting = 0;
    u32 count = 0;
    u32 last = CLOSE;  // the lane's events of the previous turn and of the next two
    u32 next = begin + lane < stop ? symbols[begin + lane] : CLOSE;
    u32 after_next = begin + 32 + lane < stop ? symbols[begin + 32 + lane] : CLOSE;
    for (u64 at = begin; at < stop; at += 32) {
        const u64 i = at + lane;
        const bool there = i < stop;
        const u32 symbol = next;
        next = after_next;
        after_next = i + 64 < stop ? symbols[i + 64] : CLOSE;
        const auto earlier = [&](u32 steps) {
            return __shfl_sync(ALL_LANES, lane >= 32 - steps ? last : symbol, lane - steps);
        };
        const u32 before_1 = earlier(1);
        const u32 before_2 = earlier(2);
        const u32 before_3 = earlier(3);
        last = symbol;
        const bool after_close = before_1 == CLOSE;
        const bool opens = symbol != CLOSE;
        const bool closes = there && !opens;
        const u32 opening = __ballot_sync(ALL_LANES, opens);
        const u32 closing = __ballot_sync(ALL_LANES, closes);
        u32 level = depth + __popc(opening & lanes_below) - __popc(closing & lanes_below) - (opens ? 0 : 1);
        if (!there)
            level = NONE - lane;  // unique to the lane

        // at one level, opening and closing events alternate
        u32 element = symbol << FLAGS | (after_close ? JOINED : 0);
        const u32 same = __match_any_sync(ALL_LANES, level);
        const u32 before = same & lanes_below;
        const u32 its_open = __shfl_sync(ALL_LANES, element, before == 0 ? 0 : 31 - __clz(before));
        const bool near = level < OPEN_LEVELS;
        if (closes)
            element = before != 0 ? its_open : near ? held[warp][level] : own_opened[level];
        __syncwarp();
        if (opens && same >> lane == 1) {
            if (near)
                held[warp][level] = element;
            else
                own_opened[level] = element;
        }
        __syncwarp();

        const bool leaf = closes && !after_close;
        const bool again = leaf && before_2 == CLOSE && before_3 == before_1;
        const u32 kept = __ballot_sync(ALL_LANES, closes && !again);
        if (closes && !again)
            own_elements[count + __popc(kept & lanes_below)] = element | (leaf ? LEAF : 0);
        count += __popc(kept);
        depth += __popc(opening) - __popc(closing);

        const bool joined = (element & JOINED) != 0;
        const u32 puts = __ballot_sync(ALL_LANES, leaf && !joined);
        const u32 takes = __ballot_sync(ALL_LANES, closes && !leaf && joined);
        const u32 now = waiting + __popc(puts & lanes_below) - __popc(takes & lanes_below) + 1;
        if (puts >> lane & 1)
            most_waiting = max(most_waiting, now);
        waiting += __popc(puts) - __popc(takes);
    }
    for (u32 step = 16; step > 0; step /= 2)
        most_waiting = max(most_waiting, __shfl_xor_sync(ALL_LANES, most_waiting, step));
    if (lane == 0) {
        counts[document] = count;
        if (most != nullptr)
            atomicMax(most, most_waiting);
    }
}
