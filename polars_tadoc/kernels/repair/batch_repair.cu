// The passes of one round of batch RePair over a sequence of symbols; kernels/repair/reference.py defines the result.
//
// Passes may read an adjacent symbol while its owner sets the top bit, so they mask it.
#include "primitives/counters.cuh"
#include "primitives/scan.cuh"
#include "repair/rules.cuh"

constexpr u32 THREADS = 256;

constexpr u32 WARPS = THREADS / 32;
constexpr u32 WORDS = 8;  // bitmap words of 32 positions per warp
constexpr u32 SPAN = 32 * WORDS;
constexpr u32 TILE = WARPS * SPAN;
constexpr u32 GROUP = 32 * 32;  // positions per warp in number_rules, one bitmap word per lane
constexpr u32 BATCH = 4;  // loads in flight per lane

// Report of a round to the host; starts as zeros.
struct Report {
    u32 alive;
    u32 size;
    u32 rules;
    u32 any_selected;
    u32 table_full;
    u32 tiles_taken;
};

// Lane l of word k has position first + 32 k + l.
struct Span {
    u32 first;
    u32 symbol[WORDS];
    u32 before;  // the symbol before the span, and the one after it
    u32 after;

    __device__ __forceinline__ Span(const u32* sequence, u32 size, u32 tile)
    {
        const u32 lane = threadIdx.x % 32;
        first = tile * TILE + threadIdx.x / 32 * SPAN;
#pragma unroll
        for (u32 k = 0; k < WORDS; ++k)
            symbol[k] = first + 32 * k + lane < size ? sequence[first + 32 * k + lane] : SEPARATOR;
        before = 0 < first && first - 1 < size ? sequence[first - 1] : SEPARATOR;
        after = first + SPAN < size ? sequence[first + SPAN] : SEPARATOR;
    }

    __device__ __forceinline__ u32 next(u32 k) const
    {
        const u32 edge = k + 1 < WORDS ? __shfl_sync(ALL_LANES, symbol[k + 1 < WORDS ? k + 1 : 0], 0) : after;
        const u32 right = __shfl_down_sync(ALL_LANES, symbol[k], 1);
        return threadIdx.x % 32 == 31 ? edge : right;
    }

    // A bit for each position of word k whose symbol differs from the one before.
    __device__ __forceinline__ u32 run_starts(u32 k) const
    {
        const u32 edge = k > 0 ? __shfl_sync(ALL_LANES, symbol[k > 0 ? k - 1 : 0], 31) : before;
        const u32 left = __shfl_up_sync(ALL_LANES, symbol[k], 1);
        const u32 previous = threadIdx.x % 32 == 0 ? edge : left;
        const bool very_first = first + 32 * k + threadIdx.x % 32 == 0;
        return __ballot_sync(ALL_LANES, very_first || ((symbol[k] ^ previous) & SYMBOL) != 0);
    }
};

// Position + 1 of the last start of a run up to the word's end, given that of the words before.
__device__ __forceinline__ u32 last_start(u32 word_first, u32 starts, u32 before)
{
    return starts == 0 ? before : word_first + 32 - __clz(starts);
}

// Marks the positions whose pair crosses the end of a row.
extern "C" __global__ void __launch_bounds__(THREADS) mark_alive(u32* sequence, u32 size, Report* report)
{
    __shared__ u32 all_alive;
    if (threadIdx.x == 0)
        all_alive = 0;
    __syncthreads();
    const Span span(sequence, size, blockIdx.x);
    u32 alive = 0;
#pragma unroll
    for (u32 k = 0; k < WORDS; ++k) {
        const u32 i = span.first + 32 * k + threadIdx.x % 32;
        const u32 here = span.symbol[k];
        const u32 next = span.next(k);
        const bool inside = here != SEPARATOR && (next & SYMBOL) != SYMBOL;
        if (i < size && !inside)
            sequence[i] = here | DEAD;
        alive += __popc(__ballot_sync(ALL_LANES, inside));
    }
    if (threadIdx.x % 32 == 0)
        atomicAdd(&all_alive, alive);
    __syncthreads();
    if (threadIdx.x == 0)
        atomicAdd(&report->alive, all_alive);
}

__device__ __forceinline__ u32 cell_of(u64 hash, u32 cell_mask)
{
    return static_cast<u32>(hash >> 32) & cell_mask;
}

