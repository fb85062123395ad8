// Rules whose terminals are windows: each body's own ones, and the children that hold some.
#include "counters.cuh"
#include "bodies.cuh"
#include "packing.cuh"
#include "block_scan.cuh"

constexpr u32 THREADS = 256;

// The last words of a child, at most `reach` of them, or the child itself where it is a word.
struct Tail {
    const u32* words;
    u32 word;
    u32 length;

    __device__ __forceinline__ Tail(const Text& text, u64 position)
    {
        if (text.is_rule(position)) {
            const u32* ends = text.ends_at(position);
            words = ends + 1 + text.reach;
            length = min(__ldg(ends), text.reach);
            word = 0;
        } else {
            words = nullptr;
            length = 1;
            word = rank_of(text.rank, __ldg(text.symbols + position));
        }
    }

    __device__ __forceinline__ u32 operator[](u32 i) const { return words == nullptr ? word : __ldg(words + i); }
};

// Gives one word after another: those of the tail, then those of the children that follow. The caller knows that
// the owner has so many.
struct Walk {
    const Text& text;
    u64 position;
    const u32* words;
    u32 word;
    u32 place;
    u32 length;

    __device__ __forceinline__ Walk(const Text& text, u64 position, const Tail& tail) :
        text(text), position(position), words(tail.words), word(tail.word), place(0), length(tail.length)
    {
    }

    __device__ __forceinline__ u32 next()
    {
        while (place == length) {
            ++position;
            place = 0;
            if (text.is_rule(position)) {
                const u32* ends = text.ends_at(position);
                words = ends + 1;
                length = min(__ldg(ends), text.reach);
            } else {
                words = nullptr;
                length = 1;
                word = rank_of(text.rank, __ldg(text.symbols + position));
            }
        }
        const u32 i = place++;
        return words == nullptr ? word : __ldg(words + i);
    }

    __device__ __forceinline__ void skip(u32 count)
    {
        while (count > 0) {
            const u32 passed = min(count, length - place);
            place += passed;
            count -= passed;
            if (count > 0) {
                next();
                --count;
            }
        }
    }
};

// Runs of reach + 1 words that start in a child and end in a later one.
struct Windows {
    static __device__ __forceinline__ u32 count(const Text& text, u64 position)
    {
        if (text.reach == 0)
            return text.is_rule(position) ? 0 : 1;  // a word is a window by itself
        const u32 tail = min(text.length(position), text.reach);
        const u32 after = tail == 0 ? 0 : text.words_after(position);
        return tail + after > text.reach ? tail + after - text.reach : 0;
    }

    static __device__ __forceinline__ void write(
        const Text& text, u64 position, const Packing& packing, u64* target, u64 capacity)
    {
        const u32 windows = count(text, position);
        const Tail tail(text, position);
        for (u32 column = 0; column < packing.columns; ++column) {
            const bool last = column + 1 == packing.columns;
            const u32 first = min(column * packing.per_column, packing.words);
            const u32 words = last ? packing.words - first : packing.per_column;
            const u32 key_bits = words * packing.bits;
            const u64 mask = key_bits < 64 ? (1ull << key_bits) - 1 : ~0ull;
            Walk walk(text, position, tail);
            walk.skip(first);
            u64 key = 0;
            for (u32 i = 1; i < words; ++i)
                key = key << packing.bits | walk.next();
            u64* at = target + column * capacity;
            for (u32 i = 0; i < windows; ++i) {
                if (words > 0)
                    key = (key << packing.bits | walk.next()) & mask;
                write_digits(at, key, 1, packing, last);
            }
        }
    }
};

// Pairs of words in different children, at most `reach` apart, the one of lower rank first.
struct Pairs {
    template <typename Visit>
    static __device__ __forceinline__ void visit_pairs(const Text& text, u64 position, Visit visit)
    {
        const Tail tail(text, position);
        const u32 after = tail.length == 0 ? 0 : text.words_after(position);
        Walk walk(text, position, tail);
        walk.place = walk.length;
        for (u32 apart = 1; apart <= after; ++apart) {
            const u32 word = walk.next();
            const u32 earlier = min(tail.length, text.reach + 1 - apart);
            for (u32 i = 0; i < earlier; ++i) {
                const u32 other = tail[tail.length - 1 - i];
                visit(min(word, other), max(word, other));
            }
        }
    }

    static __device__ __forceinline__ u32 count(const Text& text, u64 position)
    {
        const u32 tail = min(text.length(position), text.reach);
        const u32 after = tail == 0 ? 0 : text.words_after(position);
        u32 pairs = 0;
        for (u32 apart = 1; apart <= after; ++apart)
            pairs += min(tail, text.reach + 1 - apart);
        return pairs;
    }

