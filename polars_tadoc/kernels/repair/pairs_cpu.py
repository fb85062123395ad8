"""Counts the pairs of one round of batch RePair exactly, in tables that fit a core's cache; finds and adds rules.

Work is split twice. First by *position*: a thread scans its share of the sequence and writes each pair to one of P
buckets, so that a bucket and a key of 32 bits identify it, unless a grammar has millions of symbols; pairs are counted
by bucket first, so that each is written to its final place. Then by *pair*: the thread that takes a bucket counts its
pairs in a table that no other thread touches, and replaces each key by its pair's count and entry. Whoever scans the
sequence again in the same order reads them: all accesses are sequential except those to one bucket's table (as in a
radix-partitioned hash join: Manegold, Boncz and Kersten, 2002). That scan marks the items of selected positions, which
are counted by bucket too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from polars_tadoc.kernels.repair.equal_rows_cpu import weight_of
from polars_tadoc.runtime.addresses import atomic_add, atomic_exchange_if, prefetch, prefetch_to_write
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner
from polars_tadoc.runtime.secret import first_secret

DEAD, ALIVE, SELECTED, RULE = range(4)
"""State of a position: whether the pair that starts there may still occur twice, is selected, or is replaced."""

NONE = 0xFFFFFFFF
"""Rule of an entry without one."""

CHOSEN_BIT = 31
"""The bit of an item that tells that its position is selected."""

BUCKETS = 1 << 10
"""Maximum number of buckets, but for keys of 32 bits, and then 16 bits; one bucket's table fits in a core's cache."""

FEWEST_SLOTS, MOST_SLOTS = 1 << 8, 1 << 16
"""Slots of a bucket's table before it grows."""

SLOT_FIELDS = 2
"""A slot of a bucket's table: a key and its occurrences, in one cache line."""

SPARE = 3.0
"""Slots for each pair that a bucket is expected to have."""

WINDOW = 1 << 9
"""Alive positions that a thread lists at a time."""

AHEAD = 16
"""Prefetch distance in items of a stream."""

_K1, _K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_1, _2, _32 = np.uint64(1), np.uint64(2), np.uint64(32)
_LOW = np.uint64(NONE)


