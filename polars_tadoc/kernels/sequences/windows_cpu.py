"""Own windows of sequences: their number, and their keys, from heads and tails.

Each window of a document has one lowest rule (or the document) that contains it: there it spans two or more children.

Indices are unsigned in kernels: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np

from polars_tadoc.kernels.keys.key_forms_cpu import Form, Ranks, Spread
from polars_tadoc.kernels.sequences.rule_ends_cpu import SIZE, Ends, head_sizes, head_spans, pack_ends, rank_bits
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.addresses import prefetch
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import polled_kernel, polled_njit

Chunk = tuple[int, int]
Bounds = tuple[Int64, Int64, Int64]
"""Of each piece of a body: the first symbol read, the first one in whose words windows end, and the end."""

AHEAD = 16
"""Prefetch distance in symbols of a body."""

_0, _1, _2 = (np.uint64(number) for number in (0, 1, 2))
_AHEAD = np.uint64(AHEAD)


@polled_kernel
def count_windows(
    terminals: int,
    symbols: UInt32,
    spans: UInt32,
    reach: int,
    starts: Int64,
    firsts: Int64,
    stops: Int64,
    first: int,
    stop: int,
    counts: Int64,
) -> None:
    """Count the own windows of pieces: one ends at each word of their children's heads, except an owner's first words.

    ``spans`` are the numbers of words in heads: a terminal's, then each rule's.
    """
    began = interrupts()
    rules_from, most = nb.uint64(terminals), nb.uint64(reach)
    for piece in range(nb.uint64(first), nb.uint64(stop)):
        if piece & nb.uint64(0x3FF) == 0 and interrupts() != began:
            return
        total = _0
        for i in range(nb.uint64(starts[piece]), nb.uint64(firsts[piece])):
            total += nb.uint64(spans[max(nb.uint64(symbols[i]) + _1, rules_from) - rules_from])
        before = max(total, most)
        for i in range(nb.uint64(firsts[piece]), nb.uint64(stops[piece])):
            total += nb.uint64(spans[max(nb.uint64(symbols[i]) + _1, rules_from) - rules_from])
        counts[piece] = max(total, most) - before


@polled_kernel
def _write_packed(
    symbols: UInt32,
    ends: UInt64,
    reach: int,
    bits: int,
    starts: Int64,
    firsts: Int64,
    stops: Int64,
    places: Int64,
    first: int,
    stop: int,
    keys: UInt64,
) -> None:
    """Write the own windows of pieces as packed ranks; see :func:`pack_ends`."""
    began = interrupts()
    width, most = nb.uint64(bits), nb.uint64(reach)
    mask = nb.uint64(0xFFFFFFFFFFFFFFFF) >> nb.uint64(64 - bits * (reach + 1))
    words = (_1 << width * most) - _1
    last, limit = nb.uint64(len(symbols)) - _1, nb.uint64(places[stop])
    for piece in range(nb.uint64(first), nb.uint64(stop)):
        if piece & nb.uint64(0xFF) == 0 and interrupts() != began:
            return
        at = nb.uint64(places[piece])
        if nb.uint64(places[piece + _1]) == at:
            continue
        before, packed, own = _0, _0, nb.uint64(firsts[piece])
        for i in range(nb.uint64(starts[piece]), nb.uint64(stops[piece])):
            prefetch(ends, nb.int64(_2 * nb.uint64(symbols[min(i + _AHEAD, last)])))
            child = _2 * nb.uint64(symbols[i])
            head, size = ends[child] & words, ends[child] >> SIZE
            if i < own:
                before = min(most, before + size)
            elif before == most and at + most <= limit:
                for k in range(most):  # values beyond the child's words are overwritten
                    keys[at + k] = ((packed << width * (k + _1)) | (head >> width * (most - _1 - k))) & mask
                at += size
            else:
                for k in range(most - before, size):
                    keys[at] = ((packed << width * (k + _1)) | (head >> width * (most - _1 - k))) & mask
                    at += _1
                before = min(most, before + size)
            packed = (packed << width * size) | ends[child + _1]


@polled_njit
def _write_windows(
    terminals: int,
    symbols: UInt32,
    rank: UInt32,
    sizes: Int64,
    begins: Int64,
    words: UInt32,
    reach: int,
    bits: int,
    lags: Int64,
    starts: Int64,
    firsts: Int64,
    stops: Int64,
    places: Int64,
    first: int,
    stop: int,
    keys: UInt64,
) -> None:
    """Write the own windows of pieces: the packed terminals at distances ``lags`` before each one's last terminal."""
    began = interrupts()
    ring = _1
    while ring <= nb.uint64(reach):
        ring *= _2
    recent = np.zeros(ring, np.uint64)
    ring -= _1
    rules_from, most = nb.uint64(terminals), nb.uint64(reach)
    for piece in range(nb.uint64(first), nb.uint64(stop)):
        if piece & nb.uint64(0xFF) == 0 and interrupts() != began:
            return
        at = nb.uint64(places[piece])
        if nb.uint64(places[piece + _1]) == at:
            continue
        before, end = _0, _0
        for i in range(nb.uint64(starts[piece]), nb.uint64(stops[piece])):
            symbol = nb.uint64(symbols[i])
            rule = symbol - rules_from  # beyond all rules for a terminal
            is_rule = symbol >= rules_from
            size = nb.uint64(sizes[rule]) if is_rule else _1
            own = nb.uint64(begins[rule]) if is_rule else _0
            for k in range(size):
                if is_rule:
                    recent[end & ring] = words[own + k]
                else:
                    recent[end & ring] = rank[symbol] if len(rank) > 0 else nb.uint32(symbol)
                if before + k >= most and i >= nb.uint64(firsts[piece]):
                    packed = _0
                    for lag in lags:
                        packed = (packed << nb.uint64(bits)) | recent[(end - nb.uint64(lag)) & ring]
                    keys[at] = packed
                    at += _1
                end += _1
            if is_rule:
                stop_at = nb.uint64(begins[rule + _1])
                if stop_at - own > size:
                    for k in range(stop_at - size, stop_at):
                        recent[end & ring] = words[k]
                        end += _1
            before = min(most, before + size)


