"""Passages of a column larger than memory: reads it once, then the repeated windows in row order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from polars_tadoc.analytics.cleaning.drop_repeats import Cuts, DropRepeatsRequest
from polars_tadoc.analytics.cleaning.hits import GRAM_BASE, LAYOUT, Hits
from polars_tadoc.analytics.cleaning.kept_stretches import NO_WORDS
from polars_tadoc.analytics.cleaning.kept_words import KeptWords
from polars_tadoc.analytics.cleaning.laid_words import LaidWords
from polars_tadoc.analytics.cleaning.repeats import RepeatsRequest, passages_frame
from polars_tadoc.execute.splits import working_bytes
from polars_tadoc.execute.windows import Window
from polars_tadoc.kernels.host.passages import distinct as kernels
from polars_tadoc.kernels.host.passages import runs, stretches
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.records import Checkpoint, Spill, SpillFolder
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.records.records import Records
from polars_tadoc.runtime.array_types import Bools, Float64, Int64, UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.free_memory import GROWN_SHARE, give_back_memory

SPILL_SHARE = 4
"""Repeated windows that wait to be written, or are read back, take this share of the limit."""

BATCH = 1 << 18
"""Repeated windows, neighbours alike counted as one, that are read back at a time."""


@array_dataclass
class Passages:
    """Passages of consecutive rows, in row order."""

    first: int
    """Number of the first row."""
    words: Int64
    """int64 by row: words after normalisation."""
    rows: Int64
    begins: Int64
    ends: Int64
    """``rows``, ``begins``, ``ends``: int64 by passage: number of the row in the plan, its first own word, and the one
    after the last."""
    covered: Int64
    """int64 by passage: words after normalisation."""
    copies: UInt64
    are_first: Bools

    @property
    def stop(self) -> int:
        """Number of the row after the last one."""
        return self.first + len(self.words)

    def frame(self, labels: Labels) -> pl.DataFrame:
        """Return the result of :func:`polars_tadoc.repeats`."""
        found = self.rows, self.begins, self.ends - self.begins, self.copies, self.are_first
        return passages_frame(labels, *found)

    @property
    def cuts(self) -> Cuts:
        """The passages, rows numbered from 0."""
        return Cuts(self.rows - self.first, self.begins, self.ends)

    @property
    def shares(self) -> Float64:
        """By row: share of its words in passages, float64; 0 for rows without words."""
        covered = np.zeros(len(self.words), np.int64)
        np.add.at(covered, self.rows - self.first, self.covered)
        return covered / np.maximum(self.words, 1)


@dataclass(frozen=True)
class PassageSearch:
    """How to find passages."""

    call: str
    length: int
    kind: int
    min_count: int
    tokenizer: Tokenizer | None
    morphism: Morphism | None

    @classmethod
    def of(cls, request: RepeatsRequest | DropRepeatsRequest) -> PassageSearch:
        """Return the search of a call."""
        kind, least = (runs.REPEATED, request.min_count) if isinstance(request, RepeatsRequest) else (request.kind, 2)
        return cls(request.name, request.length, kind, least, request.tokenizer, request.morphism)

    @property
    def asked(self) -> dict[str, Any]:
        """The options that determine the repeated windows, as JSON values."""
        windows = {"kind": self.kind, "min_count": self.min_count}
        return {"call": self.call, "length": self.length, **windows, **(self.morphism or Morphism()).described}

    def stream(self, windows: Iterable[Window], limit: int, checkpoint: Checkpoint | None = None) -> Iterator[Passages]:
        """Read the rows of a plan, then yield their passages, window by window; memory does not grow with the rows.

        Raises
        ------
        LimitExceededError
            A grammar with its rows, the distinct words, or the texts around one phrase do not fit.
        DiskFullError
            There is no room for the words' numbers.

        """
        grams = stretches.grams_of(GRAM_BASE, self.length) if checkpoint else stretches.draw_grams(self.length)
        with ExitStack() as stack:
            folder = stack.enter_context(SpillFolder(self.call))
            room = working_bytes(limit) // SPILL_SHARE
            spill = stack.enter_context(Spill(LAYOUT, room, self.call, checkpoint))
            words = KeptWords(self.call, folder, limit)
            for window in windows:
                words.add(window, self.tokenizer, self.morphism)
                give_back_memory(limit // GROWN_SHARE)
            Hits(words, grams, self.kind, self.min_count, limit, folder, spill, self.call).find()
            records = _ByRow(spill.merged(batch=BATCH))
            for block in words.blocks:
                hits = records.before(block.first + block.rows)
                yield self.passages(block.first, words.starts(block), words.places(block), hits)
                give_back_memory(limit // GROWN_SHARE)

    def joined(self, first: int, laid: LaidWords, hits: Sequence[Records]) -> Passages:
        """Return the passages of some rows; windows come from several shards, with rows numbered from 0."""
        keys = np.concatenate([np.zeros((0, 3), np.uint32), *(one.keys for one in hits)])
        counts = np.concatenate([np.zeros(0, np.uint64), *(one.counts for one in hits if one.counts is not None)])
        order = np.lexsort((keys[:, 1], keys[:, 0]))
        found = self.passages(0, laid.starts, laid.places, Records(NO_WORDS, keys[order], counts[order]))
        return replace(found, first=first, rows=found.rows + first)

    def passages(self, first: int, starts: Int64, places: UInt32 | None, hits: Records) -> Passages:
        """Return the passages of some rows.

        Parameters
        ----------
        first
            Number of the first row.
        starts, places
            As in :class:`LaidWords`.
        hits
            Their repeated windows, in row order; rows are numbered like ``first``.

        """
        counts = np.diff(starts) - 1
        rows, offsets, sizes = (column.astype(np.int64) for column in hits.keys.T)
        rows -= first
        are_first, sizes = (sizes & 1).astype(np.uint8), sizes >> 1
        amounts = np.zeros(0, np.uint64) if hits.counts is None else hits.counts
        if self.min_count == 1:  # every window, those that occur once, too
            whole = np.flatnonzero(counts >= self.length)
            order = np.argsort(np.append(whole, rows), kind="stable")
            offsets = np.append(np.zeros(len(whole), np.int64), offsets)[order]
            sizes = np.append(counts[whole] - self.length + 1, sizes)[order]
            are_first = np.append(np.ones(len(whole), np.uint8), are_first)[order]
            amounts = np.append(np.ones(len(whole), np.uint64), amounts)[order]
            rows = np.append(whole, rows)[order]
        made: Any = tuple(np.empty((3, len(rows)), np.int64))
        copies, firsts = np.empty(len(rows), np.uint64), np.empty(len(rows), np.uint8)
        given = (rows, offsets, sizes, are_first, amounts, self.length, self.kind, self.min_count)
        found = kernels.join_hits(*given, *made, copies, firsts)
        rows, begins, ends = (one[:found] for one in made)
        covered = ends - begins
        if places is not None:
            begins, ends = places[starts[rows] + begins].astype(np.int64), places[starts[rows] + ends - 1] + np.int64(1)
        return Passages(
            first, counts, rows + first, begins, ends, covered, copies[:found], firsts[:found].astype(np.bool_)
        )


class _ByRow:
    """Repeated windows in row order."""

    def __init__(self, batches: Iterator[Records]) -> None:
        self._batches = batches
        self._held: list[tuple[Any, Any]] = []

    def before(self, stop: int) -> Records:
        """Take the windows of the rows before ``stop``; batches have whole rows."""
        while not self._held or int(self._held[-1][0][-1, 0]) < stop:
            batch = next(self._batches, None)
            if batch is None:
                break
            self._held.append((batch.keys, batch.counts))
        keys = np.concatenate([np.zeros((0, 3), np.uint32), *(keys for keys, _ in self._held)])
        counts = np.concatenate([np.zeros(0, np.uint64), *(counts for _, counts in self._held)])
        taken = int(np.searchsorted(keys[:, 0], stop))
        self._held = [(keys[taken:], counts[taken:])] if taken < len(keys) else []
        return Records(NO_WORDS, keys[:taken], counts[:taken])
