"""A worker process, seen from its parent: sends calls and receives results."""

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
"""Seconds for a worker to end by itself after its input is closed."""


class WorkerGoneError(Exception):
    """A worker ended before it answered; the message says how."""


class WorkerProcess:
    """A process that runs calls.

    Parameters
    ----------
    name
        Its name in messages.
    environment
        Environment variables in addition to those of this process.
    settings
        The settings of the process.
    slots
        Number of concurrent calls.

    Raises
    ------
    WorkerGoneError
        The process did not start.

    """

    def __init__(self, name: str, environment: Mapping[str, str], settings: Settings, slots: int) -> None:
        self.name = name
        folders = [os.path.abspath(folder) for folder in sys.path]  # so that it finds the modules of this process
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"from {worker.__name__} import main; main({slots})"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,  # this process handles a terminal's interrupt
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
        """Wait until it is ready; errors as for :func:`polars_tadoc.distributed.worker.prepare`."""
        self._ready.result()

    @property
    def alive(self) -> bool:
        """Whether it accepts calls."""
        return not self._gone.is_set()

    @property
    def number(self) -> int:
        """The process id."""
        return self._process.pid

    def send(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Send a call; the future gets the function's result or error, or ``WorkerGoneError``."""
        future: Future[Any] = Future()
        number = next(self._numbers)
        data = pickle.dumps((number, function, arguments))
        with self._sending:
            self._waiting[number] = future
            if self._gone.is_set():
                self._fail()
                return future
            with suppress(BrokenPipeError, ValueError):  # a lost process is detected where its answers end
                self._calls.write(data)
                self._calls.flush()
        return future

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Send a call and wait for its result."""
        return self.send(function, *arguments).result()

    def abandon(self) -> None:
        """End the process without waiting."""
        self._process.kill()

    def kill(self) -> None:
        """Kill the process; pending calls get ``WorkerGoneError``."""
        self._process.kill()
        self._gone.wait()

    def close(self) -> None:
        """Let the process end."""
        with self._sending:
            self._close_calls()
        if not self._gone.wait(PATIENCE):
            self.kill()

    def _read(self) -> None:
        """Deliver answers until there are no more."""
        stream = self._process.stdout
        assert stream is not None
        while True:
            try:
                number, what, value = pickle.load(stream)
            except Exception:  # the end, or a truncated answer
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
        """Fail all pending calls."""
        for number in list(self._waiting):
            self._waiting.pop(number).set_exception(WorkerGoneError(self._ending))

    @property
    def _ending(self) -> str:
        """Describe how the process ended."""
        if self._said:
            return self._said
        status = self._process.returncode
        if status is None or status >= 0:
            return f"it ended with status {status}"
        name = signal.Signals(-status).name if -status in set(signal.Signals) else str(-status)
        return f"it was killed by {name}"
