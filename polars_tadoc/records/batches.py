"""Splits ranges of merged records into batches, and finds the rows of each batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from polars_tadoc.records.key_ranges import Range
from polars_tadoc.runtime.array_types import UInt32, UInt64


def cut(
    ranges: Iterator[Range], mask: np.uint64, batch: int
) -> Iterator[tuple[UInt64, UInt64 | None, np.uint64 | None]]:
    """Split ranges into batches of about the given size.

    Parameters
    ----------
    ranges
        Merged records.
    mask
        Bits of the first limb: records that agree in them stay in one batch.
    batch
        Target number of records.

    Yields
    ------
    (uint64[limbs, keys], uint64 array or None, uint64 or None)
        Keys, counts, and a lower bound of the first limbs of all later records; None for the last batch.

    """
    for one in ranges:
        prefixes = one.keys[0] & mask
        first = 0
        while first + batch < len(prefixes):
            last = int(np.searchsorted(prefixes, prefixes[first + batch]))
            if last == first:
                last = int(np.searchsorted(prefixes, prefixes[first], side="right"))
            if last == len(prefixes):
                break
            counts = None if one.counts is None else one.counts[first:last]
            yield one.keys[:, first:last], counts, prefixes[last]
            first = last
        yield one.keys[:, first:], None if one.counts is None else one.counts[first:], one.below


class Rows:
    """Existing rows and their lengths, taken in order."""

    def __init__(self, ranges: Iterator[Range]) -> None:
        self._ranges: Iterator[Range] | None = ranges
        self._keys, self._lengths = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
        self._below = 0

    def take(self, row: int | None) -> tuple[UInt32, UInt64]:
        """Take the rows before ``row``; None: all remaining rows."""
        keys, lengths = [self._keys], [self._lengths]
        while self._ranges is not None and (row is None or self._below < row):
            one = next(self._ranges, None)
            if one is None or one.below is None:
                self._ranges = None
            else:
                self._below = int(one.below)
            if one is not None and one.counts is not None:
                keys.append(one.keys[0])
                lengths.append(one.counts)
        self._keys, self._lengths = np.concatenate(keys), np.concatenate(lengths)
        last = len(self._keys) if row is None else int(np.searchsorted(self._keys, np.uint64(row)))
        taken = self._keys[:last].astype(np.uint32), self._lengths[:last]
        self._keys, self._lengths = self._keys[last:], self._lengths[last:]
        return taken
