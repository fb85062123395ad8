"""Kernels that make grammars: RePair in batches, Sequitur, pruning, prediction of gaps."""
