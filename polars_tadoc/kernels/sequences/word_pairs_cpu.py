"""Own pairs of words: their number, their keys, and counters of pairs of hot words.

Indices are unsigned in kernels: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.keys.key_forms_cpu import Ranks
from polars_tadoc.kernels.sequences.bodies_cpu import Bodies, longest_document
from polars_tadoc.kernels.sequences.rule_ends_cpu import Ends, head_spans, rank_bits
from polars_tadoc.kernels.sequences.windows_cpu import Bounds, Chunk
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import polled_kernel, polled_njit

HOT = 8
"""Bits of the numbers of hot words, the most frequent ones of a text: counters of their pairs take 256 KiB."""

MIN_HOT = 1 << 22
"""From this many pairs of documents' symbols on, pairs of hot words have separate counters."""

_0, _1, _2 = (np.uint64(number) for number in (0, 1, 2))


@polled_kernel
def _count_pairs(
    terminals: int,
    symbols: UInt32,
    spans: UInt32,
    window: int,
    starts: Int64,
    firsts: Int64,
    stops: Int64,
    first: int,
    stop: int,
    counts: Int64,
) -> None:
    """Count the own pairs of pieces: pairs of a child's first words with the words before it."""
    began = interrupts()
    rules_from, most = nb.uint64(terminals), nb.uint64(window)
    for piece in range(nb.uint64(first), nb.uint64(stop)):
        if piece & nb.uint64(0x3FF) == 0 and interrupts() != began:
            return
        before, total = _0, _0
        own = nb.uint64(firsts[piece])
        for i in range(nb.uint64(starts[piece]), nb.uint64(stops[piece])):
            size = nb.uint64(spans[max(nb.uint64(symbols[i]) + _1, rules_from) - rules_from])
            if i >= own:
                full = min(size, most - before)  # words that pair with all the words before
                total += full * before + (size - full) * most - (size * (size - _1) - full * (full - _1)) // _2
            before = min(most, before + size)
        counts[piece] = total


@polled_njit
def _write_pairs(
    terminals: int,
    symbols: UInt32,
    rank: UInt32,
    sizes: Int64,
    begins: Int64,
    words: UInt32,
    window: int,
    bits: int,
    starts: Int64,
    firsts: Int64,
    stops: Int64,
    places: Int64,
    first: int,
    stop: int,
    keys: UInt64,
    hot: int,
    counters: UInt32,
) -> Any:
    """Write the own pairs of pieces, lower rank in the higher bits; return their end.

    Words are ranks above ``hot`` bits, which number the hot ones from 1 on. If there are counters, pairs of two hot
    words are counted there, by both numbers, and not written.
    """
    began = interrupts()
    recent = np.zeros(4 * window + 64, np.uint32)
    room = nb.uint64(len(recent))
    shift, rules_from, most = nb.uint64(bits), nb.uint64(terminals), nb.uint64(window)
    below, aside = nb.uint64(hot), nb.uint64(hot) if len(counters) > 1 else _0
    mask = (_1 << aside) - _1
    at = nb.uint64(places[first])
    for piece in range(nb.uint64(first), nb.uint64(stop)):
        if piece & nb.uint64(0xFF) == 0 and interrupts() != began:
            return nb.int64(at)
        if places[piece + _1] == places[piece]:
            continue
        before, end, owned = _0, _0, nb.uint64(firsts[piece])
        for i in range(nb.uint64(starts[piece]), nb.uint64(stops[piece])):
            symbol = nb.uint64(symbols[i])
            rule = symbol - rules_from  # beyond all rules for a terminal
            is_rule = symbol >= rules_from
            size = nb.uint64(sizes[rule]) if is_rule else _1
            own = symbol if is_rule or len(rank) == 0 else nb.uint64(rank[symbol])
            head = nb.uint64(begins[rule]) if is_rule else _0
            for k in range(size if i >= owned else _0):
                word = nb.uint64(words[head + k]) if is_rule else own
                for j in range(end - min(before, most - k), end):
                    other = nb.uint64(recent[j])
                    low, high = min(word, other), max(word, other)
                    keys[at] = low >> below << shift | high >> below
                    low, high = low & mask, high & mask
                    counters[low << aside | high] += nb.uint32(1)  # no branch: half of all pairs are hot
                    at += nb.uint64(low == 0) | nb.uint64(high == 0)
            if end + size > room:
                for k in range(before):
                    recent[k] = recent[end - before + k]
                end = before
            if is_rule:
                tail = nb.uint64(begins[rule + _1]) - size
                for k in range(size):
                    recent[end + k] = words[tail + k]
            else:
                recent[end] = own
            end += size
            before = min(most, before + size)
    return nb.int64(at)


