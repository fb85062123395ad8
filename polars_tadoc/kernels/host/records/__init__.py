"""Kernels on records: sort, merge, pack."""
