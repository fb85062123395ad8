"""Caches lists of postings on the device within a budget, if all postings together exceed it.

A list's parts are in arenas that are allocated once: of slots (metadata of a list), of blocks, of bytes and of
exceptions. A single :class:`Postings` over the arenas never changes: slot s is its list ``2 * s``, and the odd lists
are the space between, so that offsets define a list's end wherever it is. A query whose lists are cached copies
nothing. The least recently used lists are evicted.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Generator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.postings.coded import PFORDELTA, RICE, SPARE_BYTES, Postings, Queries, Stream
from polars_tadoc.kernels.postings.coded_postings_cuda import load_postings
from polars_tadoc.runtime.array_types import UInt32
from polars_tadoc.runtime.device import device_errors

MAX_SLOTS = 1 << 15
"""Maximum number of cached lists."""

_SLOT_BYTES = 2 * (3 * 8 + 4 + 2)
_BLOCK_BYTES = 4 + 2 * 8
_EXCEPTION_BYTES = 1 + 4
_FIXED_BYTES = 3 * 8 + 8 + 8 + SPARE_BYTES


class Arena:
    """Allocator of units of an array: free ranges, ascending; first fit.

    Examples
    --------
    >>> arena = Arena(10)
    >>> arena.allocate(4), arena.allocate(6), arena.allocate(1)
    (0, 4, None)
    >>> arena.free(0, 4)
    >>> arena.allocate(5), arena.allocate(3)
    (None, 0)

    """

    def __init__(self, size: int) -> None:
        self._runs = [(0, size)] if size else []

    def allocate(self, size: int) -> int | None:
        """Return the start of ``size`` free units, or None if no range is long enough."""
        if not size:
            return 0
        for place, (start, stop) in enumerate(self._runs):
            if stop - start >= size:
                self._runs[place : place + 1] = [(start + size, stop)] if stop - start > size else []
                return start
        return None

    def free(self, start: int, size: int) -> None:
        """Free units."""
        if not size:
            return
        stop = start + size
        first = last = bisect_left(self._runs, (start, stop))
        if first and self._runs[first - 1][1] == start:
            first -= 1
            start = self._runs[first][0]
        if last < len(self._runs) and self._runs[last][0] == stop:
            stop = self._runs[last][1]
            last += 1
        self._runs[first:last] = [(start, stop)]


class _Extent(NamedTuple):
    """Units of each arena: their number, or the first."""

    slots: int
    blocks: int
    bytes: int
    exceptions: int

    @property
    def nbytes(self) -> int:
        return self.slots * _SLOT_BYTES + self.blocks * _BLOCK_BYTES + self.bytes + self.exceptions * _EXCEPTION_BYTES


class _Known(NamedTuple):
    """Metadata of lists, two entries per slot."""

    block_offsets: Any
    gap_offsets: Any
    count_offsets: Any
    frequencies: Any
    gap_widths: Any
    count_widths: Any


class _Arrays:
    """The arenas' arrays, and how lists are written to them.

    Parameters
    ----------
    sizes
        Sizes of the arenas.
    source
        The lists in host memory.
    arrays
        CuPy, or NumPy.

    """

    def __init__(self, sizes: _Extent, source: Postings, arrays: ModuleType) -> None:
        self._source = source
        # one array on either side: one copy updates the device
        size = 8 * 3 * (2 * sizes.slots + 1) + 6 * 2 * sizes.slots
        self._known_here, self._known_there = np.zeros(size, np.uint8), arrays.zeros(size, np.uint8)
        self._known = _known(self._known_here, sizes.slots)
        known = _known(self._known_there, sizes.slots)
        low = arrays.zeros(-(-sizes.bytes // 8) * 8 + SPARE_BYTES, np.uint8)
        places, highs = (arrays.zeros(sizes.exceptions, kind) for kind in (np.uint8, np.uint32))
        by_block = [arrays.zeros(sizes.blocks, np.int64) for _ in range(2)]
        none = arrays.zeros(1, np.int64)

        def stream(widths: Any, low_offsets: Any, offsets: Any) -> Stream:
            if source.codec == RICE:
                return Stream(widths, low, low_offsets, none, places, highs, low, offsets)
            return Stream(widths, low, low_offsets, offsets, places, highs, low[:SPARE_BYTES], none)

        self.postings = Postings(
            source.codec,
            source.documents,
            known.frequencies,
            known.block_offsets,
            arrays.zeros(sizes.blocks, np.uint32),
            stream(known.gap_widths, known.gap_offsets, by_block[0]),
            stream(known.count_widths, known.count_offsets, by_block[1]),
        )

    def write(self, number: int, starts: _Extent) -> None:
        """Copy a list to the given units of each arena; its metadata is written by :meth:`publish`."""
        source, slot = self._source, 2 * starts.slots
        first, last = (int(q) for q in source.block_offsets[number : number + 2])
        _copy(self.postings.heads, starts.blocks, source.heads[first:last])
        self._known.frequencies[slot] = source.frequencies[number]
        self._known.block_offsets[slot : slot + 2] = starts.blocks, starts.blocks + last - first
        byte, exception = starts.bytes, starts.exceptions
        for stream, target, widths, low_offsets in (
            (source.gaps, self.postings.gaps, self._known.gap_widths, self._known.gap_offsets),
            (source.counts, self.postings.counts, self._known.count_widths, self._known.count_offsets),
        ):
            widths[slot] = stream.widths[number]
            low = stream.low[stream.low_offsets[number] : stream.low_offsets[number + 1]]
            _copy(target.low, byte, low)
            low_offsets[slot : slot + 2] = byte, byte + len(low)
            byte += len(low)
            if source.codec == PFORDELTA:
                offsets = stream.exception_offsets[first : last + 1]
                own = slice(int(offsets[0]), int(offsets[-1]))
                _copy(target.exception_places, exception, stream.exception_places[own])
                _copy(target.exception_highs, exception, stream.exception_highs[own])
                _copy(target.exception_offsets, starts.blocks, offsets - offsets[0] + exception)
                exception += own.stop - own.start
            else:
                offsets = stream.unary_offsets[first : last + 1]
                unary = stream.unary[offsets[0] >> 3 : (offsets[-1] + 7) >> 3]
                _copy(target.low, byte, unary)
                _copy(target.unary_offsets, starts.blocks, offsets - (offsets[0] & ~7) + 8 * byte)
                byte += len(unary)

    def publish(self) -> None:
        """Copy the metadata of written lists to the device."""
        _copy(self._known_there, 0, self._known_here)


def _known(known: Any, slots: int) -> _Known:
    lists = 2 * slots
    offsets = known[: 24 * (lists + 1)].view(np.int64).reshape(3, lists + 1)
    rest = known[24 * (lists + 1) :]
    widths = rest[4 * lists :].reshape(2, lists)
    return _Known(offsets[0], offsets[1], offsets[2], rest[: 4 * lists].view(np.uint32), widths[0], widths[1])


def _copy(target: Any, start: int, source: npt.NDArray[Any]) -> None:
    if len(source):
        part = target[start : start + len(source)]
        part.set(np.ascontiguousarray(source)) if hasattr(part, "set") else np.copyto(part, source)


def resident_postings(postings: Postings, budget: int) -> Postings | PostingCache:
    """Make postings resident: all of them, or beyond a budget a cache of lists.

    Parameters
    ----------
    postings
        In host memory.
    budget
        Maximum bytes on the device.

    Returns
    -------
    Postings or PostingCache
        cupy arrays, or a cache of lists.

    """
    arrays = (postings.frequencies, postings.block_offsets, postings.heads, *postings.gaps, *postings.counts)
    if sum(array.nbytes for array in arrays) <= budget:
        return load_postings(postings)
    with device_errors("allocating room for lists of postings"):
        import cupy

        return PostingCache(postings, budget, cupy)


class PostingCache:
    """The most recently used lists of postings, on a device.

    Parameters
    ----------
    postings
        All lists, in host memory.
    budget
        Maximum bytes of all arenas together.
    arrays
        CuPy, or NumPy.

    """

    def __init__(self, postings: Postings, budget: int, arrays: ModuleType) -> None:
        self._source, self._module = postings, arrays
        self._lock = threading.Lock()
        whole = _whole(postings)
        share = min(1.0, max(0, budget - _FIXED_BYTES) / max(whole.nbytes, 1))
        sizes = _Extent(*(int(units * share) for units in whole))
        sizes = sizes._replace(slots=min(sizes.slots, MAX_SLOTS))
        self._free = [Arena(size) for size in sizes]
        self._arrays = _Arrays(sizes, postings, arrays)
        self._kept: OrderedDict[int, tuple[_Extent, _Extent]] = OrderedDict()
        self._slots = np.full(len(postings.frequencies), -1, np.int32)
        self._is_stale = False  # whether metadata must be published
        self.nbytes = sizes.nbytes + _FIXED_BYTES

    def __len__(self) -> int:
        return len(self._kept)

    def is_resident(self, lists: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
        """Return which lists are on the device."""
        resident: npt.NDArray[np.bool_] = self._slots[lists] >= 0
        return resident

    def bring(self, queries: Queries) -> Generator[tuple[Postings, Queries], None, None]:
        """Copy the lists of queries to the device, for as many queries at a time as fit.

        The content cannot change until the next item is requested: launch the search before. One query whose lists do
        not fit gets separate arrays, which are not cached.

        Parameters
        ----------
        queries
            In host memory, with global list numbers.

        Yields
        ------
        (Postings, Queries)
            Device arrays, and the next queries with list numbers in these.

        """
        offsets, first = queries.offsets, 0
        with self._lock:
            while first < len(offsets) - 1:
                last = self._load(queries, first)
                own = queries.lists[offsets[first] : offsets[last]]
                if last > first:
                    arrays, numbers = self._arrays, 2 * self._slots[np.minimum(own, len(self._slots) - 1)]
                else:
                    last = first + 1
                    own = queries.lists[offsets[first] : offsets[last]]
                    arrays, numbers = self._apart(own)
                is_extra = own >= len(self._slots)  # uncoded lists follow the coded ones
                numbers = np.where(
                    is_extra, own.astype(np.int64) - len(self._slots) + len(arrays.postings.frequencies), numbers
                )
                weights = queries.weights[offsets[first] : offsets[last]]
                part = Queries(offsets[first : last + 1] - offsets[first], numbers.astype(np.uint32), weights)
                yield arrays.postings, part
                first = last

    def _load(self, queries: Queries, first: int) -> int:
        """Make the lists of queries resident, from query ``first`` on; return the first query that does not fit."""
        offsets, lists = queries.offsets, queries.lists
        coded = lists[offsets[first] :]
        coded = np.unique(coded[coded < len(self._slots)])
        if self.is_resident(coded).all():
            for number in coded.tolist():
                self._kept.move_to_end(number)
            return len(offsets) - 1
        used: set[int] = set()
        last = first
        while last < len(offsets) - 1:
            own = {number for number in lists[offsets[last] : offsets[last + 1]].tolist() if number < len(self._slots)}
            for number in own & self._kept.keys():
                self._kept.move_to_end(number)
            used |= own
            if not all(self._keep(number, used) for number in sorted(own - self._kept.keys())):
                break
            last += 1
        if self._is_stale:
            self._arrays.publish()
            self._is_stale = False
        return last

    def _keep(self, number: int, used: set[int]) -> bool:
        """Copy a list to the device; False if the lists in use leave no room."""
        size = _size(self._source, number)
        while (starts := self._allocate(size)) is None:
            oldest = next(iter(self._kept), number)
            if oldest in used:
                return False
            self._evict(oldest)
        self._arrays.write(number, starts)
        self._kept[number] = starts, size
        self._slots[number] = starts.slots
        self._is_stale = True
        return True

    def _allocate(self, size: _Extent) -> _Extent | None:
        starts: list[int] = []
        for arena, units in zip(self._free, size, strict=True):
            start = arena.allocate(units)
            if start is None:
                for other, begin, taken in zip(self._free, starts, size, strict=False):
                    other.free(begin, taken)
                return None
            starts.append(start)
        return _Extent(*starts)

    def _evict(self, number: int) -> None:
        starts, size = self._kept.pop(number)
        self._slots[number] = -1
        for arena, start, units in zip(self._free, starts, size, strict=True):
            arena.free(start, units)

    def _apart(self, lists: UInt32) -> tuple[_Arrays, npt.NDArray[np.int64]]:
        """Copy the lists of one query to separate arrays; return their numbers there, too."""
        coded = [number for number in lists.tolist() if number < len(self._slots)]
        sizes = [_size(self._source, number) for number in coded]
        arrays = _Arrays(_Extent(*(sum(units) for units in zip(*sizes, strict=True))), self._source, self._module)
        starts, numbers = _Extent(0, 0, 0, 0), np.zeros(len(lists), np.int64)
        for number, size in zip(coded, sizes, strict=True):
            arrays.write(number, starts)
            numbers[lists == number] = 2 * starts.slots
            starts = _Extent(*(start + units for start, units in zip(starts, size, strict=True)))
        arrays.publish()
        return arrays, numbers


def _size(postings: Postings, number: int) -> _Extent:
    """Return the size of a list in each arena."""
    first, last = (int(q) for q in postings.block_offsets[number : number + 2])
    bytes_ = exceptions = 0
    for stream in (postings.gaps, postings.counts):
        bytes_ += int(stream.low_offsets[number + 1] - stream.low_offsets[number])
        if postings.codec == PFORDELTA:
            exceptions += int(stream.exception_offsets[last] - stream.exception_offsets[first])
        else:
            bytes_ += (int(stream.unary_offsets[last]) + 7 >> 3) - (int(stream.unary_offsets[first]) >> 3)
    return _Extent(1, last - first + 1, bytes_, exceptions)


def _whole(postings: Postings) -> _Extent:
    """Return the size of all lists."""
    lists, streams = len(postings.frequencies), (postings.gaps, postings.counts)
    bytes_ = sum(int(stream.low_offsets[-1]) + len(stream.unary) + lists for stream in streams)
    return _Extent(lists, len(postings.heads) + lists, bytes_, sum(len(s.exception_places) for s in streams))
