"""Sources of plans, which Polars runs in its own threads, and complete iteration over a plan's rows."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Final

import polars as pl
from polars.io.plugins import register_io_source

from polars_tadoc.config import as_asked, asked_progress, showing
from polars_tadoc.runtime.interrupts import began, check, count, ends_on_interrupt, interruptible
from polars_tadoc.runtime.process.interpreter_exit import at_work, go_on, running
from polars_tadoc.runtime.process.narrow_reading import narrow_reading
from polars_tadoc.runtime.process.threads import Task

__all__ = ["as_asked", "at_work", "batches", "go_on", "register", "source_of", "sources_of"]

Source = Callable[[list[str] | None, pl.Expr | None, int | None, int | None], Iterable[pl.DataFrame]]
"""Called by Polars with column names, a predicate, a row limit and a batch size, each of them optional."""

POLLED = 0.05
"""Seconds between checks of a waiting thread."""

STOPPED = 0.5
"""Seconds that an error waits for its query to stop."""


@ends_on_interrupt  # within it, Polars panics
def register(source: Source, schema: pl.Schema | dict[str, Any], name: str, detail: str | None = None) -> pl.LazyFrame:
    """Make a lazy frame of a source; equal parts of a plan share one source, which runs once.

    Parameters
    ----------
    source
        Yields the frames.
    schema
        Schema of the frames.
    name, detail
        For printed plans.

    """
    return register_io_source(
        _Watched(source, asked_progress()), schema=schema, is_pure=True, explain_name=name, explain_detail=detail
    )


def source_of(scan: Any) -> Source | None:
    """Return the registered source of a plan's scan; None for other scans."""
    watched = getattr(scan, "io_source", None)
    return watched.source if isinstance(watched, _Watched) else None


def sources_of(plan: pl.LazyFrame) -> list[Source]:
    """Return the registered sources of a plan; empty if Polars does not show them."""
    try:
        nodes = plan._ldf.visit()
        return _sources_below(nodes)
    except Exception:  # not a public call of Polars
        return []


def _sources_below(nodes: Any) -> list[Source]:
    found: list[Source] = []
    waiting, seen = [nodes.get_node()], set()
    while waiting:
        number = waiting.pop()
        if number in seen:
            continue
        seen.add(number)
        nodes.set_node(number)
        waiting += nodes.get_inputs()
        with suppress(NotImplementedError):
            node = nodes.view_current_node()
            if type(node).__name__ == "PythonScan" and (source := source_of(node.options[0])) is not None:
                found.append(source)
    return found


@dataclass(frozen=True, eq=False)
class _Watched:
    source: Source
    progress: bool | None
    """Whether it shows a bar; None: as ``tadoc.Config`` says."""

    def __call__(
        self, names: list[str] | None, predicate: pl.Expr | None, rows: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        is_old, since = not running.has_ended, began()  # Polars asks for the frames in other threads
        with running.at_source(is_old, since), showing(self.progress):
            frames = iter(self.source(names, predicate, rows, size))
        return _frames(frames, is_old, since, self.progress)


def _frames(frames: Iterator[pl.DataFrame], is_old: bool, since: int, progress: bool | None) -> Iterator[pl.DataFrame]:
    try:
        while True:
            with running.at_source(is_old, since), showing(progress):
                check()
                frame = next(frames, None)
            if frame is None:
                return
            yield frame
            del frame  # before the next one is made
    finally:
        if isinstance(frames, Generator):
            with running.at_source(is_old, count()):
                frames.close()


def batches(plan: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Yield a plan's rows in order, in batches of Polars' streaming engine; yields all rows or raises.

    Polars' ``collect_batches`` does not guarantee that: if an interrupt or a panic ends the query, its iterator ends as
    after the last row. Here, the rows end when the call that runs the query returns.
    """
    query = _Query(plan)
    try:
        try:
            query.start()
        except RuntimeError:  # no thread can be started when the interpreter ends
            yield plan.collect(engine="streaming")
            return
        while (frame := query.next()) is not None:
            go_on()
            check()
            yield frame
            del frame  # before the next one is made
    except GeneratorExit:  # the caller stops early
        raise
    except BaseException:
        query.stop()
        query.task.wait(STOPPED)
        raise
    finally:
        query.stop()


_END: Final = object()


class _Query:
    """A plan that runs in its own thread, and waits for the consumer of its rows."""

    def __init__(self, plan: pl.LazyFrame) -> None:
        self._plan, self._since, self._is_old = plan, began(), not running.has_ended
        self._given: SimpleQueue[Any] = SimpleQueue()
        self._room: SimpleQueue[None] = SimpleQueue()
        self._room.put(None)
        self._is_stopped = False
        self.task = Task(self._run)

    def start(self) -> None:
        """Start the thread."""
        running.start(self.task)

    def next(self) -> pl.DataFrame | None:
        """Return the next rows; None after the last ones. Raises errors of the query."""
        given: Any = None
        while given is None:
            try:
                given = self._given.get(timeout=POLLED)
                self._room.put(None)
            except Empty:
                go_on()
                check()
        if isinstance(given, BaseException):
            try:
                raise given
            finally:
                del given
        return None if given is _END else given

    def stop(self) -> None:
        """Stop consuming."""
        self._is_stopped = True
        with suppress(Empty):
            self._given.get_nowait()

    def _run(self) -> None:
        end: Any = _END
        try:
            with interruptible(self._since), narrow_reading(self._plan):
                plan = self._plan.sink_batches(self._take, maintain_order=True, lazy=True)
                plan.collect(engine="streaming")
        except BaseException as error:
            end = error
        with running.at_source(self._is_old, count()):
            self._give(end)

    def _take(self, frame: pl.DataFrame) -> bool:
        """Hand over rows, in a thread of Polars; return true if the consumer has stopped."""
        with running.at_source(self._is_old, self._since):
            return self._give(frame)

    def _give(self, item: Any) -> bool:
        while not self._is_stopped:
            try:
                self._room.get(timeout=POLLED)
            except Empty:
                go_on()
            else:
                self._given.put(item)
                return False
        return True
