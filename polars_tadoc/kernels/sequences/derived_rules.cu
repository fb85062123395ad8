// Rules with windows as terminals: bodies consist of their own windows, and the children that contain some.
#include "primitives/counters.cuh"
#include "primitives/segments.cuh"
#include "sequences/bodies.cuh"
#include "sequences/own_windows.cuh"
#include "primitives/scan.cuh"

// The terminals: Windows or Pairs.
#ifndef KIND
#define KIND Windows
#endif

constexpr u32 THREADS = 256;

// Derived rules: writes each position's windows in any order.
// taken   number of windows already written
// places  by position: start of its windows in the derived bodies
// slots   by entry: its position there
extern "C" __global__ void __launch_bounds__(THREADS) place_entries(
    const Text text, const Packing packing, u64* columns, u64 capacity, u64* taken, const u64* __restrict__ places,
    u32* slots)
{
    const u64 position = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    const u32 entries = position < text.size ? KIND::count(text, position) : 0;
    u64 start;
    if (!append_entries<THREADS>(entries, taken, start))
        return;
    for (u32 column = 0; column < packing.columns; ++column) {
        u64* at = columns + column * capacity + start;
        const bool last = column + 1 == packing.columns;
        KIND::visit(text, position, packing, column, [&](u64, u64 key) { write_digits(at, key, 1, packing, last); });
    }
    for (u32 i = 0; i < entries; ++i)
        slots[start + i] = static_cast<u32>(places[position] + i);
}

// Number of symbols of a position in the derived bodies: its windows (or pairs), and the child itself if it contains
// some: a rule of at least `least` words.
extern "C" __global__ void __launch_bounds__(THREADS) measure(const Text text, u32 least, u32* sizes)
{
    const u64 position = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (position < text.size)
        sizes[position] = KIND::count(text, position) + (text.is_rule(position) && text.length(position) >= least);
}

// Writes the derived bodies' rules: each is the last of its position's symbols. places: one more than positions.
extern "C" __global__ void __launch_bounds__(THREADS) write_children(
    const Text text, u32 least, u32 derived_terminals, const u64* __restrict__ places, u32* derived)
{
    const u64 position = static_cast<u64>(blockIdx.x) * THREADS + threadIdx.x;
    if (position < text.size && text.is_rule(position) && text.length(position) >= least)
        derived[places[position + 1] - 1] = derived_terminals + __ldg(text.symbols + position) - text.terminals;
}