@polled_kernel
def _write_flat(
    symbols: UInt32, lags: Int64, bits: int, stops: Int64, places: Int64, first: int, stop: int, keys: UInt64
) -> None:
    """Write the windows of pieces without rules: the packed symbols at distances ``lags`` before the last one."""
    began = interrupts()
    for piece in range(nb.uint64(first), nb.uint64(stop)):
        if piece & nb.uint64(0xFF) == 0 and interrupts() != began:
            return
        ahead = nb.uint64(stops[piece] - places[piece + _1])
        for at in range(nb.uint64(places[piece]), nb.uint64(places[piece + _1])):
            packed = _0
            for lag in lags:
                packed = (packed << nb.uint64(bits)) | nb.uint64(symbols[at + ahead - nb.uint64(lag)])
            keys[at] = packed


@dataclass(frozen=True)
class PackedWindows:
    """Sequences of two words or more whose ranks fit 64 bits, from packed heads and tails of n - 1 words."""

    terminals: int
    reach: int
    form: Ranks
    spans: UInt32
    ends: UInt64

    @classmethod
    def of(cls, rules: Rules, rank: UInt32 | None, n: int) -> PackedWindows:
        """Fill heads and tails."""
        rank = np.arange(rules.terminals, dtype=np.uint32) if rank is None else rank
        form, sizes = Ranks(n, rank_bits(rules.terminals)), head_sizes(rules, n - 1)
        ends = np.empty(2 * (rules.terminals + rules.rule_count), np.uint64)
        pack_ends(rules.terminals, rules.rule_offsets, rules.symbols, rank, sizes, n - 1, form.bits, ends)
        return cls(rules.terminals, n - 1, form, head_spans(sizes), ends)

    def measure(self, symbols: UInt32, pieces: Bounds, chunk: Chunk, counts: Int64) -> None:
        """Count the own windows of pieces."""
        count_windows(self.terminals, symbols, self.spans, self.reach, *pieces, *chunk, counts)

    def write(self, symbols: UInt32, pieces: Bounds, places: Int64, chunk: Chunk, keys: UInt64) -> None:
        """Write the own windows of pieces to their positions."""
        _write_packed(symbols, self.ends, self.reach, self.form.bits, *pieces, places, *chunk, keys)

    def span(self, symbol: int) -> int:
        """Return the words of a symbol's head."""
        return int(self.spans[max(0, symbol - self.terminals + 1)])

    def lengths(self, lengths: UInt64) -> UInt64:
        """Return the number of windows in sequences of these lengths."""
        return np.maximum(lengths, np.uint64(self.reach)) - np.uint64(self.reach)


