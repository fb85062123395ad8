// Windows and pairs of words that span two or more children of a body or document, and their keys. Include after
// counters.cuh and bodies.cuh.
#ifndef POLARS_TADOC_OWN_WINDOWS
#define POLARS_TADOC_OWN_WINDOWS

// Layout of an entry: words by rank, `bits` each, `per_column` of them in each 64-bit column, the rest in the last
// column above `document_bits` for a document and `spare` bits. Those have one digit of the weight, of `digit_bits`
// bits, below its position.
struct Packing {
    u32 words;
    u32 bits;
    u32 per_column;
    u32 columns;
    u32 spare;
    u32 digit_bits;
    u32 document_bits;
};

__device__ __forceinline__ u32 digits_in(u64 weight, u32 digit_bits)
{
    u32 digits = 0;
    for (; weight != 0; weight = digit_bits < 64 ? weight >> digit_bits : 0)
        digits += (weight & ((1ull << digit_bits) - 1)) != 0;
    return digits;
}

// Writes an entry's column once per digit of the weight.
__device__ __forceinline__ void write_digits(u64*& target, u64 key, u64 weight, const Packing& packing, bool last)
{
    const u64 mask = (1ull << packing.digit_bits) - 1;
    const u64 above = packing.spare < 64 ? key << packing.spare : 0;
    for (u64 place = 0; weight != 0; ++place, weight >>= packing.digit_bits)
        if ((weight & mask) != 0)
            *target++ = last ? above | place << packing.digit_bits | (weight & mask) : key;
}

// The last words of a child, at most `reach`, or the child itself if it is a word.
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

// Iterates over words: those of the tail, then those of the following children. The caller ensures that the owner has
// enough words.
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

// One column of the keys of a position's windows, one window after another.
struct ColumnWalk {
    Walk walk;
    u64 key;
    u64 mask;
    u32 bits;
    u32 words;

    __device__ __forceinline__ ColumnWalk(
        const Text& text, u64 position, const Tail& tail, const Packing& packing, u32 column) :
        walk(text, position, tail), key(0), bits(packing.bits)
    {
        const u32 first = min(column * packing.per_column, packing.words);
        words = column + 1 == packing.columns ? packing.words - first : packing.per_column;
        mask = words * bits < 64 ? (1ull << words * bits) - 1 : ~0ull;
        walk.skip(first);
        for (u32 i = 1; i < words; ++i)
            key = key << bits | walk.next();
    }

    __device__ __forceinline__ u64 next()
    {
        if (words > 0)
            key = (key << bits | walk.next()) & mask;
        return key;
    }
};

// Sequences of reach + 1 words that start in a child and end in a later one.
struct Windows {
    static __device__ __forceinline__ u32 count(const Text& text, u64 position)
    {
        if (text.reach == 0)
            return text.is_rule(position) ? 0 : 1;  // a word is a window on its own
        const u32 tail = min(text.length(position), text.reach);
        const u32 after = tail == 0 ? 0 : text.words_after(position);
        return tail + after > text.reach ? tail + after - text.reach : 0;
    }

    // Calls visit(key's first column, another column of it) for each window.
    template <typename Visit>
    static __device__ __forceinline__ void visit(
        const Text& text, u64 position, const Packing& packing, u32 column, Visit visit)
    {
        const u32 windows = count(text, position);
        if (windows == 0)
            return;
        const Tail tail(text, position);
        ColumnWalk first(text, position, tail, packing, 0);
        if (column == 0) {
            for (u32 i = 0; i < windows; ++i) {
                const u64 key = first.next();
                visit(key, key);
            }
            return;
        }
        ColumnWalk other(text, position, tail, packing, column);
        for (u32 i = 0; i < windows; ++i) {
            const u64 key = first.next();
            visit(key, other.next());
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

    // Calls visit(key's first column, another column of it) for each pair.
    template <typename Visit>
    static __device__ __forceinline__ void visit(
        const Text& text, u64 position, const Packing& packing, u32 column, Visit visit)
    {
        visit_pairs(text, position, [&](u32 low, u32 high) {
            const u64 first = packing.columns == 1 ? static_cast<u64>(low) << packing.bits | high : low;
            visit(first, column == 0 ? first : high);
        });
    }
};

// The entries of a batch: those whose keys' first columns are in [low, last].
struct Range {
    u64 low;
    u64 last;

    __device__ __forceinline__ bool holds(u64 first) const { return first >= low && first <= last; }
};

// A position's entries in a range, kept so that most positions are read once: keys of up to two columns, if they are
// few.
template <typename Kind>
struct Held {
    static constexpr u32 ROOM = 16;

    u64 first[ROOM];
    u64 other[ROOM];
    u32 count;

    __device__ __forceinline__ void read(const Text& text, u64 position, const Packing& packing, Range range)
    {
        count = 0;
        if (position >= text.size)
            return;
        Kind::visit(text, position, packing, packing.columns == 2 ? 1 : 0, [&](u64 first_column, u64 key) {
            if (!range.holds(first_column))
                return;
            if (count < ROOM) {
                first[count] = first_column;
                other[count] = key;
            }
            ++count;
        });
    }

    // Calls visit(key's first column, another column of it) for each one. The other column is passed with the first:
    // column 0 need not be requested for keys of two or more columns.
    template <typename Visit>
    __device__ __forceinline__ void visit(
        const Text& text, u64 position, const Packing& packing, Range range, u32 column, Visit visit) const
    {
        if (packing.columns <= 2 && count <= ROOM) {
            for (u32 i = 0; i < count; ++i)
                visit(first[i], other[i]);
        } else if (count != 0) {
            Kind::visit(text, position, packing, column, [&](u64 first_column, u64 key) {
                if (range.holds(first_column))
                    visit(first_column, key);
            });
        }
    }
};

#endif
