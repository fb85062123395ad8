"""The passes of one round of batch RePair over a sequence of symbols.

Work is split two ways. Passes that touch a pair's counters are split by *pair*: every thread walks the
whole sequence and serves the pairs whose hash it owns, so no counter is shared and nothing is atomic.
Passes that only read counters are split by *position*. Neither split shows in the result.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cpu.memory import prefetch
from polars_tadoc.kernels.cpu.tokenize import SEPARATOR

UInt8 = npt.NDArray[np.uint8]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]

DEAD, ALIVE, SELECTED = 0, 1, 2
"""State of a position: whether the pair that starts there may still occur twice, or is to be replaced."""

NO_RULE = 0xFFFFFFFF

FIELDS = 4
LEFT, RIGHT, COUNT, CHOSEN = range(FIELDS)
"""A table entry: the pair, its occurrences, and how many of them are selected; 16 bytes, one cache line's quarter."""

BATCH = 64
"""Positions whose cache lines are asked for before the first of them is read."""

_K1, _K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_32 = np.uint64(32)


@nb.njit(nogil=True, cache=True, inline="always")
def _hash(left: int, right: int) -> Any:
    h = ((nb.uint64(left) << _32) | nb.uint64(right)) * _K1
    h = (h ^ (h >> _32)) * _K2
    return h ^ (h >> _32)


@nb.njit(nogil=True, cache=True, inline="always")
def _owner(h: int, threads: int) -> Any:
    return nb.int64(((nb.uint64(h) >> _32) * nb.uint64(threads)) >> _32)


@nb.njit(nogil=True, cache=True)
def mark_alive(sequence: UInt32, state: UInt8, first: int, stop: int) -> int:
    """Mark every position whose pair lies within one row; returns how many."""
    count = 0
    for i in range(first, stop):
        inside = sequence[i] != SEPARATOR and i + 1 < len(sequence) and sequence[i + 1] != SEPARATOR
        state[i] = ALIVE if inside else DEAD
        count += inside
    return count


@nb.njit(nogil=True, cache=True)
def sieve(sequence: UInt32, state: UInt8, blocks: UInt64, thread: int, threads: int, seen: UInt8) -> int:
    """Count this thread's pairs in one-byte counters that saturate at 2; returns how many reached it.

    Most pairs of natural text occur once: they never get an entry in the exact table. ``blocks`` is
    ``state`` eight positions at a time, so that dead stretches cost an eighth.
    """
    mask = nb.uint64(len(seen) - 1)
    start = len(blocks) * thread // threads  # threads start apart, so that they seldom write one cache line
    twice = 0
    last = len(sequence) - 1  # no pair starts there
    waiting = np.empty(BATCH + 16, np.int64)
    many = 0
    for part in range(2):
        stop = len(blocks) if part == 0 else start
        for block in range(start if part == 0 else 0, stop):
            if blocks[block] != 0:
                for i in range(8 * block, min(8 * block + 8, last)):
                    h = _hash(sequence[i], sequence[i + 1])
                    waiting[many] = nb.int64(h & mask)
                    many += nb.int64(
                        (state[i] != DEAD) & (_owner(h, threads) == thread)
                    )  # a branch would be a coin toss
            if many >= BATCH or block == stop - 1:
                for k in range(many):
                    prefetch(seen, waiting[k])
                for k in range(many):
                    at = waiting[k]
                    if seen[at] < 2:
                        seen[at] += 1
                        twice += seen[at] == 2
                many = 0
    return twice


