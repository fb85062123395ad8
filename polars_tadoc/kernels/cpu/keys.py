"""Counts, numbers and orders 64-bit keys, and packs words into them.

Keys are spread over buckets by hash, so that each bucket's table fits a core's cache (the thread-safe tables and the
memory pool of G-TADOC, Zhang et al., ICDE 2021, section V, without their locks: a bucket has one owner).

Indices are unsigned here: one that might be negative costs a comparison and a choice each time it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.cpu.memory import prefetch
from polars_tadoc.kernels.cpu.parallel import even_chunks, map_parallel, weighted_chunks

Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Shares = list[tuple[int, int]]
"""Stretches of an array of keys, one for each thread."""

BUCKET = 1 << 14
"""Keys for which one more bucket is made: their table is a quarter of a core's cache."""

MOST_BUCKETS = 1 << 10
"""More would be more streams than the processor follows while keys are spread."""

SLOTS = 1 << 15
"""Of a bucket's table, at first: half a core's cache."""

LATER = 4
"""Times as many keys as a tally's first ones, for which its tables have room from the beginning."""

CLASSES = 64
"""Counts below this have a class each, whose keys are sorted by themselves; larger ones are class 0."""

RANGE = 1 << 17
"""Keys for which one more range is cut, to be sorted by itself."""

AHEAD = 16
"""Items of a stream whose cache lines are asked for before they are needed."""

_K1, _K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_0, _1, _2, _32 = (np.uint64(number) for number in (0, 1, 2, 32))
_AHEAD, _CLASSES = np.uint64(AHEAD), np.uint64(CLASSES)

NOTHING = np.zeros(0, np.uint64)
"""No keys, or no weights: each key counts once."""


@nb.njit(nogil=True, cache=True, inline="always")
def _hash(key: int) -> Any:
    h = nb.uint64(key) * _K1
    h = (h ^ (h >> _32)) * _K2
    return h ^ (h >> _32)


@nb.njit(nogil=True, cache=True)
def _tally_buckets(keys: UInt64, first: int, stop: int, shift: int, sizes: Int64) -> None:
    for i in range(nb.uint64(first), nb.uint64(stop)):
        sizes[_hash(keys[i]) >> nb.uint64(shift)] += 1


@nb.njit(nogil=True, cache=True)
def _scatter(
    keys: UInt64,
    weights: UInt64,
    first: int,
    stop: int,
    shift: int,
    places: Int64,
    bucketed: UInt64,
    bucketed_weights: UInt64,
) -> None:
    """Copy keys (and their weights, if there are any) to their buckets, from ``places`` on."""
    weighted = len(weights) > 0
    for i in range(nb.uint64(first), nb.uint64(stop)):
        bucket = _hash(keys[i]) >> nb.uint64(shift)
        at = nb.uint64(places[bucket])
        places[bucket] = at + _1
        bucketed[at] = keys[i]
        prefetch(bucketed, nb.int64(at + _AHEAD))  # more streams than the processor foresees by itself
        if weighted:
            bucketed_weights[at] = weights[i]
            prefetch(bucketed_weights, nb.int64(at + _AHEAD))


@nb.njit(nogil=True, cache=True)
def _fill(
    table: UInt64, base: int, slots: int, taken: int, keys: UInt64, weights: UInt64, first: int, stop: int
) -> Any:
    """Add keys (and their weights, 1 each if there are none) to the table at ``base``.

    Returns the slots taken; the complement of the next key's place where they became too many by one.
    """
    mask = nb.uint64(slots - 1)
    most = slots - slots // 4
    weighted = len(weights) > 0
    start, end = nb.uint64(base), nb.uint64(stop)
    for i in range(nb.uint64(first), end):
        soon = _hash(keys[min(i + _AHEAD, end - _1)]) & mask
        prefetch(table, nb.int64(start + (soon << _1)))
        key = keys[i]
        slot = _hash(key) & mask
        at = start + (slot << _1)
        while table[at] != key and table[at + _1] != 0:
            slot = (slot + _1) & mask
            at = start + (slot << _1)
        taken += table[at + _1] == 0  # whether a key is new is a coin toss: no branch
        table[at] = key
        table[at + _1] += weights[i] if weighted else _1
        if taken > most:
            return ~nb.int64(i + _1)
    return taken


