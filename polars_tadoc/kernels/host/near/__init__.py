"""Signatures of sets of n-grams, and pairs and groups of rows that share most of them."""
