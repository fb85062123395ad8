"""Kernels on rows: expand, extract, hash, match phrases, score."""
