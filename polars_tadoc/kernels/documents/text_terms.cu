// Counts the words of each document of a text without rules: sorts its words, and counts runs of equal ones.
//
// Results are first written at the document's own words: by run its word (or rank), and its start among the document's
// sorted words. The runs are made contiguous when their number is known.
#include "primitives/counters.cuh"
#include "primitives/scan.cuh"
#include "primitives/segments.cuh"

#ifndef KEY
#define KEY u64
#endif

using Key = KEY;

constexpr u32 THREADS = 256;
constexpr u32 CLASSES = 6;  // by length: up to 32, then by the limits, and beyond

__device__ __forceinline__ u32 read_word(const u32* __restrict__ roots, const u32* __restrict__ rank, u64 place)
{
    const u32 word = roots[place];
    return rank == nullptr ? word : rank[word];
}

// lists: documents by class, each class in a row of the number of documents; sizes: number of documents, zeros.
// Documents without words are in no list.
extern "C" __global__ void __launch_bounds__(THREADS) class_documents(const i64* __restrict__ offsets, u32 documents,
    u32 second, u32 third, u32 fourth, u32 fifth, u32* __restrict__ lists, u32* __restrict__ sizes)
{
    const u32 document = blockIdx.x * THREADS + threadIdx.x;
    const u32 limits[CLASSES - 1] = {32, second, third, fourth, fifth};
    u32 own = NONE;
    if (document < documents) {
        const u64 words = static_cast<u64>(offsets[document + 1] - offsets[document]);
        if (words != 0) {
            own = 0;
#pragma unroll
            for (u32 i = 0; i < CLASSES - 1; ++i)
                own += words > limits[i];
        }
    }
    for (u32 kind = 0; kind < CLASSES; ++kind) {
        const u32 place = take_room(sizes + kind, own == kind);
        if (own == kind)
            lists[static_cast<u64>(kind) * documents + place] = document;
    }
}

// Documents of up to 32 words, one warp each.
extern "C" __global__ void __launch_bounds__(THREADS) count_short(const i64* __restrict__ offsets,
    const u32* __restrict__ roots, const u32* __restrict__ rank, const u32* __restrict__ list, u32 listed,
    u32* __restrict__ words, u32* __restrict__ begins, u32* __restrict__ found)
{
    const u32 lane = threadIdx.x % 32;
    const u64 warp = (static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x) / 32;
    if (warp >= listed)
        return;
    const u32 document = list[warp];
    const u64 first = static_cast<u64>(offsets[document]);
    const u32 size = static_cast<u32>(offsets[document + 1] - offsets[document]);
    u32 word = lane < size ? read_word(roots, rank, first + lane) : NONE;
    for (u32 width = 2; width <= 32; width *= 2)
        for (u32 step = width / 2; step > 0; step /= 2) {
            const u32 other = __shfl_xor_sync(ALL_LANES, word, step);
            const bool lower = ((lane & step) == 0) == ((lane & width) == 0);  // keeps the lower one
            word = lower == (other < word) ? other : word;
        }
    const u32 before = __shfl_up_sync(ALL_LANES, word, 1);
    const bool head = lane < size && (lane == 0 || word != before);
    const u32 heads = __ballot_sync(ALL_LANES, head);
    if (head) {
        const u32 run = __popc(heads & ((1u << lane) - 1));
        words[first + run] = word;
        begins[first + run] = lane;
    }
    if (lane == 0)
        found[document] = __popc(heads);
}

// One block per document that fits in shared memory, padded to a power of two.
extern "C" __global__ void __launch_bounds__(1024) count_in_block(const i64* __restrict__ offsets,
    const u32* __restrict__ roots, const u32* __restrict__ rank, const u32* __restrict__ list,
    u32* __restrict__ words, u32* __restrict__ begins, u32* __restrict__ found)
{
    extern __shared__ u32 sorted[];
    __shared__ u32 warp_heads[32];
    const u32 document = list[blockIdx.x];
    const u64 first = static_cast<u64>(offsets[document]);
    const u32 size = static_cast<u32>(offsets[document + 1] - offsets[document]);
    const u32 filled = max(2 * blockDim.x, 1u << (32 - __clz(size - 1)));
    for (u32 i = threadIdx.x; i < filled; i += blockDim.x)
        sorted[i] = i < size ? read_word(roots, rank, first + i) : NONE;
    __syncthreads();

    // Bitonic sort; each warp processes adjacent pairs, so that it need not wait for other warps while distances are
    // within its own range.
    const u32 warp = threadIdx.x / 32;
    const u32 lane = threadIdx.x % 32;
    const u32 warps = blockDim.x / 32;
    const u32 pairs = filled / 2 / warps;  // per warp: a power of two, at least 32
    bool apart = true;
    for (u32 width = 2; width <= filled; width *= 2)
        for (u32 step = width / 2; step > 0; step /= 2) {
            const bool together = step > pairs;
            if (together || !apart)
                __syncthreads();
            else
                __syncwarp();
            apart = !together;
            for (u32 pair = warp * pairs + lane; pair < (warp + 1) * pairs; pair += 32) {
                const u32 low = 2 * pair - (pair & (step - 1));
                const u32 high = low + step;
                const u32 a = sorted[low];
                const u32 b = sorted[high];
                if ((a > b) == ((low & width) == 0)) {
                    sorted[low] = b;
                    sorted[high] = a;
                }
            }
        }
    __syncthreads();

    const u32 part = filled / warps;
    const auto is_head = [&](u32 i) { return i < size && (i == 0 || sorted[i] != sorted[i - 1]); };
    u32 own = 0;
    for (u32 i = warp * part + lane; i < (warp + 1) * part; i += 32)
        own += __popc(__ballot_sync(ALL_LANES, is_head(i)));
    if (lane == 0)
        warp_heads[warp] = own;
    __syncthreads();
    const u32 others = lane < warps ? warp_heads[lane] : 0;
    u64 run = first + lanes_sum(lane < warp ? others : 0);
    if (threadIdx.x < 32) {
        const u32 all = lanes_sum(others);
        if (lane == 0)
            found[document] = all;
    }
    for (u32 i = warp * part + lane; i < (warp + 1) * part; i += 32) {
        const bool head = is_head(i);
        const u32 heads = __ballot_sync(ALL_LANES, head);
        if (head) {
            const u64 place = run + __popc(heads & ((1u << lane) - 1));
            words[place] = sorted[i];
            begins[place] = i;
        }
        run += __popc(heads);
    }
}

