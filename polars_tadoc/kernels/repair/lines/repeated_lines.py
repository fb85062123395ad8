"""Lines or paragraphs that repeat whole, of which the first rounds of batch RePair see each once, with a weight.

If paragraphs or lines repeat, batch RePair has two phases: ``INNER_ROUNDS`` rounds inside them, then rounds over rows.
Symbols inside one after the first phase depend only on its words, so these rounds see equal ones once, and the second
phase has few symbols. Definition: :func:`polars_tadoc.kernels.repair.reference.batch_repair`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.repair.lines import lines_cpu as kernels
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks

INNER_ROUNDS = 6
"""Rounds inside lines or paragraphs. More of them are faster, but leave more symbols: pairs across their ends, which
may be more frequent, come too late."""

MIN_REPEATED = 1, 2
"""Minimum share of words, as a fraction, in units that equal an earlier one. Of 26 corpora, versions and boot logs have
0.69 to 0.84 in distinct rows, bibliographies 0.47, all others 0.36 or less."""

MIN_WORDS = 4
"""Minimum words of a unit on average: shorter ones cost more time and memory than they save."""

UNITS_PER_TASK = 1 << 12
"""Minimum units per task."""


class Gaps(NamedTuple):
    """The gaps between the words of rows, as the tokenizer encodes them."""

    vocabulary: pa.LargeStringArray
    offsets: Int64
    """Offsets of each row's bytes; length rows + 1."""
    data: UInt8


def row_starts(sequence: UInt32) -> Int64:
    """Return the first position of each row, and the end of the last."""
    ends = map_parallel(lambda c: np.flatnonzero(sequence[slice(*c)] == SEPARATOR) + c[0], even_chunks(len(sequence)))
    return np.concatenate([[-1], *ends]) + 1


def marks_of(gap_vocabulary: pa.LargeStringArray, vocabulary_size: int) -> UInt32:
    """Return by gap the bits of the word before it: a line end ends a line, two end a paragraph.

    Empty if no gap has any, or if words do not leave these bits free.
    """
    ends = np.asarray(pc.count_substring(gap_vocabulary, "\n"))
    if vocabulary_size >= kernels.WORD or not ends.any():
        return np.zeros(0, np.uint32)
    bits = np.array([0, kernels.LINE_END, kernels.LINE_END | kernels.PARAGRAPH_END], np.uint32)
    marks: UInt32 = bits[np.minimum(ends, 2)]
    return marks


def mark_lines(sequence: UInt32, vocabulary_size: int, gaps: Gaps) -> bool:
    """Mark the ends of lines and paragraphs inside rows; return whether there may be any."""
    marks = marks_of(gaps.vocabulary, vocabulary_size)
    if len(marks) > 0:
        given = sequence, row_starts(sequence), gaps.offsets, gaps.data, marks
        map_parallel(lambda own: kernels.mark_ends(*given, *own), weighted_chunks(gaps.offsets))
    return len(marks) > 0


def is_worthwhile(repeated: int, sampled: int, words: int, units: int) -> bool:
    """Tell whether to make rules inside units first, by numbers of words in distinct rows.

    Parameters
    ----------
    repeated, sampled
        Words of the sampled units that equal an earlier one, and of all sampled units.
    words, units
        Words, and number of units, of all distinct rows.

    """
    part, whole = MIN_REPEATED
    return words >= MIN_WORDS * units and 0 < part * sampled <= whole * repeated


class _Units(NamedTuple):
    """All lines or paragraphs of a sequence."""

    stops: Int64
    """By unit: the position after its last word, and after the separator if it is the last one of a row."""
    hashes: UInt64
    ends: UInt8
    """By unit: what ends with it, ``LINE``, ``PARAGRAPH`` or ``ROW``."""

    @classmethod
    def lines_of(cls, sequence: UInt32) -> _Units | None:
        """Find the lines; None if each row is one."""
        chunks = even_chunks(len(sequence))
        before = running_sum(np.array(map_parallel(lambda own: kernels.count_ends(sequence[slice(*own)]), chunks)))
        lines = int(before[-1])
        found = cls(np.empty(lines, np.int64), np.empty(lines, np.uint64), np.empty(lines, np.uint8))

        def hash_lines(k: int) -> None:
            own = slice(before[k], before[k + 1])
            kernels.hash_lines(sequence, *chunks[k], found.stops[own], found.hashes[own], found.ends[own])

        map_parallel(hash_lines, range(len(chunks)))
        return None if (found.ends == kernels.ROW).all() else found

    def at(self, level: int) -> _Units:
        """Return the lines, or the paragraphs or rows that they are in."""
        if level == kernels.LINE:
            return self
        ended = self.ends >= level
        sums = np.empty(int(np.count_nonzero(ended)), np.uint64)
        kernels.sum_hashes(self.hashes, self.ends, level, sums)
        return _Units(self.stops[ended], sums, self.ends[ended])

    @property
    def ends_row(self) -> UInt8:
        """Whether each unit is the last one of a row."""
        ends_row: UInt8 = (self.ends == kernels.ROW).view(np.uint8)
        return ends_row

    def repeat(self, first_rows: Int64) -> bool:
        """Tell whether units of distinct rows repeat often enough; ``first_rows``: by row, the first that equals it."""
        given = self.hashes, self.stops, self.ends_row, first_rows
        many = int(np.count_nonzero(self.hashes >> np.uint64(64 - kernels.SAMPLE_BITS) == 0))
        sample, words, first = np.empty(many, np.uint64), np.empty(many, np.int64), np.empty(many, np.int64)
        many, units, total = kernels.list_sample(*given, sample, words)
        sample, words, first = sample[:many], words[:many], first[:many]
        kernels.list_first(sample, 0, 1, first)
        return is_worthwhile(int(words[first != np.arange(many)].sum()), int(words.sum()), total, units)

    @classmethod
    def repeated_in(cls, sequence: UInt32) -> _Units | None:
        """Find the units of a marked sequence that repeat: paragraphs, or else lines; None if neither do."""
        lines = cls.lines_of(sequence)
        if lines is None:
            return None
        hashes = lines.at(kernels.ROW).hashes
        first_rows = np.empty(len(hashes), np.int64)
        kernels.list_first(hashes, 0, 1, first_rows)
        for level in (kernels.PARAGRAPH, kernels.LINE):
            units = lines.at(level)
            if len(units.stops) > len(hashes) and units.repeat(first_rows):
                return units
        kernels.clear_ends(sequence, lines.stops, lines.ends)
        return None


