"""The passes of one round of batch RePair over a sequence of symbols; :mod:`.pairs_cpu` counts its pairs.

Every pass is split by position. Threads share the table of pairs: during selection they add to its tallies atomically.
The result depends neither on the order nor on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.repair.equal_rows_cpu import weight_of
from polars_tadoc.kernels.repair.pairs_cpu import (
    AHEAD,
    ALIVE,
    DEAD,
    FIELDS,
    NONE,
    PLACE,
    SELECTED,
    TALLY,
    WINDOW,
    Split,
    full_count,
    hash_pair,
    key_and_bucket,
    list_alive,
)
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.runtime.addresses import atomic_add, atomic_min, move, prefetch
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner, kernel

PENDING = 1 << 10
"""Entries whose selections a thread sums locally: hot cache lines would bounce between cores."""

LOOK = 1 << 16
"""Positions between polls for interrupts."""

_1, _2, _3, _8, _32 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(8), np.uint64(32)
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
    return hash_pair(sequence[i], sequence[i + _1]) > hash_pair(sequence[neighbour], sequence[neighbour + 1])


@njit(inline="always")
def _read_item(item: int, entry_bits: int, base: int) -> Any:
    """Split an item of a position into the tally stored for its pair and the pair's entry."""
    entry = base + (nb.uint64(item) & ((_1 << nb.uint64(entry_bits)) - _1))
    return nb.uint64(item) >> nb.uint64(entry_bits), nb.uint32(entry)


@inner
def _prioritise(
    sequence: UInt32, at: Any, counts: Any, entries: Any, first: int, many: int, entry_bits: int, table: UInt64
) -> None:
    """Replace the counts of alive positions from number ``first`` on by priorities: 0 if the pair occurs once."""
    full = full_count(entry_bits)
    any_full = nb.uint64(0)
    for k in range(nb.uint64(first), nb.uint64(many)):
        any_full |= nb.uint64(counts[k] == full)
    if any_full != 0:
        for k in range(nb.uint64(first), nb.uint64(many)):
            if counts[k] == full:
                counts[k] = table[FIELDS * nb.int64(entries[k]) + TALLY] & _LOW
    for k in range(nb.uint64(first), nb.uint64(many)):
        h = hash_pair(sequence[at[k]], sequence[at[k] + _1])
        counts[k] = ((counts[k] << _32) | (h >> _32)) * nb.uint64(counts[k] != 0)


@njit
def _tally(
    table: Any, classes: Any, entries: Any, places: Any, count: int, pending: Any, times: Any, chosen: Any
) -> None:
    """Count selected positions in the table, and copy their entries to ``chosen``."""
    for k in range(count):
        prefetch(table, FIELDS * nb.int64(entries[min(k + AHEAD, count - 1)]))
        entry = nb.int64(entries[k])
        chosen[k] = entry
        at = ((entry * _SPREAD) & NONE) >> 22
        if pending[at] != entry:
            if pending[at] >= 0:
                atomic_add(table, FIELDS * pending[at] + TALLY, times[at] << _32)
            pending[at], times[at] = entry, 0
            if places[k] < table[FIELDS * entry + PLACE]:
                atomic_min(table, FIELDS * entry + PLACE, places[k])
        times[at] += weight_of(classes[places[k]]) if len(classes) > 0 else _1


@inner
def _decide(sequence: UInt32, state: UInt8, at: Any, priorities: Any, wins: Any, many: int, run: Any) -> None:
    """Decide which of the alive positions ``at[1]`` to ``at[many - 2]`` win, and set their states.

    ``run`` has the last position whose priority tied with an adjacent one's, and where its run of one symbol starts.
    """
    last = nb.uint64(many) - _1
    tied = nb.uint64(0)
    for k in range(_1, last):  # without branches: the compiler makes vectors of it
        here = priorities[k]
        before = priorities[k - _1] * nb.uint64(at[k - _1] + _1 == at[k])
        after = priorities[k + _1] * nb.uint64(at[k] + _1 == at[k + _1])
        ties = nb.uint64(here != 0) & nb.uint64(here >= before) & nb.uint64(here >= after)
        above = ties & nb.uint64(here != before) & nb.uint64(here != after)
        wins[k] = above + _2 * (ties - above)
        tied += ties - above
    if tied != 0:
        for k in range(_1, last):
            if wins[k] == 2:
                wins[k] = _wins_ties(sequence, at[k - _1 : k + _2], priorities[k - _1 : k + _2], run)
    for k in range(_1, last):
        state[at[k]] = nb.uint8(priorities[k] != 0) + wins[k]