// Two bits of a sieve, initially ones: the first pair with a hash clears the lower, the second the upper. Most pairs of
// natural text occur once: they never get an entry in the exact table.
extern "C" __global__ void __launch_bounds__(THREADS)
    sieve_pairs(const u32* __restrict__ sequence, u32 size, u32* sieve, u32 cell_mask)
{
    const Span span(sequence, size, blockIdx.x);
#pragma unroll
    for (u32 k = 0; k < WORDS; ++k) {
        const u32 next = span.next(k);
        if ((span.symbol[k] & DEAD) == 0) {
            const u32 cell = cell_of(hash_pair(pair_of(span.symbol[k], next)), cell_mask);
            const u32 once = 1u << (2 * (cell % 16));
            if ((__ldcg(sieve + cell / 16) & 2 * once) != 0 && (atomicAnd(sieve + cell / 16, ~once) & once) == 0)
                atomicAnd(sieve + cell / 16, ~(2 * once));
        }
    }
}

// Counts the pairs of alive positions and stores each position's entry; pairs that the sieve saw once become dead.
extern "C" __global__ void __launch_bounds__(THREADS) count_pairs(u32* sequence, u32 size, const u32* sieve,
    u32 cell_mask, Entry* table, u32 capacity, u32* slots, u32* tile_starts, Report* report)
{
    __shared__ u32 last;
    if (threadIdx.x == 0)
        last = 0;
    __syncthreads();
    const u32 lane = threadIdx.x % 32;
    const Span span(sequence, size, blockIdx.x);
    u32 start = 0;
    u64 pair[WORDS];
    u32 met[WORDS];
    // issue all loads of a kind before the first is used
#pragma unroll
    for (u32 k = 0; k < WORDS; ++k) {
        start = last_start(span.first + 32 * k, span.run_starts(k), start);
        pair[k] = pair_of(span.symbol[k], span.next(k));
        met[k] = 0;
        if (sieve != nullptr && (span.symbol[k] & DEAD) == 0) {
            const u32 cell = cell_of(hash_pair(pair[k]), cell_mask);
            met[k] = sieve[cell / 16] >> (2 * (cell % 16));
        }
    }
    u64 holder[WORDS];
#pragma unroll
    for (u32 k = 0; k < WORDS; ++k)
        if ((span.symbol[k] & DEAD) == 0 && (met[k] & 2) == 0)
            holder[k] = table[slot_of(hash_pair(pair[k]), capacity)].pair;
#pragma unroll
    for (u32 k = 0; k < WORDS; ++k) {
        const u32 i = span.first + 32 * k + lane;
        const bool alive = (span.symbol[k] & DEAD) == 0;
        if (!__any_sync(ALL_LANES, alive))
            continue;
        u32 slot = NO_ENTRY;
        if (alive) {
            if ((met[k] & 2) != 0) {
                sequence[i] = span.symbol[k] | DEAD;
            } else {
                slot = find_entry(table, capacity, pair[k], holder[k]);
                slots[i] = slot;
                if (slot == NO_ENTRY)
                    report->table_full = 1;
            }
        }
        // a pair in many lanes is added once
        const u32 same = __match_any_sync(ALL_LANES, slot);
        if (slot != NO_ENTRY && lane == static_cast<u32>(__ffs(same) - 1))
            atomicAdd(&table[slot].repeats, static_cast<u32>(__popc(same)));
    }
    if (lane == 0)
        atomicMax(&last, start);
    __syncthreads();
    if (threadIdx.x == 0)
        tile_starts[blockIdx.x] = last;
}

// Position + 1 of the last start of a run before the tile.
__device__ u32 start_before_tile(const u32* tile_starts)
{
    __shared__ u32 start;
    if (threadIdx.x == 0)
        start = 0;
    for (u32 stop = blockIdx.x; stop > 0; stop -= min(stop, static_cast<u32>(THREADS))) {
        __syncthreads();
        if (threadIdx.x < stop)
            atomicMax(&start, tile_starts[stop - 1 - threadIdx.x]);
        __syncthreads();
        if (start != 0)
            break;
    }
    return start;
}

