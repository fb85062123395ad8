"""Own windows, or pairs, of all rules and documents: split for threads and batches, as keys or counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.keys.key_buckets_cpu import Room, Shares
from polars_tadoc.kernels.keys.key_order_cpu import Batch, sum_in_key_order, sum_in_result_order
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.sequences.bodies_cpu import Bodies
from polars_tadoc.kernels.sequences.windows_cpu import Bounds, FlatWindows, PackedWindows, SpreadWindows
from polars_tadoc.kernels.sequences.word_pairs_cpu import PairWindows, hot_pairs
from polars_tadoc.runtime.array_types import Bools, Int64, UInt32, UInt64
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks
from polars_tadoc.runtime.scratch import scratch

BATCH = 1 << 23
"""Keys per thread that are counted at a time, 64 MiB: fewer would slow down cases that fit in memory."""

DISTINCT = 1 << 27
"""Keys of sequences that are counted at a time, 1 GiB: most are distinct, because rules hold the repeated ones."""

SHARES = 4
"""Minimum pieces per thread, if bodies are long, so that threads finish together."""

SMALLEST = 1 << 15
"""Windows of the smallest piece that a body is split into for that."""


Windows = PackedWindows | FlatWindows | SpreadWindows | PairWindows
"""Methods of counting and writing own windows."""


@dataclass(frozen=True)
class Pieces:
    """Own windows of owners (rules or documents), in pieces for threads and batches; long bodies are split.

    ``owners`` is the first piece of each owner, owners + 1.
    """

    windows: Windows
    symbols: UInt32
    bounds: Bounds
    counts: Int64
    owners: Int64

    @classmethod
    def of(cls, windows: Windows, offsets: Int64, symbols: UInt32, used: Bools | None = None) -> Pieces:
        """Make each body, or each used one, a piece."""
        bounds = offsets[:-1], offsets[:-1], offsets[1:]
        counts = _measure(windows, symbols, bounds)
        if used is not None:
            counts[~used] = 0
        return cls(windows, symbols, bounds, counts, np.arange(len(offsets), dtype=np.int64))

    def cut(self, most: int) -> Pieces:
        """Split pieces until each has at most ``most`` windows, or one symbol."""
        _, firsts, stops = self.bounds
        parts = np.minimum(-(-self.counts // most), stops - firsts).clip(1)
        if not len(parts) or parts.max() == 1:
            return self
        before = running_sum(parts)
        piece = np.repeat(np.arange(len(parts)), parts)
        part, sizes = np.arange(len(piece)) - before[piece], (stops - firsts)[piece]
        edges = [firsts[piece] + sizes * k // parts[piece] for k in (part, part + 1)]
        starts, again = self.bounds[0][piece], np.flatnonzero(parts[piece] > 1)
        owner = np.searchsorted(self.owners, piece[again], "right") - 1
        opened = self.bounds[0][self.owners[owner]]
        for k, least in zip(again.tolist(), opened.tolist(), strict=True):
            starts[k] = self._lead(least, int(edges[0][k]))
        counts = self.counts[piece]
        counts[again] = _measure(self.windows, self.symbols, (starts[again], edges[0][again], edges[1][again]))
        bounds = starts, edges[0], edges[1]
        return Pieces(self.windows, self.symbols, bounds, counts, before[self.owners]).cut(most)

    def _lead(self, least: int, first: int) -> int:
        """Return the first symbol from which on there are enough words before ``first`` for its windows."""
        missing = self.windows.reach
        while first > least and missing > 0:
            first -= 1
            missing -= self.windows.span(int(self.symbols[first]))
        return first

    def batches(self, most: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of pieces with at most ``most`` windows in total, or one piece more."""
        before, first = running_sum(self.counts), 0
        while before[first] < before[-1]:
            stop = max(int(np.searchsorted(before, before[first] + most, "right")) - 1, first + 1)
            yield first, stop
            first = stop

    def write(self, keys: UInt64, first: int = 0, stop: int | None = None) -> None:
        """Write the windows' keys contiguously."""
        starts, firsts, stops = (bound[first:stop] for bound in self.bounds)
        places = running_sum(self.counts[first:stop])
        map_parallel(
            lambda chunk: self.windows.write(self.symbols, (starts, firsts, stops), places, chunk, keys),
            weighted_chunks(places),
        )

    def write_cold(self, keys: UInt64, counters: UInt64, first: int = 0, stop: int | None = None) -> Shares:
        """Write the keys of pairs, but add pairs of two hot words to ``counters``; return the ranges of keys."""
        windows = self.windows
        assert isinstance(windows, PairWindows)
        bounds = self.bounds[0][first:stop], self.bounds[1][first:stop], self.bounds[2][first:stop]
        places = running_sum(self.counts[first:stop])
        chunks = weighted_chunks(places)
        counted = np.zeros((len(chunks), len(counters)), np.uint32)
        shares = map_parallel(
            lambda k: windows.write_cold(self.symbols, bounds, places, chunks[k], keys, counted[k]), range(len(chunks))
        )
        counters += counted.sum(axis=0, dtype=np.uint64)
        return shares


