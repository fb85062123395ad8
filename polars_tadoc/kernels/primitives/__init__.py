"""Kernels: primitives."""
