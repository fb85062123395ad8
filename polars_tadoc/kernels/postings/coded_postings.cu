// Decodes whole lists of postings, and bounds the scores of their blocks.
#include "primitives/counters.cuh"
#include "primitives/scan.cuh"
#include "postings/coded_postings.cuh"

constexpr u32 THREADS = 256;
constexpr u32 WARPS = THREADS / 32;
constexpr u32 RUN = 4;  // consecutive blocks that a warp decodes

// Sizes of lists; 0 for lists that do not exist.
extern "C" __global__ void measure_lists(
    const Coded coded, const u32* __restrict__ lists, u32 count, u32* __restrict__ sizes, u32* __restrict__ blocks)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        const List list = open_list(coded, Plain{}, lists[i]);
        sizes[i] = list.postings();
        blocks[i] = (sizes[i] + BLOCK - 1) / BLOCK;
    }
}

// offsets, block_starts: of each list's postings and blocks among all decoded ones, lists + 1.
extern "C" __global__ void __launch_bounds__(THREADS) decode_lists(
    const Coded coded, const u32* __restrict__ lists, u32 count, const i64* __restrict__ offsets,
    const i64* __restrict__ block_starts, u32* __restrict__ documents, u32* __restrict__ counts)
{
    __shared__ uint4 scratches[WARPS][BLOCK / OWN];
    u32* scratch = reinterpret_cast<u32*>(scratches[threadIdx.x / 32]);
    const u32 lane = threadIdx.x % 32;
    const u64 all = static_cast<u64>(block_starts[count]);
    u64 turn = (static_cast<u64>(blockIdx.x) * WARPS + threadIdx.x / 32) * RUN;
    const u64 stop = min(turn + RUN, all);
    if (turn >= all)
        return;
    u32 i = 0;  // the last list that starts at or before the first block; lists are not empty
    for (u32 high = count; high - i > 1;) {
        const u32 middle = i + (high - i) / 2;
        if (static_cast<u64>(block_starts[middle]) <= turn)
            i = middle;
        else
            high = middle;
    }
    List list = open_list(coded, Plain{}, lists[i]);
    for (; turn < stop; ++turn) {
        while (static_cast<u64>(block_starts[i + 1]) <= turn)
            list = open_list(coded, Plain{}, lists[++i]);
        const u32 block = static_cast<u32>(turn - static_cast<u64>(block_starts[i]));
        const u32 size = list.block_size(block);
        const u64 target = static_cast<u64>(offsets[i]) + static_cast<u64>(block) * BLOCK + OWN * lane;
        u32 own_documents[OWN];
        u32 own_counts[OWN];
        decode_documents(coded, list, block, size, scratch, own_documents);
        decode_counts(coded, Plain{}, list, block, size, scratch, own_counts);
#pragma unroll
        for (u32 j = 0; j < OWN; ++j)
            own_documents[j] = min(own_documents[j], static_cast<u32>(coded.documents - 1));
        if (size == BLOCK && (target & 3) == 0) {
            *reinterpret_cast<uint4*>(documents + target) =
                make_uint4(own_documents[0], own_documents[1], own_documents[2], own_documents[3]);
            *reinterpret_cast<uint4*>(counts + target) =
                make_uint4(own_counts[0], own_counts[1], own_counts[2], own_counts[3]);
        } else {
#pragma unroll
            for (u32 j = 0; j < OWN; ++j)
                if (OWN * lane + j < size) {
                    documents[target + j] = own_documents[j];
                    counts[target + j] = own_counts[j];
                }
        }
    }
}

// The largest count / (count + norm) of each block. owners: list by block.
extern "C" __global__ void __launch_bounds__(THREADS) bound_blocks(
    const Coded coded, const u32* __restrict__ owners, u64 blocks, const float* __restrict__ norms,
    float* __restrict__ bounds)
{
    __shared__ uint4 scratches[WARPS][BLOCK / OWN];
    u32* scratch = reinterpret_cast<u32*>(scratches[threadIdx.x / 32]);
    const u32 lane = threadIdx.x % 32;
    const u64 number = static_cast<u64>(blockIdx.x) * WARPS + threadIdx.x / 32;
    if (number >= blocks)
        return;
    const List list = open_list(coded, Plain{}, owners[number]);
    const u32 block = static_cast<u32>(number - list.first);
    const u32 size = list.block_size(block);
    float most = 0;
    if (size > 0) {
        u32 documents[OWN];
        u32 counts[OWN];
        decode_documents(coded, list, block, size, scratch, documents);
        decode_counts(coded, Plain{}, list, block, size, scratch, counts);
#pragma unroll
        for (u32 i = 0; i < OWN; ++i)
            if (OWN * lane + i < size && documents[i] < coded.documents)
                most = max(most, fraction(counts[i], norms[documents[i]]));
    }
    for (u32 step = 16; step > 0; step /= 2)
        most = max(most, __shfl_xor_sync(ALL_LANES, most, step));
    if (lane == 0)
        bounds[number] = most;
}