@nb.njit(nogil=True, cache=True)
def _count(
    keys: UInt64,
    offsets: Int64,
    weighted_keys: UInt64,
    weights: UInt64,
    weighted_offsets: Int64,
    first: int,
    stop: int,
    distinct: UInt64,
    counts: UInt64,
    sizes: Int64,
) -> None:
    """Sum each bucket's keys up: the distinct ones go to where the bucket's keys would start if all were so."""
    nothing = np.zeros(0, np.uint64)
    table = np.zeros(2 * SLOTS, np.uint64)
    none = nb.int64(0)
    for bucket in range(first, stop):
        start, end = offsets[bucket], offsets[bucket + 1]
        heavy_start, heavy_end = weighted_offsets[bucket], weighted_offsets[bucket + 1]
        slots = 4
        while slots < 2 * (end - start + heavy_end - heavy_start) and slots < SLOTS:
            slots *= 2
        while True:  # most keys of a large bucket may be equal: it gets a larger table when it needs one
            if len(table) < 2 * slots:
                table = np.empty(2 * slots, np.uint64)
            for at in range(nb.uint64(2 * slots)):
                table[at] = 0
            taken = _fill(table, none, slots, none, weighted_keys, weights, heavy_start, heavy_end)
            if taken >= 0:
                taken = _fill(table, none, slots, taken, keys, nothing, start, end)
            if taken >= 0:
                break
            slots *= 2
        out = nb.uint64(start + heavy_start)
        last, place = out + nb.uint64(taken), _0
        while out < last:
            distinct[out], counts[out] = table[place], table[place + _1]
            out += nb.uint64(table[place + _1] != 0)
            place += _2
        sizes[bucket] = taken


@nb.njit(nogil=True, cache=True)
def _add(
    table: UInt64,
    bases: Int64,
    taken: Int64,
    keys: UInt64,
    weights: UInt64,
    done: Int64,
    stops: Int64,
    first: int,
    stop: int,
) -> None:
    """Add each bucket's keys from ``done`` on to its table, until that is too full."""
    for bucket in range(first, stop):
        slots = (bases[bucket + 1] - bases[bucket]) // 2
        if done[bucket] < stops[bucket]:
            got = _fill(table, bases[bucket], slots, taken[bucket], keys, weights, done[bucket], stops[bucket])
            taken[bucket] = got if got >= 0 else slots - slots // 4 + 1
            done[bucket] = stops[bucket] if got >= 0 else ~got


@nb.njit(nogil=True, cache=True)
def _list_table(
    table: UInt64, bases: Int64, starts: Int64, first: int, stop: int, distinct: UInt64, counts: UInt64
) -> None:
    """List the keys and counts of each bucket's table."""
    for bucket in range(first, stop):
        out = nb.uint64(starts[bucket])
        for at in range(nb.uint64(bases[bucket]), nb.uint64(bases[bucket + 1]), _2):
            if table[at + _1] != 0:
                distinct[out], counts[out] = table[at], table[at + _1]
                out += _1


@nb.njit(nogil=True, cache=True)
def _number(
    distinct: UInt64, numbers: UInt64, distinct_offsets: Int64, keys: UInt64, offsets: Int64, first: int, stop: int
) -> None:
    """Replace each bucket's keys by the numbers that their distinct ones have."""
    for bucket in range(first, stop):
        many = distinct_offsets[bucket + 1] - distinct_offsets[bucket]
        slots = 4
        while slots < 2 * many:
            slots *= 2
        table = np.zeros(2 * slots, np.uint64)  # key, number + 1
        mask, last = nb.uint64(slots - 1), nb.uint64(2 * slots - 1)
        for i in range(nb.uint64(distinct_offsets[bucket]), nb.uint64(distinct_offsets[bucket + 1])):
            at = (_hash(distinct[i]) & mask) << _1
            while table[at + _1] != 0:
                at = (at + _2) & last
            table[at], table[at + _1] = distinct[i], numbers[i] + _1
        for i in range(nb.uint64(offsets[bucket]), nb.uint64(offsets[bucket + 1])):
            at = (_hash(keys[i]) & mask) << _1
            while table[at] != keys[i] or table[at + _1] == 0:
                at = (at + _2) & last
            keys[i] = table[at + _1] - _1