// Selects the positions whose pair has priority over those of both adjacent positions: a higher count or, for equal
// counts, a higher hash. Equal pairs are adjacent only within a run of one symbol: there every other position from the
// run's start is selected. Counts the selections of each pair, and finds its first one.
extern "C" __global__ void __launch_bounds__(THREADS) select_pairs(u32* sequence, u32 size, Entry* table,
    const u32* __restrict__ slots, const u32* __restrict__ tile_starts, u32* selected, Report* report)
{
    if (report->table_full != 0)
        return;
    __shared__ u32 warp_starts[WARPS];
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    const Span span(sequence, size, blockIdx.x);
    u32 slot[WORDS];
    u32 counts[WORDS];
    u32 start = 0;
    bool any = false;
    // issue all loads of a kind before the first is used
#pragma unroll
    for (u32 k = 0; k < WORDS; ++k)
        slot[k] = (span.symbol[k] & DEAD) == 0 ? slots[span.first + 32 * k + lane] : NO_ENTRY;
#pragma unroll
    for (u32 k = 0; k < WORDS; ++k)
        counts[k] = occurrences(table, slot[k]);
#pragma unroll
    for (u32 k = 0; k < WORDS; ++k) {
        if (counts[k] == 0 && slot[k] != NO_ENTRY)
            sequence[span.first + 32 * k + lane] = span.symbol[k] | DEAD;
        any |= counts[k] != 0;
        start = last_start(span.first + 32 * k, span.run_starts(k), start);
    }
    if (lane == 0)
        warp_starts[warp] = start;
    __syncthreads();
    start = 0;
    for (u32 w = 0; w < warp; ++w)
        start = max(start, warp_starts[w]);
    // only needed by a run that starts in an earlier tile
    const u32 tile_first = blockIdx.x * TILE;
    if (tile_first > 0 && ((sequence[tile_first] ^ sequence[tile_first - 1]) & SYMBOL) == 0)
        start = max(start, start_before_tile(tile_starts));
    bool won = false;
    if (!__any_sync(ALL_LANES, any)) {
        if (lane < WORDS && span.first + 32 * lane < size)
            selected[span.first / 32 + lane] = 0;
    } else {
        u32 edge_count = 0;
        u64 edge_hash = 0;
        if (lane == 0 && span.first > 0 && span.first < size) {
            edge_count = occurrences(table, (span.before & DEAD) == 0 ? slots[span.first - 1] : NO_ENTRY);
            edge_hash = hash_pair(pair_of(span.before, span.symbol[0]));
        } else if (lane == 31 && span.first + SPAN < size) {
            edge_count = occurrences(table, (span.after & DEAD) == 0 ? slots[span.first + SPAN] : NO_ENTRY);
            const u32 second = span.first + SPAN + 1 < size ? sequence[span.first + SPAN + 1] : SEPARATOR;
            edge_hash = hash_pair(pair_of(span.after, second));
        }
        u64 hash = hash_pair(pair_of(span.symbol[0], span.next(0)));
        u64 last_hash = 0;  // of the word before
#pragma unroll
        for (u32 k = 0; k < WORDS; ++k) {
            const u32 word_first = span.first + 32 * k;
            const u32 i = word_first + lane;
            const u32 following = k + 1 < WORDS ? k + 1 : k;
            const u64 next_pair = k + 1 < WORDS ? pair_of(span.symbol[following], span.next(following)) : 0;
            const u64 next_hash = hash_pair(next_pair);
            u32 count_before = __shfl_up_sync(ALL_LANES, counts[k], 1);
            u64 hash_before = __shfl_up_sync(ALL_LANES, hash, 1);
            u32 count_after = __shfl_down_sync(ALL_LANES, counts[k], 1);
            u64 hash_after = __shfl_down_sync(ALL_LANES, hash, 1);
            const u32 left_count = k == 0 ? edge_count : __shfl_sync(ALL_LANES, counts[k == 0 ? 0 : k - 1], 31);
            const u64 left_hash = k == 0 ? edge_hash : __shfl_sync(ALL_LANES, last_hash, 31);
            const u32 right_count = k + 1 == WORDS ? edge_count : __shfl_sync(ALL_LANES, counts[following], 0);
            const u64 right_hash = k + 1 == WORDS ? edge_hash : __shfl_sync(ALL_LANES, next_hash, 0);
            if (lane == 0) {
                count_before = left_count;
                hash_before = left_hash;
            } else if (lane == 31) {
                count_after = right_count;
                hash_after = right_hash;
            }
            const u32 count = counts[k];
            const bool ties = count != 0
                && ((count == count_before && hash == hash_before) || (count == count_after && hash == hash_after));
            bool wins = count != 0 && (count > count_before || (count == count_before && hash >= hash_before))
                && (count > count_after || (count == count_after && hash >= hash_after));
            const u32 starts = span.run_starts(k);
            if (ties && wins) {
                const u32 own_start = last_start(word_first, starts << (31 - lane) >> (31 - lane), start) - 1;
                wins = (i - own_start) % 2 == 0;
            }
            start = last_start(word_first, starts, start);
            const u32 winners = __ballot_sync(ALL_LANES, wins);
            if (lane == 0 && word_first < size)
                selected[word_first / 32] = winners;
            if (winners != 0) {
                const u32 same = __match_any_sync(ALL_LANES, wins ? slot[k] : NO_ENTRY);
                if (wins && lane == static_cast<u32>(__ffs(same) - 1)) {
                    Entry* const entry = table + slot[k];
                    atomicAdd(&entry->fate, static_cast<u32>(__popc(same)));
                    if (i < __ldcg(&entry->first))
                        atomicMin(&entry->first, i);
                }
                won = true;
            }
            last_hash = hash;
            hash = next_hash;
        }
    }
    // avoids contention of all warps for one address
    if (__syncthreads_or(won) && threadIdx.x == 0)
        report->any_selected = 1;
}

