"""Raises for partitions and grammars that exceed a memory limit, before they are read."""

from __future__ import annotations

from polars_tadoc.errors import LimitExceededError
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.payload import short_name
from polars_tadoc.packed.pushdown import PackedQuestion

SYMBOL_BYTES = 40
"""Approximate bytes that kernels take per symbol of a grammar and its rows (``benchmarks.streaming_analytics``)."""

MAX_ROWS = 1 << 32
"""Results have 32-bit row numbers."""

TOO_MANY_ROWS = f"the plan has more than {MAX_ROWS:,} rows, which results number in 32 bits"


def require_fitting_footers(question: PackedQuestion, limit: int) -> None:
    """Raise if a partition exceeds a limit according to its file's footer; reads no partition.

    Raises
    ------
    LimitExceededError
        A grammar with its rows does not fit.

    """
    if _may_read_some(question):
        return
    for place, symbols, word_bytes in question.grammar_sizes():
        needed = SYMBOL_BYTES * symbols + word_bytes
        if needed > limit:
            raise _too_large(f"the grammar of {place}", needed, limit)


def suits_gpu(question: PackedQuestion, limit: int, repays_at: float) -> bool:
    """Tell from footers whether a GPU pays for some partition, and whether each fits the limit less CuPy's share."""
    if _may_read_some(question):
        return True
    sizes = [(symbols, SYMBOL_BYTES * symbols + word_bytes) for _, symbols, word_bytes in question.grammar_sizes()]
    return any(symbols >= repays_at for symbols, _ in sizes) and all(needed <= limit for _, needed in sizes)


def _may_read_some(question: PackedQuestion) -> bool:
    """Tell whether the answer may depend on only some of the partitions."""
    return question.limit is not None or question.scan.skips


def bytes_needed(corpus: Corpus) -> int:
    """Return the approximate bytes of a grammar, its rows, and the kernels that read them."""
    return corpus.grammar.nbytes + SYMBOL_BYTES * corpus.symbol_count


def fitting(corpus: Corpus, limit: int) -> Corpus:
    """Return the corpus if it fits the limit; otherwise raise ``LimitExceededError``."""
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
    """Raise ``LimitExceededError`` if there are more rows than 32 bits can number."""
    if rows > MAX_ROWS:
        raise LimitExceededError(TOO_MANY_ROWS)
