"""Lets kernels see Ctrl-C while they run, so that they end within a fraction of a second.

Python notes a signal and runs its handler between two bytecodes: not before a kernel returns. So a handler in machine
code goes before Python's: it calls the one that was there, then adds one to a counter that kernels read with
:func:`interrupts`. A kernel that may run for long reads it every few milliseconds and returns as soon as it differs
from what it was when the kernel began; :class:`polled` then raises ``KeyboardInterrupt``, so that nobody uses what such
a kernel left half done. The counter only grows: nobody resets it, and what an interrupt has ended stays ended.

Only Python's own handler (``signal.default_int_handler``) is preceded: where a program handles interrupts itself, it
decides, and its handler runs between kernels. ``signal.signal`` takes our handler away again, so :func:`arm` looks
before calls whether it is there, twenty times a second at most (13 microseconds in a sandboxed container).

Polars' handler makes waits of the main thread go on after a signal (``SA_RESTART``): an interrupt was not noticed
before the wait's end. :func:`arm` undoes that, as Python would have it (PEP 475).
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import llvmlite.binding as llvm
import numba as nb
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, typeof_impl

from polars_tadoc.runtime.compiled import callback

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_BETWEEN_LOOKS = 0.05
"""Seconds in which the handler is taken to be where it was."""

_HANDLERS = 3
_state = np.zeros(1 + _HANDLERS, np.uint64)
"""Interrupts so far; for each handler of ours, the address of the one that it precedes."""

llvm.add_symbol("tadoc_interrupts", _state.ctypes.data)  # compiled code finds it by name, from the cache too


def _state_at(context: Any, builder: Any) -> Any:
    name = "tadoc_interrupts"
    module = builder.module
    if name in module.globals:
        return module.globals[name]
    return ir.GlobalVariable(module, ir.ArrayType(ir.IntType(64), 1 + _HANDLERS), name)


def _place(context: Any, builder: Any, index: int) -> Any:
    i32 = ir.IntType(32)
    return builder.gep(_state_at(context, builder), [i32(0), i32(index)], inbounds=True)


@intrinsic
def interrupts(typing_context: Any) -> Any:
    """Return how many interrupts there were; a load that no compiler takes out of a loop."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load_atomic(_place(context, builder, 0), ordering="monotonic", align=8)

    return types.uint64(), generate


def _passes_on(own: int) -> Any:
    def pass_on(typing_context: Any, number: Any, info: Any, context: Any) -> Any:
        """Call the handler that was there before, then count the interrupt: who sees the count finds Python told."""

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            word = ir.IntType(64)
            before = builder.load_atomic(_place(context, builder, 1 + own), ordering="monotonic", align=8)
            builder.call(builder.inttoptr(before, ir.FunctionType(ir.VoidType(), [word] * 3).as_pointer()), values)
            builder.atomic_rmw("add", _place(context, builder, 0), word(1), "monotonic")
            return context.get_dummy_value()

        return types.void(types.uint64, types.uint64, types.uint64), generate

    return intrinsic(pass_on)


_pass_on_0, _pass_on_1, _pass_on_2 = (_passes_on(own) for own in range(_HANDLERS))


def _handle_0(number: int, info: int, context: int) -> None:
    _pass_on_0(number, info, context)


def _handle_1(number: int, info: int, context: int) -> None:
    _pass_on_1(number, info, context)


def _handle_2(number: int, info: int, context: int) -> None:
    _pass_on_2(number, info, context)


