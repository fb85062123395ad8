"""The process and this machine: threads, interrupts, memory, compiled kernels, caches."""

__version__ = "0.1.0"
"""The package's version: saved files name it."""