@inner
def _wins_ties(sequence: UInt32, at: Any, priorities: Any, run: Any) -> Any:
    """Tell whether the second of three alive positions wins all its ties, having no less priority than the others."""
    here = nb.int64(at[1])
    if run[0] < 0 or run[0] != here - 1 or sequence[here] != sequence[here - 1]:
        run[1] = here
        while run[1] > 0 and sequence[run[1] - 1] == sequence[here]:
            run[1] -= 1
    run[0] = here
    wins = True
    if at[0] + _1 == at[1] and priorities[0] == priorities[1]:
        wins = _wins_tie(sequence, here, here - 1, run[1])
    if at[1] + _1 == at[2] and priorities[1] == priorities[2]:
        wins = wins and _wins_tie(sequence, here, here + 1, run[1])
    return wins


@polled
@njit
def select(
    sequence: UInt32,
    state: UInt8,
    blocks: UInt64,
    classes: UInt8,
    first_block: int,
    stop_block: int,
    split: Split,
    starts: UInt64,
    items: Any,
    entry_bits: int,
    bases: UInt64,
    table: UInt64,
    chosen: UInt32,
) -> Any:
    """Select the positions whose pair has priority over both adjacent ones; count them and find each pair's first.

    Positions whose pair occurs once become dead. Priority is (count, hash of the pair); only the upper 32 bits of the
    hash are compared unless they tie. ``items``, from ``starts`` on by bucket, has the pairs' counts and entries as
    :func:`.pairs_cpu.count` leaves them; the selected positions' entries are written to ``chosen``. Returns their
    number.
    """
    began = interrupts()
    start, stop = nb.uint64(8 * first_block), nb.uint64(8 * stop_block)
    following = starts.copy()
    count = 0
    run = np.full(2, -1, np.int64)
    # alive positions, first the last one of the window before
    room = WINDOW + 11
    at, priorities, wins = np.empty(room, np.uint64), np.empty(room, np.uint64), np.empty(room, np.uint8)
    entries = np.empty(room, np.uint32)
    own_entries, places = np.empty(room, np.uint32), np.empty(room, np.uint64)
    pending, times = np.full(PENDING, -1, np.int64), np.zeros(PENDING, np.uint64)
    at[0], priorities[0], entries[0] = start - _2, 0, 0  # adjacent to none
    many = known = _1
    if 0 < start < stop and state[start - _1] != DEAD:  # the last position of the previous share
        at[0] = start - _1
        _, bucket = key_and_bucket(sequence[start - _1], sequence[start], split)
        priorities[0], entries[0] = _read_item(items[following[bucket] - _1], entry_bits, bases[bucket])
        known = nb.uint64(0)
    block, ends = first_block, False
    while not ends:
        if interrupts() != began:
            return count
        listed, block = list_alive(state, blocks, block, stop_block, at[many:])
        stop_listed = many + listed
        for k in range(many, stop_listed):
            i = at[k]
            _, bucket = key_and_bucket(sequence[i], sequence[i + _1], split)
            place = following[bucket]
            prefetch(items, nb.int64(place) + AHEAD)  # more streams than the hardware prefetches
            following[bucket] = place + _1
            priorities[k], entries[k] = _read_item(items[place], entry_bits, bases[bucket])
        many = read = stop_listed
        ends = block == stop_block
        if ends:  # the first position of the next share
            at[many], priorities[many], entries[many] = stop, 0, 0
            if state[stop] != DEAD:
                _, bucket = key_and_bucket(sequence[stop], sequence[stop + _1], split)
                priorities[many], entries[many] = _read_item(items[following[bucket]], entry_bits, bases[bucket])
                read += _1
            many += _1
        _prioritise(sequence, at, priorities, entries, known, read, entry_bits, table)
        _decide(sequence, state, at, priorities, wins, nb.int64(many), run)
        waiting = nb.uint64(0)
        for k in range(_1, many - _1):  # branches would be unpredictable
            own_entries[waiting] = entries[k]
            places[waiting] = at[k]
            waiting += wins[k]
        own_chosen = chosen[count : count + nb.int64(waiting)]
        _tally(table, classes, own_entries, places, nb.int64(waiting), pending, times, own_chosen)
        count += nb.int64(waiting)
        kept = min(many, _2)
        for k in range(kept):
            last = many - kept + k
            at[k], priorities[k], entries[k] = at[last], priorities[last], entries[last]
        many = known = kept
    for slot in range(PENDING):
        if pending[slot] >= 0:
            atomic_add(table, FIELDS * pending[slot] + TALLY, times[slot] << _32)
    return count


