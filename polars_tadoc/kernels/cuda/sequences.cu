// Runs of n words and pairs of nearby words, from the first and last words of rules (G-TADOC, Zhang et al.,
// ICDE 2021, section on sequences: head and tail buffers).
//
// An owner (a rule's body, or a document) holds the windows that span two or more of its children. They start
// in the last words of a child; `reach` is how many words beyond its first a window may take. One thread deals
// with one position of a body, so that a long body gets many threads.
#include "counters.cuh"
#include "grid_barrier.cuh"
#include "block_scan.cuh"

constexpr u32 THREADS = 256;
constexpr u32 BUCKETS = 4096;
constexpr u32 ROUNDS = 8;  // of 32 neighbours that a warp takes when it sums up runs

// The ends of a rule: [0] its length, at most 2 reach + 1; then its first words; then its last words, both `reach`
// of them or as many as there are. Words are told by their ranks.
__device__ __forceinline__ u64 ends_of(u32 rule, u32 stride)
{
    return static_cast<u64>(rule) * stride;
}

__device__ __forceinline__ u32 rank_of(const u32* rank, u32 terminal)
{
    return rank == nullptr ? terminal : __ldg(rank + terminal);
}

// Bodies name rules of lower levels: a level starts when all blocks are through the one before. Other blocks'
// writes are read past level 1, which is not coherent.
extern "C" __global__ void __launch_bounds__(THREADS) fill_ends(
    const long long* __restrict__ level_offsets, u32 levels, const long long* __restrict__ rule_offsets,
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
            const long long begin = rule_offsets[rule];
            const long long end = rule_offsets[rule + 1];
            const u32 length = static_cast<u32>(min(lengths[rule], 2 * static_cast<u64>(reach) + 1));
            u32 left = min(length, reach);
            if (half % 2 == 0) {
                own[0] = length;
                u32* head = own + 1;
                for (long long position = begin; left > 0 && position < end; ++position) {
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
                for (long long position = end - 1; left > 0 && position >= begin; --position) {
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

// Sets the bit of each position at which an owner starts that is not empty. starts: all zero.
extern "C" __global__ void mark_starts(const long long* __restrict__ offsets, u32 owners, u32* starts)
{
    const u64 owner = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (owner < owners && offsets[owner] < offsets[owner + 1])
        atomicOr(starts + offsets[owner] / 32, 1u << (offsets[owner] % 32));
}

struct Text {
    const u32* symbols;
    u64 size;
    const u32* starts;
    const u32* ends;
    u32 stride;
    u32 terminals;
    const u32* rank;
    u32 reach;

    __device__ __forceinline__ bool is_rule(u64 position) const { return __ldg(symbols + position) >= terminals; }

    __device__ __forceinline__ const u32* ends_at(u64 position) const
    {
        return ends + ends_of(__ldg(symbols + position) - terminals, stride);
    }

    // At most 2 reach + 1.
    __device__ __forceinline__ u32 length(u64 position) const
    {
        return is_rule(position) ? __ldg(ends_at(position)) : 1;
    }

    __device__ __forceinline__ bool owner_ends(u64 position) const
    {
        return position >= size || (__ldg(starts + position / 32) >> (position % 32) & 1u) != 0;
    }

    // Words of the owner after this child: at most `reach` are counted.
    __device__ __forceinline__ u32 words_after(u64 position) const
    {
        u32 words = 0;
        for (u64 next = position + 1; words < reach && !owner_ends(next); ++next)
            words += min(length(next), reach - words);
        return words;
    }
};

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

// The entries of a batch: those whose first two ranks, put together, are in [low, high).
struct Range {
    u64 low;
    u64 high;

    __device__ __forceinline__ bool holds(u64 ranks) const { return ranks >= low && ranks < high; }
};

__device__ __forceinline__ u64 both_ranks(u32 first, u32 second)
{
    return static_cast<u64>(first) << 32 | second;
}

// How an entry is written: words by rank, `bits` each, `per_column` of them in each 64-bit column, the rest in
// the last column above `spare` bits. Those hold one digit of the weight, of `digit_bits` bits, below its place.
// No spare bits: no weights are written.
struct Packing {
    u32 words;
    u32 bits;
    u32 per_column;
    u32 columns;
    u32 spare;
    u32 digit_bits;
};

__device__ __forceinline__ u32 digits_in(u64 weight, u32 digit_bits)
{
    u32 digits = 0;
    for (; weight != 0; weight = digit_bits < 64 ? weight >> digit_bits : 0)
        digits += (weight & ((1ull << digit_bits) - 1)) != 0;
    return digits;
}

// Writes an entry's column as often as the weight has digits.
__device__ __forceinline__ void write_digits(u64*& target, u64 key, u64 weight, const Packing& packing, bool last)
{
    const u64 mask = (1ull << packing.digit_bits) - 1;
    const u64 above = packing.spare < 64 ? key << packing.spare : 0;
    for (u64 place = 0; weight != 0; ++place, weight >>= packing.digit_bits)
        if ((weight & mask) != 0)
            *target++ = last ? above | place << packing.digit_bits | (weight & mask) : key;
}

// Top-down: the words that own windows are made of, as plain text.
//
// Of a child, its last words may start a window and its first words may end one: these are written out, without
// what lies between them. A word's rank takes the low 30 bits.
constexpr u32 CHILD = 1u << 31;  // the first word that is written of a child
constexpr u32 BREAK = 1u << 30;  // the word before stands elsewhere: in another owner, or not next to this one
constexpr u32 RANK = BREAK - 1;

__device__ __forceinline__ u32 owner_at(u64 position, const long long* __restrict__ offsets, u32 owners)
{
    u32 low = 0;
    u32 high = owners;
    while (high - low > 1) {
        const u32 middle = low + (high - low) / 2;
        if (static_cast<u64>(__ldg(offsets + middle)) <= position)
            low = middle;
        else
            high = middle;
    }
    return low;
}

// How many words are written of the child at a position.
__device__ __forceinline__ u32 kept_words(const Text& text, u64 position)
{
    const bool first = text.owner_ends(position);
    const bool last = text.owner_ends(position + 1);
    if (text.reach == 0)
        return text.is_rule(position) ? 0 : 1;
    if (first && last)
        return 0;
    return min(text.length(position), first || last ? text.reach : 2 * text.reach);
}

// Words that each block of positions writes. most: zero at the start, then the largest weight.
extern "C" __global__ void __launch_bounds__(THREADS) measure_text(
    const u32* __restrict__ symbols, u64 size, const u32* __restrict__ starts, const u32* __restrict__ ends,
    u32 stride, u32 terminals, u32 reach, const u64* __restrict__ weights, const long long* __restrict__ offsets,
    u32 owners, u64* blocks, u64* most)
{
    const Text text = {symbols, size, starts, ends, stride, terminals, nullptr, reach};
    const u64 position = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    u32 kept = 0;
    u64 weight = 1;
    if (position < size) {
        if (weights != nullptr)
            weight = __ldg(weights + owner_at(position, offsets, owners));
        kept = weight == 0 ? 0 : kept_words(text, position);
    }
    u32 all;
    block_before<THREADS>(kept, all);
    if (threadIdx.x == 0)
        blocks[blockIdx.x] = all;
    if (weights != nullptr && weight > *const_cast<volatile u64*>(most))
        atomicMax(most, weight);
}

// blocks  words before each block's
// owner_of_word  by word: whose it is; null only without weights
extern "C" __global__ void __launch_bounds__(THREADS) write_text(
    const u32* __restrict__ symbols, u64 size, const u32* __restrict__ starts, const u32* __restrict__ ends,
    u32 stride, u32 terminals, const u32* __restrict__ rank, u32 reach, const u64* __restrict__ weights,
    const long long* __restrict__ offsets, u32 owners, const u64* __restrict__ blocks, u32* __restrict__ words,
    u32* __restrict__ owner_of_word)
{
    const Text text = {symbols, size, starts, ends, stride, terminals, rank, reach};
    const u64 position = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    u32 kept = 0;
    u32 owner = 0;
    if (position < size) {
        kept = kept_words(text, position);
        if (owner_of_word != nullptr)
            owner = owner_at(position, offsets, owners);
        if (weights != nullptr && __ldg(weights + owner) == 0)
            kept = 0;
    }
    u32 all;
    const u64 begin = blocks[blockIdx.x] + block_before<THREADS>(kept, all);
    if (kept == 0)
        return;
    // children of no words may stand between this one and its owner's start
    u64 before = position;
    while (!text.owner_ends(before) && text.length(before - 1) == 0)
        --before;
    u32 mark = CHILD | (text.owner_ends(before) ? BREAK : 0);
    u32* target = words + begin;
    if (!text.is_rule(position)) {
        *target = rank_of(rank, __ldg(symbols + position)) | mark;
    } else {
        const u32* own = text.ends_at(position);
        const u32 length = __ldg(own);
        const bool tail_only = text.owner_ends(position);
        const u32 heads = tail_only ? 0 : min(length, reach);
        for (u32 i = 0; i < heads; ++i) {
            target[i] = __ldg(own + 1 + i) | mark;
            mark = 0;
        }
        const u32* tail = own + 1 + reach + (min(length, reach) - (kept - heads));
        if (length > 2 * reach)
            mark |= BREAK;
        for (u32 i = heads; i < kept; ++i) {
            target[i] = __ldg(tail + i - heads) | mark;
            mark = 0;
        }
    }
    if (owner_of_word != nullptr)
        for (u32 i = 0; i < kept; ++i)
            owner_of_word[begin + i] = owner;
}

// What the host must know: words of rules, all words, the largest weight.
extern "C" __global__ void tell(const u64* before, u64 rule_blocks, u64 blocks, const u64* most, u64* told)
{
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        told[0] = before[rule_blocks];
        told[1] = before[blocks];
        told[2] = *most;
    }
}

// The words of `write_text`: first those of rules, which have owners with weights.
struct Words {
    const u32* words;
    u64 size;
    u64 of_rules;
    const u32* owners;
    const u64* weights;
    u32 reach;

    __device__ __forceinline__ u64 weight(u64 i) const
    {
        return i < of_rules ? __ldg(weights + __ldg(owners + i)) : 1;
    }

    __device__ __forceinline__ u32 rank(u64 i) const { return __ldg(words + i) & RANK; }
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

// Runs of reach + 1 words of two or more children.
struct TextWindows {
    // Visits the first two ranks of the window that starts at a word, if one does.
    template <typename Visit>
    static __device__ __forceinline__ void visit_first(const Words& text, u64 i, Visit visit)
    {
        if (i + text.reach >= text.size)
            return;
        u32 marks = text.reach == 0 ? CHILD : 0;
        for (u32 next = 1; next <= text.reach; ++next)
            marks |= __ldg(text.words + i + next);
        if ((marks & (CHILD | BREAK)) == CHILD)
            visit(both_ranks(text.rank(i), text.reach == 0 ? 0 : text.rank(i + 1)));
    }

    static __device__ __forceinline__ void write(
        const Words& text, u64 i, const Packing& packing, Range, u64 weight, u64* target, u64 capacity)
    {
        for (u32 column = 0; column < packing.columns; ++column) {
            const bool last = column + 1 == packing.columns;
            const u32 first = column * packing.per_column;
            const u32 stop = last ? packing.words : first + packing.per_column;
            u64 key = 0;
            for (u32 word = first; word < stop; ++word)
                key = key << packing.bits | text.rank(i + word);
            u64* at = target + column * capacity;
            if (packing.spare == 0)
                *at = key;
            else
                write_digits(at, key, weight, packing, last);
        }
    }
};

// Pairs of words of different children, at most `reach` apart, the one of lower rank first.
struct TextPairs {
    template <typename Visit>
    static __device__ __forceinline__ void visit_pairs(const Words& text, u64 i, Visit visit)
    {
        const u32 own = text.rank(i);
        u32 marks = 0;
        for (u32 apart = 1; apart <= text.reach && i + apart < text.size; ++apart) {
            const u32 other = __ldg(text.words + i + apart);
            marks |= other;
            if ((marks & BREAK) != 0)
                return;
            if ((marks & CHILD) != 0)
                visit(min(own, other & RANK), max(own, other & RANK));
        }
    }

    template <typename Visit>
    static __device__ __forceinline__ void visit_first(const Words& text, u64 i, Visit visit)
    {
        visit_pairs(text, i, [&](u32 low, u32 high) { visit(both_ranks(low, high)); });
    }

    static __device__ __forceinline__ void write(
        const Words& text, u64 i, const Packing& packing, Range range, u64 weight, u64* target, u64 capacity)
    {
        u64* second = target + capacity;
        visit_pairs(text, i, [&](u32 low, u32 high) {
            if (!range.holds(both_ranks(low, high)))
                return;
            if (packing.columns == 1) {
                write_digits(target, static_cast<u64>(low) << packing.bits | high, weight, packing, true);
            } else {
                write_digits(target, low, weight, packing, false);
                write_digits(second, high, weight, packing, true);
            }
        });
    }
};


// Entries of a range by their first two ranks, put together: `counts` has one for each 2^shift of them.
template <typename Kind>
__device__ __forceinline__ void count_entries(
    const Words& text, u32 digit_bits, Range range, u32 shift, u32 buckets, u64* counts)
{
    __shared__ u32 held[BUCKETS];
    for (u32 i = threadIdx.x; i < buckets; i += blockDim.x)
        held[i] = 0;
    __syncthreads();
    const u64 threads = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < text.size; i += threads) {
        const u32 digits = digits_in(text.weight(i), digit_bits);
        Kind::visit_first(text, i, [&](u64 ranks) {
            const u64 bucket = (ranks - range.low) >> shift;
            if (range.holds(ranks))
                add_held(held + bucket, digits, counts + bucket);
        });
    }
    __syncthreads();
    flush_held(held, buckets, counts);
}

extern "C" __global__ void __launch_bounds__(1024) count_windows(
    const u32* __restrict__ words, u64 size, u64 of_rules, const u32* __restrict__ owners,
    const u64* __restrict__ weights, u32 reach, u32 digit_bits, u64 low, u64 high, u32 shift, u32 buckets,
    u64* counts)
{
    count_entries<TextWindows>(
        {words, size, of_rules, owners, weights, reach}, digit_bits, {low, high}, shift, buckets, counts);
}

extern "C" __global__ void __launch_bounds__(1024) count_pairs(
    const u32* __restrict__ words, u64 size, u64 of_rules, const u32* __restrict__ owners,
    const u64* __restrict__ weights, u32 reach, u32 digit_bits, u64 low, u64 high, u32 shift, u32 buckets,
    u64* counts)
{
    count_entries<TextPairs>(
        {words, size, of_rules, owners, weights, reach}, digit_bits, {low, high}, shift, buckets, counts);
}

// Writes the entries of a batch in any order: each block takes the next room there is.
// columns   `capacity` entries of the first column, then of the second, ...
template <typename Kind>
__device__ __forceinline__ void write_entries(
    const Words& text, const Packing& packing, Range range, u64* columns, u64 capacity, u64* taken)
{
    __shared__ u64 block_start;
    const u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    u64 weight = 0;
    u32 entries = 0;
    if (i < text.size) {
        Kind::visit_first(text, i, [&](u64 ranks) { entries += range.holds(ranks); });
        if (entries != 0) {
            weight = text.weight(i);
            entries *= digits_in(weight, packing.digit_bits);
        }
    }
    u32 all;
    const u32 before = block_before<THREADS>(entries, all);
    if (all == 0)
        return;
    if (threadIdx.x == 0)
        block_start = atomicAdd(taken, static_cast<u64>(all));
    __syncthreads();
    if (entries != 0)
        Kind::write(text, i, packing, range, weight, columns + block_start + before, capacity);
}

extern "C" __global__ void __launch_bounds__(THREADS) write_windows(
    const u32* __restrict__ text_words, u64 size, u64 of_rules, const u32* __restrict__ owners,
    const u64* __restrict__ weights, u32 reach, u32 words, u32 bits, u32 per_column, u32 column_count, u32 spare,
    u32 digit_bits, u64 low, u64 high, u64* columns, u64 capacity, u64* taken)
{
    write_entries<TextWindows>(
        {text_words, size, of_rules, owners, weights, reach},
        {words, bits, per_column, column_count, spare, digit_bits}, {low, high}, columns, capacity, taken);
}

extern "C" __global__ void __launch_bounds__(THREADS) write_pairs(
    const u32* __restrict__ text_words, u64 size, u64 of_rules, const u32* __restrict__ owners,
    const u64* __restrict__ weights, u32 reach, u32 words, u32 bits, u32 per_column, u32 column_count, u32 spare,
    u32 digit_bits, u64 low, u64 high, u64* columns, u64 capacity, u64* taken)
{
    write_entries<TextPairs>(
        {text_words, size, of_rules, owners, weights, reach},
        {words, bits, per_column, column_count, spare, digit_bits}, {low, high}, columns, capacity, taken);
}

// Marks the words at which windows start, and the rules that have some.
extern "C" __global__ void __launch_bounds__(THREADS) find_windows(
    const u32* __restrict__ words, u64 size, u64 of_rules, const u32* __restrict__ owners, u32 reach,
    unsigned char* __restrict__ found, unsigned char* __restrict__ rules)
{
    const u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= size)
        return;
    found[i] = 0;
    TextWindows::visit_first({words, size, of_rules, owners, nullptr, reach}, i, [&](u64) {
        found[i] = 1;
        if (i < of_rules)
            rules[owners[i]] = 1;
    });
}

// The children that hold windows.
extern "C" __global__ void __launch_bounds__(THREADS) find_children(
    const u32* __restrict__ symbols, u64 size, const u32* __restrict__ ends, u32 stride, u32 terminals, u32 least,
    unsigned char* __restrict__ found)
{
    const u64 position = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (position < size)
        found[position] = symbols[position] >= terminals && ends[ends_of(symbols[position] - terminals, stride)] >= least;
}

// Writes the children that hold windows, over one terminal for each rule; body r starts `markers[r]` later.
// places  children before each position; markers may be null
extern "C" __global__ void __launch_bounds__(THREADS) keep_children(
    const u32* __restrict__ symbols, u64 size, const long long* __restrict__ offsets, u32 owners, u32 terminals,
    u32 rules, const unsigned char* __restrict__ found, const u64* __restrict__ places,
    const u64* __restrict__ markers, u32* __restrict__ target)
{
    const u64 position = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (position >= size || found[position] == 0)
        return;
    const u64 later = markers == nullptr ? 0 : markers[owner_at(position, offsets, owners) + 1];
    target[places[position] + later] = symbols[position] - terminals + rules;
}

// Writes the marker of each rule that has windows at the start of its body.
extern "C" __global__ void __launch_bounds__(THREADS) mark_rules(
    u32 rules, const unsigned char* __restrict__ found, const long long* __restrict__ body_offsets,
    u32* __restrict__ target)
{
    const u32 rule = blockIdx.x * THREADS + threadIdx.x;
    if (rule < rules && found[rule] != 0)
        target[body_offsets[rule]] = rule;
}

// Documents that hold the window of each word: as many as the rule's list, or one.
extern "C" __global__ void __launch_bounds__(THREADS) count_documents(
    const unsigned char* __restrict__ found, u64 size, u64 of_rules, const u32* __restrict__ owners,
    const long long* __restrict__ list_offsets, u32* __restrict__ counts)
{
    const u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= size)
        return;
    u32 count = found[i];
    if (i < of_rules && count != 0)
        count = static_cast<u32>(list_offsets[owners[i] + 1] - list_offsets[owners[i]]);
    counts[i] = count;
}

// Writes a window's key, and its document above its count there in the column after.
__device__ __forceinline__ void write_posting(
    const Words& text, u64 i, const Packing& packing, u64 document, u64 count, u64* target, u64 capacity)
{
    TextWindows::write(text, i, packing, {0, 0}, 1, target, capacity);
    target[packing.columns * capacity] = document << 32 | count;
}

// Windows of documents themselves. places: entries before each word.
extern "C" __global__ void __launch_bounds__(THREADS) write_own_postings(
    const u32* __restrict__ text_words, u64 size, u64 of_rules, const u32* __restrict__ owners, u32 reach, u32 words,
    u32 bits, u32 per_column, u32 column_count, const unsigned char* __restrict__ found,
    const u64* __restrict__ places, u64* columns, u64 capacity)
{
    const u64 i = of_rules + static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < size && found[i] != 0)
        write_posting(
            {text_words, size, of_rules, owners, nullptr, reach}, i, {words, bits, per_column, column_count, 0, 0},
            owners[i], 1, columns + places[i], capacity);
}