constexpr u32 ITEMS = 8;  // per thread, 32 apart

// Calls visit(place, owner) for a thread's positions; a warp's are adjacent.
template <typename Visit>
__device__ __forceinline__ void visit_places(const i64* __restrict__ offsets, u32 owners, u64 total, Visit visit)
{
    const u64 warp = (static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x) / 32;
    u64 place = warp * 32 * ITEMS + threadIdx.x % 32;
    const u64 stop = min(total, (warp + 1) * 32 * ITEMS);
    if (place >= stop)
        return;
    u32 owner = find_owner(offsets, 0u, owners, place);
    for (; place < stop; place += 32) {
        if (static_cast<u64>(offsets[owner + 1]) <= place)
            owner += find_owner(offsets + owner, 0u, owners - owner, place);
        visit(place, owner);
    }
}

// Words of each listed document.
extern "C" __global__ void __launch_bounds__(THREADS) size_listed(
    const i64* __restrict__ offsets, const u32* __restrict__ list, u32 listed, u64* __restrict__ sizes)
{
    const u32 i = blockIdx.x * THREADS + threadIdx.x;
    if (i < listed)
        sizes[i] = static_cast<u64>(offsets[list[i] + 1] - offsets[list[i]]);
}

// Listed documents' concatenated words, each below its index in the list. listed_offsets: of each among them.
extern "C" __global__ void __launch_bounds__(THREADS) gather_keys(const i64* __restrict__ offsets,
    const u32* __restrict__ roots, const u32* __restrict__ rank, const u32* __restrict__ list, u32 listed,
    const i64* __restrict__ listed_offsets, u64 total, u32 word_bits, Key* __restrict__ keys)
{
    visit_places(listed_offsets, listed, total, [&](u64 place, u32 i) {
        const u64 source = static_cast<u64>(offsets[list[i]]) + place - static_cast<u64>(listed_offsets[i]);
        keys[place] = static_cast<Key>(static_cast<u64>(i) << word_bits | read_word(roots, rank, source));
    });
}

// heads[i]: whether sorted key i differs from the one before it.
extern "C" __global__ void __launch_bounds__(THREADS) mark_heads(
    const Key* __restrict__ keys, u64 size, unsigned char* __restrict__ heads)
{
    const u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < size)
        heads[i] = i == 0 || keys[i] != keys[i - 1];
}

// From sorted keys. heads_before: number of heads before each, and in total.
extern "C" __global__ void __launch_bounds__(THREADS) write_runs(const i64* __restrict__ offsets,
    const u32* __restrict__ list, u32 listed, const i64* __restrict__ listed_offsets, u64 total, u32 word_bits,
    const Key* __restrict__ keys, const i64* __restrict__ heads_before, u32* __restrict__ words,
    u32* __restrict__ begins, u32* __restrict__ found)
{
    visit_places(listed_offsets, listed, total, [&](u64 place, u32 i) {
        const u64 begin = static_cast<u64>(listed_offsets[i]);
        const i64 before = heads_before[begin];
        if (heads_before[place] != heads_before[place + 1]) {
            const u64 target = static_cast<u64>(offsets[list[i]]) + static_cast<u64>(heads_before[place] - before);
            words[target] = static_cast<u32>(keys[place] & ((1ull << word_bits) - 1));
            begins[target] = static_cast<u32>(place - begin);
        }
        if (place == begin)
            found[list[i]] = static_cast<u32>(heads_before[listed_offsets[i + 1]] - before);
    });
}

// Makes the runs of all documents contiguous at run_offsets. by_rank: word of each rank, or null.
extern "C" __global__ void __launch_bounds__(THREADS) gather_runs(const i64* __restrict__ offsets,
    const i64* __restrict__ run_offsets, u32 documents, u64 total, const u32* __restrict__ words,
    const u32* __restrict__ begins, const u32* __restrict__ by_rank, u32* __restrict__ terminals,
    u64* __restrict__ counts)
{
    visit_places(run_offsets, documents, total, [&](u64 place, u32 document) {
        const u64 source = static_cast<u64>(offsets[document]) + place - static_cast<u64>(run_offsets[document]);
        const u32 word = words[source];
        const bool last = place + 1 == static_cast<u64>(run_offsets[document + 1]);
        const u32 stop = last ? static_cast<u32>(offsets[document + 1] - offsets[document]) : begins[source + 1];
        terminals[place] = by_rank == nullptr ? word : by_rank[word];
        counts[place] = stop - begins[source];
    });
}
