"""Lets threads share the tasks of several steps in machine code: waking them for each step would cost more.

A step's tasks are taken one by one; threads begin the next step when all its tasks are done. Any thread may do all
tasks, or come late, or never: no thread waits for a task that none has begun.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from polars_tadoc.config import thread_count
from polars_tadoc.runtime.addresses import ordered_add, ordered_load
from polars_tadoc.runtime.array_types import Int64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.parallel import map_parallel

LINE = 16
"""Numbers from one counter to the next: two cache lines, as processors fetch them in pairs."""

MANY, PAUSES, FEW_PAUSES = 4, 1 << 11, 1 << 7
"""With many threads, a waiting one pauses its processor longer, some 50 to 150 microseconds, before it sleeps."""

SLEEP = 20
"""Microseconds that it sleeps at a time."""


def _sleep_address() -> int:
    """Return the address of the system's function that sleeps for some microseconds, or lets others have the core."""
    if os.name == "posix":
        return int(ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p).value or 0)
    library = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined]
    return int(ctypes.cast(library.SwitchToThread, ctypes.c_void_p).value or 0)


_addresses = np.array([_sleep_address()], np.uint64)
llvm.add_symbol("tadoc_sleep", _addresses.ctypes.data)  # compiled code finds it by name, also code from the cache

_X86, _ARM = ("llvm.x86.sse2.pause", ()), ("llvm.aarch64.hint", (1,))
_PAUSES: dict[str, tuple[str, tuple[int, ...]]] = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}


@intrinsic
def _pause(typing_context: Any) -> Any:
    """Tell the processor that this thread waits."""
    processor = platform.machine().lower()

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        if processor in _PAUSES:
            name, hints = _PAUSES[processor]
            kind = ir.FunctionType(ir.VoidType(), [ir.IntType(32)] * len(hints))
            builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [ir.IntType(32)(h) for h in hints])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def _sleep(typing_context: Any) -> Any:
    """Sleep for some microseconds."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        module, name, word = builder.module, "tadoc_sleep", ir.IntType(64)
        if name not in module.globals:
            ir.GlobalVariable(module, word, name)
        kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32)]).as_pointer()
        builder.call(builder.inttoptr(builder.load(module.globals[name]), kind), [ir.IntType(32)(SLEEP)])
        return context.get_dummy_value()

    return types.void(), generate


@njit
def take(progress: Int64, step: int) -> Any:
    """Take a task of a step; returns its number, or a higher one if all have been taken."""
    return ordered_add(progress, LINE * (2 * step + 1), 1)


@njit
def done(progress: Int64, step: int) -> Any:
    """Say that a task is done; takes the next one, as :func:`take`."""
    ordered_add(progress, LINE * (2 * step + 2), 1)
    return ordered_add(progress, LINE * (2 * step + 1), 1)


@njit
def all_done(progress: Int64, step: int, tasks: int, began: int) -> bool:
    """Wait until all tasks of a step are done; false after an interrupt, or if a thread failed."""
    waited = 0
    while ordered_load(progress, LINE * (2 * step + 2)) < tasks:
        if interrupts() != began or ordered_load(progress, 0) != 0:
            return False
        if waited < progress[1]:
            _pause()
            waited += 1
        else:
            _sleep()
    return bool(interrupts() == began)


def share_tasks(function: Callable[[Int64], object], steps: int, tasks: int) -> None:
    """Call a function on several threads at once; its argument is the progress of the steps.

    Parameters
    ----------
    function
        Calls a kernel that takes tasks of each step in turn.
    steps
        How many.
    tasks
        The most tasks of a step: no more threads are called.

    """
    progress = np.zeros(LINE * (2 * steps + 1), np.int64)
    progress[1] = PAUSES if thread_count() >= MANY else FEW_PAUSES

    def work(_: int) -> None:
        try:
            function(progress)
        except BaseException:
            progress[0] = 1  # the others do not wait for its task
            raise

    map_parallel(work, range(max(1, min(thread_count(), tasks))))
