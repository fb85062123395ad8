"""Tables of strings: their growth, their merge by ranges of hashes, and the order of their strings.

A table's places are the highest bits of hashes. So the strings of a range of hashes are in the same part of every
table, whatever its size, and each thread merges ranges of all tables: no step needs all strings at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.host.records.sort_keys import sort_with
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.tokenize.string_order_cpu import sort_few
from polars_tadoc.kernels.tokenize.tokenize_cpu import (
    Table,
    addresses_of,
    find_or_add,
    hash_of,
    key_of,
    shift_of,
    tally,
)
from polars_tadoc.runtime.addresses import (
    atomic_add,
    bit_length,
    byte_swapped,
    load_u32,
    load_u64,
    store_u8,
    store_u32,
    store_u64,
)
from polars_tadoc.runtime.array_types import Bools, Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import allocate, view
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.parallel import even_chunks, map_parallel
from polars_tadoc.runtime.scratch import scratch, scratch_zeros

LEAST_PLACES = 10
"""Bits of the places of the smallest table, and of the largest number of ranges."""

RANGES = 2
"""Ranges of hashes per thread, at least: a thread that is delayed leaves the rest to the others."""

RANGE_STRINGS = 1 << 14
"""Strings of a range, about, at most: its table takes little memory beside the tables that are merged."""

MOST_RANGES = 1 << 8
"""Ranges, at least, of tables that are merged more than once."""

FEW = 1 << 13
"""Strings that one thread merges at once."""

THREAD_STRINGS = 1 << 13
"""Strings, at least, that a thread merges: waking it costs less."""

FEW_ORDERED = 1 << 13
"""Strings, at least, whose short runs a thread sorts."""

_LARGE = 1 << 20
"""Numbers in the strings of tables whose memory is not kept for later calls."""

_1, _16, _32, _63, _LOW_HALF = (np.uint64(number) for number in (1, 16, 32, 63, 0xFFFFFFFF))
_NONE = ~np.uint64(0)


@njit
def _enter(table: Table, low: int, length: int, distinct: int) -> None:
    """Add a string of up to eight bytes, which is new."""
    slots, strings = addresses_of(table)
    place, shift = hash_of(low, 0, length) >> shift_of(table), shift_of(table)
    find_or_add(place, slots, shift, strings, distinct, low, nb.uint64(0), length, nb.uint64(0))


@njit
def _grow(table: Table, larger: Table, bits: int) -> None:
    """Copy strings to the empty slots of a larger table, slot by slot: places there are almost in the same order."""
    mask, shift = len(larger.slots) // 4 - 1, shift_of(larger)
    for at in range(0, len(table.slots), 4):
        described = table.slots[at + 2]
        if described != 0:
            low, high = table.slots[at], table.slots[at + 1]
            p = nb.int64(hash_of(low, high, described >> _32) << nb.uint64(bits) >> shift)
            while larger.slots[4 * p + 2] != 0:
                p = (p + 1) & mask
            larger.slots[4 * p], larger.slots[4 * p + 1] = low, high
            larger.slots[4 * p + 2], larger.slots[4 * p + 3] = described, table.slots[at + 3]


@njit
def _intern_range(given: UInt64, offsets: Int64, number: int, bits: int, table: Table, distinct: int) -> int:
    """Intern the strings of a range in its table, which has room; arguments as for :meth:`Merge.intern`."""
    slots, strings = addresses_of(table)
    shift = shift_of(table)
    for k in range(len(given)):
        for at in range(offsets[k, number], offsets[k, number + 1]):
            i = nb.uint64(load_u32(given[k, 1] + nb.uint64(4 * at)))
            address = load_u64(given[k, 0] + _16 * i)
            length = nb.int64(load_u64(given[k, 0] + _16 * i + nb.uint64(8)))
            low, high = key_of(address, length)
            place = hash_of(low, high, length) << nb.uint64(bits) >> shift
            own, slot = find_or_add(place, slots, shift, strings, distinct, low, high, length, address)
            distinct = max(distinct, own + 1)
            tally(slot, 1)
            store_u32(given[k, 2] + nb.uint64(4) * i, nb.uint32(own))
    return distinct


@njit
def _renumber_range(given: UInt64, offsets: Int64, number: int, numbers: UInt32) -> None:
    for k in range(len(given)):
        for at in range(offsets[k, number], offsets[k, number + 1]):
            to = given[k, 2] + nb.uint64(4) * nb.uint64(load_u32(given[k, 1] + nb.uint64(4 * at)))
            store_u32(to, numbers[load_u32(to)])


@njit
def _next_of_range(slots: int, place: int, first: int, stop: int, last: int, number: int, bits: int) -> Any:
    """Return the next place from ``place`` on with a string whose hash is in a range; ``_NONE`` if there is none.

    ``first`` and ``stop`` are the range's places. Its last strings may have been moved on to the next free ones.
    """
    p = nb.uint64(place)
    while p - nb.uint64(first) <= nb.uint64(last):
        slot = nb.uint64(slots) + _32 * (p & nb.uint64(last))
        described = load_u64(slot + _16)
        if described != 0:
            h = hash_of(load_u64(slot), load_u64(slot + nb.uint64(8)), described >> _32)
            if h >> (_63 - nb.uint64(bits)) >> _1 == nb.uint64(number):
                return p
        elif p >= nb.uint64(stop):
            return _NONE
        p += _1
    return _NONE


@njit
def _places_of(shift: int, number: int, bits: int) -> Any:
    """Return the first and the last place of a range in a table, and the table's last place."""
    size = _1 << (nb.uint64(64) - nb.uint64(shift))
    each = size >> nb.uint64(bits)
    return each * nb.uint64(number), each * nb.uint64(number + 1), size - _1


