"""What goes wrong in workers' processes, for the tests; they find these functions by their module."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import polars as pl


def _die(folder: str, after: int, times: int, words: pl.Series) -> pl.Series:
    """Kill this process when it has been called so often, unless so many have been killed already."""
    mine = Path(folder) / f"calls-{os.getpid()}"
    with mine.open("a") as file:
        file.write("x")
    if mine.stat().st_size > after:
        for number in range(times):
            with suppress(FileExistsError):  # another process has taken this one's place
                (Path(folder) / f"killed-{number}").touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
    return words


def dying(folder: Path, after: int, times: int = 1) -> pl.Expr:
    """Leave words as they are; kills a process that has done so often enough, but not more than so many."""
    return pl.element().map_batches(partial(_die, str(folder), after, times), return_dtype=pl.String)


def _run_out_of_memory(words: pl.Series) -> pl.Series:
    raise MemoryError("no more than this")


def out_of_memory() -> pl.Expr:
    """Stand for an allocation that failed."""
    return pl.element().map_batches(_run_out_of_memory, return_dtype=pl.String)


def _wait(folder: str, words: pl.Series) -> pl.Series:
    (Path(folder) / f"waits-{os.getpid()}").touch()
    time.sleep(60)
    return words


def waiting(folder: Path) -> pl.Expr:
    """Take a minute, and leave a file that says that it has begun."""
    return pl.element().map_batches(partial(_wait, str(folder)), return_dtype=pl.String)


class UnreadableError(Exception):
    """It can be pickled, and not be read again."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


def raises() -> None:
    """Raise it."""
    raise UnreadableError("first", "second")
