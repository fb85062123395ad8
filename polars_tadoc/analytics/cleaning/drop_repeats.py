"""Drops repeated passages, or rows that mostly repeat others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.cleaning.laid_words import lay_out
from polars_tadoc.analytics.cleaning.options import DropRepeatsOptions, reading_of, require_length
from polars_tadoc.analytics.cleaning.repeats import repeats
from polars_tadoc.analytics.cleaning.shares import share_of
from polars_tadoc.analytics.cleaning.windows import Made, Windows, find_windows, on_engine
from polars_tadoc.compress.compress import compress, named_tokenizer
from polars_tadoc.compress.decompress import decompress
from polars_tadoc.engine.choose import Engine, require_engine
from polars_tadoc.engine.progress import by_steps
from polars_tadoc.kernels.host.passages import cuts as kernels
from polars_tadoc.kernels.host.passages import runs
from polars_tadoc.kernels.primitives.lists import gather_lists, running_sum
from polars_tadoc.kernels.tokenize.row_words import count_row_words, find_row_words
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.column import split
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.rows.token_count import document_words
from polars_tadoc.runtime.array_types import Int64
from polars_tadoc.runtime.arrow_memory import binary_views, owned
from polars_tadoc.runtime.cached_property import cached_property
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.option_signature import takes_options
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks
from polars_tadoc.runtime.plain_name import plain
from polars_tadoc.traversal.text_corpus import WORDS, is_text, require_text

KINDS = {"first": runs.LATER, "none": runs.REPEATED}
UNITS = ("passage", "row")


@dataclass(frozen=True)
class DropRepeatsRequest:
    """The checked arguments of a call."""

    name: ClassVar[str] = "drop_repeats"
    length: int
    kind: int
    unit: str
    share: float
    tokenizer: Tokenizer | None
    morphism: Morphism | None
    engine: str | None = None

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[DropRepeatsOptions]) -> DropRepeatsRequest:
        """Check the arguments; errors as for :func:`drop_repeats`."""
        keep, unit, share = options["keep"], options["unit"], options["share"]
        if keep not in KINDS:
            raise ValueError(f'drop_repeats: keep={keep!r}: use "first" or "none"')
        if unit not in UNITS:
            raise ValueError(f'drop_repeats: unit={unit!r}: use "passage" or "row"')
        if not isinstance(share, (int, float)) or isinstance(share, bool):
            raise TypeError(f"drop_repeats: share={share!r} must be a number")
        if not 0 < share <= 1:
            raise ValueError(f"drop_repeats: share={share!r} must be above 0 and at most 1")
        if unit != "row" and share != 1:
            raise ValueError(f'drop_repeats: share={share!r} is for whole rows; add unit="row"')
        require_engine(options["engine"])
        reading = *reading_of(options), options["engine"]
        return cls(require_length(options["length"]), KINDS[keep], unit, float(share), *reading)

    @ends_on_interrupt
    @by_steps
    def run(self, column: pl.Series) -> pl.Series:
        """Return a column without its repeats."""
        require_text(column, "drop_repeats")
        return column.filter(self.kept_rows(column)) if self.unit == "row" else self.cut(column)

    @ends_on_interrupt
    @by_steps
    def kept_rows(self, column: pl.Series) -> pl.Series:
        """Tell which rows stay."""

        def find(windows: Windows) -> pl.Series:
            return share_of(windows.laid.counts, windows.count_covered(self.kind))

        return ~(self._of_windows(column, find) >= self.share).fill_null(False).alias(column.name)

    def _of_windows(self, column: pl.Series, find: Callable[[Windows], Made]) -> Made:
        """Return a function's value of the windows, on the engine chosen for the column."""
        column = require_text(column, self.name)

        def work(engine: Engine) -> Made:
            return find(find_windows(lay_out(column, self.name, self.tokenizer, self.morphism, engine), self.length))

        return on_engine(self.name, self.engine, column, work)

    @ends_on_interrupt
    @by_steps
    def cut(self, column: pl.Series) -> pl.Series:
        """Cut repeated passages out of the rows."""
        self.require_shortable(column.dtype, column.name)

        def find(windows: Windows) -> Cuts:
            rows, begins, ends = windows.find_runs(self.kind, 2)
            return Cuts(rows, windows.laid.own(rows, begins), windows.laid.own(rows, ends - 1) + 1)

        return self.cut_out(column, self._of_windows(column, find))

    @staticmethod
    def require_shortable(dtype: pl.DataType, column: str) -> None:
        """Raise ``TypeError`` for types that cannot hold shorter texts."""
        if isinstance(dtype, pl.Enum):
            raise TypeError(
                f'drop_repeats: column "{column}" is an Enum, which has no place for shorter texts; cast it to '
                "pl.String first"
            )

    def without(self, frame: pl.DataFrame, column: str, cuts: Cuts, are_kept: pl.Series) -> pl.DataFrame:
        """Return a frame whose column has some words less, or only some of its rows."""
        if self.unit == "row":
            return frame.filter(are_kept)
        return frame.with_columns(self.cut_out(frame[column], cuts).alias(column))

    @ends_on_interrupt
    def cut_out(self, column: pl.Series, cuts: Cuts) -> pl.Series:
        """Cut intervals of words out of the rows."""
        if len(cuts.rows) == 0:
            return column
        if is_text(column.dtype):
            text = plain(column.cast(pl.String)).gather(cuts.own_rows)
            return _replaced(column, cuts.own_rows, cuts.texts(text, self.tokenizer or WORDS).cast(column.dtype))
        changed, parts = [], []
        for corpus in split(column):
            some = cuts.of(corpus.rows)
            if len(some.rows):
                own_rows, tokenizer = some.own_rows, named_tokenizer(corpus.grammar)
                before = plain(column).gather(own_rows)
                known = document_words(corpus)[np.isin(corpus.rows, own_rows)].astype(np.int64)
                shorter = some.texts(decompress(before), tokenizer, known)
                changed.append(own_rows)
                parts.append(compress(shorter, like=before))
        return _replaced(column, np.concatenate(changed), *parts)


