"""Looks the rows of a String series up in a trie."""

from __future__ import annotations

import polars as pl

from polars_tadoc.kernels.trie.arrays import Trie
from polars_tadoc.kernels.trie.trie_cpu import look_up
from polars_tadoc.runtime.array_types import UInt32
from polars_tadoc.runtime.arrow_memory import copied_strings


def look_up_rows(trie: Trie, words: pl.Series) -> UInt32:
    """Return the id of each word, uint32: the number of words for a missing one, any id for a null."""
    data, offsets = copied_strings(words)
    return look_up(trie, data, offsets[:-1], offsets[1:])
