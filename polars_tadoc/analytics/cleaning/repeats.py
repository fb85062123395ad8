"""Passages that occur more than once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.cleaning.laid_words import lay_out
from polars_tadoc.analytics.cleaning.options import RepeatsOptions, reading_of, require_length
from polars_tadoc.analytics.cleaning.windows import find_windows, on_engine
from polars_tadoc.engine.choose import Engine, require_engine
from polars_tadoc.engine.progress import by_steps
from polars_tadoc.kernels.host.passages import runs
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.arrow_results import numbers
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.rows.phrases import count_phrase
from polars_tadoc.runtime.array_types import Bools, Int64, UInt64
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.option_signature import takes_options
from polars_tadoc.traversal.options import require_min_count
from polars_tadoc.traversal.text_corpus import require_text


def schema(id_type: pl.DataType | None = None) -> pl.Schema:
    """Return the columns of the result, given the type of the ``id`` column, if there is one."""
    whole = pl.UInt32()
    return pl.Schema(
        {"id": Labels.dtype(id_type), "offset": whole, "length": whole, "copies": pl.UInt64(), "first": pl.Boolean()}
    )


@dataclass(frozen=True)
class RepeatsRequest:
    """The checked arguments of a call."""

    name: ClassVar[str] = "repeats"
    length: int
    min_count: int
    tokenizer: Tokenizer | None
    morphism: Morphism | None
    engine: str | None = None

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[RepeatsOptions]) -> RepeatsRequest:
        """Check the arguments; errors as for :func:`repeats`."""
        require_engine(options["engine"])
        least = require_min_count(options["min_count"], 0)
        return cls(require_length(options["length"]), least, *reading_of(options), options["engine"])

    @ends_on_interrupt
    @by_steps
    def frame(self, column: pl.Series, id: pl.Series | None = None) -> pl.DataFrame:
        """Find the passages of a column held in memory."""
        column = require_text(column, self.name)
        labels = Labels.of(column, id, self.name)
        return passages_frame(
            labels, *on_engine(self.name, self.engine, column, lambda engine: self._on(column, engine))
        )

    def _on(self, column: pl.Series, engine: Engine) -> tuple[Int64, Int64, Int64, UInt64, Bools]:
        """Return row, offset, length, copies, and whether first, of each passage."""
        laid = lay_out(column, self.name, self.tokenizer, self.morphism, engine)
        windows = find_windows(laid, self.length)
        rows, begins, ends = windows.find_runs(runs.REPEATED, self.min_count)
        copies, are_first = engine.kernels.describe_runs(begins, ends, self.length, windows.first, windows.counts)
        offsets = laid.own(rows, begins)
        return rows, offsets, laid.own(rows, ends - 1) + 1 - offsets, copies.astype(np.uint64), are_first


def passages_frame(
    labels: Labels, rows: Int64, offsets: Int64, lengths: Int64, copies: UInt64, are_first: Bools
) -> pl.DataFrame:
    """Make the result of its columns."""
    found = [
        labels.series(rows).alias("id"),
        numbers("offset", offsets.astype(np.uint32)),
        numbers("length", lengths.astype(np.uint32)),
        numbers("copies", copies),
        pl.Series("first", are_first),
    ]
    return pl.DataFrame(found)


@documented_by(count_phrase)
def repeats(column: pl.Series, *, id: pl.Series | None = None, **options: Unpack[RepeatsOptions]) -> pa.Table:
    """Find passages of at least ``length`` words that occur more than once, exactly.

    A window of exactly ``length`` words is repeated if it occurs at ``min_count`` places or more, in all rows together;
    occurrences may overlap, and several may be in one row. A passage is a maximal run of words inside repeated
    windows. A row with fewer words has no window.

    Windows are found by rolling fingerprints (R. M. Karp and M. O. Rabin, *Efficient randomized pattern-matching
    algorithms*, 1987), and every match is compared word by word, so that results are exact. The same definition of
    repeated text as in K. Lee et al., *Deduplicating training data makes language models better*, ACL 2022, for words.

    Parameters
    ----------
    id
        Labels of the rows, one for each; default: row numbers.
    length
        Words of a window, the least length of a passage.
    min_count
        Least number of occurrences of a window.
    normalize
        Expression over ``pl.element()`` that maps each distinct word to a String; null or an empty string drops the
        word, and the words on either side become adjacent. Offsets and lengths count the column's own words, dropped
        ones inside a passage included.

    Returns
    -------
    pyarrow.Table
        ``id`` (the labels' type, or uint32), ``offset``, ``length: uint32`` (the passage's first word and its number of
        words, for :func:`extract`), ``copies: uint64`` (the largest count of any of its windows), ``first: bool``
        (whether each of its windows is its first occurrence, by row, then position); in row order.

    Raises
    ------
    EngineUnavailableError
        ``engine="gpu"`` cannot run here; the message says what is missing. Or the device failed, or has too little
        memory for the column.
    InvalidGrammarError
        A payload or a row is damaged.
    LimitExceededError
        The column has more than 4,294,967,294 words and rows.
    TypeError
        ``length`` or ``min_count`` is not an integer, ``normalize`` not an expression, ``lowercase`` not a bool or
        ``stopwords`` not a list of strings; ``id`` is not a series, or of a type that results cannot hold.
    ValueError
        ``length`` is below 1, ``min_count`` is negative, ``engine`` is unknown, ``id`` has another length than the
        column, or ``normalize`` reads columns or does not give one String or null per word.

    Examples
    --------
    >>> text = pl.Series("text", ["to be or not to be", "whether to be or not"])
    >>> tadoc.repeats(text, length=3).to_pylist()[1]
    {'id': 1, 'offset': 1, 'length': 4, 'copies': 2, 'first': False}

    """
    found = RepeatsRequest.from_arguments(**options).frame(column, id)
    table: pa.Table = found.to_arrow(compat_level=pl.CompatLevel.oldest())
    return table
