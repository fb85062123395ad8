// The last rounds of batch RePair, when few positions are alive: all of them in one cooperative launch, which reads and
// writes only these positions and adjacent ones; kernels/repair/reference.py defines the result.
//
// The sequence is changed in place: the second symbol of a replaced pair becomes a hole. The first hole of several in
// succession names the position after them, the last one the position before them.
#include "primitives/counters.cuh"
#include "primitives/grid_barrier.cuh"
#include "primitives/scan.cuh"
#include "repair/rules.cuh"

constexpr u32 THREADS = 512;

constexpr u32 HOLE = SYMBOL;  // no symbol is all ones, and a separator is dead
constexpr u32 FEW = 1024;  // so few alive positions are left to one block: its barriers cost less
constexpr u32 MAX_WALK = 512;  // symbols between a position and the start of its run; more of them end the launch
constexpr u32 MIN_ENTRIES = 64;
constexpr u32 EACH = 4;  // positions per thread and step of a pass over the sequence

// State of an alive position in a round.
constexpr u32 REPEATS = 1;  // its pair occurs at least twice
constexpr u32 SELECTED = 2;
constexpr u32 REPLACED = 4;
constexpr u32 FIRST = 8;  // it is its pair's first selected position, and numbers the pair
constexpr u32 MAKES = 16;  // with a new rule
constexpr u32 CONSUMED = 32;  // the position before it is replaced
constexpr u32 LIVES = 64;
constexpr u32 WAKES = 128;  // the position before it becomes alive
constexpr u32 SLOT_REPLACED = 0x80000000u;  // of a position's entry: the position is replaced

// For the host. It starts as zeros.
struct State {
    u32 alive;
    u32 size;
    u32 rules;
    u32 stalled;  // the last round replaced nothing
    u32 ended;  // no round follows
    u32 gave_up;  // a run of one symbol is too long for a launch of this kind
    u32 rounds;
    u32 any_selected;
    u32 replaced;
    u32 arrived;  // number of blocks at the grid's barrier
};

// The blocks that work on a round: all of them, or the first one alone.
struct Team {
    State* state;
    u32 target = 0;
    bool alone = false;

    __device__ void meet()
    {
        if (alone)
            __syncthreads();
        else
            grid_barrier(&state->arrived, target);
    }

    __device__ u32 blocks() const { return alone ? 1 : gridDim.x; }

    // Sum over the blocks before this one; `all` is the sum over all of them.
    __device__ u32 before(const u32* sums, u32& all) const
    {
        u32 own = 0;
        all = 0;
        for (u32 block = threadIdx.x % 32; block < blocks(); block += 32) {
            const u32 sum = __ldcg(sums + block);
            all += sum;
            own += block < blockIdx.x ? sum : 0;
        }
        all = lanes_sum(all);
        return lanes_sum(own);
    }
};

// Symbols with holes.
struct Holed {
    u32* symbols;
    u32 size;
    u32* after;  // of the first hole of several
    u32* before;  // of the last one

    // Without its mark.
    __device__ u32 symbol(u32 place) const { return (place < size ? __ldcg(symbols + place) : SEPARATOR) & SYMBOL; }

    __device__ bool is_hole(u32 place) const { return place < size && __ldcg(symbols + place) == HOLE; }

    // At most the size.
    __device__ u32 next(u32 place) const
    {
        if (!is_hole(place + 1))
            return place + 1;
        return is_hole(place + 2) ? __ldcg(after + place + 1) : place + 2;
    }

    // NONE before the first position.
    __device__ u32 previous(u32 place) const
    {
        if (place == 0 || !is_hole(place - 1))
            return place - 1;
        return is_hole(place - 2) ? __ldcg(before + place - 1) : place - 2;
    }

    __device__ bool is_alive(u32 place) const { return place < size && (__ldcg(symbols + place) & DEAD) == 0; }

    // The second symbol of a pair becomes a hole; `third` is the position after it.
    __device__ void join(u32 first, u32 second, u32 third) const
    {
        symbols[second] = HOLE;
        after[first + 1] = third;
        before[third - 1] = first;
    }
};

