// Sums of counts by image, for morphisms of the vocabulary.
#include "primitives/counters.cuh"

// image   new id of each word, NONE if the word is deleted
// held    new ids counted in shared memory: with few new ids, all words contend for them
extern "C" __global__ void map_counts(
    const u64* __restrict__ counts, const u32* __restrict__ image, u32 size, u32 held, u64* sums)
{
    extern __shared__ u32 low[];
    for (u32 i = threadIdx.x; i < held; i += blockDim.x)
        low[i] = 0;
    __syncthreads();
    const u64 threads = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 word = blockIdx.x * blockDim.x + threadIdx.x; word < size; word += threads) {
        const u32 id = __ldg(image + word);
        const u64 count = id == NONE ? 0 : __ldg(counts + word);
        if (count == 0)
            continue;
        add_count(low, held, sums, id, count);
    }
    __syncthreads();
    flush_held(low, held, sums);
}
