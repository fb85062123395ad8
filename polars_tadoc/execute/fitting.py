"""Refuses, before they are read, partitions and grammars that do not fit a memory limit."""

from __future__ import annotations

from polars_tadoc.errors import LimitExceededError
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.payload import short_name
from polars_tadoc.packed.pushdown import PackedQuestion

SYMBOL_BYTES = 40
"""What kernels take for each symbol of a grammar and its rows, about (``benchmarks.streaming_analytics``)."""

MAX_ROWS = 1 << 32
"""Results number rows in 32 bits."""

TOO_MANY_ROWS = f"the plan has more than {MAX_ROWS:,} rows, which results number in 32 bits"


def require_fitting_footers(question: PackedQuestion, limit: int) -> None:
    """Refuse a limit that a partition passes by what its file's footer says, before any is read.

    Raises
    ------
    LimitExceededError
        One grammar with its rows does not fit.

    """
    if _may_read_some(question):
        return
    for place, symbols, word_bytes in question.grammar_sizes():
        needed = SYMBOL_BYTES * symbols + word_bytes
        if needed > limit:
            raise _too_large(f"the grammar of {place}", needed, limit)


def suits_gpu(question: PackedQuestion, limit: int, repays_at: float) -> bool:
    """Tell by footers whether a GPU repays on some partition, and each fits the limit that CuPy leaves."""
    if _may_read_some(question):
        return True
    sizes = [(symbols, SYMBOL_BYTES * symbols + word_bytes) for _, symbols, word_bytes in question.grammar_sizes()]
    return any(symbols >= repays_at for symbols, _ in sizes) and all(needed <= limit for _, needed in sizes)


def _may_read_some(question: PackedQuestion) -> bool:
    """Tell whether perhaps not all partitions are read that a question may read."""
    return question.limit is not None or question.scan.skips


def bytes_needed(corpus: Corpus) -> int:
    """Bytes that a grammar with its rows takes, and the kernels that read it, about."""
    return corpus.grammar.nbytes + SYMBOL_BYTES * corpus.symbol_count


def fitting(corpus: Corpus, limit: int) -> Corpus:
    """Return a corpus that fits a limit; raises ``LimitExceededError`` for others."""
    needed = bytes_needed(corpus)
    if needed > limit:
        raise _too_large(short_name(corpus.key), needed, limit)
    return corpus


def _too_large(what: str, needed: int, limit: int) -> LimitExceededError:
    return LimitExceededError(
        f"{what} and its rows take about {needed:,} bytes, more than memory_limit={limit:,}; "
        "raise it, or make smaller grammars: compress(rows_per_grammar=…)"
    )


def require_row_numbers(rows: int) -> None:
    """Raise ``LimitExceededError`` for more rows than results number."""
    if rows > MAX_ROWS:
        raise LimitExceededError(TOO_MANY_ROWS)
