"""Columns that patterns or phrases were searched in, kept by the identity of their memory.

The first call on a column keeps its corpora. A second call with a pattern also spells out their gaps
(:mod:`polars_tadoc.rows.pattern_exact`), and one with a literal links them (:mod:`polars_tadoc.rows.pattern_anchor`),
which takes a tenth of that time. A kept column holds its Arrow arrays: their memory is neither freed nor
changed, so equal addresses mean equal rows.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np
import polars as pl

from polars_tadoc.config import settings
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.column import scatter_to_rows, split
from polars_tadoc.model.corpus import Corpus, require_countable
from polars_tadoc.model.kept_columns import place
from polars_tadoc.rows.pattern_anchor import LiteralRows
from polars_tadoc.rows.pattern_exact import ExactRows
from polars_tadoc.runtime.cache import ByteLRU
from polars_tadoc.runtime.cached_property import cached_property
from polars_tadoc.traversal.text_corpus import require_text, require_tokenizer

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
    _literals: list[LiteralRows | None] = field(default_factory=list)

    @property
    def pairs(self) -> Iterator[tuple[Corpus, ExactRows | None]]:
        """Each corpus, and its spelled out rows, if any."""
        return zip_longest(self.corpora, self.exact)

    @cached_property
    def _row_count(self) -> int:
        """Number of rows if none is null and the corpora have them in order; -1 if not."""
        rows = np.concatenate([np.zeros(0, np.int64), *(corpus.rows for corpus in self.corpora)])
        return len(rows) if (rows == np.arange(len(rows))).all() else -1

    def scatter(self, found: list[pl.Series], rows: int) -> pl.Series:
        """Return values by row of those by corpus and document; null in other rows."""
        values = found[0] if len(found) == 1 else pl.concat(found)
        return values if rows == self._row_count else scatter_to_rows(values, [own.rows for own in self.corpora], rows)

    @property
    def literals(self) -> list[LiteralRows | None]:
        """Each corpus' rows for literals; None if they are not spelled out, or words depend on the text around them."""
        if not self.exact:
            return [None] * len(self.corpora)
        if not self._literals:  # threads make equal ones
            self._literals = [None if own is None else LiteralRows.of(corpus, own) for corpus, own in self.pairs]
        return self._literals

    @property
    def nbytes(self) -> int:
        """Bytes of memory that would be free without it."""
        arrays: int = sum(array.nbytes for array in self.held) + sum(one.rows.nbytes for one in self.corpora)
        grammars = sum(one.grammar.nbytes for one in self.corpora)
        pairs = self.pairs
        exact = sum(one.nbytes + LiteralRows.size_of(own, one) for own, one in pairs if one is not None)
        return arrays + grammars + exact + 1024


def _budget() -> int:
    return settings().host_cache_bytes // SHARE


_columns: ByteLRU[KeptRows] = ByteLRU(_budget, lambda kept: max(kept.nbytes, _budget() // MAX_COLUMNS))
"""Kept columns, by the addresses of their buffers."""


@dataclass(frozen=True)
class _Seen:
    """A series that a call was made on: all that could change in it."""

    series: weakref.ref[pl.Series]
    memory: object
    """Polars' own object; the methods that change it change its length, too."""
    length: int
    key: str
    """Key in ``_columns``."""


_seen: dict[int, _Seen] = {}
"""Compressed series by their ids, while they live: to look at their buffers takes longer than most searches."""


def seen_rows(column: object, spells: bool = True) -> KeptRows | None:
    """Return the kept rows of a compressed series; None if no call was made on it before, or it was changed since.

    Parameters
    ----------
    column
        Any object.
    spells
        Whether the call reads gaps; rows whose gaps are not spelled out are none, then.

    Raises
    ------
    LimitExceededError
        A rule exceeds the current limit.

    """
    seen = _seen.get(id(column))
    if seen is None or seen.series() is not column:
        return None
    if seen.memory is not getattr(column, "_s", None) or seen.length != len(column):  # type: ignore[arg-type]
        _seen.pop(id(column), None)  # it would hold the memory from before the change
        return None
    kept = _columns.get(seen.key)
    if kept is None or (spells and not kept.exact):
        return None
    for corpus in kept.corpora:
        corpus.grammar.require_within_limit()
    kept.calls += spells
    return kept


def _see(column: pl.Series, key: str) -> None:
    number, memory = id(column), getattr(column, "_s", None)

    def forget(series: object) -> None:
        seen = _seen.get(number)
        if seen is not None and seen.series is series:
            del _seen[number]

    if memory is not None:
        _seen[number] = _Seen(weakref.ref(column, forget), memory, len(column), key)


def kept_rows(column: pl.Series, spells: bool = True, given: pl.Series | None = None) -> KeptRows:
    """Split a compressed column, or return its kept rows.

    Parameters
    ----------
    column
        Storage of a compressed column.
    spells
        Whether the call reads gaps, so that a second one spells them out.
    given
        The column as the caller has it, for :func:`seen_rows`.

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
    if given is not None and isinstance(given.dtype, pl.BaseExtension):
        _see(given, key)
    return kept


def text_or_kept(column: pl.Series, call: str) -> tuple[pl.Series, KeptRows | None]:
    """Return a String column or the storage of a compressed one; of a series that was seen, itself and its rows.

    Raises
    ------
    NotCompressedError
        The column is of another type.

    """
    kept = seen_rows(column, spells=False)
    return (require_text(column, call), None) if kept is None else (column, kept)


def kept_corpora(kept: KeptRows, call: str, tokenizer: Tokenizer | None) -> Sequence[Corpus]:
    """Return the kept corpora of a column for a call that counts words.

    Raises
    ------
    TypeError
        The column was cut by another tokenizer than the named one.
    LimitExceededError
        Counts may exceed 64 bits.

    """
    for corpus in kept.corpora:
        require_tokenizer(corpus, tokenizer, call)
    require_countable(kept.corpora)
    return kept.corpora