def _replaced(column: pl.Series, rows: Int64, *values: pl.Series) -> pl.Series:
    """Return a column with other values in some rows."""
    places = np.arange(len(column))
    places[rows] = len(column) + np.arange(len(rows))
    both = pl.concat([plain(column), *map(plain, values)])
    return both.gather(places).alias(column.name)


@dataclass(frozen=True, eq=False)
class Cuts:
    """Intervals of words, in row order."""

    rows: Int64
    firsts: Int64
    stops: Int64
    """int64: row, ascending; the first word, and the one after the last; not adjacent to other intervals."""

    @cached_property
    def own_rows(self) -> Int64:
        """The rows that have intervals, each once."""
        return self.rows[self.offsets[:-1]]

    @cached_property
    def offsets(self) -> Int64:
        """Where the intervals of each of :attr:`own_rows` start, and the end of the last ones."""
        inner = np.flatnonzero(self.rows[1:] != self.rows[:-1]) + 1
        return np.concatenate([[0], inner, [len(self.rows)]])[len(self.rows) == 0 :]

    def of(self, rows: Int64) -> Cuts:
        """Return the intervals of some rows, ascending."""
        places = np.searchsorted(self.own_rows, rows)
        places = places[self.own_rows[np.minimum(places, len(self.own_rows) - 1)] == rows]
        offsets, firsts = gather_lists(self.offsets, self.firsts, places)
        own_rows = np.repeat(self.own_rows[places], np.diff(offsets))
        return Cuts(own_rows, firsts, gather_lists(self.offsets, self.stops, places)[1])

    def texts(self, text: pl.Series, tokenizer: Tokenizer, known: Int64 | None = None) -> pl.Series:
        """Return the texts of :attr:`own_rows` without the intervals.

        Parameters
        ----------
        text
            String column of :attr:`own_rows`.
        tokenizer
            Cuts it into words.
        known
            int64 by row: the number of words that it must have; None: any.

        """
        own_rows, offsets = self.own_rows, self.offsets
        places = np.repeat(np.arange(len(own_rows)), np.diff(offsets))
        words = count_row_words(text, tokenizer).astype(np.int64)
        wrong = np.flatnonzero(words != known) if known is not None else own_rows[:0]
        if len(wrong):
            raise ValueError(
                f"drop_repeats: row {own_rows[wrong[0]]} was compressed with lossless=False, and its words joined by "
                f'spaces are cut differently by "{tokenizer.name}"; use unit="row", or compress the original text'
            )
        addresses, lengths, owner = binary_views(text)
        sizes = lengths.astype(np.int64)
        # words before, in and after each interval; at a row's ends there may be none before or after
        before_firsts = np.append(0, self.stops[:-1])
        before_firsts[offsets[:-1]] = 0
        after_stops = np.append(self.firsts[1:], 0)
        after_stops[offsets[1:] - 1] = words
        kinds = (before_firsts, self.firsts), (self.firsts, self.stops), (self.stops, after_stops)
        spans = [find_row_words(text, tokenizer, places, *kind) for kind in kinds]
        befores = np.where(before_firsts < self.firsts, spans[0][1], 0)
        starts, stops = spans[1]
        afters = np.where(self.stops < after_stops, spans[2][0], sizes[places])

        def choose(chunk: tuple[int, int]) -> None:
            own = slice(*chunk)
            kernels.choose_separators(addresses, places[own], befores[own], starts[own], stops[own], afters[own])

        map_parallel(choose, even_chunks(len(places)))
        removed = np.add.reduceat(stops - starts, offsets[:-1])
        text_offsets = running_sum(sizes - removed)
        data = np.empty(text_offsets[-1], np.uint8)

        def remove(chunk: tuple[int, int]) -> None:
            own, ends = slice(*chunk), slice(chunk[0], chunk[1] + 1)
            kernels.remove_bytes(addresses[own], lengths[own], offsets[ends], starts, stops, text_offsets[ends], data)

        map_parallel(remove, weighted_chunks(text_offsets))
        del owner  # the addresses point into it until here
        buffers: list[Any] = [None, owned(text_offsets), owned(data)]
        return pl.Series(text.name, pa.LargeStringArray.from_buffers(len(text), *buffers[1:]))