// Calls `write(position, rank)` for positions to keep, in order of position; returns their number. Called by all blocks.
template <typename Keep, typename Write>
__device__ __forceinline__ u32 each_kept(u32 size, u32* sums, Team& team, Keep keep, Write write)
{
    constexpr u32 STEP = EACH * THREADS;
    const u32 steps = (size + STEP - 1) / STEP;
    const u32 own_steps = (steps + gridDim.x - 1) / gridDim.x;
    const u32 begin = min(steps, own_steps * blockIdx.x) * STEP;
    const u32 end = min(steps, own_steps * (blockIdx.x + 1)) * STEP;
    u32 own = 0;
    u32 all;
    for (u32 first = begin + threadIdx.x; first < end; first += STEP)
#pragma unroll
        for (u32 k = 0; k < EACH; ++k)
            own += first + k * THREADS < size && keep(first + k * THREADS);
    block_before<THREADS>(own, all);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = all;
    team.meet();
    u32 total;
    u32 before = team.before(sums, total);
    for (u32 first = begin + EACH * threadIdx.x; first - EACH * threadIdx.x < end; first += STEP) {
        u32 kept = 0;
#pragma unroll
        for (u32 k = 0; k < EACH; ++k)
            kept |= (first + k < size && keep(first + k) ? 1u : 0u) << k;
        u32 rank = before + block_before<THREADS>(static_cast<u32>(__popc(kept)), all);
#pragma unroll
        for (u32 k = 0; k < EACH; ++k)
            if ((kept >> k & 1) != 0)
                write(first + k, rank++);
        before += all;
        __syncthreads();
    }
    return total;
}

