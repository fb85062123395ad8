"""Runs a call that writes in a thread of its own: an interrupt is then an error in one place.

Python raises ``KeyboardInterrupt`` in the main thread, between any two bytecodes. Where these are a ``__del__``, a
generator that is closed or a callback of another library, the exception is dropped, and the call goes on as if nothing
had happened; between two renames it leaves one of them out. So the call runs in another thread, in which nothing is
raised from outside, and the main thread waits for it. What a signal's handler raises there stops the call where it next
looks (``interrupts.check``): in kernels, at each batch, and before a file takes its name. The call ends as after any
other error, and only then the main thread raises what the handler did. A second interrupt does not wait for that; if
the interpreter then ends, it gives the call a moment to remove what it has begun.
"""

from __future__ import annotations

import atexit
import contextvars
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from weakref import WeakSet

from polars_tadoc.config import asked_progress, own_count, own_threads, showing
from polars_tadoc.runtime.interrupts import arm, began, cancel_where_meant_for_all, check, interruptible
from polars_tadoc.runtime.process.threads import NOTICED, Task

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

LINGERED = 1.0
"""Seconds for which the interpreter's end waits for a call that was interrupted twice."""

_calls: WeakSet[Task[Any]] = WeakSet()
"""Calls that write."""


def apart(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Run a function in a thread of its own where the main thread calls it; elsewhere as it is."""

    @wraps(function)
    def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        if threading.get_ident() != threading.main_thread().ident:
            return function(*arguments, **named)
        return _run(lambda: function(*arguments, **named))

    return call


class _Start(int):
    """The number of interrupts at a call's start; it equals none once the call must stop."""

    is_stopped = False

    def __eq__(self, other: object) -> bool:
        return not self.is_stopped and int(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = int.__hash__


def _run(function: Callable[[], Result]) -> Result:
    since = _Start(began())
    arm()
    threads, device, context = own_count(), _device(), contextvars.copy_context()
    progress = asked_progress()

    def work() -> Result:
        with interruptible(since), own_threads(threads), showing(progress), device:
            check()
            return context.run(function)

    task = Task(work)
    _calls.add(task)
    try:
        try:
            task.start()
        except RuntimeError:  # when the interpreter ends, no thread can be had
            return function()
        task.join()
    except BaseException as error:
        cancel_where_meant_for_all(error, since)
        since.is_stopped = True  # a time limit of the program: this call alone ends
        task.stop()
        task.errors.clear()  # which hold frames, and these files
        raise
    if task.errors and isinstance(task.errors[0], KeyboardInterrupt):
        with suppress(KeyboardInterrupt):  # Polars was faster, and Python has the same signal still to tell
            time.sleep(NOTICED / 2)
    return task.result()


@atexit.register
def _linger() -> None:
    """Let calls end that were told to."""
    until = time.monotonic() + LINGERED
    for task in list(_calls):
        if task.has_begun:
            task.wait(max(0.0, until - time.monotonic()))


def _device() -> AbstractContextManager[Any]:
    """Give the GPU that this thread uses, for another thread to use."""
    cupy: Any = sys.modules.get("cupy")
    if cupy is None:
        return nullcontext()
    try:
        device: AbstractContextManager[Any] = cupy.cuda.Device()
    except Exception:  # there is none
        return nullcontext()
    return device