@dataclass(frozen=True)
class SpreadWindows:
    """Sequences of terminals that are sequences of words: several terminals together cover a whole sequence."""

    ends: Ends
    spans: UInt32
    form: Spread

    @classmethod
    def of(cls, rules: Rules, rank: UInt32 | None, n: int, terminal: Form) -> SpreadWindows:
        """Fill heads and tails; ``n`` counts words, ``terminal`` is the layout of a terminal's number."""
        ends = Ends.of(rules, rank, n - terminal.words)
        return cls(ends, head_spans(ends.sizes), Spread.of(terminal, n))

    @property
    def reach(self) -> int:
        """Terminals of a window after the first one."""
        return self.ends.reach

    def measure(self, symbols: UInt32, pieces: Bounds, chunk: Chunk, counts: Int64) -> None:
        """Count the own windows of pieces."""
        count_windows(self.ends.terminals, symbols, self.spans, self.reach, *pieces, *chunk, counts)

    def write(self, symbols: UInt32, pieces: Bounds, places: Int64, chunk: Chunk, keys: UInt64) -> None:
        """Write the own windows of pieces to their positions."""
        lags = self.reach - np.array(self.form.starts, np.int64)
        _write_windows(*self.ends.read(symbols), self.form.part.width, lags, *pieces, places, *chunk, keys)

    def span(self, symbol: int) -> int:
        """Return the terminals of a symbol's head."""
        return int(self.spans[max(0, symbol - self.ends.terminals + 1)])

    def lengths(self, lengths: UInt64) -> UInt64:
        """Return the number of windows in sequences of these numbers of terminals."""
        return np.maximum(lengths, np.uint64(self.reach)) - np.uint64(self.reach)


@dataclass(frozen=True)
class FlatWindows:
    """Sequences of terminals in documents without rules, otherwise as :class:`SpreadWindows`."""

    reach: int
    form: Ranks | Spread

    @classmethod
    def of(cls, n: int, terminal: Form) -> FlatWindows:
        """Pack single words contiguously, or longer terminals as they cover the sequence."""
        form = Ranks(n, terminal.width) if terminal.words == 1 else Spread.of(terminal, n)
        return cls(n - terminal.words, form)

    @property
    def spans(self) -> UInt32:
        """Number of terminals of a terminal: 1."""
        return np.ones(1, np.uint32)

    def measure(self, symbols: UInt32, pieces: Bounds, chunk: Chunk, counts: Int64) -> None:
        """Count the windows of pieces."""
        starts, firsts, stops = (bound[slice(*chunk)] for bound in pieces)
        lead = np.maximum(firsts - starts - self.reach, 0)
        counts[slice(*chunk)] = np.maximum(stops - starts - self.reach, 0) - lead

    def write(self, symbols: UInt32, pieces: Bounds, places: Int64, chunk: Chunk, keys: UInt64) -> None:
        """Write the windows of pieces to their positions."""
        starts = np.arange(self.reach + 1) if isinstance(self.form, Ranks) else np.array(self.form.starts, np.int64)
        width = self.form.bits if isinstance(self.form, Ranks) else self.form.part.width
        _write_flat(symbols, self.reach - starts, width, pieces[2], places, *chunk, keys)

    def span(self, symbol: int) -> int:
        """Return 1: each symbol is a terminal."""
        return 1

    def lengths(self, lengths: UInt64) -> UInt64:
        """Return the number of windows in sequences of these numbers of terminals."""
        return np.maximum(lengths, np.uint64(self.reach)) - np.uint64(self.reach)
