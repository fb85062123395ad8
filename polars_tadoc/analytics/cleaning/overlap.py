"""Passages that a reference has, too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Unpack

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.cleaning.laid_words import LaidWords, lay_out_window
from polars_tadoc.analytics.cleaning.options import OverlapOnWorkers, OverlapOptions
from polars_tadoc.analytics.cleaning.passage_set import PassageSet, find, read, renumbered
from polars_tadoc.analytics.cleaning.shares import SHARE, share_of
from polars_tadoc.analytics.cleaning.windows import Windows, on_engine
from polars_tadoc.engine.choose import CPU, Engine, require_engine
from polars_tadoc.engine.progress import bar_over, by_steps, part_beside
from polars_tadoc.execute.windows import Window
from polars_tadoc.kernels.host.passages import matches as kernels
from polars_tadoc.kernels.host.passages import runs
from polars_tadoc.model.arrow_results import numbers
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.rows.phrases import BY_ROW, count_phrase
from polars_tadoc.runtime.array_types import Bools, Int64, UInt32
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks
from polars_tadoc.traversal.text_corpus import require_text


def schema(id_type: pl.DataType | None = None, reference_type: pl.DataType | None = None) -> pl.Schema:
    """Return the columns of the result, given the types of the labels, if there are any."""
    whole = pl.UInt32()
    return pl.Schema(
        {
            "id": Labels.dtype(id_type),
            "offset": whole,
            "length": whole,
            "reference": Labels.dtype(reference_type),
            "reference_offset": whole,
        }
    )


LENGTH = 13
"""Words of a window by default: the length of the windows by which GPT-3's test sets were searched (T. Brown et al.,
*Language models are few-shot learners*, 2020, appendix C)."""


KNOWN = 1 << 12
"""Matches and windows beside them of which a thread keeps what it found."""


def passage_set_of(reference: object, call: str, options: OverlapOnWorkers) -> PassageSet:
    """Return a reference's windows, or check that none of the options that they were made with is given again.

    Raises
    ------
    TypeError
        The reference is neither a series nor a :class:`PassageSet`.
    ValueError
        There are options beside a :class:`PassageSet`.

    """
    given: Any = dict(options)
    length = given.pop("length")
    require_engine(given.pop("engine", None))
    if isinstance(reference, PassageSet):
        named = [name for name, value in given.items() if value not in (None, False)]
        if length is not None:
            named.append("length")
        if named:
            raise ValueError(f"{call}: {named[0]}= is for a Series; a PassageSet has its own {named[0]}")
        return reference
    if not isinstance(reference, pl.Series):
        advice = 'pass a column of it: reference["text"]' if hasattr(reference, "columns") else "write pl.Series([…])"
        kind = type(reference).__name__
        raise TypeError(f"{call}: reference is {kind}, not a Series of texts or a PassageSet; {advice}")
    with part_beside(len(reference)):
        return PassageSet(reference, length=LENGTH if length is None else length, **given)


@dataclass(frozen=True, eq=False)
class OverlapRequest:
    """The checked arguments of a call."""

    name: ClassVar[str] = "overlap"
    known: PassageSet
    reference_id: pl.Series | None
    engine: str | None = None

    @classmethod
    def of(cls, reference: object, reference_id: object, options: OverlapOnWorkers | OverlapOptions) -> OverlapRequest:
        """Check the arguments of :func:`overlap`; errors as there."""
        known = passage_set_of(reference, "overlap", options)
        if reference_id is not None:
            if not isinstance(reference_id, pl.Series):
                raise TypeError(
                    f"overlap: reference_id is {type(reference_id).__name__}, not a Series with one label for each row "
                    "of the reference"
                )
            if len(reference_id) != known.rows:
                raise ValueError(
                    f"overlap: reference_id has {len(reference_id):,} labels for the {known.rows:,} rows of the "
                    "reference"
                )
        given: Any = options
        return cls(known, reference_id, given.get("engine"))

    @classmethod
    def run(cls, column: pl.Series, id: pl.Series | None, *given: Any) -> pl.DataFrame:
        """Read what :meth:`of` is given, and find the matches, with one bar."""
        with bar_over(column, cls.name):
            return cls.of(*given).frame(column, id)

    @ends_on_interrupt
    @by_steps
    def frame(self, column: pl.Series, id: pl.Series | None = None) -> pl.DataFrame:
        """Find the matches of a column held in memory."""

        def search(engine: Engine) -> tuple[LaidWords, UInt32]:
            laid = read(self.known, column, "overlap", engine)
            found = engine.kernels.to_host(find(self.known, laid))
            return replace(laid, words=found, engine=CPU), found  # words are not read any more

        laid, found = on_engine("overlap", self.engine, column, search)
        return self._frame(laid, found, Labels.of(column, id, "overlap"), 0)

    @ends_on_interrupt
    def frame_of(self, window: Window, column: str, labels: Labels) -> pl.DataFrame:
        """Find the matches of some rows of a plan; ``column`` is the name of the column."""
        known = self.known
        laid = lay_out_window(window, "overlap", None if window.corpora else known.tokenizer, known.morphism)
        laid = renumbered(known, laid, column, "overlap")
        return self._frame(laid, find(known, laid), labels, window.first)

    def _frame(self, laid: LaidWords, found_at: UInt32, labels: Labels, first: int) -> pl.DataFrame:
        known, others = self.known, Labels(self.reference_id)
        rows, begins, ends, places = self._matches(laid, found_at)
        reference_rows = np.searchsorted(known.laid.starts, places, side="right") - 1
        offsets = laid.own(rows, begins)
        found = [
            labels.series(rows + first).alias("id"),
            numbers("offset", offsets.astype(np.uint32)),
            numbers("length", (laid.own(rows, ends - 1) + 1 - offsets).astype(np.uint32)),
            others.series(reference_rows).alias("reference"),
            numbers("reference_offset", known.laid.own(reference_rows, places).astype(np.uint32)),
        ]
        return pl.DataFrame(found)

    def _matches(self, laid: LaidWords, found: UInt32) -> tuple[Int64, Int64, Int64, Int64]:
        """Return row, first place, end and place in the reference of each match."""
        known, none = self.known, np.zeros(0, np.int64)
        later, after, before, amounts = known.neighbours

        def search_some(chunk: tuple[int, int]) -> Any:
            search = partial(
                kernels.find_matches,
                laid.starts,
                *chunk,
                known.length,
                found,
                known.first,
                later,
                after,
                before,
                amounts,
                np.empty(amounts.max(initial=0), np.int64),
                np.full((KNOWN, 4), -1, np.int64),
            )
            made = tuple(np.empty((4, search(none, none, none, none)), np.int64))
            search(*made)
            return made

        parts = map_parallel(search_some, weighted_chunks(laid.starts))
        rows, begins, ends, places = (np.concatenate(part) for part in zip(*parts, strict=True))
        return rows, begins, ends, places


@dataclass(frozen=True, eq=False)
class SharedRequest:
    """The checked arguments of a call by row."""

    name: str
    known: PassageSet
    engine: str | None

    @classmethod
    def of(cls, call: str, reference: object, options: OverlapOptions) -> SharedRequest:
        """Check the arguments of a call; errors as for :func:`overlap`."""
        return cls(call, passage_set_of(reference, call, options), options["engine"])

    @property
    def dtype(self) -> type[pl.DataType]:
        """Return the type of the result."""
        return pl.Boolean if self.name == "overlaps" else pl.Float64

    @ends_on_interrupt
    @by_steps
    def run(self, column: pl.Series) -> pl.Series:
        """Compute the value of each row of a column."""
        known = self.known

        def search(engine: Engine) -> tuple[Int64, Int64, Bools]:
            laid = read(known, column, self.name, engine)
            found = find(known, laid)
            return Windows(laid, known.length, found, found).count_covered(runs.KNOWN), laid.counts, laid.valid

        covered, counts, valid = on_engine(self.name, self.engine, column, search)
        if self.name == "overlap_share":
            return share_of(counts, covered).alias(column.name)
        found = pl.DataFrame({"found": covered > 0, "valid": valid})
        return found.select(pl.when("valid").then("found").alias("found")).to_series().alias(column.name)


@documented_by(count_phrase)
def overlap(
    column: pl.Series,
    reference: pl.Series | PassageSet,
    *,
    id: pl.Series | None = None,
    reference_id: pl.Series | None = None,
    **options: Unpack[OverlapOptions],
) -> pa.Table:
    """Find passages of at least ``length`` words that occur in a reference, too: exactly, none missed, none false.

    A match is an interval of words of a row that also occurs in a row of the reference, and that no longer match of the
    row contains. Matches of a row may overlap. A reference is read on the CPU.

    Parameters
    ----------
    reference
        The same, such as the questions of a test set; or a :class:`PassageSet` of it, which serves many columns.
    id
        Labels of the rows, one for each; default: row numbers.
    reference_id
        Labels of the reference's rows, one for each; default: row numbers.
    length
        Least number of words of a match; by default 13, or that of the :class:`PassageSet`.
    normalize
        Expression over ``pl.element()`` that maps each distinct word to a String; null or an empty string drops the
        word, and the words on either side become adjacent. Applied to the words of column and reference. Offsets and
        lengths count the column's own words, dropped ones inside a match included.
    tokenizer
        Cuts plain text into words, as for ``compress``; by default as the reference is cut if that is compressed, else
        "words". Column and reference must be cut by the same one.

    Returns
    -------
    pyarrow.Table
        ``id`` (the labels' type, or uint32), ``offset``, ``length: uint32`` (first word of the match and its number of
        words), ``reference`` (as ``id``), ``reference_offset: uint32`` (the first place of the match in the reference,
        by row, then position); in row order.

    Raises
    ------
    EngineUnavailableError
        ``engine="gpu"`` cannot run here; the message says what is missing. Or the device failed, or has too little
        memory for the column.
    LimitExceededError
        The column or the reference has more than 4,294,967,294 words and rows.
    TypeError
        ``reference`` is neither a series nor a :class:`PassageSet`, or cut by another tokenizer than the column;
        ``length`` is not an integer, ``normalize`` not an expression, ``lowercase`` not a bool or ``stopwords`` not a
        list of strings; ``id`` or ``reference_id`` is not a series, or of a type that results cannot hold.
    ValueError
        ``length`` is below 1; ``engine`` is unknown; ``id`` or ``reference_id`` has another length than its column;
        an option is given that a :class:`PassageSet` has already; or ``normalize`` reads columns or does not give one
        String or null per word.

    Examples
    --------
    >>> text = pl.Series("text", ["how many eggs are in a dozen of them", "eggs"])
    >>> questions = pl.Series(["Say: how many eggs are in a box", "are in a dozen"])
    >>> tadoc.overlap(text, questions, length=4).to_pylist()[1]
    {'id': 0, 'offset': 3, 'length': 4, 'reference': 1, 'reference_offset': 0}

    """
    require_text(column, "overlap")  # before the arguments, which the caller may have swapped
    found = OverlapRequest.run(column, id, reference, reference_id, options)
    table: pa.Table = found.to_arrow(compat_level=pl.CompatLevel.oldest())
    return table


@documented_by(overlap, returns=SHARE.format(0))
def overlap_share(column: pl.Series, reference: pl.Series | PassageSet, **options: Unpack[OverlapOptions]) -> pl.Series:
    """Return the share of each row's words inside windows that a reference has, too.

    Words that normalisation drops do not count.

    Parameters
    ----------
    length
        Words of a window; by default 13, or that of the :class:`PassageSet`.

    Examples
    --------
    >>> text = pl.Series("text", ["how many eggs are in a dozen", "eggs"])
    >>> tadoc.overlap_share(text, pl.Series(["Say: how many eggs"]), length=3).round(2).to_list()
    [0.43, 0.0]

    """
    return _shared("overlap_share", column, reference, options)


@documented_by(overlap_share, returns=BY_ROW)
def overlaps(column: pl.Series, reference: pl.Series | PassageSet, **options: Unpack[OverlapOptions]) -> pl.Series:
    """Tell which rows have at least ``length`` adjacent words of a reference.

    Examples
    --------
    >>> text = pl.Series("text", ["how many eggs are in a dozen", "eggs"])
    >>> tadoc.overlaps(text, pl.Series(["Say: how many eggs"]), length=3).to_list()
    [True, False]

    """
    return _shared("overlaps", column, reference, options)


def _shared(call: str, column: pl.Series, reference: object, options: OverlapOptions) -> pl.Series:
    require_text(column, call)
    with bar_over(column, call):
        return SharedRequest.of(call, reference, options).run(column)