class _Hook:
    """Our handlers, and the system's calls that put one in place.

    One that precedes a handler never precedes another: handlers of others that came after ours may call it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._looked = -1.0
        self._by_preceded: dict[int, int] = {}
        self._compiled: list[Any] = []
        self._system = None
        if os.name == "posix":
            system = ctypes.CDLL(None)
            if hasattr(system, "sigaction") and hasattr(system, "siginterrupt"):
                self._system = system
        # struct sigaction begins with the handler's address on Linux and macOS; the rest is handed back as it came
        self._action = ctypes.create_string_buffer(512)
        self._address = ctypes.c_uint64.from_buffer(self._action)

    def arm(self) -> None:
        """See to it that interrupts are counted, unless the program has a handler of its own."""
        now = time.monotonic()
        if now - self._looked < _BETWEEN_LOOKS or self._system is None:
            return
        self._looked = now
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            return
        with self._lock:
            if self._system.sigaction(int(signal.SIGINT), None, self._action):
                return
            there = self._address.value
            if there in self._by_preceded.values() or there in (0, 1):  # 0 and 1: none, and to be ignored
                return
            own = self._by_preceded.get(there) or self._next(there)
            if own:
                self._address.value = own
                self._system.sigaction(int(signal.SIGINT), self._action, None)
                self._system.siginterrupt(int(signal.SIGINT), 1)

    def _next(self, preceded: int) -> int:
        """Return the address of a handler that has not been in place yet, 0 where all have."""
        if len(self._compiled) == _HANDLERS:
            return 0
        handle = (_handle_0, _handle_1, _handle_2)[len(self._compiled)]
        compiled = callback(types.void(types.uint64, types.uint64, types.uint64), handle)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(compiled))  # a signal may come when modules are gone
        self._compiled.append(compiled)
        _state[len(self._compiled)] = preceded
        self._by_preceded[preceded] = int(compiled.address)
        return int(compiled.address)

    def forget_lock(self) -> None:
        """Begin with a free lock: a forked child lacks the thread that may have held it."""
        self._lock = threading.Lock()


_hook = _Hook()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_hook.forget_lock)
arm = _hook.arm


def count() -> int:
    """Return how many interrupts there were."""
    return int(_state[0])


def cancel(since: int) -> None:
    """End what runs as an interrupt does, if none has come: for waits that end with an error while kernels run."""
    if since == count():
        _state[0] += 1


class _Work(threading.local):
    """What a thread other than the main one knows of the call that it works for.

    The main thread keeps nothing: there Python raises by itself, anywhere, also where something would be put back.
    """

    since: int | None = None
    """Interrupts that had come when the call began."""


_work = _Work()


class interruptible:  # noqa: N801 (used as a function)
    """A call's work: it ends with ``KeyboardInterrupt`` if an interrupt came, also where something swallowed it.

    Other errors that an interrupt led to become ``KeyboardInterrupt`` too, and an interrupt that Python, or Polars, has
    told of and Python would tell again is told once. Not around a ``yield``.

    Parameters
    ----------
    since
        For a thread that works for another: what :func:`began` gave there.

    """

    def __init__(self, since: int | None = None) -> None:
        self._since = since
        self._is_outermost = False

    def __enter__(self) -> None:
        arm()
        if self._since is None:
            self._since = began()
        if _work.since is None and threading.get_ident() != threading.main_thread().ident:
            self._is_outermost = True
            _work.since = self._since

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self._is_outermost:
            _work.since = None
        if self._since == count():
            return
        try:
            _tell()
        except KeyboardInterrupt:
            if isinstance(error, KeyboardInterrupt):
                return  # the same interrupt a second time
            raise
        if not isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt from error


def ends_on_interrupt(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Make all of a function's work :class:`interruptible`."""

    @wraps(function)
    def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        with interruptible():
            return function(*arguments, **named)

    return call


def _tell() -> None:
    """Let Python run the handlers of signals that came; it does so where a loop turns."""
    for _ in range(2):
        pass


def began() -> int:
    """Return how many interrupts there were when this thread's call began."""
    return count() if _work.since is None else _work.since


def check() -> None:
    """Raise ``KeyboardInterrupt`` if an interrupt has come since this thread's call began."""
    if _work.since is not None and _work.since != _state[0]:
        raise KeyboardInterrupt


class polled:  # noqa: N801 (used as a decorator)
    """A kernel that returns early when an interrupt comes: its caller then gets ``KeyboardInterrupt`` in its place.

    Kernels call it as what it is made of, and have to return early themselves.
    """

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self.kernel = kernel
        self.__doc__ = kernel.__doc__
        self.__name__ = kernel.__name__
        self.__wrapped__ = kernel

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel."""
        since = began()
        arm()
        result = self.kernel(*arguments)
        if since != _state[0]:
            raise KeyboardInterrupt
        return result


@typeof_impl.register(polled)
def _type_of_polled(value: polled, context: Any) -> Any:
    return nb.typeof(value.kernel)
