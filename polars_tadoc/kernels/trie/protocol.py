"""Functions that every engine supplies for dictionaries."""

from __future__ import annotations

from typing import Any, Protocol

import polars as pl

from polars_tadoc.kernels.trie.arrays import Trie


class TrieKernels(Protocol):
    """Words to ids and back; :meth:`load_trie` makes a trie resident."""

    GATHERS_SPELLED: bool
    """Whether spelling all words once in trie order and gathering them is faster than spelling many ids one by one."""

    def load_trie(self, trie: Trie) -> Any:
        """Make a trie resident."""

    def look_up(self, trie: Any, data: Any, starts: Any, stops: Any) -> Any:
        """Look up the tokens ``data[starts[i]:stops[i]]``: uint32, the number of words for a missing one."""

    def look_up_rows(self, trie: Any, words: pl.Series) -> Any:
        """Look up the rows of a String series: uint32, the number of words for a missing one, any id for a null."""

    def spell(self, trie: Any, ids: Any) -> tuple[Any, Any]:
        """Return the words of ids: int64 offsets, and bytes."""
        ...
