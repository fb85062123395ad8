// Binary rules and the results of pruning. Include after counters.cuh and scan.cuh.
#ifndef POLARS_TADOC_NODES
#define POLARS_TADOC_NODES

constexpr u32 KEPT = 0x80000000u;
constexpr u32 LENGTH = 0x7FFFFFFFu;
constexpr u32 SEPARATOR = 0xFFFFFFFFu;

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