@kernel
def count_replaced(chosen: UInt32, rules: UInt32) -> int:
    """Count the selected positions whose pair is replaced."""
    many = 0
    for k in range(len(chosen)):
        prefetch(rules, nb.int64(chosen[min(k + AHEAD, len(chosen) - 1)]))
        many += rules[chosen[k]] != NONE
    return many


@polled
@njit
def rewrite(
    sequence: UInt32,
    state: UInt8,
    blocks: UInt64,
    classes: UInt8,
    chosen: UInt32,
    rules: UInt32,
    first: int,
    stop: int,
    consumed: bool,
    stalled: bool,
    made: UInt32,
    made_state: UInt8,
    made_classes: UInt8,
    to: int,
    most: int,
) -> Any:
    """Replace and compact, writing from position ``to`` on; positions next to new symbols become alive.

    Writes at most ``most`` symbols, their states and classes, to ``made``, ``made_state`` and ``made_classes``, which
    may be those given if ``to`` is ``first``. The ``classes`` of positions follow them, unless they are empty.
    ``chosen`` has the selected positions' entries, then ``AHEAD`` items of any value. ``consumed``: the symbol at
    ``first`` is part of a rule at ``first - 1``; the one at ``stop - 1`` is not of one at ``stop - 2``. ``stalled``: no
    rule was made in this round, and selected positions become dead, so that adjacent ones can be selected. Returns the
    number of symbols written, the number of alive ones, and whether the first one is new.
    """
    began, stalls = interrupts(), nb.uint64(stalled)
    out = start = nb.uint64(to)
    if most == 0:  # the only symbol is part of the rule before
        return 0, 0, False
    is_apart = made.ctypes.data != sequence.ctypes.data
    taken = alive = nb.uint64(0)
    starts_new = before = before_word = nb.uint64(0)  # the last position written: whether it is alive, and a word
    skips = nb.uint64(consumed)
    i = look = nb.uint64(first)
    end = nb.uint64(stop)
    while i < end:
        if i >= look:
            if interrupts() != began:
                break
            look = i + nb.uint64(LOOK)
        if skips == 0 and i + _8 <= end and blocks[i >> _3] == 0:
            # nothing starts here: a dead range is copied unchanged
            if before != 0 and sequence[i] == SEPARATOR:
                made_state[out - _1] = DEAD
                alive -= _1
            last = i + _8
            while last + _8 <= end and blocks[last >> _3] == 0:
                last += _8
            if is_apart:
                for k in range(last - i):
                    made[out + k] = sequence[i + k]
            elif out != i:
                move(sequence, nb.int64(out), nb.int64(i), nb.int64(last - i))
            if is_apart or out != i:
                made_state[out : out + last - i] = DEAD
                if len(classes) > 0:
                    made_classes[out : out + last - i] = classes[i:last]
            out += last - i
            i = last
            before, before_word = nb.uint64(0), nb.uint64(made[out - _1] != SEPARATOR)
            continue
        for _ in range(min(_8, end - i)):
            # without branches, which are hard to predict here; the next symbol overwrites that of a consumed one
            symbol, was = sequence[i], state[i]
            is_selected = nb.uint64(was == SELECTED)
            rule = rules[nb.uint64(chosen[taken]) * is_selected]
            prefetch(rules, nb.int64(chosen[taken + nb.uint64(AHEAD - 1)]))
            taken += is_selected
            is_rule = is_selected & nb.uint64(rule != NONE)
            is_word = nb.uint64(symbol != SEPARATOR)
            is_alive = is_rule | (nb.uint64(was != DEAD) & ~(stalls & is_selected))
            revived = (before | (is_rule & before_word)) & is_word
            alive += revived - before
            made_state[max(out, start + _1) - _1] = revived
            starts_new |= is_rule & nb.uint64(out == start)
            writes = _1 - skips
            if len(classes) > 0:
                made_classes[out] = classes[i]
            made[out] = rule if is_rule != 0 else symbol
            made_state[out] = is_alive
            out += writes
            alive += is_alive * writes
            before = is_alive if writes != 0 else revived
            before_word = is_word if writes != 0 else before_word
            skips = is_rule
            i += _1
    return nb.int64(out - start), nb.int64(alive), starts_new != 0


