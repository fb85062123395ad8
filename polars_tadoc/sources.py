"""Sources of plans, which Polars runs in threads of its own, and what becomes of those when the interpreter ends.

A plan that stops early (its first rows are enough, or a part of it fails) does not wait for its sources: Polars still
has a thread that asks for the next frame. Python ends a thread that wants to go on while the interpreter ends in a way
that Rust does not survive: the process would abort, with all its results given. So a source that runs then stops where
it next comes by, and its thread sleeps from there on until the process is gone; functions of plans end with an error.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from polars_tadoc.kernels.cpu.interrupts import began, count, interruptible

Source = Callable[[list[str] | None, pl.Expr | None, int | None, int | None], Iterable[pl.DataFrame]]
"""What Polars calls with names of columns, a predicate, a number of rows, and rows of a frame, all of them or None."""

WAITED = 60.0
"""Seconds for which the interpreter's end is put off at most."""

SETTLED = 0.02
"""Seconds in which a thread between two frames comes back for the next."""


class _Work(threading.local):
    """What a thread does in Polars' place."""

    depth = 0
    is_old = False
    """Whether the interpreter may end under it: what begins after that is for functions that ``atexit`` calls."""


class _Running:
    """Counts the threads that are at work in Polars' place."""

    def __init__(self) -> None:
        self._ended_by: int | None = None
        self.has_ended = False
        self.forget()

    def forget(self) -> None:
        """Begin with no thread at work."""
        self._lock = threading.RLock()  # a generator that is dropped may be closed at any time
        self._count = 0
        self._work = _Work()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Count this thread while it runs a function of a plan; when the interpreter ends, it goes back with an error.

        The thread is one of few that Polars has: functions at exit may need it.
        """
        with self._counted(not self.has_ended), interruptible():
            yield
            self.go_on()

    @contextmanager
    def at_source(self, is_old: bool, since: int) -> Iterator[None]:
        """Count this thread while it makes a frame; when the interpreter ends, it stays here.

        ``since`` tells which interrupts end it: what the source's start knew of.
        """
        try:
            with self._counted(is_old), interruptible(since):
                yield
        finally:
            while is_old and not self._work.depth and self._ends_elsewhere:
                time.sleep(3600)

    @contextmanager
    def _counted(self, is_old: bool) -> Iterator[None]:
        work, depth, is_counted = self._work, self._work.depth, False
        try:
            if not depth:
                work.is_old = is_old
            work.depth = depth + 1
            self._add(1)
            is_counted = True
            self.go_on()
            yield
        finally:
            work.depth = depth
            if is_counted:
                self._add(-1)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Do not count this thread while it waits for Polars, which may wait for a thread that sleeps."""
        depth = self._work.depth
        self._add(-depth)
        try:
            yield
        finally:
            self._add(depth)

    def go_on(self) -> None:
        """Raise where the interpreter ends and this thread is at work."""
        if self._work.depth and self._work.is_old and self._ends_elsewhere:
            raise SystemExit  # no handler of errors takes it, and threads that end by it say nothing

    def end(self) -> None:
        """Wait until no thread is at work."""
        self._ended_by = threading.get_ident()
        now = time.monotonic()
        stop, quiet = now + WAITED, now + SETTLED
        while now < stop and (self._count > 0 or now < quiet):
            if self._count > 0:
                quiet = now + SETTLED
            time.sleep(SETTLED / 10)
            now = time.monotonic()
        self.has_ended = True

    @property
    def _ends_elsewhere(self) -> bool:
        """Whether the interpreter ends, in another thread than this one."""
        return self._ended_by not in (None, threading.get_ident())

    def _add(self, count: int) -> None:
        with self._lock:
            self._count += count


_running = _Running()
atexit.register(_running.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.forget)  # a child has none of the threads
go_on = _running.go_on
at_work = _running.at_work


def register(source: Source, schema: pl.Schema | dict[str, Any], name: str, detail: str | None = None) -> pl.LazyFrame:
    """Make a lazy frame of a source; equal parts of a plan have the same one, and run once.

    Parameters
    ----------
    source
        Gives the frames.
    schema
        Their columns.
    name, detail
        For plans that are shown.

    """
    return register_io_source(_Watched(source), schema=schema, is_pure=True, explain_name=name, explain_detail=detail)


def source_of(scan: Any) -> Source | None:
    """Return the source that was registered for a plan's scan; None where it is another one's."""
    watched = getattr(scan, "io_source", None)
    return watched.source if isinstance(watched, _Watched) else None


@dataclass(frozen=True, eq=False)
class _Watched:
    source: Source

    def __call__(
        self, names: list[str] | None, predicate: pl.Expr | None, rows: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        is_old, since = not _running.has_ended, began()
        with _running.at_source(is_old, since):
            frames = iter(self.source(names, predicate, rows, size))
        return _frames(frames, is_old, since)


def _frames(frames: Iterator[pl.DataFrame], is_old: bool, since: int) -> Iterator[pl.DataFrame]:
    try:
        while True:
            with _running.at_source(is_old, since):
                frame = next(frames, None)
            if frame is None:
                return
            yield frame
    finally:
        if isinstance(frames, Generator):
            with _running.at_source(is_old, count()):
                frames.close()


def batches(plan: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Give a plan's rows in their order, as Polars' streaming engine hands them over."""
    given = iter(plan.collect_batches(maintain_order=True))
    while True:
        with _running.waiting():
            frame = next(given, None)
        if frame is None:
            return
        go_on()
        yield frame
