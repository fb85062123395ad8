"""Kernels that count terminals by document and list documents by terminal."""
