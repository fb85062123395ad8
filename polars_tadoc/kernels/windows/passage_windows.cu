// Windows of exactly n words by fingerprints that are verified, and the passages they make.
//
// A fingerprint is a polynomial modulo 2^61 - 1, mixed, as kernels/host/passages/windows.py has it.
// words    the documents, a separator after each
// starts   start of each document, and the end
// before   windows before those of each document, and in total
#include "primitives/counters.cuh"
#include "primitives/segments.cuh"

constexpr u64 PRIME = (1ull << 61) - 1;

// Product of two numbers of at most PRIME; so are the results of all three.
__device__ __forceinline__ u64 times(u64 a, u64 b)
{
    const u64 low = a * b;
    const u64 sum = (low & PRIME) + (low >> 61 | __umul64hi(a, b) << 3);
    return sum > PRIME ? sum - PRIME : sum;
}

__device__ __forceinline__ u64 plus(u64 a, u64 b)
{
    const u64 sum = a + b;
    return sum > PRIME ? sum - PRIME : sum;
}

// Polynomial of the window at `words`.
__device__ __forceinline__ u64 whole(const u32* __restrict__ words, u32 length, u64 base)
{
    u64 h = 0;
    for (u32 i = 0; i < length; ++i)
        h = plus(times(h, base), words[i]);
    return h;
}

// Polynomial of the window at `words`, from that of the window before it.
__device__ __forceinline__ u64 rolled(u64 h, const u32* __restrict__ words, u32 length, u64 base, u64 power)
{
    return plus(plus(times(h, base), PRIME - times(words[-1], power)), words[length - 1]);
}

__device__ __forceinline__ u64 mixed(u64 h, u64 key)
{
    const u64 reduced = h == PRIME ? 0 : h;
    const u64 x = (reduced ^ reduced >> 32) * key;
    return x ^ x >> 29;
}

__device__ __forceinline__ bool equal(const u32* __restrict__ one, const u32* __restrict__ other, u32 length)
{
    for (u32 i = 0; i < length; ++i)
        if (one[i] != other[i])
            return false;
    return true;
}

// Calls visit(number, place, fingerprint, follows) for `each` adjacent windows of a thread; `follows` tells whether the
// window before it was this thread's and of the same document.
template <typename Visit>
__device__ __forceinline__ void visit_windows(
    const u32* __restrict__ words, const i64* __restrict__ starts, const i64* __restrict__ before, u32 documents,
    u64 total, u32 length, u32 each, u64 base, u64 power, u64 key, Visit visit)
{
    u64 number = (static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x) * each;
    if (number >= total)
        return;
    const u64 stop = min(number + each, total);
    u32 document = find_owner(before, 0u, documents, number);
    u64 last = before[document + 1];
    u64 place = starts[document] + (number - before[document]);
    u64 h = 0;
    bool follows = false;
    for (; number < stop; ++number, ++place) {
        if (number == last) {
            document = find_owner(before, document + 1, documents, number);
            last = before[document + 1];
            place = starts[document];
            follows = false;
        }
        h = follows ? rolled(h, words + place, length, base, power) : whole(words + place, length, base);
        visit(number, place, mixed(h, key), follows);
        follows = true;
    }
}

// Writes documents; separators are there. offsets: words before each document; begins: where each is written.
extern "C" __global__ void lay_words(
    const i64* __restrict__ offsets, const u32* __restrict__ ids, u64 size, const u32* __restrict__ image,
    const i64* __restrict__ begins, u32 documents, u32* __restrict__ words)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= size)
        return;
    const u32 document = find_owner(offsets, 0u, documents, i);
    words[begins[document] + (i - offsets[document])] = image[ids[i]];
}

extern "C" __global__ void fingerprint_windows(
    const u32* __restrict__ words, const i64* __restrict__ starts, const i64* __restrict__ before, u32 documents,
    u64 total, u32 length, u32 each, u64 base, u64 power, u64 key, u64 mask, u64* __restrict__ fingerprints,
    u32* __restrict__ places)
{
    visit_windows(
        words, starts, before, documents, total, length, each, base, power, key,
        [&](u64 number, u64 place, u64 fingerprint, bool) {
            fingerprints[number] = fingerprint & mask;
            places[number] = static_cast<u32>(place);
        });
}

// Marks the first of adjacent equal fingerprints.
extern "C" __global__ void mark_groups(const u64* __restrict__ fingerprints, u64 total, u8* __restrict__ heads)
{
    const u64 k = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (k < total)
        heads[k] = k == 0 || fingerprints[k] != fingerprints[k - 1];
}

