"""What every engine supplies to read a dictionary."""

from __future__ import annotations

from typing import Any, Protocol

import polars as pl

from polars_tadoc.kernels.trie.arrays import Trie


class TrieKernels(Protocol):
    """Words and their ids, both ways; a trie is resident after :meth:`load_trie`."""

    GATHERS_SPELLED: bool
    """Whether many ids are spelled faster by spelling every word once, in the trie's order, and gathering these."""

    def load_trie(self, trie: Trie) -> Any:
        """Make a trie resident."""

    def look_up(self, trie: Any, data: Any, starts: Any, stops: Any) -> Any:
        """Look up the tokens ``data[starts[i]:stops[i]]``: uint32, the number of words for one that is missing."""

    def look_up_rows(self, trie: Any, words: pl.Series) -> Any:
        """Look up the rows of a String series: uint32, the number of words for one that is missing, any for a null."""

    def spell(self, trie: Any, ids: Any) -> tuple[Any, Any]:
        """Spell the words of ids: int64 offsets, and bytes."""
        ...
