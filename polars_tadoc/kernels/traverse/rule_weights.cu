// Occurrences of each rule and each terminal (G-TADOC, Zhang et al., ICDE 2021, Algorithm 1), all levels in one
// cooperative launch. Unlike in top_down.cu, these are the full weights of all rules: no levels are fused.
#define WIDE 1
#include "primitives/counters.cuh"
#include "primitives/grid_barrier.cuh"
#include "primitives/scan.cuh"
#include "traverse/spans.cuh"

constexpr u32 THREADS = 512;

// weights: terminals, then rules: zeros. held: number of first terminals that each block counts in shared memory.
extern "C" __global__ void __launch_bounds__(THREADS) rule_weights(
    u32 terminals, const i64* __restrict__ rule_offsets, const u32* __restrict__ symbols,
    const i64* __restrict__ level_offsets, u32 levels, const u32* __restrict__ roots, u64 root_count, u32 held,
    u64* weights, u32* arrived)
{
    extern __shared__ u32 low[];
    __shared__ LongSpans waiting;
    for (u32 i = threadIdx.x; i < held; i += THREADS)
        low[i] = 0;
    if (threadIdx.x == 0)
        waiting.clear();
    __syncthreads();

    const auto add = [&](u32 symbol, u64 amount) { add_count(low, held, weights, symbol, amount); };
    const u64 threads = static_cast<u64>(gridDim.x) * THREADS;
    for (u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x; i < root_count; i += threads)
        add(roots[i], 1);

    const auto give = [&](u64 item, u64 weight) { add(symbols[item], weight); };
    const u32 lane = threadIdx.x % 32;
    u32 target = 0;
    for (u32 level = levels; level-- > 0;) {
        grid_barrier(arrived, target);
        const i64 stop = level_offsets[level + 1];
        // adjacent warps' rules go to different blocks: a short level is spread over all multiprocessors
        const i64 begin = level_offsets[level] + 32 * static_cast<i64>(threadIdx.x / 32 * gridDim.x + blockIdx.x);
        for (i64 first = begin; first < stop; first += static_cast<i64>(threads)) {
            const i64 rule = first + lane;
            const u64 weight = rule < stop ? __ldcg(weights + terminals + rule) : 0;
            u64 start = 0;
            const u32 size = weight != 0 ? waiting.body(rule_offsets, rule, weight, start) : 0;
            __syncwarp();
            visit_spans(start, size, weight, give);
        }
        waiting.visit(give);
    }
    __syncthreads();
    flush_held(low, held, weights);
}