@njit
def _count_range(tables: UInt64, number: int, bits: int, sizes: Int64) -> None:
    """Count the strings of a range in each table."""
    for k in range(len(tables)):
        first, stop, last = _places_of(tables[k, 2], number, bits)
        place, many = first, 0
        while True:
            place = _next_of_range(tables[k, 0], place, first, stop, last, number, bits)
            if place == _NONE:
                break
            place += _1
            many += 1
        sizes[k] = many


@njit
def _merge_range(
    tables: UInt64, number: int, bits: int, sizes: Int64, began: int, table: Table, distinct: int, base: int
) -> tuple[int, int]:
    """Intern the strings of a range that occur, with their tallies, in a table.

    Parameters
    ----------
    tables
        uint64[tables, 4]: addresses of slots and strings, shift, and the address for ids in the merged table by own id,
        or 0.
    number, bits
        The range, and the bits of a hash that tell it.
    sizes
        Strings of the range in each table.
    began
        The first table.
    table, distinct
        Their table, and its number of strings.
    base
        Added to ids.

    Returns
    -------
    (int, int)
        The number of strings, and the table that there is no room for; the number of tables if all are merged.

    """
    slots, strings = addresses_of(table)
    shift = shift_of(table)
    for k in range(began, len(tables)):
        if 6 * (distinct + sizes[k]) >= len(table.slots):
            return distinct, k
        first, stop, last = _places_of(tables[k, 2], number, bits)
        place = first
        while True:
            place = _next_of_range(tables[k, 0], place, first, stop, last, number, bits)
            if place == _NONE:
                break
            slot = tables[k, 0] + _32 * (place & last)
            low, high, described = load_u64(slot), load_u64(slot + nb.uint64(8)), load_u64(slot + _16)
            count, length, local = load_u64(slot + nb.uint64(24)), described >> _32, (described & _LOW_HALF) - _1
            place += _1
            if count != 0:
                to = hash_of(low, high, length) << nb.uint64(bits) >> shift
                address = load_u64(tables[k, 1] + _16 * local) if length > _16 else nb.uint64(0)  # others: the slot
                own, into = find_or_add(to, slots, shift, strings, distinct, low, high, nb.int64(length), address)
                distinct = max(distinct, own + 1)
                tally(into, count)
                if tables[k, 3] != 0:
                    store_u32(tables[k, 3] + nb.uint64(4) * local, nb.uint32(base + own))
    return distinct, len(tables)


