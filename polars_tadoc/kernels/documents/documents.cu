// Counts the terminals of each document: a block processes one document after another and counts in shared memory.
//
// Top-down, a document's weights are propagated from its roots through the rules, reading each body once; bottom-up,
// the tables of its rules are merged.
#include "primitives/counters.cuh"
#include "primitives/scan.cuh"
#include "traverse/spans.cuh"
#include "traverse/terminal_table.cuh"
#include "documents/counted_keys.cuh"

constexpr u32 PROBES = 64;  // probes of a table that may be too small, before giving up

// One document's terminals: in a table if they can only be few, otherwise with one counter per terminal.
struct Counter {
    TerminalTable table;
    Count* dense_counts;
    u32 terminals;  // 0 with a table

    __device__ __forceinline__ void clear()
    {
        if (terminals == 0)
            table.clear(threadIdx.x, blockDim.x);
        else
            for (u32 i = threadIdx.x; i < terminals; i += blockDim.x)
                dense_counts[i] = 0;
    }

    __device__ __forceinline__ void add(u32 terminal, Count amount)
    {
        if (terminals == 0)
            table.add(terminal, amount);
        else
            atomicAdd(dense_counts + terminal, amount);
    }

    __device__ __forceinline__ u32 cells() const
    {
        return terminals == 0 ? table.slots : terminals;
    }

    // Terminal of a cell and its count, 0 if empty.
    __device__ __forceinline__ Count read(u32 cell, u32& terminal) const
    {
        if (terminals == 0) {
            terminal = table.terminals[cell];
            return table.counts[cell];
        }
        terminal = cell;
        return dense_counts[cell];
    }
};

