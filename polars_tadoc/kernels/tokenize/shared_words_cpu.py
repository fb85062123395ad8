"""One table of words in which all threads intern at once, and the cache of it that each thread has.

A word has one place in a thread's cache, where it is tallied: no thread writes where others read frequent words. The
place is given to the next word that needs it. In most texts, 2 to 5 of 100 words are not in the cache. They are looked
up in the shared table, and inserted there without a lock: a new word gets an id and a record first, then a slot by a
single exchange. If another thread has taken the slot meanwhile, its word is compared; the id of a word that another
thread inserted first is never used.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np
import pyarrow as pa

from polars_tadoc.kernels.tokenize.tables_cpu import Strings
from polars_tadoc.kernels.tokenize.tokenize_cpu import BATCH_WORDS, WORD_FIELDS, hash_of, tally
from polars_tadoc.runtime.addresses import (
    atomic_add_at,
    byte_swapped,
    equal_bytes,
    exchange_if_at,
    load_u64,
    ordered_load_at,
    prefetch_address,
    store_u32,
    store_u64,
)
from polars_tadoc.runtime.array_types import UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.parallel import even_chunks, map_parallel
from polars_tadoc.runtime.scratch import pages

RECORD = 5
"""64-bit numbers per string: ``low``, ``high``, length, address, tally."""

MISS = 3
"""64-bit numbers per word that is not in the cache: addresses of the word in the batch and of its id; hash."""

MISS_BYTES = 8 * MISS * BATCH_WORDS
"""Work space for the words of a batch that are not in the cache."""

BYTES_PER_PLACE = 1 << 8
"""Bytes of text for each place of the first table."""

FEWEST_BITS, MOST_BITS, BYTES_PER_ENTRY = 6, 15, 1 << 7
"""Bits of the places of a cache, at least and at most, and bytes of a thread's text for each."""

_LARGE = 1 << 12
"""Strings that a thread reads at least."""

_LOW_HALF, _HIGH_HALF, _NONE = np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFFFF << 32), ~np.uint64(0)


class Shared(NamedTuple):
    """Interned strings of all threads: open addressing, at most two thirds full.

    Strings are identified as in :class:`tokenize_cpu.Table`.
    """

    slots: UInt64
    """The upper half of the string's hash, and its id + 1; 0 if the slot is free."""
    strings: UInt64
    """``RECORD`` numbers per id. A tally lacks the counts in the caches."""
    counts: UInt64
    """The number of ids, alone in its cache line."""


@njit
def _find_or_insert(
    hashed: int,
    slots: int,
    shift: int,
    strings: int,
    counts: int,
    low: int,
    high: int,
    length: int,
    address: int,
) -> Any:
    """Return the id of a string; takes the addresses of the table's arrays, which have room for it."""
    last, tag = ~nb.uint64(0) >> nb.uint64(shift), nb.uint64(hashed) & _HIGH_HALF
    place, own = nb.uint64(hashed) >> nb.uint64(shift), _NONE
    while True:
        slot = slots + nb.uint64(8) * place
        found = ordered_load_at(slot)
        if found == 0:
            if own == _NONE:
                own = atomic_add_at(counts, nb.uint64(1))
                record = strings + nb.uint64(8 * RECORD) * own
                store_u64(record, low)
                store_u64(record + nb.uint64(8), high)
                store_u64(record + nb.uint64(16), nb.uint64(length))
                store_u64(record + nb.uint64(24), nb.uint64(address))
                store_u64(record + nb.uint64(32), nb.uint64(0))
            found = exchange_if_at(slot, nb.uint64(0), tag | (own + nb.uint64(1)))
            if found == 0:
                return own
        if found & _HIGH_HALF == tag:
            known = (found & _LOW_HALF) - nb.uint64(1)
            record = strings + nb.uint64(8 * RECORD) * known
            if (
                load_u64(record) == low
                and load_u64(record + nb.uint64(8)) == high
                and load_u64(record + nb.uint64(16)) == nb.uint64(length)
                and (length <= 16 or equal_bytes(load_u64(record + nb.uint64(24)), address, length))
            ):
                return known
        place = (place + nb.uint64(1)) & last


