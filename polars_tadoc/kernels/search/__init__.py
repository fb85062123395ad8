"""Kernels of ranked search in coded postings."""