@nb.njit(nogil=True, cache=True)
def _gather(keys: UInt64, first: int, stop: int, shift: int, places: Int64, numbers: UInt64, ids: UInt32) -> None:
    """Take back each key's number, in the order in which :func:`_scatter` dropped the keys."""
    for i in range(nb.uint64(first), nb.uint64(stop)):
        bucket = _hash(keys[i]) >> nb.uint64(shift)
        at = nb.uint64(places[bucket])
        places[bucket] = at + _1
        prefetch(numbers, nb.int64(at + _AHEAD))
        ids[i] = numbers[at]


@nb.njit(nogil=True, cache=True)
def _tally_classes(
    keys: UInt64,
    counts: UInt64,
    starts: Int64,
    sizes: Int64,
    first: int,
    stop: int,
    least: int,
    pivots: UInt64,
    tallies: Int64,
) -> None:
    """Count the keys of each class of counts and each range of keys."""
    ranges = nb.uint64(len(pivots)) + _1
    for bucket in range(first, stop):
        for i in range(nb.uint64(starts[bucket]), nb.uint64(starts[bucket] + sizes[bucket])):
            if counts[i] >= nb.uint64(least):
                group = counts[i] if counts[i] < _CLASSES else _0
                part = _0
                for pivot in pivots:
                    part += nb.uint64(keys[i] >= pivot)
                tallies[group * ranges + part] += 1


@nb.njit(nogil=True, cache=True)
def _scatter_classes(
    keys: UInt64,
    counts: UInt64,
    starts: Int64,
    sizes: Int64,
    first: int,
    stop: int,
    least: int,
    pivots: UInt64,
    places: Int64,
    ordered: UInt64,
    many: UInt64,
) -> None:
    """Copy keys to their classes and ranges, from ``places`` on (none where that is negative); class 0 with counts."""
    ranges = nb.uint64(len(pivots)) + _1
    for bucket in range(first, stop):
        for i in range(nb.uint64(starts[bucket]), nb.uint64(starts[bucket] + sizes[bucket])):
            if counts[i] >= nb.uint64(least):
                group = counts[i] if counts[i] < _CLASSES else _0
                part = _0
                for pivot in pivots:
                    part += nb.uint64(keys[i] >= pivot)
                place = places[group * ranges + part]
                if place >= 0:
                    places[group * ranges + part] = place + 1
                    at = nb.uint64(place)
                    ordered[at] = keys[i]
                    if group == 0:
                        many[at] = counts[i]


@nb.njit(nogil=True, cache=True)
def _unpack(
    keys: UInt64, width: int, words: UInt32, inverse: UInt32, column: int, many: int, first: int, stop: int
) -> None:
    """Write the words of packed ranks into columns of ``words``; without ``inverse`` a rank is the word."""
    mask = (_1 << nb.uint64(width)) - _1
    to, columns = nb.uint64(column), nb.uint64(many)
    for i in range(nb.uint64(first), nb.uint64(stop)):
        for k in range(columns):
            rank = (keys[i] >> (nb.uint64(width) * (columns - _1 - k))) & mask
            words[i, to + k] = inverse[rank] if len(inverse) > 0 else nb.uint32(rank)


@nb.njit(nogil=True, cache=True)
def _copy_runs(keys: UInt64, width: int, starts: Int64, runs: UInt32, words: UInt32, first: int, stop: int) -> None:
    """Write the runs of words whose numbers are packed in keys."""
    mask = (_1 << nb.uint64(width)) - _1
    many, parts = nb.uint64(runs.shape[1]), nb.uint64(len(starts))
    flat = runs.reshape(-1)
    for i in range(nb.uint64(first), nb.uint64(stop)):
        soon = keys[min(i + _AHEAD, nb.uint64(len(keys)) - _1)]
        for k in range(parts):
            shift = nb.uint64(width) * (parts - _1 - k)
            prefetch(flat, nb.int64(many * ((soon >> shift) & mask)))
            run, to = many * ((keys[i] >> shift) & mask), nb.uint64(starts[k])
            for j in range(many):
                words[i, to + j] = flat[run + j]


@dataclass(frozen=True)
class _Buckets:
    """Keys by bucket, and where each share of them was dropped."""

    shift: int
    keys: UInt64
    weights: UInt64
    offsets: Int64
    shares: Shares
    places: Int64


