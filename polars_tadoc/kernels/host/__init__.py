"""Kernels that only the CPU has."""
