"""Kernels: rows."""
