"""First occurrence and count of every window of a column's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import polars as pl

from polars_tadoc.analytics.cleaning.laid_words import LaidWords
from polars_tadoc.engine.choose import CPU, Engine, choose, require_engine
from polars_tadoc.engine.device_batches import DeviceBatches
from polars_tadoc.errors import DeviceMemoryError
from polars_tadoc.kernels.windows.windows_cpu import ALL_BITS
from polars_tadoc.runtime.array_types import Int64, array_dataclass
from polars_tadoc.traversal.text_corpus import BYTES_A_WORD

Made = TypeVar("Made")


@array_dataclass
class Windows:
    """Every window of exactly ``length`` words, by the place of its first word in ``laid.words``."""

    laid: LaidWords
    length: int
    first: Any
    """uint32, an array of the engine: place of the window's first occurrence, in row order; ``NONE`` where no window
    begins."""
    counts: Any
    """uint32, an array of the engine: at first occurrences, number of occurrences; elsewhere undefined."""

    def count_covered(self, kind: int) -> Int64:
        """Return the number of words of each row inside windows of a kind, int64; repeated is twice or more."""
        kernels = self.laid.engine.kernels
        return kernels.count_covered(self.laid.starts, self.length, kind, self.first, self.counts)

    def find_runs(self, kind: int, min_count: int) -> tuple[Int64, Int64, Int64]:
        """Find the maximal runs of words in windows of a kind (:mod:`polars_tadoc.kernels.host.passages.runs`).

        Returns
        -------
        (int64, int64, int64) arrays
            By run, in row order: row, place of the first word in ``laid.words``, and of the one after the last.

        """
        kernels = self.laid.engine.kernels
        return kernels.find_runs(self.laid.starts, self.length, kind, min_count, self.first, self.counts)


def find_windows(laid: LaidWords, length: int, mask: int = ALL_BITS) -> Windows:
    """Find the first occurrence and the count of every window of ``length`` words, at least 1.

    ``mask`` has the bits of fingerprints that are used at first; results do not depend on it.
    """
    return Windows(laid, length, *laid.engine.kernels.find_windows(laid.words, laid.starts, length, mask))


def on_engine(call: str, engine: str | None, column: pl.Series, work: Callable[[Engine], Made]) -> Made:
    """Choose the engine for a column, and work on it; its result must not hold device memory.

    Raises
    ------
    DeviceMemoryError
        A GPU was asked for by name, and has too little memory for the column.

    Warns
    -----
    DeviceMemoryWarning
        The CPU did the work, because a GPU has too little memory.

    """
    chosen = choose(engine, int(column.estimated_size()) // BYTES_A_WORD)
    for attempt in range(2):
        try:
            with chosen.guarded(f"working for {call}"):
                return work(chosen)
        except DeviceMemoryError as error:
            if attempt and require_engine(engine) == "gpu":
                raise
            failed = error.with_traceback(None)  # the traceback holds the arrays that filled the device
        chosen.release()
    DeviceBatches(call, engine).leave_to_cpu("its rows", failed)
    return work(CPU)
