// Node sets of twigs on the device. A column is the words of a node set that a warp takes, WORDS to a lane; bit q of a
// word is its node q. Include after counters.cuh and
// scan.cuh.
#ifndef POLARS_TADOC_TWIGS
#define POLARS_TADOC_TWIGS

using i64 = long long;
using u16 = unsigned short;

#ifndef WORDS
#define WORDS 1u
#endif

// Of events.
#ifndef SYMBOL
#define SYMBOL u16
#endif

constexpr u32 COLUMN = 32 * WORDS;

constexpr u32 CLOSE = 0;

// An element in the order of end tags: its symbol, and
constexpr u32 LEAF = 1;  // it has no children;
constexpr u32 JOINED = 2;  // it is not the first child: what it adds joins what its elder siblings have added.
constexpr u32 FLAGS = 2;  // bits of these

struct Twigs {
    // Nodes whose name test a symbol passes, by symbol and column: COLUMN words of leaves, then COLUMN words of others.
    // Any element's rows come first, one for each column; the last row is empty.
    const u64* rows;
    const u32* row_starts;  // by symbol: its first row
    const u32* row_columns;  // by row
    const unsigned char* elements;  // by symbol
    const u64* descendants;  // by word; so are the next three
    const u64* highest;  // of a node's children
    const u64* lowest;
    const u64* sides;  // bits at which nodes are satisfied that are found elsewhere,
    const unsigned char* moves;  // and by column, bit and place of the word in the column: where
    const u32* siblings;  // by node; of twigs for which a word is too small
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

// The nodes of a word that are satisfied at an element, but for leaves. found: those found below it; inner: those that
// have children and whose name test it passes. A node's children lie next to each other right below it: what is added
// to the lowest one carries into the highest one if all between are found.
__device__ __forceinline__ u64 satisfied(
    u64 found, u64 inner, u64 highest, u64 lowest, u64 sides, const unsigned char* __restrict__ moves)
{
    u64 nodes = ((found & ~highest) + lowest & found & highest) << 1 & inner;
    for (u64 left = nodes & sides; left != 0; left &= left - 1) {
        const u32 side = static_cast<u32>(__ffsll(static_cast<i64>(left))) - 1;
        nodes ^= 1ull << side | 1ull << __ldg(moves + side * COLUMN);
    }
    return nodes;
}

#endif
