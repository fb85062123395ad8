// The documents that contain each window.
//
// An entry is a window's key, then a document, then a digit of the window's count in the document: as for counts, but a
// window of a rule has as many entries as the rule's documents. The part after the key, the code, is the same for all
// windows of a rule, and stored once for its list.
#include "primitives/counters.cuh"
#include "primitives/segments.cuh"
#include "sequences/bodies.cuh"
#include "sequences/own_windows.cuh"
#include "sequences/survey.cuh"
#include "primitives/scan.cuh"

constexpr u32 THREADS = 256;

// Number of codes per document of a list.
extern "C" __global__ void __launch_bounds__(THREADS) measure_codes(
    const u64* __restrict__ counts, u64 size, u32 digit_bits, unsigned char* __restrict__ sizes)
{
    const u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (i < size)
        sizes[i] = static_cast<unsigned char>(digits_in(counts[i], digit_bits));
}

// Writes the codes of lists of documents. places: number of codes before each document; null if each has one, which may
// then overwrite the counts.
extern "C" __global__ void __launch_bounds__(THREADS) write_codes(
    const u32* __restrict__ documents, const u64* counts, u64 size, u32 spare, u32 digit_bits,
    const u64* __restrict__ places, u64* codes)
{
    const u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= size)
        return;
    u64* target = codes + (places == nullptr ? i : places[i]);
    write_digits(target, documents[i], counts[i], {0, 0, 0, 0, spare, digit_bits, 0}, true);
}

// Number of entries of each window of an owner: one per code of a rule, one in a document.
struct Lists {
    const i64* offsets;  // of rules' codes; null for documents
    const i64* owner_offsets;
    u32 owners;

    __device__ __forceinline__ u32 owner(u64 position) const { return owner_at(position, owner_offsets, owners); }

    __device__ __forceinline__ u64 entries(u32 owner) const
    {
        return offsets == nullptr ? 1 : static_cast<u64>(__ldg(offsets + owner + 1) - __ldg(offsets + owner));
    }
};

extern "C" __global__ void __launch_bounds__(SURVEY_THREADS) survey_postings(
    const Text text, const Packing packing, u64 low, u64 last,
    const i64* __restrict__ list_offsets, const i64* __restrict__ offsets, u32 owners, u32 shift,
    u32 buckets, u64* counts, u32* sketch)
{
    const Lists lists = {list_offsets, offsets, owners};
    const auto entries = [&](u64 i) { return list_offsets == nullptr ? 1 : lists.entries(lists.owner(i)); };
    survey<Windows>(text, packing, entries, {low, last}, shift, buckets, counts, sketch);
}

constexpr u32 STAGED = 1024;

// Writes the entries of a batch in any order: each block reserves the next free range, puts its windows side by side,
// and its warps share their entries, because one window may have very many documents.
// codes    of rules' lists; null for documents
// columns  `capacity` entries of the first column, then of the second, ...; null, as `taken`, if they only go to the
// sketch   without the digits, to estimate the number of (window, document) pairs
extern "C" __global__ void __launch_bounds__(THREADS) write_postings(
    const Text text, const Packing packing, u64 low, u64 last,
    const i64* __restrict__ list_offsets, const i64* __restrict__ offsets, u32 owners,
    const u64* __restrict__ codes, u64* columns, u64 capacity, u64* taken, u32* sketch)
{
    __shared__ u64 block_start;
    __shared__ u64 staged_first[STAGED];
    __shared__ u64 staged_key[STAGED];
    __shared__ u32 staged_owner[STAGED];
    __shared__ u32 staged_at[STAGED];
    const Range range = {low, last};
    const Lists lists = {list_offsets, offsets, owners};
    const u64 position = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    Held<Windows> own;
    own.read(text, position, packing, range);
    u32 windows = own.count;
    const u32 owner = windows == 0 ? 0 : lists.owner(position);
    const u32 of_each = windows == 0 ? 0 : static_cast<u32>(lists.entries(owner));
    if (of_each == 0)
        windows = 0;
    u32 all_windows;
    const u32 windows_before = block_before<THREADS>(windows, all_windows);
    if (all_windows == 0)
        return;
    __syncthreads();
    u32 all;
    const u32 before = block_before<THREADS>(windows * of_each, all);
    if (threadIdx.x == 0 && taken != nullptr)
        block_start = atomicAdd(taken, static_cast<u64>(all));
    const u32 tail = packing.spare + packing.document_bits;
    for (u32 begin = 0; begin < all_windows; begin += STAGED) {
        for (u32 column = min(packing.columns - 1, 1u); column < packing.columns; ++column) {
            __syncthreads();
            u32 window = 0;
            if (windows != 0)
                own.visit(text, position, packing, range, column, [&](u64 first, u64 key) {
                    const u32 place = windows_before + window - begin;  // wraps around for windows already written
                    if (place < STAGED) {
                        staged_first[place] = first;
                        staged_key[place] = key;
                        staged_owner[place] = owner;
                        staged_at[place] = before + window * of_each;
                    }
                    ++window;
                });
            __syncthreads();
            const bool is_last = column + 1 == packing.columns;
            const u32 staged = min(all_windows - begin, STAGED);
            const u32 lanes = codes == nullptr ? 1 : 32;
            for (u32 place = threadIdx.x / lanes; place < staged; place += THREADS / lanes) {
                const u32 list = staged_owner[place];
                const u64 key = is_last && tail < 64 ? staged_key[place] << tail : is_last ? 0 : staged_key[place];
                u64* target = columns + block_start + staged_at[place];
                const u64 entries = lists.entries(list);
                for (u64 entry = threadIdx.x % lanes; entry < entries; entry += lanes) {
                    u64 code = 0;
                    if (is_last)
                        code = codes == nullptr ? static_cast<u64>(list) << packing.spare | 1
                                                : __ldg(codes + __ldg(list_offsets + list) + entry);
                    if (sketch != nullptr) {
                        note(sketch, mixed(staged_first[place], (key | code) >> packing.spare));
                        continue;
                    }
                    if (column == 1)
                        target[entry] = staged_first[place];
                    target[column * capacity + entry] = key | code;
                }
            }
        }
    }
}

// Start of each list, and its documents. offsets: one more than lists. keys: windows' last columns.
extern "C" __global__ void __launch_bounds__(THREADS) find_lists(
    const u32* __restrict__ lists, const u64* __restrict__ keys, u64 size, u32 list_count, u32 document_bits,
    i64* __restrict__ offsets, u32* __restrict__ documents)
{
    const u64 i = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= size)
        return;
    documents[i] = static_cast<u32>(keys[i] & ((1ull << document_bits) - 1));
    if (i == 0 || lists[i] != lists[i - 1])
        offsets[lists[i]] = static_cast<i64>(i);
    if (i == 0)
        offsets[list_count] = static_cast<i64>(size);
}

// Marks the lists in which a document follows one with a lower count.
extern "C" __global__ void mark_disordered(
    const u32* __restrict__ lists, const u64* __restrict__ counts, u64 size, unsigned char* __restrict__ disordered)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i > 0 && i < size && lists[i] == lists[i - 1] && counts[i] > counts[i - 1])
        disordered[lists[i]] = 1;
}

// Keeps the first `most` of each wanted list.
extern "C" __global__ void keep_first(
    const u32* __restrict__ lists, const i64* __restrict__ offsets, const unsigned char* __restrict__ wanted,
    u64 size, u64 most, unsigned char* __restrict__ keep)
{
    const u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < size)
        keep[i] = wanted[lists[i]] != 0 && i - static_cast<u64>(offsets[lists[i]]) < most;
}
