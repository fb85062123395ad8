"""Threads that Polars runs our functions in, and what becomes of those when the interpreter ends.

A plan that stops early (its first rows are enough, or a part of it fails) does not wait for its sources: Polars still
has a thread that asks for the next frame. Python ends a thread that wants to go on while the interpreter ends in a way
that Rust does not survive: the process would abort, with all its results given. So a source that runs then stops where
it next comes by, and its thread sleeps from there on until the process is gone; functions of plans end with an error.

Ctrl-C has a promise of its own: the process is gone within a second. Python spends most of that on garbage: it looks
four times for cycles among 180,000 objects, most of them Numba's, before it lets go of what the process is about to
free anyway.
"""

from __future__ import annotations

import gc
import io
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from weakref import WeakSet

from polars_tadoc.runtime.interrupts import interruptible

WAITED = 60.0
"""Seconds for which the interpreter's end is put off at most."""

SETTLED = 0.02
"""Seconds in which a thread between two frames comes back for the next."""

LINGERED = 1.0
"""Seconds for which the interpreter's end then waits for queries that were stopped."""


class _Work(threading.local):
    """What a thread does in Polars' place."""

    depth = 0
    is_old = False
    """Whether the interpreter may end under it: what begins after that is for functions that ``atexit`` calls."""


class Running:
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
        self._queries: WeakSet[threading.Thread] = WeakSet()

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

    def start(self, query: threading.Thread) -> None:
        """Start a thread that waits for Polars; the interpreter's end waits for it a little.

        It is not counted, for Polars may wait for a thread that sleeps.
        """
        query.start()
        with self._lock:
            self._queries.add(query)

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
        with self._lock:
            queries = list(self._queries)
        for query in queries:
            query.join(max(0.0, now + LINGERED - time.monotonic()))
        self.has_ended = True
        if getattr(sys, "last_type", None) is KeyboardInterrupt:
            _spare_garbage()

    @property
    def _ends_elsewhere(self) -> bool:
        """Whether the interpreter ends, in another thread than this one."""
        return self._ended_by not in (None, threading.get_ident())

    def _add(self, count: int) -> None:
        with self._lock:
            self._count += count


def _spare_garbage() -> None:
    """Take all objects away from the garbage collector; files first write what they hold back.

    Objects outside of cycles end as they always do, and Python promises no end to any that is alive when it ends
    itself. The collections took 0.7 of 0.8 s of CPU time between the last function at exit and the process's end.
    """
    objects = gc.get_objects()
    written = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
    kinds = {kind for kind in set(map(type, objects)) if issubclass(kind, written)}
    for file in [one for one in objects if type(one) in kinds]:
        with suppress(Exception):  # closed, or nobody reads any more
            file.flush()
    del objects
    gc.freeze()


running = Running()  # the package registers its end, when it is imported
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=running.forget)  # a child has none of the threads
go_on = running.go_on
at_work = running.at_work
