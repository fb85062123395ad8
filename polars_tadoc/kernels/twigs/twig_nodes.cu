// Twigs matched against documents with one thread per query node; a thread has one byte of state per level. Absalyamov,
// Moussalli, Najjar and Tsotras, ADMS 2013. Twigs of at most 32 nodes, each within a warp: a parent reads its children
// by a vote, a child reads its parent by a shuffle, and threads share no bytes.
#include "primitives/counters.cuh"
#include "primitives/scan.cuh"
#include "twigs/twigs.cuh"

constexpr u32 THREADS = 256;
constexpr u32 WARPS = THREADS / 32;
constexpr u32 CHUNK = 1024;  // events that a block holds

// A thread's byte of a level:
constexpr u32 HERE = 1;  // push: the element passes the node, and its ancestors pass the node's
constexpr u32 ABOVE = 2;  // the element or one of its ancestors does
constexpr u32 FOUND = 4;  // pop: the node is satisfied at a child of the element, or below it if reached by //

// A node's description: its symbol, its parent's lane, and
constexpr u32 SYMBOL_BITS = 24;
constexpr u32 PARENT_BITS = 5;
constexpr u32 DESCENDANT = 1u << 29;  // reached by //;
constexpr u32 ROOT = 1u << 30;  // without a parent;
constexpr u32 ANY = 1u << 31;  // passed by any element.

constexpr u32 ELEMENT = 1u << 31;  // flag of a held event

// A block processes a document and WARPS warps of nodes. personalities: by node; children: lanes of each node's
// children. elements: by symbol. levels: bytes per thread in shared memory; more: those in spilled. found: `stride`
// half words per document.
extern "C" __global__ void __launch_bounds__(THREADS) match_nodes(
    const u32* __restrict__ personalities, const u32* __restrict__ children, u32 warps,
    const unsigned char* __restrict__ elements, const SYMBOL* __restrict__ symbols,
    const i64* __restrict__ offsets, u64 documents, u32 levels, u64 more, unsigned char* spilled,
    u32* __restrict__ found, u64 stride)
{
    extern __shared__ u32 shared[];
    u32* const held = shared;
    const u32 lane = threadIdx.x % 32;
    const u32 warp = threadIdx.x / 32;
    unsigned char* const near = reinterpret_cast<unsigned char*>(shared + CHUNK) + warp * levels * 32 + lane;
    unsigned char* const far = spilled + (static_cast<u64>(blockIdx.x) * WARPS + warp) * more * 32 + lane;
    const auto byte_of = [&](u32 level) {
        return level < levels ? near + level * 32 : far + static_cast<u64>(level - levels) * 32;
    };
    const u64 groups = (warps + WARPS - 1) / WARPS;

    for (u64 item = blockIdx.x; item < documents * groups; item += gridDim.x) {
        const u64 document = item % documents;
        const u32 own_warp = static_cast<u32>(item / documents) * WARPS + warp;
        const bool there = own_warp < warps;
        const u32 node = own_warp * 32 + lane;
        const u32 personality = there ? personalities[node] : 0;
        const u32 own_children = there ? children[node] : 0;
        const u32 symbol = personality & ((1u << SYMBOL_BITS) - 1);
        const u32 parent = personality >> SYMBOL_BITS & ((1u << PARENT_BITS) - 1);
        const u32 asked = (personality & DESCENDANT) != 0 ? ABOVE : HERE;  // the bit to test in the parent's byte
        u32 level = 0;
        u32 top = 0;  // the byte of the current level
        const u64 stop = offsets[document + 1];
        for (u64 first = offsets[document]; first < stop; first += CHUNK) {
            const u32 events = static_cast<u32>(min(static_cast<u64>(CHUNK), stop - first));
            __syncthreads();  // the previous ones have been read
            for (u32 i = threadIdx.x; i < events; i += THREADS) {
                const u32 event = symbols[first + i];
                held[i] = event != CLOSE && elements[event] != 0 ? event | ELEMENT : event;
            }
            __syncthreads();
            for (u32 i = 0; there && i < events; ++i) {
                const u32 event = held[i];
                if (event != CLOSE) {
                    u32 above = __shfl_sync(ALL_LANES, top, parent);
                    if ((personality & ROOT) != 0)
                        above = level == 0 ? HERE | ABOVE : ABOVE;
                    const bool fits
                        = (event & ~ELEMENT) == symbol || ((personality & ANY) != 0 && (event & ELEMENT) != 0);
                    *byte_of(level++) = static_cast<unsigned char>(top);
                    top = fits && (above & asked) != 0 ? HERE | ABOVE : top & ABOVE;
                } else {
                    const u32 below = __ballot_sync(ALL_LANES, (top & FOUND) != 0);
                    const bool reported = ((top & HERE) != 0 && (own_children & ~below) == 0)
                        || (asked == ABOVE && (top & FOUND) != 0);
                    top = *byte_of(--level) | (reported ? FOUND : 0);
                }
            }
        }
        const u32 all = __ballot_sync(ALL_LANES, (top & FOUND) != 0);
        if (there && lane == 0)
            found[document * stride + own_warp] = all;
    }
}
