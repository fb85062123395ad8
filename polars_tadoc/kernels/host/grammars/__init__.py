"""Kernels on grammars: checks, merges, payloads."""
