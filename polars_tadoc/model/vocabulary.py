"""Distinct strings in id order, with the tables that kernels need, each made once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from polars_tadoc.config import settings
from polars_tadoc.kernels.host.records.gather_views import gather_views
from polars_tadoc.kernels.host.records.number_words import number_words
from polars_tadoc.kernels.host.records.sort_words import code_point_order
from polars_tadoc.runtime.array_types import Bools, Int64, UInt8, UInt32
from polars_tadoc.runtime.arrow_arrays import bools, lent
from polars_tadoc.runtime.cache import ByteLRU
from polars_tadoc.runtime.cached_property import cached_property


class Vocabulary:
    """Words by id.

    Parameters
    ----------
    strings
        Distinct words in id order, ``large_string``.
    key
        Content key of a cached grammar; None: nothing made of the words is cached.

    """

    def __init__(self, strings: pa.LargeStringArray, key: str | None = None) -> None:
        self.strings, self.key = strings, key

    @classmethod
    def copied(cls, words: pl.Series) -> Vocabulary:
        """Copy a String series into Arrow's form, one contiguous buffer of bytes; values of nulls are arbitrary."""
        strings: Any = words.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
        return cls(strings)

    @classmethod
    def ordered(cls, strings: pa.LargeStringArray) -> Vocabulary:
        """Return words that are known to be in code point order."""
        made = cls(strings)
        made.rank = made.by_rank = np.arange(len(strings), dtype=np.uint32)
        made.ascending = np.ones(max(len(strings) - 1, 0), np.bool_)
        return made

    def __len__(self) -> int:
        return len(self.strings)

    @property
    def nbytes(self) -> int:
        """Bytes of the strings, in Arrow's form and in Polars', and of their ranks."""
        return 2 * int(self.strings.nbytes) + 24 * len(self)

    @cached_property
    def series(self) -> pl.Series:
        """The words as a String series."""
        return cast(pl.Series, pl.from_arrow(self.strings)).alias("word")

    @cached_property
    def are_distinct(self) -> bool:
        """Whether no word occurs twice."""
        return self.series.n_unique() == len(self)

    @cached_property
    def _views(self) -> Any:
        """The words as Arrow's string views, sharing the bytes of :attr:`series`."""
        return self.series.to_arrow(compat_level=pl.CompatLevel.newest())

    def views(self, ids: UInt32) -> Any:
        """Return the words of ids as an Arrow ``string_view`` array; no byte of a word is copied."""
        return gather_views(self._views, ids)

    def take(self, ids: UInt32) -> pl.Series:
        """Return the words of ids as a String series."""
        return cast(pl.Series, pl.from_arrow(self.views(ids))).alias("word")

    @cached_property
    def categories(self) -> tuple[pl.Series, UInt32]:
        """The words as ``Categorical``, which keeps their numbers, and the number of each word, uint32 by word id."""
        made = self.series.cast(pl.Categorical)
        return made, made.to_physical().to_numpy()

    @cached_property
    def offsets(self) -> Int64:
        """Start of each word in :attr:`data`, int64, length words + 1."""
        if len(self.strings) == 0:
            return np.zeros(1, np.int64)
        offsets = self._stored_offsets()
        return offsets - offsets[0] if offsets[0] else offsets

    @cached_property
    def data(self) -> UInt8:
        """UTF-8 bytes of all words plus eight bytes of padding, so that kernels may read eight at a time."""
        stored = self.bytes
        padded = np.zeros(len(stored) + 8, np.uint8)
        padded[: len(stored)] = stored
        return padded

    @property
    def bytes(self) -> UInt8:
        """UTF-8 bytes of all words, in place."""
        size = int(self.offsets[-1])
        first = int(self._stored_offsets()[0]) if size else 0
        return np.frombuffer(self.strings.buffers()[2], np.uint8, size, first) if size else np.zeros(0, np.uint8)

    def _stored_offsets(self) -> Int64:
        buffer = self.strings.buffers()[1]
        return np.frombuffer(buffer, np.int64, len(self.strings) + 1, 8 * self.strings.offset)

    @cached_property
    def ascending(self) -> Bools:
        """Whether each word but the last precedes its successor in code point order, bool."""
        before = pc.less(self.strings[:-1], self.strings[1:])  # UTF-8 bytes sort in code point order
        if before.null_count:
            before = before.fill_null(False)
        return bools(before)

    @cached_property
    def rank(self) -> UInt32:
        """Place of each word in code point order, uint32 by word id."""
        rank = np.empty(len(self), np.uint32)
        rank[self.by_rank] = np.arange(len(self), dtype=np.uint32)
        return rank

    @cached_property
    def by_rank(self) -> UInt32:
        """Word ids in code point order, uint32."""
        return code_point_order(self.strings)

    @cached_property
    def in_order(self) -> Vocabulary:
        """The same words numbered in code point order; the vocabulary itself if it is."""
        if self.ascending.all():
            return self
        return Vocabulary.ordered(self.strings.take(lent(self.by_rank)))

    def rank_of(self, ids: UInt32) -> UInt32:
        """Return ranks that order the given words by code point; ranks the whole vocabulary only for many words."""
        if "rank" in self.__dict__ or 4 * len(ids) >= len(self):
            return self.rank[ids]
        rank = np.empty(len(ids), np.uint32)
        rank[self.series.gather(ids).arg_sort().to_numpy()] = np.arange(len(ids), dtype=np.uint32)
        return rank


