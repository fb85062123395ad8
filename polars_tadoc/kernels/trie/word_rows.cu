// Positions of a column's strings in a text that consists of the column's views and buffers.
#include "primitives/counters.cuh"

// views: length, then 12 bytes of a short string, or 4 bytes, number of a buffer and offset in it (Arrow's string
// view). bases: start of each buffer in the text. A null's view is undefined: it becomes an empty string.
extern "C" __global__ void place_rows(const uint4* __restrict__ views, u32 rows, const u32* __restrict__ bases,
    const u32* __restrict__ sizes, u32 buffers, u32* __restrict__ starts, u32* __restrict__ stops)
{
    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows)
        return;
    const uint4 view = views[i];
    u32 start = 16 * i + 4;
    u32 length = view.x;
    if (length > 12) {
        const bool there = view.z < buffers && view.w <= sizes[view.z] && length <= sizes[view.z] - view.w;
        start = there ? bases[view.z] + view.w : 0;
        length = there ? length : 0;
    }
    starts[i] = start;
    stops[i] = start + length;
}
