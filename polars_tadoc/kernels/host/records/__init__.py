"""Kernels: records."""