    static __device__ __forceinline__ void write(
        const Text& text, u64 position, const Packing& packing, u64* target, u64 capacity)
    {
        u64* second = target + capacity;
        visit_pairs(text, position, [&](u32 low, u32 high) {
            if (packing.columns == 1) {
                write_digits(target, static_cast<u64>(low) << packing.bits | high, 1, packing, true);
            } else {
                write_digits(target, low, 1, packing, false);
                write_digits(second, high, 1, packing, true);
            }
        });
    }
};

// Derived rules: writes each position's windows in any order.
// taken   windows that are written already
// places  by position: where its windows stand in the derived bodies
// slots   by entry: its place there
template <typename Kind>
__device__ __forceinline__ void place_entries(
    const Text& text, const Packing& packing, u64* columns, u64 capacity, u64* taken, const u64* places, u32* slots)
{
    __shared__ u64 block_start;
    const u64 position = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    const u32 entries = position < text.size ? Kind::count(text, position) : 0;
    u32 all;
    const u32 before = block_before<THREADS>(entries, all);
    if (all == 0)
        return;
    if (threadIdx.x == 0)
        block_start = atomicAdd(taken, static_cast<u64>(all));
    __syncthreads();
    if (entries == 0)
        return;
    const u64 start = block_start + before;
    Kind::write(text, position, packing, columns + start, capacity);
    for (u32 i = 0; i < entries; ++i)
        slots[start + i] = static_cast<u32>(places[position] + i);
}

extern "C" __global__ void __launch_bounds__(THREADS) place_windows(
    const u32* __restrict__ symbols, u64 size, const u32* __restrict__ starts, const u32* __restrict__ ends,
    u32 stride, u32 terminals, const u32* __restrict__ rank, u32 reach, u32 words, u32 bits, u32 per_column,
    u32 column_count, u32 spare, u32 digit_bits, u32 document_bits, u64* columns, u64 capacity, u64* taken,
    const u64* __restrict__ places, u32* slots)
{
    place_entries<Windows>(
        {symbols, size, starts, ends, stride, terminals, rank, reach},
        {words, bits, per_column, column_count, spare, digit_bits, document_bits}, columns, capacity, taken, places, slots);
}

extern "C" __global__ void __launch_bounds__(THREADS) place_pairs(
    const u32* __restrict__ symbols, u64 size, const u32* __restrict__ starts, const u32* __restrict__ ends,
    u32 stride, u32 terminals, const u32* __restrict__ rank, u32 reach, u32 words, u32 bits, u32 per_column,
    u32 column_count, u32 spare, u32 digit_bits, u32 document_bits, u64* columns, u64 capacity, u64* taken,
    const u64* __restrict__ places, u32* slots)
{
    place_entries<Pairs>(
        {symbols, size, starts, ends, stride, terminals, rank, reach},
        {words, bits, per_column, column_count, spare, digit_bits, document_bits}, columns, capacity, taken, places, slots);
}

// Symbols that a position has in the derived bodies: its windows (or pairs), and the child itself where it holds
// some: a rule of at least `least` words.
template <typename Kind>
__device__ __forceinline__ void measure(const Text& text, u32 least, u32* sizes)
{
    const u64 position = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (position < text.size)
        sizes[position] = Kind::count(text, position) + (text.is_rule(position) && text.length(position) >= least);
}

extern "C" __global__ void __launch_bounds__(THREADS) measure_windows(
    const u32* __restrict__ symbols, u64 size, const u32* __restrict__ starts, const u32* __restrict__ ends,
    u32 stride, u32 terminals, const u32* __restrict__ rank, u32 reach, u32 least, u32* sizes)
{
    measure<Windows>({symbols, size, starts, ends, stride, terminals, rank, reach}, least, sizes);
}

extern "C" __global__ void __launch_bounds__(THREADS) measure_pairs(
    const u32* __restrict__ symbols, u64 size, const u32* __restrict__ starts, const u32* __restrict__ ends,
    u32 stride, u32 terminals, const u32* __restrict__ rank, u32 reach, u32 least, u32* sizes)
{
    measure<Pairs>({symbols, size, starts, ends, stride, terminals, rank, reach}, least, sizes);
}

// Writes the derived bodies' rules: each stands last of its position's symbols. places: one more than positions.
extern "C" __global__ void __launch_bounds__(THREADS) write_children(
    const u32* __restrict__ symbols, u64 size, const u32* __restrict__ ends, u32 stride, u32 terminals, u32 least,
    u32 derived_terminals, const u64* __restrict__ places, u32* derived)
{
    const u64 position = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (position >= size || symbols[position] < terminals)
        return;
    const u32 rule = symbols[position] - terminals;
    if (ends[ends_of(rule, stride)] >= least)
        derived[places[position + 1] - 1] = derived_terminals + rule;
}
