"""What a compressed column holds and what it weighs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.column import require_tadoc, split
from polars_tadoc.compress.compress import ROWS_PER_GRAMMAR
from polars_tadoc.corpus import Corpus
from polars_tadoc.decompress import text_bytes
from polars_tadoc.errors import RepeatedGrammarsWarning

SCHEMA = pl.Schema(
    {
        "rows": pl.UInt64,
        "grammars": pl.UInt64,
        "words": pl.UInt64,
        "vocabulary": pl.UInt64,
        "rules": pl.UInt64,
        "symbols": pl.UInt64,
        "levels": pl.UInt64,
        "text_bytes": pl.UInt64,
        "bytes": pl.UInt64,
        "grammar_bytes": pl.UInt64,
        "ratio": pl.Float64,
    }
)

WORTH_A_WARNING = 1 << 20
"""Bytes of grammars that could be saved."""
ROW_GROUP = 122_880
"""Rows of a row group as Polars writes them unless it is told how many."""
MOST_COPIES = 4
"""Of each grammar in a file: more than rows in the order in which they were compressed ever get by default."""


@dataclass(frozen=True)
class Request:
    """A description, of which there is one kind."""

    def frame(self, column: pl.Series, id: pl.Series | None = None) -> pl.DataFrame:
        """Describe a column in a frame of one row."""
        return pl.DataFrame(info(column))


def info(column: pl.Series) -> pa.Table:
    """Describe a compressed column in one row.

    Many grammars for few rows, or rows of many grammars mixed so that a Parquet file would repeat each in row group
    after row group, are warned of where they weigh more than the rows: ``recompress`` mends both.

    Parameters
    ----------
    column
        Compressed column.

    Returns
    -------
    pyarrow.Table
        ``rows``; ``grammars``; ``words`` (all occurrences); ``vocabulary`` (distinct words, summed over
        grammars); ``rules``; ``symbols`` (rows' and rules'); ``levels`` (of the deepest grammar), uint64;
        ``text_bytes`` (UTF-8 of the text); ``bytes`` (Arrow arrays of grammars and rows, before any
        general compression); ``grammar_bytes`` (of these, the grammars'), uint64; ``ratio``
        (``text_bytes / bytes``), double, null where there are no bytes.

    Raises
    ------
    NotCompressedError
        The series is not a compressed column.
    InvalidGrammarError, LimitExceededError
        A payload or a row is damaged or too large.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> column = pl.Series("text", ["all the same words"] * 1000).tadoc.compress()
    >>> tadoc.info(column).select(["rows", "words", "vocabulary", "rules", "symbols"]).to_pylist()
    [{'rows': 1000, 'words': 4000, 'vocabulary': 4, 'rules': 1, 'symbols': 1004}]

    """
    require_tadoc(column, "info")
    corpora = split(column)
    text = sum(text_bytes(corpus) for corpus in corpora)
    of_grammars = [_grammar_bytes(corpus) for corpus in corpora]
    of_rows = sum(_row_bytes(corpus) for corpus in corpora)
    stored = sum(of_grammars) + of_rows
    _warn(corpora, of_grammars, of_rows)
    row = {
        "rows": len(column),
        "grammars": len(corpora),
        "words": sum(corpus.word_total() for corpus in corpora),
        "vocabulary": sum(corpus.grammar.vocabulary_size for corpus in corpora),
        "rules": sum(corpus.grammar.rule_count for corpus in corpora),
        "symbols": sum(corpus.symbol_count for corpus in corpora),
        "levels": max((corpus.grammar.level_count for corpus in corpora), default=0),
        "text_bytes": text,
        "bytes": stored,
        "grammar_bytes": sum(of_grammars),
        "ratio": text / stored if stored else None,
    }
    return pl.DataFrame([row], schema=SCHEMA).to_arrow()


def _grammar_bytes(corpus: Corpus) -> int:
    grammar = corpus.grammar
    arrays = (grammar.rule_offsets, grammar.symbols, grammar.level_offsets, grammar.vocabulary)
    return sum(array.nbytes for array in (*arrays, grammar.gap_vocabulary, grammar.predicted_gaps))


def _row_bytes(corpus: Corpus) -> int:
    codes = 4 * corpus.document_count
    return corpus.roots.nbytes + corpus.root_offsets.nbytes + codes + int(corpus.gaps.bin.size().sum())


def _warn(corpora: Sequence[Corpus], of_grammars: Sequence[int], of_rows: int) -> None:
    """Warn of grammars that weigh more than the rows, where fewer of them or fewer copies would do."""
    rows, once = sum(corpus.document_count for corpus in corpora), sum(of_grammars)
    copies = [1 + np.count_nonzero(np.diff(corpus.rows // ROW_GROUP)) for corpus in corpora]
    written = sum(number * size for number, size in zip(copies, of_grammars, strict=True))
    if once > max(of_rows, WORTH_A_WARNING) and len(corpora) > 2 * -(-rows // ROWS_PER_GRAMMAR):
        warnings.warn(
            f"info: {len(corpora):,} grammars of {once / 1e6:,.1f} MB for {rows:,} rows of {of_rows / 1e6:,.1f} MB; "
            "merge them: tadoc.recompress(column)",
            RepeatedGrammarsWarning,
            stacklevel=3,
        )
    elif written - once > max(once + of_rows, WORTH_A_WARNING) and sum(copies) > MOST_COPIES * len(corpora):
        warnings.warn(
            f"info: the rows of {len(corpora):,} grammars stand so far apart that a Parquet file at Polars' defaults "
            f"repeats them {sum(copies):,} times, {written / 1e6:,.1f} MB instead of {once / 1e6:,.1f} MB; give each "
            "run of rows a grammar of its own: tadoc.recompress(column)",
            RepeatedGrammarsWarning,
            stacklevel=3,
        )