@nb.njit(nogil=True, cache=True)
def count(
    sequence: UInt32,
    state: UInt8,
    blocks: UInt64,
    thread: int,
    threads: int,
    seen: UInt8,
    table: UInt32,
    slots: UInt32,
) -> int:
    """Count this thread's pairs, exactly; ``slots`` gets each position's table entry.

    ``table`` holds one table per thread, one after another, ``FIELDS`` numbers an entry. Pairs that
    ``seen`` (if it is not empty) saw once die. Returns the entries made, or -1 where the table is too small.
    """
    sieved = len(seen) > 0
    seen_mask = nb.uint64(len(seen) - 1)
    capacity = len(table) // FIELDS // threads
    base = capacity * thread
    mask = capacity - 1
    room = capacity - capacity // 8
    entries = 0
    start = len(blocks) * thread // threads
    last = len(sequence) - 1
    places = np.empty(BATCH + 16, np.int64)
    hashes = np.empty(BATCH + 16, np.uint64)
    many = 0
    for part in range(2):
        stop = len(blocks) if part == 0 else start
        for block in range(start if part == 0 else 0, stop):
            if blocks[block] != 0:
                for i in range(8 * block, min(8 * block + 8, last)):
                    h = _hash(sequence[i], sequence[i + 1])
                    places[many] = i
                    hashes[many] = h
                    many += nb.int64((state[i] != DEAD) & (_owner(h, threads) == thread))
            if many < BATCH and block != stop - 1:
                continue
            left = many
            if sieved:
                for k in range(many):
                    prefetch(seen, nb.int64(hashes[k] & seen_mask))
                left = 0
                for k in range(many):
                    i, h = places[k], hashes[k]
                    again = seen[nb.int64(h & seen_mask)] >= 2
                    if not again:
                        state[i] = DEAD
                    places[left] = i
                    hashes[left] = h
                    left += nb.int64(again)
            many = 0
            for k in range(left):
                prefetch(table, FIELDS * (base + (nb.int64(hashes[k] >> nb.uint64(8)) & mask)))
            for k in range(left):
                i = places[k]
                first, second = sequence[i], sequence[i + 1]
                s = nb.int64(hashes[k] >> nb.uint64(8)) & mask
                while True:
                    at = FIELDS * (base + s)
                    if table[at + COUNT] == 0:
                        if entries >= room:
                            return -1
                        entries += 1
                        table[at + LEFT] = first
                        table[at + RIGHT] = second
                        break
                    if table[at + LEFT] == first and table[at + RIGHT] == second:
                        break
                    s = (s + 1) & mask
                table[at + COUNT] += nb.uint32(1)
                slots[i] = base + s
    return entries


@nb.njit(nogil=True, cache=True)
def _wins_tie(sequence: UInt32, i: int, neighbour: int, run_start: int) -> Any:
    """Settle equal priorities of the pairs at two adjacent positions.

    Equal pairs stand side by side only within a run of one symbol: there every other position counts, from
    the run's start, so that equal runs are cut alike wherever they stand.
    """
    if sequence[i] == sequence[neighbour] and sequence[i + 1] == sequence[neighbour + 1]:
        return (i - run_start) & 1 == 0
    return _hash(sequence[i], sequence[i + 1]) > _hash(sequence[neighbour], sequence[neighbour + 1])


@nb.njit(nogil=True, cache=True)
def select(
    sequence: UInt32, state: UInt8, blocks: UInt64, slots: UInt32, table: UInt32, first_block: int, stop_block: int
) -> None:
    """Select the positions whose pair has priority over both neighbours.

    Positions whose pair occurs once die. Priority is (count, hash of the pair); of the hash the upper 32 bits are
    looked at unless they tie.
    """
    zero = nb.uint64(0)
    before = here = after = zero
    run_start = tied = nb.int64(-1)
    for block in range(first_block, stop_block):
        if blocks[block] == 0:
            continue
        if 8 * block + 72 <= len(slots):
            for i in range(8 * block + 64, 8 * block + 72):
                prefetch(table, FIELDS * nb.int64(slots[i]))
        # here is carried over the block's positions; at its start it is read anew
        for i in range(8 * block - 1, 8 * block + 8):
            after = zero
            if state[i + 1] != DEAD:
                occurrences = table[FIELDS * nb.int64(slots[i + 1]) + COUNT]
                if occurrences >= 2:
                    h = _hash(sequence[i + 1], sequence[i + 2])
                    after = (nb.uint64(occurrences) << _32) | (h >> _32)
                else:
                    state[i + 1] = DEAD
            if i < 8 * block:
                before = zero
                if i >= 0 and state[i] != DEAD:
                    occurrences = table[FIELDS * nb.int64(slots[i]) + COUNT]
                    if occurrences >= 2:
                        h = _hash(sequence[i], sequence[i + 1])
                        before = (nb.uint64(occurrences) << _32) | (h >> _32)
                here = after
                continue
            if here != zero and here >= before and here >= after:
                wins = True
                if here == before or here == after:
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
            before = here
            here = after


