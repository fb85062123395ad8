// Keys of windows. Include after counters.cuh.
#ifndef POLARS_TADOC_PACKING
#define POLARS_TADOC_PACKING

// How an entry is written: words by rank, `bits` each, `per_column` of them in each 64-bit column, the rest in
// the last column above `document_bits` for a document and `spare` bits. Those hold one digit of the weight, of
// `digit_bits` bits, below its place.
struct Packing {
    u32 words;
    u32 bits;
    u32 per_column;
    u32 columns;
    u32 spare;
    u32 digit_bits;
    u32 document_bits;
};

__device__ __forceinline__ u32 digits_in(u64 weight, u32 digit_bits)
{
    u32 digits = 0;
    for (; weight != 0; weight = digit_bits < 64 ? weight >> digit_bits : 0)
        digits += (weight & ((1ull << digit_bits) - 1)) != 0;
    return digits;
}

// Writes an entry's column as often as the weight has digits.
__device__ __forceinline__ void write_digits(u64*& target, u64 key, u64 weight, const Packing& packing, bool last)
{
    const u64 mask = (1ull << packing.digit_bits) - 1;
    const u64 above = packing.spare < 64 ? key << packing.spare : 0;
    for (u64 place = 0; weight != 0; ++place, weight >>= packing.digit_bits)
        if ((weight & mask) != 0)
            *target++ = last ? above | place << packing.digit_bits | (weight & mask) : key;
}

#endif
