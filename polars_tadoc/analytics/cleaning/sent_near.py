"""Near duplicates of a column in several processes: only rows whose signatures agree in a band meet in one.

Each process signs its rows. Rows with equal keys of a band are joined, and rows that are joined, directly or through
others, are compared by one process, as in memory: signatures depend on the words, not on their numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.cleaning.distinct_rows import Sets, bands_of, first_rows
from polars_tadoc.analytics.cleaning.laid_words import LaidWords, starts_of
from polars_tadoc.analytics.cleaning.limited_near import join_equal, roots_of, row_hashes
from polars_tadoc.analytics.cleaning.near_duplicates import DuplicateGroupsRequest, NearDuplicatesRequest
from polars_tadoc.kernels.host.near import pairs as kernels
from polars_tadoc.kernels.host.near.rows import NONE
from polars_tadoc.kernels.host.records.number_words import number_words
from polars_tadoc.kernels.primitives.lists import filled, gather_lists
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.runtime.array_types import Bools, Float64, Int64, UInt32, UInt64

NearRequest = NearDuplicatesRequest | DuplicateGroupsRequest
Label = Callable[[UInt32], pl.Series]
"""Returns the labels of rows."""
Nodes = UInt32 | UInt64
"""Numbers of rows, or hashes of their words."""
Edges = tuple[Nodes, Nodes]
"""Rows, and another row that each is joined with."""


@dataclass(frozen=True, eq=False)
class SignedRows:
    """Rows of one process, numbered over all of them."""

    request: NearRequest
    laid: LaidWords
    first: int
    """Number of the first row."""
    firsts: UInt32
    """uint32 by row: the first row with its words, numbered from 0; ``NONE`` for rows without words."""

    @classmethod
    def of(cls, request: NearRequest, laid: LaidWords, first: int) -> SignedRows:
        """Find the distinct rows."""
        return cls(request, laid, first, first_rows(laid))

    def keys(self, shards: int) -> Iterator[tuple[UInt64, UInt32]]:
        """Yield the keys that each shard gets, uint64, and the row of each."""
        request, ngram = self.request, self.request.scheme.ngram
        sets = Sets.of(self.laid, self.firsts, ngram)
        keys = sets.keys(request.scheme, *bands_of(request.threshold, request.scheme.permutations))
        short = np.flatnonzero((self.firsts == np.arange(len(self.firsts))) & (self.laid.counts < ngram))
        every = np.append(keys.reshape(-1), row_hashes(self.laid, short))
        rows = np.append(np.repeat(sets.rows, keys.shape[1]), short).astype(np.uint32) + np.uint32(self.first)
        shard = every % np.uint64(shards)
        for number in range(shards):
            own = np.flatnonzero(shard == number)
            yield every[own], rows[own]

    def sent(self, rows: UInt32, shard_of: UInt32, labels: Labels, shards: int) -> Iterator[SentRows]:
        """Yield what each shard gets of some distinct rows, with their copies among these rows.

        Parameters
        ----------
        rows, shard_of
            uint32: the rows, ascending, and the shard of each.
        labels
            The labels of all rows of this process.
        shards
            Number of shards.

        """
        copies = np.flatnonzero((self.firsts != NONE) & (self.firsts != np.arange(len(self.firsts)))).astype(np.uint32)
        of, copies = self.firsts[copies] + np.uint32(self.first), copies + np.uint32(self.first)
        some = np.isin(of, rows)
        copies, of = copies[some], of[some]
        held: Any = gather_lists(self.laid.starts, self.laid.words, rows - np.uint32(self.first))
        starts, words = held
        both = labels.series(np.append(rows, copies))
        every = SentRows(self.laid.vocabulary.strings, starts, words, rows, copies, of, both)
        for shard in range(shards):
            yield every.some(shard_of == shard)

    def finish(self, sent: UInt32, found: Sequence[pl.DataFrame], labels: Labels) -> pl.DataFrame:
        """Make the result of these rows.

        Parameters
        ----------
        sent
            uint32: the rows that were sent.
        found
            The results of shards for these rows.
        labels
            The labels of all rows of this process.

        """
        firsts = np.where(self.firsts == NONE, NONE, self.firsts + np.uint32(self.first)).astype(np.uint32)
        rows = np.arange(self.first, self.first + len(firsts), dtype=np.uint32)
        own = ~np.isin(firsts, sent)
        if isinstance(self.request, NearDuplicatesRequest):
            own &= (firsts != NONE) & (firsts != rows)
            made = _pairs_frame(firsts[own], rows[own], np.ones(np.count_nonzero(own)), labels.series)
        else:
            made = _groups_frame(rows[own], np.where(firsts == NONE, rows, firsts)[own], labels.series)
        return pl.concat([made, *found]).sort("row", "other_row").drop("row", "other_row")


@dataclass(frozen=True, eq=False)
class SentRows:
    """Distinct rows that one process sends to another."""

    words: pa.LargeStringArray
    """The distinct words."""
    starts: Int64
    ids: UInt32
    """``starts``, ``ids``: int64, rows + 1, and uint32: numbers of the words of each row, and a separator."""
    rows: UInt32
    """uint32: the rows' numbers, ascending."""
    copies: UInt32
    of: UInt32
    """``copies``, ``of``: uint32: other rows with the words of one of the rows, and that one."""
    labels: pl.Series
    """Labels of rows, then of copies."""

    def some(self, own: Bools) -> SentRows:
        """Return some of the rows, with their copies and words."""
        at = np.flatnonzero(own)
        starts, words = gather_lists(self.starts, self.ids, at)
        is_separator = words == np.uint32(NONE)
        used, image = np.unique(words[~is_separator], return_inverse=True)
        ids = filled(len(words), NONE, np.uint32)
        ids[~is_separator] = image
        copied = np.isin(self.of, self.rows[at])
        labels = self.labels.gather(np.append(at, len(self.rows) + np.flatnonzero(copied)))
        strings = self.words.take(pa.array(used))
        return SentRows(strings, starts, ids, self.rows[at], self.copies[copied], self.of[copied], labels)

    def renumbered(self, numbers: UInt32) -> SentRows:
        """Number rows, then copies, in the same order."""
        rows = numbers[: len(self.rows)]
        return replace(self, rows=rows, copies=numbers[len(rows) :], of=rows[np.searchsorted(self.rows, self.of)])


