"""How commands run: engine, threads, progress."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Literal

from cyclopts import Parameter

import polars_tadoc as tadoc


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Running:
    """How to run."""

    engine: Literal["auto", "cpu", "gpu"] = "auto"
    """CPU or GPU; "auto" takes the GPU where it is faster."""
    threads: int = 0
    """Number of CPU threads; 0: one per core."""
    progress: bool | None = None
    """Whether to show progress on standard error; by default in a terminal."""

    @property
    def shows_progress(self) -> bool:
        """Whether progress is shown."""
        return sys.stderr.isatty() if self.progress is None else self.progress

    def settings(self) -> tadoc.Config:
        """Return these settings as a block."""
        return tadoc.Config(engine=self.engine, threads=self.threads, progress=self.shows_progress)
