// Lines, paragraphs and rows of a sequence: their ends, their hashes, whether they repeat, and sequences cut at them.
// Units of one level end at symbols that are no smaller than the level's mark. Lines are found among words; paragraphs
// and rows among lines, each given by its last symbol.
#include "primitives/counters.cuh"
#include "primitives/bitmap.cuh"
#include "primitives/scan.cuh"

constexpr u32 SEPARATOR = NONE;
constexpr u32 LINE_MARK = 1u << 31;  // as lines_cpu.py
constexpr u32 PARAGRAPH_MARK = 3u << 30;
constexpr u32 WORD = (1u << 30) - 1;
constexpr u32 SAMPLE_BITS = 3;
constexpr u32 SYMBOL = ~LINE_MARK;  // bits of a symbol without the rounds' mark of dead positions

// Marks the word before each gap that has line ends, inside rows. A marked word is no separator, so threads may mark
// words that others look at.
extern "C" __global__ void mark_lines(
    const u32* __restrict__ gaps, const u32* __restrict__ tokens, u32 noted, const u32* __restrict__ marks,
    u32* sequence)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= noted)
        return;
    const u32 mark = marks[gaps[i]];
    if (mark == 0)
        return;
    const u32 after = tokens[i];
    if (after == 0 || sequence[after] == SEPARATOR)
        return;
    const u32 word = sequence[after - 1];
    if (word != SEPARATOR)
        sequence[after - 1] = word | mark;
}

extern "C" __global__ void clear_marks(u32* sequence, u32 size)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size && sequence[i] != SEPARATOR)
        sequence[i] &= WORD;
}

// Adds each thread's numbers to the totals. Called once by every thread.
template <u32 NUMBERS>
__device__ __forceinline__ void add_up(const u32 (&own)[NUMBERS], u32* totals)
{
    __shared__ u32 sums[NUMBERS];
    if (threadIdx.x < NUMBERS)
        sums[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < NUMBERS; ++k) {
        const u32 sum = lanes_sum(own[k]);
        if (threadIdx.x % 32 == 0)
            atomicAdd(sums + k, sum);
    }
    __syncthreads();
    if (threadIdx.x < NUMBERS)
        atomicAdd(totals + threadIdx.x, sums[threadIdx.x]);
}

// bits: which symbols end a unit. counts, if wanted: zeros; lines, paragraphs and rows are added.
extern "C" __global__ void find_ends(
    const u32* __restrict__ symbols, u32 size, u32 mark, u32 words, u32* __restrict__ bits, u32* counts)
{
    u32 own[3] = {0, 0, 0};
    const u32 step = gridDim.x * blockDim.x / 32;
    const u32 lane = threadIdx.x % 32;
#pragma unroll 4
    for (u32 word = (blockIdx.x * blockDim.x + threadIdx.x) / 32; word < words; word += step) {
        const u32 i = 32 * word + lane;
        const u32 symbol = i < size ? symbols[i] : 0;
        const u32 ends = __ballot_sync(ALL_LANES, i < size && symbol >= mark);
        if (lane == 0)
            bits[word] = ends;
        own[0] += symbol >= LINE_MARK;
        own[1] += symbol >= PARAGRAPH_MARK;
        own[2] += symbol == SEPARATOR;
    }
    if (counts != nullptr)
        add_up(own, counts);
}

// Lists the places of units' last symbols, and the symbols.
extern "C" __global__ void place_ends(
    const u32* __restrict__ symbols, u32 size, const u32* __restrict__ bits, const u32* __restrict__ ranks, u32* places,
    u32* last)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size && (bits[i / 32] >> i % 32 & 1) != 0) {
        const u32 unit = rank_before(bits, ranks, i);
        places[unit] = i;
        last[unit] = symbols[i];
    }
}

