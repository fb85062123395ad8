"""Kernels: trie."""

from polars_tadoc.kernels.trie.arrays import Trie as Trie
