"""One round of batch RePair, whose steps threads share; :mod:`.region_cpu` runs many.

:func:`find_pairs` counts pairs, selects positions and lists the pairs to replace by their first position: no list is
sorted as a whole, but distributed by position, then sorted in a core's cache. :func:`replace_pairs` numbers the new
rules in that order and rewrites the sequence.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from polars_tadoc.kernels.repair import batch_repair_cpu as passes
from polars_tadoc.kernels.repair import pairs_cpu as counting
from polars_tadoc.runtime.addresses import bit_length
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.process.shared_tasks import all_done, done, take

FIND_STEPS, REPLACE_STEPS = 11, 4

FEW = 32
"""Items of a bucket that are sorted by insertion."""

DIGIT = 8
"""Bits by which more items are sorted at a time."""

_32, _256 = np.uint64(32), 1 << DIGIT


class Positions(NamedTuple):
    """The sequence, or memory for it."""

    symbols: UInt32
    state: UInt8
    classes: UInt8
    """Class of the weight of each position's row; empty if all weights are 1."""


class Buckets(NamedTuple):
    """Where tasks write their items: those of a bucket are adjacent, in order of tasks."""

    sizes: Int64
    """By task and bucket: its number of items."""
    places: UInt64
    """By task and bucket: its first item."""
    edges: Int64
    """By bucket: its first item; then the number of all."""
    sums: Int64
    """By part of the buckets: the number of their items, and the most of one bucket."""


class Chosen(NamedTuple):
    """By share: the entries of selected positions, and some more items."""

    entries: UInt32
    room: int
    """Numbers from one share's first entry to the next's."""
    counts: Int64


class Pairs(NamedTuple):
    """Pairs that occur more than once."""

    table: UInt64
    """By entry, of all buckets: how often the pair occurs (lower half), and how often it is selected."""
    bases: UInt64
    """By bucket: its first entry."""
    stops: UInt64
    """By bucket: the entry after its last one."""
    free: UInt64
    """Number of entries."""
    rules: UInt32
    """By entry: the first selected position until pairs are listed; then the rule's symbol, or ``NONE``."""
    listed: UInt64
    """Pairs to replace: first position << 32 | entry, ascending; in memory of items, which are not needed any more."""


class Rules(NamedTuple):
    """The rules so far, and their hash table: numbers of rules + 1 by pair."""

    left: UInt32
    right: UInt32
    places: UInt32
    part: int
    whole: int
    """A pair becomes a rule if it is selected at ``part / whole`` of its occurrences or more."""


@njit
def _part(size: int, k: int, parts: int) -> Any:
    """Return where part k of ``range(size)`` begins."""
    return nb.int64(size) * nb.int64(k) // nb.int64(parts)


@njit
def _cut(edges: Int64, k: int, parts: int) -> int:
    """Return the first bucket of part k, of parts with about equally many items."""
    if k == 0:
        return 0
    if k == parts:
        return len(edges) - 1
    return int(np.searchsorted(edges, _part(edges[-1], k, parts)))


@njit
def _sum_part(buckets: Buckets, k: int) -> None:
    """Count the items of a part of the buckets."""
    parts = len(buckets.sums)
    total = most = nb.int64(0)
    first, stop = _part(len(buckets.edges) - 1, k, parts), _part(len(buckets.edges) - 1, k + 1, parts)
    edges = buckets.edges
    edges[first:stop] = 0
    for task in range(len(buckets.sizes)):
        for bucket in range(first, stop):
            edges[bucket] += buckets.sizes[task, bucket]
    for bucket in range(first, stop):
        total += edges[bucket]
        most = max(most, edges[bucket])
    buckets.sums[k, 0], buckets.sums[k, 1] = total, most


