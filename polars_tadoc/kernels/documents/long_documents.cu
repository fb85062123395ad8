// Counts the terminals of long documents: all blocks process some documents at a time together, in one cooperative
// launch. Each of these documents has a row of counters in global memory; a block counts frequent terminals in shared
// memory first.
#include "primitives/counters.cuh"
#include "primitives/grid_barrier.cuh"
#include "primitives/scan.cuh"
#include "traverse/spans.cuh"
#include "documents/counted_keys.cuh"

constexpr u32 THREADS = 512;

constexpr u32 GROUP = 64;  // maximum documents with a row at a time
constexpr u32 CELLS = 8;  // counters per thread
constexpr u32 TILE = CELLS * THREADS;
constexpr u32 ROW_SHIFT = 48;  // a range's row is stored above its first item

// list, list_size   documents to count
// arrived           the barrier's counter: zero
// held              number of first terminals that each block counts in shared memory
// rows              `group_size` rows of counters, one per terminal and, top-down, per rule: zeros
// the others        as in documents.cu
extern "C" __global__ void __launch_bounds__(THREADS) count_long_documents(
    u32 terminals, u32 rules, const i64* __restrict__ rule_offsets, const u32* __restrict__ symbols,
    const i64* __restrict__ level_offsets, u32 levels, const i64* __restrict__ table_starts,
    const u32* __restrict__ table_sizes, const u32* __restrict__ table_terminals,
    const TableCount* __restrict__ table_counts, const i64* __restrict__ root_offsets, const u32* __restrict__ roots,
    const u32* __restrict__ list, const u64* __restrict__ list_size, u32* arrived, u32 held, Count* rows,
    u32 group_size, const u32* __restrict__ rank, u64 least, u32 terminal_shift, u32 document_shift, u32 count_shift,
    u32 count_flip, Key* keys, u64* counts, u32 capacity, u64* cursor, u32* starts, u32* sizes)
{
    extern __shared__ u64 shared[];
    __shared__ LongSpans waiting;
    __shared__ u32 documents[GROUP];
    __shared__ u64 before[GROUP + 1];  // number of the group's roots, then keys, before those of each document

    const CountedKeys counted{rank, terminal_shift, document_shift, count_shift, count_flip, keys, counts};
    Count* hot = reinterpret_cast<Count*>(shared);
    const u64 row_size = static_cast<u64>(terminals) + (TOP_DOWN ? rules : 0);
    const u32 tiles = (terminals + TILE - 1) / TILE;  // per row
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    const u64 listed = *list_size;
    u64 begun = __ldcg(cursor);  // start of the group's keys
    u32 target = 0;
    if (threadIdx.x == 0)
        waiting.clear();

    // Sums the documents' numbers. Called by all threads.
    const auto sum_before = [&](u32 group, u64 start) {
        __syncthreads();
        if (threadIdx.x == 0) {
            before[0] = start;
            for (u32 i = 0; i < group; ++i)
                before[i + 1] += before[i];
        }
        __syncthreads();
    };

    for (u64 first = 0; first < listed; first += group_size) {
        const u32 group = static_cast<u32>(listed - first < group_size ? listed - first : group_size);
        __syncthreads();
        if (threadIdx.x < group) {
            const u32 document = list[first + threadIdx.x];
            documents[threadIdx.x] = document;
            before[threadIdx.x + 1] = static_cast<u64>(root_offsets[document + 1] - root_offsets[document]);
        }
        sum_before(group, 0);

        // Each block processes an equal number of the group's roots.
        const u64 begin = before[group] * blockIdx.x / gridDim.x;
        const u64 stop = before[group] * (blockIdx.x + 1) / gridDim.x;
        for (u32 slot = 0; slot < group; ++slot) {
            const u64 low = max(begin, before[slot]);
            const u64 high = min(stop, before[slot + 1]);
            if (low >= high)
                continue;
            Count* row = rows + slot * row_size;
            for (u32 i = threadIdx.x; i < held; i += THREADS)
                hot[i] = 0;
            __syncthreads();
            const auto add = [&](u32 symbol, Count amount) {
                if (symbol < held)
                    atomicAdd(hot + symbol, amount);
                else
                    atomicAdd(row + symbol, amount);
            };
            const auto add_item = [&](u64 item, Count) {
                add(table_terminals[item], static_cast<Count>(table_counts[item]));
            };
            const u64 root_first = static_cast<u64>(root_offsets[documents[slot]]) + (low - before[slot]);
            const u64 root_stop = root_first + (high - low);
            for (u64 base = root_first + 32 * warp; base < root_stop; base += THREADS) {
                const u32 symbol = base + lane < root_stop ? roots[base + lane] : NONE;
                u64 start = 0;
                u32 size = 0;
                if (symbol != NONE && (TOP_DOWN || symbol < terminals)) {
                    add(symbol, 1);
                } else if (symbol != NONE) {
                    start = static_cast<u64>(table_starts[symbol - terminals]);
                    size = waiting.untaken(start, table_sizes[symbol - terminals], 1);
                }
                __syncwarp();
                if (!TOP_DOWN)
                    visit_spans(start, size, Count{1}, add_item);
            }
            if (!TOP_DOWN)
                waiting.visit(add_item);
            __syncthreads();
            for (u32 i = threadIdx.x; i < held; i += THREADS)
                if (hot[i] != 0)
                    atomicAdd(row + i, hot[i]);
            __syncthreads();
        }
        grid_barrier(arrived, target);

        const auto give = [&](u64 item, Count weight) {
            const u64 place = item & ((1ull << ROW_SHIFT) - 1);
            atomicAdd(rows + (item >> ROW_SHIFT) * row_size + symbols[place], weight);
        };
        for (u32 level = TOP_DOWN ? levels : 0; level-- > 0;) {
            const u64 level_first = static_cast<u64>(level_offsets[level]);
            const u64 level_size = static_cast<u64>(level_offsets[level + 1]) - level_first;
            const u64 all = group * level_size;
            for (u64 base = 32 * (static_cast<u64>(warp) * gridDim.x + blockIdx.x); base < all;
                 base += static_cast<u64>(gridDim.x) * THREADS) {
                const u64 i = base + lane;
                Count weight = 0;
                u64 start = 0;
                u32 size = 0;
                if (i < all) {
                    const u64 slot = i / level_size;
                    const u64 rule = level_first + (i - slot * level_size);
                    Count* place = rows + slot * row_size + terminals + rule;
                    weight = __ldcg(place);
                    if (weight != 0) {
                        *place = 0;
                        size = static_cast<u32>(rule_offsets[rule + 1] - rule_offsets[rule]);
                        start = slot << ROW_SHIFT | static_cast<u64>(rule_offsets[rule]);
                        if (waiting.take(start, size, weight))
                            size = 0;
                    }
                }
                __syncwarp();
                if (__any_sync(ALL_LANES, size != 0))
                    visit_spans(start, size, weight, give);
            }
            waiting.visit(give);
            grid_barrier(arrived, target);
        }

        for (u64 tile = blockIdx.x; tile < static_cast<u64>(group) * tiles; tile += gridDim.x) {
            const u32 slot = static_cast<u32>(tile / tiles);
            const u32 cell = static_cast<u32>(tile % tiles) * TILE + threadIdx.x;
            const Count* row = rows + slot * row_size;
            u32 own = 0;
#pragma unroll
            for (u32 i = 0; i < CELLS; ++i) {
                const Count count = cell + i * THREADS < terminals ? __ldcg(row + cell + i * THREADS) : 0;
                own += count != 0 && count >= least;
            }
            own = lanes_sum(own);
            if (lane == 0 && own != 0)
                atomicAdd(sizes + documents[slot], own);
        }
        grid_barrier(arrived, target);

        if (threadIdx.x < group)
            before[threadIdx.x + 1] = __ldcg(sizes + documents[threadIdx.x]);
        sum_before(group, begun);
        for (u64 tile = blockIdx.x; tile < static_cast<u64>(group) * tiles; tile += gridDim.x) {
            const u32 slot = static_cast<u32>(tile / tiles);
            const u32 cell = static_cast<u32>(tile % tiles) * TILE + threadIdx.x;
            Count* row = rows + slot * row_size;
            Count found[CELLS];
            u32 own = 0;
#pragma unroll
            for (u32 i = 0; i < CELLS; ++i) {
                found[i] = cell + i * THREADS < terminals ? __ldcg(row + cell + i * THREADS) : 0;
                if (found[i] != 0)
                    row[cell + i * THREADS] = 0;
                own += found[i] != 0 && found[i] >= least;
            }
            const u32 place_before = lanes_before(own);
            const u32 sum = __shfl_sync(ALL_LANES, place_before + own, 31);
            u32 place = 0;
            if (lane == 0 && sum != 0)
                place = atomicAdd(starts + documents[slot], sum);
            place = __shfl_sync(ALL_LANES, place, 0) + place_before;
            if (before[slot + 1] > capacity)
                continue;
#pragma unroll
            for (u32 i = 0; i < CELLS; ++i)
                if (found[i] != 0 && found[i] >= least)
                    counted.write(before[slot] + place++, cell + i * THREADS, documents[slot], found[i]);
        }
        grid_barrier(arrived, target);
        if (blockIdx.x == 0 && threadIdx.x < group)
            starts[documents[threadIdx.x]] = static_cast<u32>(before[threadIdx.x]);
        begun = before[group];
    }
    if (listed > 0 && blockIdx.x == 0 && threadIdx.x == 0)
        *cursor = begun;
}