// Lists the positions of set bits in the warp's words, one word per lane; returns their number.
__device__ __forceinline__ u32 list_places(u32 bits, unsigned short* places)
{
    const u32 number = __popc(bits);
    u32 at = lanes_before(number);
    for (; bits != 0; bits &= bits - 1)
        places[at++] = static_cast<unsigned short>(32 * (threadIdx.x % 32) + __ffs(bits) - 1);
    return lanes_sum(number);
}

// Finds or makes the rules of the pairs to replace: those selected at least twice and at half of their occurrences. New
// rules are numbered by first selected position. Marks the positions to replace. groups: number of replaced positions
// before each group of positions.
extern "C" __global__ void __launch_bounds__(THREADS)
    number_rules(u32 size, Entry* table, const u32* __restrict__ slots, const u32* __restrict__ selected,
        u32* __restrict__ replaced, u32* left, u32* right, u32* index, u32 index_size, u32 vocabulary, u32 known,
        u32 part, u32 whole, u64* tiles, u32* __restrict__ groups, Report* report)
{
    if (report->table_full != 0)
        return;
    __shared__ unsigned short warp_places[WARPS][GROUP / 2];  // adjacent positions are never both selected
    __shared__ u32 warp_bits[WARPS][32];
    __shared__ u32 warp_made[WARPS][32];
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    unsigned short* const places = warp_places[warp];
    const u32 tile = take_tile(&report->tiles_taken);
    const u32 first = (tile * WARPS + warp) * GROUP;
    const bool there = first + 32 * lane < size;
    const u32 selections = list_places(there ? selected[first / 32 + lane] : 0, places);
    warp_bits[warp][lane] = 0;
    warp_made[warp][lane] = 0;
    __syncwarp();
    for (u32 begin = lane; begin < selections; begin += 32 * BATCH) {
        u32 slot[BATCH];
        bool replace[BATCH];
        bool is_first[BATCH];
        // issue all loads of a kind before the first is used
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k)
            slot[k] = begin + 32 * k < selections ? slots[first + places[begin + 32 * k]] : NO_ENTRY;
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k) {
            replace[k] = is_first[k] = false;
            if (slot[k] != NO_ENTRY) {
                const Entry* const entry = table + slot[k];
                const u32 fate = __ldcg(&entry->fate);  // another thread may be numbering the pair
                const u64 times = static_cast<u64>(whole) * (fate + 1);
                replace[k] =
                    (fate & NUMBERED) != 0 || (fate > 0 && times >= static_cast<u64>(part) * (entry->repeats + 1ull));
                is_first[k] = replace[k] && entry->first == first + places[begin + 32 * k];
            }
        }
#pragma unroll
        for (u32 k = 0; k < BATCH; ++k) {
            if (!replace[k])
                continue;
            const u32 place = places[begin + 32 * k];
            atomicOr(&warp_bits[warp][place / 32], 1u << (place % 32));
            if (is_first[k]) {
                const u32 rule = find_rule(index, index_size, table[slot[k]].pair, known, left, right);
                if (rule != 0)
                    table[slot[k]].fate = NUMBERED | (vocabulary + rule - 1);
                else
                    atomicOr(&warp_made[warp][place / 32], 1u << (place % 32));
            }
        }
    }
    __syncwarp();
    const u32 bits = warp_bits[warp][lane];  // of a word: positions to replace, and positions that make a rule
    const u32 made = warp_made[warp][lane];
    if (there)
        replaced[first / 32 + lane] = bits;
    const u64 own = two_sums(__popc(bits), __popc(made));
    const u64 all = lanes_sum(own);
    const u64 before = warps_before<WARPS>(tiles, tile, all);
    if (lane == 0 && first < size)
        groups[first / GROUP] = first_sum(before);
    if (tile == gridDim.x - 1 && threadIdx.x == THREADS - 1) {
        report->size = size - first_sum(before + all);
        report->rules = known + second_sum(before + all);
    }
    const u32 rules_made = list_places(made, places);
    __syncwarp();
    for (u32 k = lane; k < rules_made; k += 32) {
        const u32 rule = known + second_sum(before) + k;
        Entry* const entry = table + slots[first + places[k]];
        const u64 pair = entry->pair;
        left[rule] = static_cast<u32>(pair >> 32);
        right[rule] = static_cast<u32>(pair);
        entry->fate = NUMBERED | (vocabulary + rule);
        enter_rule(index, index_size, pair, rule);
    }
}

