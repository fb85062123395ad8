// Coded postings, decoded by warps: a block of 128 at a time, four adjacent postings per lane. Include after
// counters.cuh and scan.cuh. RICE selects the codec: 0 for PForDelta, otherwise 1.
//
// Whatever the coded bytes are, nothing is read beyond an array's end; offsets were checked.
#ifndef POLARS_TADOC_CODED_POSTINGS
#define POLARS_TADOC_CODED_POSTINGS

using u8 = unsigned char;
using i64 = long long;

constexpr u32 BLOCK = 128;
constexpr u32 OWN = 4;  // postings per lane
constexpr u32 SPARE_BYTES = 8;

// One number per posting. Fields as in kernels/postings/coded.py, all of 8 bytes.
struct Stream {
    const u8* widths;
    const u32* low;
    const i64* low_offsets;
    const i64* exception_offsets;
    const u8* exception_places;
    const u32* exception_highs;
    const u8* unary;
    const i64* unary_offsets;
    u64 low_bytes;
    u64 exceptions;
    u64 unary_bytes;
};

struct Coded {
    const u32* frequencies;
    const i64* block_offsets;
    const u32* heads;
    u64 lists;
    u64 documents;
    Stream gaps;
    Stream counts;
};

// Uncoded lists; their numbers follow those of the coded ones.
struct Plain {
    const i64* offsets;
    const u32* documents;
    const u32* counts;
    u64 lists;
};

// A list, coded or plain, as blocks of postings.
struct List {
    const u32* heads;  // first document of each block, at this stride
    u32 stride;
    u32 number;  // NONE for an uncoded one
    u32 size;
    u32 blocks;
    u64 first;  // first block of a coded list, first posting of an uncoded one

    __device__ __forceinline__ u32 head(u32 block) const
    {
        return heads[static_cast<u64>(block) * stride];
    }

    // Capped by the number of blocks.
    __device__ __forceinline__ u32 postings() const
    {
        return static_cast<u32>(min(static_cast<u64>(size), static_cast<u64>(blocks) * BLOCK));
    }

    __device__ __forceinline__ u32 block_size(u32 block) const
    {
        return min(BLOCK, size - min(size, block * BLOCK));
    }
};

__device__ __forceinline__ List open_list(const Coded& coded, const Plain& plain, u32 number)
{
    List list = {};
    list.stride = 1;
    list.number = number;
    if (number < coded.lists) {
        const i64 first = coded.block_offsets[number];
        list.first = static_cast<u64>(first);
        list.blocks = static_cast<u32>(coded.block_offsets[number + 1] - first);
        list.size = coded.frequencies[number];
        list.heads = coded.heads + first;
    } else if (number - coded.lists < plain.lists) {
        const i64 first = plain.offsets[number - coded.lists];
        list.first = static_cast<u64>(first);
        list.size = static_cast<u32>(plain.offsets[number - coded.lists + 1] - first);
        list.blocks = (list.size + BLOCK - 1) / BLOCK;
        list.heads = plain.documents + first;
        list.stride = BLOCK;
        list.number = NONE;
    }
    return list;
}

// Number of blocks of the list that begin with a document below this one: 32 positions are probed at once. Called by a
// whole warp with the same arguments.
__device__ __forceinline__ u32 blocks_below(const List& list, u32 document)
{
    const u32 lane = threadIdx.x % 32;
    u32 low = 0;
    u32 high = list.blocks;
    while (low < high) {
        const u32 step = (high - low + 31) / 32;
        const u32 probe = low + (lane + 1) * step - 1;
        const bool below = probe < high && list.head(probe) < document;
        const u32 steps = __popc(__ballot_sync(ALL_LANES, below));
        low = min(high, low + steps * step);
        high = min(high, low + step - 1);
    }
    return low;
}

