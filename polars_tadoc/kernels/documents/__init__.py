"""Kernels: documents."""
