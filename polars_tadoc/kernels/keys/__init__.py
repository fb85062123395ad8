"""Kernels that count, number and sort 64-bit keys of sequences."""
