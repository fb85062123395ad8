"""Looks the rows of a String series up in a trie."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_tadoc.kernels.cpu.trie import look_up
from polars_tadoc.kernels.trie import Trie
from polars_tadoc.vocabulary import Vocabulary


def look_up_rows(trie: Trie, words: pl.Series) -> npt.NDArray[np.uint32]:
    """Return the id of each word, uint32: the number of words where the trie has it not, any for a null."""
    copy = Vocabulary.copied(words)
    return look_up(trie, copy.data, copy.offsets[:-1], copy.offsets[1:])
