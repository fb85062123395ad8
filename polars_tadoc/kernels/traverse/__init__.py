"""Kernels: traverse."""
