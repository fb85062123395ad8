"""Searches rows for substrings and regular expressions, as Polars' ``str`` calls do, on the rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from hashlib import blake2b
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.compress.decompress import decompress, write_texts
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.kernels.host.patterns import match as kernels
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.payload import short_name
from polars_tadoc.rows.pattern_automaton import PatternAutomaton, literal_automaton, regex_automaton
from polars_tadoc.rows.pattern_exact import ExactRows
from polars_tadoc.rows.pattern_kept import KeptRows, kept_rows, seen_rows
from polars_tadoc.rows.pattern_search import Characters, Search
from polars_tadoc.rows.pattern_syntax import Unsupported, is_plain, read_pattern
from polars_tadoc.runtime.arguments import require_bool
from polars_tadoc.runtime.arguments import require_text as require_utf8
from polars_tadoc.runtime.array_types import Int64, UInt64
from polars_tadoc.runtime.arrow_memory import owned
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.parallel import map_parallel
from polars_tadoc.traversal.text_corpus import require_text

TOGETHER = 200_000
"""Nanoseconds, estimated, from which on grammars are searched for literals side by side."""

SIGNS = "\\.+*?()|[]{}^$"
"""Characters that mean something in regular expressions."""


@documented_by(decompress)
def contains(column: pl.Series, pattern: str, *, literal: bool = False, strict: bool = True) -> pl.Series:
    """Tell which rows' text contains a match of a pattern; as Polars' ``str.contains``, without decompressing.

    Separators are part of the text, and matches may begin and end inside words. The pattern runs as an automaton over
    words, separators and rules, each rule once per state (Kida et al., SPIRE 1999): rules in which no match can begin
    are skipped. Rows are decompressed, and left to Polars, only if the automaton would be too large.

    Parameters
    ----------
    column
        Compressed column, or plain text, which is left to Polars.
    pattern
        Regular expression with Polars' syntax; with ``literal=True`` a plain string.
    literal
        Whether the pattern is a plain string.
    strict
        Whether an invalid regular expression raises; otherwise the result is null in all rows.

    Returns
    -------
    Boolean series
        One value per row; null for null rows.

    Raises
    ------
    polars.exceptions.ComputeError
        The regular expression is invalid, and ``strict``.
    TypeError
        ``pattern`` is not a string; ``literal`` or ``strict`` is not a bool.
    ValueError
        ``pattern`` is not text.

    Examples
    --------
    >>> column = pl.Series("text", ["GET /a/b.html", "POST /a", None]).tadoc.compress()
    >>> tadoc.contains(column, "T /a/b", literal=True).to_list(), tadoc.contains(column, "^P.*a$").to_list()
    ([True, False, None], [False, True, None])

    """
    return PatternRequest.of("contains", pattern, literal, strict).run(column)


@documented_by(contains)
def count_matches(column: pl.Series, pattern: str, *, literal: bool = False) -> pl.Series:
    """Count the matches of a pattern in each row, which do not overlap; as Polars' ``str.count_matches``.

    Returns
    -------
    UInt32 series
        One value per row; null for null rows.

    Raises
    ------
    polars.exceptions.ComputeError
        The regular expression is invalid.
    TypeError
        ``pattern`` is not a string; ``literal`` is not a bool.

    Examples
    --------
    >>> column = pl.Series("text", ["to be, or not to be", "be", None]).tadoc.compress()
    >>> tadoc.count_matches(column, "o b", literal=True).to_list(), tadoc.count_matches(column, "[bn]").to_list()
    ([2, 0, None], [3, 1, None])

    """
    return PatternRequest.of("count_matches", pattern, literal, True).run(column)


@documented_by(contains)
def find(column: pl.Series, pattern: str, *, literal: bool = False, strict: bool = True) -> pl.Series:
    """Return where the first match of a pattern begins in each row, in bytes; as Polars' ``str.find``.

    Returns
    -------
    UInt32 series
        Bytes before the first match; null for null rows and rows without a match.

    Examples
    --------
    >>> column = pl.Series("text", ["é: to be", "or not", None]).tadoc.compress()
    >>> tadoc.find(column, "t").to_list()
    [4, 5, None]

    """
    return PatternRequest.of("find", pattern, literal, strict).run(column)


@documented_by(count_matches)
def extract_all(column: pl.Series, pattern: str) -> pl.Series:
    """Return all matches of a regular expression in each row; as Polars' ``str.extract_all``.

    Only rows that contain a match are decompressed.

    Returns
    -------
    Series of lists of String
        One list per row, in the order of the text; null for null rows.

    Raises
    ------
    polars.exceptions.ComputeError
        The regular expression is invalid.
    TypeError
        ``pattern`` is not a string.

    Examples
    --------
    >>> column = pl.Series("text", ["id=17, id=4", "none", None]).tadoc.compress()
    >>> tadoc.extract_all(column, "id=[0-9]+").to_list()
    [['id=17', 'id=4'], [], None]

    """
    return PatternRequest.of("extract_all", pattern, False, True).run(column)


def _polars_contains(text: pl.Series, own: PatternRequest) -> pl.Series:
    return text.str.contains(own.pattern, literal=own.literal, strict=own.strict)


def _polars_count(text: pl.Series, own: PatternRequest) -> pl.Series:
    return text.str.count_matches(own.pattern, literal=own.literal)


def _polars_find(text: pl.Series, own: PatternRequest) -> pl.Series:
    return text.str.find(own.pattern, literal=own.literal, strict=own.strict)


def _polars_extract(text: pl.Series, own: PatternRequest) -> pl.Series:
    return text.str.extract_all(own.pattern)


_CALLS: dict[str, tuple[Callable[[pl.Series, PatternRequest], pl.Series], Any]] = {
    "contains": (_polars_contains, pl.Boolean()),
    "count_matches": (_polars_count, pl.UInt32()),
    "find": (_polars_find, pl.UInt32()),
    "extract_all": (_polars_extract, pl.List(pl.String)),
}
"""Each call in Polars, and the type of its result."""


@dataclass(frozen=True)
class PatternRequest:
    """The checked arguments of a call."""

    call: str
    pattern: str
    literal: bool
    strict: bool

    @classmethod
    def of(cls, call: str, pattern: object, literal: object, strict: object) -> PatternRequest:
        """Check the arguments; errors as for the calls."""
        if not isinstance(pattern, str):
            raise TypeError(f"{call}: pattern must be a string, not {type(pattern).__name__}")
        require_utf8(pattern, f"{call}: pattern")
        require_bool("literal", literal, call)
        require_bool("strict", strict, call)
        return cls(call, pattern, bool(literal), bool(strict))

    @property
    def dtype(self) -> pl.DataType:
        """Type of the result."""
        dtype: pl.DataType = _CALLS[self.call][1]
        return dtype

    def in_polars(self, text: pl.Series) -> pl.Series:
        """Make the call on plain text."""
        return _CALLS[self.call][0](text, self)

    @ends_on_interrupt
    def run(self, column: pl.Series) -> pl.Series:
        """Search each row."""
        kept = seen_rows(column)
        if kept is None:
            bare = require_text(column, self.call)
            if bare.dtype == pl.String:
                return self.in_polars(bare)
            kept = kept_rows(bare, given=column) if self._is_valid() else None
        elif not self._is_valid():
            kept = None
        if kept is None or not kept.corpora:
            return pl.Series(column.name, [None], self.dtype).new_from_index(0, len(column))
        corpora = kept.corpora
        rows = self._rows_of_literal(kept)
        known = [own for own in rows if own is not None]
        if self.call == "contains" and len(known) == len(rows):
            found = [_from_bits(own, corpus.document_count) for own, corpus in zip(known, corpora, strict=True)]
        else:
            automaton = self._automaton(corpora)
            pairs = list(kept.pairs)
            searched = _searched(pairs, automaton, rows)
            found = [self._search(corpus, automaton, own) for (corpus, _), own in zip(pairs, searched, strict=True)]
        return kept.scatter(found, len(column)).alias(column.name)

    def _is_valid(self) -> bool:
        """Whether Polars can read the pattern; it raises if ``strict``."""
        if self._is_plain:
            return True
        return _is_valid(self)

    def explain(self, column: pl.Series) -> str:
        """Describe how the call searches each grammar's rows: by which automaton, and how many rows it decompresses."""
        column = require_text(column, self.call)
        if column.dtype == pl.String:
            return f"{self.call}: plain text is left to Polars"
        if not self._is_valid():
            return f"{self.call}: the pattern is invalid, all rows are null"
        kept = kept_rows(column)
        automaton = self._automaton(kept.corpora) if kept.corpora else None
        lines, pairs = [], list(kept.pairs)
        for (corpus, _), own in zip(pairs, _searched(pairs, automaton, self._rows_of_literal(kept)), strict=True):
            rows, how = corpus.document_count, "all, no automaton holds the pattern"
            decompressed = rows
            if automaton is not None:
                how = f"automaton of {len(automaton.steps):,} states, {automaton.width} classes of characters"
                found, undone = _matches(corpus, automaton, own)
                decompressed = 0 if undone is None else len(undone)
                if self.call in ("find", "extract_all"):
                    decompressed += int(np.count_nonzero(found))
            lines.append(f"{self.call}: {how}, {short_name(corpus.key)}")
            lines.append(f"  documents: {rows:,}, decompressed for Polars: {decompressed:,}")
        return "\n".join(lines) or f"{self.call}: no rows, nothing to do"

    def _search(self, corpus: Corpus, automaton: PatternAutomaton | None, known: npt.NDArray[Any] | None) -> pl.Series:
        """Search the documents of a corpus, of which some rows are known to match."""
        if automaton is None:
            return self.in_polars(_texts(corpus, None, self.call))
        found, undone = _matches(corpus, automaton, known)
        if undone is not None:
            again = self.in_polars(_texts(corpus, undone, self.call))
            values = again if self.call in ("contains", "count_matches") else again.is_not_null()
            found[undone] = values.to_numpy()
        if self.call == "contains":
            return pl.Series(found != 0)
        if self.call == "count_matches":
            if found.max(initial=0) >= 1 << 32:
                raise LimitExceededError("count_matches: a row has more matches than 32 bits can count")
            return pl.Series(found.astype(np.uint32))
        matching = np.flatnonzero(found)
        places = np.full(len(found), len(matching), np.int64)  # where no match is, the last value
        places[matching] = np.arange(len(matching))
        missing = pl.Series([[] if self.call == "extract_all" else None], dtype=self.dtype)
        again = self.in_polars(_texts(corpus, matching, self.call))
        return again.append(missing).gather(pl.Series(places))

    def _rows_of_literal(self, kept: KeptRows) -> list[UInt64 | None]:
        """Return each corpus' rows that contain the literal, as a bitmap; None if an automaton is to search them.

        An automaton counts its matches, if there are any.
        """
        if not (self._is_plain and self.pattern):
            return [None] * len(kept.corpora)
        plans = [None if own is None else own.plan(self.pattern) for own in kept.literals]
        if sum(plan.cost for plan in plans if plan is not None) < TOGETHER:
            rows = [None if plan is None else plan.run() for plan in plans]
        else:
            rows = map_parallel(lambda plan: None if plan is None else plan.run(), plans)
        counts = self.call == "count_matches"
        return [None if own is None or (counts and own.any()) else own for own in rows]

    def _automaton(self, corpora: Sequence[Corpus]) -> PatternAutomaton | None:
        """Build the automaton for some corpora; None if there can be none."""
        counts = self.call == "count_matches"
        if self._is_plain:
            return literal_automaton(self.pattern, counts) if self.pattern else None
        alphabet = reduce(np.union1d, [Characters.of(corpus).all for corpus in corpora])
        return _regex_automaton(self.pattern, alphabet.tobytes(), counts)

    @property
    def _is_plain(self) -> bool:
        """Whether the pattern is a string without signs."""
        return self.literal or not any(sign in self.pattern for sign in SIGNS)