@njit
def _place_part(buckets: Buckets, k: int) -> None:
    """Fill the places of a part of the buckets."""
    parts, edges = len(buckets.sums), buckets.edges
    at = nb.int64(0)
    for part in range(k):
        at += buckets.sums[part, 0]
    first, stop = _part(len(edges) - 1, k, parts), _part(len(edges) - 1, k + 1, parts)
    for bucket in range(first, stop):
        edges[bucket], at = at, at + edges[bucket]
    if k == parts - 1:
        edges[-1] = at
    following = edges[first:stop].copy()
    for task in range(len(buckets.sizes)):
        for bucket in range(first, stop):
            buckets.places[task, bucket] = following[bucket - first]
            following[bucket - first] += buckets.sizes[task, bucket]


@njit
def _place_all(progress: Int64, step: int, buckets: Buckets, began: int) -> bool:
    """Fill all places, in two steps from ``step`` on; as :func:`.shared_tasks.all_done`."""
    parts = len(buckets.sums)
    k = take(progress, step)
    while k < parts:
        _sum_part(buckets, k)
        k = done(progress, step)
    if not all_done(progress, step, parts, began):
        return False
    k = take(progress, step + 1)
    while k < parts:
        _place_part(buckets, k)
        k = done(progress, step + 1)
    return bool(all_done(progress, step + 1, parts, began))


@njit
def _most(buckets: Buckets) -> Any:
    """Return the most items of a bucket."""
    most = nb.int64(0)
    for part in range(len(buckets.sums)):
        most = max(most, buckets.sums[part, 1])
    return most


@njit
def _sort(items: Any, spare: UInt64, ends: Int64, stop: int) -> None:
    """Sort items by their bits from 32 to before ``stop``, in a core's cache."""
    size = len(items)
    if size <= FEW:
        for i in range(1, size):
            item, at = items[i], i
            while at > 0 and items[at - 1] > item:
                items[at] = items[at - 1]
                at -= 1
            items[at] = item
        return
    away = False
    for shift in range(32, stop, DIGIT):
        source, target = (spare[:size], items) if away else (items, spare[:size])
        ends[:] = 0
        for item in source:
            ends[((item >> nb.uint64(shift)) & nb.uint64(_256 - 1)) + nb.uint64(1)] += 1
        for digit in range(1, _256):
            ends[digit] += ends[digit - 1]
        for item in source:
            digit = (item >> nb.uint64(shift)) & nb.uint64(_256 - 1)
            target[ends[digit]] = item
            ends[digit] += 1
        away = not away
    if away:
        items[:] = spare[:size]


