"""Near duplicates in plans under a memory limit.

Only rows whose signatures agree in a band are compared. These rows, directly or through others, are a component of few
rows as a rule: signatures of all rows go to a file, band by band the rows with equal keys are joined, and then the
components are compared in memory, as many at a time as fit, with the words from a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from polars_tadoc.analytics.cleaning.distinct_rows import Sets, bands_of, first_rows
from polars_tadoc.analytics.cleaning.kept_stretches import NO_WORDS
from polars_tadoc.analytics.cleaning.kept_words import KeptWords
from polars_tadoc.analytics.cleaning.laid_words import LaidWords
from polars_tadoc.analytics.cleaning.limited import LimitedPlan
from polars_tadoc.analytics.cleaning.near_duplicates import DuplicateGroupsRequest, NearDuplicatesRequest
from polars_tadoc.analytics.cleaning.signatures import word_hashes
from polars_tadoc.engine.progress import show
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.execute.labels import KeptLabels
from polars_tadoc.execute.splits import working_bytes
from polars_tadoc.kernels.host.near import pairs as kernels
from polars_tadoc.kernels.host.near.rows import NONE
from polars_tadoc.kernels.primitives.lists import gather_lists, running_sum
from polars_tadoc.records import Spill, SpillFolder
from polars_tadoc.records.records import Layout, Records
from polars_tadoc.runtime.array_types import Float64, Int64, UInt32, UInt64
from polars_tadoc.runtime.free_memory import GROWN_SHARE, give_back_memory

LAYOUT = Layout(("row", "row"), group=1)
"""Two rows; counted: the bits of their similarity."""

ROW_BYTES = 64
"""Maximum bytes for each row: its component, copy and number of words, and a band's keys while rows are joined."""

WORD_BYTES = 40
"""Maximum bytes for each word of a component while its rows are compared."""

KEY_BYTES = 24
"""Maximum bytes for each band of such a row."""

BATCH = 1 << 18
"""Rows of the result that are made at a time."""


