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

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.repair.lines import lines_cpu as kernels
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks

INNER_ROUNDS = 6
"""Rounds inside lines or paragraphs. More of them are faster, but leave more symbols: pairs across their ends, which
may be more frequent, come too late."""

INNER_SHARE = 2, 3
"""Minimum share of its occurrences at which a pair must be selected inside units, as a fraction, unless the method's is
larger. With 1/2, manuals in versions have 0.4 to 0.5 % more symbols."""

MIN_REPEATED = 1, 2
"""Minimum share of words, as a fraction, in units that equal an earlier one. Of 26 corpora, versions and boot logs have
0.69 to 0.84 in distinct rows, bibliographies 0.47, all others 0.36 or less."""

MIN_WORDS = 4
"""Minimum words of a unit on average: shorter ones cost more time and memory than they save."""

UNITS_PER_TASK = 1 << 12
"""Minimum units per task."""


def inner_share(part: int, whole: int) -> tuple[int, int]:
    """Return the share for rounds inside units, given that for rounds over rows."""
    least, of = INNER_SHARE
    return (part, whole) if part * of > least * whole else INNER_SHARE


class Gaps(NamedTuple):
    """The gaps between the words of rows, as the tokenizer encodes them."""

    vocabulary: pa.LargeStringArray
    offsets: Int64
    """Offsets of each row's bytes; length rows + 1."""
    data: UInt8


def row_starts(sequence: UInt32) -> Int64:
    """Return the first position of each row, and the end of the last."""
    chunks = even_chunks(len(sequence))
    rows = running_sum(np.array(map_parallel(lambda c: kernels.count_ends(sequence[slice(*c)], SEPARATOR), chunks)))
    starts = np.empty(int(rows[-1]) + 1, np.int64)
    starts[0] = 0
    map_parallel(lambda k: kernels.list_starts(sequence, *chunks[k], starts[rows[k] + 1 :]), range(len(chunks)))
    return starts


def marks_of(gap_vocabulary: pa.LargeStringArray, vocabulary_size: int) -> UInt32:
    """Return by gap the bits of the word before it: a line end ends a line, two end a paragraph.

    Empty if no gap has any, or if words do not leave these bits free.
    """
    if vocabulary_size >= kernels.WORD or len(gap_vocabulary) == 0:
        return np.zeros(0, np.uint32)
    _, offset_buffer, data_buffer = gap_vocabulary.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64, len(gap_vocabulary) + 1, 8 * gap_vocabulary.offset)
    data = np.frombuffer(data_buffer, np.uint8) if offsets[-1] else np.zeros(0, np.uint8)
    marks = np.empty(len(gap_vocabulary), np.uint32)
    return marks if kernels.mark_gaps(offsets, data, marks) else marks[:0]


def mark_lines(sequence: UInt32, starts: Int64, vocabulary_size: int, gaps: Gaps) -> bool:
    """Mark the ends of lines and paragraphs inside rows that begin at ``starts``; return whether there may be any."""
    marks = marks_of(gaps.vocabulary, vocabulary_size)
    if len(marks) > 0:
        given = sequence, starts, gaps.offsets, gaps.data, marks
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
    ends_row: UInt8
    """By unit: whether it is the last one of a row."""

    @classmethod
    def of(cls, sequence: UInt32, mark: int) -> _Units:
        """Find the lines or paragraphs, which end at words with a mark."""
        chunks = even_chunks(len(sequence))
        counts = map_parallel(lambda own: kernels.count_ends(sequence[slice(*own)], mark), chunks)
        before = running_sum(np.array(counts))
        many = int(before[-1])
        found = cls(np.empty(many, np.int64), np.empty(many, np.uint64), np.empty(many, np.uint8))

        def hash_units(k: int) -> None:
            own = slice(before[k], before[k + 1])
            kernels.hash_units(sequence, *chunks[k], mark, found.stops[own], found.hashes[own], found.ends_row[own])

        map_parallel(hash_units, range(len(chunks)))
        return found

    @classmethod
    def repeated_in(cls, sequence: UInt32, starts: Int64) -> _Units | None:
        """Find the units that repeat: paragraphs, or else lines; if neither do, clear the marks and return None."""
        mark = _repeated_mark(sequence, starts)
        if mark is not None:
            return cls.of(sequence, mark)
        map_parallel(lambda own: kernels.clear_ends(sequence[slice(*own)]), even_chunks(len(sequence)))
        return None


class _Sample(NamedTuple):
    """Sampled lines (index 0) and paragraphs (1) of some rows."""

    hashes: UInt64
    words: Int64
    rows: Int64
    sampled: Int64
    """Number of either."""

    @classmethod
    def of(cls, sequence: UInt32, starts: Int64, row_hashes: UInt64, units: Int64) -> _Sample:
        """Take the sample of rows; fill their hashes, and their numbers of lines and paragraphs."""
        lines = kernels.count_ends(sequence[starts[0] : starts[-1]], kernels.LINE_MARK)
        sampled = np.full(2, (2 * lines >> kernels.SAMPLE_BITS) + 1)
        while True:
            room = 2, int(sampled.max())
            made = cls(np.empty(room, np.uint64), np.empty(room, np.int64), np.empty(room, np.int64), sampled)
            kernels.sample_units(sequence, starts, row_hashes, units, *made)
            if sampled.max() <= room[1]:
                return made


def _repeated_mark(sequence: UInt32, starts: Int64) -> int | None:
    """Return the mark of the units of distinct rows that repeat often enough by a sample, if any do."""
    rows, chunks = len(starts) - 1, weighted_chunks(starts)
    row_hashes, units, first_rows = np.empty(rows, np.uint64), np.empty((2, rows), np.int64), np.empty(rows, np.int64)

    def take(own: tuple[int, int]) -> _Sample:
        within = slice(*own)
        return _Sample.of(sequence, starts[own[0] : own[1] + 1], row_hashes[within], units[:, within])

    samples = map_parallel(take, chunks)
    if units[0].sum() == rows:
        return None
    kernels.list_first(row_hashes, 0, 1, first_rows)
    distinct = first_rows == np.arange(rows)
    words = int((np.diff(starts) - 1)[distinct].sum())
    for level, mark in ((1, kernels.PARAGRAPH_MARK), (0, kernels.LINE_MARK)):
        if units[level].sum() == rows:
            continue
        parts = []
        for (first, _), sample in zip(chunks, samples, strict=True):
            own = slice(sample.sampled[level])
            is_distinct = distinct[sample.rows[level, own] + first]
            parts.append((sample.hashes[level, own][is_distinct], sample.words[level, own][is_distinct]))
        hashes, sizes = (np.concatenate(fields) for fields in zip(*parts, strict=True))
        first_units = np.empty(len(hashes), np.int64)
        kernels.list_first(hashes, 0, 1, first_units)
        repeated = int(sizes[first_units != np.arange(len(hashes))].sum())
        if is_worthwhile(repeated, int(sizes.sum()), words, int(units[level, distinct].sum())):
            return mark
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
    def split(cls, sequence: UInt32, starts: Int64, classes: UInt8) -> tuple[RepeatedLines, UInt32, UInt8] | None:
        """Split marked rows into units if these repeat often enough; otherwise clear the marks and return None.

        Parameters
        ----------
        sequence
            Marked words of rows, a separator after each row.
        starts
            The first position of each row, and the end of the last.
        classes
            By position: the class of its row's weight; empty if all weights are 1.

        Returns
        -------
        (RepeatedLines, uint32 array, uint8 array) or None
            The units; the words of each distinct one, a separator after each; and by position the class of its weight.

        """
        units = _Units.repeated_in(sequence, starts)
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
