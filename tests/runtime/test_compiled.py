"""Kernels look each form of arguments up once; loading machine code is not divided; interrupts are told once."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from functools import partial
from typing import Any

import numpy as np
import pytest

from polars_tadoc.kernels.host.rows import mersenne
from polars_tadoc.runtime import interrupts
from polars_tadoc.runtime.compiled import Kernel, njit
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


def test_two_threads_enter_a_readonly_form_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba took two entries of one form for ambiguous: each later call, of any thread, looked its types up anew."""
    readonly = np.zeros(1, np.uint32)
    readonly.flags.writeable = False
    looked_up, both = [], threading.Barrier(2, timeout=60)
    compile_for = Kernel._compile_for_args

    def counted(self: Kernel, *given: Any, **named: Any) -> Any:
        looked_up.append(self)
        if len(looked_up) <= 2:
            both.wait()
        return compile_for(self, *given, **named)

    monkeypatch.setattr(Kernel, "_compile_for_args", counted)
    first = njit(_first)
    threads = [threading.Thread(target=first, args=(readonly,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(looked_up) == 2
    assert first(readonly) == 0
    assert len(looked_up) == 2


def _first(values: Any) -> Any:
    return values[0]


def test_an_interrupt_that_comes_after_a_kernel_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python has yet to raise it when the kernel's result is dropped."""

    class Counts:
        __getitem__ = partial(ctypes.CDLL(None)["raise"], signal.SIGINT)  # without a look at signals, as machine code

    told = 0
    with monkeypatch.context() as patched:
        patched.setattr(interrupts, "began", lambda: 0)
        patched.setattr(interrupts, "arm", lambda: None)  # handlers read the true state
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
