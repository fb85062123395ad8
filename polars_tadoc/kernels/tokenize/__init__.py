"""Kernels: tokenize."""
