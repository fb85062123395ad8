"""The process and this machine: threads, interrupts, memory, compiled kernels, caches."""
