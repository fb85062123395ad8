// Builds the index that finds the body of a symbol position, once per grammar.
#include "primitives/counters.cuh"
#include "primitives/segments.cuh"

// Fills the input of top_down.cu's RankedOwners, one thread per word of 32 positions. starts: start of each nonempty
// body, ascending, then the number of symbols.
extern "C" __global__ void mark_owners(
    const u32* __restrict__ starts, u32 bodies, uint2* __restrict__ marks, u32 mark_count)
{
    const u32 word = blockIdx.x * blockDim.x + threadIdx.x;
    if (word >= mark_count)
        return;
    const u32 begin = 32 * word;
    const u32 low = first_without(0u, bodies, [&](u32 i) { return starts[i] < begin; });
    u32 bits = 0;
    for (u32 body = low; body < bodies && starts[body] - begin < 32; ++body)
        bits |= 1u << (starts[body] - begin);
    marks[word] = make_uint2(low - 1, bits);
}
