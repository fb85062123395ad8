"""The main function of a worker process: reads calls from standard input and writes answers to standard output.

Only the parent process writes to the one and reads from the other, so both use pickle.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO

import pyarrow as pa

from polars_tadoc import config
from polars_tadoc.config import Settings
from polars_tadoc.engine.choose import require_engine

Answer = tuple[int, str, Any]
"""Number of the call, status ("result", "error" or "memory"), and the result, the error or its text."""


def prepare(settings: Settings) -> None:
    """Take over the parent's settings, and check that the engine can run.

    Raises
    ------
    EngineUnavailableError
        This worker's GPU cannot be used.

    """
    config.Config.set(**{**vars(settings), "progress": False})  # the calling process shows progress
    require_engine("gpu" if os.environ.get("CUDA_VISIBLE_DEVICES") else "cpu")
    if settings.threads:
        pa.set_cpu_count(settings.threads)


class _Answers:
    """The output; concurrent calls write their answers one after another."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._lock = file, threading.Lock()

    def give(self, answer: Answer) -> None:
        """Send an answer; values that cannot be pickled are sent as text."""
        try:
            data = pickle.dumps(answer)
            if answer[1] == "error":  # some errors can be pickled but not unpickled
                pickle.loads(data)
        except Exception as error:
            data = pickle.dumps((answer[0], "error", RuntimeError(f"{answer[2]!r} cannot be sent: {error}")))
        with self._lock:
            self._file.write(data)
            self._file.flush()

    def answer(self, number: int, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Run one call."""
        try:
            self.give((number, "result", function(*arguments)))
        except MemoryError as error:  # this process may be short of memory: another one retries
            self.give((number, "memory", str(error)))
            os._exit(1)
        except BaseException as error:
            error.add_note(f"In worker process {os.getpid()}:\n{traceback.format_exc()}")
            self.give((number, "error", error))


def main(slots: int) -> None:
    """Run calls, ``slots`` at the same time, until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles a terminal's interrupt
    calls, answers = os.fdopen(os.dup(0), "rb"), _Answers(os.fdopen(os.dup(1), "wb"))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # output of libraries must not mix with answers
    pool = ThreadPoolExecutor(slots)
    while True:
        try:
            number, function, arguments = pickle.load(calls)
        except EOFError:  # the parent is gone, and no process waits for running calls
            os._exit(0)
        except Exception as error:
            answers.give((-1, "error", error))
            os._exit(1)
        pool.submit(answers.answer, number, function, arguments)
