"""Kernels on dictionaries: a compressed trie, words to ids and back."""

from polars_tadoc.kernels.trie.arrays import Trie as Trie
