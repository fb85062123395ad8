// Interns byte strings exactly, sorts the distinct ones and numbers them.
#include "primitives/counters.cuh"
#include "primitives/bytes.cuh"

constexpr u32 THREADS = 512;

// Finds or inserts a string. slots: high half of the hash, index of a string + 1. Returns NONE if no slot is free. The
// slot may refer to any of the equal strings.
__device__ u32 find_slot(const unsigned char* __restrict__ bytes, const u32* __restrict__ starts,
    const u32* __restrict__ stops, u32 place, u64* slots, u32 mask, bool* taken)
{
    const u32 begin = starts[place];
    const u32 length = stops[place] - begin;
    const u64 h = hash_bytes(bytes, begin, begin + length);
    const u32 tag = static_cast<u32>(h >> 32);
    const u64 own = static_cast<u64>(tag) << 32 | (place + 1);
    u32 slot = static_cast<u32>(h) & mask;
    for (u32 probes = 0; probes <= mask; ++probes) {
        u64 seen = __ldcg(slots + slot);
        if (seen == 0) {
            seen = atomicCAS(slots + slot, 0ull, own);
            if (seen == 0) {
                *taken = true;
                return slot;
            }
        }
        if (static_cast<u32>(seen >> 32) == tag) {
            const u32 known = static_cast<u32>(seen) - 1;
            const u32 known_begin = starts[known];
            if (stops[known] - known_begin == length && equal_bytes(bytes, known_begin, bytes, begin, length))
                return slot;
        }
        slot = (slot + 1) & mask;
    }
    return NONE;
}

// Interns strings bytes[starts[i]:stops[i]]. string_slots[i]: the slot of each, NONE for empty strings if they are to
// be skipped. slot_counts: occurrences; not counted if null. entries: the used slots, unsorted. state: number of used
// slots; if it exceeds `limit`, the table is too full and the rest of the work is skipped.
extern "C" __global__ void __launch_bounds__(THREADS) intern(const unsigned char* __restrict__ bytes,
    const u32* __restrict__ starts, const u32* __restrict__ stops, u32 strings, u32 leave_empty_out, u64* slots,
    u32 mask, u32 limit, u32* __restrict__ string_slots, u32* slot_counts, u32* __restrict__ entries, u32* state)
{
    __shared__ HeldCounts held;
    held.clear(slot_counts);
    const u32 lane = threadIdx.x & 31;
    const u32 stride = gridDim.x * THREADS;
    for (u64 warp_first = blockIdx.x * THREADS + (threadIdx.x & ~31u); warp_first < strings; warp_first += stride) {
        if (__shfl_sync(0xFFFFFFFFu, __ldcg(state), 0) > limit)
            break;  // the whole warp or none of it
        const u64 place = warp_first + lane;
        u32 slot = NONE;
        bool taken = false;
        if (place < strings) {
            const u32 i = static_cast<u32>(place);
            if (!leave_empty_out || starts[i] != stops[i]) {
                slot = find_slot(bytes, starts, stops, i, slots, mask, &taken);
                if (slot == NONE)
                    atomicMax(state, limit + 1);
            }
            string_slots[i] = slot;
        }
        if (taken) {
            const u32 entry = atomicAdd(state, 1u);
            if (entry < limit)
                entries[entry] = slot;
        }
        if (slot_counts != nullptr)
            held.add_warp(slot);
    }
    held.flush();
}

// Primary sort key of the distinct strings, unless null: descending counts. Also returns their spans.
extern "C" __global__ void describe_entries(const u32* __restrict__ entries, u32 count,
    const u64* __restrict__ slots, const u32* __restrict__ slot_counts, const u32* __restrict__ starts,
    const u32* __restrict__ stops, u32* __restrict__ falling, u32* __restrict__ entry_starts,
    u32* __restrict__ entry_stops)
{
    const u32 entry = blockIdx.x * blockDim.x + threadIdx.x;
    if (entry >= count)
        return;
    const u32 slot = entries[entry];
    const u32 place = static_cast<u32>(slots[slot]) - 1;
    if (falling != nullptr)
        falling[entry] = ~slot_counts[slot];
    entry_starts[entry] = starts[place];
    entry_stops[entry] = stops[place];
}

// Seven bytes of each entry from a depth on, the first one highest, and below them the number of remaining bytes, 8 for
// more than seven: keys sort as the strings do, and equal keys are ties only if more than seven bytes remain.
extern "C" __global__ void order_keys(const unsigned char* __restrict__ bytes, const u32* __restrict__ entry_starts,
    const u32* __restrict__ entry_stops, const u32* __restrict__ members, u32 count, u32 depth,
    u64* __restrict__ keys)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    const u32 entry = members[i];
    const u32 begin = entry_starts[entry] + depth;
    const u32 left = min(entry_stops[entry] - begin, 8u);
    const u64 part = load_part(bytes, begin, min(left, 7u));
    u64 key = 0;
    for (u32 k = 0; k < 7; ++k)
        key |= (part >> (8 * k) & 0xFF) << (56 - 8 * k);
    keys[i] = key | left;
}

struct Span {
    u32 begin;
    u32 end;
};

