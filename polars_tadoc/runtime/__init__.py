"""The process and this machine: threads, interrupts, memory, compiled kernels, caches."""

__version__ = "0.2.0"
"""The package's version: saved files name it."""
