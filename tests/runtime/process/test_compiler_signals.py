"""An interrupt while CUDA's compiler runs is handled as before, and ends nothing."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from polars_tadoc.runtime.process.compiler_signals import _action, _handler, _set, keep_interrupts


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not holds() and time.monotonic() < end:
        time.sleep(0.001)


class Compiler:
    """Handles signals as NVRTC does: unless SIGINT is ignored when it begins, an interrupt ends the process."""

    was_ignored = False

    def __init__(self, told: list[int]) -> None:
        self.told = told

    def compile(self, text: str) -> str:
        found = {number: _action(number) for number in (signal.SIGINT, signal.SIGTERM)}
        self.was_ignored = _handler(found[signal.SIGINT]) == 1
        _set(signal.SIGTERM, (1).to_bytes(8, "little") + bytes(504))
        wait_until(lambda: _handler(_action(signal.SIGINT)) != 1)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        wait_until(lambda: bool(self.told))  # the system forgets what it has not delivered when a signal is ignored
        for number, action in found.items():
            _set(number, action)
        if not text:
            raise ValueError("nothing to compile")
        return text.upper()


@pytest.fixture
def told() -> Iterator[list[int]]:
    found: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: found.append(number))
    yield found
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("text", ["a kernel", ""])
@pytest.mark.parametrize("is_main", [True, False])
def test_interrupts_while_a_kernel_compiles_are_told(told: list[int], is_main: bool, text: str) -> None:
    class Program(Compiler):
        """One of a module of its own, as CuPy's."""

        compile = Compiler.compile

    compiler: Any = SimpleNamespace(_NVRTCProgram=Program)
    for _ in range(2):
        keep_interrupts(compiler)
    assert not hasattr(Program.compile.__wrapped__, "__wrapped__")  # type: ignore[attr-defined]
    handled, program, made = _handler(_action(signal.SIGINT)), Program(told), []

    def work() -> None:
        try:
            made.append(program.compile(text))
        except ValueError as error:
            made.append(str(error))

    if is_main:
        work()
    else:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert made == [text.upper() or "nothing to compile"]
    assert program.was_ignored
    assert told == [signal.SIGINT]
    assert _handler(_action(signal.SIGINT)) == handled
