"""Columns that patterns or phrases were searched in, kept by the identity of their memory.

The first call on a column keeps its corpora. A second call with a pattern also spells out their gaps
(:mod:`polars_tadoc.rows.pattern_exact`). A kept column holds its Arrow arrays: their memory is neither freed nor
changed, so equal addresses mean equal rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import polars as pl

from polars_tadoc.config import settings
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.column import split
from polars_tadoc.model.corpus import Corpus, require_countable
from polars_tadoc.model.kept_columns import place
from polars_tadoc.rows.pattern_exact import ExactRows
from polars_tadoc.runtime.cache import ByteLRU
from polars_tadoc.traversal.text_corpus import require_tokenizer

MAX_COLUMNS = 4
"""Maximum columns to keep."""

SHARE = 4
"""The budget is one part in this many of ``host_cache_bytes``."""

SPELLED_FROM = 2
"""The call from which on gaps are spelled out: for one call it would not pay."""


@dataclass(eq=False)
class KeptRows:
    """A column's corpora, and their rows with all gaps spelled out, if they are."""

    corpora: Sequence[Corpus]
    held: list[Any]
    calls: int = 0
    exact: list[ExactRows | None] = field(default_factory=list)

    @property
    def pairs(self) -> Iterator[tuple[Corpus, ExactRows | None]]:
        """Each corpus, and its spelled out rows, if any."""
        return zip_longest(self.corpora, self.exact)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that would be free without it."""
        arrays: int = sum(array.nbytes for array in self.held) + sum(one.rows.nbytes for one in self.corpora)
        grammars = sum(one.grammar.nbytes for one in self.corpora)
        return arrays + grammars + sum(one.nbytes for one in self.exact if one is not None) + 1024


def _budget() -> int:
    return settings().host_cache_bytes // SHARE


_columns: ByteLRU[KeptRows] = ByteLRU(_budget, lambda kept: max(kept.nbytes, _budget() // MAX_COLUMNS))
"""Kept columns, by the addresses of their buffers."""


def kept_rows(column: pl.Series, spells: bool = True) -> KeptRows:
    """Split a compressed column, or return its kept rows.

    Parameters
    ----------
    column
        Compressed column.
    spells
        Whether the call reads gaps, so that a second one spells them out.

    Raises
    ------
    InvalidGrammarError, LimitExceededError
        A payload is damaged, a row has a symbol that its grammar lacks, or a rule exceeds the current limit.

    """
    grammar, symbols, gaps = column.struct.unnest()
    newest = pl.CompatLevel.newest()
    parts = [*grammar.to_physical().get_chunks(), *symbols.get_chunks(), *gaps.get_chunks()]
    held: list[Any] = [part.to_arrow(compat_level=newest) for part in parts]
    key = " ".join(place(array) for array in held)
    kept = _columns.get(key)
    if kept is None:
        kept = KeptRows(split(column), held)
        _columns.put(key, kept)
    else:
        for corpus in kept.corpora:
            corpus.grammar.require_within_limit()
    kept.calls += spells
    if spells and kept.calls >= SPELLED_FROM and not kept.exact:
        kept.exact = [ExactRows.of(corpus, _budget() // 2) for corpus in kept.corpora]
        if kept.nbytes > _budget():  # then it would not be kept at all
            kept.exact = [None] * len(kept.corpora)
        _columns.put(key, kept)
    return kept


def kept_corpora(column: pl.Series, call: str, tokenizer: Tokenizer | None) -> Sequence[Corpus]:
    """Split a compressed column for a call that counts words, or return its kept corpora.

    Raises
    ------
    TypeError
        The column was cut by another tokenizer than the named one.
    InvalidGrammarError, LimitExceededError
        As for :func:`kept_rows`; or counts may exceed 64 bits.

    """
    corpora = kept_rows(column, spells=False).corpora
    for corpus in corpora:
        require_tokenizer(corpus, tokenizer, call)
    require_countable(corpora)
    return corpora
