"""Numbers the words of several threads' tables in common, again and again while the tables fill up.

The threads distribute their new words over ranges of hashes; then each range is numbered by one thread.
"""

from __future__ import annotations

import numba as nb
import numpy as np
import pyarrow as pa

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.tokenize.tables_cpu import RANGES, Interned, Merge
from polars_tadoc.kernels.tokenize.tokenize_cpu import hash_of, key_of
from polars_tadoc.runtime.array_types import Int64, UInt16, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.parallel import map_parallel

_1, _63 = np.uint64(1), np.uint64(63)


@njit
def _by_range(strings: UInt64, bits: int, ranges: UInt16, places: Int64, order: UInt32) -> None:
    """Sort strings by the range of their hashes; ``places`` becomes the end of each range."""
    for i in range(len(ranges)):
        length = nb.int64(strings[2 * i + 1])
        low, high = key_of(strings[2 * i], length)
        own = hash_of(low, high, length) >> (_63 - nb.uint64(bits)) >> _1
        ranges[i] = own
        places[own] += 1
    at = 0
    for own in range(len(places)):
        at, places[own] = at + places[own], at
    for i in range(len(ranges)):
        order[places[ranges[i]]] = i
        places[ranges[i]] += 1


class CommonNumbers:
    """Numbers of the words of all threads, from 1 on; each thread's first string, the separator, has number 0.

    Parameters
    ----------
    threads
        Their tables.
    first
        How many words at most are numbered before all others: those that a thread met first.

    """

    def __init__(self, threads: list[Interned], first: int) -> None:
        self._threads, self._first = threads, first
        self._merge = Merge(RANGES * thread_count() if len(threads) > 1 else 1)
        self.distinct = 1
        """Numbers, with the separator's."""
        self.maps = [np.zeros(1, np.uint32) for _ in threads]
        """By thread, the number of each string."""

    def update(self) -> None:
        """Number the words that are new since the last time."""
        stops = [table.distinct for table in self._threads]
        if self.distinct == 1:
            most = int(np.argmax(stops))
            self._take([min(stop, self._first) if k == most else 1 for k, stop in enumerate(stops)])
        self._take(stops)

    def _take(self, stops: list[int]) -> None:
        firsts = [len(known) for known in self.maps]
        if firsts == stops:
            return
        many, ranges = np.array(stops) - firsts, 1 << self._merge.bits
        ends = np.zeros((len(stops), ranges), np.int64)
        orders, ids = ([np.empty(size, np.uint32) for size in many] for _ in range(2))
        strings = [
            table.arrays.strings[2 * first : 2 * stop]
            for table, first, stop in zip(self._threads, firsts, stops, strict=True)
        ]

        def spread(k: int) -> None:
            _by_range(strings[k], self._merge.bits, np.empty(many[k], np.uint16), ends[k], orders[k])

        map_parallel(spread, range(len(stops)))
        columns = zip(strings, orders, ids, strict=True)
        given = np.array([[array.ctypes.data for array in column] for column in columns], np.uint64)
        offsets = np.zeros((len(stops), ranges + 1), np.int64)
        offsets[:, 1:] = ends
        added = map_parallel(lambda k: self._merge.intern(k, given, offsets), range(ranges))
        starts = self.distinct + running_sum(np.array(added, np.int64))
        map_parallel(lambda k: self._merge.renumber(k, given, offsets, int(starts[k])), range(ranges))
        self.distinct = int(starts[-1])
        self.maps = [np.concatenate(both) for both in zip(self.maps, ids, strict=True)]

    def ranked(self) -> tuple[pa.LargeStringArray, UInt32]:
        """Return the words in code point order, and the rank of each number; to be called once."""
        numbers = np.concatenate(self._merge.numbers)
        strings = self._merge.strings()
        order = strings.order(by_count=False)
        rank = np.zeros(self.distinct, np.uint32)
        rank[numbers[order]] = np.arange(len(order), dtype=np.uint32)
        return strings.copied(order), rank
