"""Columns that patterns or phrases were searched in, kept by the identity of their memory.

The first call on a column keeps its corpora. A second call with a pattern also spells out their gaps
(:mod:`polars_tadoc.rows.pattern_exact`). A kept column holds its Arrow arrays: their memory is neither freed nor
changed, so equal addresses mean equal rows.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np
import polars as pl

from polars_tadoc.config import settings
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.column import split
from polars_tadoc.model.corpus import Corpus, require_countable
from polars_tadoc.model.kept_columns import place
from polars_tadoc.model.text_type import storage
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
    is_one: bool = False
    """Whether one corpus has all rows in order, without nulls."""
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


_named: dict[int, tuple[Callable[[], pl.Series | None], str, str]] = {}
"""Series that calls were given, by their ids: a weak reference, the name of their gaps' memory, the column's key."""

_UNNAMED = (lambda: None), "", ""


def kept_again(given: pl.Series) -> KeptRows | None:
    """Return the kept rows of a series that :func:`kept_rows` was given; None if there are none, or it has changed.

    What changes a series gives it new gaps: the old ones' memory is held. To look at types, grammars and symbols too
    would take most of a fast call's time.
    """
    reference, name, key = _named.get(id(given), _UNNAMED)
    if reference() is not given:
        return None
    gaps = storage(given).struct.unnest().to_series(2)
    kept = _columns.get(key) if name == _name(_memory(gaps)) else None
    return None if kept is None else _again(kept, key, spells=True)


def kept_rows(column: pl.Series, spells: bool = True, given: pl.Series | None = None) -> KeptRows:
    """Split a compressed column, or return its kept rows.

    Parameters
    ----------
    column
        Compressed column.
    spells
        Whether the call reads gaps, so that a second one spells them out.
    given
        The series that the call was given, for :func:`kept_again`; ``column`` is its storage.

    Raises
    ------
    InvalidGrammarError, LimitExceededError
        A payload is damaged, a row has a symbol that its grammar lacks, or a rule exceeds the current limit.

    """
    grammar, symbols, gaps = column.struct.unnest()
    held = _memory(gaps)
    name = _name(held)
    held += _memory(grammar.to_physical(), symbols)
    key = _name(held)
    kept = _columns.get(key)
    if given is not None:
        number = id(given)
        _named[number] = weakref.ref(given, lambda _: _named.pop(number, None)), name, key
    if kept is None:
        corpora = split(column)
        is_one = len(corpora) == 1 and np.array_equal(corpora[0].rows, np.arange(len(column)))
        kept = _columns.put(key, KeptRows(corpora, held, is_one))
    return _again(kept, key, spells)


def _again(kept: KeptRows, key: str, spells: bool) -> KeptRows:
    """Spell out a kept column's gaps if it is time."""
    for corpus in kept.corpora:
        corpus.grammar.require_within_limit()
    kept.calls += spells
    if spells and kept.calls >= SPELLED_FROM and not kept.exact:
        kept.exact = [ExactRows.of(corpus, _budget() // 2) for corpus in kept.corpora]
        if kept.nbytes > _budget():  # then it would not be kept at all
            kept.exact = [None] * len(kept.corpora)
        _columns.put(key, kept)
    return kept


def _memory(*columns: pl.Series) -> list[Any]:
    newest = pl.CompatLevel.newest()
    return [part.to_arrow(compat_level=newest) for column in columns for part in column.get_chunks()]


def _name(held: Iterable[Any]) -> str:
    return " ".join(map(place, held))


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