def unify(vocabularies: Sequence[Vocabulary]) -> tuple[Vocabulary, list[UInt32]]:
    """Merge several vocabularies into one, numbered by first appearance.

    Words are hashed and compared by their bytes, in parallel. The result for cached grammars is kept under the budget
    of the cache, so a second call looks it up.

    Returns
    -------
    (Vocabulary, list of uint32 arrays)
        All words, each once, and for each vocabulary the new ids of its words.

    """
    if vocabularies and common_start(vocabularies) == max(map(len, vocabularies)):
        return vocabularies[0], [np.arange(len(vocabularies[0]), dtype=np.uint32)] * len(vocabularies)
    keys = [own.key for own in vocabularies]
    key = None if None in keys else f"({' '.join(map(str, keys))})"  # of merges of merges, too, which is in which
    found = None if key is None else _unified.get(key)
    if found is None:
        words, maps = number_words([own.strings for own in vocabularies])
        found = Vocabulary(words, key), maps
        if key is not None:
            _unified.put(key, found)
    return found


_unified: ByteLRU[tuple[Vocabulary, list[UInt32]]] = ByteLRU(
    lambda: settings().host_cache_bytes, lambda found: 2 * found[0].nbytes + sum(own.nbytes for own in found[1])
)
"""Common vocabularies, with their orders, by the keys of those that they were made of."""


def common_start(vocabularies: Sequence[Vocabulary]) -> int:
    """Return the length of the vocabularies' common prefix, in words."""
    size = min((len(own) for own in vocabularies), default=0)
    for other in vocabularies[1:]:
        size = _equal_words(vocabularies[0], other, size)
    return size


def _equal_words(one: Vocabulary, other: Vocabulary, limit: int) -> int:
    """Return the length of the common prefix of two vocabularies, in words, at most ``limit``."""
    one_data, other_data = one.bytes, other.bytes
    at, step = 0, 1 << 8  # growing steps: vocabularies that differ usually differ early
    while at < limit:
        stop = min(at + step, limit)
        ends = one.offsets[at + 1 : stop + 1]
        unequal = np.flatnonzero(ends != other.offsets[at + 1 : stop + 1])
        same_ends = at + int(unequal[0]) if len(unequal) else stop
        first, last = int(one.offsets[at]), int(one.offsets[same_ends])
        unequal = np.flatnonzero(one_data[first:last] != other_data[first:last])
        if len(unequal):
            return int(np.searchsorted(one.offsets, first + unequal[0], side="right")) - 1
        if same_ends < stop:
            return same_ends
        at, step = stop, 4 * step
    return limit
