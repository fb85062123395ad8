"""Lines and paragraphs on the device: marked, and made rows of their own for the first rounds.

The decision, and so the grammar, is that of :mod:`polars_tadoc.kernels.repair.lines.repeated_lines`. Equal lines are
not dropped here: all of them take part in the rounds.
"""

from __future__ import annotations

from secrets import randbits
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from polars_tadoc.kernels.primitives.bitmap_cuda import rank
from polars_tadoc.kernels.repair.lines.lines_cpu import LINE_MARK, PARAGRAPH_MARK
from polars_tadoc.kernels.repair.lines.repeated_lines import is_worthwhile, marks_of
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.device import device_errors, even_blocks, launch, launch_each

_SECRET = randbits(64) | 1
"""Places in hash tables depend on it; no result does."""


def mark_lines(sequence: Any, vocabulary_size: int, gap_vocabulary: pa.LargeStringArray, ids: Any, tokens: Any) -> bool:
    """Mark the ends of lines and paragraphs inside rows; return whether there may be any.

    ``ids`` and ``tokens``, cupy uint32, tell by noted gap which it is, and the position of the symbol after it.
    """
    marks = marks_of(gap_vocabulary, vocabulary_size)
    if len(marks) == 0:
        return False
    with device_errors(f"marking the lines of {len(sequence):,} words"):
        import cupy

        noted = len(ids)
        launch_each("lines", "mark_lines", noted, ids, tokens, noted, cupy.asarray(marks), sequence)
    return True


class _Ends(NamedTuple):
    """A bitmap of the items that end a unit, and its ranks."""

    bits: Any
    ranks: Any

    @classmethod
    def of(cls, symbols: Any, mark: int, counts: Any = None) -> _Ends:
        """Find the symbols that are no smaller than a mark; ``counts`` for lines, paragraphs and rows may be wanted."""
        import cupy

        size, words = len(symbols), -(-len(symbols) // 32)
        bits = cupy.empty(words, np.uint32)
        launch("lines", "find_ends", even_blocks(size), 1024, symbols, size, mark, words, bits, counts)
        return cls(bits, rank(bits))


class _Units(NamedTuple):
    """Lines, or paragraphs or rows made of lines."""

    ends: _Ends
    places: Any
    """cupy uint32 by unit: its last item, a position or a line."""
    last: Any
    """cupy uint32 by unit: its last symbol."""
    hashes: Any
    """cupy uint64 by unit."""

    @classmethod
    def of(cls, symbols: Any, ends: _Ends, count: int, part_hashes: Any = None) -> _Units:
        """List and hash units: of lines given by their last symbols and hashes, or of words."""
        import cupy

        size, hashes = len(symbols), cupy.zeros(count, np.uint64)
        places, last = (cupy.empty(count, np.uint32) for _ in range(2))
        launch_each("lines", "place_ends", size, symbols, size, *ends, places, last)
        launch_each("lines", "hash_units", size, symbols, part_hashes, size, *ends, places, hashes)
        return cls(ends, places, last, hashes)

    def table(self) -> tuple[Any, int, int]:
        """Return empty slots of a hash table for these units, and what turns a hash into its slot."""
        import cupy

        bits = (2 * len(self.hashes)).bit_length()
        slots = cupy.empty(1 << bits, np.uint32)
        slots.data.memset_async(0xFF, slots.nbytes)
        return slots, 64 - bits, _SECRET


@array_dataclass
class SplitLines:
    """Rows of which each line, or each paragraph, is a row."""

    sequence: Any
    """cupy uint32: words, a separator after each line."""
    row_bits: Any
    """cupy uint32: a bit by separator, whether a row ends."""
    row_ranks: Any
    """cupy uint32: the ranks of these bits."""
    inner: int
    """Number of separators that end no row."""

    def join(self, symbols: Any) -> Any:
        """Return the symbols of rows from those of lines; symbols of the rounds may be marked as dead."""
        import cupy

        size, joined = len(symbols), cupy.empty(len(symbols) - self.inner, np.uint32)
        ends = _Ends.of(symbols, SEPARATOR)
        launch_each("lines", "join_units", size, symbols, size, *ends, self.row_bits, self.row_ranks, joined)
        return joined


def split_lines(sequence: Any) -> SplitLines | None:
    """Make a row of each line, or paragraph, of a marked sequence, if they repeat; else clear the marks."""
    import cupy

    size, counts = len(sequence), cupy.zeros(3, np.uint32)
    line_ends = _Ends.of(sequence, LINE_MARK, counts)
    line_count, paragraph_count, row_count = counts.get().tolist()  # synchronize!
    if line_count == row_count:
        return None
    lines = _Units.of(sequence, line_ends, line_count)
    rows = _Units.of(lines.last, _Ends.of(lines.last, SEPARATOR), row_count, lines.hashes)
    levels = {LINE_MARK: lines}
    if paragraph_count > row_count:
        ends = _Ends.of(lines.last, PARAGRAPH_MARK)
        levels = {PARAGRAPH_MARK: _Units.of(lines.last, ends, paragraph_count, lines.hashes), **levels}
    mark = _repeated(lines, rows, levels)
    if mark is None:
        launch_each("lines", "clear_marks", size, sequence, size)
        return None
    units = levels[mark]
    inner = len(units.last) - row_count
    split = cupy.empty(size + inner, np.uint32)
    paragraph_ends = (None, None) if mark == LINE_MARK else units.ends
    given = sequence, size, *line_ends, *paragraph_ends, *rows.ends
    launch_each("lines", "write_split", size, *given, split)
    return SplitLines(split, *_Ends.of(units.last, SEPARATOR), inner)


def _repeated(lines: _Units, rows: _Units, levels: dict[int, _Units]) -> int | None:
    """Return the mark of the first level whose units repeat, if any do."""
    import cupy

    count, distinct = len(rows.hashes), cupy.empty(len(rows.hashes), np.uint8)
    table = rows.table()
    launch_each("lines", "add_rows", count, rows.hashes, count, *table)
    launch_each("lines", "find_distinct", count, rows.hashes, count, *table, distinct)
    totals = cupy.zeros((len(levels), 4), np.uint32)
    for units, own in zip(levels.values(), totals, strict=True):
        last_lines = None if units is lines else units.places
        count, table = len(units.hashes), units.table()
        given = units.hashes, count, last_lines, *rows.ends, distinct, *table
        launch_each("lines", "add_sample", count, *given)
        launch("lines", "measure_units", even_blocks(count), 1024, *given, lines.places, lines.last, own)
    found = zip(levels, totals.get().tolist(), strict=True)  # synchronize!
    return next((mark for mark, numbers in found if is_worthwhile(*numbers)), None)