@njit
def find_pairs(
    progress: Int64,
    step: int,
    began: int,
    here: Positions,
    size: int,
    shares: Int64,
    split: counting.Split,
    buckets: Buckets,
    items: Any,
    item_classes: UInt8,
    bits: tuple[int, int],
    groups: int,
    pairs: Pairs,
    chosen: Chosen,
    lists: Buckets,
    shift: int,
    rules: Rules,
    vocabulary_size: int,
    new: Int64,
    selected: UInt8,
) -> bool:
    """Count the pairs of a sequence, select positions, and list the pairs to replace and the rules that they have.

    Parameters
    ----------
    progress, step, began
        As of :func:`.shared_tasks.all_done`; the first step.
    here, size
        Memory of the sequence, and its length.
    shares
        Edges of the tasks' ranges of blocks of eight positions.
    split, buckets, items, item_classes
        As of :mod:`.pairs_cpu`.
    bits
        Fewest and most bits of an entry in an item.
    groups
        Number of tasks that count by bucket, and of those that list pairs.
    lists, shift
        Pairs to replace are listed by bucket: their first position >> ``shift``.
    vocabulary_size
        The first rule's symbol.
    new
        By task of the listed pairs: becomes the number of those without a rule.
    selected
        By task that lists pairs: becomes whether any position is selected.

    Returns
    -------
    bool
        False after an interrupt, or if a thread failed.

    """
    many = len(shares) - 1
    sequence, state, classes = here.symbols[:size], here.state, here.classes
    blocks = state.view(np.uint64)[: (size + 7) // 8]

    k = take(progress, step)
    while k < many and interrupts() == began:
        buckets.sizes[k] = 0
        counting.measure(sequence, state, blocks, shares[k], shares[k + 1], split, buckets.sizes[k])
        k = done(progress, step)
    if not all_done(progress, step, many, began):
        return False
    if not _place_all(progress, step + 1, buckets, began):
        return False
    k = take(progress, step + 3)
    while k < many and interrupts() == began:
        own = buckets.places[k]
        counting.scatter(sequence, state, blocks, shares[k], shares[k + 1], split, own, items, classes, item_classes)
        k = done(progress, step + 3)
    if not all_done(progress, step + 3, many, began):
        return False
    entry_bits = min(max(bit_length(nb.uint64(_most(buckets))), bits[0]), bits[1])
    k = take(progress, step + 4)
    while k < groups and interrupts() == began:
        first, stop = _cut(buckets.edges, k, groups), _cut(buckets.edges, k + 1, groups)
        edges, bases, stops = buckets.edges[first : stop + 1], pairs.bases[first:stop], pairs.stops[first:stop]
        counting.count(items, item_classes, edges, entry_bits, pairs.table, pairs.rules, pairs.free, bases, stops)
        k = done(progress, step + 4)
    if not all_done(progress, step + 4, groups, began):
        return False
    k = take(progress, step + 5)
    while k < many and interrupts() == began:
        chosen.counts[k] = passes.select(
            sequence,
            state,
            blocks,
            shares[k],
            shares[k + 1],
            split,
            buckets.places[k],
            items,
            entry_bits,
            pairs.bases,
            pairs.table,
            pairs.rules,
            chosen.entries[chosen.room * k :],
        )
        k = done(progress, step + 5)
    if not all_done(progress, step + 5, many, began):
        return False
    part, whole = rules.part, rules.whole
    k = take(progress, step + 6)
    while k < groups and interrupts() == began:
        first, stop = _cut(buckets.edges, k, groups), _cut(buckets.edges, k + 1, groups)
        edges, bases, stops = buckets.edges[first : stop + 1], pairs.bases[first:stop], pairs.stops[first:stop]
        counting.count_selected(items, item_classes, edges, entry_bits, pairs.table, bases)
        own = lists.sizes[k]
        own[:] = 0
        selected[k] = counting.count_listed(pairs.table, pairs.rules, bases, stops, part, whole, shift, own)
        k = done(progress, step + 6)
    if not all_done(progress, step + 6, groups, began):
        return False
    if not _place_all(progress, step + 7, lists, began):
        return False
    k = take(progress, step + 9)
    while k < groups and interrupts() == began:
        first, stop = _cut(buckets.edges, k, groups), _cut(buckets.edges, k + 1, groups)
        bases, stops = pairs.bases[first:stop], pairs.stops[first:stop]
        own = lists.places[k]
        counting.list_pairs(pairs.table, pairs.rules, bases, stops, part, whole, shift, own, pairs.listed)
        k = done(progress, step + 9)
    if not all_done(progress, step + 9, groups, began):
        return False
    k = take(progress, step + 10)
    spare, ends = np.empty(_most(lists) if k < len(new) else 0, np.uint64), np.empty(_256 + 1, np.int64)
    while k < len(new) and interrupts() == began:
        first, stop = _cut(lists.edges, k, len(new)), _cut(lists.edges, k + 1, len(new))
        for bucket in range(first, stop):
            _sort(pairs.listed[lists.edges[bucket] : lists.edges[bucket + 1]], spare, ends, 32 + shift)
        own = pairs.listed[lists.edges[first] : lists.edges[stop]]
        new[k] = counting.find_rules(sequence, own, rules.left, rules.right, rules.places, pairs.rules, vocabulary_size)
        k = done(progress, step + 10)
    return bool(all_done(progress, step + 10, len(new), began))


@njit
def replace_pairs(
    progress: Int64,
    step: int,
    began: int,
    here: Positions,
    size: int,
    shares: Int64,
    pairs: Pairs,
    chosen: Chosen,
    lists: Buckets,
    rules: Rules,
    vocabulary_size: int,
    firsts: Int64,
    unindexed: int,
    tasks: int,
    stalled: bool,
    made: Positions,
    is_apart: bool,
    ends: Int64,
    written: Int64,
) -> bool:
    """Number the new rules, and rewrite the sequence.

    Parameters
    ----------
    progress, step, began, here, size, shares, pairs, chosen, lists, rules
        As of :func:`find_pairs`, and so is the result.
    vocabulary_size
        The first rule's symbol.
    firsts
        By task of the listed pairs: the number of its first new rule; then the number of all rules.
    unindexed, tasks
        The first rule that is not in the hash table, and the number of tasks that add them.
    stalled
        Whether no pair is to be replaced.
    made, is_apart
        Memory to write to; whether it is other memory than ``here``: then no gaps are left.
    ends
        int64[shares, 3], for use by the tasks.
    written
        int64[shares, 4]: becomes each share's first position in ``made``, the number of symbols and of alive ones, and
        whether the first one is new.

    """
    many, known = len(shares) - 1, firsts[-1]
    sequence, state, classes = here.symbols[:size], here.state, here.classes
    blocks = state.view(np.uint64)[: (size + 7) // 8]
    groups = len(firsts) - 1

    k = take(progress, step)
    while k < groups and interrupts() == began:
        first, stop = _cut(lists.edges, k, groups), _cut(lists.edges, k + 1, groups)
        own = pairs.listed[lists.edges[first] : lists.edges[stop]]
        counting.assign_rules(sequence, own, vocabulary_size, firsts[k], pairs.rules, rules.left, rules.right)
        k = done(progress, step)
    if not all_done(progress, step, groups, began):
        return False
    k = take(progress, step + 1)
    while k < tasks and interrupts() == began:
        first = unindexed + _part(known - unindexed, k, tasks)
        stop = unindexed + _part(known - unindexed, k + 1, tasks)
        counting.index_rules(rules.left, rules.right, first, stop, rules.places)
        k = done(progress, step + 1)
    if many > 1:
        k = take(progress, step + 2)
        while k < many and interrupts() == began:
            entries = chosen.entries[chosen.room * k : chosen.room * k + chosen.counts[k]]
            first, stop = 8 * shares[k], min(8 * shares[k + 1], size)
            ends[k, 0] = passes.count_replaced(entries, pairs.rules) if is_apart else 0
            last = len(entries) > 0 and pairs.rules[entries[-1]] != counting.NONE
            ends[k, 1] = last and state[stop - 1] == counting.SELECTED
            ends[k, 2] = last and stop - 2 >= first and state[stop - 2] == counting.SELECTED
            k = done(progress, step + 2)
        if not all_done(progress, step + 2, many, began):
            return False
    k = take(progress, step + 3)
    while k < many and interrupts() == began:
        # a share's last rule may consume the first symbol of the next share
        to, most, first, stop = nb.int64(0), nb.int64(0), nb.int64(0), nb.int64(0)
        for share in range(k + 1):
            to = to + most if is_apart else 8 * shares[share]
            first, stop = 8 * shares[share], min(8 * shares[share + 1], size)
            most = stop - first
            if is_apart:
                most += (ends[share, 1] if share < many - 1 else 0) - ends[share, 0]
                most -= ends[share - 1, 1] if share > 0 else 0
        consumed = many > 1 and k > 0 and ends[k - 1, 1] != 0
        entries = chosen.entries[chosen.room * k : chosen.room * k + chosen.counts[k] + counting.AHEAD]
        kept, alive, starts_new = passes.rewrite(
            sequence,
            state,
            blocks,
            classes,
            entries,
            pairs.rules,
            first,
            stop - (ends[k, 2] if many > 1 else 0),
            consumed,
            stalled,
            made.symbols,
            made.state,
            made.classes,
            to,
            most,
        )
        written[k, 0], written[k, 1], written[k, 2], written[k, 3] = to, kept, alive, starts_new
        k = done(progress, step + 3)
    # rules are indexed meanwhile
    return bool(all_done(progress, step + 3, many, began) and all_done(progress, step + 1, tasks, began))
