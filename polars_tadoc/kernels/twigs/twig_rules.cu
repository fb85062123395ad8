// Converts documents of a grammar to events for twigs: measures the expansions of rules, lowest first, then of
// documents, and writes the events of documents that may be well-formed.
#include "primitives/counters.cuh"
#include "primitives/segments.cuh"
#include "primitives/grid_barrier.cuh"
#include "primitives/scan.cuh"

// Events.
#ifndef SYMBOL
#define SYMBOL u16
#endif

constexpr u32 THREADS = 256;
constexpr u32 WARPS = THREADS / 32;
constexpr u32 OPEN_LEVELS = 64;  // names of open elements that check_names holds in shared memory
constexpr u64 MAX_EVENTS = (1ull << 31) - 1;  // larger numbers are capped
constexpr int MAX_LEVELS = 1 << 28;
constexpr u32 CLOSE = 0;

// Kinds of words.
constexpr u32 TEXT = 1;
constexpr u32 OPEN = 2;
constexpr u32 SHUT = 3;
constexpr u32 EMPTY = 4;
constexpr u32 DOUBTFUL = 5;

// The effect of a run of words on the elements open at its start. Runs are joined in any grouping.
struct alignas(16) Run {
    int net;  // open elements after it, minus those before
    int low;  // minimum during the run, at most 0
    int high;  // maximum during the run, at least 0
    u32 flags;
};

// At the lowest level: number of elements that end there, 2 for more; and whether there is text. In a document that
// closes no more than it opens, this is the top level.
constexpr u32 ENDED = 3;
constexpr u32 OUTSIDE = 4;
constexpr u32 WRONG = 8;  // no document contains such a run

__device__ __forceinline__ Run run_of(u32 kind)
{
    Run run{0, 0, 0, 0};
    if (kind == TEXT)
        run.flags = OUTSIDE;
    if (kind == OPEN)
        run.net = 1;
    if (kind == SHUT)
        run.net = run.low = -1;
    if (kind == OPEN || kind == EMPTY)
        run.high = 1;
    if (kind == SHUT || kind == EMPTY)
        run.flags = 1;
    if (kind == DOUBTFUL)
        run.flags = WRONG;
    return run;
}

__device__ __forceinline__ Run joined(const Run& first, const Run& second)
{
    const int low = first.net + second.low;
    Run run{first.net + second.net, min(first.low, low), max(first.high, first.net + second.high), 0};
    const u32 one = run.low == first.low ? first.flags : 0;
    const u32 other = run.low == low ? second.flags : 0;
    run.flags = min((one & ENDED) + (other & ENDED), 2u) | ((one | other) & OUTSIDE);
    if (((first.flags | second.flags) & WRONG) != 0 || run.high - run.low > MAX_LEVELS)
        return {0, 0, 0, WRONG};
    return run;
}

// Joins the runs of all lanes; all lanes get the result.
__device__ __forceinline__ Run joined_lanes(Run run)
{
    for (u32 step = 1; step < 32; step *= 2) {
        const Run next{
            __shfl_down_sync(ALL_LANES, run.net, step), __shfl_down_sync(ALL_LANES, run.low, step),
            __shfl_down_sync(ALL_LANES, run.high, step), __shfl_down_sync(ALL_LANES, run.flags, step)};
        if (threadIdx.x % (2 * step) == 0)
            run = joined(run, next);
    }
    return {
        __shfl_sync(ALL_LANES, run.net, 0), __shfl_sync(ALL_LANES, run.low, 0), __shfl_sync(ALL_LANES, run.high, 0),
        __shfl_sync(ALL_LANES, run.flags, 0)};
}

// Expansions of symbols, terminals first.
struct Measures {
    uint4* runs;
    u32* sizes;  // events

    __device__ __forceinline__ Run run(u32 symbol) const
    {
        const uint4 bits = __ldcg(runs + symbol);
        return {static_cast<int>(bits.x), static_cast<int>(bits.y), static_cast<int>(bits.z), bits.w};
    }

    __device__ __forceinline__ void set(u32 symbol, const Run& run, u64 size) const
    {
        runs[symbol] = make_uint4(
            static_cast<u32>(run.net), static_cast<u32>(run.low), static_cast<u32>(run.high), run.flags);
        sizes[symbol] = static_cast<u32>(size);
    }
};

