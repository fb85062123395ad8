"""Kernels that traverse rules: weights, tables of rules, and the counts made from them."""
