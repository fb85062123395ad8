"""Kernels: search."""
