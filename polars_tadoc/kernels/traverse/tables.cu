// The terminals of each rule's expansion with counts, from the lowest rules up (G-TADOC, Zhang et al., ICDE 2021,
// Algorithm 2). All tables are in one arena that is allocated once, because upper bounds of their sizes are known
// before.
#include "primitives/counters.cuh"
#include "primitives/grid_barrier.cuh"
#include "primitives/scan.cuh"
#include "traverse/spans.cuh"
#include "traverse/terminal_table.cuh"

constexpr u32 THREADS = 256;

constexpr u32 WARPS = THREADS / 32;
constexpr u32 FEW = WIDE ? 160 : 256;  // maximum terminals of a table made by one warp
constexpr u32 WARP_SLOTS = 2 * FEW;
constexpr u32 BLOCK_SLOTS = WARPS * WARP_SLOTS;
constexpr u32 MANY = 1700;  // maximum terminals of a table made in shared memory
static_assert(MANY + MANY / 2 < BLOCK_SLOTS, "a table needs slots to spare");
constexpr u32 BODY_LANES = 8;  // lanes per rule's body while bounds are computed

// bounds: of the terminals in each rule's table, the minimum of its expansion's length, the number of terminals, and
// the sum of its symbols' bounds. rooms: slots of its table in the arena; tables made there need spare slots. report:
// the barrier's counter, one more, the sum of rooms, the greatest length; zeros.
extern "C" __global__ void __launch_bounds__(THREADS) bound_tables(
    u32 terminals, const i64* __restrict__ rule_offsets, const u32* __restrict__ symbols,
    const i64* __restrict__ level_offsets, u32 levels, const u64* __restrict__ lengths, u32* bounds, u64* rooms,
    u64* report)
{
    u32* arrived = reinterpret_cast<u32*>(report);
    u64 room = 0;
    u64 longest = 0;
    const u32 lane = threadIdx.x % BODY_LANES;
    const u32 group = (blockIdx.x * THREADS + threadIdx.x) / BODY_LANES;
    const u32 groups = gridDim.x * (THREADS / BODY_LANES);
    u32 target = 0;
    for (u32 level = 0; level < levels; ++level) {
        const i64 stop = level_offsets[level + 1];
        // whole warps stay together
        for (i64 first = level_offsets[level]; first < stop; first += groups) {
            const i64 rule = first + group;
            u64 sum = 0;
            if (rule < stop) {
                const i64 end = rule_offsets[rule + 1];
                for (i64 i = rule_offsets[rule] + lane; i < end; i += BODY_LANES) {
                    const u32 symbol = symbols[i];
                    sum += symbol < terminals ? 1 : __ldcg(bounds + (symbol - terminals));
                }
            }
            for (u32 step = BODY_LANES / 2; step > 0; step /= 2)
                sum += __shfl_xor_sync(ALL_LANES, sum, step);
            if (rule < stop && lane == 0) {
                const u64 bound = min(min(sum, lengths[rule]), static_cast<u64>(terminals));
                bounds[rule] = static_cast<u32>(bound);
                rooms[rule] = bound <= MANY ? bound : bound + bound / 2 + 1;
                room += rooms[rule];
                longest = max(longest, lengths[rule]);
            }
        }
        grid_barrier(arrived, target);
    }
    room = lanes_sum(room);
    for (u32 step = 16; step > 0; step /= 2)
        longest = max(longest, __shfl_xor_sync(ALL_LANES, longest, step));
    if (threadIdx.x % 32 == 0 && longest != 0) {
        atomicAdd(report + 2, room);
        atomicMax(report + 3, longest);
    }
}

struct Arena {
    const i64* starts;  // start of each rule's table
    u32* sizes;
    u32* terminals;
    Count* counts;
};