def _pairs_frame(rows: UInt32, others: UInt32, similarities: Float64, label: Label) -> pl.DataFrame:
    found = {"row": rows, "other_row": others, "id": label(rows), "other": label(others), "similarity": similarities}
    return pl.DataFrame(found)


def _groups_frame(rows: UInt32, groups: UInt32, label: Label) -> pl.DataFrame:
    found = {"row": rows, "other_row": groups, "id": label(rows), "group": label(groups), "keep": rows == groups}
    return pl.DataFrame(found)


def edges_of(keys: UInt64, rows: Nodes) -> Edges:
    """Join rows with equal keys; return rows, each with the first row that it is joined with."""
    nodes: Any
    nodes, numbers = np.unique(rows, return_inverse=True)
    parents = np.arange(len(nodes), dtype=np.uint32)
    join_equal(numbers.astype(np.uint32), keys, parents)
    return _edges(nodes, parents)


def components_of(parts: Sequence[Edges]) -> Edges:
    """Join rows by all edges; return all rows that are joined, ascending, and the first row of each one's component."""
    ones, others = (np.concatenate([np.zeros(0, np.uint32), *some]) for some in zip(*parts, strict=True))
    nodes = np.unique(np.append(ones, others))
    parents = np.arange(len(nodes), dtype=np.uint32)
    kernels.join_pairs(*(np.searchsorted(nodes, some).astype(np.uint32) for some in (ones, others)), parents)
    return nodes, nodes[roots_of(parents)]


def _edges(nodes: Nodes, parents: UInt32) -> Edges:
    roots = roots_of(parents)
    joined = np.flatnonzero(roots != np.arange(len(roots)))
    return nodes[joined], nodes[roots[joined]]


def compare(request: NearRequest, parts: Sequence[SentRows]) -> tuple[pl.DataFrame, int]:
    """Compare the rows of a shard; return its part of the result, with the numbers of rows, and the candidates."""
    strings, images = number_words([part.words for part in parts])
    ids = [np.append(image, NONE).astype(np.uint32) for image in images]
    words = np.concatenate(
        [image[np.minimum(part.ids, np.uint32(len(image) - 1))] for part, image in zip(parts, ids, strict=True)]
    )
    rows, copies, of = (np.concatenate([getattr(part, name) for part in parts]) for name in ("rows", "copies", "of"))
    starts = starts_of(np.concatenate([np.diff(part.starts) - 1 for part in parts]), request.name)
    if (rows[1:] < rows[:-1]).any():  # parts are no intervals of rows
        sorting = np.argsort(rows)
        starts, words = gather_lists(starts, words, sorting)
        rows = rows[sorting]
    laid = LaidWords(Vocabulary(strings), starts, words, np.ones(len(rows), np.bool_), ())
    labels = pl.concat([part.labels for part in parts])
    numbers = np.concatenate([np.append(part.rows, part.copies) for part in parts])
    order = np.argsort(numbers)

    def label(some: UInt32) -> pl.Series:
        return labels.gather(order[np.searchsorted(numbers[order], some)])

    if isinstance(request, DuplicateGroupsRequest):
        groups, candidates = request.groups(laid)
        roots = rows[groups]
        of_copies = roots[np.searchsorted(rows, of)]
        return _groups_frame(np.append(rows, copies), np.append(roots, of_copies), label), candidates
    found = request.pairs(laid)
    firsts = rows[found.firsts]
    later = np.flatnonzero(firsts != rows)
    ones = np.concatenate([rows[found.rows], firsts[later], firsts[np.searchsorted(rows, of)]])
    others = np.concatenate([rows[found.others], rows[later], copies])
    similarities = np.append(found.similarities, np.ones(len(later) + len(copies)))
    return _pairs_frame(ones, others, similarities, label), found.candidates
