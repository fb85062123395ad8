// Byte strings at any address: loaded eight bytes at a time, hashed, compared. Include after counters.cuh.
#ifndef POLARS_TADOC_BYTES
#define POLARS_TADOC_BYTES

#ifndef HASH_MASK  // tests make hashes collide
#define HASH_MASK 0xFFFFFFFFFFFFFFFFull
#endif

// Eight bytes at any address; up to 15 bytes after p may be read and must be readable.
__device__ __forceinline__ u64 load_eight(const unsigned char* __restrict__ bytes, u32 p)
{
    const u64* words = reinterpret_cast<const u64*>(bytes) + (p >> 3);
    const u32 shift = 8 * (p & 7);
    const u64 low = words[0];
    return shift == 0 ? low : low >> shift | words[1] << (64 - shift);
}

// The first of the eight bytes, up to the end of the string.
__device__ __forceinline__ u64 load_part(const unsigned char* __restrict__ bytes, u32 p, u32 left)
{
    const u64 eight = load_eight(bytes, p);
    return left >= 8 ? eight : eight & ((1ull << (8 * left)) - 1);
}

__device__ __forceinline__ u64 mix(u64 h, u64 part)
{
    h = (h ^ part) * 0xD6E8FEB86659FD93ull;
    return h ^ h >> 32;
}

// Long strings keep several loads in flight, instead of waiting for each.
__device__ u64 hash_bytes(const unsigned char* __restrict__ bytes, u32 begin, u32 end)
{
    u64 h = (end - begin) * 0x9E3779B97F4A7C15ull;
    u32 p = begin;
    if (end - begin >= 64) {
        u64 lanes[8] = {h, h + 1, h + 2, h + 3, h + 4, h + 5, h + 6, h + 7};
        for (; end - p >= 64; p += 64) {
            u64 parts[8];
#pragma unroll
            for (u32 k = 0; k < 8; ++k)
                parts[k] = load_eight(bytes, p + 8 * k);
#pragma unroll
            for (u32 k = 0; k < 8; ++k)
                lanes[k] = mix(lanes[k], parts[k]);
        }
#pragma unroll
        for (u32 k = 0; k < 8; ++k)
            h = mix(h, lanes[k]);
    }
    for (; p < end; p += 8)
        h = mix(h, load_part(bytes, p, end - p));
    h *= 0x9E3779B97F4A7C15ull;
    return (h ^ h >> 29) & HASH_MASK;
}

__device__ bool equal_bytes(const unsigned char* __restrict__ bytes_a, u32 a, const unsigned char* __restrict__ bytes_b,
    u32 b, u32 length)
{
    u32 i = 0;
    for (; length - i >= 64; i += 64) {
        u64 differences = 0;
#pragma unroll
        for (u32 k = 0; k < 64; k += 8)
            differences |= load_eight(bytes_a, a + i + k) ^ load_eight(bytes_b, b + i + k);
        if (differences != 0)
            return false;
    }
    for (; i < length; i += 8)
        if (load_part(bytes_a, a + i, length - i) != load_part(bytes_b, b + i, length - i))
            return false;
    return true;
}

#endif