// Adds a body's terminals and its rules' tables. Called by a whole warp for 32 symbols.
__device__ __forceinline__ void add_symbols(
    TerminalTable table, LongSpans* waiting, const Arena& arena, u32 terminals, const u32* __restrict__ symbols,
    i64 first, i64 stop)
{
    const i64 i = first + threadIdx.x % 32;
    u64 start = 0;
    u32 size = 0;
    if (i < stop) {
        const u32 symbol = symbols[i];
        if (symbol < terminals) {
            table.add(symbol, 1);
        } else {
            start = static_cast<u64>(arena.starts[symbol - terminals]);
            size = __ldcg(arena.sizes + (symbol - terminals));
            if (waiting != nullptr && waiting->take(start, size, 1))
                size = 0;
        }
    }
    __syncwarp();
    visit_spans(start, size, Count{1}, [&](u64 item, Count) {
        table.add(__ldcg(arena.terminals + item), __ldcg(arena.counts + item));
    });
}

// Writes a table's terminals contiguously. Called by a whole warp.
__device__ __forceinline__ void write_table(const TerminalTable& table, u32 thread, u32 threads, u64 start,
    const Arena& arena, u32* written)
{
    for (u32 base = 0; base < table.slots; base += threads) {
        const u32 i = base + thread;
        const u32 terminal = i < table.slots ? table.terminals[i] : NONE;
        const u32 found = __ballot_sync(ALL_LANES, terminal != NONE);
        u32 place = 0;
        if (threadIdx.x % 32 == 0 && found != 0)
            place = atomicAdd(written, static_cast<u32>(__popc(found)));
        place = __shfl_sync(ALL_LANES, place, 0) + __popc(found & ((1u << threadIdx.x % 32) - 1));
        if (terminal != NONE) {
            arena.terminals[start + place] = terminal;
            arena.counts[start + place] = table.counts[i];
        }
    }
}

// sizes: zeros.
extern "C" __global__ void __launch_bounds__(THREADS) make_tables(
    u32 terminals, const i64* __restrict__ rule_offsets, const u32* __restrict__ symbols,
    const i64* __restrict__ level_offsets, u32 levels, const u32* __restrict__ bounds, const i64* starts, u32* sizes,
    u32* table_terminals, Count* table_counts, u32* arrived)
{
    __shared__ u32 shared_terminals[BLOCK_SLOTS];
    __shared__ Count shared_counts[BLOCK_SLOTS];
    __shared__ LongSpans waiting;
    __shared__ u32 large[THREADS];
    __shared__ u32 large_count;
    __shared__ u32 written;

    const Arena arena{starts, sizes, table_terminals, table_counts};
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        waiting.clear();
        large_count = 0;
    }
    __syncthreads();
    u32 target = 0;
    for (u32 level = 0; level < levels; ++level) {
        const i64 level_stop = level_offsets[level + 1];
        // Adjacent rules go to different blocks: a short level is spread over all multiprocessors.
        for (i64 base = level_offsets[level] + blockIdx.x; base < level_stop;
             base += static_cast<i64>(gridDim.x) * THREADS) {
            for (u32 turn = 0; turn < 32; ++turn) {
                const i64 rule = base + static_cast<i64>(gridDim.x) * (turn * WARPS + warp);
                if (rule >= level_stop)
                    break;
                const u32 bound = bounds[rule];
                if (bound > FEW) {
                    if (lane == 0)
                        large[atomicAdd(&large_count, 1u)] = turn * WARPS + warp;
                    continue;
                }
                TerminalTable table{shared_terminals + warp * WARP_SLOTS, shared_counts + warp * WARP_SLOTS,
                    bound + bound / 2 + 1};
                __syncwarp();
                table.clear(lane, 32);
                __syncwarp();
                const i64 stop = rule_offsets[rule + 1];
                for (i64 i = rule_offsets[rule]; i < stop; i += 32)
                    add_symbols(table, nullptr, arena, terminals, symbols, i, stop);
                __syncwarp();
                write_table(table, lane, 32, static_cast<u64>(starts[rule]), arena, sizes + rule);
            }
            __syncthreads();
            const u32 count = large_count;
            for (u32 turn = 0; turn < count; ++turn) {
                const i64 rule = base + static_cast<i64>(gridDim.x) * large[turn];
                const u32 bound = bounds[rule];
                const bool in_place = bound > MANY;
                const u64 start = static_cast<u64>(starts[rule]);
                TerminalTable table{shared_terminals, shared_counts, min(bound + bound / 2 + 1, BLOCK_SLOTS)};
                if (in_place)
                    table = {table_terminals + start, table_counts + start, bound + bound / 2 + 1};
                table.clear(threadIdx.x, THREADS);
                if (threadIdx.x == 0)
                    written = 0;
                __syncthreads();
                const i64 stop = rule_offsets[rule + 1];
                for (i64 i = rule_offsets[rule] + 32 * warp; i < stop; i += THREADS)
                    add_symbols(table, &waiting, arena, terminals, symbols, i, stop);
                waiting.visit([&](u64 item, Count) {
                    table.add(__ldcg(arena.terminals + item), __ldcg(arena.counts + item));
                });
                if (!in_place) {
                    write_table(table, threadIdx.x, THREADS, start, arena, sizes + rule);
                    __syncthreads();
                    continue;
                }
                // Written positions are at or before positions already read, and are not read again.
                for (u32 first = 0; first < table.slots; first += THREADS) {
                    const u32 i = first + threadIdx.x;
                    const u32 terminal = i < table.slots ? __ldcg(table.terminals + i) : NONE;
                    const Count amount = terminal != NONE ? __ldcg(table.counts + i) : 0;
                    __syncthreads();
                    if (terminal != NONE) {
                        const u32 place = atomicAdd(&written, 1u);
                        table.terminals[place] = terminal;
                        table.counts[place] = amount;
                    }
                }
                __syncthreads();
                if (threadIdx.x == 0)
                    sizes[rule] = written;
                __syncthreads();
            }
            if (count > 0 && threadIdx.x == 0)  // all threads have read it: there was a barrier since
                large_count = 0;
            __syncthreads();
        }
        grid_barrier(arrived, target);
    }
}

