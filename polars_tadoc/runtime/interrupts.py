"""Lets kernels notice Ctrl-C while they run, so that they end within a fraction of a second.

Python records a signal and runs its handler between two bytecodes: not before a kernel returns. So a handler in machine
code runs before Python's: it calls the previous handler, then increments a counter that kernels read with
:func:`interrupts`. A long kernel reads it every few milliseconds and returns as soon as it differs from its value at
the start; :class:`polled` then raises ``KeyboardInterrupt``, so that the incomplete result is never used. The counter
only grows and is never reset: whatever an interrupt has ended stays ended.

Only Python's own handler (``signal.default_int_handler``) is preceded: a program that handles interrupts itself
decides, and its handler runs between kernels. ``signal.signal`` removes our handler, so :func:`arm` checks before calls
whether it is installed, at most twenty times a second (13 microseconds in a sandboxed container).

Polars' handler restarts waits of the main thread after a signal (``SA_RESTART``): an interrupt was noticed only after
the wait. :func:`arm` undoes that, as in Python (PEP 475).
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
"""Seconds between checks that the handler is installed."""

_HANDLERS = 3
_numbers = np.zeros(1 + _HANDLERS, np.uint64)
_state = _numbers.data
"""Number of interrupts; for each of our handlers, the address of the one that it precedes.

A memoryview gives Python numbers, in a tenth of the time of NumPy's."""

llvm.add_symbol("tadoc_interrupts", _numbers.ctypes.data)  # compiled code finds it by name, also code from the cache


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
    """Return the number of interrupts; a load that compilers do not move out of loops."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load_atomic(_place(context, builder, 0), ordering="monotonic", align=8)

    return types.uint64(), generate


def _passes_on(own: int) -> Any:
    def pass_on(typing_context: Any, number: Any, info: Any, context: Any) -> Any:
        """Call the previous handler, then count the interrupt: when the count changes, Python knows of it."""

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
    """Our handlers, and the system calls that install them.

    A handler of ours precedes the same handler forever: handlers installed after ours may still call it.
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
        # struct sigaction begins with the handler's address on Linux and macOS; the rest is passed back unchanged
        self._action = ctypes.create_string_buffer(512)
        self._address = ctypes.c_uint64.from_buffer(self._action)

    def arm(self) -> None:
        """Make sure that interrupts are counted, unless the program has its own handler."""
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
            if there in self._by_preceded.values() or there in (0, 1):  # 0: default, 1: ignored
                return
            own = self._by_preceded.get(there) or self._next(there)
            if own:
                self._address.value = own
                self._system.sigaction(int(signal.SIGINT), self._action, None)
                self._system.siginterrupt(int(signal.SIGINT), 1)

    def _next(self, preceded: int) -> int:
        """Return the address of an unused handler, 0 if all are used."""
        if len(self._compiled) == _HANDLERS:
            return 0
        handle = (_handle_0, _handle_1, _handle_2)[len(self._compiled)]
        compiled = callback(types.void(types.uint64, types.uint64, types.uint64), handle)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(compiled))  # a signal may arrive after modules are freed
        self._compiled.append(compiled)
        _state[len(self._compiled)] = preceded
        self._by_preceded[preceded] = int(compiled.address)
        return int(compiled.address)

    def forget_lock(self) -> None:
        """Reset the lock: a forked child lacks the thread that may have held it."""
        self._lock = threading.Lock()


_hook = _Hook()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_hook.forget_lock)
arm = _hook.arm


def count() -> int:
    """Return the number of interrupts."""
    return _state[0]


def cancel(since: int) -> None:
    """End running work like an interrupt does, unless one has arrived: for waits that fail while kernels run."""
    if since == count():
        _state[0] += 1


def cancel_where_meant_for_all(error: BaseException, since: int) -> None:
    """End running work for an interrupt, or what a signal's handler raised to end the program (``SystemExit``).

    Its other errors, such as that of a time limit, are for the waiting call only: its kernels that have begun run on to
    their end, and no other begins.
    """
    if not isinstance(error, Exception):
        cancel(since)


class _Work(threading.local):
    """The call that a thread other than the main one works for.

    The main thread stores nothing: Python raises there by itself, anywhere, even where a value would be restored.
    """

    since: int | None = None
    """Number of interrupts at the call's start."""


_work = _Work()


class interruptible:  # noqa: N801 (used as a function)
    """A call's work: it ends with ``KeyboardInterrupt`` if an interrupt arrived, even if the exception was swallowed.

    Other errors caused by an interrupt become ``KeyboardInterrupt``, too; an interrupt that Python or Polars has
    raised already is not raised twice. Do not use it around a ``yield``.

    Parameters
    ----------
    since
        For a thread that works for another: the value of :func:`began` there.

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
    """Make a whole function :class:`interruptible`."""

    @wraps(function)
    def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        with interruptible():
            return function(*arguments, **named)

    return call


def _tell() -> None:
    """Let Python run pending signal handlers, which it does in loops."""
    for _ in range(2):
        pass


def began() -> int:
    """Return the number of interrupts at the start of this thread's call."""
    return count() if _work.since is None else _work.since


def check() -> None:
    """Raise ``KeyboardInterrupt`` if an interrupt has arrived since the start of this thread's call."""
    if _work.since is not None and _work.since != _state[0]:
        raise KeyboardInterrupt


class polled:  # noqa: N801 (used as a decorator)
    """A kernel that returns early on an interrupt; its caller then gets ``KeyboardInterrupt`` instead of the result.

    Kernels call the undecorated function, and must return early themselves.
    """

    def __init__(self, kernel: Callable[..., Any]) -> None:
        self.kernel = kernel
        self.__doc__ = kernel.__doc__
        self.__name__ = kernel.__name__
        self.__wrapped__ = kernel

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel, unless its call has been interrupted already."""
        since = began()
        arm()
        if since == _state[0]:
            result = self.kernel(*arguments)
            if since == _state[0]:
                return result
        _tell()  # where Python has yet to raise it, one is enough
        raise KeyboardInterrupt


@typeof_impl.register(polled)
def _type_of_polled(value: polled, context: Any) -> Any:
    return nb.typeof(value.kernel)
