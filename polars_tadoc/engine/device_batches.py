"""Splits rows into batches if the device has too little memory for all of them at once.

The memory of a traversal cannot be predicted: it depends on how rows share rules. So all rows are tried first. If
memory runs out, resident objects are dropped; then the rows are halved, and the halves again. A single row that is too
large runs on the CPU if the engine is "auto", and raises if a GPU was asked for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np

from polars_tadoc.config import MOST
from polars_tadoc.engine.choose import CPU, GPU, Engine, require_engine
from polars_tadoc.engine.progress import batch
from polars_tadoc.errors import DeviceMemoryError, DeviceMemoryWarning
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.runtime.array_types import Int64
from polars_tadoc.runtime.io_source import go_on

Made = TypeVar("Made")


class DeviceBatches:
    """The batches of one call; warns once if there are several or if the CPU took over.

    Parameters
    ----------
    call
        The call's name, for messages.
    engine
        The ``engine=`` argument; None for the default in ``tadoc.Config``.

    """

    def __init__(self, call: str, engine: str | None) -> None:
        self._call = call
        self._is_gpu_asked_for = require_engine(engine) == "gpu"
        self._most: dict[str, int] = {}
        """First batch size for the next rows, by unit: the size that last succeeded, doubled after a success."""
        self._has_released = self._has_warned = False

    def each(
        self, engine: Engine, before: Int64, work: Callable[[int, int, Engine], Made], unit: str = "symbols"
    ) -> Iterator[Made]:
        """Work on all rows at once, or on consecutive batches of them.

        Parameters
        ----------
        engine
            The engine.
        before
            int64, rows + 1: total size of the rows before each row.
        work
            Called with the first row of a batch, the row after its last, and the engine. Its result must not hold
            device memory unless the batch is all rows.
        unit
            Unit of the sizes, for messages.

        Raises
        ------
        DeviceMemoryError
            A GPU was asked for by name, and a single row is too large for it.

        Warns
        -----
        DeviceMemoryWarning
            Once: rows ran in batches, or on the CPU.

        """
        rows, total = len(before) - 1, int(before[-1] - before[0])
        begun_with = most = self._most.get(unit, MOST)
        has_failed = False
        waiting = [(0, rows)]
        while waiting:
            go_on()
            first, stop = waiting.pop()
            size = int(before[stop] - before[first])
            if size > most and stop - first > 1:
                waiting += _halves(before, first, stop)
                continue
            made: list[Made] = []
            try:
                with engine.guarded(f"working for {self._call}"), batch(self._call, stop - first):
                    made.append(work(first, stop, engine))
            except DeviceMemoryError as error:
                why = str(error.__cause__ or error).rstrip(".")
            if made:
                if has_failed:
                    everything = f"{rows:,} rows of {total:,} {unit} at once"
                    self._say(everything, why, f"in batches of at most {most:,}")
                yield made.pop()
                continue
            engine.release()  # not inside the handler: the traceback holds the arrays that filled the device
            if not self._has_released:
                self._has_released = True
                waiting.append((first, stop))
            elif stop - first > 1:
                most, has_failed = size // 2, True
                waiting += _halves(before, first, stop)
            elif self._is_gpu_asked_for:
                raise DeviceMemoryError(
                    f'{self._call}: engine="gpu": the device has too little memory ({why}) for one row of {size:,} '
                    f'{unit} and everything read with it; use engine="auto", which runs it on the CPU'
                )
            else:
                more = f"on the CPU, with the {rows - stop:,} rows after it"
                self._say(f"one row of {size:,} {unit} and everything read with it", why, more)
                engine, most, has_failed = CPU, MOST, False
                waiting = [(first, rows)]
        if has_failed:
            self._most[unit] = most
        elif total > begun_with:
            self._most[unit] = min(2 * begun_with, MOST)

    def each_on_device(self, before: Int64, work: Callable[[int, int, Engine], Made], unit: str) -> Iterator[Made]:
        """Do as :meth:`each` on the engine that had too little memory for all rows at once."""
        return self.each(GPU, before, work, unit)

    def parts(
        self,
        corpus: Corpus,
        engine: Engine,
        whole: Callable[[Corpus, Engine], Made],
        some: Callable[[Corpus, Engine], Made],
    ) -> list[Made]:
        """Work on the rows of one grammar, or on batches, which leave nothing on the device; as :meth:`each`."""

        def work(first: int, stop: int, engine: Engine) -> Made:
            if stop - first == corpus.document_count:
                return whole(corpus, engine)
            return some(corpus.some(first, stop), engine)

        return list(self.each(engine, corpus.root_offsets, work))

    def leave_to_cpu(self, what: str, error: DeviceMemoryError) -> None:
        """Warn that the CPU does a part of the work, whichever engine was asked for."""
        self._say(what, str(error.__cause__ or error).rstrip("."), "on the CPU")

    def _say(self, what: str, why: str, where: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"{self._call}: the GPU has too little memory ({why}) for {what}, which run {where}; use fewer rows "
                'at a time, or engine="cpu", to do without',
                DeviceMemoryWarning,
                stacklevel=3,
            )


def _halves(before: Int64, first: int, stop: int) -> list[tuple[int, int]]:
    """Cut a batch of at least two rows into two of about the same size, the first one last."""
    middle = int(np.searchsorted(before, (before[first] + before[stop]) // 2))
    middle = min(max(middle, first + 1), stop - 1)
    return [(middle, stop), (first, middle)]