__device__ __forceinline__ u64 hash_word(u32 symbol)
{
    const u64 word = (u64{symbol & WORD} + 1) * 0x9E3779B97F4A7C15ull;
    return symbol == SEPARATOR ? 0 : (word ^ word >> 32) * 0xD6E8FEB86659FD93ull;
}

// Adds to each unit's sum, initially 0, the hashes of its parts, each times twice its number in the unit and one. The
// parts are lines of given hashes or, without them, the words. The last part of all ends a unit.
extern "C" __global__ void hash_units(
    const u32* __restrict__ symbols, const u64* __restrict__ part_hashes, u32 size, const u32* __restrict__ bits,
    const u32* __restrict__ ranks, const u32* __restrict__ places, u64* sums)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    const u32 lane = i % 32;
    const u32 first = i - lane;
    if (first >= size)
        return;
    const u32 ends = bits[i / 32];
    const u32 before = ranks[i / 32];
    const u32 lower = ends & ((1u << lane) - 1);
    const u32 last_end = 31 - __clz(lower);  // of the warp's units before this one, if there are any
    const u32 start = lower != 0 ? first + last_end + 1 : before > 0 ? places[before - 1] + 1 : 0;
    u64 value = 0;
    if (i < size)
        value = (part_hashes == nullptr ? hash_word(symbols[i]) : part_hashes[i]) * (2 * u64{i - start} + 1);
    const u64 up_to = lanes_before(value) + value;
    const u64 others = __shfl_sync(ALL_LANES, up_to, last_end & 31);
    if (i < size && (lane == 31 || (ends >> lane & 1) != 0))
        atomicAdd(sums + before + __popc(lower), up_to - (lower != 0 ? others : 0));
}

// The first unit of each hash. Slots hold units, NONE if empty; the secret, an odd number, keeps others from making
// text whose hashes share slots.
struct FirstUnits {
    const u64* hashes;
    u32* slots;
    u32 shift;
    u64 secret;

    __device__ __forceinline__ u32 slot_of(u64 hash) const
    {
        return static_cast<u32>(hash * secret >> shift);
    }

    __device__ __forceinline__ u32 next(u32 slot) const
    {
        return (slot + 1) & static_cast<u32>(~u64{0} >> shift);
    }

    __device__ void add(u32 unit) const
    {
        const u64 hash = hashes[unit];
        for (u32 slot = slot_of(hash);; slot = next(slot)) {
            u32 seen = *const_cast<volatile u32*>(slots + slot);
            if (seen == NONE)
                seen = atomicCAS(slots + slot, NONE, unit);
            if (seen == NONE)
                return;
            if (hashes[seen] == hash) {
                if (seen > unit)
                    atomicMin(slots + slot, unit);
                return;
            }
        }
    }

    __device__ bool is_first(u32 unit) const
    {
        const u64 hash = hashes[unit];
        u32 slot = slot_of(hash);
        while (hashes[slots[slot]] != hash)
            slot = next(slot);
        return slots[slot] == unit;
    }
};

extern "C" __global__ void add_rows(const u64* __restrict__ hashes, u32 rows, u32* slots, u32 shift, u64 secret)
{
    const u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows)
        FirstUnits{hashes, slots, shift, secret}.add(row);
}

extern "C" __global__ void find_distinct(
    const u64* __restrict__ hashes, u32 rows, u32* slots, u32 shift, u64 secret, u8* distinct)
{
    const u32 row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows)
        distinct[row] = FirstUnits{hashes, slots, shift, secret}.is_first(row);
}

__device__ __forceinline__ bool in_distinct_row(
    u32 line, const u32* row_bits, const u32* row_ranks, const u8* __restrict__ distinct)
{
    return distinct[rank_before(row_bits, row_ranks, line)] != 0;
}

__device__ __forceinline__ bool in_sample(u64 hash)
{
    return hash >> (64 - SAMPLE_BITS) == 0;
}

