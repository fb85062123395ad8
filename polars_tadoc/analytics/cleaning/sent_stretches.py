"""Repeated windows of rows that several processes hold, by shards of hashes.

Equal windows have equal least grams (:mod:`polars_tadoc.kernels.host.passages.stretches`), so each process sends the
stretches of its rows, with their words, to the shards of their hashes. A shard finds all windows of its stretches as
in memory, exactly, word by word, and returns to each process the windows of its rows that are repeated. Words are sent
as text: processes number them differently.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from polars_tadoc.analytics.cleaning.kept_stretches import NO_WORDS, RECORD, KeptStretches, marks_of
from polars_tadoc.analytics.cleaning.laid_words import LaidWords, starts_of
from polars_tadoc.analytics.cleaning.signatures import word_hashes
from polars_tadoc.kernels.host.passages import distinct as kernels
from polars_tadoc.kernels.host.passages import stretches
from polars_tadoc.kernels.host.passages.layout import SEPARATOR
from polars_tadoc.kernels.host.records.number_words import number_words
from polars_tadoc.kernels.primitives.lists import gather_lists, running_sum
from polars_tadoc.kernels.windows.windows_cpu import stretches_of
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.records.records import Records
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

CHUNK = 1 << 16
"""Stretches whose repeated windows are listed at a time."""

_NONE = np.zeros(0, np.uint32)


@dataclass(frozen=True, eq=False)
class Sent:
    """The stretches that one process sends to one shard."""

    words: pa.LargeStringArray
    """Their distinct words."""
    kept: UInt32
    starts: Int64
    """``kept``, ``starts``: uint32, and int64 by distinct stretch and one more: numbers of the words, a separator after
    each stretch."""
    ids: UInt32
    rows: UInt32
    offsets: UInt32
    """``ids``, ``rows``, ``offsets``: uint32 by occurrence, in order: the distinct stretch, the sender's row, and the
    number of the first word in it."""


@dataclass(frozen=True, eq=False)
class OwnStretches:
    """The stretches of the rows of one process."""

    laid: LaidWords
    length: int
    records: Any
    """In the order of the rows; fields ``key``, ``place``, ``size``."""

    @classmethod
    def of(cls, laid: LaidWords, grams: stretches.Grams) -> OwnStretches:
        """Find them; hashes do not depend on the numbers of words."""
        hashes = np.append(word_hashes(laid.vocabulary).astype(np.uint32), np.uint32(SEPARATOR))
        words = hashes[np.minimum(laid.words, np.uint32(len(laid.vocabulary)))]
        chunks = weighted_chunks(laid.starts)
        found = map_parallel(lambda chunk: stretches_of(words, laid.starts, chunk, grams, _NONE), chunks)
        records = np.empty(sum(len(keys) for _, _, keys in found), RECORD)
        for name, parts in zip(("place", "size", "key"), zip(*found, strict=True), strict=True):
            records[name] = np.concatenate(parts)
        return cls(laid, grams.length, records)

    def with_keys(self, keys: UInt64) -> OwnStretches:
        """Return those with some keys; ``keys`` is uint64, ascending."""
        places = np.searchsorted(keys, self.records["key"])
        known = np.append(keys, np.uint64(0))[places] == self.records["key"]
        return OwnStretches(self.laid, self.length, self.records[known & (places < len(keys))])

    def keys(self, shards: int) -> Iterator[UInt64]:
        """Yield the hashes that each shard gets, uint64."""
        for records in self._shards(shards):
            yield np.ascontiguousarray(records["key"])

    def sent(self, shards: int) -> Iterator[Sent]:
        """Yield what each shard gets."""
        laid = self.laid
        for records in self._shards(shards):
            room = int(records["size"].sum(dtype=np.int64)) + self.length * len(records)
            kept = KeptStretches(max(room, 1), self.length)
            ids = kept.collect(laid.words, records)
            assert ids is not None  # there is room for all
            words, own = kept.words, laid.vocabulary
            used = np.zeros(len(own) + 1, np.bool_)
            used[np.minimum(words, np.uint32(len(own)))] = True
            used[-1] = False
            image = np.append((np.cumsum(used[:-1]) - used[:-1]).astype(np.uint32), np.uint32(SEPARATOR))
            rows = np.searchsorted(laid.starts, records["place"], side="right") - 1
            yield Sent(
                own.strings.take(pa.array(np.flatnonzero(used))),
                image[np.minimum(words, np.uint32(len(own)))],
                kept.starts.copy(),
                ids,
                rows.astype(np.uint32),
                (records["place"] - laid.starts[rows]).astype(np.uint32),
            )

    def _shards(self, shards: int) -> Iterator[Any]:
        shard = (self.records["key"] >> np.uint64(32)) * np.uint64(shards) >> np.uint64(32)
        order = np.argsort(shard, kind="stable")
        for some in np.split(order, np.searchsorted(shard[order], np.arange(1, shards, dtype=np.uint64))):
            yield self.records[some]


def repeated_keys(parts: Sequence[UInt64]) -> UInt64:
    """Return the hashes that occur more than once, uint64, ascending; windows with others are not repeated."""
    keys, counts = np.unique(np.concatenate([np.zeros(0, np.uint64), *parts]), return_counts=True)
    return keys[counts > 1]


def find_repeated(parts: Sequence[Sent], length: int, order: Int64 | None = None) -> list[Records]:
    """Find the repeated windows of a shard.

    Parameters
    ----------
    parts
        What each process sent, at least one.
    length
        Words of a window.
    order
        int64: the occurrences of all parts in the order of the column, by which first occurrences are found; by default
        the order given.

    Returns
    -------
    list of Records
        By part: in the form of :data:`polars_tadoc.analytics.cleaning.hits.LAYOUT`, with the sender's rows.

    """
    _, images = number_words([part.words for part in parts])
    words = np.concatenate(
        [
            np.append(image, np.uint32(SEPARATOR)).astype(np.uint32)[np.minimum(part.kept, np.uint32(len(image)))]
            for part, image in zip(parts, images, strict=True)
        ]
    )
    starts = running_sum(np.concatenate([np.diff(part.starts) for part in parts]))
    before = running_sum(np.array([len(part.starts) - 1 for part in parts]))
    ids = np.concatenate([part.ids + first for part, first in zip(parts, before, strict=False)])
    owner = np.repeat(np.arange(len(parts)), [len(part.ids) for part in parts])
    rows, offsets = (np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "offsets"))
    if order is not None:
        ids, owner, rows, offsets = ids[order], owner[order], rows[order], offsets[order]
        seen_first = np.argsort(np.unique(ids, return_index=True)[1])  # distinct stretches by their first occurrence
        gathered: Any = gather_lists(starts, words, seen_first)
        starts, words = gathered
        numbers = np.empty(len(seen_first), np.int64)
        numbers[seen_first] = np.arange(len(seen_first))
        ids = numbers[ids]
    count = len(starts) - 1
    starts_of(np.diff(starts) - 1, "repeats")  # raises where places need more than 32 bits
    laid = LaidWords(Vocabulary(NO_WORDS), starts, words, np.ones(count, np.bool_), ())
    marks, seen = marks_of(laid, length, np.bincount(ids, minlength=count)), np.zeros(count, np.uint8)
    sizes = (np.diff(starts)[ids] - length).astype(np.uint32)
    keys, counts, owners = [np.zeros((0, 3), np.uint32)], [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    for start in range(0, len(ids), CHUNK):
        chunk = slice(start, start + CHUNK)
        places = running_sum(sizes[chunk].astype(np.int64))
        made: Any = tuple(np.empty(places[-1], kind) for kind in (np.uint32, np.uint32, np.uint8, np.uint64))
        given = places[:-1].astype(np.uint32), sizes[chunk], ids[chunk].astype(np.uint32)
        found = kernels.list_hits(*given, seen, starts, length, kernels.ANY, 0, marks, *made)
        at, windows, are_first, amounts = (one[:found] for one in made)
        of = np.searchsorted(places, at, side="right") - 1
        key = np.empty((found, 3), np.uint32)
        key[:, 0], key[:, 1] = rows[chunk][of], offsets[chunk][of] + (at - places[of]).astype(np.uint32)
        key[:, 2] = 2 * windows + are_first
        keys.append(key)
        counts.append(amounts)
        owners.append(owner[chunk][of])
    all_keys, all_counts, all_owners = np.concatenate(keys), np.concatenate(counts), np.concatenate(owners)
    by_owner = np.argsort(all_owners, kind="stable")
    edges = np.searchsorted(all_owners[by_owner], np.arange(len(parts) + 1))
    chosen = [by_owner[edges[part] : edges[part + 1]] for part in range(len(parts))]
    return [Records(NO_WORDS, all_keys[some], all_counts[some]) for some in chosen]