@dataclass(frozen=True)
class RepeatedLines:
    """Lines or paragraphs of which the rounds see each distinct one once."""

    numbers: Int64
    """By unit: the number of its distinct unit."""
    ends_row: UInt8
    row_classes: UInt8
    """By unit: the class of its row's weight; empty if all weights are 1."""

    @classmethod
    def split(cls, sequence: UInt32, classes: UInt8) -> tuple[RepeatedLines, UInt32, UInt8] | None:
        """Split marked rows into units if these repeat often enough; otherwise clear the marks and return None.

        Parameters
        ----------
        sequence
            Marked words of rows, a separator after each row.
        classes
            By position: the class of its row's weight; empty if all weights are 1.

        Returns
        -------
        (RepeatedLines, uint32 array, uint8 array) or None
            The units; the words of each distinct one, a separator after each; and by position the class of its weight.

        """
        units = _Units.repeated_in(sequence)
        if units is None:
            return None
        stops, ends_row = units.stops, units.ends_row
        row_classes = classes[stops - 1] if len(classes) > 0 else classes
        chunks = even_chunks(len(stops), UNITS_PER_TASK)
        first, own_classes, numbers = _find_equal(sequence, units, row_classes, chunks)
        sizes = np.array(map_parallel(lambda own: kernels.measure_kept(stops, ends_row, own_classes, *own), chunks))
        before = np.concatenate([np.zeros((1, 2), np.int64), np.cumsum(sizes, axis=0)])
        kept, kept_classes = np.empty(before[-1, 1], np.uint32), np.empty(before[-1, 1], np.uint8)

        def keep(k: int) -> None:
            given = sequence, stops, ends_row, own_classes, *chunks[k], *before[k]
            kernels.keep_units(*given, numbers, kept, kept_classes)

        map_parallel(keep, range(len(chunks)))
        map_parallel(lambda own: kernels.number_units(numbers, first, *own), chunks)
        return cls(first, ends_row, row_classes), kept, kept_classes

    def join(self, symbols: UInt32, sequence: UInt32) -> tuple[int, UInt8]:
        """Write the symbols of all rows to ``sequence``.

        Parameters
        ----------
        symbols
            Symbols of each distinct unit, a separator after each.
        sequence
            Room for no fewer symbols than the rows had words.

        Returns
        -------
        (int, uint8 array)
            The number of symbols and separators; and by position the class of its row's weight, if there are any.

        """
        starts, chunks = row_starts(symbols), even_chunks(len(self.numbers), UNITS_PER_TASK)
        given = starts, self.numbers, self.ends_row
        before = running_sum(np.array(map_parallel(lambda own: kernels.measure_units(*given, *own), chunks)))
        size = int(before[-1])
        classes = np.empty(size if len(self.row_classes) > 0 else 0, np.uint8)

        def write(k: int) -> None:
            kernels.join_units(symbols, *given, self.row_classes, *chunks[k], before[k], sequence, classes)

        map_parallel(write, range(len(chunks)))
        return size, classes


def _find_equal(
    sequence: UInt32, units: _Units, row_classes: UInt8, chunks: list[tuple[int, int]]
) -> tuple[Int64, UInt8, Int64]:
    """Return the first unit that equals each, the class of each one's weight, or ``DROPPED``, and work space."""
    size, parts = len(units.stops), min(len(chunks), thread_count())
    first, left, classes = np.empty(size, np.int64), np.zeros(size, np.int64), np.empty(size, np.uint8)
    map_parallel(lambda part: kernels.list_first(units.hashes, part, parts, first), range(parts))
    map_parallel(lambda own: kernels.confirm(sequence, units.stops, units.ends_row, first, *own), chunks)
    given = units.hashes, row_classes
    map_parallel(lambda part: kernels.classify(*given, part, parts, first, left, classes), range(parts))
    return first, classes, left
