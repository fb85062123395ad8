"""Keeps Ctrl-C from ending the process while CUDA's compiler runs.

Unless SIGINT is ignored when NVRTC begins to compile, it puts a handler of its own in place until it ends. That handler
ends the process with status 4; called from a thread that does not compile, it crashes. So the signal is ignored for a
moment, until NVRTC has looked, and handled as before while it compiles: an interrupt is raised after its end.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from typing import Any

from polars_tadoc.runtime.process.threads import undivided

_IGNORED = 1
"""The handler's address of an ignored signal."""

_LOOKS = 0.0002
"""Seconds between looks at whether NVRTC has begun."""

_compiling = allocate_lock()


def keep_interrupts(compiler: Any) -> None:
    """Let CuPy's compilations, by whomever they are asked for, leave interrupts alone; ``compiler`` is its module."""
    program = getattr(compiler, "_NVRTCProgram", None)
    if _system() is None or program is None or hasattr(program.compile, "__wrapped__"):
        return
    program.compile = _keeping_interrupts(program.compile)


def _keeping_interrupts(compile_: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(compile_)
    def kept(*arguments: Any, **options: Any) -> Any:
        def compiled() -> Any:
            with _compiling:
                handled = _Handled()
                try:
                    return compile_(*arguments, **options)
                finally:
                    handled.ends()

        return undivided(compiled)

    return kept


class _Handled:
    """SIGINT as it is handled outside NVRTC; ignored from here on, until NVRTC has looked.

    It looks at SIGINT before SIGTERM, for which it has a handler, too.
    """

    def __init__(self) -> None:
        self._ends = False
        self._before = _action(signal.SIGINT)
        self._terminating = _handler(_action(signal.SIGTERM))
        _set(signal.SIGINT, _IGNORED.to_bytes(8, "little") + bytes(len(self._before) - 8))
        with suppress(RuntimeError):  # when the interpreter ends, no thread can be had
            start_new_thread(self._watch, ())

    def _watch(self) -> None:
        while not self._ends:
            if _handler(_action(signal.SIGTERM)) != self._terminating:
                self._restore()
                return
            time.sleep(_LOOKS)

    def ends(self) -> None:
        """Handle the signal as before: NVRTC has restored what it found, that it is ignored."""
        self._ends = True
        self._restore()

    def _restore(self) -> None:
        if _handler(_action(signal.SIGINT)) == _IGNORED:
            _set(signal.SIGINT, self._before)


@cache
def _system() -> Any:
    """Return the system's library, None where its signals are not POSIX's."""
    system = ctypes.CDLL(None) if os.name == "posix" else None
    return system if hasattr(system, "sigaction") else None


def _action(number: int) -> bytes:
    """Return how a signal is handled: a ``struct sigaction``, which begins with the handler's address."""
    action = ctypes.create_string_buffer(512)
    _system().sigaction(int(number), None, action)
    return action.raw


def _handler(action: bytes) -> int:
    return int.from_bytes(action[:8], "little")


def _set(number: int, action: bytes) -> None:
    _system().sigaction(int(number), action, None)