// Windows of rules, one entry for each document that holds the rule. word_of_entry: which word starts it.
extern "C" __global__ void __launch_bounds__(THREADS) write_rule_postings(
    const u32* __restrict__ text_words, u64 size, u64 of_rules, const u32* __restrict__ owners, u32 reach, u32 words,
    u32 bits, u32 per_column, u32 column_count, const u32* __restrict__ word_of_entry, u64 entries,
    const u64* __restrict__ places, const long long* __restrict__ list_offsets, const u32* __restrict__ documents,
    const u64* __restrict__ counts, u64* columns, u64 capacity)
{
    const u64 entry = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (entry >= entries)
        return;
    const u32 i = word_of_entry[entry];
    const u64 listed = list_offsets[owners[i]] + (entry - places[i]);
    write_posting(
        {text_words, size, of_rules, owners, nullptr, reach}, i, {words, bits, per_column, column_count, 0, 0},
        documents[listed], counts[listed], columns + entry, capacity);
}

// Where each list starts. offsets: one more than lists.
extern "C" __global__ void __launch_bounds__(THREADS) find_lists(
    const u32* __restrict__ lists, u64 size, u32 list_count, long long* __restrict__ offsets)
{
    const u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < size && (i == 0 || lists[i] != lists[i - 1]))
        offsets[lists[i]] = static_cast<long long>(i);
    if (i == 0)
        offsets[list_count] = static_cast<long long>(size);
}

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
    u32 column_count, u32 spare, u32 digit_bits, u64* columns, u64 capacity, u64* taken,
    const u64* __restrict__ places, u32* slots)
{
    place_entries<Windows>(
        {symbols, size, starts, ends, stride, terminals, rank, reach},
        {words, bits, per_column, column_count, spare, digit_bits}, columns, capacity, taken, places, slots);
}

