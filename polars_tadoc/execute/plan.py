"""Analytics as nodes of lazy plans: each reads only its columns, and equal ones in one plan run once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol
from weakref import WeakValueDictionary

import polars as pl
import polars.selectors as cs

from polars_tadoc.config import MOST, asked_progress, showing
from polars_tadoc.engine.host_memory import share_out, telling_share
from polars_tadoc.engine.machine_costs import repays_at
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.execute.fitting import require_row_numbers, suits_gpu
from polars_tadoc.execute.labels import KeptLabels
from polars_tadoc.execute.limited import Limited
from polars_tadoc.execute.stream import stream_result
from polars_tadoc.execute.windows import AHEAD_SHARE, packed_windows, plan_windows, question_of
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.packed.pushdown import PackedQuestion, most_partitions, packed_question
from polars_tadoc.records import Checkpoint
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.free_memory import small_arrow_memory
from polars_tadoc.runtime.io_source import at_work, register

CHECKPOINTED = (
    "checkpoint= requires a plan that only selects documents of tadoc.scan_packed(…); write the rows with "
    "lf.tadoc.sink_packed(path) first, and scan that"
)
WITHOUT_LIMIT = 'checkpoint= is for calls with memory_limit=, as memory_limit="2GB"'
ALWAYS_THE_SAME = (
    'checkpoint= does not support scan_packed(on_error="skip"), which may skip other partitions in the next run; '
    'scan with on_error="raise", without the unreadable files'
)


class Question(Protocol):
    """A question about a column; equal objects ask the same."""

    def frame(self, column: pl.Series, id: pl.Series | None = None) -> pl.DataFrame:
        """Answer with a frame."""


@array_dataclass
class _Reading:
    """Answers from a frame in memory."""

    question: Question
    column: str
    labels: str | None
    progress: bool | None

    @at_work()
    def __call__(self, df: pl.DataFrame) -> pl.DataFrame:
        with showing(self.progress):
            return self.question.frame(df[self.column], None if self.labels is None else df[self.labels])


_readings: WeakValueDictionary[tuple[Any, ...], _Reading] = WeakValueDictionary()
"""Functions of the plans in use. Polars runs equal parts of a plan once, and compares functions by identity, so equal
calls share one function object."""
_streams: WeakValueDictionary[tuple[Any, ...], pl.LazyFrame] = WeakValueDictionary()
"""Streaming nodes in use."""
_lock = threading.Lock()


def ask(
    plan: pl.LazyFrame,
    analytic: Analytic[Any, Any],
    column: str,
    labels: str | None,
    limit: int | None,
    schema: pl.Schema,
    checkpoint: Path | None = None,
) -> pl.LazyFrame:
    """Add an analytic on a compressed column to a plan.

    Parameters
    ----------
    plan
        The plan.
    analytic
        The call.
    column, labels
        Names of the compressed column and of the column that labels rows, if any.
    limit
        Memory limit in bytes, for streaming; None: the column is held in memory.
    schema
        Columns of the result.
    checkpoint
        Folder in which partial results are kept and found again.

    Raises
    ------
    ValueError
        There is a checkpoint without a limit, or the plan does more than select documents of a packed scan, or the scan
        skips unreadable partitions.
    LimitExceededError
        A GPU was requested, and CuPy alone exceeds the limit.

    """
    if limit is not None:
        share_out(analytic.options.engine, limit, analytic.name)  # raises now; the engine is chosen when the plan runs
    if checkpoint is not None and limit is None:
        raise ValueError(f"{analytic.name}: {WITHOUT_LIMIT}")
    question = None
    if labels != column and (limit is not None or not analytic.reads_gaps):
        question = packed_question(plan.select(cs.by_name(*_names(column, labels))))
    if question is not None and question.scan.column == column:
        if checkpoint is not None:
            require_always_the_same(question, analytic.name)
        return ask_packed(question, analytic, labels, limit, schema, checkpoint)
    if checkpoint is not None:
        raise ValueError(f"{analytic.name}: {CHECKPOINTED}")
    if limit is None:
        return read_columns(plan, analytic, column, labels, schema)
    return stream_columns(plan, analytic, column, labels, limit, schema)


def checkpointed_question(plan: pl.LazyFrame, column: str, others: list[str], call: str) -> PackedQuestion:
    """Return the documents of a packed scan that a plan with a checkpoint selects; raises ``ValueError`` as above."""
    question = question_of(plan, column, others)
    if question is None:
        raise ValueError(f"{call}: {CHECKPOINTED}")
    require_always_the_same(question, call)
    return question


def open_checkpoint(folder: Path, asked: dict[str, Any], call: str) -> Checkpoint:
    """Open the folder of a call's finished partitions; ``asked`` describes the call and the scan that it reads."""
    return Checkpoint(folder, asked, call, most_partitions(asked))


def require_always_the_same(question: PackedQuestion, call: str) -> None:
    """Raise ``ValueError`` unless partitions keep their numbers between runs: checkpoints refer to them."""
    if question.scan.skips:
        raise ValueError(f"{call}: {ALWAYS_THE_SAME}")


def read_columns(
    plan: pl.LazyFrame, question: Question, column: str, labels: str | None, schema: pl.Schema
) -> pl.LazyFrame:
    """Answer from some columns of a plan, and read no others.

    Parameters
    ----------
    plan
        The plan.
    question
        The question.
    column, labels
        Names of the compressed column and of the column that labels rows, if any.
    schema
        Columns of the result.

    """
    key = (question, column, labels, asked_progress())
    with _lock:
        reading = _readings.get(key)
        if reading is None:
            reading = _readings[key] = _Reading(*key)
    return _opaque(plan.select(cs.by_name(*_names(column, labels))), reading, schema)