def _from_bits(bits: UInt64, rows: int) -> pl.Series:
    """Return the first bits of a bitmap as Booleans."""
    values: Any = pl.from_arrow(pa.BooleanArray.from_buffers(pa.bool_(), rows, [None, owned(bits)]))
    return cast(pl.Series, values)


def _searched(
    pairs: Sequence[tuple[Corpus, ExactRows | None]],
    automaton: PatternAutomaton | None,
    bitmaps: Sequence[UInt64 | None],
) -> list[npt.NDArray[Any] | None]:
    """Return each corpus' matches by document, by its spelled out rows, side by side; None if that is not possible.

    Only kernels run side by side: what calls Polars, whose threads may all wait for this call, does not.
    """
    if automaton is None or automaton.start == kernels.FOUND:
        return [None] * len(pairs)

    def search_of(corpus: Corpus, exact: ExactRows | None, bits: UInt64 | None) -> Callable[[], Any] | None:
        if bits is not None:
            return lambda: np.unpackbits(bits.view(np.uint8), count=corpus.document_count, bitorder="little")
        return None if exact is None else Search(corpus, automaton).of_exact(exact)

    searches = [search_of(*pair, bits) for pair, bits in zip(pairs, bitmaps, strict=True)]
    return map_parallel(lambda search: None if search is None else search(), searches)


