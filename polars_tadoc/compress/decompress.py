"""Decompresses a column; expands only rows that it has, not whole grammars."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.config import settings
from polars_tadoc.engine.progress import STEPS, bar_of
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError
from polars_tadoc.kernels.host.rows import expand as kernels
from polars_tadoc.model.column import require_tadoc, scatter_to_rows, split
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.runtime.array_types import Int64
from polars_tadoc.runtime.arrow_memory import allocate, binary_views
from polars_tadoc.runtime.documented import with_imports
from polars_tadoc.runtime.interrupts import interruptible
from polars_tadoc.runtime.option_signature import takes_progress
from polars_tadoc.runtime.parallel import map_beside, map_parallel, weighted_chunks

WRONG = {
    kernels.GAPS_CUT: "its gaps end inside a number",
    kernels.GAP_RANGE: "its gaps have a code that the grammar lacks",
    kernels.GAP_PLACE: "its gaps continue after its last word",
}


@with_imports
@takes_progress
def decompress(column: pl.Series, *, progress: bool | None = None) -> pl.Series:
    """Return the text, byte for byte.

    Parameters
    ----------
    column
        Compressed column. If it was compressed with ``lossless=False``, words are joined by spaces.
    progress
        Whether to show a progress bar (tqdm) on standard error; by default as ``tadoc.Config`` says.

    Returns
    -------
    String series
        One string per row; null for null rows.

    Raises
    ------
    NotCompressedError
        The series is not a compressed column.
    InvalidGrammarError
        A payload or a row is damaged.
    LimitExceededError
        The rows have more words than ``Config(expansion_limit=)`` or more than sixteen times as many bytes, or the text
        does not fit in memory.

    Examples
    --------
    >>> column = pl.Series("text", ["one  fish", "two fish"]).tadoc.compress()
    >>> tadoc.decompress(column.slice(1, 1)).to_list()
    ['two fish']

    """
    column = require_tadoc(column, "decompress")
    with interruptible(), bar_of(len(column), "decompress", by=STEPS):
        return write_texts(split(column), column.name, len(column), "decompress")


def write_texts(corpora: Sequence[Corpus], name: str, rows: int, call: str) -> pl.Series:
    """Write the text of all documents into a String series of ``rows`` rows; null in rows without a document.

    Errors as for :func:`decompress`, with the name of the call.
    """
    try:
        allowance = Allowance(call, corpora)
        gaps = [_Gaps(corpus) for corpus in corpora]  # threads must not call Polars, whose threads may wait for them
        sizes = [corpus.symbol_count for corpus in corpora]
        made = map_beside(lambda k: _texts(corpora[k], gaps[k], allowance), range(len(corpora)), sizes)
        texts = [cast(pl.Series, pl.from_arrow(own)) for parts in made for own in parts]
    except MemoryError as error:  # includes PyArrow's
        raise LimitExceededError(f"{call}: the text does not fit in memory; use fewer rows at a time") from error
    if not texts:
        return pl.Series(name, [None], pl.String).new_from_index(0, rows)
    together = pl.concat(texts, rechunk=True)  # moves views, not text
    return scatter_to_rows(together.alias(name), [corpus.rows for corpus in corpora], rows)


@dataclass(frozen=True)
class Sizes:
    """Words and UTF-8 bytes of each document, int64; bytes may be upper bounds."""

    words: Int64
    bytes: Int64

    def of_rows(self, rows: tuple[int, int]) -> tuple[Int64, Int64]:
        """Those of the documents from one number to before another."""
        return self.words[slice(*rows)], self.bytes[slice(*rows)]


WORDS_BY_SYMBOL = 1 << 16
"""Maximum words of a call's rows for each stored symbol: 10,000 equal rows of 10,000 words have 7,000."""

FREE_WORDS = 1 << 28
"""Words that a call's rows may have with any number of stored symbols, or a 32nd of the limit if that is more."""

