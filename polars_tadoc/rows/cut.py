"""Cuts intervals of words out of rows; the results are rows of the same grammar."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.errors import InvalidGrammarError
from polars_tadoc.kernels.host.rows import extract as kernels
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, array_dataclass
from polars_tadoc.runtime.arrow_memory import binary_views, owned
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

_ROOM = 32
"""Spare symbols beyond a row's own, and spare bytes beyond its gaps, before a buffer grows."""
_WRONG = {
    kernels.GAPS_CUT: "its gaps end inside a number",
    kernels.GAP_RANGE: "its gaps have a code that the grammar lacks",
}


def cut_words(corpus: Corpus, rows: Int64, documents: Int64, firsts: Int64, stops: Int64) -> Corpus:
    """Make documents from intervals of words.

    Parameters
    ----------
    corpus
        The rows to cut; 64 bits can count their words.
    rows
        int64: the row of each result.
    documents
        int64: the document of each cut. Consecutive cuts of one document with ascending ``firsts`` search it only
        once.
    firsts, stops
        int64: the first word, and the one after the last. Positions beyond the document's end are ignored.

    Raises
    ------
    InvalidGrammarError
        The gaps of a row are damaged in the part that is read.

    """
    addresses, gap_sizes, owner = binary_views(corpus.gaps)
    # made here, not on several threads at once
    grammar = corpus.grammar
    expansion_lengths, short_lengths, leading_gaps = (
        grammar.expansion_lengths,
        grammar.short_lengths,
        grammar.leading_gaps,
    )
    root_counts = np.diff(corpus.root_offsets)

    def cut(chunk: tuple[int, int]) -> _Rows:
        own = slice(*chunk)
        words, of = stops[own] - firsts[own], documents[own]
        made = _Rows.empty(
            len(of),
            int(np.minimum(words, root_counts[of] + _ROOM).sum()),
            int(np.minimum(words, gap_sizes[of] + _ROOM).sum()),
        )
        done = 0
        while True:
            code, done = kernels.cut(
                grammar.vocabulary_size,
                grammar.rule_offsets,
                grammar.symbols,
                grammar.level_count,
                expansion_lengths,
                short_lengths,
                leading_gaps,
                grammar.predicted_gaps,
                len(grammar.gap_vocabulary) + 1,
                corpus.root_offsets,
                corpus.roots,
                addresses,
                gap_sizes,
                of,
                firsts[own],
                stops[own],
                done,
                made.symbol_offsets,
                made.symbols,
                made.gap_offsets,
                made.gaps,
            )
            if code == kernels.OK:
                return made
            if code in _WRONG:
                raise InvalidGrammarError(f"row {corpus.rows[of[done]]}: {_WRONG[code]}: the data is damaged")
            made = made.grown(done)

    chunks = weighted_chunks(np.append(0, np.cumsum(root_counts[documents] + _ROOM)))
    parts = map_parallel(cut, chunks)
    del owner  # the addresses point into it
    roots = np.concatenate([part.symbols[: part.symbol_offsets[-1]] for part in parts])
    gaps = np.concatenate([part.gaps[: part.gap_offsets[-1]] for part in parts])
    root_offsets = _joined([part.symbol_offsets for part in parts])
    gap_offsets = _joined([part.gap_offsets for part in parts])
    return Corpus(corpus.key, grammar, rows, root_offsets, roots, _binary(gap_offsets, gaps))


@array_dataclass
class _Rows:
    """Rows under construction by the kernel: offsets of both parts, symbols, gap streams."""

    symbol_offsets: Int64
    symbols: UInt32
    gap_offsets: Int64
    gaps: UInt8

    @classmethod
    def empty(cls, rows: int, symbols: int, gap_bytes: int) -> _Rows:
        """Allocate."""
        offsets = (np.zeros(rows + 1, np.int64) for _ in range(2))
        return cls(next(offsets), np.empty(symbols, np.uint32), next(offsets), np.empty(gap_bytes, np.uint8))

    def grown(self, done: int) -> _Rows:
        """Allocate more after the finished rows."""
        symbols, gaps = (np.empty(2 * len(values) + _ROOM, values.dtype) for values in (self.symbols, self.gaps))
        for target, values, offsets in (
            (symbols, self.symbols, self.symbol_offsets),
            (gaps, self.gaps, self.gap_offsets),
        ):
            target[: offsets[done]] = values[: offsets[done]]
        return replace(self, symbols=symbols, gaps=gaps)


def _joined(parts: list[Int64]) -> Int64:
    """Concatenate offsets of lists in several consecutive arrays."""
    sizes = np.concatenate([np.diff(part) for part in parts])
    return np.append(0, np.cumsum(sizes))


def _binary(offsets: Int64, data: UInt8) -> pl.Series:
    buffers: list[Any] = [None, owned(offsets), owned(data)]
    return pl.Series("gaps", pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, buffers))
