"""Kernels: keys."""
