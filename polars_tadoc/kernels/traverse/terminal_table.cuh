// Counts by terminal, in a hash table or an array of counters. Include after spans.cuh.
#ifndef POLARS_TADOC_TERMINAL_TABLE
#define POLARS_TADOC_TERMINAL_TABLE

// Open addressing. The table has more slots than it will hold terminals.
struct TerminalTable {
    u32* terminals;  // NONE in free slots
    Count* counts;
    u32 slots;

    // Called by a group of threads; a barrier of the group follows.
    __device__ __forceinline__ void clear(u32 thread, u32 threads)
    {
        for (u32 i = thread; i < slots; i += threads) {
            terminals[i] = NONE;
            counts[i] = 0;
        }
    }

    __device__ __forceinline__ void add(u32 terminal, Count amount)
    {
        add_within(terminal, amount, NONE);
    }

    // Returns whether a slot was found within the maximum number of probes.
    __device__ __forceinline__ bool add_within(u32 terminal, Count amount, u32 probes)
    {
        u32 i = first_slot(terminal);
        for (u32 probe = 0; probe < probes; ++probe) {
            u32 holder = *const_cast<volatile u32*>(terminals + i);
            if (holder == NONE) {
                holder = atomicCAS(terminals + i, NONE, terminal);
                holder = holder == NONE ? terminal : holder;
            }
            if (holder == terminal) {
                atomicAdd(counts + i, amount);
                return true;
            }
            i = i + 1 == slots ? 0 : i + 1;
        }
        return false;
    }

    // The terminal must have been added.
    __device__ __forceinline__ Count find(u32 terminal) const
    {
        u32 i = first_slot(terminal);
        while (terminals[i] != terminal)
            i = i + 1 == slots ? 0 : i + 1;
        return counts[i];
    }

    __device__ __forceinline__ u32 first_slot(u32 terminal) const
    {
        return __umulhi(terminal * 0x9E3779B1u, slots);
    }
};

#endif