@dataclass(eq=False)
class _Rows:
    """The rows of a plan: their words in a file, the keys of their signatures in another."""

    request: NearDuplicatesRequest | DuplicateGroupsRequest
    limit: int
    folder: SpillFolder
    words: KeptWords = field(init=False)
    firsts: list[UInt32] = field(default_factory=list)
    """uint32 by row, block by block: the first row of the block with its words; ``NONE`` for rows without words."""
    signed: list[tuple[UInt32, int]] = field(default_factory=list)
    """By block: the rows that have signatures, and where their keys are in the file, band by band."""
    short: list[tuple[UInt32, UInt64]] = field(default_factory=list)
    """By block: the rows shorter than an n-gram, and hashes of their words."""

    def __post_init__(self) -> None:
        self.words = KeptWords(self.request.name, self.folder, self.limit)
        self.bands = bands_of(self.request.threshold, self.request.scheme.permutations)
        self.ngram = self.request.scheme.ngram

    def read(self, plan: LimitedPlan, kept: KeptLabels) -> None:
        """Read the plan."""
        end = rows = 0
        with (self.folder.path / "keys").open("wb") as file:
            for window in plan.windows():
                kept.keep(window.frame)
                show("words")
                laid = self.words.add(window, self.request.tokenizer, self.request.morphism)
                rows += len(laid.valid)
                if ROW_BYTES * rows > working_bytes(self.limit):
                    raise LimitExceededError(
                        f"{self.request.name}: {rows:,} rows and more take {ROW_BYTES} bytes each, more than "
                        f"memory_limit={self.limit:,} has for them; raise it"
                    )
                firsts = first_rows(laid)
                self.firsts.append(np.where(firsts == NONE, NONE, firsts + np.uint32(window.first)).astype(np.uint32))
                show("n-grams")
                sets = Sets.of(laid, firsts, self.ngram)
                show("signatures")
                keys = sets.keys(self.request.scheme, *self.bands)
                with self.folder.writing():
                    np.ascontiguousarray(keys.T).tofile(file)
                self.signed.append(((sets.rows + window.first).astype(np.uint32), end))
                end += keys.size
                own = np.flatnonzero((firsts == np.arange(len(firsts))) & (laid.counts < self.ngram))
                self.short.append(((own + window.first).astype(np.uint32), row_hashes(laid, own)))
                give_back_memory(self.limit // GROWN_SHARE)

    def _components(self) -> UInt32:
        """Return the first row of each row's component, uint32: rows with equal keys are in one."""
        parents = np.arange(sum(map(len, self.firsts)), dtype=np.uint32)
        rows = np.concatenate([np.zeros(0, np.uint32), *(own for own, _ in self.signed)])
        for band in range(self.bands[0]):
            show(f"bands: {band / self.bands[0]:.0%}")
            join_equal(rows, np.concatenate([np.zeros(0, np.uint64), *self._keys(band)]), parents)
        short, hashes = ([one[part] for one in self.short] for part in (0, 1))
        join_equal(np.concatenate(short), np.concatenate(hashes), parents)
        return roots_of(parents)

    def _keys(self, band: int) -> Iterator[UInt64]:
        path = self.folder.path / "keys"
        for rows, start in self.signed:
            yield np.fromfile(path, np.uint64, len(rows), offset=8 * (start + band * len(rows)))

    @property
    def copies(self) -> UInt32:
        """By row: the first row of its block with its words, uint32; ``NONE`` for rows without words."""
        return np.concatenate([np.zeros(0, np.uint32), *self.firsts])

    def batches(self) -> Iterator[UInt32]:
        """Yield rows of whole components that fit together: of several rows, the first of each text in its block.

        Raises ``LimitExceededError`` if a component does not fit.
        """
        components, firsts = self._components(), self.copies
        own = np.flatnonzero(firsts == np.arange(len(firsts))).astype(np.uint32)
        counts = np.concatenate(
            [np.zeros(0, np.int64), *(np.diff(self.words.starts(one)) for one in self.words.blocks)]
        )
        roots = components[own]
        own = own[np.bincount(roots, minlength=len(firsts) + 1)[roots] > 1]
        order = np.argsort(components[own], kind="stable")
        own = own[order]
        edges = np.flatnonzero(np.append(True, components[own][1:] != components[own][:-1])[: len(own)])
        sizes = running_sum(WORD_BYTES * counts[own] + KEY_BYTES * self.bands[0])
        room, start = working_bytes(self.limit) // 2, 0
        for first, stop in pairwise([*edges.tolist(), len(own)]):
            if sizes[stop] - sizes[first] > room:
                raise LimitExceededError(
                    f"{self.request.name}: {stop - first:,} rows may be similar, directly or through others, and take "
                    f"about {2 * int(sizes[stop] - sizes[first]):,} bytes, more than memory_limit={self.limit:,} has "
                    "for them; raise it, or drop what they share first (drop_repeats)"
                )
            if sizes[stop] - sizes[start] > room:
                yield np.sort(own[start:first])
                start = first
        if len(own):
            yield np.sort(own[start:])

    def laid(self, rows: UInt32) -> LaidWords:
        """Read the words of some rows, ascending."""
        words, counts = [np.zeros(0, np.uint32)], [np.zeros(0, np.int64)]
        for block in self.words.blocks:
            a, b = np.searchsorted(rows, [block.first, block.first + block.rows])
            if a < b:
                held = self.words.read(block)
                found: Any = gather_lists(held.starts, held.words, rows[a:b] - np.uint32(block.first))
                counts.append(np.diff(found[0]))
                words.append(found[1])
        vocabulary, valid = self.words.vocabulary, np.ones(len(rows), np.bool_)
        return LaidWords(vocabulary, running_sum(np.concatenate(counts)), np.concatenate(words), valid, ())


def row_hashes(laid: LaidWords, rows: Int64) -> UInt64:
    """Hash the words of some rows; equal hashes only cost time."""
    if not len(rows):
        return np.zeros(0, np.uint64)
    some: Any = gather_lists(laid.starts, laid.words, rows)
    starts, words = some
    hashes = np.append(word_hashes(laid.vocabulary), np.uint64(1))[np.minimum(words, np.uint32(len(laid.vocabulary)))]
    places = np.arange(len(words)) - np.repeat(starts[:-1], np.diff(starts))
    odd = (2 * places + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    made: UInt64 = np.add.reduceat((hashes ^ (hashes >> np.uint64(29))) * odd, starts[:-1])
    return made


def join_equal(rows: UInt32, keys: UInt64, parents: UInt32) -> None:
    """Join the components of rows with equal keys."""
    order = np.argsort(keys)
    same = np.flatnonzero(keys[order][1:] == keys[order][:-1])
    kernels.join_pairs(rows[order[same]], rows[order[same + 1]], parents)


def roots_of(parents: UInt32) -> UInt32:
    """Return the last of each one's parents."""
    while not np.array_equal(further := parents[parents], parents):
        parents = further
    return parents


def near_duplicates(request: NearDuplicatesRequest, plan: LimitedPlan, schema: pl.Schema) -> pl.LazyFrame:
    """Return the plan of :meth:`polars_tadoc.namespaces.lazyframe.TadocLazyFrame.near_duplicates`."""

    def frames() -> Iterator[pl.DataFrame]:
        with (
            _opened(request, plan) as (rows, kept),
            Spill(LAYOUT, working_bytes(plan.limit) // 4, request.name) as spill,
        ):
            copies, candidates = rows.copies, 0
            for own in rows.batches():
                found = request.pairs(rows.laid(own), candidates)
                candidates = found.candidates
                copies[own] = own[found.firsts]
                _spill(spill, own[found.rows], own[found.others], found.similarities)
            for start in range(0, len(copies), BATCH):
                own = np.arange(start, min(start + BATCH, len(copies)), dtype=np.uint32)
                own = own[copies[own] != NONE]
                firsts = copies[copies[own]]  # of the first one in its block
                later = firsts != own
                _spill(spill, firsts[later], own[later], np.ones(np.count_nonzero(later)))
            labels = kept.all()
            for batch in spill.merged(batch=BATCH):
                assert batch.counts is not None
                ones, others = batch.keys.astype(np.int64).T
                yield request.result(labels, ones, others, batch.counts.view(np.float64))

    return plan.node(request, request.name, schema, frames)


def duplicate_groups(request: DuplicateGroupsRequest, plan: LimitedPlan, schema: pl.Schema) -> pl.LazyFrame:
    """Return the plan of :meth:`polars_tadoc.namespaces.lazyframe.TadocLazyFrame.duplicate_groups`."""

    def frames() -> Iterator[pl.DataFrame]:
        with _opened(request, plan) as (rows, kept):
            copies, candidates = rows.copies, 0
            groups = np.where(copies == NONE, np.arange(len(copies)), copies)
            for own in rows.batches():
                roots, candidates = request.groups(rows.laid(own), candidates)
                groups[own] = own[roots]
            labels = kept.all()
            for start in range(0, len(groups), BATCH):
                part = groups[start : start + BATCH]
                yield request.result(labels, np.arange(start, start + len(part)), groups[part])

    return plan.node(request, request.name, schema, frames)


@contextmanager
def _opened(
    request: NearDuplicatesRequest | DuplicateGroupsRequest, plan: LimitedPlan
) -> Iterator[tuple[_Rows, KeptLabels]]:
    """Read a plan."""
    with KeptLabels(plan.labels, request.name, plan.limit) as kept, SpillFolder(request.name) as folder:
        rows = _Rows(request, plan.limit, folder)
        rows.read(plan, kept)
        yield rows, kept


def _spill(spill: Spill, rows: UInt32, others: UInt32, similarities: Float64) -> None:
    if len(rows):
        order = np.argsort(rows.astype(np.uint64) << np.uint64(32) | others)
        spill.add(Records(NO_WORDS, np.stack([rows, others], axis=1)[order], similarities[order].view(np.uint64)))
