// Finds equal byte strings by sorting their hashes; strings with equal hashes are compared by bytes.
#include "primitives/counters.cuh"
#include "primitives/bytes.cuh"

// hashes, places: sort keys and indices.
extern "C" __global__ void hash_strings(const unsigned char* __restrict__ bytes, const u32* __restrict__ starts,
    const u32* __restrict__ stops, u32 strings, u64* __restrict__ hashes, u32* __restrict__ places)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= strings)
        return;
    hashes[i] = hash_bytes(bytes, starts[i], stops[i]);
    places[i] = i;
}

// heads[i]: whether string i, in hash order, differs from the one before it. Strings whose hashes collide may
// alternate; each change then starts a run.
extern "C" __global__ void mark_heads(const unsigned char* __restrict__ bytes, const u32* __restrict__ starts,
    const u32* __restrict__ stops, const u64* __restrict__ hashes, u64 hash_bits, const u32* __restrict__ places,
    u32 strings, unsigned char* __restrict__ heads)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= strings)
        return;
    bool head = i == 0 || ((hashes[i] ^ hashes[i - 1]) & hash_bits) != 0;
    if (!head) {
        const u32 begin = starts[places[i]];
        const u32 length = stops[places[i]] - begin;
        const u32 before = starts[places[i - 1]];
        head = stops[places[i - 1]] - before != length || !equal_bytes(bytes, before, bytes, begin, length);
    }
    heads[i] = head;
}

// The spans of the runs' strings.
extern "C" __global__ void describe_runs(const u32* __restrict__ run_places, u32 runs, const u32* __restrict__ starts,
    const u32* __restrict__ stops, u32* __restrict__ run_starts, u32* __restrict__ run_stops)
{
    const u32 run = blockIdx.x * blockDim.x + threadIdx.x;
    if (run >= runs)
        return;
    run_starts[run] = starts[run_places[run]];
    run_stops[run] = stops[run_places[run]];
}

// fresh[i]: whether run order[i], with runs sorted by bytes, has another string than the one before it.
extern "C" __global__ void compare_runs(const unsigned char* __restrict__ bytes, const u32* __restrict__ order,
    u32 runs, const u32* __restrict__ run_starts, const u32* __restrict__ run_stops, unsigned char* __restrict__ fresh)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= runs)
        return;
    bool differs = i == 0;
    if (!differs) {
        const u32 begin = run_starts[order[i]];
        const u32 length = run_stops[order[i]] - begin;
        const u32 before = run_starts[order[i - 1]];
        differs = run_stops[order[i - 1]] - before != length || !equal_bytes(bytes, before, bytes, begin, length);
    }
    fresh[i] = differs;
}

// numbers_before: number of fresh strings before each run in byte order. Computes each run's number, and by number its
// run and its length.
extern "C" __global__ void number_runs(const u32* __restrict__ order, u32 runs, const unsigned char* __restrict__ fresh,
    const i64* __restrict__ numbers_before, const u32* __restrict__ run_starts,
    const u32* __restrict__ run_stops, u32* __restrict__ run_numbers, u32* __restrict__ distinct,
    u64* __restrict__ lengths)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= runs)
        return;
    const u32 run = order[i];
    const u32 number = static_cast<u32>(numbers_before[i]) + fresh[i] - 1;
    run_numbers[run] = number;
    if (fresh[i]) {
        distinct[number] = run;
        lengths[number] = run_stops[run] - run_starts[run];
    }
}

// runs_before: number of runs that start before each string in hash order.
extern "C" __global__ void scatter_numbers(const u32* __restrict__ places, u32 strings,
    const i64* __restrict__ runs_before, const u32* __restrict__ run_numbers, u32* __restrict__ ids)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < strings)
        ids[places[i]] = run_numbers[runs_before[i + 1] - 1];
}