@njit
def _read(
    table: Table, base: int, firsts: UInt64, seconds: UInt64, addresses: UInt64, lengths: UInt32, tallies: UInt64
) -> None:
    """Write a table's strings by id, from ``base`` on."""
    for at in range(0, len(table.slots), 4):
        described = table.slots[at + 2]
        if described != 0:
            low, high, length = table.slots[at], table.slots[at + 1], described >> _32
            own = (described & _LOW_HALF) - _1
            address = table.strings[own + own] if length > _16 else nb.uint64(0)
            if length > _16:
                low, high = load_u64(address), load_u64(address + nb.uint64(8))
            to = nb.uint64(base) + own
            firsts[to], seconds[to], addresses[to] = byte_swapped(low), byte_swapped(high), address
            lengths[to], tallies[to] = length, table.slots[at + 3]


@polled
@njit
def _count_ranges(tables: UInt64, bits: int, sizes: Int64, taken: Int64) -> None:
    """Count the strings of one range after the other in each table; ``taken[0]`` is the next range."""
    began, k = interrupts(), atomic_add(taken, 0, 1)
    while k < len(sizes) and interrupts() == began:
        _count_range(tables, k, bits, sizes[k])
        k = atomic_add(taken, 0, 1)


@polled
@njit
def _merge_ranges(
    tables: UInt64,
    bits: int,
    sizes: Int64,
    starts: Int64,
    taken: Int64,
    table: Table,
    firsts: UInt64,
    seconds: UInt64,
    addresses: UInt64,
    lengths: UInt32,
    tallies: UInt64,
    found: Int64,
) -> None:
    """Merge one range after the other, in a table that is large enough for each; arguments as for ``_merge_range``.

    Writes the strings of a range from ``starts[range]`` on, and their number to ``found``. ``taken[0]`` is the next
    range.
    """
    began, k = interrupts(), atomic_add(taken, 0, 1)
    while k < len(sizes) and interrupts() == began:
        most = sizes[k].sum()
        places = max(1 << LEAST_PLACES, 1 << bit_length(nb.uint64(3 * most // 2)))
        part = Table(table.slots[: 4 * places], table.strings)
        part.slots[:] = 0
        found[k], _ = _merge_range(tables, k, bits, sizes[k], 0, part, 0, starts[k])
        _read(part, starts[k], firsts, seconds, addresses, lengths, tallies)
        k = atomic_add(taken, 0, 1)


@njit
def _bytes_of(lengths: UInt32, order: UInt32, first: int, stop: int) -> int:
    total = 0
    for i in range(first, stop):
        total += lengths[order[i]]
    return total


@njit
def _copy(
    firsts: UInt64,
    seconds: UInt64,
    addresses: UInt64,
    lengths: UInt32,
    order: UInt32,
    first: int,
    stop: int,
    start: int,
    end: int,
    offsets: Int64,
    data: UInt8,
) -> None:
    """Copy strings to ``data[start:end]``, and write the offset of each one's end."""
    base, at = nb.uint64(data.ctypes.data), start
    for i in range(first, stop):
        own = order[i]
        length, to = nb.int64(lengths[own]), base + nb.uint64(at)
        if length <= 16:
            low, high = byte_swapped(firsts[own]), byte_swapped(seconds[own])
            if at + 16 <= end:  # the next strings overwrite the excess bytes
                store_u64(to, low)
                store_u64(to + nb.uint64(8), high)
            else:
                for j in range(length):
                    byte = low >> nb.uint64(8 * j) if j < 8 else high >> nb.uint64(8 * (j - 8))
                    store_u8(to + nb.uint64(j), nb.uint8(byte))
        else:
            address = addresses[own]
            for j in range(0, length - 8, 8):
                store_u64(to + nb.uint64(j), load_u64(address + nb.uint64(j)))
            rest = nb.uint64(length - 8)
            store_u64(to + rest, load_u64(address + rest))
        at += length
        offsets[i + 1] = at


@dataclass
class Interned:
    """Interned strings in the form for kernels."""

    arrays: Table
    distinct: int
    bits: int = 0
    """Highest bits of hashes that all its strings share: the following ones are places."""

    @classmethod
    def of(cls, strings: list[bytes], bits: int = 0) -> Interned:
        """Make a table of some short strings."""
        slots, room = _sizes(len(strings))
        table = cls(Table(np.zeros(slots, np.uint64), np.empty(room, np.uint64)), len(strings), bits)
        for own, string in enumerate(strings):
            _enter(table.arrays, np.uint64(int.from_bytes(string, "little")), len(string), own)
        return table

    def reserve(self, strings: int) -> None:
        """Make room for ``strings`` more strings."""
        if 6 * (self.distinct + strings) < len(self.arrays.slots):  # four numbers per slot
            return
        places, room = _sizes(self.distinct + strings)
        longer = scratch(room, np.uint64) if room < _LARGE else np.empty(room, np.uint64)
        longer[: 2 * self.distinct] = self.arrays.strings[: 2 * self.distinct]
        self.arrays = Table(self.arrays.slots, longer)  # frees the old strings before there are new slots
        larger = Table(scratch_zeros(places, np.uint64) if room < _LARGE else np.zeros(places, np.uint64), longer)
        _grow(self.arrays, larger, self.bits)
        self.arrays = larger

    def clear(self) -> None:
        """Drop all strings, and keep the room for as many."""
        self.arrays.slots.fill(0)
        self.distinct = 0


def _sizes(strings: int) -> tuple[int, int]:
    """Return the lengths of the slots and of the strings of a table for a number of strings."""
    places = 1 << max(LEAST_PLACES, (3 * strings // 2).bit_length())
    return 4 * places, 2 * (2 * places // 3 + 1)


class Strings(NamedTuple):
    """Distinct strings, by id."""

    firsts: UInt64
    """The first eight bytes as a number in the same order, padded with zeros."""
    seconds: UInt64
    """The next eight bytes."""
    addresses: UInt64
    """Of strings of more than 16 bytes."""
    lengths: UInt32
    tallies: UInt64
    ranges: list[tuple[int, int]]
    """Ranges of ids; there are no others."""

    @classmethod
    def room(cls, size: int) -> Strings:
        """Return uninitialised strings."""
        firsts, seconds, addresses, tallies = (scratch(size, np.uint64) for _ in range(4))
        return cls(firsts, seconds, addresses, scratch(size, np.uint32), tallies, [])

    def order(self, by_count: bool) -> UInt32:
        """Return the ids of occurring strings in code point order, ``by_count`` by descending tally first."""
        occurring = [first + np.flatnonzero(self.tallies[first:stop]) for first, stop in self.ranges]
        found = np.concatenate(occurring).view(np.uint64)
        del occurring
        keys, found = sort_with(gathered(self.firsts, found), found)
        order, equal = found.astype(np.uint32), keys[1:] == keys[:-1]
        del keys, found  # the next sort takes their memory
        left = np.zeros(len(equal), np.bool_)
        fields = self.seconds, self.addresses, self.lengths
        map_parallel(lambda own: sort_few(order, equal, *own, *fields, left), even_chunks(len(order), FEW_ORDERED))
        if left.any():
            self._sort_equal(order, left)
        if by_count:
            counts = gathered(self.tallies, order)
            np.subtract(counts.max(initial=0), counts, out=counts)
            order = sort_with(counts, order.astype(np.uint64))[1].astype(np.uint32)
        return order

    def _sort_equal(self, order: UInt32, equal: Bools) -> None:
        """Sort long runs of strings with equal first bytes; ``equal[i]``: strings i and i + 1 are in one run."""
        tied, run = _runs(equal)
        ids = order[tied]
        seconds, places = sort_with(self.seconds[ids], np.arange(len(ids), dtype=np.uint64))
        places = sort_with(run[places.view(np.int64)], places)[1].view(np.int64)
        order[tied] = ids = ids[places]
        seconds = self.seconds[ids]
        longer, run = _runs((seconds[1:] == seconds[:-1]) & (run[1:] == run[:-1]))
        if len(longer):
            # not with Polars: all its threads may be running expressions that wait for this thread
            by_string = view(pc.array_sort_indices(self.copied(ids[longer])))
            by_string = by_string[np.argsort(run[by_string], kind="stable")]
            order[tied[longer]] = ids[longer[by_string]]

    def copied(self, order: UInt32) -> pa.LargeStringArray:
        """Copy the strings of the ids in ``order`` out of the text."""
        chunks = even_chunks(len(order))
        ends = running_sum(np.array(map_parallel(lambda own: _bytes_of(self.lengths, order, *own), chunks), np.int64))
        offset_buffer, offsets = allocate(len(order) + 1, np.int64)
        data_buffer, data = allocate(int(ends[-1]), np.uint8)
        offsets[0] = 0

        def copy(k: int) -> None:
            fields = (self.firsts, self.seconds, self.addresses, self.lengths)
            _copy(*fields, order, *chunks[k], int(ends[k]), int(ends[k + 1]), offsets, data)

        map_parallel(copy, range(len(chunks)))
        return pa.LargeStringArray.from_buffers(len(order), offset_buffer, data_buffer)


def _runs(equal: Bools) -> tuple[Int64, UInt64]:
    """Return the places of items that equal an adjacent one, and the number of the run that each belongs to."""
    tied = np.flatnonzero(np.append(equal, False) | np.append(False, equal))
    starts = np.append(True, ~equal)[tied]
    return tied, np.cumsum(starts).astype(np.uint64)


def gathered(values: npt.NDArray[Any], order: npt.NDArray[np.integer]) -> npt.NDArray[Any]:
    """Return ``values[order]``, in parallel."""
    made = scratch(len(order), values.dtype)
    order = order.view(np.int64) if order.dtype == np.uint64 else order

    def gather(chunk: tuple[int, int]) -> None:
        np.take(values, order[slice(*chunk)], out=made[slice(*chunk)], mode="clip")

    map_parallel(gather, even_chunks(len(order)))
    return made


def number(tables: list[Interned], *, by_count: bool = True) -> tuple[pa.LargeStringArray, list[UInt32]]:
    """Merge the threads' strings; number them in code point order, with ``by_count`` by descending count first.

    Drops strings with tally 0 (gaps that only occurred as defaults). Returns the strings and, for each table, the map
    from its local ids to final ids.
    """
    merged, ids = merge_tables(tables)
    order = merged.order(by_count)
    final = np.zeros(len(merged.tallies), np.uint32)
    final[order] = np.arange(len(order), dtype=np.uint32)
    take = map_parallel if sum(map(len, ids)) >= FEW * len(ids) else map  # waking threads takes longer than a few ids
    return merged.copied(order), list(take(lambda own: np.take(final, own), ids))


def merge_tables(tables: list[Interned], *, keeps_ids: bool = True) -> tuple[Strings, list[UInt32]]:
    """Merge tables by ranges of hashes, in parallel.

    Returns
    -------
    (Strings, list of uint32 arrays)
        All strings that occur; and, if they are kept, for each table their ids by own id.

    """
    total = sum(table.distinct for table in tables)
    if len(tables) == 1:
        made = Strings.room(total)
        _read(tables[0].arrays, 0, *made[:5])
        return made._replace(ranges=[(0, total)]), [np.arange(total, dtype=np.uint32)]
    bits = _bits_of(0 if total < FEW else max(RANGES * thread_count(), total // RANGE_STRINGS))
    ids = [np.zeros(table.distinct, np.uint32) for table in tables] if keeps_ids else []
    given, sizes = _ranges_of(tables, ids, bits)
    many = sizes.sum(axis=1)
    starts, found, taken = running_sum(many), np.zeros(len(many), np.int64), np.zeros(1, np.int64)
    made = Strings.room(int(starts[-1]))

    def merge(_: int) -> None:
        slots, room = _sizes(int(many.max()))
        table = Table(scratch(slots, np.uint64), scratch(room, np.uint64))
        _merge_ranges(given, bits, sizes, starts, taken, table, *made[:5], found)

    map_parallel(merge, range(_threads_of(tables, len(many))))
    return made._replace(ranges=list(zip(starts[:-1].tolist(), (starts[:-1] + found).tolist(), strict=True))), ids


def _bits_of(ranges: int) -> int:
    """Return the bits of a hash that tell its range."""
    return min(LEAST_PLACES, max(ranges - 1, 0).bit_length())


def _ranges_of(tables: list[Interned], ids: list[UInt32], bits: int) -> tuple[UInt64, Int64]:
    """Return the tables, and where to write ids if at all, in the form for kernels; and the sizes of their ranges.

    The sizes are int64[ranges, tables].
    """
    addresses = [own.ctypes.data for own in ids] or [0] * len(tables)
    given = np.array(
        [
            (one.arrays.slots.ctypes.data, one.arrays.strings.ctypes.data, shift_of(one.arrays), address)
            for one, address in zip(tables, addresses, strict=True)
        ],
        np.uint64,
    )
    sizes, taken = np.zeros((1 << bits, len(tables)), np.int64), np.zeros(1, np.int64)
    map_parallel(lambda _: _count_ranges(given, bits, sizes, taken), range(_threads_of(tables, len(sizes))))
    return given, sizes


def _threads_of(tables: list[Interned], ranges: int) -> int:
    strings = sum(table.distinct for table in tables)
    return max(1, min(thread_count(), ranges, strings // THREAD_STRINGS))


class Merge:
    """A table for each range of hashes.

    Parameters
    ----------
    ranges
        How many, at least, up to the most that there can be.

    """

    def __init__(self, ranges: int) -> None:
        self.bits = _bits_of(ranges)
        """Bits of a hash that tell its range."""
        self._ranges = [Interned.of([], self.bits) for _ in range(1 << self.bits)]
        self.numbers = [np.zeros(0, np.uint32) for _ in self._ranges]
        """By range, the numbers of its strings that were given by :meth:`renumber`."""

    def add(self, tables: list[Interned]) -> None:
        """Take the strings of tables, which are not needed any more."""
        given, sizes = _ranges_of(tables, [], self.bits)
        map_parallel(lambda k: self.merge(k, given, sizes[k], 0), range(len(sizes)))

    def strings(self) -> Strings:
        """Return all strings; can be called once."""
        starts = running_sum(np.array([own.distinct for own in self._ranges]))
        made = Strings.room(int(starts[-1]))
        ranges = map_parallel(lambda k: self.read(k, int(starts[k]), made), range(len(starts) - 1))
        return made._replace(ranges=ranges)

    def merge(self, k: int, tables: UInt64, sizes: Int64, base: int) -> None:
        """Take the strings of a range; arguments as from ``_ranges_of``. ``base`` is added to ids."""
        own, at = self._ranges[k], 0
        own.reserve(int(min(sizes.sum(), 2 * sizes.max())))
        while at < len(tables):
            own.reserve(int(sizes[at]))
            own.distinct, at = _merge_range(tables, k, self.bits, sizes, at, own.arrays, own.distinct, base)

    def read(self, k: int, first: int, made: Strings) -> tuple[int, int]:
        """Write the strings of a range from ``first`` on, and free them; return where they are."""
        own, self._ranges[k] = self._ranges[k], Interned.of([])
        _read(own.arrays, first, *made[:5])
        return first, first + own.distinct

    def intern(self, k: int, given: UInt64, offsets: Int64) -> int:
        """Take strings of a range with a tally of 1, and write their ids in it; return how many are new.

        Parameters
        ----------
        k
            The range.
        given
            uint64[parts, 3]: addresses of strings, of their numbers by range, and for ids.
        offsets
            int64[parts, ranges + 1]: those of the ranges of each part.

        """
        own = self._ranges[k]
        before = own.distinct
        own.reserve(int((offsets[:, k + 1] - offsets[:, k]).sum()))
        own.distinct = _intern_range(given, offsets, k, self.bits, own.arrays, before)
        return own.distinct - before

    def renumber(self, k: int, given: UInt64, offsets: Int64, start: int) -> None:
        """Number new strings of a range from ``start`` on, and replace ids by numbers; as for :meth:`intern`."""
        known = self.numbers[k]
        new = np.arange(start, start + self._ranges[k].distinct - len(known), dtype=np.uint32)
        self.numbers[k] = np.concatenate([known, new])
        _renumber_range(given, offsets, k, self.numbers[k])