// Adds the sampled units of distinct rows. lines: by unit its last line, or null: units are lines.
extern "C" __global__ void add_sample(
    const u64* __restrict__ hashes, u32 units, const u32* __restrict__ lines, const u32* __restrict__ row_bits,
    const u32* __restrict__ row_ranks, const u8* __restrict__ distinct, u32* slots, u32 shift, u64 secret)
{
    const u32 unit = blockIdx.x * blockDim.x + threadIdx.x;
    if (unit >= units || !in_sample(hashes[unit]))
        return;
    if (in_distinct_row(lines == nullptr ? unit : lines[unit], row_bits, row_ranks, distinct))
        FirstUnits{hashes, slots, shift, secret}.add(unit);
}

// Adds to totals, of units in distinct rows: words of sampled ones that equal an earlier one, words of sampled ones,
// words of all, and their number. places: by line its last position in the sequence.
extern "C" __global__ void measure_units(
    const u64* __restrict__ hashes, u32 units, const u32* __restrict__ lines, const u32* __restrict__ row_bits,
    const u32* __restrict__ row_ranks, const u8* __restrict__ distinct, u32* slots, u32 shift, u64 secret,
    const u32* __restrict__ places, const u32* __restrict__ last, u32* totals)
{
    const FirstUnits first_units{hashes, slots, shift, secret};
    u32 own[4] = {0, 0, 0, 0};
    for (u32 unit = blockIdx.x * blockDim.x + threadIdx.x; unit < units; unit += gridDim.x * blockDim.x) {
        const u32 line = lines == nullptr ? unit : lines[unit];
        if (!in_distinct_row(line, row_bits, row_ranks, distinct))
            continue;
        const u32 stop = places[line] + (last[line] != SEPARATOR);
        const u32 start = unit == 0 ? 0 : places[lines == nullptr ? unit - 1 : lines[unit - 1]] + 1;
        own[2] += stop - start;
        own[3] += 1;
        if (in_sample(hashes[unit])) {
            own[1] += stop - start;
            own[0] += first_units.is_first(unit) ? 0 : stop - start;
        }
    }
    add_up(own, totals);
}

// Copies words without marks, and a separator after each unit. paragraph_bits and paragraph_ranks, by line, are null if
// units are lines.
extern "C" __global__ void write_split(
    const u32* __restrict__ sequence, u32 size, const u32* __restrict__ line_bits, const u32* __restrict__ line_ranks,
    const u32* __restrict__ paragraph_bits, const u32* __restrict__ paragraph_ranks, const u32* __restrict__ row_bits,
    const u32* __restrict__ row_ranks, u32* split)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size)
        return;
    const u32 symbol = sequence[i];
    const u32 line = rank_before(line_bits, line_ranks, i);
    const u32 units = paragraph_bits == nullptr ? line : rank_before(paragraph_bits, paragraph_ranks, line);
    const u32 at = i + units - rank_before(row_bits, row_ranks, line);
    split[at] = symbol == SEPARATOR ? SEPARATOR : symbol & WORD;
    if (symbol != SEPARATOR && symbol >= (paragraph_bits == nullptr ? LINE_MARK : PARAGRAPH_MARK))
        split[at + 1] = SEPARATOR;
}

// Copies symbols, and only those separators that end rows. ends: which symbols are separators; row_bits: by unit,
// whether it ends a row.
extern "C" __global__ void join_units(
    const u32* __restrict__ symbols, u32 size, const u32* __restrict__ ends, const u32* __restrict__ ranks,
    const u32* __restrict__ row_bits, const u32* __restrict__ row_ranks, u32* joined)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= size)
        return;
    const u32 symbol = symbols[i];
    const u32 unit = rank_before(ends, ranks, i);
    const u32 at = i - unit + rank_before(row_bits, row_ranks, unit);
    if (symbol != SEPARATOR)
        joined[at] = symbol & SYMBOL;
    else if ((row_bits[unit / 32] >> unit % 32 & 1) != 0)
        joined[at] = SEPARATOR;
}
