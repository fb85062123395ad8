"""Splits keys into ranges that are counted at a time, by the available device memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from polars_tadoc.kernels.keys.keys_cuda import Packing
from polars_tadoc.kernels.sequences.bodies_cuda import Text
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.device import even_blocks, launch, work_space

WORKING_MEMORY = 30 << 20
"""Bytes, at least, that a call may take in addition to half of its input and to what the result allows."""
MIN_MEMORY = 4 << 20
"""Minimum bytes of a batch."""
EXPECTED = 0.5
"""Safety factor: share of the smallest result per entry so far that is assumed for the remaining entries."""
SKETCHED = 0.95
"""Safety factor for the sketch's estimate of distinct keys; its standard error is 1.6 percent."""

_BUCKET_BITS = 12
_SKETCH = 4096  # of survey.cuh
_NOTED = 2  # bytes per key that a sort uses for counters by tile and digit
_THREADS = 512


class Survey:
    """Counts entries by the first columns of their keys, and estimates the number of distinct keys.

    Parameters
    ----------
    kernel
        Kernel that surveys a text.
    packing
        Layout of the keys.
    parts
        Texts and further arguments of their launches.
    sketch
        Adds all entries to a sketch, if there is one.
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
        """Estimate the distinct keys, and the distinct entries regardless of weights, of the ranges counted last."""
        if self._sketch is not None:
            self._sketch(self._seen[_SKETCH:])
        seen = self._seen.get()  # synchronize!
        return _distinct(seen[:_SKETCH]), _distinct(seen[_SKETCH:])


def _distinct(sketch: UInt32) -> int:
    """Estimate the number of distinct items in a sketch (HyperLogLog; linear counting for small numbers)."""
    by_zeros = np.bincount(sketch, minlength=65)
    nothing = int(by_zeros[0])
    estimate = 0.7213 / (1 + 1.079 / _SKETCH) * _SKETCH**2 / float((by_zeros * 0.5 ** np.arange(len(by_zeros))).sum())
    if estimate <= 2.5 * _SKETCH and nothing:
        estimate = _SKETCH * float(np.log(_SKETCH / nothing))
    return int(estimate)


class Batches:
    """Splits entries into ranges of keys; the more entries of the result are known, the larger they are.

    Parameters
    ----------
    survey
        Counts the entries.
    room
        Bytes of a batch before anything is known about the result.
    entry_bytes
        Maximum bytes per entry while entries are sorted.
    summed_bytes, key_bytes
        Bytes per entry while entries are summed, and then per key.
    row_bytes, item_bytes
        Minimum bytes per key, and per distinct entry, in the result; 0 if they may be dropped.
    kept
        Whether everything found is in the result; then the result's size allows more memory.

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
        """Total number of entries."""
        self._keys: int | None = None
        self._entries = 0
        self._taken = 0
        self._held = self._result = 0
        self._density = 0.0
        self._before = 0

    def found(self, held: int, result: int) -> None:
        """Report the bytes that the last batch keeps in memory, and the bytes that it adds to the result."""
        density = result / max(self._taken - self._before, 1)
        self._density = density if self._before == 0 else min(self._density, density)
        self._before = self._taken
        self._held += held
        self._result += result

    def fit(self, entries: int) -> bool:
        """Whether this many entries fit before anything is known about the result."""
        return entries * max(self._entry_bytes, self._summed_bytes + self._key_bytes) <= self._room

    def capacity(self) -> int:
        """Return the maximum entries of the next batch."""
        left = self.total - self._taken
        # estimates are only valid for up to four times as many entries as seen
        told = EXPECTED * self._density * min(left, 4 * self._taken) if self._kept else 0.0
        # half the result's size in addition to it, minus a margin for counters of sorts and sums
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
        """Yield the lowest and the last first column of ranges, and the number of entries.

        Only a range of a single first column may exceed the capacity.
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
    """Return the bytes that a call may take in addition to these texts before it has found anything."""
    given = rules.nbytes + int(documents.offsets.nbytes + documents.symbols.nbytes)
    given += 0 if bodies.rank is None else int(bodies.rank.nbytes)
    space = work_space(WORKING_MEMORY)
    return space + given // 2 - int(bodies.ends.nbytes + bodies.starts.nbytes + documents.starts.nbytes)