def stream_columns(
    plan: pl.LazyFrame, analytic: Analytic[Any, Any], column: str, labels: str | None, limit: int, schema: pl.Schema
) -> pl.LazyFrame:
    """Like :func:`read_columns`, under a memory limit: the input plan runs separately in Polars' streaming engine.

    It runs in a source. Functions of ``map_batches`` may occupy all of Polars' threads and would deadlock waiting for
    another plan.
    """
    others = [] if labels is None else [labels]

    def source(
        _columns: list[str] | None, _predicate: pl.Expr | None, _rows: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        own, room = _shared_out(analytic, limit)
        with telling_share(limit, room), small_arrow_memory():
            yield from stream_result(plan_windows(plan, column, others, room, analytic.reads_gaps), own, labels, room)

    key = (id(plan), analytic, column, labels, limit)  # the node keeps the plan alive, so its id is unique
    return _node(key, Limited(source, limit, len(analytic.layout.columns)), analytic.name, None, schema)


def ask_packed(
    question: PackedQuestion,
    analytic: Analytic[Any, Any],
    labels: str | None,
    limit: int | None,
    schema: pl.Schema,
    checkpoint: Path | None,
) -> pl.LazyFrame:
    """Like :func:`stream_columns` for documents of a packed scan, partition by partition, without Polars in between."""
    others = [] if labels is None else [labels]

    def source(
        _columns: list[str] | None, _predicate: pl.Expr | None, _rows: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        opened = None
        if checkpoint is not None:
            opened = open_checkpoint(checkpoint, {**analytic.asked, **question.asked}, analytic.name)
        if limit is None:
            yield _answer_packed(question, others, analytic, labels)
            return
        own, room = _shared_out(analytic, limit, question)
        with telling_share(limit, room), small_arrow_memory():
            windows = packed_windows(question, others, room, analytic.reads_gaps, room // AHEAD_SHARE)
            yield from stream_result(windows, own, labels, room, opened)

    key = (*question.key, analytic, labels, limit, checkpoint)
    return _node(key, Limited(source, limit, len(analytic.layout.columns)), analytic.name, question.shown, schema)


def _answer_packed(
    question: PackedQuestion, others: list[str], analytic: Analytic[Any, Any], labels: str | None
) -> pl.DataFrame:
    """Count in all partitions together; their grammars are cached for the next call."""
    corpora: list[Corpus] = []
    with KeptLabels(labels, analytic.name, MOST) as kept:
        kept.keep(question.scan.schema.to_frame())
        for frame, corpus in question.corpora(others, cached=True):
            kept.keep(frame)
            corpora.append(corpus)
            require_row_numbers(int(corpus.rows[-1]) + 1 if corpus.document_count else 0)
        return analytic.framed(analytic.answer(corpora, kept.all()))


def add_source(
    key: tuple[Any, ...], frames: Callable[[], Iterator[pl.DataFrame]], limit: int, name: str, schema: pl.Schema
) -> pl.LazyFrame:
    """Make a plan of frames that are made under a memory limit.

    Parameters
    ----------
    key
        Equal for equal frames while ``frames`` exists.
    frames
        Makes them, each time that the plan runs.
    limit
        Memory limit in bytes.
    name
        For printed plans.
    schema
        Columns of the frames.

    """

    def source(
        _columns: list[str] | None, _predicate: pl.Expr | None, _rows: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        with small_arrow_memory():
            yield from frames()

    return _node(key, Limited(source, limit), name, None, schema)


def _shared_out(
    analytic: Analytic[Any, Any], limit: int, question: PackedQuestion | None = None
) -> tuple[Analytic[Any, Any], int]:
    """Return the analytic with an engine that fits the limit, and the bytes left for its work."""
    engine, room = share_out(analytic.options.engine, limit, analytic.name)
    if (
        engine == "auto"
        and question is not None
        and not suits_gpu(question, room, repays_at("rows", analytic.gpu_repays_at))
    ):
        engine, room = "cpu", limit
    return replace(analytic, options=replace(analytic.options, engine=engine)), room  # type: ignore[type-var]


def _node(key: tuple[Any, ...], source: Any, name: str, detail: str | None, schema: pl.Schema) -> pl.LazyFrame:
    key = (*key, asked_progress())
    with _lock:
        node = _streams.get(key)
        if node is None:
            scan = register(source, schema, name, detail)
            # Polars runs a source once per occurrence in a plan, and a function's node once
            node = _streams[key] = _opaque(scan, _as_it_is, schema, streamable=True)
        return node


def _names(column: str, labels: str | None) -> list[str]:
    return [column] if labels in (None, column) else [column, labels]


def _opaque(
    plan: pl.LazyFrame, function: Callable[[pl.DataFrame], pl.DataFrame], schema: pl.Schema, streamable: bool = False
) -> pl.LazyFrame:
    """Apply a function; later steps refer to the result's columns and rows, not to the input's."""
    return plan.map_batches(
        function,
        schema=schema,
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
        streamable=streamable,
    )


@at_work()
def _as_it_is(df: pl.DataFrame) -> pl.DataFrame:
    return df