def _matches(
    corpus: Corpus, automaton: PatternAutomaton, known: npt.NDArray[Any] | None
) -> tuple[npt.NDArray[Any], Int64 | None]:
    """Return the matches by document, and the documents that remain for Polars, if any."""
    if automaton.start == kernels.FOUND:
        return np.ones(corpus.document_count, np.uint64), None
    return Search(corpus, automaton).run() if known is None else (known, None)


def _texts(corpus: Corpus, documents: Int64 | None, call: str) -> pl.Series:
    """Return the text of some documents, by default of all."""
    if documents is None:
        documents = np.arange(corpus.document_count)
    offsets = corpus.root_offsets
    sizes = np.diff(offsets)[documents]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    places = np.repeat(offsets[documents] - starts[:-1], sizes) + np.arange(starts[-1])
    own = Corpus(
        corpus.key,
        corpus.grammar,
        np.arange(len(documents)),
        starts,
        corpus.roots[places],
        corpus.gaps.gather(documents),
    )
    return write_texts([own], "text", len(documents), call)


@lru_cache(maxsize=256)
def _is_valid(own: PatternRequest) -> bool:
    """Whether Polars can read a regular expression; it raises if ``strict``."""
    if is_plain(own.pattern):
        with suppress(Unsupported):
            read_pattern(own.pattern)
            return True
    probe = pl.Series(["a"])
    if own.strict:
        own.in_polars(probe)
    return own.strict or _polars_contains(probe, own).null_count() == 0


@lru_cache(maxsize=256)
def _regex_automaton(pattern: str, alphabet: bytes, counts: bool) -> PatternAutomaton | None:
    made = regex_automaton(pattern, np.frombuffer(alphabet, np.uint32), counts)
    return made and replace(made, key=f"{blake2b(alphabet).hexdigest()} {counts} {pattern}")