@njit
def _through_cache(entry: int, word: int, hashed: int, slots: int, shift: int, strings: int, counts: int) -> Any:
    """Return the id of a word of a batch, which gets the entry of the cache; its former word's tally is added."""
    low, high, length = load_u64(word), load_u64(word + nb.uint64(8)), load_u64(word + nb.uint64(16))
    address, described = load_u64(word + nb.uint64(32)), load_u64(entry + nb.uint64(16))
    if described != 0:
        former = strings + nb.uint64(8 * RECORD) * ((described & _LOW_HALF) - nb.uint64(1))
        if (
            load_u64(entry) == low
            and load_u64(entry + nb.uint64(8)) == high
            and described >> nb.uint64(32) == length
            and (length <= 16 or equal_bytes(load_u64(former + nb.uint64(24)), address, nb.int64(length)))
        ):
            tally(entry, 1)
            return (described & _LOW_HALF) - nb.uint64(1)
        atomic_add_at(former + nb.uint64(32), load_u64(entry + nb.uint64(24)))
    own = _find_or_insert(hashed, slots, shift, strings, counts, low, high, nb.int64(length), address)
    store_u64(entry, low)
    store_u64(entry + nb.uint64(8), high)
    store_u64(entry + nb.uint64(16), (length << nb.uint64(32)) | (own + nb.uint64(1)))
    store_u64(entry + nb.uint64(24), nb.uint64(1))
    return own


@njit
def intern_through_cache(
    batch: int, many: int, slots: int, shift: int, strings: int, counts: int, ids: int, missed: int
) -> None:
    """Intern the words of a batch, whose entries of the cache were prefetched.

    Parameters
    ----------
    batch
        Address of ``WORD_FIELDS`` numbers per word: ``low``, ``high``, length, entry of the cache, address.
    many
        Number of words.
    slots, shift, strings, counts
        Addresses of the shared table, which has room for all of them.
    ids
        Address for ids, uint32.
    missed
        Address of work space, ``MISS_BYTES``.

    """
    word, to, end = nb.uint64(batch), nb.uint64(ids), nb.uint64(missed)
    for _ in range(many):
        low, high, length = load_u64(word), load_u64(word + nb.uint64(8)), load_u64(word + nb.uint64(16))
        entry = load_u64(word + nb.uint64(24))
        described = load_u64(entry + nb.uint64(16))
        differs = (load_u64(entry) ^ low) | (load_u64(entry + nb.uint64(8)) ^ high)
        differs |= (described >> nb.uint64(32)) ^ length
        if differs == 0 and described != 0 and length <= nb.uint64(16):
            tally(entry, 1)
            store_u32(to, nb.uint32((described & _LOW_HALF) - nb.uint64(1)))
        else:
            hashed = hash_of(low, high, length)
            prefetch_address(slots + nb.uint64(8) * (hashed >> nb.uint64(shift)))
            store_u64(end, word)
            store_u64(end + nb.uint64(8), to)
            store_u64(end + nb.uint64(16), hashed)
            end += nb.uint64(8 * MISS)
        to += nb.uint64(4)
        word += nb.uint64(8 * WORD_FIELDS)
    miss = nb.uint64(missed)
    while miss < end:
        found = load_u64(slots + nb.uint64(8) * (load_u64(miss + nb.uint64(16)) >> nb.uint64(shift)))
        prefetch_address(strings + nb.uint64(8 * RECORD) * ((found & _LOW_HALF) - nb.uint64(1)))
        miss += nb.uint64(8 * MISS)
    miss = nb.uint64(missed)
    while miss < end:
        word, hashed = load_u64(miss), load_u64(miss + nb.uint64(16))
        own = _through_cache(load_u64(word + nb.uint64(24)), word, hashed, slots, shift, strings, counts)
        store_u32(load_u64(miss + nb.uint64(8)), nb.uint32(own))
        miss += nb.uint64(8 * MISS)


@njit
def _enter_empty(shared: Shared, shift: int) -> None:
    """Insert the empty string."""
    slots, strings = nb.uint64(shared.slots.ctypes.data), nb.uint64(shared.strings.ctypes.data)
    zero = nb.uint64(0)
    _find_or_insert(
        hash_of(zero, zero, 0), slots, shift, strings, nb.uint64(shared.counts.ctypes.data), zero, zero, 0, zero
    )


@njit
def _move_slots(slots: UInt64, larger: UInt64, shift: int) -> None:
    """Fill the empty slots of a larger table: places there are almost in the same order."""
    last = nb.uint64(len(larger) - 1)
    for slot in slots:
        if slot != 0:
            place = (slot & _HIGH_HALF) >> nb.uint64(shift)
            while larger[place] != 0:
                place = (place + nb.uint64(1)) & last
            larger[place] = slot