extern "C" __global__ void __launch_bounds__(THREADS) place_pairs(
    const u32* __restrict__ symbols, u64 size, const u32* __restrict__ starts, const u32* __restrict__ ends,
    u32 stride, u32 terminals, const u32* __restrict__ rank, u32 reach, u32 words, u32 bits, u32 per_column,
    u32 column_count, u32 spare, u32 digit_bits, u64* columns, u64 capacity, u64* taken,
    const u64* __restrict__ places, u32* slots)
{
    place_entries<Pairs>(
        {symbols, size, starts, ends, stride, terminals, rank, reach},
        {words, bits, per_column, column_count, spare, digit_bits}, columns, capacity, taken, places, slots);
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

// Entries in order: their columns, told apart without the digits of weights.
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

// Adds up the weights of each run, and writes its key.
// tiles  runs before each tile
// keys   `run_count` of each column
// sums   all zero; or null, then
// slots  where in `derived` the number of each entry's run goes; null for the entry's own place
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
            // the lanes of one run add up to its last lane
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

// Ranks of words back to words, one window after another. order: null, or which key each window has.
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

// Marks the lists in which a document stands after one that counts less.
extern "C" __global__ void mark_disordered(
    const u32* __restrict__ lists, const u64* __restrict__ counts, u64 size, unsigned char* __restrict__ disordered)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i > 0 && i < size && lists[i] == lists[i - 1] && counts[i] > counts[i - 1])
        disordered[lists[i]] = 1;
}

// Keeps the first `most` of each list that is wanted at all.
extern "C" __global__ void keep_first(
    const u32* __restrict__ lists, const long long* __restrict__ offsets, const unsigned char* __restrict__ wanted,
    u64 size, u64 most, unsigned char* __restrict__ keep)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < size)
        keep[i] = wanted[lists[i]] != 0 && i - static_cast<u64>(offsets[lists[i]]) < most;
}

// What rising order sorts by falling count, where it fits, and each key's own place.
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

extern "C" __global__ void invert(const u32* __restrict__ rank, u32 size, u32* __restrict__ words)
{
    const u32 word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word < size)
        words[rank[word]] = word;
}