// list, list_size   documents to count
// next, next_size   list of documents whose terminals or rules do not fit in the tables
// table_slots       of each document's table of terminals, rule_slots of its table of rules' weights; both in shared
//                   memory; 0 bottom-up, where shared memory is divided by document
// taken             number of documents taken: zero at the start
// marked            rules with a bit each in shared memory, all of them top-down: which have a weight
// *_shift           position of a terminal, its document and its count in a key; count_shift is 64 if counts have an
//                   array of their own
// count_flip        all ones of a count's bits if high counts come first
// keys, counts      room for `capacity` terminals; counts only if they do not fit in keys
// cursor            number of terminals written: zero at the start
// starts, sizes     by document: start and number of its terminals
extern "C" __global__ void __launch_bounds__(1024) count_documents(
    u32 terminals, u32 rules, const i64* __restrict__ rule_offsets, const u32* __restrict__ symbols,
    const i64* __restrict__ level_offsets, u32 levels, const i64* __restrict__ table_starts,
    const u32* __restrict__ table_sizes, const u32* __restrict__ table_terminals,
    const TableCount* __restrict__ table_counts, const i64* __restrict__ root_offsets, const u32* __restrict__ roots,
    const u32* __restrict__ list, const u64* __restrict__ list_size, u32* next_list, u64* next_size, u32* taken,
    const u32* __restrict__ bounds, u32 table_slots, u32 rule_slots, u32 shared_bytes, u32 marked,
    const u32* __restrict__ rank, u64 least, u32 terminal_shift, u32 document_shift, u32 count_shift, u32 count_flip,
    Key* keys, u64* counts, u32 capacity, u64* cursor, u32* starts, u32* sizes)
{
    extern __shared__ u64 shared[];
    __shared__ LongSpans waiting;
    __shared__ u32 next;
    __shared__ u32 found;
    __shared__ u64 start;

    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    const u32 slots = shared_bytes / (4 + sizeof(Count));
    const CountedKeys counted{rank, terminal_shift, document_shift, count_shift, count_flip, keys, counts};
    u32* marks = reinterpret_cast<u32*>(shared) + shared_bytes / 4;
    for (u32 i = threadIdx.x; 32 * i < marked; i += blockDim.x)
        marks[i] = 0;
    if (threadIdx.x == 0)
        waiting.clear();
    Count* rule_counts = reinterpret_cast<Count*>(shared) + table_slots;
    TerminalTable rule_table{reinterpret_cast<u32*>(rule_counts + rule_slots) + table_slots, rule_counts, rule_slots};
    bool full = false;  // a table is full
    const auto add_rule = [&](u32 rule, Count amount) {
        full |= !rule_table.add_within(rule, amount, PROBES);
        const u32 bit = 1u << rule % 32;
        if ((*const_cast<volatile u32*>(marks + rule / 32) & bit) == 0)
            atomicOr(marks + rule / 32, bit);
    };

    while (true) {
        __syncthreads();
        if (threadIdx.x == 0) {
            next = atomicAdd(taken, 1u);
            found = 0;
        }
        __syncthreads();
        if (next >= *list_size)
            return;
        const u32 document = list[next];
        const u32 bound = bounds[document];

        Counter counter;
        counter.dense_counts = reinterpret_cast<Count*>(shared);
        // a table costs a few probes per terminal, counters two visits of every possible terminal
        const bool dense = bound > slots / 3 * 2 || terminals / 4 <= bound;
        counter.terminals = table_slots == 0 && dense && terminals <= shared_bytes / sizeof(Count) ? terminals : 0;
        counter.table.counts = reinterpret_cast<Count*>(shared);
        counter.table.slots = table_slots != 0 ? table_slots : min(slots, 2 * bound);
        counter.table.terminals =
            reinterpret_cast<u32*>(counter.table.counts + rule_slots + counter.table.slots);
        counter.clear();
        rule_table.clear(threadIdx.x, blockDim.x);
        full = false;
        const auto add_terminal = [&](u32 terminal, Count amount) {
            if (table_slots != 0)
                full |= !counter.table.add_within(terminal, amount, PROBES);
            else
                counter.add(terminal, amount);
        };
        __syncthreads();

        const i64 root_stop = root_offsets[document + 1];
        for (i64 first = root_offsets[document] + 32 * warp; first < root_stop; first += blockDim.x) {
            const u32 symbol = first + lane < root_stop ? roots[first + lane] : NONE;
            u64 begin = 0;
            u32 size = 0;
            if (symbol < terminals) {
                add_terminal(symbol, 1);
            } else if (symbol != NONE) {
                if (TOP_DOWN) {
                    add_rule(symbol - terminals, 1);
                } else {
                    begin = static_cast<u64>(table_starts[symbol - terminals]);
                    size = waiting.untaken(begin, table_sizes[symbol - terminals], 1);
                }
            }
            __syncwarp();
            if (!TOP_DOWN)
                visit_spans(begin, size, Count{1}, [&](u64 item, Count) {
                    counter.add(table_terminals[item], table_counts[item]);
                });
        }
        if (!TOP_DOWN)
            waiting.visit([&](u64 item, Count) { counter.add(table_terminals[item], table_counts[item]); });

        for (u32 level = TOP_DOWN ? levels : 0; level-- > 0;) {
            if (__syncthreads_or(full))
                break;
            const auto give = [&](u64 item, Count weight) {
                const u32 symbol = symbols[item];
                if (symbol < terminals)
                    add_terminal(symbol, weight);
                else
                    add_rule(symbol - terminals, weight);
            };
            // Each lane has a rule, or none, and adds its weight to its body.
            const auto visit_rules = [&](bool has, u32 rule) {
                Count weight = 0;
                if (has)
                    weight = rule_table.find(rule);
                u64 begin = 0;
                const u32 size = weight != 0 ? waiting.body(rule_offsets, rule, weight, begin) : 0;
                __syncwarp();
                visit_spans(begin, size, weight, give);
            };
            const u32 level_first = static_cast<u32>(level_offsets[level]);
            const u32 level_stop = static_cast<u32>(level_offsets[level + 1]);
            for (u32 first = level_first / 32 + 32 * warp; 32 * first < level_stop; first += blockDim.x) {
                const u32 word = 32 * (first + lane);  // its first rule
                u32 bits = 0;
                if (word < level_stop) {
                    u32 mask = 0xFFFFFFFFu;
                    if (word < level_first)
                        mask <<= level_first - word;
                    if (level_stop - word < 32)
                        mask &= (1u << (level_stop - word)) - 1;
                    // others may mark rules of lower levels in this word concurrently
                    bits = (marks[word / 32] & mask) == 0 ? 0 : atomicAnd(marks + word / 32, ~mask) & mask;
                }
                // the marked rules are distributed evenly over the lanes
                const u32 count = __popc(bits);
                const u32 before = lanes_before(count);
                const u32 total = __shfl_sync(ALL_LANES, before + count, 31);
                for (u32 place = lane; place - lane < total; place += 32) {
                    const int owner = lane_at(before, place);
                    u32 left = __shfl_sync(ALL_LANES, bits, owner);
                    const u32 skipped = place - __shfl_sync(ALL_LANES, before, owner);
                    const u32 base = __shfl_sync(ALL_LANES, word, owner);
                    const bool has = place < total;
                    for (u32 i = 0; has && i < skipped; ++i)
                        left &= left - 1;
                    visit_rules(has, base + static_cast<u32>(__ffs(left)) - 1);
                }
            }
            waiting.visit(give);
        }
        if (__syncthreads_or(full)) {
            for (u32 i = threadIdx.x; 32 * i < marked; i += blockDim.x)
                marks[i] = 0;
            if (threadIdx.x == 0)
                next_list[atomicAdd(next_size, 1ull)] = document;
            continue;
        }

        const u32 cells = counter.cells();
        u32 own = 0;
        for (u32 cell = threadIdx.x; cell < cells; cell += blockDim.x) {
            u32 terminal;
            const Count count = counter.read(cell, terminal);
            own += count != 0 && count >= least;
        }
        own = lanes_sum(own);
        if (lane == 0 && own != 0)
            atomicAdd(&found, own);
        __syncthreads();
        if (threadIdx.x == 0) {
            start = atomicAdd(cursor, static_cast<u64>(found));
            sizes[document] = found;
            starts[document] = static_cast<u32>(start);
        }
        __syncthreads();
        const bool fits = start + found <= capacity;
        __syncthreads();
        if (threadIdx.x == 0)
            found = 0;
        __syncthreads();
        for (u32 base = 0; base < cells; base += blockDim.x) {
            const u32 cell = base + threadIdx.x;
            u32 terminal = 0;
            const Count count = cell < cells ? counter.read(cell, terminal) : 0;
            const bool kept = fits && count != 0 && count >= least;
            const u32 place = take_room(&found, kept);
            if (kept)
                counted.write(start + place, terminal, document, count);
        }
    }
}
