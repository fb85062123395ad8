"""Distinct strings in id order, with the tables that kernels want of them, each made once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.kernels.cpu import grammar as kernels


class Vocabulary:
    """Words by id.

    Parameters
    ----------
    strings
        Distinct words in id order, ``large_string``.

    """

    def __init__(self, strings: pa.LargeStringArray) -> None:
        self.strings = strings

    def __len__(self) -> int:
        return len(self.strings)

    @property
    def nbytes(self) -> int:
        """Bytes of the strings, in Arrow's form and in Polars', and of the numbers that order them."""
        return 2 * int(self.strings.nbytes) + 24 * len(self)

    @cached_property
    def series(self) -> pl.Series:
        """The words as a String series."""
        return cast(pl.Series, pl.from_arrow(self.strings)).alias("word")

    @cached_property
    def offsets(self) -> npt.NDArray[np.int64]:
        """Where each word starts in :attr:`data`, int64, length words + 1."""
        if len(self.strings) == 0:
            return np.zeros(1, np.int64)
        offsets = self._stored_offsets()
        return offsets - offsets[0] if offsets[0] else offsets

    @cached_property
    def data(self) -> npt.NDArray[np.uint8]:
        """UTF-8 bytes of all words and eight spare ones, so that kernels may read eight at a time."""
        size = int(self.offsets[-1])
        padded = np.zeros(size + 8, np.uint8)
        if size:
            first = int(self._stored_offsets()[0])
            padded[:size] = np.frombuffer(self.strings.buffers()[2], np.uint8, size, first)
        return padded

    def _stored_offsets(self) -> npt.NDArray[np.int64]:
        buffer = self.strings.buffers()[1]
        return np.frombuffer(buffer, np.int64, len(self.strings) + 1, 8 * self.strings.offset)

    @cached_property
    def ascending(self) -> npt.NDArray[np.bool_]:
        """Whether each word but the last stands before its successor in code point order, bool."""
        return kernels.ascending_strings(self.offsets, self.data)  # type: ignore[no-any-return]

    @cached_property
    def rank(self) -> npt.NDArray[np.uint32]:
        """Place of each word in code point order, uint32 by word id."""
        rank = np.empty(len(self), np.uint32)
        rank[self.series.arg_sort().to_numpy()] = np.arange(len(self), dtype=np.uint32)
        return rank

    @cached_property
    def by_rank(self) -> npt.NDArray[np.uint32]:
        """Word ids in code point order, uint32."""
        ids = np.empty(len(self), np.uint32)
        ids[self.rank] = np.arange(len(self), dtype=np.uint32)
        return ids

    def rank_of(self, ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        """Ranks that order the given words by code points; the whole vocabulary is ranked only for many of them."""
        if "rank" in self.__dict__ or 4 * len(ids) >= len(self):
            return self.rank[ids]
        rank = np.empty(len(ids), np.uint32)
        rank[self.series.gather(ids).arg_sort().to_numpy()] = np.arange(len(ids), dtype=np.uint32)
        return rank


def unify(vocabularies: Sequence[Vocabulary]) -> tuple[Vocabulary, list[npt.NDArray[np.uint32]]]:
    """Make one vocabulary of several.

    Returns
    -------
    (Vocabulary, list of uint32 arrays)
        All words, each once, and by vocabulary the new id of each of its words.

    """
    parts = [pl.Series("word", [], pl.String), *(own.series for own in vocabularies)]
    encoded: Any = pl.concat(parts).rechunk().to_arrow().dictionary_encode()
    ids = encoded.indices.to_numpy().astype(np.uint32)
    ends = np.cumsum([len(own) for own in vocabularies], dtype=np.int64)
    return Vocabulary(encoded.dictionary.cast(pa.large_string())), np.split(ids, ends)[:-1]
