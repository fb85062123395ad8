"""What a worker's process runs: calls that come in by its standard input, and answers that go out by its output.

Nobody but the process that started it writes to the one and reads from the other, so both are pickles.
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
"""The number of a call, what became of it ("result", "error" or "memory"), and the result, the error or its text."""


def prepare(settings: Settings) -> None:
    """Work with the settings of the process that started this one, on an engine that must be there.

    Raises
    ------
    EngineUnavailableError
        The GPU given to this worker cannot be used.

    """
    config.Config.set(**vars(settings))
    require_engine("gpu" if os.environ.get("CUDA_VISIBLE_DEVICES") else "cpu")
    if settings.threads:
        pa.set_cpu_count(settings.threads)


class _Answers:
    """Where answers go; calls that run at the same time give them one after another."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._lock = file, threading.Lock()

    def give(self, answer: Answer) -> None:
        """Send an answer; what cannot be pickled is sent as text."""
        try:
            data = pickle.dumps(answer)
            if answer[1] == "error":  # some can be pickled and not read again
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
        except MemoryError as error:  # what is left in memory may be of no use: another process tries again
            self.give((number, "memory", str(error)))
            os._exit(1)
        except BaseException as error:
            error.add_note(f"In worker process {os.getpid()}:\n{traceback.format_exc()}")
            self.give((number, "error", error))


def main(slots: int) -> None:
    """Answer calls, so many at the same time, until no more can come."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal's interrupt the process that waits takes care
    calls, answers = os.fdopen(os.dup(0), "rb"), _Answers(os.fdopen(os.dup(1), "wb"))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what libraries print must not get among the answers
    pool = ThreadPoolExecutor(slots)
    while True:
        try:
            number, function, arguments = pickle.load(calls)
        except EOFError:  # whoever asked is gone, and nobody waits for what is being done
            os._exit(0)
        except Exception as error:
            answers.give((-1, "error", error))
            os._exit(1)
        pool.submit(answers.answer, number, function, arguments)
