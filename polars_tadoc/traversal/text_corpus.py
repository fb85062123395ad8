"""Plain text as corpora of words and rows without rules, for single calls."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.engine.choose import CPU
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, require_utf8
from polars_tadoc.model.blocks import cut_blocks
from polars_tadoc.model.column import require_series, require_tadoc, split
from polars_tadoc.model.corpus import TEXT, Corpus
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.model.kept_columns import split_and_keep
from polars_tadoc.model.payload import short_name
from polars_tadoc.traversal.text_source import TextSource, prepare_text

BLOCK_BYTES = 1 << 28
"""Text is cut into words and numbered in blocks of this size."""

BYTES_A_WORD = 6
"""Average bytes of text per word in European languages, for the choice of the engine."""

TEXT_BYTES = 1 << 30
"""Text that is counted at a time where no sequence of words is held: places in it are numbered in 31 bits on a GPU."""

WORDS = Tokenizer("words")
"""Default tokenizer."""


def is_text(dtype: Any) -> bool:
    """Whether a column of a type holds plain text: String, Categorical or Enum."""
    return dtype == pl.String or isinstance(dtype, (pl.Categorical, pl.Enum)) or dtype == pl.Categorical


def require_text(column: pl.Series, call: str) -> pl.Series:
    """Return plain text as a String column, or the storage of a compressed column.

    Raises
    ------
    NotCompressedError
        The column is of another type.

    """
    require_series(column, call)
    dtype = column.dtype
    if not is_text(dtype):
        return require_tadoc(column, call)
    return column if dtype == pl.String else column.cast(pl.String)


def corpora_of(
    column: pl.Series, call: str, tokenizer: Tokenizer | None = None, kept_for: object = None
) -> list[Corpus]:
    """Return the corpora of a column: those of a compressed one, or the blocks of plain text.

    Parameters
    ----------
    column
        Compressed, String, Categorical or Enum column.
    call
        The call, for messages.
    tokenizer
        Tokenizer of plain text, default: words; a compressed column must have been cut by the same one.
    kept_for
        While this object lives, the corpora of a compressed column, which have no gaps, are kept for the next call;
        None: they are not.

    Raises
    ------
    NotCompressedError
        The column is of another type.
    TypeError
        A compressed column was cut by another tokenizer.
    ValueError
        A row is not UTF-8.
    InvalidGrammarError, LimitExceededError
        A payload or a row is damaged or too large.

    """
    column = require_text(column, call)
    if column.dtype == pl.String:
        return list(text_corpora(column, tokenizer or WORDS))
    corpora = split(column) if kept_for is None else split_and_keep(column, kept_for)
    for corpus in corpora:
        require_tokenizer(corpus, tokenizer, call)
    return corpora


def require_tokenizer(corpus: Corpus, tokenizer: Tokenizer | None, call: str) -> None:
    """Raise ``TypeError`` if a compressed corpus was cut by a tokenizer other than ``tokenizer=``."""
    own = corpus.grammar.tokenizer
    if tokenizer is not None and tokenizer.name != own:
        raise TypeError(
            f'{call}: tokenizer= is for String columns; {short_name(corpus.key)} was cut by "{own}", not '
            f'"{tokenizer.name}": leave it out, or decompress and compress(tokenizer=…) again'
        )


@contextmanager
def naming_rows(text: pl.Series, first: int) -> Iterator[None]:
    """Name the row of the whole column, whose first row has a number, in errors on text that is not UTF-8."""
    try:
        yield
    except ValueError:
        require_utf8(text, first)
        raise


def cut_on_cpu(text: pl.Series, tokenizer: Tokenizer) -> TextSource:
    """Cut a block of text and number its words."""
    return prepare_text(text, tokenizer, CPU)


def text_corpora(
    text: pl.Series,
    tokenizer: Tokenizer,
    first: int = 0,
    most: int = BLOCK_BYTES,
    cut: Callable[[pl.Series, Tokenizer], TextSource] = cut_on_cpu,
) -> Iterator[Corpus]:
    """Cut plain text into words block by block, in a fraction of the time of compressing.

    Parameters
    ----------
    text
        String column; null rows are not documents. Separators of words are dropped.
    tokenizer
        The tokenizer.
    first
        Number of its first row.
    most
        Maximum bytes of a block, except for blocks of one longer row.
    cut
        Cuts a block, on any engine.

    Raises
    ------
    ValueError
        A row is not UTF-8.

    Examples
    --------
    >>> import polars as pl
    >>> from polars_tadoc.traversal.text_corpus import WORDS, text_corpora
    >>> (corpus,) = text_corpora(pl.Series(["to be", None, "to do"]), WORDS)
    >>> corpus.rows.tolist(), corpus.root_offsets.tolist(), corpus.grammar.vocabulary.to_pylist()
    ([0, 2], [0, 2, 4], ['be', 'do', 'to'])

    """
    sizes = text.str.len_bytes().fill_null(0).cast(pl.Int64).to_numpy()
    for start, stop in cut_blocks(sizes, max(1, len(sizes)), most):
        with naming_rows(text, first):
            corpus = _corpus(cut(text[start:stop], tokenizer), tokenizer)
        yield replace(corpus, rows=corpus.rows + (first + start))


def _corpus(source: TextSource, tokenizer: Tokenizer) -> Corpus:
    to_host = source.engine.kernels.to_host
    grammar = Grammar(
        vocabulary=source.words.strings,
        rule_offsets=np.zeros(1, np.uint32),
        symbols=np.zeros(0, np.uint32),
        level_offsets=np.zeros(1, np.uint32),
        gap_vocabulary=pa.nulls(0, pa.large_string()),
        predicted_gaps=np.zeros(len(source.words), np.uint32),
        tokenizer=tokenizer.name,
    )
    vars(grammar)["words"] = source.words  # whose order is known
    gaps = pl.Series("gaps", [None], pl.Binary).new_from_index(0, len(source.rows))
    key = f"{TEXT}{secrets.token_hex(16)}"  # unique
    return Corpus(key, grammar, source.rows, to_host(source.root_offsets), to_host(source.roots), gaps)
