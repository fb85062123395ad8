"""Kernels: repair."""