_FEW_SYMBOLS = (
    ", but only {:,} symbols store them, as in data made to waste memory; if it is trusted, raise the limit to 32 "
    "times their words: tadoc.Config(expansion_limit=…)"
)


class Allowance:
    """The limit on all rows of one call: ``Config(expansion_limit=)`` words, and sixteen times as many bytes.

    Parameters
    ----------
    call
        Its name.
    corpora
        The rows, if the call writes or reads each of their words: a grammar of 100 bytes may not cost minutes.

    """

    def __init__(self, call: str, corpora: Sequence[Corpus] = ()) -> None:
        self.call, self.limit = call, settings().expansion_limit
        self._stored = 0
        if corpora:
            stored = StoredSymbols()
            stored.add(corpora)
            self._stored = stored.count
            self.limit = min(self.limit, stored.most_words)
        self.words_left, self.bytes_left = self.limit, 16 * self.limit
        self._lock = allocate_lock()

    def take(self, words: int, size: int) -> None:
        """Count words and bytes of rows; raise ``LimitExceededError`` beyond the limit."""
        with self._lock:
            self.words_left -= words
            self.bytes_left -= size
        if self.words_left < 0 or self.bytes_left < 0:
            raise self.exceeded()

    def exceeded(self) -> LimitExceededError:
        """Return the error, with advice."""
        most = f"{self.call}: the rows expand to more than {self.limit:,} words or {16 * self.limit:,} bytes"
        if self.limit < settings().expansion_limit:
            return LimitExceededError(f"{most}{_FEW_SYMBOLS.format(self._stored)}")
        return LimitExceededError(
            f"{most}; use fewer rows at a time, or if the data is trusted raise the limit: "
            "tadoc.Config(expansion_limit=…)"
        )


class StoredSymbols:
    """The symbols that store rows of a call, of which more may follow."""

    def __init__(self) -> None:
        self.count = 0
        self._grammars: set[str] = set()

    def add(self, corpora: Sequence[Corpus]) -> None:
        """Count more rows, and their grammars once each."""
        for corpus in corpora:
            self.count += int(corpus.root_offsets[-1] - corpus.root_offsets[0])
            if corpus.key not in self._grammars:
                self._grammars.add(corpus.key)
                self.count += corpus.grammar.vocabulary_size + len(corpus.grammar.symbols)

    def require(self, words: int, call: str) -> None:
        """Raise ``LimitExceededError`` if the rows have more words than :attr:`most_words`."""
        if words > self.most_words:
            most = f"{call}: the rows expand to more than {self.most_words:,} words"
            raise LimitExceededError(most + _FEW_SYMBOLS.format(self.count))

    @property
    def most_words(self) -> int:
        """Maximum words of these rows, if each word is read."""
        return max(FREE_WORDS, settings().expansion_limit >> 5, WORDS_BY_SYMBOL * self.count)


def document_sizes(corpus: Corpus, allowance: Allowance) -> Sizes:
    """Words and UTF-8 bytes of each document, counted towards the call's allowance; checks every gap stream.

    Raises
    ------
    InvalidGrammarError
        A row is damaged.
    LimitExceededError
        The call's rows have more words than ``Config(expansion_limit=)``, or too many bytes.

    """
    gaps = _Gaps(corpus)
    sizes = _bounds(corpus, gaps, allowance)
    _tighten(corpus, gaps, sizes)
    return sizes


