"""What an interrupt must not divide: loading machine code; and that kernels tell it once."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from functools import partial
from typing import Any

import pytest

from polars_tadoc.kernels.host.rows import mersenne
from polars_tadoc.runtime import interrupts
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.machine_code.cache import KernelCache

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")


def test_an_interrupt_does_not_divide_the_loading_of_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two steps of LLVM's Python binding, it left a module that was freed twice: the next kernel crashed."""
    steps = []

    def load(self: KernelCache, *arguments: Any) -> Any:
        steps.append("begun")
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        found = load_overload(self, *arguments)
        steps.append("ended")
        return found

    load_overload = KernelCache.load_overload
    monkeypatch.setattr(KernelCache, "load_overload", load)
    power = njit(mersenne.power.py_func)
    with pytest.raises(KeyboardInterrupt):
        power(3, 4)
    assert steps[:2] == ["begun", "ended"]
    assert power(3, 4) == 81


def test_an_interrupt_that_comes_after_a_kernel_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python has yet to raise it when the kernel's result is dropped."""

    class Counts:
        __getitem__ = partial(ctypes.CDLL(None)["raise"], signal.SIGINT)  # without a look at signals, as machine code

    told = 0
    with monkeypatch.context() as patched:
        patched.setattr(interrupts, "began", lambda: 0)
        kernel = interrupts.polled(lambda: 0)
        kernel.kernel = lambda: patched.setattr(interrupts, "_state", Counts())
        try:
            try:
                patched.setattr(interrupts, "_state", [0])
                kernel()
            except KeyboardInterrupt:
                told += 1
            for _ in range(100):
                pass
        except KeyboardInterrupt:
            told += 1
    assert told == 1


def test_no_kernel_begins_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    monkeypatch.setattr(interrupts, "began", lambda: interrupts.count() - 1)
    with pytest.raises(KeyboardInterrupt):
        interrupts.polled(lambda: begun.append(True))()
    assert begun == []
