"""Decodes the bodies and rows of :mod:`polars_tadoc.kernels.host.grammars.coded_symbols` that have no predictions.

A symbol that occurred before takes one path, whatever its class: kinds are hard to foresee, so a branch on one costs
more than all other work on a symbol.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.grammars.coded_streams import (
    ROOM,
    STATES,
    are_spent,
    code_of,
    ends_at,
    load_states,
    place_in,
    read_codes,
    with_room,
)
from polars_tadoc.kernels.host.grammars.coded_symbols import (
    CLASSES,
    END,
    EXACT,
    LONG_RULE,
    MAX_CODES,
    MAX_MEMBERS,
    NEW_RULE,
    NEW_WORD,
    OK,
    OLD,
    OPEN_RULE,
    RULE_CLASS,
    SHAPES,
    STEP,
    TRUNCATED,
    WORD_CLASS,
    WRONG_COUNT,
    WRONG_END,
    WRONG_PLACE,
    WRONG_TABLE,
    context_of,
    run_of,
)
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner

_POLL = (1 << 12) - 1
"""Between looks for an interrupt, this number of events, less 1, a power of two less 1."""

_1, _2 = np.uint64(1), np.uint64(2)
LIST = np.uint64(4)
"""Numbers of a list of symbols, by kind: its start, its length, and what a use takes from a member."""

USE = np.uint64(28)
"""A member is its symbol, and above this bit the uses after which it leaves, if its class is exact."""

_SYMBOL = np.uint64(MAX_CODES - 1)


@njit
def _read_runs(stream: UInt32, at: int, states: UInt64, entries: UInt32, kinds: UInt8) -> int:
    """Decode kinds in four runs side by side; return the place in the stream, -1 if interrupted."""
    began = interrupts()
    count = nb.uint64(len(kinds))
    run = nb.uint64(run_of(len(kinds)))
    x_0, x_1, x_2, x_3 = states[0], states[1], states[2], states[3]
    table_0, table_1, table_2, table_3 = 0, 0, 0, 0
    whole = count - nb.uint64(3) * run if count > nb.uint64(3) * run else nb.uint64(0)
    for i in range(whole):
        if i & nb.uint64(_POLL) == 0 and interrupts() != began:
            return -1
        kind_0, x_0, at = code_of(x_0, stream, at, entries, table_0)
        kind_1, x_1, at = code_of(x_1, stream, at, entries, table_1)
        kind_2, x_2, at = code_of(x_2, stream, at, entries, table_2)
        kind_3, x_3, at = code_of(x_3, stream, at, entries, table_3)
        kinds[i], kinds[i + run], kinds[i + run + run] = kind_0, kind_1, kind_2
        kinds[i + run + run + run] = kind_3
        table_0, table_1, table_2, table_3 = (
            *(context_of(kind_0), context_of(kind_1), context_of(kind_2)),
            context_of(kind_3),
        )
    states[0], states[1], states[2], states[3] = x_0, x_1, x_2, x_3
    tables = np.array([table_0, table_1, table_2, table_3])
    for i in range(whole, run):
        for number in range(nb.uint64(STATES)):
            if number * run + i < count:
                kind, states[number], at = code_of(states[number], stream, at, entries, tables[number])
                kinds[number * run + i] = kind
                tables[number] = context_of(kind)
    return at


@njit
def lists_of(classes: UInt8, lists: UInt64) -> int:
    """Fill where each list starts, and what a use takes, with room for the symbols of its class; return ``OK``."""
    counts = np.zeros(257, np.int64)
    for symbol in range(len(classes)):
        if classes[symbol] >= CLASSES:
            return WRONG_TABLE
        counts[OLD + nb.int64(classes[symbol])] += 1
    start = nb.uint64(0)
    for kind in range(256):
        if kind > OLD and counts[kind] > MAX_MEMBERS:
            return WRONG_COUNT
        lists[LIST * nb.uint64(kind)] = start
        start += nb.uint64(counts[kind])
        if OLD < kind <= OLD + EXACT:
            lists[LIST * nb.uint64(kind) + _2] = _1 << USE
    return OK


@inner
def _enter(lists: UInt64, members: UInt32, symbol: int, c: int) -> None:
    """Add a symbol to the list of its class, which has room: a symbol enters once."""
    base = LIST * nb.uint64(OLD + c)
    uses = nb.uint64(c) << USE if c <= EXACT else nb.uint64(0)
    members[lists[base] + lists[base + _1]] = nb.uint64(symbol) | uses
    lists[base + _1] += _1


@inner
def read_steps(bits_by: UInt8, places: UInt32, at: int, steps: Int64) -> int:
    """Decode the steps between rules from their bits, with which the stream ends; return ``OK`` or what is wrong."""
    began = interrupts()
    for rule in range(len(steps)):
        if rule & _POLL == 0 and interrupts() != began:
            return WRONG_END
        bits = nb.uint64(bits_by[rule])
        if bits > nb.uint64(32):
            return WRONG_TABLE
        if at > nb.uint64(32) * nb.uint64(len(places) - ROOM):
            return WRONG_END
        step, at = step_of(bits, places, at)
        steps[rule] = step
    return OK if ends_at(places, at) else WRONG_END


@inner
def step_of(bits: int, places: UInt32, at: int) -> tuple[int, int]:
    """Decode a number near 0 of some bits; return it, and the place in the stream."""
    step = nb.uint64(0)
    if bits > nb.uint64(17):
        step, at = place_in(places, at, _1 << (bits - nb.uint64(17)))
        lower, at = place_in(places, at, _1 << nb.uint64(16))
        step = (step << nb.uint64(16)) | lower | _1 << (bits - _1)
    elif bits > 0:
        step, at = place_in(places, at, _1 << (bits - _1))
        step |= _1 << (bits - _1)
    return nb.int64(step >> _1) ^ -nb.int64(step & _1), at


@inner
def height_of(words: int, bodies: UInt32, start: int, stop: int, heights: UInt32) -> Any:
    """Return one more than the greatest height among the rules of a body."""
    height = nb.uint32(0)
    for i in range(start, stop):
        if bodies[i] >= words:
            height = max(height, heights[bodies[i] - words])
    return height + nb.uint32(1)


@polled
@njit
def read_runs(
    words: int,
    kinds: UInt32,
    places: UInt32,
    entries: UInt32,
    shape_starts: UInt32,
    rule_starts: UInt32,
    size: int,
    spelled: UInt32,
    heights: UInt32,
    root_offsets: Int64,
    steps: Int64,
) -> int:
    """Decode both streams; return ``OK`` or what is wrong. Never accesses memory out of bounds.

    Parameters
    ----------
    words
        Number of words; rules, rows and symbols are as many as the arrays hold.
    kinds, places
        The streams.
    entries
        By slot of each table, as filled by :func:`~polars_tadoc.kernels.host.grammars.coded_streams.look_up`.
    shape_starts
        The first word of each shape, and the number of words.
    rule_starts, heights, root_offsets
        Filled: where each rule's body starts, in order of first use, its level from 1, and where each row starts.
    size, spelled
        Number of symbols in bodies. Filled: the bodies' symbols, then those of rows.
    steps
        Filled: by rule, the numbers that ``plan_steps`` took.

    """
    rules, rows = len(heights), len(root_offsets) - 1
    states = np.empty(STATES, np.uint64)
    if not load_states(kinds, states):
        return TRUNCATED
    top = nb.int64(words + rules)
    if top + OLD >= MAX_CODES:
        return WRONG_COUNT
    kind_at, place_at, bits = nb.int64(2 * STATES), nb.uint64(0), nb.uint64(32) * nb.uint64(len(places))
    places = with_room(places)
    class_by, step_bits = np.empty(words + rules, np.uint8), np.empty(rules, np.uint8)
    for part, table in ((class_by[:words], WORD_CLASS), (class_by[words:], RULE_CLASS), (step_bits, STEP)):
        kind_at = read_codes(kinds, kind_at, states, entries, table, part)
        if kind_at < 0:
            return WRONG_END
    events = len(spelled) + rows
    event_kinds = np.empty(events, np.uint8)
    kind_at = _read_runs(kinds, kind_at, states, entries, event_kinds)
    if kind_at < 0:
        return WRONG_END
    if not are_spent(states, kinds, kind_at):
        return WRONG_END
    lists = np.zeros(LIST * nb.uint64(256), np.uint64)
    wrong: int = lists_of(class_by, lists)
    if wrong != OK:
        return wrong
    members = np.empty(top, np.uint32)
    shape_ends = np.empty(SHAPES + 1, np.uint32)
    shape_ends[:] = shape_starts
    stack, following = np.empty(rules + 1, np.uint32), np.empty(rules + 1, np.int64)
    found_words, found_rules, body_at, row, depth = 0, 0, nb.int64(0), 0, 0
    position, end = nb.int64(size), nb.int64(len(spelled))  # of the innermost open rule's body, or of rows
    root_offsets[0] = 0
    began, event, look = interrupts(), nb.int64(0), nb.int64(0)
    while row < rows:
        if event >= look:
            look = event + _POLL + 1
            if interrupts() != began:
                return WRONG_END
        most = min(events, look, event + end - position)
        while event < most:
            kind = nb.uint64(event_kinds[nb.uint64(event)])
            if kind < nb.uint64(OLD):
                break
            base = LIST * kind
            start, length, use = lists[base], lists[base + _1], lists[base + _2]
            if length == 0:
                return WRONG_PLACE
            place, place_at = place_in(places, place_at, length)
            place += start
            member = nb.uint64(members[place])
            left = member - use
            members[place] = left
            if left < use:  # none is left; of a class that is not exact, nothing is used
                length -= _1
                members[place] = members[start + length]
                lists[base + _1] = length
            spelled[nb.uint64(position)] = member & _SYMBOL
            position += 1
            event += 1
        if place_at > bits:
            return WRONG_END
        if position < end or depth == 0:
            if event == events:
                return WRONG_COUNT
            kind = nb.uint64(event_kinds[nb.uint64(event)])
            if kind >= nb.uint64(OLD):
                if position == end:
                    return WRONG_COUNT
                continue  # after a look
            event += 1
            if kind == nb.uint64(END):
                if depth > 0:
                    return OPEN_RULE
                row += 1
                root_offsets[row] = position - size
                continue
            if position == end:
                return WRONG_COUNT
            if kind >= nb.uint64(NEW_WORD):
                shape = kind - nb.uint64(NEW_WORD)
                symbol = nb.int64(shape_ends[shape])
                if symbol == nb.int64(shape_starts[shape + _1]):
                    return WRONG_COUNT
                shape_ends[shape] += nb.uint32(1)
                found_words += 1
                c = nb.int64(class_by[nb.uint64(symbol)])
                if c > 0:
                    _enter(lists, members, symbol, c)
                spelled[nb.uint64(position)] = symbol
                position += 1
            else:
                length_of_rule = nb.int64(kind)
                if kind == nb.uint64(LONG_RULE):
                    upper, place_at = place_in(places, place_at, _1 << nb.uint64(16))
                    lower, place_at = place_in(places, place_at, _1 << nb.uint64(16))
                    length_of_rule += nb.int64((upper << nb.uint64(16)) | lower)
                if kind < nb.uint64(NEW_RULE) or found_rules == rules or length_of_rule > size - body_at:
                    return WRONG_COUNT
                spelled[nb.uint64(position)] = words + found_rules
                stack[depth], following[depth] = found_rules, position + 1
                rule_starts[found_rules] = body_at
                position = body_at
                body_at += length_of_rule
                rule_starts[found_rules + 1] = body_at
                end = body_at
                found_rules += 1
                depth += 1
                continue
        while depth > 0 and position == end:
            depth -= 1
            rule = nb.int64(stack[depth])
            heights[rule] = height_of(words, spelled, nb.int64(rule_starts[rule]), position, heights)
            c = nb.int64(class_by[words + rule])
            if c > 0:
                _enter(lists, members, words + rule, c)
            position = following[depth]
            end = nb.int64(rule_starts[stack[depth - 1] + 1]) if depth > 0 else nb.int64(len(spelled))
    if found_words != words or found_rules != rules or body_at != size or position != end:
        return WRONG_COUNT
    wrong = read_steps(step_bits, places, place_at, steps)
    return wrong
