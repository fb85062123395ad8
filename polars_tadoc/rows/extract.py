"""Random access to the words of each row by their number, without decompressing the row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import polars as pl

from polars_tadoc.compress.decompress import write_texts
from polars_tadoc.kernels.tokenize.row_words import count_row_words, find_row_words
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.corpus import Corpus, require_countable
from polars_tadoc.rows.cut import cut_words
from polars_tadoc.rows.numbers import MOST, TO_THE_END, Numbers, common_rows, lengths_of
from polars_tadoc.rows.token_count import document_words, token_count
from polars_tadoc.runtime.array_types import Int64, UInt64, array_dataclass
from polars_tadoc.runtime.documented import documented_by, with_imports
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.option_signature import takes_options
from polars_tadoc.runtime.plain_name import plain
from polars_tadoc.traversal.options import TokenizerOption, tokenizer_of
from polars_tadoc.traversal.text_corpus import WORDS, corpora_of, require_text


@with_imports
@takes_options
def extract(
    column: pl.Series,
    offset: int | pl.Series,
    length: int | pl.Series | None = None,
    **options: Unpack[TokenizerOption],
) -> pl.Series:
    """Return words of each row by their number, with the separators between them.

    Opens only the rules on the path to these words; the rest of the row is counted, not decompressed. Words are those
    of the column's tokenizer; for characters, decompress the column and use ``str.slice``, which has the same rules.

    Parameters
    ----------
    column
        Compressed column, or plain text (String, Categorical or Enum).
    offset
        Number of the first word, from 0; negative numbers count from the row's end. An integer, or integers by row.
    length
        Number of words, likewise; None (or null, or a number beyond 63 bits) for all words to the row's end.
    tokenizer
        Cuts plain text into words, as for ``compress``; "words" by default. A compressed column is tokenized already.

    Returns
    -------
    String series
        One string per row, from the start of the first word to the end of the last; empty if there is no such word,
        null if the row or the offset is null. If the column was compressed with ``lossless=False``, words are joined by
        spaces.

    Raises
    ------
    NotCompressedError
        The series is neither text nor a compressed column.
    TypeError
        ``offset`` or ``length`` is neither an integer nor a series of integers, or a compressed column was cut by
        another tokenizer.
    ValueError
        A length is negative, series differ in length, there is no such tokenizer, or a row of plain text is not UTF-8.
    InvalidGrammarError
        A payload is damaged, or a row in the part that is read.
    LimitExceededError
        The result of a compressed column (not the whole rows) has more words than ``Config(expansion_limit=)``, or more
        than sixteen times as many bytes, or does not fit in memory; or the rows have more words than 64 bits can count.

    Examples
    --------
    >>> column = pl.Series("text", ["To be, or not to be!", "To do."]).tadoc.compress()
    >>> tadoc.extract(column, 1, 3).to_list()
    ['be, or not', 'do']
    >>> tadoc.extract(column, pl.Series([-2, 5])).to_list()
    ['to be', '']

    """
    column, tokenizer = require_text(column, "extract"), tokenizer_of(options)
    offsets = Numbers.of(offset, "offset", "extract")
    lengths = np.full(1, TO_THE_END) if length is None else lengths_of(length, "length", "extract")
    rows = common_rows("extract", column=len(column), offset=len(offsets.values), length=len(lengths))
    return _Cuts("extract", offsets, lengths, tokenizer).run(column, rows)


@documented_by(extract)
def head(column: pl.Series, n: int | pl.Series = 5, **options: Unpack[TokenizerOption]) -> pl.Series:
    """Return the first words of each row, with the separators between them.

    Parameters
    ----------
    n
        Number of words; a negative number drops that many at the end. An integer, or integers by row.

    Returns
    -------
    String series
        As for :func:`extract`; null if the row or ``n`` is null.

    Raises
    ------
    TypeError
        ``n`` is neither an integer nor a series of integers.
    ValueError
        Series differ in length.

    Examples
    --------
    >>> column = pl.Series("text", ["To be, or not to be!", "To do."]).tadoc.compress()
    >>> tadoc.head(column, 3).to_list(), tadoc.head(column, -1).to_list()
    (['To be, or', 'To do'], ['To be, or not to', 'To'])

    """
    column, tokenizer = require_text(column, "head"), tokenizer_of(options)
    numbers = Numbers.of(n, "n", "head")
    counts = numbers.values
    rows = common_rows("head", column=len(column), n=len(counts))
    if counts.min(initial=0) < 0:
        words = token_count(column, **options).fill_null(0).to_numpy().astype(np.int64)
        counts = np.where(counts < 0, np.maximum(words + counts, 0), counts)
    offsets = Numbers(np.zeros(1, np.int64), numbers.valid)
    return _Cuts("head", offsets, counts.astype(np.uint64), tokenizer).run(column, rows)


@documented_by(
    head, n="Number of words; a negative number drops that many at the start. An integer, or integers by row."
)
def tail(column: pl.Series, n: int | pl.Series = 5, **options: Unpack[TokenizerOption]) -> pl.Series:
    """Return the last words of each row, with the separators between them.

    Examples
    --------
    >>> column = pl.Series("text", ["To be, or not to be!", "To do."]).tadoc.compress()
    >>> tadoc.tail(column, 3).to_list(), tadoc.tail(column, -1).to_list()
    (['not to be', 'To do'], ['be, or not to be', 'do'])

    """
    column, tokenizer = require_text(column, "tail"), tokenizer_of(options)
    numbers = Numbers.of(n, "n", "tail")
    rows = common_rows("tail", column=len(column), n=len(numbers.values))
    counts = np.where(numbers.values == 0, np.uint64(0), TO_THE_END)
    offsets = -np.maximum(numbers.values, -MOST)
    return _Cuts("tail", replace(numbers, values=offsets), counts, tokenizer).run(column, rows)


def extract_spans(
    column: pl.Series, rows: Int64, firsts: Int64, stops: Int64, call: str, tokenizer: Tokenizer | None
) -> pl.Series:
    """Return intervals of words of some rows, each row searched once.

    Parameters
    ----------
    column
        Compressed column, or String series.
    rows
        int64, ascending: the row of each interval, none of them null.
    firsts, stops
        int64, ascending within a row: the first word, and the one after the last, which may exceed the row.
    call
        The call's name, for messages.
    tokenizer
        Cuts plain text; None: into words.

    """
    if column.dtype == pl.String:
        starts, ends = find_row_words(column, tokenizer or WORDS, rows, firsts, stops)
        spans: Any = pl.Series(starts), pl.Series(ends - starts)
        return plain(column).gather(rows).cast(pl.Binary).bin.slice(*spans).cast(pl.String)
    corpora = corpora_of(column, call, tokenizer)
    require_countable(corpora)
    cuts, documents = [], np.full(len(column), -1, np.int64)
    for corpus in corpora:
        documents[corpus.rows] = np.arange(corpus.document_count)
        own = np.flatnonzero(documents[rows] >= 0)
        cuts.append(cut_words(corpus, own, documents[rows[own]], firsts[own], stops[own]))
        documents[corpus.rows] = -1
    return write_texts(cuts, column.name, len(rows), call)


@array_dataclass
class _Cuts:
    """The words to return of each row."""

    call: str
    """The call's name, for messages."""
    offsets: Numbers
    """Number of the first word, negative from the end; null rows stay null."""
    lengths: UInt64
    """uint64: number of words. Both are either one value for all rows, or one by row."""
    tokenizer: Tokenizer | None
    """Cuts plain text; None: into words."""

    @ends_on_interrupt
    def run(self, column: pl.Series, rows: int) -> pl.Series:
        """Cut ``rows`` rows; a column of length one is repeated for all offsets."""
        valid = self.offsets.valid
        texts = self._text(column, rows) if column.dtype == pl.String else self._compressed(column, rows)
        if valid is None:
            return texts
        return texts.to_frame("text").select(pl.when(pl.Series(valid)).then("text").alias(column.name)).to_series()

    def _text(self, text: pl.Series, rows: int) -> pl.Series:
        """Cut plain text: the results are views of it."""
        tokenizer, by_row = self.tokenizer or WORDS, np.arange(rows)
        documents = by_row if rows == len(text) else np.zeros(rows, np.int64)
        firsts, stops = self._spans(lambda: count_row_words(text, tokenizer), by_row, documents)
        order = by_row if rows == len(text) else np.argsort(firsts, kind="stable")
        starts, ends = np.empty(rows, np.int64), np.empty(rows, np.int64)
        starts[order], ends[order] = find_row_words(text, tokenizer, documents, firsts[order], stops[order])
        repeated = text if rows == len(text) else text.new_from_index(0, rows)
        spans: Any = pl.Series(starts), pl.Series(ends - starts)
        return repeated.cast(pl.Binary).bin.slice(*spans).cast(pl.String).alias(text.name)

    def _compressed(self, column: pl.Series, rows: int) -> pl.Series:
        corpora = corpora_of(column, self.call, self.tokenizer)
        require_countable(corpora)
        cuts = [self._one_document(corpus, rows) if rows != len(column) else self._rows(corpus) for corpus in corpora]
        return write_texts(cuts, column.name, rows, self.call)

    def _rows(self, corpus: Corpus) -> Corpus:
        """Cut each document once."""
        documents = np.arange(corpus.document_count)
        return cut_words(
            corpus, corpus.rows, documents, *self._spans(lambda: document_words(corpus), corpus.rows, documents)
        )

    def _one_document(self, corpus: Corpus, rows: int) -> Corpus:
        """Make all cuts of the only document, in the order of its words, so that it is searched once."""
        documents = np.zeros(rows, np.int64)
        firsts, stops = self._spans(lambda: document_words(corpus), np.arange(rows), documents)
        order = np.argsort(firsts, kind="stable")
        return cut_words(corpus, order, documents, firsts[order], stops[order])

    def _spans(self, count: Callable[[], UInt64], rows: Int64, documents: Int64) -> tuple[Int64, Int64]:
        """Return first word and the one after the last, by row; the last may be beyond the document.

        ``count`` gives the words of each document, which only negative offsets need.
        """
        offsets = np.broadcast_to(self.offsets.at(rows), len(rows))
        lengths = self.lengths if len(self.lengths) == 1 else self.lengths[rows]
        firsts = offsets
        if offsets.min(initial=0) < 0:
            words = count().astype(np.int64)[documents]
            firsts = np.where(offsets < 0, words + offsets, offsets)
        before = np.where(firsts < 0, -firsts, 0).astype(np.uint64)  # positions before the document count
        firsts = np.maximum(firsts, 0)
        lengths = np.minimum(np.maximum(lengths, before) - before, np.uint64(MOST) - firsts.astype(np.uint64))
        return firsts, firsts + lengths.astype(np.int64)
