"""The passes of one round of batch RePair over a sequence of symbols; :mod:`.pairs_cpu` counts its pairs.

Every pass is split by position. What threads share is read-mostly: selection only lowers a pair's first position, and
:func:`.pairs_cpu.count_selected` counts selected positions by bucket. The result depends neither on the order nor on
the number of threads.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.repair.pairs_cpu import (
    AHEAD,
    ALIVE,
    CHOSEN_BIT,
    DEAD,
    NONE,
    RULE,
    SELECTED,
    WINDOW,
    Split,
    find_buckets,
    full_count,
    hash_of,
    hash_pair,
    key_and_bucket,
    list_alive,
    pair_of,
)
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.runtime.addresses import atomic_min, move, prefetch
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner, kernel

_1, _2, _3, _8, _32 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(8), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_CHOSEN = np.uint32(1 << CHOSEN_BIT)


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
    return (nb.uint64(item) & ~nb.uint64(_CHOSEN)) >> nb.uint64(entry_bits), nb.uint32(entry)


@inner
def _prioritise(pairs: Any, counts: Any, entries: Any, first: int, many: int, entry_bits: int, table: UInt64) -> None:
    """Replace the counts of alive positions from number ``first`` on by priorities: 0 if the pair occurs once."""
    full = full_count(entry_bits)
    any_full = nb.uint64(0)
    for k in range(nb.uint64(first), nb.uint64(many)):
        any_full |= nb.uint64(counts[k] == full)
    if any_full != 0:
        for k in range(nb.uint64(first), nb.uint64(many)):
            if counts[k] == full:
                counts[k] = table[entries[k]] & _LOW
    for k in range(nb.uint64(first), nb.uint64(many)):
        counts[k] = ((counts[k] << _32) | (hash_of(pairs[k]) >> _32)) * nb.uint64(counts[k] != 0)


@inner
def _choose(items: Any, rules: UInt32, entries: Any, at: Any, item_places: Any, count: int, chosen: Any) -> None:
    """Mark the items of selected positions, find the first one of each pair, and copy their entries to ``chosen``."""
    for k in range(count):
        prefetch(rules, nb.int64(entries[k]))
    for k in range(count):
        entry = nb.int64(entries[k])
        chosen[k] = entry
        items[item_places[k]] |= _CHOSEN
        if at[k] < rules[entry]:
            atomic_min(rules, entry, at[k])


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
    first_block: int,
    stop_block: int,
    split: Split,
    starts: UInt64,
    items: Any,
    entry_bits: int,
    bases: UInt64,
    table: UInt64,
    rules: UInt32,
    chosen: UInt32,
) -> Any:
    """Select the positions whose pair has priority over both adjacent ones, and find each pair's first.

    Positions whose pair occurs once become dead. Priority is (count, hash of the pair); only the upper 32 bits of the
    hash are compared unless they tie. ``items``, from ``starts`` on by bucket, has the pairs' counts and entries as
    :func:`.pairs_cpu.count` leaves them; those of selected positions are marked, and their entries are written to
    ``chosen``. ``rules`` of entries become the lowest selected position. Returns the number of selected positions.
    """
    began = interrupts()
    start, stop = nb.uint64(8 * first_block), nb.uint64(8 * stop_block)
    following = starts.copy()
    count = 0
    run = np.full(2, -1, np.int64)
    # alive positions, first the last one of the window before
    room = WINDOW + 11
    at, priorities, wins = np.empty(room, np.uint64), np.empty(room, np.uint64), np.empty(room, np.uint8)
    pairs, entries, item_places = np.empty(room, np.uint64), np.empty(room, np.uint32), np.empty(room, np.uint64)
    buckets = np.empty(room, np.uint16)
    own_entries, own_at = np.empty(room, np.uint32), np.empty(room, np.uint64)
    at[0], priorities[0], entries[0] = start - _2, 0, 0  # adjacent to none
    many = known = _1
    if 0 < start < stop and state[start - _1] != DEAD:  # the last position of the previous share
        at[0] = start - _1
        pairs[0] = pair_of(sequence[start - _1], sequence[start])
        _, bucket = key_and_bucket(sequence[start - _1], sequence[start], split)
        priorities[0], entries[0] = _read_item(items[following[bucket] - _1], entry_bits, bases[bucket])
        known = nb.uint64(0)
    block, ends = first_block, False
    while not ends:
        if interrupts() != began:
            return count
        listed, block = list_alive(state, blocks, block, stop_block, at[many:])
        stop_listed = many + listed
        find_buckets(sequence, at, many, stop_listed, split, pairs, buckets)
        for k in range(many, stop_listed):
            bucket = nb.uint64(buckets[k])
            place = following[bucket]
            item_places[k] = place
            prefetch(items, nb.int64(place) + AHEAD)  # more streams than the hardware prefetches
            following[bucket] = place + _1
            priorities[k], entries[k] = _read_item(items[place], entry_bits, bases[bucket])
        many = read = stop_listed
        ends = block == stop_block
        if ends:  # the first position of the next share
            at[many], priorities[many], entries[many] = stop, 0, 0
            if state[stop] != DEAD:
                pairs[many] = pair_of(sequence[stop], sequence[stop + _1])
                _, bucket = key_and_bucket(sequence[stop], sequence[stop + _1], split)
                priorities[many], entries[many] = _read_item(items[following[bucket]], entry_bits, bases[bucket])
                read += _1
            many += _1
        _prioritise(pairs, priorities, entries, known, read, entry_bits, table)
        _decide(sequence, state, at, priorities, wins, nb.int64(many), run)
        waiting = nb.uint64(0)
        for k in range(_1, many - _1):  # branches would be unpredictable
            own_entries[waiting] = entries[k]
            own_at[waiting] = at[k]
            item_places[waiting] = item_places[k]
            waiting += wins[k]
        own_chosen = chosen[count : count + nb.int64(waiting)]
        _choose(items, rules, own_entries, own_at, item_places, nb.int64(waiting), own_chosen)
        count += nb.int64(waiting)
        kept = min(many, _2)
        for k in range(kept):
            last = many - kept + k
            at[k], priorities[k] = at[last], priorities[last]
            entries[k], item_places[k] = entries[last], item_places[last]
        many = known = kept
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

    Overwrites ``sequence`` and ``state``. Writes at most ``most`` symbols, their states and classes, to ``made``,
    ``made_state`` and ``made_classes``, which may be those given if ``to`` is ``first``. The ``classes`` of positions
    follow them, unless they are empty. ``chosen`` has the selected positions' entries, then ``AHEAD`` items of any
    value. ``consumed``: the symbol at ``first`` is part of a rule at ``first - 1``; the one at ``stop - 1`` is not of
    one at ``stop - 2``. ``stalled``: no rule was made in this round, and selected positions become dead, so that
    adjacent ones can be selected. Returns the number of symbols written, the number of alive ones, and whether the
    first one is new.
    """
    began, stalls = interrupts(), nb.uint8(stalled)
    out = start = nb.uint64(to)
    if most == 0:  # the only symbol is part of the rule before
        return 0, 0, False
    is_apart = made.ctypes.data != sequence.ctypes.data
    taken = alive = nb.uint64(0)
    starts_new = before = before_word = nb.uint64(0)  # the last position written: whether it is alive, and a word
    room = WINDOW + 1
    symbols, states, places = np.empty(room, np.uint32), np.empty(room, np.uint8), np.empty(room, np.uint64)
    skips, i, end = nb.uint64(consumed), nb.uint64(first), nb.uint64(stop)
    while i < end:
        if interrupts() != began:
            break
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
        many = min(end - i, _8)
        while many < WINDOW and i + many + _8 <= end and blocks[(i + many) >> _3] != 0:
            many += _8
        taken += _put_rules(sequence, state, i, many, chosen[taken:], rules, places)
        kept = _keep(sequence, state, classes, i, many, skips, symbols, states, made_classes[out:])
        i += many
        skips = nb.uint64(state[i - _1] == RULE)
        if kept == 0:
            continue
        is_new = nb.uint64(states[0] == RULE)
        if out == start:
            starts_new = is_new
        else:
            revived = (before | (is_new & before_word)) & nb.uint64(symbols[0] != SEPARATOR)
            made_state[out - _1] = revived
            alive += revived - before
        before = nb.uint64(_lives(states[kept - _1], stalls))
        before_word = nb.uint64(symbols[kept - _1] != SEPARATOR)
        alive += before + _write_window(symbols, states, kept, stalls, made, made_state, out)
        out += kept
        made_state[out - _1] = before
    return nb.int64(out - start), nb.int64(alive), starts_new != 0