// Returns -1, 0 or 1 if string a sorts before b, is equal within this many bytes, or sorts after b. Their first `depth`
// bytes are equal.
__device__ int compare(const unsigned char* __restrict__ bytes, Span a, Span b, u32 depth, u32 most)
{
    for (u32 at = depth; at < depth + most; at += 8) {
        const u32 left_a = a.end - a.begin - at;
        const u32 left_b = b.end - b.begin - at;
        const u64 part_a = load_part(bytes, a.begin + at, left_a);
        const u64 part_b = load_part(bytes, b.begin + at, left_b);
        if (part_a != part_b) {
            const u32 shift = (__ffsll(part_a ^ part_b) - 1) & ~7;
            return (part_a >> shift & 0xFF) < (part_b >> shift & 0xFF) ? -1 : 1;
        }
        if (left_a <= 8 || left_b <= 8)  // the zeros were padding
            return left_a < left_b ? -1 : left_a > left_b;
    }
    return 0;
}

// One warp per member; members are sorted by group and key. Finds its position among its ties by comparing it with all
// of them; the fewer ties, the more bytes. unfinished: set if that would take too long; then positions of ties are
// invalid.
extern "C" __global__ void place_ties(const unsigned char* __restrict__ bytes, const u32* __restrict__ entry_starts,
    const u32* __restrict__ entry_stops, const u32* __restrict__ members, const u32* __restrict__ groups,
    const u64* __restrict__ keys, u32 count, u32 depth, const u32* __restrict__ places, u32* __restrict__ order,
    u32* __restrict__ unfinished)
{
    constexpr u32 MAX_TIES = 2048;
    constexpr u32 MAX_BYTES = 1 << 17;  // total bytes of ties; each is compared for at least 512 bytes
    const u32 lane = threadIdx.x & 31;
    const u64 warp = (static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    if (warp >= count)
        return;
    const u32 own = static_cast<u32>(warp);
    const u64 key = keys[own];
    const u32 group = groups[own];
    const auto ties_with = [&](u64 other) { return keys[other] == key && groups[other] == group; };
    u32 first = own;  // first tie, and the end of ties
    u32 stop = own + 1;
    if ((key & 0xFF) == 8) {
        // with this number of ties, finding the first and the last would take long
        if ((own >= MAX_TIES && ties_with(own - MAX_TIES))
            || (static_cast<u64>(own) + MAX_TIES < count && ties_with(static_cast<u64>(own) + MAX_TIES))) {
            *unfinished = 1;
            return;
        }
        for (u32 run = 32; run == 32 && own - first < MAX_TIES;) {
            const bool ties = lane < first && ties_with(first - 1 - lane);
            const u32 others = ~__ballot_sync(0xFFFFFFFFu, ties);
            run = others == 0 ? 32 : __ffs(others) - 1;
            first -= run;
        }
        for (u32 run = 32; run == 32 && stop - own < MAX_TIES;) {
            const u64 at = static_cast<u64>(stop) + lane;
            const u32 others = ~__ballot_sync(0xFFFFFFFFu, at < count && ties_with(at));
            run = others == 0 ? 32 : __ffs(others) - 1;
            stop += run;
        }
    }
    u32 smaller = 0;
    bool told = stop - first <= MAX_TIES;
    if (told && stop - first > 1) {
        const Span span = {entry_starts[members[own]], entry_stops[members[own]]};
        const u32 most = max(512u, MAX_BYTES / (stop - first));
        for (u32 other = first + lane; other < stop; other += 32) {
            const Span rival = {entry_starts[members[other]], entry_stops[members[other]]};
            const int compared = other == own ? 1 : compare(bytes, rival, span, depth, most);
            smaller += compared < 0;
            told &= compared != 0;
        }
        for (u32 step = 16; step > 0; step /= 2)
            smaller += __shfl_xor_sync(0xFFFFFFFFu, smaller, step);
    }
    if (!told)
        *unfinished = 1;
    if (lane == 0)
        order[places[first + smaller]] = members[own];
}

// The final number of each slot's string, by the order of the entries, and the strings' lengths in that order.
extern "C" __global__ void number_entries(const u32* __restrict__ order, u32 count, const u32* __restrict__ entries,
    const u32* __restrict__ entry_starts, const u32* __restrict__ entry_stops, u32* __restrict__ slot_ids,
    u64* __restrict__ lengths)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    const u32 entry = order[i];
    slot_ids[entries[entry]] = i;
    lengths[i] = entry_stops[entry] - entry_starts[entry];
}

// Copies strings contiguously, one warp per string; stops: end of each in the copy.
extern "C" __global__ void copy_entries(const unsigned char* __restrict__ bytes, const u32* __restrict__ order,
    u32 count, const u32* __restrict__ entry_starts, const u64* __restrict__ stops, unsigned char* __restrict__ copy)
{
    const u64 warp = (static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    if (warp >= count)
        return;
    const u64 begin = warp == 0 ? 0 : stops[warp - 1];
    const u64 length = stops[warp] - begin;
    const unsigned char* __restrict__ source = bytes + entry_starts[order[warp]];
#pragma unroll 8
    for (u64 i = threadIdx.x & 31; i < length; i += 32)
        copy[begin + i] = source[i];
}

// Ids of the strings; skipped ones get NONE.
extern "C" __global__ void map_slots(
    const u32* __restrict__ string_slots, u32 strings, const u32* __restrict__ slot_ids, u32* __restrict__ ids)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= strings)
        return;
    const u32 slot = string_slots[i];
    ids[i] = slot == NONE ? NONE : slot_ids[slot];
}
