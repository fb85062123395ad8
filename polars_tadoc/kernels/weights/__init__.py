"""Kernels that weigh the terms of documents: BM25 and TF-IDF."""
