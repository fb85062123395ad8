// Pairs of symbols, the rules made of them, and the results of pruning. Include after counters.cuh and scan.cuh.
//
// A position represents the pair that starts there. Its top bit marks it as dead: the pair cannot occur twice. Symbols
// fit in the other 31 bits, and a separator, all ones, is dead.
#ifndef POLARS_TADOC_RULES
#define POLARS_TADOC_RULES

constexpr u32 DEAD = 0x80000000u;
constexpr u32 SYMBOL = 0x7FFFFFFFu;
constexpr u32 SEPARATOR = 0xFFFFFFFFu;
constexpr u32 NO_ENTRY = 0xFFFFFFFFu;
constexpr u64 NO_PAIR = 0xFFFFFFFFFFFFFFFFull;

constexpr u32 MAX_PROBES = 128;  // more probes mean that the table is too small

// Tables start as all ones. An entry fills 32 bytes, the unit of memory transactions.
struct alignas(32) Entry {
    u64 pair;
    u32 repeats;  // occurrences, minus one
    u32 first;  // first selected position
    u32 fate;  // selected positions, minus one; then, if they are replaced, the symbol and NUMBERED
};
constexpr u32 NUMBERED = 0x80000000u;

__device__ __forceinline__ u64 pair_of(u32 left, u32 right)
{
    return static_cast<u64>(left & SYMBOL) << 32 | (right & SYMBOL);
}

__device__ __forceinline__ u64 hash_pair(u64 pair)
{
    u64 h = pair * 0x9E3779B97F4A7C15ull;
    h = (h ^ h >> 32) * 0xD6E8FEB86659FD93ull;
    return h ^ h >> 32;
}

__device__ __forceinline__ u32 slot_of(u64 hash, u32 capacity)
{
    return __umulhi(static_cast<u32>(hash), capacity);
}

// Finds or inserts the pair's entry; NO_ENTRY if the table is too full. `holder` is the content of the first slot,
// possibly outdated, but an entry never changes once it is taken.
__device__ __forceinline__ u32 find_entry(
    Entry* table, u32 capacity, u64 pair, u64 holder, u32 probes = MAX_PROBES)
{
    u32 slot = slot_of(hash_pair(pair), capacity);
    for (u32 probe = 0; probe < probes; ++probe) {
        if (holder == NO_PAIR)
            holder = atomicCAS(&table[slot].pair, NO_PAIR, pair);
        if (holder == NO_PAIR || holder == pair)
            return slot;
        slot = slot + 1 < capacity ? slot + 1 : 0;
        holder = table[slot].pair;
    }
    return NO_ENTRY;
}

// Occurrences of an entry's pair, 0 without an entry or if the pair occurs once.
__device__ __forceinline__ u32 occurrences(const Entry* table, u32 slot)
{
    const u32 repeats = slot == NO_ENTRY ? 0 : table[slot].repeats;
    return repeats == 0 ? 0 : repeats + 1;
}

// Number + 1 of the rule of a pair from earlier rounds, or 0. Rules of this round have other pairs.
__device__ __forceinline__ u32 find_rule(const u32* index, u32 index_size, u64 pair, u32 known, const u32* left,
    const u32* right)
{
    u32 slot = __umulhi(static_cast<u32>(hash_pair(pair)), index_size);
    while (true) {
        const u32 rule = __ldcg(index + slot);
        if (rule == 0 || (rule <= known && pair_of(left[rule - 1], right[rule - 1]) == pair))
            return rule;
        slot = slot + 1 < index_size ? slot + 1 : 0;
    }
}

__device__ __forceinline__ void enter_rule(u32* index, u32 index_size, u64 pair, u32 rule)
{
    u32 slot = __umulhi(static_cast<u32>(hash_pair(pair)), index_size);
    while (atomicCAS(index + slot, 0u, rule + 1) != 0)
        slot = slot + 1 < index_size ? slot + 1 : 0;
}

constexpr u32 KEPT = 0x80000000u;
constexpr u32 LENGTH = 0x7FFFFFFFu;

// State of a rule. x: its body's length with dropped rules inlined, and whether it is kept; y: its height, later its
// number.
using Node = uint2;

struct Rules {
    const u32* left;
    const u32* right;
    Node* nodes;
    u32 vocabulary;

    // Written during the launch that reads it: bypasses the level 1 caches, which are not coherent.
    __device__ __forceinline__ Node node(u32 rule) const { return __ldcg(nodes + rule); }

    __device__ __forceinline__ bool is_rule(u32 symbol) const { return symbol >= vocabulary && symbol != SEPARATOR; }

    // Number of symbols that replace this one: 1, or the length of a dropped rule's body.
    __device__ __forceinline__ u32 size(u32 symbol) const
    {
        if (!is_rule(symbol))
            return symbol != SEPARATOR;
        const u32 x = node(symbol - vocabulary).x;
        return (x & KEPT) != 0 ? 1 : x;
    }

    // The symbol at a position among those that replace this one, with its new number.
    __device__ u32 symbol_at(u32 symbol, u32 place) const
    {
        while (symbol >= vocabulary) {
            const u32 rule = symbol - vocabulary;
            const Node known = node(rule);
            if ((known.x & KEPT) != 0)
                return known.y;
            symbol = left[rule];
            const u32 left_size = size(symbol);
            if (place >= left_size) {
                place -= left_size;
                symbol = right[rule];
            }
        }
        return symbol;
    }
};

#endif