// Measures the body from begin to stop, 32 symbols at a time; called by a warp. Calls visit(position, size, events
// before it in the body) for each of its symbols.
//
// Of equal adjacent runs that leave the open elements unchanged, one is counted: both find the same nodes.
template <u32 ITEMS, typename Visit>
__device__ __forceinline__ Run measure_body(
    i64 begin, i64 stop, const u32* __restrict__ symbols, const Measures& measures, u64& size, Visit visit)
{
    const u32 lane = threadIdx.x % 32;
    Run all{0, 0, 0, 0};
    u32 last = NONE;
    size = 0;
    for (i64 at = begin; at < stop; at += 32 * ITEMS) {
        const i64 first = at + lane * ITEMS;
        u32 symbol[ITEMS];
        Run run[ITEMS];
        u32 events[ITEMS];
#pragma unroll
        for (u32 k = 0; k < ITEMS; ++k)
            symbol[k] = first + k < stop ? __ldg(symbols + first + k) : NONE;
#pragma unroll
        for (u32 k = 0; k < ITEMS; ++k) {
            const bool there = symbol[k] != NONE;
            run[k] = there ? measures.run(symbol[k]) : Run{0, 0, 0, 0};
            events[k] = there ? __ldcg(measures.sizes + symbol[k]) : 0;
        }
        u32 neighbour = __shfl_up_sync(ALL_LANES, symbol[ITEMS - 1], 1);
        if (lane == 0)
            neighbour = last;
        last = __shfl_sync(ALL_LANES, symbol[ITEMS - 1], 31);
        Run own{0, 0, 0, 0};
        u64 own_events = 0;
#pragma unroll
        for (u32 k = 0; k < ITEMS; ++k) {
            if (symbol[k] == neighbour && run[k].net == 0 && run[k].low == 0)
                events[k] = 0;
            neighbour = symbol[k];
            own = k == 0 ? run[k] : joined(own, run[k]);
            own_events += events[k];
        }
        u64 before = size + lanes_before(own_events);
        size = min(__shfl_sync(ALL_LANES, before + own_events, 31), MAX_EVENTS);
#pragma unroll
        for (u32 k = 0; k < ITEMS; ++k) {
            if (first + k < stop)
                visit(first + k, events[k], static_cast<u32>(min(before, MAX_EVENTS)));
            before += events[k];
        }
        all = joined(all, joined_lanes(own));
    }
    return all;
}

// One thread per word. event_names: for each event of a word: the tag's name if it opens or closes that tag's element,
// otherwise 0, as the words' own events do.
extern "C" __global__ void measure_words(
    u32 words, const u8* __restrict__ kinds, const u32* __restrict__ names, const u32* __restrict__ offsets,
    uint4* runs, u32* sizes, u32* __restrict__ event_names)
{
    const u32 word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word >= words)
        return;
    const u32 kind = kinds[word];
    const u32 begin = offsets[word];
    const u32 stop = offsets[word + 1];
    Measures{runs, sizes}.set(word, run_of(kind), min(static_cast<u64>(stop - begin), MAX_EVENTS));
    for (u32 i = begin; i < stop; ++i)
        event_names[i] = i == begin && (kind == OPEN || kind == SHUT) ? names[word] : 0;
}

// Bodies refer to rules of lower levels: a level starts when all blocks have finished the previous one. One warp per
// rule. before: by symbol of a body, the number of events of its rule before it.
extern "C" __global__ void __launch_bounds__(THREADS) measure_rules(
    const i64* __restrict__ level_offsets, u32 levels, const i64* __restrict__ rule_offsets,
    const u32* __restrict__ symbols, u32 terminals, uint4* runs, u32* sizes, u32* __restrict__ before, u32* arrived)
{
    const Measures measures{runs, sizes};
    const u64 warps = static_cast<u64>(gridDim.x) * WARPS;
    u32 target = 0;
    for (u32 level = 0; level < levels; ++level) {
        const u64 stop = level_offsets[level + 1];
        u64 rule = level_offsets[level] + static_cast<u64>(blockIdx.x) * WARPS + threadIdx.x / 32;
        for (; rule < stop; rule += warps) {
            u64 size;
            const Run run = measure_body<1>(
                rule_offsets[rule], rule_offsets[rule + 1], symbols, measures, size,
                [&](i64 i, u32, u32 events) { before[i] = events; });
            if (threadIdx.x % 32 == 0)
                measures.set(terminals + static_cast<u32>(rule), run, size);
        }
        if (level + 1 < levels)
            grid_barrier(arrived, target);
    }
}

// Finds the documents that are well-formed if their tags' names match, and the number of events of each of their
// symbols; 0 for others. One warp per document. highest: maximum of levels.
extern "C" __global__ void __launch_bounds__(THREADS) measure_documents(
    const i64* __restrict__ root_offsets, u64 documents, const u32* __restrict__ roots, uint4* runs, u32* sizes,
    u32 most_levels, u64 most_events, u32* __restrict__ root_sizes, u8* __restrict__ states, u64* highest)
{
    const u64 document = static_cast<u64>(blockIdx.x) * WARPS + threadIdx.x / 32;
    if (document >= documents)
        return;
    const u32 lane = threadIdx.x % 32;
    const i64 begin = root_offsets[document];
    const i64 stop = root_offsets[document + 1];
    u64 size;
    const Run run = measure_body<4>(begin, stop, roots, Measures{runs, sizes}, size, [&](i64 i, u32 events, u32) {
        root_sizes[i] = events;
    });
    // neither wrong nor with text outside, and one element
    const bool sound = run.net == 0 && run.low == 0 && run.flags == 1 && static_cast<u32>(run.high) <= most_levels &&
        size <= most_events;
    if (!sound)
        for (i64 i = begin + lane; i < stop; i += 32)
            root_sizes[i] = 0;
    if (lane == 0) {
        states[document] = !sound;
        if (sound && static_cast<u64>(run.high) > *highest)
            atomicMax(highest, static_cast<u64>(run.high));
    }
}

