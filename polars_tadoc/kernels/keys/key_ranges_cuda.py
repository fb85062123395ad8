"""Ranges of keys that are counted at a time, by what device memory allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from polars_tadoc.kernels.keys.keys_cuda import Packing
from polars_tadoc.kernels.sequences.bodies_cuda import Text
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.device import even_blocks, launch

WORKING_MEMORY = 30 << 20
"""Bytes that a call may take beside half of what it is given and what the result allows."""
MIN_MEMORY = 4 << 20
"""Bytes that a batch may take anyhow."""
EXPECTED = 0.5
"""Share of the least result that entries have been found to have so far which the rest is trusted to have."""
SKETCHED = 0.95
"""Share of the keys told by the sketch that is trusted to be there: its standard error is 1.6 percent."""

_BUCKET_BITS = 12
_SKETCH = 4096  # of survey.cuh
_NOTED = 2  # bytes that a sort notes by tile and digit for each of its keys
_THREADS = 512


class Survey:
    """Counts entries by the first columns of their keys, and tells how many keys there are.

    Parameters
    ----------
    kernel
        What surveys a text.
    packing
        How keys are written.
    parts
        Texts and what else their launches take.
    sketch
        Tells a sketch all entries, if there is one.
    defines
        Macros that the kernel is compiled with.

    """

    def __init__(
        self,
        kernel: tuple[str, str],
        packing: Packing,
        parts: Sequence[tuple[Text, tuple[Any, ...]]],
        sketch: Callable[[Any], None] | None = None,
        defines: tuple[str, ...] = (),
    ) -> None:
        self._kernel, self._packing, self._parts, self._sketch = kernel, packing, parts, sketch
        self._defines = defines
        self._seen: Any = None

    def count(self, low: int, shift: int, buckets: int) -> Int64:
        """Count the entries of ranges of 2^shift first columns from ``low`` on."""
        import cupy

        told = cupy.zeros(buckets + _SKETCH, np.uint64)
        counts, self._seen = told[:buckets], told[buckets:].view(np.uint32)
        some = (low, low + (buckets << shift) - 1)
        for text, arguments in self._parts:
            if len(text.symbols):
                launch(
                    *(*self._kernel, 2 * even_blocks(len(text.symbols)), _THREADS, text.struct, self._packing.struct),
                    *(*some, *arguments, shift, buckets, counts, self._seen),
                    defines=self._defines,
                )
        found: UInt64 = counts.get()  # synchronize!
        return found.astype(np.int64)

    def distinct(self) -> tuple[int, int]:
        """Estimate how many keys, and how many entries but for weights, the ranges have that were counted last."""
        if self._sketch is not None:
            self._sketch(self._seen[_SKETCH:])
        seen = self._seen.get()  # synchronize!
        return _distinct(seen[:_SKETCH]), _distinct(seen[_SKETCH:])


def _distinct(sketch: UInt32) -> int:
    """Estimate how much a sketch has seen (HyperLogLog; linear counting where it is little)."""
    by_zeros = np.bincount(sketch, minlength=65)
    nothing = int(by_zeros[0])
    estimate = 0.7213 / (1 + 1.079 / _SKETCH) * _SKETCH**2 / float((by_zeros * 0.5 ** np.arange(len(by_zeros))).sum())
    if estimate <= 2.5 * _SKETCH and nothing:
        estimate = _SKETCH * float(np.log(_SKETCH / nothing))
    return int(estimate)


class Batches:
    """Entries cut into ranges of keys: what is known of the result tells how many a range may have.

    Parameters
    ----------
    survey
        What counts them.
    room
        Bytes that a batch may take before anything is known of the result.
    entry_bytes
        Bytes that an entry takes at the most while they are sorted.
    summed_bytes, key_bytes
        Bytes that an entry takes while they are added up, and each key then takes.
    row_bytes, item_bytes
        Bytes that each key, and each distinct entry, is sure to have in the result; 0 where some may be left out.
    kept
        Whether all that is found will be in the result, whose size then lets the memory grow.

    """

    def __init__(
        self,
        survey: Survey,
        room: int,
        *,
        entry_bytes: int,
        summed_bytes: int = 0,
        key_bytes: int = 0,
        row_bytes: int,
        item_bytes: int = 0,
        kept: bool,
    ) -> None:
        self._survey, self._room, self._kept = survey, room, kept
        self._row_bytes, self._item_bytes = row_bytes, item_bytes
        self._entry_bytes, self._summed_bytes, self._key_bytes = entry_bytes + _NOTED, summed_bytes, key_bytes
        self.total = 0
        """Entries in all."""
        self._keys: int | None = None
        self._entries = 0
        self._taken = 0
        self._held = self._result = 0
        self._density = 0.0
        self._before = 0

    def found(self, held: int, result: int) -> None:
        """Tell what the last batch keeps in memory, and what it will be in the result, in bytes."""
        density = result / max(self._taken - self._before, 1)
        self._density = density if self._before == 0 else min(self._density, density)
        self._before = self._taken
        self._held += held
        self._result += result

    def fit(self, entries: int) -> bool:
        """Whether so many entries have room before anything is known of the result."""
        return entries * max(self._entry_bytes, self._summed_bytes + self._key_bytes) <= self._room

    def capacity(self) -> int:
        """Return the entries that the next batch may have."""
        left = self.total - self._taken
        # what was found tells of no more than four times as many
        told = EXPECTED * self._density * min(left, 4 * self._taken) if self._kept else 0.0
        # half as much as the result beside it, less a margin for what sorts and sums note by tile
        free = max(self._room + 1.4 * (self._result + told) - self._held, MIN_MEMORY)
        most = free / max(self._entry_bytes, self._summed_bytes + self._key_bytes)
        if left <= most:
            return left
        if self._keys is None:
            self._keys, self._entries = self._survey.distinct()
        sure = SKETCHED * (self._keys * self._row_bytes + self._entries * self._item_bytes)
        free = max(free, self._room + 1.4 * sure - self._held)
        most = free / self._entry_bytes
        if self._key_bytes:
            few_keys = (free - (2 - SKETCHED) * self._keys * self._key_bytes) / self._summed_bytes
            most = min(most, max(few_keys, free / (self._summed_bytes + self._key_bytes)))
        return int(most)

    def ranges(self, bits: int) -> Iterator[tuple[int, int, int]]:
        """Yield the lowest and the last of ranges of first columns, and their entries.

        Only one first column may have entries beyond the capacity.
        """
        for low, high, entries in self._ranges(0, bits):
            self._taken += entries
            yield low, (1 << 64) - 1 if high == 1 << bits else high - 1, entries

    def _ranges(self, low: int, bits: int) -> Iterator[tuple[int, int, int]]:
        shift = max(0, bits - _BUCKET_BITS)
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(self._survey.count(low, shift, 1 << (bits - shift)))])
        self.total = self.total or int(before[-1])
        first = 0
        while before[first] < before[-1]:
            most = self.capacity()
            stop = int(np.searchsorted(before, before[first] + most, side="right")) - 1
            stop = max(stop, int(np.searchsorted(before, before[first], side="right")))
            entries = int(before[stop] - before[first])
            if entries > most and shift > 0:
                stop = int(np.searchsorted(before, before[first], side="right"))
                yield from self._ranges(low + (stop - 1 << shift), shift)
            else:
                yield low + (first << shift), low + (stop << shift), entries
            first = stop


def spare_memory(rules: Rules, bodies: Text, documents: Text) -> int:
    """Return the bytes that a call may take beside these texts before it has found anything."""
    given = rules.nbytes + int(documents.offsets.nbytes + documents.symbols.nbytes)
    given += 0 if bodies.rank is None else int(bodies.rank.nbytes)
    return WORKING_MEMORY + given // 2 - int(bodies.ends.nbytes + bodies.starts.nbytes + documents.starts.nbytes)
