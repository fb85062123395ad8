"""Kernels: sequences."""
