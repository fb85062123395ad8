// Distributes ranges of very different lengths evenly over the lanes of a warp, and long ones over a block. Include
// after counters.cuh and scan.cuh.
#ifndef POLARS_TADOC_SPANS
#define POLARS_TADOC_SPANS

// Counts have 32 bits if every expansion is short enough.
#ifndef WIDE
#define WIDE 0
#endif

#if WIDE
using Count = u64;
#else
using Count = u32;
#endif

constexpr u32 LONG = 1024;  // longer ranges are processed by the whole block

// The last lane that starts at or before a position, for lanes that start at `before`; empty lanes are followed by
// nonempty ones. Called by a whole warp.
__device__ __forceinline__ int lane_at(u32 before, u32 place)
{
    u32 owner = 0;
#pragma unroll
    for (u32 step = 16; step > 0; step /= 2) {
        const u32 begun = __shfl_sync(ALL_LANES, before, static_cast<int>(owner + step));
        if (begun <= place)
            owner += step;
    }
    return static_cast<int>(owner);
}

// Calls visit(item, weight) for each item of each lane's range [start, start + size), with the lane's weight. Called by
// a whole warp; all ranges together have fewer than 2^32 items.
template <typename Visit>
__device__ __forceinline__ void visit_spans(u64 start, u32 size, Count weight, Visit visit)
{
    const u32 lane = threadIdx.x % 32;
    const u32 before = lanes_before(size);
    const u32 total = __shfl_sync(ALL_LANES, before + size, 31);
    for (u32 base = 0; base < total; base += 32) {
        const u32 place = base + lane;
        const int owner = lane_at(before, place);
        const u64 item = __shfl_sync(ALL_LANES, start, owner) + place - __shfl_sync(ALL_LANES, before, owner);
        const Count owner_weight = __shfl_sync(ALL_LANES, weight, owner);
        if (place < total)
            visit(item, owner_weight);
    }
}

// Queue of long ranges in shared memory, until the whole block processes them.
struct LongSpans {
    static constexpr u32 ROOM = 64;

    u32 waiting;
    u64 starts[ROOM];
    u32 sizes[ROOM];
    Count weights[ROOM];

    // Called by one thread, followed by a barrier.
    __device__ __forceinline__ void clear()
    {
        waiting = 0;
    }

    // Returns whether the range was long and fit in the queue.
    __device__ __forceinline__ bool take(u64 start, u32 size, Count weight)
    {
        if (size < LONG)
            return false;
        const u32 place = atomicAdd(&waiting, 1u);
        if (place >= ROOM)
            return false;
        starts[place] = start;
        sizes[place] = size;
        weights[place] = weight;
        return true;
    }

    // The rest of the lane's range: nothing if it was taken.
    __device__ __forceinline__ u32 untaken(u64 start, u32 size, Count weight)
    {
        return take(start, size, weight) ? 0 : size;
    }

    // Start of a rule's body, and the rest of it for the lane.
    template <typename Rule>
    __device__ __forceinline__ u32 body(const i64* __restrict__ rule_offsets, Rule rule, Count weight, u64& start)
    {
        start = static_cast<u64>(rule_offsets[rule]);
        return untaken(start, static_cast<u32>(rule_offsets[rule + 1] - rule_offsets[rule]), weight);
    }

    // All threads of the block call it. Barriers before and after, and one inside.
    template <typename Visit>
    __device__ __forceinline__ void visit(Visit visit)
    {
        __syncthreads();
        const u32 count = min(waiting, ROOM);
        if (count > 0) {
            for (u32 place = 0; place < count; ++place)
                for (u32 i = threadIdx.x; i < sizes[place]; i += blockDim.x)
                    visit(starts[place] + i, weights[place]);
            __syncthreads();
            if (threadIdx.x == 0)
                waiting = 0;
            __syncthreads();
        }
    }
};

#endif
