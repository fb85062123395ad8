// Counted terminals as sort keys. Include after spans.cuh.
#ifndef POLARS_TADOC_COUNTED_KEYS
#define POLARS_TADOC_COUNTED_KEYS

#ifndef TOP_DOWN
#define TOP_DOWN 0
#endif

// Whether tables have 64-bit counts.
#ifndef WIDE_TABLES
#define WIDE_TABLES WIDE
#endif

#if WIDE_TABLES
using TableCount = u64;
#else
using TableCount = u32;
#endif

#ifndef KEY
#define KEY u64
#endif

using Key = KEY;

// Passed as separate arguments: positions of a terminal, its document and its count in a key.
struct CountedKeys {
    const u32* rank;  // of a terminal, or null for its own order
    u32 terminal_shift;
    u32 document_shift;
    u32 count_shift;  // 64 if counts have an array of their own or are not requested
    u32 count_flip;  // all ones of a count's bits if high counts come first, otherwise 0
    Key* keys;
    u64* counts;  // null if counts are in the keys or not requested

    __device__ __forceinline__ void write(u64 place, u32 terminal, u32 document, Count count) const
    {
        u64 key = static_cast<u64>(rank == nullptr ? terminal : rank[terminal]) << terminal_shift |
            static_cast<u64>(document) << document_shift;
        if (count_shift < 64)
            key |= static_cast<u64>(static_cast<u32>(count) ^ count_flip) << count_shift;
        if (counts != nullptr)
            counts[place] = count;
        keys[place] = static_cast<Key>(key);
    }
};

#endif
