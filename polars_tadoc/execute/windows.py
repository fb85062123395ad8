"""Rows of a plan in consecutive windows, for results that are computed row by row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import polars.selectors as cs

from polars_tadoc.execute.fitting import fitting, require_fitting_footers, require_row_numbers
from polars_tadoc.execute.splits import stop_of, words_before, working_bytes
from polars_tadoc.model.column import split_one_by_one
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.text_type import in_form, storage
from polars_tadoc.packed.pushdown import PackedQuestion, packed_question
from polars_tadoc.packed.unpack import chosen
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.free_memory import GROWN_SHARE, give_back_memory
from polars_tadoc.runtime.io_source import batches
from polars_tadoc.runtime.plain_name import plain
from polars_tadoc.traversal.text_corpus import BYTES_A_WORD, is_text

ROWS_SHARE = 64
"""Maximum share of the limit for the compressed rows of a window."""

TEXT_SHARE = 16
"""Maximum share of the limit for the text of a window; tokenizing takes several times as much."""

AHEAD_SHARE = 4
"""Share of the limit that the current partition and those decoded ahead may take; none is if they take more."""

WORD_BYTES = 60
"""Approximate maximum bytes per word of data made from the counts of documents, if most words of a document are
distinct."""


@array_dataclass
class Window:
    """Consecutive rows of a plan, including null rows."""

    first: int
    """Number of its first row in the plan."""
    frame: pl.DataFrame
    """Other columns; has the window's height even without columns."""
    corpora: tuple[Corpus, ...]
    """Rows that are not null, by grammar; ``Corpus.rows`` has row numbers of the plan."""
    column: pl.Series | None = None
    """The rows as a String or compressed column; None for a packed row."""

    @property
    def documents(self) -> Sequence[Corpus | pl.Series]:
        """Return the rows in the form that stages take."""
        if self.column is not None and self.column.dtype == pl.String:
            return [self.column]
        return self.corpora

    @property
    def height(self) -> int:
        """Number of its rows."""
        return self.frame.height


def windows_of(plan: pl.LazyFrame, column: str, others: list[str], limit: int, gaps: bool = False) -> Iterator[Window]:
    """Yield the rows of a plan; reads packed rows directly if the plan only selects documents of a scan.

    Parameters
    ----------
    plan
        The plan.
    column
        The column, compressed or String.
    others
        Names of other columns.
    limit
        Maximum bytes of a grammar with its documents.
    gaps
        Also read the separators of words.

    Raises
    ------
    LimitExceededError
        A grammar with its documents does not fit.

    """
    question = question_of(plan, column, others)
    if question is not None:
        return packed_windows(question, others, limit, gaps)
    return plan_windows(plan, column, others, limit, gaps)


def question_of(plan: pl.LazyFrame, column: str, others: list[str]) -> PackedQuestion | None:
    """Return the documents of a packed scan that a plan selects; None if it does more. Parameters as above."""
    if column in others:
        return None
    question = packed_question(plan.select(cs.by_name(column, *dict.fromkeys(others))))
    return question if question is not None and question.scan.column == column else None


def packed_windows(
    question: PackedQuestion, others: list[str], limit: int, gaps: bool = False, ahead: int = 0
) -> Iterator[Window]:
    """Yield the documents of a packed scan: an empty window, then one per packed row that may have selected documents.

    Parameters and errors as of :func:`windows_of`; ``ahead`` is the maximum of bytes of row groups that are decoded
    ahead.
    """
    require_fitting_footers(question, limit)
    first = 0
    yield Window(0, chosen(question.scan.schema.to_frame(), others), ())  # there may be no documents
    for frame, corpus in question.corpora(others, cached=False, gaps=gaps, ahead=ahead):
        require_row_numbers(first + frame.height)
        yield Window(first, frame, (fitting(corpus, limit),))
        first += frame.height


def in_parts(window: Window, limit: int) -> Iterator[Window]:
    """Split a packed row's documents into pieces whose counts by document fit, if they have too many words.

    Other windows are small and stay whole.
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
    """Like :func:`windows_of` for a plan that runs in Polars' streaming engine.

    Rows are collected until they fill a share of the limit; the last window may be empty. The last rows of a compressed
    grammar are held back for the next window, so that most grammars are read once.
    """
    read = plan.select(cs.by_name(*dict.fromkeys([column, *others])))
    if column not in others and is_text(read.collect_schema()[column]):
        read = read.with_columns(cs.by_name(column).cast(pl.String))
    held = [read.collect_schema().to_frame()]  # a plan without rows may give no batch
    first = size = 0
    for batch in batches(read):
        require_row_numbers(first + sum(frame.height for frame in held) + batch.height)
        text = is_text(batch.schema[column])
        if not (text or gaps or column in others):  # as a label, the whole column is needed
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


def windows_of_texts(plan: pl.LazyFrame, columns: Sequence[str], others: list[str], limit: int) -> Iterator[Window]:
    """Yield the rows of a plan with several columns of text or compressed text, all in the windows' frames.

    Rows are collected until the text of these columns fills a share of the limit; the last window may be empty.
    """
    read = plan.select(cs.by_name(*dict.fromkeys([*columns, *others])))
    held = [read.collect_schema().to_frame()]
    first = size = 0
    for batch in batches(read):
        require_row_numbers(first + sum(frame.height for frame in held) + batch.height)
        held.append(batch)
        size += sum(_text_bytes(batch[name]) for name in columns)
        if size >= limit // TEXT_SHARE:
            frame = pl.concat(held)
            yield Window(first, frame, ())
            held, first, size = [frame.clear()], first + frame.height, 0
    yield Window(first, pl.concat(held), ())


def _text_bytes(column: pl.Series) -> int:
    """Return the bytes of text of rows, also of compressed ones."""
    if is_text(column.dtype):
        return int(column.cast(pl.String).str.len_bytes().sum())
    words = sum(corpus.word_total() for corpus in split_one_by_one(column, cached=False))
    return int(words) * BYTES_A_WORD


def _window(frame: pl.DataFrame, column: str, others: list[str], first: int, limit: int) -> Window:
    rows = frame[column]
    rows = rows.cast(pl.String) if is_text(rows.dtype) else rows
    corpora: tuple[Corpus, ...] = ()
    if rows.dtype != pl.String:
        found = (fitting(corpus, limit) for corpus in split_one_by_one(rows, cached=False))
        corpora = tuple(replace(corpus, rows=corpus.rows + first) for corpus in found)
    return Window(first, chosen(frame, others), corpora, rows)


def _before_last_grammar(column: pl.Series) -> int:
    """Return the number of rows before the final run of rows with one grammar; all rows if there is only one."""
    codes = plain(column).struct.field("grammar").to_physical()
    used = codes.drop_nulls()
    if not len(used):
        return len(codes)
    others = np.flatnonzero((codes != used[-1]).fill_null(False).to_numpy())
    return int(others[-1]) + 1 if len(others) else len(codes)


def _without_gaps(column: pl.Series) -> pl.Series:
    """Drop separators, which most analytics do not read."""
    column = plain(column)
    gaps = pl.Series("gaps", [None], pl.Binary).new_from_index(0, len(column))
    return pl.DataFrame([column.struct.field("grammar"), column.struct.field("symbols"), gaps]).to_struct("text")


def _nbytes(column: pl.Series) -> int:
    """Bytes of rows."""
    column = plain(column)
    gaps = int(column.struct.field("gaps").bin.size().sum())
    return 4 * int(column.struct.field("symbols").list.len().sum()) + gaps + 40 * len(column)