class _Gaps:
    """Documents and their gaps, as kernels read them; it owns what the addresses point into."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._addresses, self._sizes, self._owner = binary_views(corpus.gaps)

    def of_rows(self, rows: tuple[int, int]) -> tuple[npt.NDArray[Any], ...]:
        """Offsets, symbols, addresses and sizes of the documents from one number to before another."""
        (first, stop), own = rows, slice(*rows)
        return self._corpus.root_offsets[first : stop + 1], self._corpus.roots, self._addresses[own], self._sizes[own]


def _bounds(corpus: Corpus, gaps: _Gaps, allowance: Allowance) -> Sizes:
    """Words of each document and an upper bound of its bytes; checks every gap stream."""
    grammar = corpus.grammar
    sizes = Sizes(np.empty(corpus.document_count, np.int64), np.empty(corpus.document_count, np.int64))
    # made here, not on several threads at once
    gap_bytes, expansion_lengths = grammar.gap_bytes, grammar.expansion_lengths
    led_bytes, leads = grammar.led_bytes, grammar.leads

    def measure(rows: tuple[int, int]) -> tuple[int, int]:
        code, row = kernels.measure(
            grammar.vocabulary_size,
            expansion_lengths,
            led_bytes,
            leads,
            gap_bytes,
            *gaps.of_rows(rows),
            allowance.words_left,
            allowance.bytes_left,
            *sizes.of_rows(rows),
        )
        return code, rows[0] + row

    chunks = weighted_chunks(corpus.root_offsets)
    outcomes = map_parallel(measure, chunks)
    for code, document in outcomes:
        if code in WRONG:
            raise InvalidGrammarError(f"row {corpus.rows[document]}: {WRONG[code]}: the data is damaged")
    if any(code == kernels.TOO_LONG for code, _ in outcomes):
        raise allowance.exceeded()
    for first, stop in chunks:  # one by one: their sum may exceed 64 bits
        allowance.take(int(sizes.words[first:stop].sum()), int(sizes.bytes[first:stop].sum()))
    return sizes


def _tighten(corpus: Corpus, gaps: _Gaps, sizes: Sizes) -> None:
    """Turn bounds of bytes into exact numbers, by a search per gap that was not predicted."""
    grammar = corpus.grammar
    leads = grammar.leads

    def tighten(rows: tuple[int, int]) -> None:
        kernels.replaced_bytes(
            *grammar.expansion,
            leads,
            grammar.gap_bytes,
            grammar.predicted_gaps,
            *gaps.of_rows(rows),
            *sizes.of_rows(rows),
        )

    map_parallel(tighten, weighted_chunks(corpus.root_offsets))


def _texts(corpus: Corpus, gaps: _Gaps, allowance: Allowance) -> list[pa.LargeStringArray]:
    grammar = corpus.grammar
    sizes = _bounds(corpus, gaps, allowance)
    if sizes.bytes.max(initial=0) >= 1 << 32:
        _tighten(corpus, gaps, sizes)
        if sizes.bytes.max() >= 1 << 32:
            row = corpus.rows[int(sizes.bytes.argmax())]
            raise LimitExceededError(
                f"{allowance.call}: row {row} expands to {sizes.bytes.max():,} bytes; a String has less than 2^32"
            )
    # held here while kernels read at their addresses: a cached property made on two threads at once keeps one
    word_data, gap_data = grammar.words.data, grammar.gaps.data
    strings = grammar.words.offsets, word_data.ctypes.data, grammar.gaps.offsets, gap_data.ctypes.data
    symbol_bytes, leads = grammar.symbol_bytes, grammar.leads
    starts = np.concatenate([[0], np.cumsum(sizes.bytes)])
    buffer, data = allocate(int(starts[-1]), np.uint8)
    address = data.ctypes.data
    chunks = weighted_chunks(starts)

    def write(rows: tuple[int, int]) -> None:
        first, stop = rows
        kernels.write(
            *grammar.expansion,
            symbol_bytes,
            leads,
            grammar.predicted_gaps,
            *strings,
            *gaps.of_rows(rows),
            *sizes.of_rows(rows),
            address + int(starts[first]),
            address + int(starts[stop]),
        )

    map_parallel(write, chunks)
    parts = []
    for first, stop in chunks:  # bytes were bounds: there may be unused space between the chunks' text
        offset_buffer, offsets = allocate(stop - first + 1, np.int64)
        offsets[0] = 0
        np.cumsum(sizes.bytes[first:stop], out=offsets[1:])
        text = buffer.slice(int(starts[first]), int(offsets[-1]))
        parts.append(pa.LargeStringArray.from_buffers(stop - first, offset_buffer, text))
    return parts