// Links each window to the one before it in its group. group_before: heads before each window, and in total.
// group_places, group_begins: place of each group's first window, and its number among the sorted ones; and the end.
extern "C" __global__ void link_windows(
    const u32* __restrict__ places, const u8* __restrict__ heads, const i64* __restrict__ group_before, u64 total,
    u32* __restrict__ previous, u32* __restrict__ group_places, u32* __restrict__ group_begins)
{
    const u64 k = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (k >= total)
        return;
    const u32 place = places[k];
    if (heads[k]) {
        group_places[group_before[k]] = place;
        group_begins[group_before[k]] = static_cast<u32>(k);
    } else {
        previous[place] = places[k - 1];
    }
    if (k + 1 == total)
        group_begins[group_before[total]] = static_cast<u32>(total);
}

// Fills the first place of each window, and its count there.
extern "C" __global__ void set_first(
    const u32* __restrict__ places, const i64* __restrict__ group_before, u64 total,
    const u32* __restrict__ group_places, const u32* __restrict__ group_begins, u32* __restrict__ first,
    u32* __restrict__ counts)
{
    const u64 k = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (k >= total)
        return;
    const u64 group = group_before[k + 1] - 1;
    const u32 head = group_places[group];
    first[places[k]] = head;
    if (places[k] == head)
        counts[head] = group_begins[group + 1] - group_begins[group];
}

// Counts the windows that differ from the one they are linked to. A window whose neighbour is linked to the neighbour
// of its own link needs one comparison: of the last word.
extern "C" __global__ void verify_windows(
    const u32* __restrict__ words, const u32* __restrict__ previous, u64 size, u32 length, u32* wrong)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= size)
        return;
    const u32 link = previous[i];
    if (link == NONE)
        return;
    const bool continues = i > 0 && link > 0 && previous[i - 1] == link - 1;
    const u32 known = continues ? length - 1 : 0;
    if (!equal(words + i + known, words + link + known, length - known))
        atomicAdd(wrong, 1u);
}

// Finds windows in a reference: slots and bits are those of fill_table. found: all ones.
extern "C" __global__ void find_known(
    const u32* __restrict__ words, const i64* __restrict__ starts, const i64* __restrict__ before, u32 documents,
    u64 total, u32 length, u32 each, u64 base, u64 power, u64 key, const u64* __restrict__ slots, u64 last_slot,
    const u64* __restrict__ bits, u64 last_bit, const u32* __restrict__ reference, const u32* __restrict__ first,
    u32* __restrict__ found)
{
    u32 known = NONE;
    visit_windows(
        words, starts, before, documents, total, length, each, base, power, key,
        [&](u64, u64 place, u64 fingerprint, bool follows) {
            if (follows && known != NONE && reference[known + length] == words[place + length - 1]) {
                known = first[known + 1];
                found[place] = known;
                return;
            }
            known = NONE;
            const u64 bit = fingerprint & last_bit;
            if ((bits[bit >> 6] >> (bit & 63) & 1) == 0)
                return;
            for (u64 slot = fingerprint & last_slot; slots[slot] != 0; slot = (slot + 1) & last_slot) {
                const u32 other = static_cast<u32>(slots[slot]) - 1;
                if (slots[slot] >> 32 == fingerprint >> 32 && equal(reference + other, words + place, length)) {
                    known = other;
                    found[place] = other;
                    return;
                }
            }
        });
}

// Kinds of windows, as in kernels/host/passages/runs.py.
constexpr u32 LATER = 1;
constexpr u32 EARLIER_ROW = 2;
constexpr u32 KNOWN = 3;

extern "C" __global__ void mark_hits(
    const u32* __restrict__ first, const u32* __restrict__ counts, u64 size, const i64* __restrict__ starts,
    u32 documents, u32 kind, i64 min_count, u8* __restrict__ hits)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= size)
        return;
    const u32 place = first[i];
    bool hit = place != NONE;
    if (hit && kind == EARLIER_ROW)
        hit = place < static_cast<u64>(starts[find_owner(starts, 0u, documents, i)]);
    else if (hit && kind != KNOWN)
        hit = (kind != LATER || place != i) && counts[place] >= min_count;
    hits[i] = hit;
}

// Finds the largest count of the windows in each run, and whether all are first occurrences. copies, are_first: ones.
extern "C" __global__ void describe_runs(
    const i64* __restrict__ begins, const i64* __restrict__ ends, u64 runs, u32 length,
    const u32* __restrict__ first, const u32* __restrict__ counts, u64 size, u32* copies, u8* are_first)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= size || first[i] == NONE || counts[first[i]] < 2 || static_cast<u64>(begins[0]) > i)
        return;
    const u64 run = find_owner(begins, u64{0}, runs, i);
    if (i + length > static_cast<u64>(ends[run]))
        return;
    const u32 count = counts[first[i]];
    if (*const_cast<volatile u32*>(copies + run) < count)  // most windows of a run are alike
        atomicMax(copies + run, count);
    if (first[i] != i)
        are_first[run] = 0;
}
