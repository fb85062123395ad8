"""Kernels for windows of words: repeated ones, those of a reference, and the passages they make."""
