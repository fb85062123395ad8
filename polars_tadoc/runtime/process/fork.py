"""Detects whether this process was forked from one in which Polars had started its threads.

A forked process has none of these threads, but Polars waits for them forever. Only Linux lists threads by name;
elsewhere nothing is detected.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from polars_tadoc.config import check_each_call
from polars_tadoc.errors import ForkedProcessError

_THREAD = re.compile(rb"polars-\d+\n")
"""Names of Polars' worker threads; another one waits from the import on and is not needed."""


class _Process:
    """The state of the process that this one was forked from."""

    lacks_threads = False
    _will_lack = False

    def look(self) -> None:
        """Look for Polars' threads, before a fork."""
        self._will_lack = self.lacks_threads
        with suppress(OSError):
            for task in Path("/proc/self/task").iterdir():
                with suppress(OSError):  # it has ended meanwhile
                    self._will_lack |= _THREAD.fullmatch((task / "comm").read_bytes()) is not None

    def begin(self) -> None:
        """Initialise the child of a fork."""
        self.lacks_threads = self._will_lack


_process = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_process.look, after_in_child=_process.begin)


@check_each_call
def require_threads() -> None:
    """Raise ``ForkedProcessError`` if Polars would wait forever."""
    if _process.lacks_threads:
        raise ForkedProcessError(
            "this process was forked after Polars had started its threads, which a fork lacks: calls could wait "
            'forever; start processes with "spawn" or "forkserver" (multiprocessing.get_context), or fork before the '
            "first call"
        )