// Runs rounds while several positions are alive, at most max_rounds. Then the target has the sequence without holes; and
// without marks if no round follows. tables: two of `capacity` entries. lists: seven of `room` numbers; room is twice the
// number of alive positions: m adjacent ones become at most max(m, 2). notes: for each round, the positions alive at its
// start, and the rules after it. sums: two numbers per block.
extern "C" __global__ void __launch_bounds__(THREADS)
    late_rounds(u32* sequence, u32 size, u32* target, u32* slots, Entry* tables, u32 capacity, u32* lists, u32 room,
        u32* left, u32* right, u32* index, u32 index_size, u32 vocabulary, u32 known, u32 part, u32 whole, u32 stalled,
        u32 max_rounds, u32* notes, u32* sums, State* state)
{
    const Holed holed{sequence, size, target, slots};
    u32* const after = lists + 2 * room;  // by alive position
    u32* const before = after + room;
    u32* const third = before + room;
    u32* const facts = third + room;
    u32* const numbers = facts + room;
    u32* const made_sums = sums;
    u32* const kept_sums = sums + gridDim.x;
    Team team{state};
    const u32 thread = blockIdx.x * THREADS + threadIdx.x;
    const auto clear = [&](u32 number, u32 entries) {
        uint4* const halves = reinterpret_cast<uint4*>(tables + number * capacity);
        for (u32 i = thread; i < 2 * entries; i += team.blocks() * THREADS)
            halves[i] = make_uint4(NONE, NONE, NONE, NONE);
    };

    u32 alive = each_kept(
        size, made_sums, team, [&](u32 place) { return (sequence[place] & DEAD) == 0; },
        [&](u32 place, u32 rank) { lists[rank] = place; });
    u32 entries = min(capacity, max(MIN_ENTRIES, 2 * alive));
    clear(0, entries);
    team.meet();

    u32 symbols = size;
    u32 round = 0;
    u32 all;
    bool ended = false;
    bool left_to_first = false;
    for (; round < max_rounds; ++round) {
        ended = alive <= 1;
        if (ended)
            break;
        if (!team.alone && alive <= FEW) {
            left_to_first = blockIdx.x != 0;
            if (left_to_first)
                break;
            team.alone = true;
        }
        const u32* const places = lists + round % 2 * room;
        u32* const next_places = lists + (round + 1) % 2 * room;
        Entry* const table = tables + round % 2 * capacity;
        const u32 each = (alive + team.blocks() - 1) / team.blocks();
        const u32 first = min(alive, each * blockIdx.x);
        const u32 stop = min(alive, first + each);

        // count pairs
        if (thread == 0) {
            state->any_selected = 0;
            state->replaced = 0;
            notes[2 * round] = alive;
        }
        for (u32 k = first + threadIdx.x; k < stop; k += THREADS) {
            const u32 place = __ldcg(places + k);
            const u32 next = holed.next(place);
            const u64 pair = pair_of(holed.symbol(place), holed.symbol(next));
            const u64 holder = __ldcg(&table[slot_of(hash_pair(pair), entries)].pair);
            const u32 slot = find_entry(table, entries, pair, holder, entries);
            slots[place] = slot;
            after[k] = next;
            atomicAdd(&table[slot].repeats, 1u);
        }
        team.meet();

        // select
        bool any = false;
        for (u32 k = first + threadIdx.x; k < stop; k += THREADS) {
            const u32 place = __ldcg(places + k);
            Entry* const entry = table + __ldcg(slots + place);
            const u32 count = occurrences(table, __ldcg(slots + place));
            u32 own = 0;
            if (count != 0) {
                const u32 next = after[k];
                const u32 previous = holed.previous(place);
                const u32 symbol = holed.symbol(place);
                const u32 next_symbol = holed.symbol(next);
                const u64 hash = hash_pair(pair_of(symbol, next_symbol));
                bool wins = true;
                bool ties = false;
                if (holed.is_alive(next)) {
                    const u32 other = occurrences(table, __ldcg(slots + next));
                    const u64 other_hash = hash_pair(pair_of(next_symbol, holed.symbol(holed.next(next))));
                    wins = count > other || (count == other && hash >= other_hash);
                    ties = count == other && hash == other_hash;
                }
                if (holed.is_alive(previous)) {
                    const u32 other = occurrences(table, __ldcg(slots + previous));
                    const u64 other_hash = hash_pair(pair_of(holed.symbol(previous), symbol));
                    wins = wins && (count > other || (count == other && hash >= other_hash));
                    ties = ties || (count == other && hash == other_hash);
                }
                if (ties && wins) {
                    u32 steps = 0;
                    for (u32 at = previous; at != NONE && holed.symbol(at) == symbol && steps <= MAX_WALK; ++steps)
                        at = holed.previous(at);
                    if (steps > MAX_WALK)
                        state->gave_up = 1;
                    wins = steps % 2 == 0;
                }
                own = REPEATS;
                if (wins) {
                    own |= SELECTED;
                    any = true;
                    atomicAdd(&entry->fate, 1u);
                    atomicMin(&entry->first, place);
                }
            }
            facts[k] = own;
        }
        if (__syncthreads_or(any) && threadIdx.x == 0)
            state->any_selected = 1;
        team.meet();
        if (__ldcg(&state->gave_up) != 0)
            break;

        // choose pairs to replace, and count new rules
        u32 made = 0;
        u32 replaced = 0;
        for (u32 begin = first; begin < stop; begin += THREADS) {
            const u32 k = begin + threadIdx.x;
            u32 own = k < stop ? facts[k] : 0;
            if ((own & SELECTED) != 0) {
                const u32 place = __ldcg(places + k);
                const u32 slot = __ldcg(slots + place);
                const Entry* const entry = table + slot;
                const u32 fate = __ldcg(&entry->fate);
                const u64 times = static_cast<u64>(whole) * (fate + 1);
                if (fate > 0 && times >= static_cast<u64>(part) * (__ldcg(&entry->repeats) + 1ull)) {
                    own |= REPLACED;
                    ++replaced;
                    slots[place] = slot | SLOT_REPLACED;
                    if (__ldcg(&entry->first) == place) {
                        const u32 rule = find_rule(index, index_size, entry->pair, known, left, right);
                        own |= rule == 0 ? FIRST | MAKES : FIRST;
                        numbers[k] = rule;
                    }
                    facts[k] = own;
                }
            }
            const u32 rank = block_before<THREADS>((own & MAKES) != 0 ? 1u : 0u, all);
            if ((own & MAKES) != 0)
                numbers[k] = made + rank;
            made += all;
            __syncthreads();
        }
        replaced = lanes_sum(replaced);
        if (threadIdx.x % 32 == 0 && replaced != 0)
            atomicAdd(&state->replaced, replaced);
        if (threadIdx.x == 0)
            made_sums[blockIdx.x] = made;
        team.meet();

        // number rules, and tell which positions are alive after the round
        const bool stalled_before = stalled != 0;
        const u32 all_replaced = __ldcg(&state->replaced);
        stalled = all_replaced == 0 ? 1 : 0;
        ended = stalled != 0 && (stalled_before || __ldcg(&state->any_selected) == 0);
        if (thread == 0)
            notes[2 * round + 1] = known;
        if (ended) {
            ++round;
            break;
        }
        u32 all_made;
        const u32 made_before = known + team.before(made_sums, all_made);
        u32 kept = 0;
        for (u32 begin = first; begin < stop; begin += THREADS) {
            const u32 k = begin + threadIdx.x;
            u32 living = 0;
            if (k < stop) {
                const u32 place = __ldcg(places + k);
                const u32 next = after[k];
                const u32 previous = holed.previous(place);
                u32 own = facts[k];
                if ((own & FIRST) != 0) {
                    Entry* const entry = table + (__ldcg(slots + place) & ~SLOT_REPLACED);
                    u32 rule = numbers[k] - 1;
                    if ((own & MAKES) != 0) {
                        const u64 pair = entry->pair;
                        rule = made_before + numbers[k];
                        left[rule] = static_cast<u32>(pair >> 32);
                        right[rule] = static_cast<u32>(pair);
                        enter_rule(index, index_size, pair, rule);
                    }
                    entry->fate = NUMBERED | (vocabulary + rule);
                }
                const auto is_replaced = [&](u32 other) {
                    return holed.is_alive(other) && (__ldcg(slots + other) & SLOT_REPLACED) != 0;
                };
                if (is_replaced(previous)) {
                    own |= CONSUMED;
                } else if ((own & REPLACED) != 0) {
                    third[k] = holed.next(next);
                    before[k] = previous;
                    if (holed.symbol(third[k]) != SYMBOL)
                        own |= LIVES;
                    if (previous != NONE && !holed.is_alive(previous) && holed.symbol(previous) != SYMBOL
                        && !is_replaced(holed.previous(previous)))
                        own |= WAKES;
                } else if (is_replaced(next) || ((own & REPEATS) != 0 && !(stalled != 0 && (own & SELECTED) != 0))) {
                    own |= LIVES;
                }
                facts[k] = own;
                living = ((own & LIVES) != 0 ? 1u : 0u) + ((own & WAKES) != 0 ? 1u : 0u);
            }
            const u32 rank = block_before<THREADS>(living, all);
            if (k < stop)
                numbers[k] = kept + rank;
            kept += all;
            __syncthreads();
        }
        if (threadIdx.x == 0)
            kept_sums[blockIdx.x] = kept;
        entries = min(capacity, max(MIN_ENTRIES, 2 * (alive + all_replaced)));
        clear((round + 1) % 2, entries);
        team.meet();

        // write
        const u32 kept_before = team.before(kept_sums, alive);
        for (u32 k = first + threadIdx.x; k < stop; k += THREADS) {
            const u32 own = facts[k];
            if ((own & CONSUMED) != 0)
                continue;
            const u32 place = __ldcg(places + k);
            u32 at = kept_before + numbers[k];
            u32 symbol = holed.symbol(place);
            if ((own & REPLACED) != 0) {
                symbol = __ldcg(&table[__ldcg(slots + place) & ~SLOT_REPLACED].fate) & SYMBOL;
                holed.join(place, after[k], third[k]);
            }
            if ((own & WAKES) != 0) {
                next_places[at++] = before[k];
                sequence[before[k]] = holed.symbol(before[k]);
            }
            if ((own & LIVES) != 0)
                next_places[at] = place;
            sequence[place] = (own & LIVES) != 0 ? symbol : symbol | DEAD;
        }
        known += all_made;
        symbols -= all_replaced;
        if (thread == 0)
            notes[2 * round + 1] = known;
        team.meet();
    }

    if (thread == 0) {
        state->alive = alive;
        state->size = symbols;
        state->rules = known;
        state->stalled = stalled;
        state->ended = ended ? 1 : 0;
        state->rounds = round;
    }
    team.alone = false;
    team.meet();
    const bool strip = __ldcg(&state->ended) != 0;
    each_kept(
        size, made_sums, team, [&](u32 place) { return __ldcg(sequence + place) != HOLE; },
        [&](u32 place, u32 rank) {
            const u32 symbol = __ldcg(sequence + place);
            target[rank] = strip && symbol != SEPARATOR ? symbol & SYMBOL : symbol;
        });
}
