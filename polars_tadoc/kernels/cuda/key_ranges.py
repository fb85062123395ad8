"""Ranges of keys that are counted at a time, by what device memory allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cuda.bodies import Text
from polars_tadoc.kernels.cuda.device import even_blocks, get_kernel
from polars_tadoc.kernels.cuda.keys import Packing
from polars_tadoc.kernels.cuda.reduced_text import ReducedText, Words
from polars_tadoc.kernels.rules import Rules

WORKING_MEMORY = 30 << 20
"""Bytes that a call may take beside half of what it is given and what the result allows."""
LEAST_MEMORY = 4 << 20
"""Bytes that a batch may take anyhow."""
EXPECTED = 0.5
"""Share of the least result that entries have been found to have so far which the rest is trusted to have."""

_BUCKET_BITS = 12
_NOTED = 2  # bytes that a sort notes by tile and digit for each of its keys
_COUNT_THREADS = 1024

_Count = Callable[[int, int, int], npt.NDArray[np.int64]]


class Batches:
    """Entries cut into ranges of keys: what is found in one tells how many the next one may have.

    Parameters
    ----------
    room
        Bytes that a batch may take before anything is found.
    entry_bytes
        Bytes that an entry takes at the most.
    kept
        Whether all that is found will be in the result, whose size then lets the memory grow.

    """

    def __init__(self, room: int, entry_bytes: int, kept: bool) -> None:
        self.room, self.entry_bytes, self.kept = room, entry_bytes + _NOTED, kept
        self.total = 0
        """Entries in all."""
        self.taken = 0
        """Entries of the batches so far."""
        self._held = self._result = 0
        self._density = 0.0
        self._before = 0

    def found(self, held: int, result: int) -> None:
        """Tell what the last batch keeps in memory, and what it will be in the result, in bytes."""
        density = result / max(self.taken - self._before, 1)
        self._density = density if self._before == 0 else min(self._density, density)
        self._before = self.taken
        self._held += held
        self._result += result

    def capacity(self) -> int:
        """Return the entries that the next batch may have."""
        more = EXPECTED * self._density * (self.total - self.taken) if self.kept else 0.0
        # half as much as the result beside it, less a margin for what sorts and sums note by tile
        free = self.room + 1.4 * (self._result + more) - self._held
        # what was found tells of no more than four times as many
        most = max(4 * self.taken, WORKING_MEMORY // self.entry_bytes)
        return min(int(max(free, LEAST_MEMORY) // self.entry_bytes), most)

    def ranges(self, count: _Count, bits: int) -> Iterator[tuple[int, int, int]]:
        """Yield ranges of pairs of ranks and their entries; only one pair of ranks may be beyond the capacity.

        ``count`` tells the entries of ranges of 2^shift pairs from one on, given it, the shift, and how many.
        """

        def first_count(low: int, shift: int, buckets: int) -> npt.NDArray[np.int64]:
            counts = count(low, shift, buckets)
            self.total = self.total or int(counts.sum())
            return counts

        for low, high, entries in self._ranges(first_count, 0, bits):
            self.taken += entries
            yield low, high, entries

    def _ranges(self, count: _Count, low: int, bits: int) -> Iterator[tuple[int, int, int]]:
        shift = max(0, bits - _BUCKET_BITS)
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(count(low, shift, 1 << (bits - shift)))])
        first = 0
        while before[first] < before[-1]:
            most = self.capacity()
            stop = int(np.searchsorted(before, before[first] + most, side="right")) - 1
            stop = max(stop, int(np.searchsorted(before, before[first], side="right")))
            entries = int(before[stop] - before[first])
            if entries > most and shift > 0:
                stop = int(np.searchsorted(before, before[first], side="right"))
                yield from self._ranges(count, low + (stop - 1 << shift), shift)
            else:
                yield low + (first << shift), low + (stop << shift), entries
            first = stop


def count_ranges(
    text: ReducedText, kernel: tuple[str, str], arguments: Callable[[Words], tuple[Any, ...]]
) -> Callable[[int, int, int], npt.NDArray[np.int64]]:
    """Return what counts entries by the first two ranks of their keys, by a kernel given its first arguments."""

    def count(low: int, shift: int, buckets: int) -> npt.NDArray[np.int64]:
        import cupy

        counts = cupy.zeros(buckets, np.uint64)
        last = (np.uint64(low), np.uint64(low + (buckets << shift)), np.uint32(shift), np.uint32(buckets), counts)
        for words in text.parts():
            size = len(words.words)
            if size:
                get_kernel(*kernel)((even_blocks(size),), (_COUNT_THREADS,), (*arguments(words), *last))
        told: npt.NDArray[np.uint64] = counts.get()  # synchronize!
        return told.astype(np.int64)

    return count


def spare_memory(rules: Rules, bodies: Text, documents: Text) -> int:
    """Return the bytes that a call may take beside these texts before it has found anything."""
    given = rules.nbytes + int(documents.offsets.nbytes + documents.symbols.nbytes)
    given += 0 if bodies.rank is None else int(bodies.rank.nbytes)
    return WORKING_MEMORY + given // 2 - int(bodies.ends.nbytes + bodies.starts.nbytes + documents.starts.nbytes)


def text_memory(room: int) -> int:
    """Return the bytes of ``room`` that the reduced text may take: some is left for batches."""
    return max(room - 2 * LEAST_MEMORY, LEAST_MEMORY)


def pair_bits(packing: Packing) -> int:
    """Return the bits of two ranks, put together."""
    return 32 + packing.bits
