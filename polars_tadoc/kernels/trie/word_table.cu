// A hash table of words, built once and read by many; exact, because bytes are compared. Words of up to eight bytes,
// most of a text, are in their slot: one load decides.
#include "primitives/counters.cuh"
#include "primitives/bytes.cuh"

constexpr u32 THREADS = 256;
constexpr u32 ALONE = 64;  // maximum bytes of a word for one thread; a warp processes each longer one
constexpr u32 MAX_PROBES = 1024;  // for a free slot: many words with one hash would take quadratic time
constexpr u32 ALL = 0xFFFFFFFFu;

// Results for the next kernel and for the host.
struct State {
    u32 long_count;
    u32 crowded;
};

struct alignas(16) Slot {
    u64 key;  // the bytes of a word of up to eight, zero-padded; the hash of a longer one
    u32 id;  // NONE: free
    u32 length;
};

struct Key {
    u64 key;
    u64 hash;
};

__device__ __forceinline__ u64 finish(u64 h)
{
    h *= 0x9E3779B97F4A7C15ull;
    return (h ^ h >> 29) & HASH_MASK;
}

__device__ __forceinline__ Key key_alone(const unsigned char* __restrict__ bytes, u32 begin, u32 length)
{
    if (length <= 8) {
        const u64 part = load_part(bytes, begin, length);
        return {part, finish(mix(length * 0x9E3779B97F4A7C15ull, part))};
    }
    const u64 hash = hash_bytes(bytes, begin, begin + length);
    return {hash, hash};
}

// The same in every lane. Called by all lanes of a warp.
__device__ Key key_together(const unsigned char* __restrict__ bytes, u32 begin, u32 length)
{
    const u32 lane = threadIdx.x & 31;
    u64 h = (length + lane) * 0x9E3779B97F4A7C15ull;
    for (u32 i = 8 * lane; i < length; i += 256)
        h = mix(h, load_part(bytes, begin + i, length - i));
    for (u32 step = 16; step > 0; step /= 2) {
        const u64 other = __shfl_down_sync(ALL, h, step);
        h = mix(h * 0xD6E8FEB86659FD93ull, other);
    }
    h = finish(__shfl_sync(ALL, h, 0));
    return {h, h};
}

__device__ bool equal_together(const unsigned char* __restrict__ bytes_a, u32 a,
    const unsigned char* __restrict__ bytes_b, u32 b, u32 length)
{
    const u32 lane = threadIdx.x & 31;
    for (u32 first = 0; first < length; first += 256) {
        const u32 i = first + 8 * lane;
        const bool same = i >= length || load_part(bytes_a, a + i, length - i) == load_part(bytes_b, b + i, length - i);
        if (!__all_sync(ALL, same))
            return false;
    }
    return true;
}

__device__ __forceinline__ u32 first_slot(u64 hash, u32 capacity)
{
    return __umulhi(static_cast<u32>(hash >> 32) ^ static_cast<u32>(hash), capacity);
}

__device__ __forceinline__ Slot load_slot(const Slot* slots, u32 slot)
{
    const uint4 raw = __ldg(reinterpret_cast<const uint4*>(slots) + slot);
    return {static_cast<u64>(raw.y) << 32 | raw.x, raw.z, raw.w};
}

// Takes the first free slot for a word.
__device__ __forceinline__ void insert(Slot* slots, u32 capacity, Key own, u32 id, u32 length, State* state)
{
    u32 slot = first_slot(own.hash, capacity);
    for (u32 probes = 0; atomicCAS(&slots[slot].id, NONE, id) != NONE; ++probes) {
        if (probes == MAX_PROBES || state->crowded != 0) {
            state->crowded = 1;
            return;
        }
        slot = slot + 1 == capacity ? 0 : slot + 1;
    }
    slots[slot].key = own.key;
    slots[slot].length = length;
}

// The id of a word, `unknown` if no slot has it. equals: compares the bytes of a word with equal length and hash.
template <typename Equals>
__device__ __forceinline__ u32 find(
    const Slot* slots, u32 capacity, Key own, u32 length, u32 unknown, const Equals& equals)
{
    u32 slot = first_slot(own.hash, capacity);
    for (u32 probes = 0; probes < capacity; ++probes) {
        const Slot seen = load_slot(slots, slot);
        if (seen.id == NONE)
            break;
        if (seen.key == own.key && seen.length == length && (length <= 8 || equals(seen.id)))
            return seen.id;
        slot = slot + 1 == capacity ? 0 : slot + 1;
    }
    return unknown;
}

