"""Layouts of 64-bit keys of words, and the conversion of keys to words.

Indices are unsigned: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np

from polars_tadoc.kernels.keys.key_buckets_cpu import AHEAD
from polars_tadoc.runtime.addresses import prefetch
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import kernel, polled_kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

_1 = np.uint64(1)
_AHEAD = np.uint64(AHEAD)


@kernel
def _unpack(
    keys: UInt64, width: int, words: UInt32, inverse: UInt32, column: int, many: int, first: int, stop: int
) -> None:
    """Write the words of packed ranks into columns of ``words``; without ``inverse`` a rank is the word."""
    mask = (_1 << nb.uint64(width)) - _1
    to, columns = nb.uint64(column), nb.uint64(many)
    for i in range(nb.uint64(first), nb.uint64(stop)):
        for k in range(columns):
            rank = (keys[i] >> (nb.uint64(width) * (columns - _1 - k))) & mask
            words[i, to + k] = inverse[rank] if len(inverse) > 0 else nb.uint32(rank)


@polled_kernel
def _copy_runs(keys: UInt64, width: int, starts: Int64, runs: UInt32, words: UInt32, first: int, stop: int) -> None:
    """Write the sequences of words whose numbers are packed in keys."""
    began = interrupts()
    mask = (_1 << nb.uint64(width)) - _1
    many, parts = nb.uint64(runs.shape[1]), nb.uint64(len(starts))
    flat = runs.reshape(-1)
    for i in range(nb.uint64(first), nb.uint64(stop)):
        if i & nb.uint64(0xFFFF) == 0 and interrupts() != began:
            return
        soon = keys[min(i + _AHEAD, nb.uint64(len(keys)) - _1)]
        for k in range(parts):
            shift = nb.uint64(width) * (parts - _1 - k)
            prefetch(flat, nb.int64(many * ((soon >> shift) & mask)))
            run, to = many * ((keys[i] >> shift) & mask), nb.uint64(starts[k])
            for j in range(many):
                words[i, to + j] = flat[run + j]


@dataclass(frozen=True)
class Ranks:
    """A key of packed ranks of words, the first word in the highest bits."""

    words: int
    bits: int

    @property
    def width(self) -> int:
        """Bits of a key."""
        return self.words * self.bits

    def unpack(self, keys: UInt64, inverse: UInt32, words: UInt32, column: int) -> None:
        """Write the keys' words into columns of ``words``, from ``column`` on.

        ``inverse`` is the word by rank, uint32; empty where words are their ranks.
        """
        map_parallel(
            lambda chunk: _unpack(keys, self.bits, words, inverse, column, self.words, *chunk), even_chunks(len(keys))
        )


@dataclass(frozen=True)
class Numbered:
    """A key that is the number of another key, in the same order."""

    distinct: UInt64
    form: Form

    @property
    def words(self) -> int:
        """Number of words of a key."""
        return self.form.words

    @property
    def width(self) -> int:
        """Bits of a key."""
        return max(1, (len(self.distinct) - 1).bit_length())

    def unpack(self, keys: UInt64, inverse: UInt32, words: UInt32, column: int) -> None:
        """Write the keys' words."""
        self.form.unpack(self.distinct[keys], inverse, words, column)


@dataclass(frozen=True)
class Spread:
    """A key of several equal parts, each a sequence of words that begins at one of ``starts``; parts may overlap."""

    part: Form
    starts: tuple[int, ...]

    @classmethod
    def of(cls, part: Form, words: int) -> Spread:
        """Cover ``words`` words, at least as many as the part has."""
        return cls(part, (*range(0, words - part.words, part.words), words - part.words))

    @property
    def words(self) -> int:
        """Number of words of a key."""
        return self.starts[-1] + self.part.words

    @property
    def width(self) -> int:
        """Bits of a key."""
        return len(self.starts) * self.part.width

    def unpack(self, keys: UInt64, inverse: UInt32, words: UInt32, column: int) -> None:
        """Write the keys' words."""
        width, part = self.part.width, self.part
        if isinstance(part, Numbered) and len(keys) * len(self.starts) >= len(part.distinct):
            runs, starts = unpack(part.distinct, part.form, inverse), np.array(self.starts, np.int64) + column
            map_parallel(lambda chunk: _copy_runs(keys, width, starts, runs, words, *chunk), even_chunks(len(keys)))
            return
        mask = np.uint64((1 << width) - 1)
        for k, start in enumerate(self.starts[::-1]):
            part.unpack((keys >> np.uint64(k * width)) & mask, inverse, words, column + start)


Form = Ranks | Numbered | Spread
"""Layout of a key."""


def unpack(keys: UInt64, form: Form, inverse: UInt32) -> UInt32:
    """Return the words of keys, uint32[keys, words]; ``inverse`` is the word by rank, empty if they are equal."""
    words = np.empty((len(keys), form.words), np.uint32)
    form.unpack(keys, inverse, words, 0)
    return words


def words_of(keys: UInt64, form: Form, rank: UInt32 | None) -> UInt32:
    """Return the words of keys, uint32[keys, words]; ``rank`` is the rank by word, None if they are equal."""
    inverse = np.zeros(0 if rank is None else len(rank), np.uint32)
    if rank is not None:
        inverse[rank] = np.arange(len(rank), dtype=np.uint32)
    return unpack(keys, form, inverse)