@njit
def _add_tallies(cache: UInt64, strings: UInt64) -> None:
    """Add the tallies of a cache to those of its words."""
    records = nb.uint64(strings.ctypes.data)
    for entry in range(0, len(cache), 4):
        if cache[entry + 2] != 0:
            record = records + nb.uint64(8 * RECORD) * ((cache[entry + 2] & _LOW_HALF) - nb.uint64(1))
            atomic_add_at(record + nb.uint64(32), cache[entry + 3])


@njit
def _read(
    strings: UInt64,
    first: int,
    stop: int,
    firsts: UInt64,
    seconds: UInt64,
    addresses: UInt64,
    lengths: UInt32,
    tallies: UInt64,
) -> None:
    """Write strings by id."""
    for own in range(first, stop):
        record = RECORD * own
        low, high, length, address = strings[record], strings[record + 1], strings[record + 2], strings[record + 3]
        if length > 16:
            low, high = load_u64(address), load_u64(address + nb.uint64(8))
        firsts[own], seconds[own] = byte_swapped(low), byte_swapped(high)
        addresses[own], lengths[own], tallies[own] = address, length, strings[record + 4]


class SharedWords:
    """The table of all threads, with the empty string's id 0, and the caches.

    Parameters
    ----------
    size
        Bytes of the text.
    threads
        How many intern in it.

    """

    def __init__(self, size: int, threads: int) -> None:
        bits = (size // threads // BYTES_PER_ENTRY).bit_length()
        self._bits = min(max(bits, FEWEST_BITS), MOST_BITS)
        self.caches = pages(threads * 32 << self._bits).view(np.uint64).reshape(threads, -1)
        """By thread; four numbers per entry, as for a slot of :class:`tokenize_cpu.Table`."""
        self._reserved = threads * BATCH_WORDS
        """Strings that threads may insert before they see that the table is full."""
        places = 1 << (max(size // BYTES_PER_PLACE, 3 * self._reserved) - 1).bit_length()
        self.shared = Shared(*_arrays(places), np.zeros(16, np.uint64))
        _enter_empty(self.shared, self.shift)

    @property
    def shift(self) -> int:
        """By how much hashes are shifted to places of the table."""
        return 65 - len(self.shared.slots).bit_length()

    @property
    def cache_shift(self) -> int:
        """By how much hashes are shifted to places of a cache."""
        return 64 - self._bits

    @property
    def limit(self) -> int:
        """Number of strings from which on threads stop, so that the table can grow."""
        return 2 * len(self.shared.slots) // 3 - self._reserved

    @property
    def is_full(self) -> bool:
        """Whether threads must stop."""
        return int(self.shared.counts[0]) >= self.limit

    def grow(self) -> None:
        """Double the places; no thread may intern meanwhile."""
        slots, strings, counts = self.shared
        places, used = 2 * len(slots), RECORD * int(counts[0])
        self.shared = Shared(*_arrays(places), counts)
        self.shared.strings[:used] = strings[:used]
        _move_slots(slots, self.shared.slots, self.shift)

    def number(self) -> tuple[pa.LargeStringArray, UInt32]:
        """Number the words by descending count, then code point order; frees the table.

        Returns the words and the map from ids; that of the empty string is undefined.
        """
        made = self._strings()
        size = len(made.tallies)
        order = made.order(by_count=True)
        ids = np.zeros(size, np.uint32)
        ids[order] = np.arange(len(order), dtype=np.uint32)
        return made.copied(order), ids

    def _strings(self) -> Strings:
        """Return all strings with their tallies, and free the table."""
        strings, size = self.shared.strings, int(self.shared.counts[0])
        map_parallel(lambda cache: _add_tallies(cache, strings), list(self.caches))
        strings[RECORD - 1] = 0  # the separator is not a word
        none = np.zeros(0, np.uint64)
        self.caches, self.shared = none.reshape(0, 0), self.shared._replace(slots=none, strings=none)
        made = Strings.room(size)
        map_parallel(lambda own: _read(strings, *own, *made[:5]), even_chunks(size, _LARGE))
        return made._replace(ranges=[(0, size)])


def _arrays(places: int) -> tuple[UInt64, UInt64]:
    """Return free slots, and room for the strings that they can have: untouched memory is never allocated."""
    return pages(8 * places).view(np.uint64), pages(8 * RECORD * (2 * places // 3 + 1)).view(np.uint64)
