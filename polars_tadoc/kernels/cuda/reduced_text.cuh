// Windows in the reduced text. Include after counters.cuh and packing.cuh.
//
// Of a child, its last words may start a window and its first words may end one: these are written out, without
// what lies between them. A word's rank takes the low 30 bits.
#ifndef POLARS_TADOC_REDUCED_TEXT
#define POLARS_TADOC_REDUCED_TEXT

constexpr u32 CHILD = 1u << 31;  // the first word that is written of a child
constexpr u32 BREAK = 1u << 30;  // the word before stands elsewhere: in another owner, or not next to this one
constexpr u32 RANK = BREAK - 1;

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

#endif
