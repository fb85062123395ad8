"""The passes of one round of batch RePair over a sequence of symbols; :mod:`.pairs` counts its pairs.

Every pass is split by position. Threads share the table of pairs: during selection they add to its tallies atomically.
The result depends neither on the order nor on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.repair.pairs_cpu import ALIVE, DEAD, FIELDS, HASH, NONE, SELECTED, TALLY, hash_pair, pair_of
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.runtime.addresses import atomic_add, atomic_min, move, prefetch
from polars_tadoc.runtime.array_types import UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled

PENDING = 1 << 10
"""Entries whose selections a thread sums locally: hot cache lines would bounce between cores."""

LOOK = 1 << 16
"""Positions between polls for interrupts."""

_32 = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_SPREAD = 0x9E3779B1


@njit
def mark_alive(sequence: UInt32, state: UInt8, first: int, stop: int) -> int:
    """Mark every position whose pair is within one row; return their number."""
    count = 0
    for i in range(first, stop):
        inside = sequence[i] != SEPARATOR and i + 1 < len(sequence) and sequence[i + 1] != SEPARATOR
        state[i] = ALIVE if inside else DEAD
        count += inside
    return count


@njit
def _wins_tie(sequence: UInt32, i: int, neighbour: int, run_start: int) -> Any:
    """Break ties of the pairs at two adjacent positions.

    Equal pairs are adjacent only within a run of one symbol: there every other position from the run's start wins, so
    that equal runs are split equally everywhere.
    """
    if sequence[i] == sequence[neighbour] and sequence[i + 1] == sequence[neighbour + 1]:
        return (i - run_start) & 1 == 0
    return hash_pair(sequence[i], sequence[i + 1]) > hash_pair(sequence[neighbour], sequence[neighbour + 1])


@polled
@njit
def select(
    sequence: UInt32,
    state: UInt8,
    blocks: UInt64,
    slots: UInt32,
    table: UInt64,
    first_place: UInt32,
    first_block: int,
    stop_block: int,
) -> None:
    """Select the positions whose pair has priority over both adjacent ones; count them and find each pair's first.

    Positions whose pair occurs once become dead. Priority is (count, hash of the pair); only the upper 32 bits of the
    hash are compared unless they tie.
    """
    began = interrupts()
    zero = nb.uint64(0)
    before = here = after = zero
    run_start = tied = nb.int64(-1)
    pending, times = np.full(PENDING, -1, np.int64), np.zeros(PENDING, np.uint64)
    for block in range(first_block, stop_block):
        if block & 0x3FFF == 0 and interrupts() != began:
            return
        if blocks[block] == 0:
            continue
        if 8 * block + 72 <= len(slots):
            for i in range(8 * block + 64, 8 * block + 72):
                # a dead position's slot may be out of bounds, and even prefetching it is slow
                prefetch(table, FIELDS * nb.int64(slots[i]) * nb.int64(state[i] != DEAD))
        here = zero
        for i in range(8 * block - 2, 8 * block + 8):  # the first two only fetch ahead
            after = zero
            if i >= -1 and state[i + 1] != DEAD:
                at = FIELDS * nb.int64(slots[i + 1])
                occurrences = table[at + TALLY] & _LOW
                if occurrences >= 2:
                    after = (occurrences << _32) | (table[at + HASH] >> _32)
                else:
                    state[i + 1] = DEAD
            if i >= 8 * block and here != zero and here >= before and here >= after:
                wins = True
                if here in (before, after):
                    if tied < 0 or tied != i - 1 or sequence[i] != sequence[i - 1]:
                        run_start = i
                        while run_start > 0 and sequence[run_start - 1] == sequence[i]:
                            run_start -= 1
                    tied = i
                    if here == before:
                        wins = _wins_tie(sequence, i, i - 1, run_start)
                    if here == after:
                        wins = wins and _wins_tie(sequence, i, i + 1, run_start)
                if wins:
                    state[i] = SELECTED
                    entry = nb.int64(slots[i])
                    at = ((entry * _SPREAD) & NONE) >> 22
                    if pending[at] != entry:
                        if pending[at] >= 0:
                            atomic_add(table, FIELDS * pending[at] + TALLY, times[at] << _32)
                        pending[at], times[at] = entry, zero
                        if i < first_place[entry]:
                            atomic_min(first_place, entry, nb.uint32(i))
                    times[at] += nb.uint64(1)
            before = here
            here = after
    for at in range(PENDING):
        if pending[at] >= 0:
            atomic_add(table, FIELDS * pending[at] + TALLY, times[at] << _32)


@polled
@njit
def list_rules(table: UInt64, first_place: UInt32, entries: UInt32, places: UInt32) -> Any:
    """List the table entries whose pair is replaced, with the first position of each.

    Returns their number, and whether any position is selected at all. Entries that are not replaced get ``NONE`` as
    first position.
    """
    began = interrupts()
    out = 0
    any_selected = False
    for entry in range(len(first_place)):
        if entry & 0xFFFF == 0 and interrupts() != began:
            return out, any_selected
        tally = table[FIELDS * entry + TALLY]
        selected = tally >> _32
        if selected >= 2 and nb.uint64(2) * selected >= tally & _LOW:
            entries[out] = entry
            places[out] = first_place[entry]
            out += 1
        else:
            any_selected |= selected > 0
            first_place[entry] = NONE
    return out, any_selected or out > 0


@polled
@njit
def assign_rules(
    table: UInt64,
    entries: UInt32,
    vocabulary_size: int,
    known: int,
    rules: UInt32,
    left: UInt32,
    right: UInt32,
    index: UInt32,
) -> int:
    """Assign the listed entries their rules' symbols; return the new number of rules.

    A pair that already is a rule keeps its symbol. New rules are numbered in the given order and appended to ``left``
    and ``right``; ``index``, a hash table of rule numbers + 1, finds rules by pair.
    """
    began = interrupts()
    mask = nb.uint64(len(index) - 1)
    for k in range(len(entries)):
        if k & 0xFFFF == 0 and interrupts() != began:
            return known
        entry = nb.int64(entries[k])
        h = table[FIELDS * entry + HASH]
        first, second = pair_of(h)
        s = nb.int64(h & mask)
        while True:
            rule = nb.int64(index[s]) - 1
            if rule < 0:
                rule = known
                index[s] = rule + 1
                left[rule] = first
                right[rule] = second
                known += 1
                break
            if left[rule] == first and right[rule] == second:
                break
            s = (s + 1) & nb.int64(mask)
        rules[entry] = vocabulary_size + rule
    return known


@njit
def fill_index(left: UInt32, right: UInt32, known: int, index: UInt32) -> None:
    """Insert the existing rules into an empty, larger index."""
    mask = nb.uint64(len(index) - 1)
    for rule in range(known):
        s = nb.int64(hash_pair(left[rule], right[rule]) & mask)
        while index[s] != 0:
            s = (s + 1) & nb.int64(mask)
        index[s] = rule + 1


@polled
@njit
def rewrite(
    sequence: UInt32,
    state: UInt8,
    blocks: UInt64,
    slots: UInt32,
    rules: UInt32,
    first: int,
    stop: int,
    consumed: bool,
    stalled: bool,
) -> Any:
    """Replace and compact in place from ``first``; positions next to new symbols become alive.

    ``consumed``: the symbol at ``first`` is part of a rule at ``first - 1``. ``stalled``: no rule was made in this
    round, and selected positions become dead, so that adjacent ones can be selected. Returns the number of symbols
    written, the number of alive ones, and whether the first one is new.
    """
    began, look = interrupts(), first
    out = first
    alive = 0
    starts_new = False
    i = first + 1 if consumed else first
    while i < stop:
        if i >= look:
            if interrupts() != began:
                break
            look = i + LOOK
        if i & 7 == 0 and i + 72 <= stop and blocks[(i >> 3) + 8] != 0:
            for j in range(i + 64, i + 72):
                if state[j] == SELECTED:
                    prefetch(rules, nb.int64(slots[j]))
        if i & 7 == 0 and i + 8 <= stop and blocks[i >> 3] == 0:
            # nothing starts here: a dead range is copied unchanged
            if out > first and state[out - 1] != DEAD and sequence[i] == SEPARATOR:
                state[out - 1] = DEAD
                alive -= 1
            end = i + 8
            while end + 8 <= stop and blocks[end >> 3] == 0:
                end += 8
            if out != i:
                move(sequence, out, i, end - i)
                state[out : out + end - i] = DEAD
            out += end - i
            i = end
            continue
        symbol = sequence[i]
        was = state[i]
        if symbol == SEPARATOR:
            if out > first and state[out - 1] != DEAD:
                state[out - 1] = DEAD
                alive -= 1
            sequence[out] = SEPARATOR
            state[out] = DEAD
            out += 1
            i += 1
            continue
        if was == SELECTED and rules[slots[i]] != NONE:
            if out == first:
                starts_new = True
            elif sequence[out - 1] != SEPARATOR and state[out - 1] == DEAD:
                state[out - 1] = ALIVE
                alive += 1
            sequence[out] = rules[slots[i]]
            state[out] = ALIVE
            alive += 1
            i += 2
        else:
            keep = was != DEAD and not (stalled and was == SELECTED)
            sequence[out] = symbol
            state[out] = ALIVE if keep else DEAD
            alive += keep
            i += 1
        out += 1
    return out - first, alive, starts_new
