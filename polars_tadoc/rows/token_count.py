"""Counts the words of each row."""

from __future__ import annotations

from typing import Unpack

import numpy as np
import polars as pl

from polars_tadoc.compress.decompress import decompress
from polars_tadoc.kernels.host.rows import extract as kernels
from polars_tadoc.kernels.tokenize.row_words import count_row_words
from polars_tadoc.model.column import scatter_to_rows
from polars_tadoc.model.corpus import Corpus, require_countable
from polars_tadoc.runtime.array_types import UInt64
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks
from polars_tadoc.traversal.options import TokenizerOption, tokenizer_of
from polars_tadoc.traversal.text_corpus import WORDS, corpora_of, require_text


@ends_on_interrupt
@documented_by(decompress)
def token_count(column: pl.Series, **options: Unpack[TokenizerOption]) -> pl.Series:
    """Count the words of each row.

    Parameters
    ----------
    column
        Compressed column, or plain text (String, Categorical or Enum).
    tokenizer
        Cuts plain text into words, as for ``compress``; "words" by default. A compressed column is tokenized already.

    Returns
    -------
    UInt64 series
        One number per row; null for null rows.

    Raises
    ------
    NotCompressedError
        The series is neither text nor a compressed column.
    LimitExceededError
        The rows have more words than 64 bits can count.
    TypeError
        A compressed column was cut by another tokenizer.
    ValueError
        There is no such tokenizer, or a row of plain text is not UTF-8.

    Examples
    --------
    >>> column = pl.Series("text", ["to be or not to be", None, ""]).tadoc.compress()
    >>> tadoc.token_count(column).to_list()
    [6, None, 0]

    """
    tokenizer = tokenizer_of(options)
    column = require_text(column, "token_count")
    if column.dtype == pl.String:
        words = pl.Series(column.name, count_row_words(column, tokenizer or WORDS))
        if column.null_count():
            words = words.to_frame().select(pl.when(column.is_not_null()).then(words)).to_series()
        return words
    corpora = corpora_of(column, "token_count", tokenizer)
    require_countable(corpora)
    counts = np.concatenate([np.zeros(0, np.uint64), *(document_words(corpus) for corpus in corpora)])
    return scatter_to_rows(pl.Series(column.name, counts), [corpus.rows for corpus in corpora], len(column))


def document_words(corpus: Corpus) -> UInt64:
    """Return the number of words of each document, uint64; :func:`require_countable` was called before."""
    grammar = corpus.grammar
    lengths, short_lengths = grammar.expansion_lengths, grammar.short_lengths  # made here, not on several threads
    words = np.empty(corpus.document_count, np.uint64)

    def count(rows: tuple[int, int]) -> None:
        first, stop = rows
        offsets = corpus.root_offsets[first : stop + 1]
        kernels.count_words(grammar.vocabulary_size, lengths, short_lengths, offsets, corpus.roots, words[first:stop])

    map_parallel(count, weighted_chunks(corpus.root_offsets))
    return words
