"""Rows of a plan, so many at a time, in their order: what is answered row by row needs no more of them at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import polars.selectors as cs

from polars_tadoc.execute.fitting import bytes_needed, fitting, require_fitting_footers, require_row_numbers
from polars_tadoc.execute.splits import stop_of, words_before, working_bytes
from polars_tadoc.model.column import split_one_by_one
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.text_type import in_form, storage
from polars_tadoc.packed.pushdown import PackedQuestion, packed_question
from polars_tadoc.packed.unpack import chosen
from polars_tadoc.runtime.free_memory import GROWN_SHARE, give_back_memory
from polars_tadoc.runtime.io_source import batches
from polars_tadoc.runtime.prefetch import read_ahead
from polars_tadoc.traversal.text_corpus import is_text

ROWS_SHARE = 64
"""Compressed rows of a window take at most such a share of the limit."""

TEXT_SHARE = 16
"""Text of a window takes at most such a share of the limit; cutting it into words takes several times as much."""

AHEAD_SHARE = 4
"""While a partition is worked on that takes at most such a share of the limit, the next one is read."""

WORD_BYTES = 60
"""What is made of the counts of documents takes, for each word of theirs, at most about so many bytes: where most words
of a document differ."""


@dataclass(frozen=True, eq=False)
class Window:
    """Rows that stand together in a plan, null ones too."""

    first: int
    """Number of its first row in the plan."""
    frame: pl.DataFrame
    """Other columns of its rows; it has as many rows even where there are none."""
    corpora: tuple[Corpus, ...]
    """Its rows that are not null, grammar by grammar; ``Corpus.rows`` number the plan's rows."""
    column: pl.Series | None = None
    """Its rows themselves where they came as a column, String or compressed; None of a packed row."""

    @property
    def documents(self) -> Sequence[Corpus | pl.Series]:
        """Its rows, as stages take them."""
        if self.column is not None and self.column.dtype == pl.String:
            return [self.column]
        return self.corpora

    @property
    def height(self) -> int:
        """Number of its rows."""
        return self.frame.height


def windows_of(plan: pl.LazyFrame, column: str, others: list[str], limit: int, gaps: bool = False) -> Iterator[Window]:
    """Give the rows of a plan: from packed rows as they are, where it does no more than choose documents of a scan.

    Parameters
    ----------
    plan
        The plan.
    column
        The column, compressed or String.
    others
        Names of other columns.
    limit
        Bytes that one grammar with its documents may take.
    gaps
        Give what stood between words, too.

    Raises
    ------
    LimitExceededError
        One grammar with its documents does not fit.

    """
    question = question_of(plan, column, others)
    if question is not None:
        return packed_windows(question, others, limit, gaps)
    return plan_windows(plan, column, others, limit, gaps)


def question_of(plan: pl.LazyFrame, column: str, others: list[str]) -> PackedQuestion | None:
    """Tell which documents of a packed scan a plan chooses; None where it does more; parameters as above."""
    if column in others:
        return None
    question = packed_question(plan.select(cs.by_name(column, *dict.fromkeys(others))))
    return question if question is not None and question.scan.column == column else None


def packed_windows(question: PackedQuestion, others: list[str], limit: int, gaps: bool = False) -> Iterator[Window]:
    """Give the documents of a packed scan: an empty window, then one for each packed row of which one may pass.

    Parameters
    ----------
    question
        The documents.
    others
        Names of other columns.
    limit
        Bytes that one grammar with its documents may take.
    gaps
        Give what stood between words, too.

    Raises
    ------
    LimitExceededError
        One grammar with its documents does not fit.

    """
    require_fitting_footers(question, limit)
    first = 0
    yield Window(0, chosen(question.scan.schema.to_frame(), others), ())  # there may be no document
    for frame, corpus in question.corpora(others, cached=False, gaps=gaps):
        require_row_numbers(first + frame.height)
        yield Window(first, frame, (fitting(corpus, limit),))
        first += frame.height


