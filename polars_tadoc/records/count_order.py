"""Sorts records from key order to descending counts, in bounded memory and without comparing keys.

Records of equal count must stay in key order. Therefore each block of consecutive keys is split by count; for each
count, the parts of consecutive blocks are concatenated. Nothing is merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from polars_tadoc.kernels.host.records.by_count import by_falling_count
from polars_tadoc.kernels.host.records.packed_keys import KeyForm
from polars_tadoc.records.runs import GROUP, KeysFile, KeysWriter
from polars_tadoc.records.spill_folder import SpillFolder
from polars_tadoc.runtime.array_types import Int64, UInt64, array_dataclass
from polars_tadoc.runtime.free_memory import give_back_memory

READ_SHARE = 4
"""Maximum share of the room for data read from files at a time; a copy takes as much."""


@array_dataclass
class _Run:
    """Records of a block of consecutive keys, by descending count; in memory or in a file."""

    counts: UInt64
    """Distinct counts, descending."""
    offsets: Int64
    """Offsets of the records of each count, one more than the counts."""
    keys: UInt64 | Path

    def read(self, first: int, last: int, form: KeyForm) -> UInt64:
        """Read keys ``first`` to ``last``."""
        if not isinstance(self.keys, Path):
            return self.keys[:, first:last]
        file = KeysFile(self.keys, len(form.bits), counted=False)
        try:
            groups = range(first // GROUP, -(-last // GROUP))
            keys = np.concatenate([file.read(group)[0] for group in groups], axis=1)
        finally:
            file.close()
        return keys[:, first - groups.start * GROUP : last - groups.start * GROUP]


class ByCount:
    """Collects records in key order and yields them by descending count.

    Parameters
    ----------
    form
        Packing of keys.
    top
        Maximum number of records to yield.
    room
        Maximum bytes in memory.
    folder
        Folder for the rest.

    """

    def __init__(self, form: KeyForm, top: int | None, room: int, folder: SpillFolder) -> None:
        self._form, self._top, self._room, self._folder = form, top, room, folder
        self._runs: list[_Run] = []
        self._held = 0
        """Records in memory."""
        self._files = 0

    def add(self, keys: UInt64, counts: UInt64) -> None:
        """Add records whose keys follow all earlier ones."""
        if self._top is not None and self._runs and self._held >= self._top:
            kept = counts > self._least(self._top)  # at equal counts, earlier records win
            keys, counts = keys[:, kept], counts[kept]
        if not len(counts) or self._top == 0:
            return
        self._hold(*by_falling_count(keys, counts))
        if self._top is not None and self._held >= 2 * self._top and self._files == 0:
            self._keep_best(self._top)
        if 8 * self._held * self._form.limbs > self._room:
            self._write()

    def _hold(self, keys: UInt64, counts: UInt64, offsets: Int64) -> None:
        if self._top is not None and offsets[-1] > self._top:
            last = int(np.searchsorted(offsets, self._top))
            counts, offsets = counts[:last], np.append(offsets[:last], self._top)
            keys = keys[:, : self._top].copy()
        self._runs.append(_Run(counts, offsets, keys))
        self._held += int(offsets[-1])

    def _least(self, top: int) -> np.uint64:
        """Return the count that at least ``top`` of the records in memory reach."""
        held = [one for one in self._runs if not isinstance(one.keys, Path)]
        counts, sizes = np.concatenate([one.counts for one in held]), _sizes(held)
        order = np.argsort(counts)[::-1]
        return np.uint64(counts[order][np.searchsorted(np.cumsum(sizes[order]), top)])

    def _keep_best(self, top: int) -> None:
        """Keep only the records in memory that may be in the result."""
        keys, counts = next(self._read(top, top))
        self._runs, self._held = [], 0
        self._hold(*by_falling_count(keys, counts))

    def _write(self) -> None:
        """Move the records in memory to files."""
        for place, one in enumerate(self._runs):
            if not isinstance(one.keys, Path):
                path = self._folder.path / f"order-{self._files:06}.keys.parquet"
                self._files += 1
                with self._folder.writing(), KeysWriter(path, self._form, False, GROUP) as writer:
                    writer.write(one.keys, None)
                self._runs[place] = replace(one, keys=path)
        self._held = 0
        give_back_memory(self._room)

    def read(self, batch: int) -> Iterator[tuple[UInt64, UInt64]]:
        """Yield the records, uint64[limbs, keys] and uint64 counts, in batches of about the given size or more."""
        return self._read(max(batch, self._room // (8 * self._form.limbs * READ_SHARE)), self._top)

    def _read(self, most: int, top: int | None) -> Iterator[tuple[UInt64, UInt64]]:
        counts = np.concatenate([np.zeros(0, np.uint64), *(one.counts for one in self._runs)])
        owners = np.repeat(np.arange(len(self._runs)), [len(one.counts) for one in self._runs])
        order = np.lexsort((owners, ~counts))
        counts, owners = counts[order], owners[order]
        ends = np.cumsum(_sizes(self._runs)[order])
        total = int(ends[-1]) if len(ends) else 0
        total = total if top is None else min(total, top)
        places = np.zeros(len(self._runs), np.int64)
        done = 0
        while done < total:
            goal = min(done + most, total)
            first, last = np.searchsorted(ends, done, side="right"), np.searchsorted(ends, goal) + 1
            sizes = np.diff(np.minimum(ends[first:last], goal), prepend=done)
            yield self._gather(owners[first:last], sizes, places), np.repeat(counts[first:last], sizes)
            done = goal

    def _gather(self, owners: Int64, sizes: Int64, places: Int64) -> UInt64:
        """Read ``sizes`` records of the ``owners`` blocks, concatenated; advance ``places``.

        One block is in memory at a time: files are read in whole groups, of which few records may be needed.
        """
        starts = np.cumsum(sizes) - sizes
        keys = np.empty((self._form.limbs, int(sizes.sum())), np.uint64)
        of_owners = np.argsort(owners, kind="stable")
        bounds = np.searchsorted(owners, np.arange(len(places) + 1), sorter=of_owners)
        for number, (first, last) in enumerate(pairwise(bounds.tolist())):
            wanted = of_owners[first:last]
            place, taken = int(places[number]), int(sizes[wanted].sum())
            if not taken:
                continue
            part, read = self._runs[number].read(place, place + taken, self._form), 0
            for start, size in zip(starts[wanted].tolist(), sizes[wanted].tolist(), strict=True):
                keys[:, start : start + size] = part[:, read : read + size]
                read += size
            places[number] += taken
            give_back_memory(self._room)  # memory of the file just read; otherwise it adds up
        return keys


def _sizes(runs: list[_Run]) -> Int64:
    """Return the number of records of each count in blocks."""
    sizes: Int64 = np.concatenate([np.zeros(0, np.int64), *(np.diff(one.offsets) for one in runs)])
    return sizes