// Decodes values 4 * lane and on of a block of `size` values, at least 1. Called by a whole warp; `scratch` is shared
// memory for BLOCK numbers that only this warp uses, aligned to 16 bytes.
__device__ __forceinline__ void decode_values(
    const Stream& stream, u32 number, u64 block, u32 place, u32 size, u32* scratch, u32 (&values)[OWN])
{
    const u32 lane = threadIdx.x % 32;
    u32 width = stream.widths[number];
    const u64 start = 8 * static_cast<u64>(stream.low_offsets[number]) + static_cast<u64>(place) * width;
    if (width > 32 || (start + size * width + 7) / 8 + SPARE_BYTES > stream.low_bytes)
        width = 0;  // damaged
    if (width == 0) {
#pragma unroll
        for (u32 i = 0; i < OWN; ++i)
            values[i] = 0;
    } else {
        const u32* words = stream.low + (start >> 5);
        const u32 first_bit = static_cast<u32>(start) & 31;
        const u32 last = first_bit + (size - 1) * width;
        const u32 mask = 0xFFFFFFFFu >> (32 - width);
#pragma unroll
        for (u32 i = 0; i < OWN; ++i) {
            const u32 bit = min(first_bit + (OWN * lane + i) * width, last);
            values[i] = __funnelshift_r(words[bit >> 5], words[(bit >> 5) + 1], bit & 31) & mask;
        }
    }
#if RICE
    // The position of each one bit is written to the scratch memory; the zeros between two of them are a high part.
    const u64 bit = static_cast<u64>(stream.unary_offsets[block]);
    const u64 stop = min((static_cast<u64>(stream.unary_offsets[block + 1]) + 7) / 8, stream.unary_bytes);
    u32 found = 0;
    for (u64 byte = bit / 8; found < size && byte < stop; byte += 32) {
        u32 ones = byte + lane < stop ? stream.unary[byte + lane] : 0;
        if (byte + lane == bit / 8)
            ones &= 0xFFu << (bit & 7);
        const u32 count = __popc(ones);
        const u32 before = lanes_before(count);
        const u32 base = static_cast<u32>(8 * (byte + lane - bit / 8));
        for (u32 rank = found + before; ones != 0 && rank < size; ++rank, ones &= ones - 1)
            scratch[rank] = base + static_cast<u32>(__ffs(ones)) - 1;
        found += __shfl_sync(ALL_LANES, before + count, 31);
    }
    for (u32 rank = found + lane; rank < size; rank += 32)  // damaged
        scratch[rank] = 0;
    __syncwarp();
    u32 before = lane == 0 ? (static_cast<u32>(bit) & 7) - 1 : scratch[OWN * lane - 1];
    const uint4 ends = reinterpret_cast<const uint4*>(scratch)[lane];
    const u32 end[OWN] = {ends.x, ends.y, ends.z, ends.w};
#pragma unroll
    for (u32 i = 0; i < OWN; ++i) {
        values[i] |= width < 32 ? (end[i] - before - 1) << width : 0;
        before = end[i];
    }
    __syncwarp();
#else
    const u64 first = static_cast<u64>(stream.exception_offsets[block]);
    const u64 stop = min(static_cast<u64>(stream.exception_offsets[block + 1]), stream.exceptions);
    if (first < stop && width < 32) {
        reinterpret_cast<uint4*>(scratch)[lane] = make_uint4(0, 0, 0, 0);
        __syncwarp();
        for (u64 e = first + lane; e < stop; e += 32)
            scratch[stream.exception_places[e] % BLOCK] = stream.exception_highs[e];
        __syncwarp();
        const uint4 highs = reinterpret_cast<const uint4*>(scratch)[lane];
        values[0] |= highs.x << width;
        values[1] |= highs.y << width;
        values[2] |= highs.z << width;
        values[3] |= highs.w << width;
        __syncwarp();
    }
#endif
}

// Decodes documents 4 * lane and on of a block of `size`, at least 1; other lanes are undefined. Localised prefix sums
// (Ding et al., section 4): the head starts the block, so no other block is needed.
__device__ __forceinline__ void decode_documents(
    const Coded& coded, const List& list, u32 block, u32 size, u32* scratch, u32 (&documents)[OWN])
{
    const u32 lane = threadIdx.x % 32;
    if (list.number == NONE) {
        const u32* own = list.heads + static_cast<u64>(block) * BLOCK;
#pragma unroll
        for (u32 i = 0; i < OWN; ++i)
            documents[i] = own[min(OWN * lane + i, size - 1)];
        return;
    }
    const u32 head = list.head(block);
    decode_values(coded.gaps, list.number, list.first + block, block * BLOCK, size, scratch, documents);
    u32 sum = 0;
#pragma unroll
    for (u32 i = 0; i < OWN; ++i) {
        sum += documents[i] + 1;
        documents[i] = sum;
    }
    const u32 before = head - 1 + lanes_before(sum);
#pragma unroll
    for (u32 i = 0; i < OWN; ++i)
        documents[i] += before;
}

// Decodes the count of each of these documents.
__device__ __forceinline__ void decode_counts(
    const Coded& coded, const Plain& plain, const List& list, u32 block, u32 size, u32* scratch, u32 (&counts)[OWN])
{
    if (list.number == NONE) {
        const u32* own = plain.counts + list.first + static_cast<u64>(block) * BLOCK;
#pragma unroll
        for (u32 i = 0; i < OWN; ++i)
            counts[i] = own[min(OWN * (threadIdx.x % 32) + i, size - 1)];
        return;
    }
    decode_values(coded.counts, list.number, list.first + block, block * BLOCK, size, scratch, counts);
#pragma unroll
    for (u32 i = 0; i < OWN; ++i)
        counts[i] += 1;
}

// Contribution of a posting to a score; every operation is rounded separately.
__device__ __forceinline__ float fraction(u32 count, float norm)
{
    const float number = static_cast<float>(count);
    return __fdiv_rn(number, __fadd_rn(number, norm));
}

#endif