def _spread(keys: UInt64, weights: UInt64, buckets: int, shares: Shares | None = None) -> _Buckets:
    shift = 64 - (buckets.bit_length() - 1)
    shares = even_chunks(len(keys)) if shares is None else shares
    sizes = np.zeros((len(shares), buckets), np.int64)
    map_parallel(lambda k: _tally_buckets(keys, *shares[k], shift, sizes[k]), range(len(shares)))
    before = np.concatenate([[0], np.cumsum(sizes.T.ravel())])
    places = np.ascontiguousarray(before[:-1].reshape(buckets, len(shares)).T)
    offsets = np.ascontiguousarray(before[:: len(shares)])
    bucketed, bucketed_weights = np.empty(before[-1], np.uint64), np.empty(len(weights), np.uint64)
    filled = places.copy()
    map_parallel(
        lambda k: _scatter(keys, weights, *shares[k], shift, filled[k], bucketed, bucketed_weights),
        range(len(shares)),
    )
    return _Buckets(shift, bucketed, bucketed_weights, offsets, shares, places)


def _bucket_count(keys: int) -> int:
    return min(MOST_BUCKETS, max(2, 1 << (keys // BUCKET).bit_length()))


@dataclass(frozen=True)
class Counted:
    """Distinct keys and their counts, in stretches of two arrays, in no order."""

    keys: UInt64
    counts: UInt64
    starts: Int64
    sizes: Int64

    @property
    def size(self) -> int:
        """Number of distinct keys."""
        return int(self.sizes.sum())

    @classmethod
    def of(cls, keys: UInt64, counts: UInt64) -> Counted:
        """Take arrays of distinct keys and their counts as they are."""
        chunks = np.array(even_chunks(len(keys)), np.int64).reshape(-1, 2)
        return cls(keys, counts, chunks[:, 0].copy(), chunks[:, 1] - chunks[:, 0])

    def chunks(self) -> list[tuple[int, int]]:
        """Ranges of stretches of about equal size, for threads."""
        return weighted_chunks(np.concatenate([[0], np.cumsum(self.sizes)]))


def count(
    keys: UInt64, weighted_keys: UInt64 = NOTHING, weights: UInt64 = NOTHING, shares: Shares | None = None
) -> Counted:
    """Count keys: 1 for each of ``keys``, its weight for each of ``weighted_keys``.

    Parameters
    ----------
    keys, weighted_keys
        uint64, any values.
    weights
        uint64 by weighted key, at least 1; a key's sum must fit 64 bits.
    shares
        Where ``keys`` stand, if not everywhere.

    """
    many = len(keys) if shares is None else sum(stop - first for first, stop in shares)
    buckets = _bucket_count(many + len(weighted_keys))
    return _count_buckets(_spread(keys, NOTHING, buckets, shares), _spread(weighted_keys, weights, buckets))


def _count_buckets(plain: _Buckets, heavy: _Buckets) -> Counted:
    starts = plain.offsets + heavy.offsets
    distinct, counts = np.empty(starts[-1], np.uint64), np.empty(starts[-1], np.uint64)
    sizes = np.zeros(len(starts) - 1, np.int64)
    map_parallel(
        lambda chunk: _count(
            plain.keys, plain.offsets, heavy.keys, heavy.weights, heavy.offsets, *chunk, distinct, counts, sizes
        ),
        weighted_chunks(starts),
    )
    return Counted(distinct, counts, starts[:-1], sizes)


class Tally:
    """Counts keys that come some at a time: each bucket's table stays, so that no key is read twice.

    Parameters
    ----------
    most
        Keys that will come in all, by which the number of buckets is chosen.

    """

    def __init__(self, most: int) -> None:
        self._most, self._seen = most, 0
        self._buckets = _bucket_count(most)
        self._taken = np.zeros(self._buckets, np.int64)
        self._bases = np.zeros(self._buckets + 1, np.int64)
        self._table = NOTHING

    def add(self, keys: UInt64, weights: UInt64 = NOTHING, shares: Shares | None = None) -> None:
        """Count keys, 1 for each or as often as ``weights`` say; see :func:`count`."""
        spread = _spread(keys, weights, self._buckets, shares)
        self._seen += len(keys)
        if len(self._table) == 0:
            nothing = _spread(NOTHING, NOTHING, self._buckets)
            self._start(_count_buckets(*((nothing, spread) if len(weights) else (spread, nothing))))
            return
        done, stops = spread.offsets[:-1].copy(), spread.offsets[1:]
        self._fill(spread.keys, spread.weights, done, stops)
        while not np.array_equal(done, stops):
            self._grow()
            self._fill(spread.keys, spread.weights, done, stops)

    def _fill(self, keys: UInt64, weights: UInt64, done: Int64, stops: Int64) -> None:
        read = (self._table, self._bases, self._taken, keys, weights, done, stops)
        map_parallel(lambda chunk: _add(*read, *chunk), weighted_chunks(np.append(0, np.cumsum(stops - done))))

    def _start(self, first: Counted) -> None:
        """Make tables with room for what later keys will add, if new ones come half as often."""
        later = min(self._most / max(self._seen, 1) - 1, LATER)
        slots = 4
        while slots < first.sizes.max() * (1 + later / 2) * 3 / 2:
            slots *= 2
        self._put(first, np.full(self._buckets, 2 * slots))

    def _put(self, found: Counted, widths: Int64) -> None:
        """Make new tables, of so many numbers each, of the keys found."""
        self._bases = np.append(0, np.cumsum(widths))
        self._table = np.zeros(self._bases[-1], np.uint64)
        self._taken[:] = 0
        self._fill(found.keys, found.counts, found.starts.copy(), found.starts + found.sizes)

    def _grow(self) -> None:
        """Double the tables that are more than half full: nearly all, as keys are spread evenly."""
        widths = np.diff(self._bases)
        self._put(self.counted(), np.where(4 * self._taken > widths, 2 * widths, widths))

    def counted(self) -> Counted:
        """Return what came so far; the tables' memory is not needed any more."""
        starts = np.append(0, np.cumsum(self._taken))
        distinct, counts = np.empty(starts[-1], np.uint64), np.empty(starts[-1], np.uint64)
        map_parallel(
            lambda chunk: _list_table(self._table, self._bases, starts, *chunk, distinct, counts),
            weighted_chunks(self._bases),
        )
        return Counted(distinct, counts, starts[:-1], self._taken.copy())


def in_result_order(counted: Counted, min_count: int = 1, top: int | None = None) -> tuple[UInt64, UInt64]:
    """Order keys by count falling, equal ones ascending.

    Nearly all keys of natural text have a small count: each small count's keys are one array to be sorted by itself.

    Parameters
    ----------
    counted
        Distinct keys and their counts.
    min_count
        Keys counted less often, or never, are left out.
    top
        At most so many.

    Returns
    -------
    (uint64 array, uint64 array)
        Keys and counts.

    """
    least = max(min_count, 1)
    pivots = _pivots(counted)
    chunks = counted.chunks()
    tallies = np.zeros((len(chunks), CLASSES, len(pivots) + 1), np.int64)
    read = (counted.keys, counted.counts, counted.starts, counted.sizes)
    map_parallel(lambda k: _tally_classes(*read, *chunks[k], least, pivots, tallies[k].reshape(-1)), range(len(chunks)))
    classes = np.concatenate([tallies[:, :1], tallies[:, :0:-1]], axis=1)  # class 0, then counts falling
    by_class = classes.sum(axis=(0, 2))
    taken = CLASSES
    if top is not None:
        taken = int(np.searchsorted(np.cumsum(by_class), max(top, 0))) + 1 if top > 0 else 0
    by_class[taken:] = 0
    before = np.concatenate([[0], np.cumsum(classes.transpose(1, 2, 0).ravel())])
    places = before[:-1].reshape(CLASSES, len(pivots) + 1, len(chunks)).transpose(2, 0, 1).copy()
    places[:, taken:] = -1
    by_group = np.concatenate([places[:, :1], places[:, :0:-1]], axis=1).reshape(len(chunks), -1)
    ordered, many = np.empty(int(by_class.sum()), np.uint64), np.empty(int(by_class[0]), np.uint64)
    map_parallel(
        lambda k: _scatter_classes(*read, *chunks[k], least, pivots, by_group[k], ordered, many), range(len(chunks))
    )
    edges = np.concatenate([[0], np.cumsum(classes[:, 1:taken].sum(axis=0).ravel())]) + len(many)
    _sort_stretches(ordered, edges)
    order = _order_of_many(ordered[: len(many)], many, top)
    counts = np.repeat(np.arange(CLASSES - 1, 0, -1, dtype=np.uint64), by_class[1:])
    rest = slice(len(many), None if top is None else max(top, len(many)))
    if len(many) == 0:
        return ordered[rest], counts[: len(ordered[rest])]
    keys = np.concatenate([ordered[: len(many)][order], ordered[rest]])
    return keys, np.concatenate([many[order], counts[: len(ordered[rest])]])


def _order_of_many(keys: UInt64, counts: UInt64, top: int | None) -> npt.NDArray[np.intp]:
    if top is not None and top < len(keys):
        bound = np.partition(counts, len(counts) - top)[len(counts) - top] if top > 0 else 0
        chosen = np.flatnonzero(counts >= bound)  # with all of the last one's ties
        return chosen[np.lexsort((keys[chosen], ~counts[chosen]))][: max(top, 0)]
    return np.lexsort((keys, ~counts))


def _pivots(counted: Counted) -> UInt64:
    """Cut the keys into ranges of about equal size, by a sample of them."""
    ranges = min(4 * thread_count(), counted.size // RANGE)
    if ranges < 2:
        return NOTHING
    filled = counted.sizes > 0
    starts, sizes = counted.starts[filled], counted.sizes[filled]
    shares = np.arange(1, 2 * 64, 2)[:, None] * sizes // 128
    sample = np.sort(counted.keys[(starts + shares).ravel()])
    return sample[np.arange(1, ranges) * len(sample) // ranges].copy()


def _sort_stretches(keys: UInt64, edges: Int64) -> None:
    """Sort each stretch of an array, larger ones first, so that threads end together."""
    if len(keys) < RANGE:
        for first, stop in pairwise(edges.tolist()):
            keys[first:stop].sort()
        return
    stretches = sorted(pairwise(edges.tolist()), key=lambda edge: edge[0] - edge[1])
    large = [(first, stop) for first, stop in stretches if stop - first >= RANGE // 16]
    map_parallel(lambda edge: keys[edge[0] : edge[1]].sort(), large)
    for first, stop in stretches[len(large) :]:
        if stop - first > 1:
            keys[first:stop].sort()


def ascending(counted: Counted) -> UInt64:
    """Return the distinct keys, ascending."""
    ones = Counted(counted.keys, np.ones(len(counted.keys), np.uint64), counted.starts, counted.sizes)
    return in_result_order(ones)[0]


def dense_ids(keys: UInt64) -> tuple[UInt32, UInt64]:
    """Number distinct keys from 0 on, ascending.

    Parameters
    ----------
    keys
        uint64, any values; fewer than 2^32 distinct ones.

    Returns
    -------
    (uint32 array, uint64 array)
        The number of each key, and the distinct keys.

    Examples
    --------
    >>> ids, distinct = dense_ids(np.array([7, 3, 7], np.uint64))
    >>> ids.tolist(), distinct.tolist()
    ([1, 0, 1], [3, 7])

    """
    buckets = _bucket_count(len(keys))
    spread = _spread(keys, NOTHING, buckets)
    found = ascending(_count_buckets(spread, _spread(NOTHING, NOTHING, buckets)))
    numbered = _spread(found, np.arange(len(found), dtype=np.uint64), buckets)
    map_parallel(
        lambda chunk: _number(numbered.keys, numbered.weights, numbered.offsets, spread.keys, spread.offsets, *chunk),
        weighted_chunks(spread.offsets),
    )
    ids = np.empty(len(keys), np.uint32)
    map_parallel(
        lambda k: _gather(keys, *spread.shares[k], spread.shift, spread.places[k], spread.keys, ids),
        range(len(spread.shares)),
    )
    return ids, found


@dataclass(frozen=True)
class Ranks:
    """A key made of packed ranks of words, the first word's in the highest bits."""

    words: int
    bits: int

    @property
    def width(self) -> int:
        """Bits of a key."""
        return self.words * self.bits

    def unpack(self, keys: UInt64, inverse: UInt32, words: UInt32, column: int) -> None:
        """Write the keys' words into columns of ``words``, from ``column`` on.

        ``inverse`` is the word by rank, uint32; empty where words are their ranks.
        """
        map_parallel(
            lambda chunk: _unpack(keys, self.bits, words, inverse, column, self.words, *chunk), even_chunks(len(keys))
        )


@dataclass(frozen=True)
class Numbered:
    """A key that is the number of another one, whose order it keeps."""

    distinct: UInt64
    form: Form

    @property
    def words(self) -> int:
        """Words that a key stands for."""
        return self.form.words

    @property
    def width(self) -> int:
        """Bits of a key."""
        return max(1, (len(self.distinct) - 1).bit_length())

    def unpack(self, keys: UInt64, inverse: UInt32, words: UInt32, column: int) -> None:
        """Write the keys' words."""
        self.form.unpack(self.distinct[keys], inverse, words, column)


@dataclass(frozen=True)
class Joined:
    """A key made of two, the first one in the higher bits."""

    left: Form
    right: Form

    @property
    def words(self) -> int:
        """Words that a key stands for."""
        return self.left.words + self.right.words

    @property
    def width(self) -> int:
        """Bits of a key."""
        return self.left.width + self.right.width

    def unpack(self, keys: UInt64, inverse: UInt32, words: UInt32, column: int) -> None:
        """Write the keys' words."""
        shift = np.uint64(self.right.width)
        self.left.unpack(keys >> shift, inverse, words, column)
        rest = keys & ((np.uint64(1) << shift) - np.uint64(1))
        self.right.unpack(rest, inverse, words, column + self.left.words)


@dataclass(frozen=True)
class Spread:
    """A key made of several alike, which stand for runs of words that begin at ``starts`` and may overlap."""

    part: Form
    starts: tuple[int, ...]

    @classmethod
    def of(cls, part: Form, words: int) -> Spread:
        """Cover so many words, at least the part's."""
        return cls(part, (*range(0, words - part.words, part.words), words - part.words))

    @property
    def words(self) -> int:
        """Words that a key stands for."""
        return self.starts[-1] + self.part.words

    @property
    def width(self) -> int:
        """Bits of a key."""
        return len(self.starts) * self.part.width

    def unpack(self, keys: UInt64, inverse: UInt32, words: UInt32, column: int) -> None:
        """Write the keys' words."""
        width, part = self.part.width, self.part
        if isinstance(part, Numbered) and len(keys) * len(self.starts) >= len(part.distinct):
            runs, starts = unpack(part.distinct, part.form, inverse), np.array(self.starts, np.int64) + column
            map_parallel(lambda chunk: _copy_runs(keys, width, starts, runs, words, *chunk), even_chunks(len(keys)))
            return
        mask = np.uint64((1 << width) - 1)
        for k, start in enumerate(self.starts[::-1]):
            part.unpack((keys >> np.uint64(k * width)) & mask, inverse, words, column + start)


Form = Ranks | Numbered | Joined | Spread
"""How a key stands for words."""


def unpack(keys: UInt64, form: Form, inverse: UInt32) -> UInt32:
    """Return the words of keys, uint32[keys, words]; ``inverse`` is the word by rank, empty where they are the same."""
    words = np.empty((len(keys), form.words), np.uint32)
    form.unpack(keys, inverse, words, 0)
    return words


def join_columns(columns: Sequence[UInt64], forms: Sequence[Form]) -> tuple[UInt64, Form]:
    """Make one key of each row of several, in the rows' order (iterated pairing).

    Where columns do not fit 64 bits together, their distinct values are numbered first, single ones before joined ones,
    which have more; two numbers always fit.

    Parameters
    ----------
    columns
        uint64: equally long, at least one; fewer than 2^32 rows.
    forms
        How the columns' values stand for words.

    """
    parts = list(zip(columns, forms, strict=True))
    for k, (values, form) in enumerate(parts):
        if sum(form.width for _, form in parts) > 64 and form.words > 1:
            parts[k] = _numbered(values, form)
    keys, form = parts[0]
    for other, other_form in parts[1:]:
        if form.width + other_form.width > 64:
            keys, form = _numbered(keys, form)
        if form.width + other_form.width > 64:
            other, other_form = _numbered(other, other_form)
        keys = (keys << np.uint64(other_form.width)) | other
        form = Joined(form, other_form)
    return keys, form


def _numbered(keys: UInt64, form: Form) -> tuple[UInt64, Form]:
    ids, distinct = dense_ids(keys)
    return ids.astype(np.uint64), Numbered(distinct, form)