@inner
def _put_rules(sequence: UInt32, state: UInt8, i: int, many: int, chosen: Any, rules: UInt32, places: Any) -> Any:
    """Replace the first symbols of replaced pairs, whose state becomes ``RULE``; return the number of selected ones."""
    selected = nb.uint64(0)
    for k in range(i, i + many):  # branches would be unpredictable
        places[selected] = k
        selected += nb.uint64(state[k] == SELECTED)
    for k in range(selected):
        prefetch(rules, nb.int64(chosen[k + nb.uint64(AHEAD - 1)]))
        rule, place = rules[chosen[k]], places[k]
        is_rule = rule != NONE
        sequence[place] = rule if is_rule else sequence[place]
        state[place] = RULE if is_rule else SELECTED
    return selected


@inner
def _keep(
    sequence: UInt32, state: UInt8, classes: Any, i: int, many: int, skips: int, symbols: Any, states: Any, made: Any
) -> Any:
    """Copy positions, their classes to ``made``, but no second ones of replaced pairs; return their number."""
    kept = nb.uint64(0)
    for k in range(i, i + many):
        symbols[kept], states[kept] = sequence[k], state[k]
        if len(classes) > 0:
            made[kept] = classes[k]
        kept += _1 - skips
        skips = nb.uint64(state[k] == RULE)
    return kept


@njit(inline="always")
def _lives(state: int, stalls: int) -> Any:
    """Tell whether a position is alive if a word follows."""
    return nb.uint8(state != DEAD) & (nb.uint8(state != SELECTED) | nb.uint8(stalls == 0))


@inner
def _write_window(symbols: Any, states: Any, kept: int, stalls: int, made: UInt32, made_state: UInt8, out: int) -> Any:
    """Write symbols, and the states of all but the last; return how many of these are alive."""
    for k in range(kept):
        made[out + k] = symbols[k]
    alive = nb.uint64(0)
    for k in range(kept - _1):
        is_revived = nb.uint8(states[k + _1] == RULE) & nb.uint8(symbols[k] != SEPARATOR)
        lives = (_lives(states[k], stalls) | is_revived) & nb.uint8(symbols[k + _1] != SEPARATOR)
        made_state[out + k] = lives
        alive += nb.uint64(lives)
    return alive


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