def read_ahead_windows(windows: Iterator[Window], limit: int) -> Iterator[Window]:
    """Read the next window of a packed scan while one is worked on that leaves room for it."""
    return read_ahead(windows, lambda window: sum(map(bytes_needed, window.corpora)) <= limit // AHEAD_SHARE)


def in_parts(window: Window, limit: int) -> Iterator[Window]:
    """Cut a packed row's documents into stretches whose counts by document fit, if they are too many words.

    Other windows are small, and given as they are.
    """
    most = working_bytes(limit) // WORD_BYTES
    is_packed_row = len(window.corpora) == 1 and window.column is None
    if not is_packed_row or window.corpora[0].word_total() <= most:
        yield window
        give_back_memory(limit // GROWN_SHARE)
        return
    corpus = window.corpora[0]
    before = words_before(corpus)
    first, row = 0, window.first
    while first < corpus.document_count:
        stop = stop_of(before, first, most)
        is_last = stop == corpus.document_count
        next_row = window.first + window.height if is_last else int(corpus.rows[stop])
        yield Window(row, window.frame.slice(row - window.first, next_row - row), (corpus.some(first, stop),))
        give_back_memory(limit // GROWN_SHARE)
        first, row = stop, next_row


def plan_windows(
    plan: pl.LazyFrame, column: str, others: list[str], limit: int, gaps: bool = False
) -> Iterator[Window]:
    """Do the same for a plan, which runs in Polars' streaming engine.

    Rows are gathered until a share of the limit is full; the last window may be empty. Of compressed rows the last ones
    of one grammar wait for what comes next, so that most grammars are read once.
    """
    read = plan.select(cs.by_name(*dict.fromkeys([column, *others])))
    if column not in others and is_text(read.collect_schema()[column]):
        read = read.with_columns(cs.by_name(column).cast(pl.String))
    held = [read.collect_schema().to_frame()]  # of a plan without rows there may be no batch
    first = size = 0
    for batch in batches(read):
        require_row_numbers(first + sum(frame.height for frame in held) + batch.height)
        text = batch.schema[column] == pl.String
        if not (text or gaps or column in others):  # as a label it is given whole
            bare = _without_gaps(storage(batch[column])).alias(column)
            batch = batch.with_columns(in_form(bare, batch.schema[column]))
        held.append(batch)
        size += int(batch[column].estimated_size()) if text else _nbytes(storage(batch[column]))
        if size < limit // (TEXT_SHARE if text else ROWS_SHARE):
            continue
        frame = pl.concat(held)
        stop = frame.height if text else _before_last_grammar(storage(frame[column]))
        yield _window(frame.head(stop), column, others, first, limit)
        held, first = [frame.slice(stop)], first + stop
        size = 0 if text else _nbytes(storage(held[0][column]))
    yield _window(pl.concat(held), column, others, first, limit)


def _window(frame: pl.DataFrame, column: str, others: list[str], first: int, limit: int) -> Window:
    rows = frame[column]
    corpora: tuple[Corpus, ...] = ()
    if rows.dtype != pl.String:
        found = (fitting(corpus, limit) for corpus in split_one_by_one(rows, cached=False))
        corpora = tuple(replace(corpus, rows=corpus.rows + first) for corpus in found)
    return Window(first, chosen(frame, others), corpora, rows)


def _before_last_grammar(column: pl.Series) -> int:
    """Count the rows before the last ones that all have one grammar; all where there are no others."""
    codes = column.alias("text").struct.field("grammar").to_physical()
    used = codes.drop_nulls()
    if not len(used):
        return len(codes)
    others = np.flatnonzero((codes != used[-1]).fill_null(False).to_numpy())
    return int(others[-1]) + 1 if len(others) else len(codes)


def _without_gaps(column: pl.Series) -> pl.Series:
    """Drop what most analytics do not read."""
    column = column.alias("text")  # Polars' own calls take some names for patterns
    gaps = pl.Series("gaps", [None], pl.Binary).new_from_index(0, len(column))
    return pl.DataFrame([column.struct.field("grammar"), column.struct.field("symbols"), gaps]).to_struct("text")


def _nbytes(column: pl.Series) -> int:
    """Bytes of rows."""
    gaps = int(column.struct.field("gaps").bin.size().sum())
    return 4 * int(column.struct.field("symbols").list.len().sum()) + gaps + 40 * len(column)
