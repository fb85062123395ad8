"""Heads and tails, the first and last words of each rule.

The words of all windows follow from them without expansion (G-TADOC, Zhang et al., ICDE 2021, section IV-D).

Indices are unsigned in kernels: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.sequences.bodies_cpu import require_room
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.jit import kernel

SIZE = np.uint64(58)
"""Bits for packed words, below their number, which takes six bits."""

_0, _1, _2 = (np.uint64(number) for number in (0, 1, 2))


@kernel
def _fill_ends(
    terminals: int, rule_offsets: Int64, symbols: UInt32, rank: UInt32, sizes: Int64, starts: Int64, words: UInt32
) -> None:
    """Write each rule's head, and its tail if it differs, lowest rule first.

    Without ``rank``, the words' numbers are their ranks.
    """
    rules_from = nb.uint64(terminals)
    for r in range(nb.uint64(len(sizes))):
        size, start, stop = nb.uint64(sizes[r]), nb.uint64(starts[r]), nb.uint64(starts[r + _1])
        filled = _0
        i = nb.uint64(rule_offsets[r])
        while filled < size:
            symbol = nb.uint64(symbols[i])
            i += _1
            if symbol < rules_from:
                words[start + filled] = rank[symbol] if len(rank) > 0 else symbol
                filled += _1
            else:
                head = nb.uint64(starts[symbol - rules_from])
                many = min(nb.uint64(sizes[symbol - rules_from]), size - filled)
                for k in range(many):
                    words[start + filled + k] = words[head + k]
                filled += many
        if stop - start == size:
            continue
        filled = _0
        i = nb.uint64(rule_offsets[r + _1])
        while filled < size:
            i -= _1
            symbol = nb.uint64(symbols[i])
            if symbol < rules_from:
                filled += _1
                words[stop - filled] = rank[symbol] if len(rank) > 0 else symbol
            else:
                tail = nb.uint64(starts[symbol - rules_from + _1]) - _1
                many = min(nb.uint64(sizes[symbol - rules_from]), size - filled)
                for k in range(many):
                    words[stop - filled - _1 - k] = words[tail - k]
                filled += many


@kernel
def pack_ends(
    terminals: int,
    rule_offsets: Int64,
    symbols: UInt32,
    rank: UInt32,
    sizes: Int64,
    reach: int,
    bits: int,
    ends: UInt64,
) -> None:
    """Write the head of each symbol, packed from the highest bits down, with its size, then its packed tail.

    Sixteen bytes per symbol: four of them share a cache line. At most ``reach`` words are packed.
    """
    width, rules_from = nb.uint64(bits), nb.uint64(terminals)
    top = width * nb.uint64(reach - 1)
    mask = (_1 << width * nb.uint64(reach)) - _1
    for t in range(rules_from):
        ends[_2 * t] = (nb.uint64(rank[t]) << top) | (_1 << SIZE)
        ends[_2 * t + _1] = rank[t]
    for r in range(nb.uint64(len(sizes))):
        head, tail = _0, _0
        size = nb.uint64(sizes[r])
        filled = _0
        i = nb.uint64(rule_offsets[r])
        while filled < size:
            child = ends[_2 * nb.uint64(symbols[i])]
            head |= (child & mask) >> (width * filled)
            filled += child >> SIZE
            i += _1
        filled = _0
        i = nb.uint64(rule_offsets[r + _1])
        while filled < size:
            i -= _1
            place = _2 * nb.uint64(symbols[i])
            tail |= ends[place + _1] << (width * filled)
            filled += ends[place] >> SIZE
        at = _2 * (rules_from + r)
        ends[at] = head | (size << SIZE)
        ends[at + _1] = tail & mask


@dataclass(frozen=True)
class Ends:
    """Heads and tails of all rules: the input for windows of the bodies that contain them.

    A rule's head is ``words[starts[r]:]``, its tail ``words[:starts[r + 1]]``, ``sizes[r]`` ranks each; rules of at
    most ``reach`` words have one range for both.
    """

    terminals: int
    rank: UInt32
    sizes: Int64
    starts: Int64
    words: UInt32
    reach: int

    @classmethod
    def of(cls, rules: Rules, rank: UInt32 | None, reach: int) -> Ends:
        """Fill heads and tails of up to ``reach`` words."""
        rank = np.zeros(0, np.uint32) if rank is None else rank
        sizes = head_sizes(rules, reach)
        starts = running_sum(sizes * (1 + (rules.lengths > np.uint64(reach))))
        require_room(int(starts[-1]), "the first and last words of rules")
        words = np.empty(starts[-1], np.uint32)
        _fill_ends(rules.terminals, rules.rule_offsets, rules.symbols, rank, sizes, starts, words)
        return cls(rules.terminals, rank, sizes, starts, words, reach)

    def read(self, symbols: UInt32) -> tuple[Any, ...]:
        """Return the arguments of kernels that write the own windows of bodies of these symbols."""
        return self.terminals, symbols, self.rank, self.sizes, self.starts, self.words, self.reach


def rank_bits(terminals: int) -> int:
    """Return the bits of a word's rank."""
    return max(1, (terminals - 1).bit_length())


def head_sizes(rules: Rules, reach: int) -> Int64:
    """Return the words of each rule's head."""
    sizes: Int64 = np.minimum(rules.lengths, np.uint64(reach)).astype(np.int64)
    return sizes


def head_spans(sizes: Int64) -> UInt32:
    """Return the words of a terminal, and of each rule's head."""
    return np.append(1, sizes).astype(np.uint32)
