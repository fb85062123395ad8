"""Passages that occur more than once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.cleaning.laid_words import lay_out
from polars_tadoc.analytics.cleaning.options import RepeatsOptions, reading_of, require_length
from polars_tadoc.analytics.cleaning.windows import Windows, find_windows
from polars_tadoc.kernels.host.passages import runs as kernels
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.records.labelled_results import Labels, numbers
from polars_tadoc.rows.phrases import count_phrase
from polars_tadoc.runtime.array_types import Bools, Int64, UInt64
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.option_signature import takes_options
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks
from polars_tadoc.traversal.options import require_min_count


def schema(id_type: pl.DataType | None = None) -> pl.Schema:
    """Return the columns of the result, given the type of the ``id`` column, if there is one."""
    whole = pl.UInt32()
    return pl.Schema(
        {"id": Labels.dtype(id_type), "offset": whole, "length": whole, "copies": pl.UInt64(), "first": pl.Boolean()}
    )


def find_runs(windows: Windows, kind: int, min_count: int) -> tuple[Int64, Int64, Int64]:
    """Find the maximal runs of words in windows of a kind (:mod:`polars_tadoc.kernels.host.passages.runs`).

    Returns
    -------
    (int64, int64, int64) arrays
        By run, in row order: row, place of the first word in ``laid.words``, and of the one after the last.

    """
    starts, none = windows.laid.starts, np.zeros(0, np.int64)
    fixed = (windows.length, kind, min_count, windows.first, windows.counts)

    def find(rows: tuple[int, int]) -> Any:
        count = kernels.find_runs(starts, *rows, *fixed, none, none, none)
        found = tuple(np.empty((3, count), np.int64))
        kernels.find_runs(starts, *rows, *fixed, *found)
        return found

    parts = map_parallel(find, weighted_chunks(starts))
    rows, begins, ends = (np.concatenate(part) for part in zip(*parts, strict=True))
    return rows, begins, ends


@dataclass(frozen=True)
class RepeatsRequest:
    """The checked arguments of a call."""

    name: ClassVar[str] = "repeats"
    length: int
    min_count: int
    tokenizer: Tokenizer | None
    morphism: Morphism | None

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[RepeatsOptions]) -> RepeatsRequest:
        """Check the arguments; errors as for :func:`repeats`."""
        return cls(require_length(options["length"]), require_min_count(options["min_count"]), *reading_of(options))

    @ends_on_interrupt
    def frame(self, column: pl.Series, id: pl.Series | None = None) -> pl.DataFrame:
        """Find the passages of a column held in memory."""
        laid = lay_out(column, self.name, self.tokenizer, self.morphism)
        labels = Labels.of(column, id, self.name)
        windows = find_windows(laid, self.length)
        rows, begins, ends = find_runs(windows, kernels.REPEATED, self.min_count)
        copies, are_first = np.empty(len(rows), np.uint32), np.empty(len(rows), np.bool_)
        kernels.describe_runs(begins, ends, self.length, windows.first, windows.counts, copies, are_first)
        offsets = laid.own(rows, begins)
        lengths = laid.own(rows, ends - 1) + 1 - offsets
        return passages_frame(labels, rows, offsets, lengths, copies.astype(np.uint64), are_first)


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
    Runs on the CPU.

    Parameters
    ----------
    column
        Compressed column, or plain text (String, Categorical or Enum).
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
    InvalidGrammarError
        A payload or a row is damaged.
    LimitExceededError
        The column has more than 4,294,967,294 words and rows.
    TypeError
        ``length`` or ``min_count`` is not an integer, ``normalize`` not an expression, ``lowercase`` not a bool or
        ``stopwords`` not a list of strings; ``id`` is not a series, or of a type that results cannot hold.
    ValueError
        ``length`` is below 1, ``id`` has another length than the column, or ``normalize`` reads columns or does not
        give one String or null per word.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> text = pl.Series("text", ["to be or not to be", "whether to be or not"])
    >>> tadoc.repeats(text, length=3).to_pylist()[1]
    {'id': 1, 'offset': 1, 'length': 4, 'copies': 2, 'first': False}

    """
    found = RepeatsRequest.from_arguments(**options).frame(column, id)
    table: pa.Table = found.to_arrow(compat_level=pl.CompatLevel.oldest())
    return table