// Inserts words bytes[offsets[i]:offsets[i + 1]]; long ones are listed instead; crowded: not all found a slot.
extern "C" __global__ void __launch_bounds__(THREADS) insert_words(const unsigned char* __restrict__ bytes,
    const u32* __restrict__ offsets, u32 words, Slot* slots, u32 capacity, u32* __restrict__ long_words,
    State* state)
{
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= words)
        return;
    const u32 length = offsets[i + 1] - offsets[i];
    if (length > ALONE)
        long_words[atomicAdd(&state->long_count, 1u)] = i;
    else
        insert(slots, capacity, key_alone(bytes, offsets[i], length), i, length, state);
}

extern "C" __global__ void __launch_bounds__(THREADS) insert_long_words(const unsigned char* __restrict__ bytes,
    const u32* __restrict__ offsets, Slot* slots, u32 capacity, const u32* __restrict__ long_words, State* state)
{
    const u32 warps = gridDim.x * (THREADS / 32);
    for (u32 turn = (blockIdx.x * THREADS + threadIdx.x) / 32; turn < state->long_count; turn += warps) {
        const u32 i = long_words[turn];
        const u32 length = offsets[i + 1] - offsets[i];
        const Key own = key_together(bytes, offsets[i], length);
        if ((threadIdx.x & 31) == 0)
            insert(slots, capacity, own, i, length, state);
        __syncwarp();
    }
}

// Ids of the tokens text[starts[i]:stops[i]]; long ones are listed instead. longest: bytes of the longest word.
extern "C" __global__ void __launch_bounds__(THREADS) find_words(const unsigned char* __restrict__ text,
    const u32* __restrict__ starts, const u32* __restrict__ stops, u32 tokens,
    const unsigned char* __restrict__ bytes, const u32* __restrict__ offsets, const Slot* __restrict__ slots,
    u32 capacity, u32 longest, u32 unknown, u32* __restrict__ ids, u32* __restrict__ long_tokens, State* state)
{
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= tokens)
        return;
    const u32 begin = starts[i];
    const u32 length = stops[i] - begin;
    if (length == 0 || length > longest) {
        ids[i] = unknown;
    } else if (length > ALONE) {
        long_tokens[atomicAdd(&state->long_count, 1u)] = i;
    } else {
        ids[i] = find(slots, capacity, key_alone(text, begin, length), length, unknown,
            [&](u32 id) { return equal_bytes(bytes, offsets[id], text, begin, length); });
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) find_long_words(const unsigned char* __restrict__ text,
    const u32* __restrict__ starts, const u32* __restrict__ stops, const unsigned char* __restrict__ bytes,
    const u32* __restrict__ offsets, const Slot* __restrict__ slots, u32 capacity, u32 unknown,
    u32* __restrict__ ids, const u32* __restrict__ long_tokens, const State* __restrict__ state)
{
    const u32 warps = gridDim.x * (THREADS / 32);
    for (u32 turn = (blockIdx.x * THREADS + threadIdx.x) / 32; turn < state->long_count; turn += warps) {
        const u32 i = long_tokens[turn];
        const u32 begin = starts[i];
        const u32 length = stops[i] - begin;
        const u32 id = find(slots, capacity, key_together(text, begin, length), length, unknown,
            [&](u32 other) { return equal_together(bytes, offsets[other], text, begin, length); });
        if ((threadIdx.x & 31) == 0)
            ids[i] = id;
    }
}

// Lengths of words by id; 0 for invalid ids.
extern "C" __global__ void measure_words(const u32* __restrict__ offsets, u32 words, const u32* __restrict__ ids,
    u32 count, u32* __restrict__ lengths)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        lengths[i] = ids[i] < words ? offsets[ids[i] + 1] - offsets[ids[i]] : 0;
}

// Copies words contiguously: the lanes of a warp share the bytes of its 32 words, so that all of them write to adjacent
// addresses.
extern "C" __global__ void copy_words(const unsigned char* __restrict__ bytes, const u32* __restrict__ offsets,
    u32 words, const u32* __restrict__ ids, u32 count, const i64* __restrict__ to,
    unsigned char* __restrict__ copy)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 lane = threadIdx.x & 31;
    const u32 own = min(i, count);
    const i64 begin = to[own];
    const i64 first = __shfl_sync(ALL, begin, 0);
    const i64 stop = to[min(i - lane + 32, count)];
    const u32 source = i < count && ids[i] < words ? offsets[ids[i]] : 0;
    for (i64 at = first; at < stop; at += 32) {
        const i64 place = at + lane;
        // the last of the warp's words that starts at or before the position; empty ones precede it
        u32 word = 0;
#pragma unroll
        for (u32 step = 16; step > 0; step /= 2) {
            const i64 start = __shfl_sync(ALL, begin, word + step);
            word += start <= place ? step : 0;
        }
        const i64 start = __shfl_sync(ALL, begin, word);
        const u32 from = __shfl_sync(ALL, source, word);
        if (place < stop)
            copy[place] = bytes[from + (place - start)];
    }
}
