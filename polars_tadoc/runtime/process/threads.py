"""Threads that an interrupt in the main thread cannot leave waiting forever.

Python raises ``KeyboardInterrupt`` after any call or return in the main thread. ``Thread.start``, executors, futures,
events and queues hold locks in Python code: after an interrupt there the lock stays held, and threads that need it wait
forever. So our threads are started and awaited in machine code only, which an interrupt does not divide.
"""

from __future__ import annotations

import threading
import weakref
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")

NOTICED = 0.1
"""Maximum seconds until the main thread handles signals: Polars' handler does not end its waits."""


class _Here(threading.local):
    """Whether this thread is one of the package's."""

    is_own = False


_here = _Here()


def mark_own() -> None:
    """Note that this thread is one of the package's."""
    _here.is_own = True


def is_own() -> bool:
    """Tell whether this thread is one of the package's."""
    return _here.is_own


class Token:
    """An argument of a thread: it lives as long as the thread, which may end before its first line is run."""


class Task(Generic[Result]):
    """A function that runs in a thread of its own, which the interpreter's end does not await."""

    def __init__(self, function: Callable[[], Result]) -> None:
        self._function = function
        self._is_stopped = False
        self._running = allocate_lock()
        self._running.acquire()
        self._token = weakref.ref(self)  # type: Callable[[], object]
        self.has_begun = self.has_ended = False
        self.results: list[Result] = []
        self.errors: list[BaseException] = []

    def start(self) -> None:
        """Start the thread; raises ``RuntimeError`` if there can be none, as when the interpreter ends."""
        token = Token()
        self._token = weakref.ref(token)
        start_new_thread(self._run, (token,))

    def start_or_run(self) -> None:
        """Start the thread, or run the function in this one if there can be none."""
        try:
            self.start()
        except RuntimeError:
            self._run(Token())

    def _run(self, token: Token) -> None:
        self.has_begun = True
        if self._token() is token:  # a thread was started
            mark_own()
        try:
            if not self._is_stopped:
                self.results.append(self._function())
        except BaseException as error:
            self.errors.append(error)
        finally:
            del self._function  # it may hold this task
            self.has_ended = True
            self._running.release()

    def wait(self, seconds: float) -> bool:
        """Wait for its end; returns whether it has come."""
        if self._token() is None and not self.has_ended:  # without memory a thread ends before it begins
            self.has_begun = self.has_ended = True
            self.errors.append(MemoryError("there is no memory for a thread; allow this process more"))
        if not self.has_ended and self._running.acquire(timeout=seconds):
            self._running.release()
        return self.has_ended

    def join(self) -> None:
        """Wait for its end."""
        while not self.wait(NOTICED):
            pass

    def stop(self, waits: bool = True) -> None:
        """Wait for its end if it has begun and ``waits``; if it has not begun, it does not begin any more."""
        self._is_stopped = True
        if self.has_begun and waits:
            self.join()

    def result(self) -> Result:
        """Wait for its end; returns its result or raises its error."""
        self.join()
        if not self.errors and self.results:
            return self.results.pop()
        if not self.errors:  # not even its error could be kept
            raise MemoryError("there is no memory for a call; allow this process more")
        try:
            raise self.errors[0]
        finally:
            self.errors.clear()  # they hold frames


def undivided(function: Callable[[], Result]) -> Result:
    """Run a function that an interrupt must not divide: in a thread of its own where the main thread calls it.

    An interrupt is raised after its end.
    """
    if threading.get_ident() != threading.main_thread().ident:
        return function()
    task = Task(function)
    try:
        try:
            task.start()
        except RuntimeError:  # when the interpreter ends, no thread can be had
            return function()
        return task.result()
    except BaseException:
        task.stop()
        raise