// Writes the sequence with its pairs replaced. Positions whose pair contains a new symbol become alive; if nothing was
// replaced, selected positions become dead, so that adjacent ones can be selected.
extern "C" __global__ void __launch_bounds__(THREADS)
    rewrite(const u32* __restrict__ sequence, u32 size, const u32* __restrict__ slots,
        const Entry* __restrict__ table, const u32* __restrict__ selected, const u32* __restrict__ replaced,
        const u32* __restrict__ groups, u32* __restrict__ target, Report* report)
{
    if (report->table_full != 0)
        return;
    __shared__ u32 all_alive;
    const u32 lane = threadIdx.x % 32;
    const bool stalled = report->size == size;
    const Span span(sequence, size, blockIdx.x);
    // lane l has word l - 1: the word before the span, the span's words, the one after it
    const u32 word = span.first / 32 + lane - 1;
    const bool there = (lane > 0 || span.first > 0) && lane < WORDS + 2 && 32 * static_cast<u64>(word) < size;
    const u32 words = there ? replaced[word] : 0;
    const u32 vain = there && stalled ? selected[word] : 0;
    // replaced before the span: before its group of words, and inside the group
    const u32 group = span.first / GROUP;
    const bool earlier = 32 * group + lane < span.first / 32 && span.first < size;
    u32 before = lanes_sum(earlier ? static_cast<u32>(__popc(replaced[32 * group + lane])) : 0u);
    before += span.first < size ? groups[group] : 0;
    if (threadIdx.x == 0)
        all_alive = 0;
    __syncthreads();
    u32 alive_here = 0;
#pragma unroll
    for (u32 k = 0; k < WORDS; ++k) {
        const u32 i = span.first + 32 * k + lane;
        const u32 previous_word = __shfl_sync(ALL_LANES, words, k);
        const u32 own_word = __shfl_sync(ALL_LANES, words, k + 1);
        const u32 next_word = __shfl_sync(ALL_LANES, words, k + 2);
        const bool in_vain = (__shfl_sync(ALL_LANES, vain, k + 1) >> lane & 1) != 0;
        const bool consumed = ((lane == 0 ? previous_word >> 31 : own_word >> (lane - 1)) & 1) != 0;
        const bool next_new = ((lane == 31 ? next_word : own_word >> (lane + 1)) & 1) != 0;
        bool alive = false;
        if (i < size && !consumed) {
            u32 symbol = span.symbol[k] & SYMBOL;
            if ((own_word >> lane & 1) != 0) {
                symbol = table[slots[i]].fate & SYMBOL;
                alive = i + 2 < size && sequence[i + 2] != SEPARATOR;
            } else {
                alive = symbol != SYMBOL && (next_new || ((span.symbol[k] & DEAD) == 0 && !in_vain));
            }
            target[i - before - __popc(own_word & ((1u << lane) - 1))] = alive ? symbol : symbol | DEAD;
        }
        before += __popc(own_word);
        alive_here += __popc(__ballot_sync(ALL_LANES, alive));
    }
    if (lane == 0 && alive_here != 0)
        atomicAdd(&all_alive, alive_here);
    __syncthreads();
    if (threadIdx.x == 0 && all_alive != 0)
        atomicAdd(&report->alive, all_alive);
}

// Copies the sequence without the marks of dead positions.
extern "C" __global__ void __launch_bounds__(THREADS)
    strip_marks(const u32* __restrict__ sequence, u32 size, u32* __restrict__ target)
{
    for (u32 i = blockIdx.x * THREADS + threadIdx.x; i < size; i += gridDim.x * THREADS)
        target[i] = sequence[i] == SEPARATOR ? SEPARATOR : sequence[i] & SYMBOL;
}
