"""Kernels that count sequences of text."""