class Split(NamedTuple):
    """How a round splits pairs of symbols into a bucket and a key, its lower bits."""

    symbol_bits: np.uint64
    key_bits: np.uint64
    keys: np.uint64
    """All bits of a key."""
    shift: np.uint64
    """From the upper 63 bits of a hash to as many as a bucket has."""

    @classmethod
    def of(cls, symbols: int, bits: int) -> Split:
        """Split pairs of numbers below ``symbols`` into two to the power of ``bits`` buckets."""
        width = max(symbols.bit_length(), (bits + 1) // 2)
        key_bits = 2 * width - bits
        return cls(*(np.uint64(number) for number in (width, key_bits, (1 << key_bits) - 1, 63 - bits)))


@njit(inline="always")
def pair_of(left: int, right: int) -> Any:
    """Return a pair as one number."""
    return (nb.uint64(left) << _32) | nb.uint64(right)


@njit(inline="always")
def hash_of(pair: int) -> Any:
    """Hash a pair to 64 bits, bijectively."""
    h = pair * _K1
    h = (h ^ (h >> _32)) * _K2
    return h ^ (h >> _32)


@njit(inline="always")
def hash_pair(left: int, right: int) -> Any:
    """Hash a pair of symbols, likewise."""
    return hash_of(pair_of(left, right))


@njit(inline="always")
def key_and_bucket(left: int, right: int, split: Split) -> Any:
    """Return a pair's key, its lower bits, and its bucket: the other bits, mixed with the key's hash."""
    pair = (nb.uint64(left) << split.symbol_bits) | nb.uint64(right)
    key = pair & split.keys
    # twice, as a shift by 64 bits is undefined
    return key, (pair >> split.key_bits) ^ ((key * _K1) >> _1 >> split.shift)


@njit(inline="always")
def slot_of(key: int, mask: int) -> Any:
    """Return the first slot of a key, which differs between processes: no text can have pairs that share one."""
    return ((nb.uint64(key) * first_secret()) >> _32) & mask


@inner
def list_alive(state: UInt8, blocks: UInt64, block: int, stop: int, places: Any) -> Any:
    """List the alive positions of blocks from ``block`` on, ``WINDOW`` or up to 7 more, unless ``stop`` comes before.

    Returns their number and the following block.
    """
    many = nb.uint64(0)
    while block < stop and many < WINDOW:
        if blocks[block] != 0:
            first = nb.uint64(8 * block)
            for k in range(nb.uint64(8)):
                places[many] = first + k
                many += nb.uint64(state[first + k] != DEAD)  # a branch would be unpredictable
        block += 1
    return many, block


@inner
def find_buckets(sequence: UInt32, places: Any, first: int, many: int, split: Split, pairs: Any, buckets: Any) -> None:
    """Find the pairs of listed positions from number ``first`` on, and their buckets."""
    for k in range(nb.uint64(first), nb.uint64(many)):
        pairs[k] = pair_of(sequence[places[k]], sequence[places[k] + _1])
    for k in range(nb.uint64(first), nb.uint64(many)):  # a loop of its own: the compiler makes vectors of it
        buckets[k] = key_and_bucket(pairs[k] >> _32, pairs[k] & _LOW, split)[1]


@polled
@njit
def measure(sequence: UInt32, state: UInt8, blocks: UInt64, first: int, stop: int, split: Split, sizes: Int64) -> None:
    """Count the alive positions of blocks by bucket of their pair; ``sizes``, by bucket, is initially zero."""
    began, room = interrupts(), WINDOW + 8
    places, pairs, buckets = np.empty(room, np.uint64), np.empty(room, np.uint64), np.empty(room, np.uint16)
    block = first
    while block < stop and interrupts() == began:
        many, block = list_alive(state, blocks, block, stop, places)
        find_buckets(sequence, places, 0, many, split, pairs, buckets)
        for k in range(many):
            sizes[nb.uint64(buckets[k])] += 1


@polled
@njit
def scatter(
    sequence: UInt32,
    state: UInt8,
    blocks: UInt64,
    first: int,
    stop: int,
    split: Split,
    starts: UInt64,
    items: Any,
    classes: UInt8,
    item_classes: UInt8,
) -> None:
    """Write the keys of blocks' pairs to ``items``, those of each bucket from its start on, in order of position.

    ``item_classes`` gets the ``classes`` of their rows' weights, unless these are empty: all weights are 1.
    """
    began = interrupts()
    places = np.empty(WINDOW + 8, np.uint64)
    free = starts.copy()
    block = first
    while block < stop and interrupts() == began:
        many, block = list_alive(state, blocks, block, stop, places)
        for k in range(many):
            i = places[k]
            key, bucket = key_and_bucket(sequence[i], sequence[i + _1], split)
            place = free[bucket]
            items[place] = key
            if len(classes) > 0:
                item_classes[place] = classes[i]
            else:  # with classes, the lines would not fit a core's first cache
                prefetch_to_write(items, nb.int64(place) + AHEAD)
            free[bucket] = place + _1


@polled
@njit
def count(
    items: Any,
    classes: UInt8,
    edges: Int64,
    entry_bits: int,
    table: UInt64,
    rules: UInt32,
    free: UInt64,
    bases: UInt64,
    stops: UInt64,
) -> None:
    """Count the pairs of buckets; replace each key by its pair's count and entry, or 0 if it occurs once.

    An item is ``count << entry_bits | entry``, its entry being counted from the bucket's first, which ``bases`` gets.
    Counts that need more bits than an item has below ``CHOSEN_BIT`` are all ones; then the table has them. Bucket b has
    the items from ``edges[b]`` to ``edges[b + 1]``. Repeated pairs get consecutive entries of ``table``, from ``free``
    to before what ``stops`` gets; one more entry per bucket stays unused. The ``rules`` of entries become ``NONE``.
    """
    began = interrupts()
    slots = np.empty(SLOT_FIELDS * FEWEST_SLOTS, items.dtype)
    share = 1.0  # of distinct pairs in the bucket before
    for bucket in range(len(edges) - 1):
        first, stop = edges[bucket], edges[bucket + 1]
        bases[bucket] = stops[bucket] = 0
        if first == stop:
            continue
        size = FEWEST_SLOTS
        while size < min(SPARE * share * (stop - first), MOST_SLOTS):
            size *= 2
        pairs = -1
        while pairs < 0:
            if interrupts() != began:
                return
            if SLOT_FIELDS * size > len(slots):
                slots = np.empty(SLOT_FIELDS * size, items.dtype)
            own = classes[first:stop] if len(classes) > 0 else classes
            pairs = _count_bucket(items[first:stop], own, slots[: SLOT_FIELDS * size])
            size *= 2
        share = pairs / (stop - first)
        own_slots = slots[: SLOT_FIELDS * size // 2]
        bases[bucket], stops[bucket] = _enter(items[first:stop], own_slots, entry_bits, table, rules, free)


@njit
def _count_bucket(items: Any, classes: Any, slots: Any) -> Any:
    """Replace each key by its slot; return the number of pairs, -1 if there are too few slots: keys are unchanged."""
    slots[:] = 0
    size = len(slots) // SLOT_FIELDS
    mask = nb.uint64(size - 1)
    room = size - size // 4
    pairs = 0
    for k in range(len(items)):
        key = items[k]
        s = slot_of(key, mask)
        while (slots[_2 * s] != key) & (slots[_2 * s + _1] != 0):
            s = (s + _1) & mask
        pairs += slots[_2 * s + _1] == 0  # without a branch, as most pairs' novelty is unpredictable
        slots[_2 * s] = key
        slots[_2 * s + _1] += nb.uint32(weight_of(classes[k])) if len(classes) > 0 else nb.uint32(1)
        items[k] = s
        if pairs > room:
            for j in range(k + 1):
                items[j] = slots[_2 * nb.uint64(items[j])]
            return -1
    return pairs


@njit
def _enter(items: Any, slots: Any, entry_bits: int, table: Any, rules: Any, free: Any) -> Any:
    """Make entries of a bucket's repeated pairs, return their range; replace each slot by what :func:`count` says."""
    size = nb.uint64(len(slots) // SLOT_FIELDS)
    repeated = 0
    for s in range(size):
        repeated += slots[_2 * s + _1] >= 2
    base = nb.int64(atomic_add(free, 0, nb.uint64(repeated + 1)))
    entry = base
    most = full_count(entry_bits)
    for s in range(size):
        tally = nb.uint64(slots[_2 * s + _1])
        table[entry] = tally
        rules[entry] = NONE
        repeats = nb.uint64(tally >= 2)
        slots[_2 * s] = ((min(tally, most) << nb.uint64(entry_bits)) | nb.uint64(entry - base)) * repeats
        entry += nb.int64(repeats)
    for k in range(len(items)):
        items[k] = slots[_2 * nb.uint64(items[k])]
    return base, entry


@njit(inline="always")
def full_count(entry_bits: int) -> Any:
    """Return the count in an item whose real count is in the table."""
    return (_1 << nb.uint64(CHOSEN_BIT - entry_bits)) - _1


@njit(inline="always")
def _is_replaced(tally: int, part: int, whole: int) -> Any:
    """Tell whether a pair is selected at ``part / whole`` of its occurrences or more, and more than once."""
    selected = tally >> _32
    return nb.uint64(selected >= _2) & nb.uint64(nb.uint64(whole) * selected >= nb.uint64(part) * (tally & _LOW))


@polled
@njit
def count_selected(items: Any, classes: UInt8, edges: Int64, entry_bits: int, table: UInt64, bases: UInt64) -> None:
    """Add to the tallies of buckets' entries how often their positions are selected: no other thread touches them."""
    began = interrupts()
    window = nb.int64(WINDOW)
    picked, own_classes = np.empty(WINDOW + 1, np.uint32), np.empty(WINDOW + 1, np.uint8)
    mask = (_1 << nb.uint64(entry_bits)) - _1
    for bucket in range(len(edges) - 1):
        base = bases[bucket]
        for start in range(edges[bucket], edges[bucket + 1], window):
            if interrupts() != began:
                return
            many = nb.uint64(0)
            for k in range(nb.uint64(start), nb.uint64(min(start + window, edges[bucket + 1]))):
                item = nb.uint64(items[k])
                picked[many] = item & mask
                if len(classes) > 0:
                    own_classes[many] = classes[k]
                many += item >> nb.uint64(CHOSEN_BIT)  # a branch would be unpredictable
            for k in range(many):
                table[base + picked[k]] += (weight_of(own_classes[k]) if len(classes) > 0 else _1) << _32


@polled
@njit
def count_listed(
    table: UInt64, places: UInt32, bases: UInt64, stops: UInt64, part: int, whole: int, shift: int, sizes: Int64
) -> Any:
    """Count the pairs to replace by bucket of the lists, their first position >> ``shift``.

    Reads the entries of some buckets of pairs, whose first selected positions are ``places``. Returns whether any
    position is selected.
    """
    began, any_selected = interrupts(), False
    last = nb.uint64(len(sizes) - 1)
    for bucket in range(len(bases)):
        if interrupts() != began:
            break
        for entry in range(bases[bucket], stops[bucket]):
            tally = table[entry]
            any_selected |= tally >> _32 > 0
            at = min(nb.uint64(places[entry]) >> nb.uint64(shift), last)
            sizes[at] += nb.int64(_is_replaced(tally, part, whole))
    return any_selected


@polled
@njit
def list_pairs(
    table: UInt64,
    rules: UInt32,
    bases: UInt64,
    stops: UInt64,
    part: int,
    whole: int,
    shift: int,
    places: UInt64,
    listed: UInt64,
) -> None:
    """Write ``first position << 32 | entry`` of the pairs to replace from their bucket's place on; advances places.

    ``rules`` has the first positions, and becomes ``NONE``.
    """
    began = interrupts()
    last = nb.uint64(len(places) - 1)
    item = at = nb.uint64(0)  # the last one written: the others write it again, as a branch would be unpredictable
    any_listed = False
    for own in range(len(bases)):
        if interrupts() != began:
            return
        entry, stop = bases[own], stops[own]
        while entry < stop and not any_listed:
            any_listed = _is_replaced(table[entry], part, whole) != 0
            rules[entry] = rules[entry] if any_listed else nb.uint32(NONE)
            entry += nb.uint64(not any_listed)
        for k in range(entry, stop):
            place = nb.uint64(rules[k])
            is_replaced = _is_replaced(table[k], part, whole)
            rules[k] = NONE
            bucket = min(place >> nb.uint64(shift), last)
            item = (place << _32) | k if is_replaced != 0 else item
            at = places[bucket] if is_replaced != 0 else at
            listed[at] = item
            places[bucket] += is_replaced


@polled
@njit
def find_rules(
    sequence: UInt32, listed: UInt64, left: UInt32, right: UInt32, index: UInt32, rules: UInt32, vocabulary_size: int
) -> int:
    """Give listed entries the symbols of rules that their pairs have already; return the number of the others.

    ``index`` is a hash table of rule numbers + 1 by pair.
    """
    began, many = interrupts(), 0
    mask, last = nb.uint64(len(index) - 1), len(listed) - 1
    for k in range(len(listed)):
        if k & 0xFFFF == 0 and interrupts() != began:
            return many
        prefetch(sequence, nb.int64(listed[min(k + 2 * AHEAD, last)] >> _32))
        ahead = nb.int64(listed[min(k + AHEAD, last)] >> _32)
        prefetch(index, nb.int64(slot_of(hash_pair(sequence[ahead], sequence[ahead + 1]), mask)))
        place = nb.int64(listed[k] >> _32)
        first, second = sequence[place], sequence[place + 1]
        slot = slot_of(hash_pair(first, second), mask)
        while index[slot] != 0 and (left[index[slot] - _1] != first or right[index[slot] - _1] != second):
            slot = (slot + _1) & mask
        if index[slot] != 0:
            rules[nb.int64(listed[k] & _LOW)] = vocabulary_size + nb.int64(index[slot]) - 1
        else:
            many += 1
    return many


@polled
@njit
def assign_rules(
    sequence: UInt32, listed: UInt64, vocabulary_size: int, known: int, rules: UInt32, left: UInt32, right: UInt32
) -> None:
    """Make rules of the listed entries that have none, in the given order, from number ``known`` on."""
    began, last = interrupts(), len(listed) - 1
    for k in range(len(listed)):
        if k & 0xFFFF == 0 and interrupts() != began:
            return
        ahead = listed[min(k + AHEAD, last)]
        prefetch(sequence, nb.int64(ahead >> _32))
        prefetch(rules, nb.int64(ahead & _LOW))
        entry = nb.int64(listed[k] & _LOW)
        if rules[entry] == NONE:
            place = nb.int64(listed[k] >> _32)
            left[known], right[known] = sequence[place], sequence[place + 1]
            rules[entry] = vocabulary_size + known
            known += 1


@polled
@njit
def index_rules(left: UInt32, right: UInt32, first: int, stop: int, index: UInt32) -> None:
    """Insert the rules from ``first`` to before ``stop``; other threads insert others."""
    began, mask = interrupts(), nb.uint64(len(index) - 1)
    for rule in range(first, stop):
        if rule & 0xFFFF == 0 and interrupts() != began:
            return
        ahead = min(rule + AHEAD, stop - 1)
        prefetch(index, nb.int64(slot_of(hash_pair(left[ahead], right[ahead]), mask)))
        slot = slot_of(hash_pair(left[rule], right[rule]), mask)
        while index[slot] != 0 or atomic_exchange_if(index, nb.int64(slot), nb.uint32(0), nb.uint32(rule + 1)) != 0:
            slot = (slot + _1) & mask
