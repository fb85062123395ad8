"""Threads in which Polars runs our functions, and their end when the interpreter ends.

A plan that stops early (its row limit is reached, or a part of it fails) does not wait for its sources: a thread of
Polars still asks for the next frame. When the interpreter ends, Python terminates threads in a way that Rust does not
survive: the process would abort, after all its results were returned. So a running source stops at its next check, and
its thread sleeps until the process has ended; functions of plans end with an error.

Ctrl-C has its own promise: the process ends within a second. Python spends most of that on garbage collection: it
searches 180,000 objects for cycles four times, most of them Numba's, before it frees memory that the process is about
to free anyway.
"""

from __future__ import annotations

import gc
import io
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from weakref import WeakSet

from polars_tadoc.runtime.interrupts import began, check, interruptible
from polars_tadoc.runtime.process.threads import NOTICED, Task

Result = TypeVar("Result")

WAITED = 60.0
"""Maximum seconds by which the interpreter's end is delayed."""

SETTLED = 0.02
"""Seconds in which a thread between two frames asks for the next."""

LINGERED, LINGERED_AFTER_INTERRUPT = 1.0, 0.5
"""Maximum seconds that the interpreter's end then waits for stopped queries."""


class _Work(threading.local):
    """The work of a thread on behalf of Polars."""

    depth = 0
    is_old = False
    """Whether the interpreter may end during it: work that begins later is for functions of ``atexit``."""


class Running:
    """Counts the threads that work on behalf of Polars."""

    def __init__(self) -> None:
        self._ended_by: int | None = None
        self.has_ended = False
        self.forget()

    def forget(self) -> None:
        """Reset to no working threads."""
        self._lock = threading.RLock()  # a dropped generator may be closed at any time
        self._working: dict[object, int] = {}
        """The thread of each piece of work."""
        self._work = _Work()
        self._queries: WeakSet[Task[Any]] = WeakSet()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Count this thread while it runs a function of a plan; when the interpreter ends, it returns with an error.

        Polars has few such threads, and functions at exit may need it.
        """
        with self._counted(not self.has_ended), interruptible():
            yield
            self.go_on()

    @contextmanager
    def at_source(self, is_old: bool, since: int) -> Iterator[None]:
        """Count this thread while it makes a frame; when the interpreter ends, it sleeps here.

        ``since`` is the number of interrupts at the source's start: later ones end it.
        """
        try:
            with self._counted(is_old), interruptible(since):
                yield
        finally:
            while is_old and not self._work.depth and self._ends_elsewhere:
                time.sleep(3600)

    @contextmanager
    def _counted(self, is_old: bool) -> Iterator[None]:
        work, depth, piece = self._work, self._work.depth, object()
        try:
            if not depth:
                work.is_old = is_old
            work.depth = depth + 1
            self._working[piece] = threading.get_ident()
            self.go_on()
            yield
        finally:
            work.depth = depth
            self._working.pop(piece, None)

    def start(self, query: Task[Any]) -> None:
        """Start a thread that waits for Polars; the interpreter's end waits briefly for it.

        It is not counted, because Polars may wait for a sleeping thread.
        """
        query.start()
        with self._lock:
            self._queries.add(query)

    def left_on_interrupt(self, function: Callable[[], Result]) -> Result:
        """Run a function that does not look for interrupts, in a thread that an interrupt leaves behind."""
        since = began()

        def work() -> Result:
            with interruptible(since):
                return function()

        task = Task(work)
        try:
            self.start(task)
        except RuntimeError:  # when the interpreter ends, no thread can be had
            return function()
        while not task.wait(NOTICED):
            check()
        return task.result()

    def go_on(self) -> None:
        """Raise if the interpreter ends while this thread is working."""
        if self._work.depth and self._work.is_old and self._ends_elsewhere:
            raise SystemExit  # no error handler catches it, and threads ended by it print nothing

    def end(self) -> None:
        """Wait until no thread is working."""
        self._ended_by = threading.get_ident()
        now = time.monotonic()
        stop, quiet = now + WAITED, now + SETTLED
        while now < stop and (self._is_busy or now < quiet):
            if self._is_busy:
                quiet = now + SETTLED
            time.sleep(SETTLED / 10)
            now = time.monotonic()
        is_interrupted = getattr(sys, "last_type", None) is KeyboardInterrupt
        until = now + (LINGERED_AFTER_INTERRUPT if is_interrupted else LINGERED)
        with self._lock:
            queries = list(self._queries)
        for query in queries:
            query.wait(max(0.0, until - time.monotonic()))
        self.has_ended = True
        if is_interrupted:
            _spare_garbage()

    @property
    def _ends_elsewhere(self) -> bool:
        """Tell whether the interpreter ends in another thread."""
        return self._ended_by not in (None, threading.get_ident())

    @property
    def _is_busy(self) -> bool:
        """Tell whether another thread is working; an interrupt may leave work of this one counted."""
        return any(thread != self._ended_by for thread in list(self._working.values()))


def _spare_garbage() -> None:
    """Hide all objects from the garbage collector, after flushing files.

    Objects outside of cycles are freed as always, and Python does not promise to finalise objects that are alive at its
    end. The collections took 0.7 of 0.8 s of CPU time between the last function at exit and the end of the process.
    """
    objects = gc.get_objects()
    written = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
    kinds = {kind for kind in set(map(type, objects)) if issubclass(kind, written)}
    for file in [one for one in objects if type(one) in kinds]:
        with suppress(Exception):  # closed, or its reader is gone
            file.flush()
    del objects
    gc.freeze()


running = Running()  # the package registers its end when it is imported
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=running.forget)  # a child has none of the threads
go_on = running.go_on
at_work = running.at_work
left_on_interrupt = running.left_on_interrupt
