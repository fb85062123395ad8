"""Puts records that come in key order into that of falling counts, in bounded memory and without comparing keys.

Records of one count are to stay in key order. So each stretch of keys is shared out by counts, and of stretches that
follow each other those of one count are read one behind the other: nothing is merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from polars_tadoc.kernels.host.records.by_count import by_falling_count
from polars_tadoc.kernels.host.records.packed_keys import KeyForm
from polars_tadoc.records.runs import GROUP, KeysFile, KeysWriter
from polars_tadoc.records.spill_folder import SpillFolder
from polars_tadoc.runtime.array_types import Int64, UInt64
from polars_tadoc.runtime.free_memory import give_back_memory

READ_SHARE = 4
"""What is read from files at a time takes at most such a share of the room, and a copy of it as much."""


@dataclass(frozen=True, eq=False)
class _Stretch:
    """Records of a stretch of keys, by count falling; in memory or in a file."""

    counts: UInt64
    """Distinct counts, falling."""
    offsets: Int64
    """Where the records of each count start, one more than there are."""
    keys: UInt64 | Path

    def read(self, first: int, last: int, form: KeyForm) -> UInt64:
        """Read keys from one place to another."""
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
    """Gathers records in key order and gives them by count falling.

    Parameters
    ----------
    form
        How keys are packed.
    top
        At most so many records are wanted.
    room
        Bytes that may be held.
    folder
        Where the rest goes.

    """

    def __init__(self, form: KeyForm, top: int | None, room: int, folder: SpillFolder) -> None:
        self._form, self._top, self._room, self._folder = form, top, room, folder
        self._stretches: list[_Stretch] = []
        self._held = 0
        """Records that are in memory."""
        self._files = 0

    def add(self, keys: UInt64, counts: UInt64) -> None:
        """Take records whose keys are behind all those before."""
        if self._top is not None and self._stretches and self._held >= self._top:
            kept = counts > self._least(self._top)  # those before stand before equal ones
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
        self._stretches.append(_Stretch(counts, offsets, keys))
        self._held += int(offsets[-1])

    def _least(self, top: int) -> np.uint64:
        """Return a count that so many of those in memory reach."""
        held = [one for one in self._stretches if not isinstance(one.keys, Path)]
        counts, sizes = np.concatenate([one.counts for one in held]), _sizes(held)
        order = np.argsort(counts)[::-1]
        return np.uint64(counts[order][np.searchsorted(np.cumsum(sizes[order]), top)])

    def _keep_best(self, top: int) -> None:
        """Leave only as many in memory as are wanted."""
        keys, counts = next(self._read(top, top))
        self._stretches, self._held = [], 0
        self._hold(*by_falling_count(keys, counts))

    def _write(self) -> None:
        """Write what is in memory to files."""
        for place, one in enumerate(self._stretches):
            if not isinstance(one.keys, Path):
                path = self._folder.path / f"order-{self._files:06}.keys.parquet"
                self._files += 1
                with self._folder.writing(), KeysWriter(path, self._form, False, GROUP) as writer:
                    writer.write(one.keys, None)
                self._stretches[place] = replace(one, keys=path)
        self._held = 0
        give_back_memory(self._room)

    def read(self, batch: int) -> Iterator[tuple[UInt64, UInt64]]:
        """Give the records, uint64[limbs, keys] and uint64 counts, about so many at a time or more."""
        return self._read(max(batch, self._room // (8 * self._form.limbs * READ_SHARE)), self._top)

    def _read(self, most: int, top: int | None) -> Iterator[tuple[UInt64, UInt64]]:
        counts = np.concatenate([np.zeros(0, np.uint64), *(one.counts for one in self._stretches)])
        owners = np.repeat(np.arange(len(self._stretches)), [len(one.counts) for one in self._stretches])
        order = np.lexsort((owners, ~counts))
        counts, owners = counts[order], owners[order]
        ends = np.cumsum(_sizes(self._stretches)[order])
        total = int(ends[-1]) if len(ends) else 0
        total = total if top is None else min(total, top)
        places = np.zeros(len(self._stretches), np.int64)
        done = 0
        while done < total:
            goal = min(done + most, total)
            first, last = np.searchsorted(ends, done, side="right"), np.searchsorted(ends, goal) + 1
            sizes = np.diff(np.minimum(ends[first:last], goal), prepend=done)
            yield self._gather(owners[first:last], sizes, places), np.repeat(counts[first:last], sizes)
            done = goal

    def _gather(self, owners: Int64, sizes: Int64, places: Int64) -> UInt64:
        """Read so many records of each stretch named, one behind the other; places move behind what was read.

        One stretch is in memory at a time: what is read of a file are whole groups, of which few records may be wanted.
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
            part, read = self._stretches[number].read(place, place + taken, self._form), 0
            for start, size in zip(starts[wanted].tolist(), sizes[wanted].tolist(), strict=True):
                keys[:, start : start + size] = part[:, read : read + size]
                read += size
            places[number] += taken
            give_back_memory(self._room)  # what reading a file took: else it adds up
        return keys


def _sizes(stretches: list[_Stretch]) -> Int64:
    """How many records of each count stretches have."""
    sizes: Int64 = np.concatenate([np.zeros(0, np.int64), *(np.diff(one.offsets) for one in stretches)])
    return sizes