@dataclass(frozen=True)
class OwnedWindows:
    """Own windows of the rules with nonzero weight, and of documents."""

    rules: Pieces
    documents: Pieces

    @classmethod
    def by(cls, windows: Windows, bodies: Bodies) -> OwnedWindows:
        """Split them so that threads and batches have about equal shares."""
        rules = Pieces.of(windows, bodies.rules.rule_offsets, bodies.rules.symbols, bodies.weights > 0)
        documents = Pieces.of(windows, bodies.root_offsets, bodies.roots)
        total = int(rules.counts.sum() + documents.counts.sum())
        most = max(min(total // SHARES, BATCH * thread_count()) // thread_count(), SMALLEST)
        return cls(rules.cut(most), documents.cut(most))

    @property
    def of_rules(self) -> int:
        """Number of own windows of rules."""
        return int(self.rules.counts.sum())

    @property
    def total(self) -> int:
        """Number of windows."""
        return self.of_rules + int(self.documents.counts.sum())

    def keys(self) -> UInt64:
        """Return all keys, the rules' first."""
        keys = scratch(self.total, np.uint64)
        self.rules.write(keys)
        self.documents.write(keys[self.of_rules :])
        return keys

    def in_result_order(self, weights: UInt64, min_count: int, top: int | None) -> tuple[UInt64, UInt64]:
        """Count the windows, those of rules by their occurrences: keys and counts as in results."""
        return sum_in_result_order(self._batches(weights), min_count, top, self.rules.windows.form.width)

    def in_key_order(self, weights: UInt64) -> tuple[UInt64, UInt64]:
        """Count the windows as :meth:`in_result_order` does; keys ascend."""
        return sum_in_key_order(self._batches(weights), self.rules.windows.form.width)

    def _batches(self, weights: UInt64) -> Iterator[Batch]:
        windows = self.rules.windows
        most = max(BATCH * thread_count(), 1 if isinstance(windows, PairWindows) else DISTINCT)
        weights, room = np.repeat(weights, np.diff(self.rules.owners)), Room()
        for first, stop in self.rules.batches(most):
            sizes = self.rules.counts[first:stop]
            keys = room.take("keys", int(sizes.sum()))
            self.rules.write(keys, first, stop)
            yield keys, np.repeat(weights[first:stop], sizes), None
        hot = windows if isinstance(windows, PairWindows) and windows.hot_bits > 0 else None
        counters = np.zeros(1 if hot is None else 1 << 2 * hot.hot_bits, np.uint64)
        for first, stop in self.documents.batches(most):
            keys, shares = room.take("keys", int(self.documents.counts[first:stop].sum())), None
            if hot is None:
                self.documents.write(keys, first, stop)
            else:  # nearly half of a text's pairs are of hot words: they have counters, not keys
                shares = self.documents.write_cold(keys, counters, first, stop)
            yield keys, None, shares
        if hot is not None:
            yield *hot_pairs(hot.hot, hot.form.bits, counters), None


def _measure(windows: Windows, symbols: UInt32, bounds: Bounds) -> Int64:
    counts = np.zeros(len(bounds[0]), np.int64)
    sizes = running_sum(bounds[2] - bounds[0])
    map_parallel(lambda chunk: windows.measure(symbols, bounds, chunk, counts), weighted_chunks(sizes))
    return counts
