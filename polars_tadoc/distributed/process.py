"""A worker as seen by the process that started it: calls are sent there, and their results come back."""

from __future__ import annotations

import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from polars_tadoc.config import Settings
from polars_tadoc.distributed import worker

PATIENCE = 10.0
"""Seconds that a worker has to end by itself when nothing more is asked of it."""


class WorkerGoneError(Exception):
    """A worker ended before it answered; the message says how."""


class WorkerProcess:
    """One process that answers calls.

    Parameters
    ----------
    name
        What it is called in messages.
    environment
        Variables that it has beside those of this process.
    settings
        The settings that it works with.
    slots
        Calls that it answers at the same time.

    Raises
    ------
    WorkerGoneError
        It did not start.

    """

    def __init__(self, name: str, environment: Mapping[str, str], settings: Settings, slots: int) -> None:
        self.name = name
        folders = [os.path.abspath(folder) for folder in sys.path]  # it finds the modules that this process has found
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"from {worker.__name__} import main; main({slots})"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # a terminal's interrupt is this process' to handle
            env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), **environment},
        )
        assert self._process.stdin is not None
        self._calls = self._process.stdin
        self._numbers = itertools.count()
        self._waiting: dict[int, Future[Any]] = {}
        self._sending, self._gone = threading.Lock(), threading.Event()
        self._said = ""
        threading.Thread(target=self._read, name=f"tadoc {name}", daemon=True).start()
        self._ready = self.send(worker.prepare, settings)

    def wait_until_ready(self) -> None:
        """Wait until it can be asked; errors as for :func:`polars_tadoc.distributed.worker.prepare`."""
        self._ready.result()

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return not self._gone.is_set()

    @property
    def number(self) -> int:
        """The number of the process."""
        return self._process.pid

    def send(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Ask for a call; the answer is the function's result or error, or ``WorkerGoneError``."""
        future: Future[Any] = Future()
        number = next(self._numbers)
        data = pickle.dumps((number, function, arguments))
        with self._sending:
            self._waiting[number] = future
            if self._gone.is_set():
                self._fail()
                return future
            with suppress(BrokenPipeError, ValueError):  # that it is gone, or closed, is seen where its answers end
                self._calls.write(data)
                self._calls.flush()
        return future

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Ask for a call and wait for its result."""
        return self.send(function, *arguments).result()

    def abandon(self) -> None:
        """End the process, and do not wait for that."""
        self._process.kill()

    def kill(self) -> None:
        """End the process at once; whoever waits for an answer gets ``WorkerGoneError``."""
        self._process.kill()
        self._gone.wait()

    def close(self) -> None:
        """Let the process end."""
        with self._sending:
            self._close_calls()
        if not self._gone.wait(PATIENCE):
            self.kill()

    def _read(self) -> None:
        """Hand out answers until there are no more."""
        stream = self._process.stdout
        assert stream is not None
        while True:
            try:
                number, what, value = pickle.load(stream)
            except Exception:  # the end, or an answer that was cut off
                break
            if what == "memory":
                self._said = f"out of memory: {value}" if value else "out of memory"
                break
            future = self._waiting.pop(number, None)
            if future is None:
                continue
            if what == "error":
                future.set_exception(value)
            else:
                future.set_result(value)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE)
        self._process.kill()
        self._process.wait()
        stream.close()
        with self._sending:
            self._close_calls()
            self._gone.set()
            self._fail()

    def _close_calls(self) -> None:
        with suppress(BrokenPipeError):
            self._calls.close()

    def _fail(self) -> None:
        """Tell all who wait that there will be no answer."""
        for number in list(self._waiting):
            self._waiting.pop(number).set_exception(WorkerGoneError(self._ending))

    @property
    def _ending(self) -> str:
        """How the process ended."""
        if self._said:
            return self._said
        status = self._process.returncode
        if status is None or status >= 0:
            return f"it ended with status {status}"
        name = signal.Signals(-status).name if -status in set(signal.Signals) else str(-status)
        return f"it was killed by {name}"
