"""Describes the contents and the size of a compressed column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from polars_tadoc.analytics.by_group import Groups
from polars_tadoc.compress.compress import ROWS_PER_GRAMMAR
from polars_tadoc.compress.decompress import Allowance, document_sizes
from polars_tadoc.errors import RepeatedGrammarsWarning, warn_caller
from polars_tadoc.model.column import require_tadoc, split
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.runtime.array_types import Int64
from polars_tadoc.runtime.documented import with_imports

SCHEMA = pl.Schema(
    {
        "rows": pl.UInt64,
        "grammars": pl.UInt64,
        "words_only": pl.UInt64,
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

WORTH_A_WARNING = 1 << 17
"""Minimum savings for a warning, in bytes of grammars."""
SMALL = 1 << 17
"""Bytes below which a grammar is small: one of 256 MiB of text has more, and cannot be merged with others."""
ROW_GROUP = 122_880
"""Polars' default number of rows per row group."""
MAX_COPIES = 4
"""Copies of a grammar in a file, more than there are for rows in the order in which they were compressed."""


@dataclass(frozen=True)
class InfoRequest:
    """The description, which has no options."""

    def frame(self, column: pl.Series, id: pl.Series | None = None) -> pl.DataFrame:
        """Describe a column in a frame of one row."""
        return info(column)


@with_imports
def info(column: pl.Series) -> pl.DataFrame:
    """Describe a compressed column in one row.

    Warns if grammars take more space than the rows: because there are many grammars for few rows, or because rows of
    many grammars are mixed, so that a Parquet file would repeat each grammar in many row groups. ``recompress`` fixes
    both.

    Parameters
    ----------
    column
        Compressed column.

    Returns
    -------
    DataFrame
        One row: ``rows``; ``grammars``; ``words_only`` (grammars without rules: those of ``compress(effort="fast")``,
        those where ``"auto"`` found that rules do not pay, and those of rows that repeat nothing); ``words`` (all
        occurrences); ``vocabulary`` (distinct words, and those of a dictionary, summed over grammars); ``rules``;
        ``symbols`` (of rows and rules); ``levels`` (of the deepest grammar), UInt64; ``text_bytes`` (UTF-8 of the
        text); ``bytes`` (Arrow arrays of grammars and rows, before general compression); ``grammar_bytes`` (the
        grammars' part of ``bytes``), UInt64; ``ratio`` (``text_bytes / bytes``), Float64, null if ``bytes`` is 0.

    Raises
    ------
    NotCompressedError
        The series is not a compressed column.
    InvalidGrammarError, LimitExceededError
        A payload or a row is damaged or too large.

    Examples
    --------
    >>> column = pl.Series("text", ["all the same words"] * 1000).tadoc.compress()
    >>> tadoc.info(column).select(["rows", "words", "vocabulary", "rules", "symbols"]).to_dicts()
    [{'rows': 1000, 'words': 4000, 'vocabulary': 4, 'rules': 1, 'symbols': 1004}]

    """
    column = require_tadoc(column, "info")
    corpora = split(column)
    described = _described(corpora, np.array([0, len(column)]))
    of_grammars = [_grammar_bytes(corpus) for corpus in corpora]
    _warn(corpora, of_grammars, int(described["bytes"][0]) - sum(of_grammars))
    return described


def info_by_group(imploded: pl.Series) -> pl.Series:
    """Describe each list of rows of a compressed column in a struct; errors as for :func:`info`."""
    groups = Groups.of_lists(imploded, "info")
    return _described(split(groups.column), groups.offsets).to_struct(imploded.name)