@polled
@njit
def list_regions(
    sequence: UInt32,
    state: UInt8,
    blocks: UInt64,
    first: int,
    stop: int,
    size: int,
    margin: int,
    starts: Int64,
    stops: Int64,
) -> int:
    """List regions within ``margin`` symbols of alive pairs in some blocks, with whole runs; return their number."""
    began = interrupts()
    many = 0
    for block in range(first, stop):
        if blocks[block] == 0:
            continue
        if interrupts() != began:
            break
        for i in range(8 * block, 8 * block + 8):
            if state[i] == DEAD:
                continue
            start, end = max(i - margin, 0), stops[many - 1] if many > 0 else 0
            while start > end and sequence[start - 1] == sequence[start]:
                start -= 1
            if many == 0 or start > end:
                starts[many] = start
                many += 1
            stops[many - 1] = min(i + 2 + margin, size)
    return many


@polled
@kernel
def take_regions(source: Any, starts: Int64, stops: Int64, between: int, target: Any) -> None:
    """Copy regions, and a value after each."""
    began = interrupts()
    out = 0
    for k in range(len(starts)):
        if interrupts() != began:
            return
        for i in range(starts[k], stops[k]):
            target[out] = source[i]
            out += 1
        target[out] = between
        out += 1


@polled
@kernel
def count_ends(sequence: UInt32, first: int, stop: int, starts: Int64, stops: Int64) -> Any:
    """Count the rows of some regions, each of which ends one."""
    began = interrupts()
    rows = nb.int64(stop - first)
    for k in range(first, stop):
        if interrupts() != began:
            break
        for i in range(starts[k], stops[k]):
            rows += nb.int64(sequence[i] == SEPARATOR)
    return rows


@polled
@kernel
def put_regions(
    sequence: UInt32,
    state: UInt8,
    classes: UInt8,
    starts: Int64,
    stops: Int64,
    source: int,
    end: int,
    symbols: UInt32,
    states: UInt8,
    own_classes: UInt8,
    taken: int,
    made: UInt32,
    made_state: UInt8,
    made_classes: UInt8,
    out: int,
) -> Any:
    """Put rewritten regions, each followed by ``SEPARATOR``, in place of the original ones; return the new size.

    Copies the symbols between regions, from ``source`` to before ``end``. Reads regions from ``taken`` on; writes from
    ``out`` on, maybe to the same memory.
    """
    began = interrupts()
    out, is_apart = nb.int64(out), made.ctypes.data != sequence.ctypes.data
    source = nb.int64(source)
    for k in range(len(starts) + 1):
        if interrupts() != began:
            break
        rest = nb.int64(starts[k] if k < len(starts) else end) - source
        if is_apart:
            for i in range(rest):
                made[out + i] = sequence[source + i]
            if len(classes) > 0:
                for i in range(rest):
                    made_classes[out + i] = classes[source + i]
        else:
            move(sequence, out, source, rest)
            if len(classes) > 0:
                move(classes, out, source, rest)
        made_state[out : out + rest] = DEAD
        out += rest
        if k == len(starts):
            break
        ends = 1
        for i in range(starts[k], stops[k]):
            ends += sequence[i] == SEPARATOR
        while True:
            ends -= symbols[taken] == SEPARATOR
            if ends == 0:
                break
            made[out] = symbols[taken]
            made_state[out] = states[taken]
            if len(classes) > 0:
                made_classes[out] = own_classes[taken]
            out += 1
            taken += 1
        taken += 1
        source = nb.int64(stops[k])
    return out
