"""Puts records that come in key order into that of falling counts, in bounded memory and without comparing keys.

Records of one count are to stay in key order. So each stretch of keys is shared out by counts, and of stretches that
follow each other those of one count are read one behind the other: nothing is merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cpu.by_count import by_falling_count
from polars_tadoc.kernels.cpu.packed_keys import KeyForm
from polars_tadoc.spill.folder import SpillFolder
from polars_tadoc.spill.runs import GROUP, KeysFile, KeysWriter

UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]


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
        if self._top is not None and len(self._stretches) and self._held >= self._top:
            kept = counts > self._least(self._top)  # those before stand before equal ones
            keys, counts = keys[:, kept], counts[kept]
        if not len(counts):
            return
        self._stretches.append(_stretch(keys, counts, self._top))
        self._held += int(self._stretches[-1].offsets[-1])
        if self._top is not None and self._held >= 2 * self._top and self._files == 0:
            self._keep_best()
        if 8 * self._held * self._form.limbs > self._room:
            self._write()

    def _least(self, top: int) -> np.uint64:
        """Return a count that so many of those in memory reach."""
        counts = np.concatenate([one.counts for one in self._stretches if not isinstance(one.keys, Path)])
        sizes = np.concatenate([np.diff(one.offsets) for one in self._stretches if not isinstance(one.keys, Path)])
        order = np.argsort(counts)[::-1]
        reached = int(np.searchsorted(np.cumsum(sizes[order]), top))
        return np.uint64(counts[order][reached]) if reached < len(counts) else np.uint64(0)

    def _keep_best(self) -> None:
        """Leave only as many in memory as are wanted."""
        keys, counts = next(self._read(self._top or 0, self._top), (None, None))
        self._stretches, self._held = [], 0
        if keys is not None and counts is not None:
            self._stretches = [_stretch(keys, counts, self._top)]
            self._held = len(counts)

    def _write(self) -> None:
        """Write what is in memory to files."""
        for place, one in enumerate(self._stretches):
            if not isinstance(one.keys, Path):
                path = self._folder.path / f"order-{self._files:06}.keys.parquet"
                self._files += 1
                with self._folder.writing(), KeysWriter(path, self._form, counted=False) as writer:
                    writer.write(one.keys, None)
                self._stretches[place] = _Stretch(one.counts, one.offsets, path)
        self._held = 0

    def read(self, batch: int) -> Iterator[tuple[UInt64, UInt64]]:
        """Give the records, uint64[limbs, keys] and uint64 counts, about so many at a time."""
        return self._read(max(batch, self._room // (32 * self._form.limbs)), self._top)

    def _read(self, most: int, top: int | None) -> Iterator[tuple[UInt64, UInt64]]:
        counts = np.concatenate([np.zeros(0, np.uint64), *(one.counts for one in self._stretches)])
        owners = np.repeat(np.arange(len(self._stretches)), [len(one.counts) for one in self._stretches])
        sizes = np.concatenate([np.zeros(0, np.int64), *(np.diff(one.offsets) for one in self._stretches)])
        order = np.lexsort((owners, ~counts))
        ends = np.cumsum(sizes[order])
        total = int(ends[-1]) if len(ends) else 0
        if top is not None:
            total = min(total, top)
        at = np.zeros(len(self._stretches), np.int64)
        entry = done = 0
        while done < total:
            goal = min(done + max(most, 1), total)
            last = int(np.searchsorted(ends, goal))  # the entry in which the goal lies
            taken = np.zeros(len(at), np.int64)
            np.add.at(taken, owners[order[entry : last + 1]], _taken(ends, sizes[order], entry, last, done, goal))
            yield self._gather(at, at + taken)
            at += taken
            entry, done = last, goal

    def _gather(self, firsts: Int64, lasts: Int64) -> tuple[UInt64, UInt64]:
        parts, counts = [], []
        for one, first, last in zip(self._stretches, firsts.tolist(), lasts.tolist(), strict=True):
            if first < last:
                parts.append(one.read(first, last, self._form))
                edges: Int64 = np.clip(one.offsets, first, last)
                counts.append(np.repeat(one.counts, edges[1:] - edges[:-1]))
        keys, totals = np.concatenate(parts, axis=1), np.concatenate(counts)
        if len(parts) == 1:
            return keys, totals
        places = by_falling_count(totals)
        return keys[:, places], totals[places]


def _taken(ends: Int64, sizes: Int64, entry: int, last: int, done: int, goal: int) -> Int64:
    """How many records between two numbers of them each entry has."""
    own_ends: Int64 = np.minimum(ends[entry : last + 1], goal)
    own_firsts: Int64 = np.maximum(ends[entry : last + 1] - sizes[entry : last + 1], done)
    return own_ends - own_firsts


def _stretch(keys: UInt64, counts: UInt64, top: int | None) -> _Stretch:
    places = by_falling_count(counts)[:top]
    counts = counts[places]
    starts = np.flatnonzero(np.append(True, counts[1:] != counts[:-1])) if len(counts) else np.zeros(0, np.int64)
    return _Stretch(counts[starts], np.append(starts, len(counts)), keys[:, places])
