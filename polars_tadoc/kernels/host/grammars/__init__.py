"""Kernels: grammars."""
