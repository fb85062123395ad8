// Hashes of tokens, for benchmarks/gpu_dictionary.py: what its contender that sorts is ordered by.
#include "primitives/counters.cuh"
#include "primitives/bytes.cuh"

extern "C" __global__ void hash_tokens(const unsigned char* __restrict__ text, const u32* __restrict__ starts,
    const u32* __restrict__ stops, u32 tokens, u64* __restrict__ hashes)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < tokens)
        hashes[i] = hash_bytes(text, starts[i], stops[i]);
}
