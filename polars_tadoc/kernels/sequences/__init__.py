"""Kernels that count sequences and pairs of words."""
