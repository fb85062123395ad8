"""Lines and paragraphs on the device: marked, and made rows of their own for the first rounds.

The decision, and so the grammar, is that of :mod:`polars_tadoc.kernels.repair.lines.repeated_lines`. Equal lines are
not dropped here: all of them take part in the rounds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from polars_tadoc.kernels.repair.lines.lines_cpu import LINE_END, PARAGRAPH_END, SAMPLE_BITS, WORD
from polars_tadoc.kernels.repair.lines.repeated_lines import is_worthwhile, marks_of
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.device import device_errors

if TYPE_CHECKING:
    from polars_tadoc.kernels.repair.gaps_cuda import NotedGaps

_K1, _K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
LINE, PARAGRAPH, ROW = range(3)
"""Kinds of lines: the last one of a row, or of a paragraph, or neither."""

SYMBOL = (1 << 31) - 1
"""Bits of a symbol without the rounds' mark of dead positions."""


def mark_lines(sequence: Any, vocabulary_size: int, gaps: NotedGaps) -> bool:
    """Mark the ends of lines and paragraphs inside rows; return whether there may be any."""
    marks = marks_of(gaps.vocabulary, vocabulary_size)
    if len(marks) == 0:
        return False
    with device_errors(f"marking the lines of {len(sequence):,} words"):
        import cupy

        bits = cupy.asarray(marks)[gaps.ids]
        ends = bits != 0
        after, bits = gaps.tokens[ends], bits[ends]  # synchronize!
        before = after - (after > 0)
        inside = (after > 0) & (sequence[after] != SEPARATOR) & (sequence[before] != SEPARATOR)
        places = before[inside]  # synchronize!
        sequence[places] |= bits[inside]
    return True


@array_dataclass
class SplitLines:
    """Rows of which each line, or each paragraph, is a row."""

    sequence: Any
    """cupy uint32: words, a separator after each line."""
    ends_row: Any
    """cupy bool by separator: whether a row ends."""

    def join(self, symbols: Any) -> Any:
        """Return the symbols of rows from those of lines; symbols of the rounds may be marked as dead."""
        import cupy

        is_end = symbols == SEPARATOR
        kept = ~is_end
        kept[cupy.flatnonzero(is_end)] = self.ends_row  # synchronize!
        return cupy.where(is_end, symbols, symbols & np.uint32(SYMBOL))[kept]  # synchronize!


def split_lines(sequence: Any) -> SplitLines | None:
    """Make a row of each line, or paragraph, of a marked sequence, if they repeat; else clear the marks."""
    import cupy

    ends_row = sequence == SEPARATOR
    places = cupy.flatnonzero(sequence >= np.uint32(LINE_END))  # synchronize!
    last = sequence[places]
    ends = (last & np.uint32(PARAGRAPH_END) != 0).astype(np.uint8) + ends_row[places]  # LINE, PARAGRAPH or ROW
    level = _repeated_level(sequence, places, ends)
    words = cupy.where(ends_row, sequence, sequence & np.uint32(WORD))
    if level is None:
        sequence[:] = words
        return None
    places, ends = places[ends >= level], ends[ends >= level]
    inner = cupy.zeros(len(sequence), np.bool_)
    inner[places] = ends != ROW
    added = cupy.cumsum(inner, dtype=np.int64)
    split = cupy.full(len(sequence) + int(added[-1]), SEPARATOR, np.uint32)  # synchronize!
    split[cupy.arange(len(sequence)) + added - inner] = words
    return SplitLines(split, ends == ROW)


def _repeated_level(sequence: Any, places: Any, ends: Any) -> int | None:
    """Return which units repeat, paragraphs or lines; None if neither do."""
    import cupy

    is_row = ends == ROW
    rows = int(cupy.count_nonzero(is_row))  # synchronize!
    if rows == len(ends):
        return None
    stops, zero = places + 1, cupy.zeros(1, np.int64)
    starts = cupy.concatenate([zero, stops[:-1]])
    words = stops - starts - is_row
    hashes = (sequence & np.uint32(WORD)).astype(np.uint64) + np.uint64(1)
    hashes *= _K1
    hashes ^= hashes >> np.uint64(32)
    hashes *= _K2
    hashes[sequence == SEPARATOR] = 0
    hashes = _sums(hashes, starts, stops)
    row_stops = cupy.flatnonzero(is_row) + 1  # synchronize!
    row_hashes = _sums(hashes, cupy.concatenate([zero, row_stops[:-1]]), row_stops)
    is_distinct = _first_ones(row_hashes)[cupy.cumsum(is_row) - is_row]
    for level in (PARAGRAPH, LINE):
        own_stops = cupy.flatnonzero(ends >= level) + 1  # synchronize!
        if len(own_stops) == rows:
            continue
        own_starts = cupy.concatenate([zero, own_stops[:-1]])
        own_hashes = _sums(hashes, own_starts, own_stops)
        before = cupy.concatenate([zero, cupy.cumsum(words)])
        own_words = before[own_stops] - before[own_starts]
        distinct = is_distinct[own_starts]
        sampled = distinct & (own_hashes >> np.uint64(64 - SAMPLE_BITS) == 0)
        sample = own_words[sampled]  # synchronize!
        repeated = sample[~_first_ones(own_hashes[sampled])].sum()
        counts = (repeated, sample.sum(), own_words[distinct].sum(), cupy.count_nonzero(distinct))
        if is_worthwhile(*(int(count) for count in counts)):  # synchronize!
            return level
    return None


def _sums(hashes: Any, starts: Any, stops: Any) -> Any:
    """Sum the hashes of ranges, each times twice its number in its range and one, modulo 2^64."""
    import cupy

    numbers, zero = cupy.arange(1, 2 * len(hashes) + 1, 2, dtype=np.uint64), cupy.zeros(1, np.uint64)
    sums = cupy.concatenate([zero, cupy.cumsum(hashes)])
    numbers *= hashes
    weighted = cupy.concatenate([zero, cupy.cumsum(numbers)])
    first = np.uint64(2) * starts.astype(np.uint64)
    return weighted[stops] - weighted[starts] - first * (sums[stops] - sums[starts])


def _first_ones(hashes: Any) -> Any:
    """Tell which hashes do not occur earlier."""
    import cupy

    size = len(hashes)
    if size == 0:
        return cupy.empty(0, np.bool_)
    order = cupy.lexsort(cupy.stack([cupy.arange(size, dtype=np.uint64), hashes]))
    ascending = hashes[order]
    is_new = cupy.ones(size, np.bool_)
    is_new[1:] = ascending[1:] != ascending[:-1]
    first = cupy.empty(size, np.bool_)
    first[order] = is_new
    return first