// Drops unsound documents; one warp per document. root_sizes start at `first`, in the numbering of root_offsets.
extern "C" __global__ void __launch_bounds__(THREADS) leave_out(
    const i64* __restrict__ root_offsets, u64 documents, i64 first, const u8* __restrict__ states,
    u32* __restrict__ root_sizes)
{
    const u64 document = static_cast<u64>(blockIdx.x) * WARPS + threadIdx.x / 32;
    if (document < documents && states[document] != 0)
        for (i64 i = root_offsets[document] + threadIdx.x % 32; i < root_offsets[document + 1]; i += 32)
            root_sizes[i - first] = 0;
}

// Offsets of the events of each document, followed by `highest`. starts: offsets of the events of each symbol; the
// first symbol is number `first` of root_offsets.
extern "C" __global__ void place_documents(
    const i64* __restrict__ root_offsets, u64 documents, i64 first, const i64* __restrict__ starts,
    const u64* highest, i64* __restrict__ offsets)
{
    const u64 document = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (document <= documents)
        offsets[document] = starts[root_offsets[document] - first];
    if (document == documents)
        offsets[documents + 1] = static_cast<i64>(*highest);
}

// Writes the events of documents and the names of tags that open and close; one thread per event, which descends to its
// word. owners: the documents' symbol of each event.
extern "C" __global__ void __launch_bounds__(THREADS) write_events(
    const u32* __restrict__ owners, u64 events, const i64* __restrict__ starts, const u32* __restrict__ roots,
    u32 terminals, const i64* __restrict__ rule_offsets, const u32* __restrict__ rule_symbols,
    const u32* __restrict__ before, const u32* __restrict__ word_offsets, const u32* __restrict__ word_symbols,
    const u32* __restrict__ event_names, SYMBOL* __restrict__ symbols, u32* __restrict__ names)
{
    const u64 event = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (event >= events)
        return;
    const u32 owner = owners[event];
    u32 place = static_cast<u32>(event - static_cast<u64>(starts[owner]));
    u32 symbol = __ldg(roots + owner);
    while (symbol >= terminals) {
        // the last symbol that starts at or before it: symbols without events precede it
        const i64* body = rule_offsets + (symbol - terminals);
        const i64 at = last_with(__ldg(body), __ldg(body + 1), [&](i64 i) { return __ldg(before + i) <= place; });
        place -= __ldg(before + at);
        symbol = __ldg(rule_symbols + at);
    }
    const u32 found = __ldg(word_offsets + symbol) + place;
    symbols[event] = static_cast<SYMBOL>(__ldg(word_symbols + found));
    names[event] = __ldg(event_names + found);
}

// Finds documents with an end tag whose name differs from its start tag's. One warp per document, 32 events at a time;
// opening and closing events at one level alternate. opened: half as long as the events. wrong: counts the documents,
// whose states become UNSOUND.
extern "C" __global__ void __launch_bounds__(THREADS) check_names(
    const SYMBOL* __restrict__ symbols, const u32* __restrict__ names, const i64* __restrict__ offsets, u64 documents,
    u32* opened, u8* __restrict__ states, u32* wrong)
{
    __shared__ u32 held[WARPS][OPEN_LEVELS];
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    const u32 lanes_below = (1u << lane) - 1;
    const u64 document = static_cast<u64>(blockIdx.x) * WARPS + warp;
    if (document >= documents)
        return;
    const i64 begin = offsets[document];
    const i64 stop = offsets[document + 1];
    u32* own_opened = opened + begin / 2;
    u32 depth = 0;
    bool differs = false;
    for (i64 at = begin; at < stop; at += 32) {
        const i64 i = at + lane;
        const bool there = i < stop;
        const bool opens = there && symbols[i] != CLOSE;
        const bool closes = there && !opens;
        const u32 name = there ? names[i] : 0;
        const u32 opening = __ballot_sync(ALL_LANES, opens);
        const u32 closing = __ballot_sync(ALL_LANES, closes);
        u32 level = depth + __popc(opening & lanes_below) - __popc(closing & lanes_below) - (opens ? 0 : 1);
        if (!there)
            level = NONE - lane;  // unique to the lane
        const u32 same = __match_any_sync(ALL_LANES, level);
        const u32 earlier = same & lanes_below;
        const u32 neighbour = __shfl_sync(ALL_LANES, name, earlier == 0 ? 0 : 31 - __clz(earlier));
        u32* place = level < OPEN_LEVELS ? &held[warp][level] : own_opened + level;
        if (closes)
            differs |= (earlier != 0 ? neighbour : *place) != name;
        __syncwarp();
        if (opens && same >> lane == 1)
            *place = name;
        __syncwarp();
        depth += __popc(opening) - __popc(closing);
    }
    if (__any_sync(ALL_LANES, differs) && lane == 0) {
        states[document] = 1;
        atomicAdd(wrong, 1u);
    }
}
