// Decides which binary rules pay: all passes in one cooperative launch.
//
// Rules of one round refer to words and rules of earlier rounds only, so a round's rules are visited in parallel.
#include "primitives/counters.cuh"
#include "primitives/grid_barrier.cuh"
#include "primitives/scan.cuh"
#include "repair/rules.cuh"

constexpr u32 THREADS = 256;

struct Totals {
    u64 body_symbols;
    u64 root_symbols;
    u32 kept;
    u32 arrived;  // number of blocks at the grid's barrier
    u32 dropped[6];  // by pass
};

// Counts the uses of rules in the lanes; other lanes pass NONE. Equal rows use the same rule repeatedly.
__device__ __forceinline__ void count_use(u32* uses, u32 rule)
{
    const u32 same = __match_any_sync(ALL_LANES, rule);
    if (rule != NONE && threadIdx.x % 32 == static_cast<u32>(__ffs(same) - 1))
        atomicAdd(uses + rule, static_cast<u32>(__popc(same)));
}

// Drops rules of length l with u uses if l * u <= l + u + margin. Each pass counts uses with the rules dropped before
// inlined, from the last round down, then visits rules from the first round up; lengths are updated at once. uses,
// root_uses, level_sizes, totals: zeros. keys: level and number of a kept rule, all ones for a dropped one.
extern "C" __global__ void __launch_bounds__(THREADS)
    prune(const u32* __restrict__ left, const u32* __restrict__ right, Node* nodes, u32 vocabulary,
        const u32* __restrict__ round_offsets, u32 rounds, const u32* __restrict__ sequence, u32 size, i64 margin,
        u32 passes, u32* uses, u32* root_uses, u64* keys, u32* level_sizes, Totals* totals)
{
    const Rules rules{left, right, nodes, vocabulary};
    const u32 rule_count = round_offsets[rounds];
    const u32 thread = blockIdx.x * THREADS + threadIdx.x;
    const u32 threads = gridDim.x * THREADS;
    u32 target = 0;

    for (u32 i = thread; i - threadIdx.x % 32 < size; i += threads) {
        const u32 symbol = i < size ? sequence[i] : SEPARATOR;
        count_use(root_uses, rules.is_rule(symbol) ? symbol - vocabulary : NONE);
    }
    for (u32 rule = thread; rule < rule_count; rule += threads)
        nodes[rule] = make_uint2(KEPT, 0);
    grid_barrier(&totals->arrived, target);

    for (u32 pass = 0; pass < passes; ++pass) {
        for (u32 rule = thread; rule < rule_count; rule += threads)
            uses[rule] = __ldcg(root_uses + rule);
        grid_barrier(&totals->arrived, target);
        for (u32 round = rounds; round > 1; --round) {
            const u32 first = round_offsets[round - 1];
            const u32 stop = round_offsets[round];
            for (u32 rule = first + thread; rule < stop; rule += threads) {
                const u32 weight = (rules.node(rule).x & KEPT) != 0 ? 1 : __ldcg(uses + rule);
                const u32 a = left[rule];
                const u32 b = right[rule];
                if (a >= vocabulary && weight != 0)
                    atomicAdd(uses + (a - vocabulary), weight);
                if (b >= vocabulary && weight != 0)
                    atomicAdd(uses + (b - vocabulary), weight);
            }
            grid_barrier(&totals->arrived, target);
        }
        u32 dropped = 0;
        for (u32 round = 0; round < rounds; ++round) {
            const u32 first = round_offsets[round];
            const u32 stop = round_offsets[round + 1];
            for (u32 rule = first + thread; rule < stop; rule += threads) {
                u32 length = 0;
                u32 height = 0;
                const u32 body[2] = {left[rule], right[rule]};
                for (const u32 symbol : body) {
                    if (symbol < vocabulary) {
                        ++length;
                        continue;
                    }
                    const Node child = rules.node(symbol - vocabulary);
                    length += (child.x & KEPT) != 0 ? 1 : child.x;
                    height = max(height, child.y);
                }
                u32 kept = rules.node(rule).x & KEPT;
                if (kept != 0) {
                    const i64 used = __ldcg(uses + rule);
                    if (length * used <= length + used + margin) {
                        kept = 0;
                        ++dropped;
                    }
                }
                nodes[rule] = make_uint2(length | kept, kept != 0 ? height + 1 : height);
            }
            grid_barrier(&totals->arrived, target);
        }
        if (dropped != 0)
            atomicAdd(&totals->dropped[pass], dropped);
        grid_barrier(&totals->arrived, target);
        if (__ldcg(&totals->dropped[pass]) == 0)
            break;
    }

    u64 body_symbols = 0;
    u32 kept_rules = 0;
    for (u32 rule = thread; rule - threadIdx.x % 32 < rule_count; rule += threads) {
        const Node known = rule < rule_count ? rules.node(rule) : make_uint2(0, 0);
        const bool kept = (known.x & KEPT) != 0;
        if (kept) {
            body_symbols += known.x & LENGTH;
            ++kept_rules;
        }
        if (rule < rule_count)
            keys[rule] = kept ? static_cast<u64>(known.y) << 32 | rule : 0xFFFFFFFFFFFFFFFFull;
        count_use(level_sizes, kept ? known.y - 1 : NONE);
    }
    u64 root_symbols = 0;
    for (u32 i = thread; i < size; i += threads)
        root_symbols += rules.size(sequence[i]);
    body_symbols = lanes_sum(body_symbols);
    root_symbols = lanes_sum(root_symbols);
    kept_rules = lanes_sum(kept_rules);
    if (threadIdx.x % 32 == 0) {
        if (root_symbols != 0)
            atomicAdd(&totals->root_symbols, root_symbols);
        if (body_symbols != 0) {
            atomicAdd(&totals->body_symbols, body_symbols);
            atomicAdd(&totals->kept, kept_rules);
        }
    }
}