@documented_by(repeats)
def drop_repeats(column: pl.Series, **options: Unpack[DropRepeatsOptions]) -> pl.Series:
    r"""Drop repeated passages, or whole rows that repeat others, so that nothing is lost that is nowhere else.

    A word is dropped if and only if it is in a repeated window, as :func:`repeats` defines it with ``min_count=2``,
    that is not the window's first occurrence. Where text is cut, of the two separators the one with more line breaks
    (``"\n"``) stays, of equal ones the first. Words that ``normalize`` or ``stopwords`` drop inside a passage go with
    it.

    Parameters
    ----------
    length
        Words of a window.
    keep
        "first" keeps the first occurrence of each window; "none" drops every repeated window.
    unit
        "passage" cuts words out of rows; "row" drops whole rows.
    share
        With ``unit="row"``: least share of a row's words to be dropped for dropping the row.

    Returns
    -------
    Series
        In the form of the column: cut rows of a compressed column are compressed again, with its grammar if that takes
        fewer bytes (:func:`compress`, ``like=``). With ``unit="passage"`` it has the column's length; a row of which
        nothing stays is empty, not null. Null rows stay.

    Raises
    ------
    TypeError
        ``length`` is not an integer or ``share`` not a number, ``normalize`` not an expression, ``lowercase`` not a
        bool or ``stopwords`` not a list of strings; or passages are to be cut out of an Enum column.
    ValueError
        ``length`` is below 1, ``keep`` or ``unit`` is unknown, ``share`` is not above 0 and at most 1, or is given for
        passages; a row to be cut was compressed with ``lossless=False``, and cutting its words joined by spaces gives
        other words; or ``normalize`` reads columns or does not give one String or null per word.

    Examples
    --------
    >>> text = pl.Series("text", ["Use cookies? Yes.\nLeeks like sun.", "Use cookies? Yes.\nSow in spring."])
    >>> tadoc.drop_repeats(text, length=3).to_list()
    ['Use cookies? Yes.\nLeeks like sun.', '.\nSow in spring.']
    >>> tadoc.drop_repeats(text, length=3, unit="row", share=0.5).to_list()
    ['Use cookies? Yes.\nLeeks like sun.']

    """
    return DropRepeatsRequest.from_arguments(**options).run(column)