// Copies tables to an arena without spare slots. packed_starts: start of each rule's table there. most: the highest
// count; zero.
extern "C" __global__ void __launch_bounds__(THREADS) pack_tables(
    u32 rules, const i64* __restrict__ starts, const u32* __restrict__ sizes, const u32* __restrict__ table_terminals,
    const Count* __restrict__ table_counts, const i64* __restrict__ packed_starts, u32* packed_terminals,
    Count* packed_counts, u64* most)
{
    const u64 rule = static_cast<u64>(blockIdx.x) * WARPS + threadIdx.x / 32;
    if (rule >= rules)
        return;
    const u64 from = static_cast<u64>(starts[rule]);
    const u64 to = static_cast<u64>(packed_starts[rule]);
    u64 highest = 0;
    for (u32 i = threadIdx.x % 32; i < sizes[rule]; i += 32) {
        packed_terminals[to + i] = table_terminals[from + i];
        packed_counts[to + i] = table_counts[from + i];
        highest = max(highest, static_cast<u64>(table_counts[from + i]));
    }
    for (u32 step = 16; step > 0; step /= 2)
        highest = max(highest, __shfl_xor_sync(ALL_LANES, highest, step));
    if (threadIdx.x % 32 == 0 && highest > *most)
        atomicMax(most, highest);
}

// Adds each table's counts times the number of uses of its rule to the counts of terminals.
extern "C" __global__ void __launch_bounds__(THREADS) add_tables(
    u32 terminals, u32 rules, const i64* __restrict__ starts, const u32* __restrict__ sizes,
    const u32* __restrict__ table_terminals, const Count* __restrict__ table_counts, const u64* __restrict__ uses,
    u32 held, u64* counts)
{
    extern __shared__ u32 low[];
    for (u32 i = threadIdx.x; i < held; i += THREADS)
        low[i] = 0;
    __syncthreads();
    const u32 warp = threadIdx.x / 32 * gridDim.x + blockIdx.x;
    for (u64 rule = warp; rule < rules; rule += static_cast<u64>(gridDim.x) * WARPS) {
        const u64 used = uses[rule];
        if (used == 0)
            continue;
        const u64 start = static_cast<u64>(starts[rule]);
        for (u32 i = threadIdx.x % 32; i < sizes[rule]; i += 32) {
            const u32 terminal = table_terminals[start + i];
            const u64 amount = used * table_counts[start + i];
            add_count(low, held, counts, terminal, amount);
        }
    }
    __syncthreads();
    flush_held(low, held, counts);
}