@nb.njit(nogil=True, cache=True)
def count_selected(
    state: UInt8, blocks: UInt64, slots: UInt32, thread: int, threads: int, table: UInt32, first_place: UInt32
) -> Any:
    """Count this thread's pairs' selected positions and find the first.

    Returns how many pairs get a rule, and whether any position is selected at all.
    """
    capacity = len(table) // FIELDS // threads
    low, high = capacity * thread, capacity * (thread + 1)
    start = len(blocks) * thread // threads
    rules = 0
    any_selected = False
    for part in range(2):
        for block in range(start if part == 0 else 0, len(blocks) if part == 0 else start):
            if blocks[block] == 0:
                continue
            for i in range(8 * block, 8 * block + 8):
                if state[i] != SELECTED:
                    continue
                entry = nb.int64(slots[i])
                if entry < low or entry >= high:
                    continue
                any_selected = True
                at = FIELDS * entry + CHOSEN
                table[at] += nb.uint32(1)
                rules += table[at] == 2
                if table[at] == 1 or i < first_place[entry]:
                    first_place[entry] = i
    return rules, any_selected


@nb.njit(nogil=True, cache=True)
def list_rules(table: UInt32, first_place: UInt32, entries: UInt32, places: UInt32) -> None:
    """List the table entries whose pair is replaced, with the first place each is used."""
    out = 0
    for entry in range(len(first_place)):
        if table[FIELDS * entry + CHOSEN] >= 2:
            entries[out] = entry
            places[out] = first_place[entry]
            out += 1


@nb.njit(nogil=True, cache=True)
def assign_rules(
    table: UInt32,
    entries: UInt32,
    vocabulary_size: int,
    known: int,
    rules: UInt32,
    left: UInt32,
    right: UInt32,
    index: UInt32,
) -> int:
    """Give the listed entries their rules' symbols, the others ``NO_RULE``; returns how many rules there are now.

    A pair that is a rule already keeps its symbol. New rules are numbered in the order given and appended
    to ``left`` and ``right``; ``index``, a hash table of rule numbers + 1, finds rules by pair.
    """
    for entry in range(len(rules)):
        if table[FIELDS * entry + CHOSEN] < 2:
            rules[entry] = NO_RULE
    mask = nb.uint64(len(index) - 1)
    for k in range(len(entries)):
        entry = nb.int64(entries[k])
        first, second = table[FIELDS * entry + LEFT], table[FIELDS * entry + RIGHT]
        s = nb.int64(_hash(first, second) & mask)
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


@nb.njit(nogil=True, cache=True)
def fill_index(left: UInt32, right: UInt32, known: int, index: UInt32) -> None:
    """Enter the rules made so far into an empty, larger index."""
    mask = nb.uint64(len(index) - 1)
    for rule in range(known):
        s = nb.int64(_hash(left[rule], right[rule]) & mask)
        while index[s] != 0:
            s = (s + 1) & nb.int64(mask)
        index[s] = rule + 1


@nb.njit(nogil=True, cache=True)
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
    """Replace and compact in place from ``first``; new neighbours come alive.

    ``consumed``: the symbol at ``first`` went into a rule at ``first - 1``. ``stalled``: no rule was made
    in this round, and what was selected in vain dies, so that its neighbours get their turn. Returns the
    symbols written, how many of them are alive, and whether the first one is new.
    """
    out = first
    alive = 0
    starts_new = False
    i = first + 1 if consumed else first
    while i < stop:
        if i & 7 == 0 and i + 72 <= stop and blocks[(i >> 3) + 8] != 0:
            for j in range(i + 64, i + 72):
                if state[j] == SELECTED:
                    prefetch(rules, nb.int64(slots[j]))
        if i & 7 == 0 and i + 8 <= stop and blocks[i >> 3] == 0:
            # nothing starts here: a dead stretch moves as it is
            if out > first and state[out - 1] != DEAD and sequence[i] == SEPARATOR:
                state[out - 1] = DEAD
                alive -= 1
            if out != i:
                for j in range(8):
                    sequence[out + j] = sequence[i + j]
                    state[out + j] = DEAD
            out += 8
            i += 8
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
        if was == SELECTED and rules[slots[i]] != NO_RULE:
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
