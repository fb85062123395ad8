// Node sets of twigs on the device. A column is the words of a node set that a warp processes, WORDS per lane; bit q of
// a word is its node q. Include after counters.cuh and scan.cuh.
#ifndef POLARS_TADOC_TWIGS
#define POLARS_TADOC_TWIGS

#ifndef WORDS
#define WORDS 1u
#endif

// Events.
#ifndef SYMBOL
#define SYMBOL u16
#endif

constexpr u32 COLUMN = 32 * WORDS;

constexpr u32 CLOSE = 0;

// An element in the order of end tags: its symbol, and
constexpr u32 LEAF = 1;  // without children;
constexpr u32 JOINED = 2;  // not the first child: its nodes are joined with those of its earlier siblings.
constexpr u32 FLAGS = 2;  // number of these bits

struct Twigs {
    // Nodes whose name test a symbol passes, by symbol and column: COLUMN words of leaves, then COLUMN words of others.
    // The rows of any element come first, one per column; the last row is empty.
    const u64* rows;
    const u32* row_starts;  // by symbol: its first row
    const u32* row_columns;  // by row
    const unsigned char* elements;  // by symbol
    const u64* descendants;  // by word, as are the next four
    const u64* highest;  // of a node's children
    const u64* lowest;
    const u64* sides;  // children whose bit is elsewhere,
    const u64* owners;  // nodes with such children,
    const unsigned char* places;  // and by column, bit and word in the column: the bit next to the siblings'
    const u32* siblings;  // by node; for twigs that do not fit in a word
    u64 columns;
    u64 row_count;  // without the empty one
};

// The row of a symbol in a column.
__device__ __forceinline__ u32 find_row(const Twigs& twigs, u32 column, u32 symbol)
{
    const u32 columns = static_cast<u32>(twigs.columns);
    u32 low = __ldg(twigs.row_starts + symbol);
    const u32 stop = __ldg(twigs.row_starts + symbol + 1);
    if (stop - low == columns)
        return low + column;
    for (u32 high = stop; low < high;) {
        const u32 middle = low + (high - low) / 2;
        if (__ldg(twigs.row_columns + middle) < column)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < stop && __ldg(twigs.row_columns + low) == column)
        return low;
    return twigs.elements[symbol] != 0 ? column : static_cast<u32>(twigs.row_count);
}

// The masks for testing a word's nodes.
struct Masks {
    u64 descendants;
    u64 highest;
    u64 lowest;
    u64 sides;
    u64 owners;
    const unsigned char* places;

    __device__ __forceinline__ void load(const Twigs& twigs, u32 column, u32 place)
    {
        const u64 word = static_cast<u64>(column) * COLUMN + place;
        descendants = twigs.descendants[word];
        highest = twigs.highest[word];
        lowest = twigs.lowest[word];
        sides = twigs.sides[word];
        owners = twigs.owners[word];
        places = twigs.places + static_cast<u64>(column) * 64 * COLUMN + place;
    }

    // The nodes that an element adds to those found below its parent. found: those found below the element; leaves,
    // inner: nodes without and with children whose name test it passes. A node's children are adjacent, right below it:
    // adding to the lowest one carries into the highest one if all between are found.
    __device__ __forceinline__ u64 close(u64 found, u64 leaves, u64 inner) const
    {
        u64 whole = found;
        if ((inner & owners) != 0) {
            for (u64 left = found & sides; left != 0; left &= left - 1) {
                const u32 side = static_cast<u32>(__ffsll(static_cast<i64>(left))) - 1;
                whole |= 1ull << __ldg(places + side * COLUMN);
            }
        }
        const u64 carried = (whole & ~highest) + lowest;
        return ((carried & whole & highest) << 1 & inner) | (found & descendants) | leaves;
    }
};

#endif