def _described(corpora: Sequence[Corpus], offsets: Int64) -> pl.DataFrame:
    """Describe intervals of rows, one result row each; a grammar counts wherever it has rows."""
    found = {name: np.zeros(len(offsets) - 1, np.uint64) for name in SCHEMA.names()[:-1]}
    found["rows"] = np.diff(offsets).astype(np.uint64)
    for corpus in corpora:
        owners = np.searchsorted(offsets, corpus.rows, side="right") - 1
        firsts = np.flatnonzero(np.diff(owners, prepend=-1))
        present, documents = owners[firsts], np.diff(np.append(firsts, len(owners)))
        sizes = document_sizes(corpus, Allowance("info"))
        grammar, of_grammar = corpus.grammar, _grammar_bytes(corpus)
        roots = np.add.reduceat(np.diff(corpus.root_offsets), firsts)
        gaps = np.add.reduceat(corpus.gaps.bin.size().fill_null(0).to_numpy().astype(np.int64), firsts)
        of_rows = 4 * roots + 8 * (documents + 1) + 4 * documents + gaps  # symbols, offsets, codes and gaps
        for name, more in {
            "grammars": 1,
            "words_only": int(grammar.rule_count == 0),
            "words": np.add.reduceat(sizes.words, firsts),
            "vocabulary": grammar.vocabulary_size,
            "rules": grammar.rule_count,
            "symbols": roots + len(grammar.symbols),
            "text_bytes": np.add.reduceat(sizes.bytes, firsts),
            "bytes": of_rows + of_grammar,
            "grammar_bytes": of_grammar,
        }.items():
            found[name][present] += np.asarray(more).astype(np.uint64)
        found["levels"][present] = np.maximum(found["levels"][present], np.uint64(grammar.level_count))
    text, stored = pl.col("text_bytes").cast(pl.Float64), pl.col("bytes")
    ratio = pl.when(stored > 0).then(text / stored).alias("ratio")
    return pl.DataFrame(found).with_columns(ratio).match_to_schema(SCHEMA)


def _grammar_bytes(corpus: Corpus) -> int:
    grammar = corpus.grammar
    arrays = (grammar.rule_offsets, grammar.symbols, grammar.level_offsets, grammar.vocabulary)
    return sum(array.nbytes for array in (*arrays, grammar.gap_vocabulary, grammar.predicted_gaps))


def grammars_are_small(grammars: int, rows: int, of_grammars: int, of_rows: int, worth: int) -> bool:
    """Tell whether many small grammars take so much space that one grammar of all rows would save much.

    In 60 files of 50 rows (real logs, pages, questions and abstracts), grammars are 30 to 70 % of the size, and merging
    reduces the size to 50 to 90 %.
    """
    are_many = grammars > 2 * -(-rows // ROWS_PER_GRAMMAR) and of_grammars > worth
    return are_many and (of_grammars > of_rows or (2 * of_grammars > of_rows and of_grammars < grammars * SMALL))


def _warn(corpora: Sequence[Corpus], of_grammars: Sequence[int], of_rows: int) -> None:
    """Warn if grammars take more space than the rows, and fewer grammars or copies would do."""
    rows, once = sum(corpus.document_count for corpus in corpora), sum(of_grammars)
    copies = [1 + np.count_nonzero(np.diff(corpus.rows // ROW_GROUP)) for corpus in corpora]
    written = sum(number * size for number, size in zip(copies, of_grammars, strict=True))
    if grammars_are_small(len(corpora), rows, once, of_rows, WORTH_A_WARNING):
        warn_caller(
            f"info: {len(corpora):,} grammars of {once / 1e6:,.1f} MB for {rows:,} rows of {of_rows / 1e6:,.1f} MB; "
            "merge them: tadoc.recompress(column)",
            RepeatedGrammarsWarning,
        )
    elif written - once > max(once + of_rows, WORTH_A_WARNING) and sum(copies) > MAX_COPIES * len(corpora):
        warn_caller(
            f"info: the rows of {len(corpora):,} grammars are so mixed that a Parquet file at Polars' defaults "
            f"repeats them {sum(copies):,} times, {written / 1e6:,.1f} MB instead of {once / 1e6:,.1f} MB; make a "
            "grammar for each run of rows: tadoc.recompress(column)",
            RepeatedGrammarsWarning,
        )