@dataclass(frozen=True)
class PairWindows:
    """Pairs of words; heads and tails have as many words as two paired words may be apart.

    Words of ``ends`` are ranks above ``hot_bits`` bits, which number the ``hot`` ranks, ascending, from 1 on.
    """

    ends: Ends
    hot_bits: int
    hot: UInt32

    @classmethod
    def of(cls, bodies: Bodies, rank: UInt32 | None, window: int) -> PairWindows:
        """Fill heads and tails; the window is capped by the longest document."""
        window = max(min(window, longest_document(bodies, window)), 1)
        terminals = bodies.rules.terminals
        if len(bodies.roots) * window < MIN_HOT or rank_bits(terminals) + HOT > 32:
            return cls(Ends.of(bodies.rules, rank, window), 0, np.zeros(0, np.uint32))
        rank = np.arange(terminals, dtype=np.uint32) if rank is None else rank
        hot, words = hot_words(rank)
        return cls(Ends.of(bodies.rules, words, window), HOT, hot)

    @property
    def form(self) -> Ranks:
        """Two ranks always fit."""
        return Ranks(2, rank_bits(self.ends.terminals))

    @property
    def spans(self) -> UInt32:
        """None: pairs have no order that derived rules could keep."""
        return np.zeros(len(self.ends.sizes) + 1, np.uint32)

    @property
    def reach(self) -> int:
        """Maximum distance of two paired words."""
        return self.ends.reach

    def measure(self, symbols: UInt32, pieces: Bounds, chunk: Chunk, counts: Int64) -> None:
        """Count the own pairs of pieces."""
        _count_pairs(self.ends.terminals, symbols, head_spans(self.ends.sizes), self.reach, *pieces, *chunk, counts)

    def write(self, symbols: UInt32, pieces: Bounds, places: Int64, chunk: Chunk, keys: UInt64) -> None:
        """Write the own pairs of pieces to their positions."""
        self.write_cold(symbols, pieces, places, chunk, keys, np.zeros(1, np.uint32))

    def write_cold(
        self, symbols: UInt32, pieces: Bounds, places: Int64, chunk: Chunk, keys: UInt64, counters: UInt32
    ) -> Chunk:
        """Write the own pairs of pieces, but count those of two hot words; return the ranges of keys."""
        read = (*self.ends.read(symbols), self.form.bits, *pieces, places)
        return int(places[chunk[0]]), _write_pairs(*read, *chunk, keys, self.hot_bits, counters)

    def span(self, symbol: int) -> int:
        """Return the words of a symbol's head."""
        return 1 if symbol < self.ends.terminals else int(self.ends.sizes[symbol - self.ends.terminals])

    def lengths(self, lengths: UInt64) -> UInt64:
        """Return the pairs in texts of these lengths: each word pairs with up to ``reach`` words before it."""
        near = np.minimum(lengths, np.uint64(self.ends.reach))
        pairs: UInt64 = near * (near - (near > 0)) // np.uint64(2) + (lengths - near) * np.uint64(self.ends.reach)
        return pairs


def hot_words(rank: UInt32) -> tuple[UInt32, UInt32]:
    """Return the ranks of the hot words, the first ones, ascending; and all ranks above their hot numbers."""
    hot = np.sort(rank[: (1 << HOT) - 1])
    words = rank << np.uint32(HOT)
    words[: len(hot)] += np.searchsorted(hot, rank[: len(hot)]).astype(np.uint32) + np.uint32(1)
    return hot, words


def hot_pairs(hot: UInt32, bits: int, counters: UInt64) -> tuple[UInt64, UInt64]:
    """Return the keys, with ranks of ``bits`` bits, of the counted pairs of hot words, and their counts."""
    table = counters.reshape(1 << HOT, -1)[1:, 1:]
    low, high = np.nonzero(table)
    ranks = hot.astype(np.uint64)
    return ranks[low] << np.uint64(bits) | ranks[high], table[low, high]
