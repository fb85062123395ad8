"""What a compressed column holds and what it weighs."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from polars_tadoc.column import require_tadoc, split
from polars_tadoc.decompress import text_bytes

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
        "ratio": pl.Float64,
    }
)


def info(column: pl.Series) -> pa.Table:
    """Describe a compressed column in one row.

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
        general compression), uint64; ``ratio`` (``text_bytes / bytes``), double, null where there are no bytes.

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
    stored = 0
    for corpus in corpora:
        grammar = corpus.grammar
        stored += grammar.rule_offsets.nbytes + grammar.symbols.nbytes + grammar.level_offsets.nbytes
        stored += grammar.vocabulary.nbytes + grammar.gap_vocabulary.nbytes + grammar.predicted_gaps.nbytes
        stored += corpus.roots.nbytes + corpus.root_offsets.nbytes + 4 * corpus.document_count
        stored += int(corpus.gaps.bin.size().sum())
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
        "ratio": text / stored if stored else None,
    }
    return pl.DataFrame([row], schema=SCHEMA).to_arrow()
