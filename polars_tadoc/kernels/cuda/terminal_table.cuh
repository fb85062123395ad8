// Counts by terminal, in a hash table or one counter each. Include after spans.cuh.
#ifndef POLARS_TADOC_TERMINAL_TABLE
#define POLARS_TADOC_TERMINAL_TABLE

// Open addressing. The table has more slots than it will get terminals.
struct TerminalTable {
    u32* terminals;  // NONE where a slot is free
    Count* counts;
    u32 slots;

    // Threads of a group of so many call it, and a barrier of theirs follows.
    __device__ __forceinline__ void clear(u32 thread, u32 threads)
    {
        for (u32 i = thread; i < slots; i += threads) {
            terminals[i] = NONE;
            counts[i] = 0;
        }
    }

    __device__ __forceinline__ void add(u32 terminal, Count amount)
    {
        u32 i = __umulhi(terminal * 0x9E3779B1u, slots);
        while (true) {
            u32 holder = *const_cast<volatile u32*>(terminals + i);
            if (holder == NONE) {
                holder = atomicCAS(terminals + i, NONE, terminal);
                holder = holder == NONE ? terminal : holder;
            }
            if (holder == terminal)
                break;
            i = i + 1 == slots ? 0 : i + 1;
        }
        atomicAdd(counts + i, amount);
    }
};

#endif
