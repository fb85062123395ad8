"""Decodes the bodies and rows of :mod:`polars_tadoc.kernels.host.grammars.coded_symbols` with predictions."""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.grammars.coded_runs import LIST, height_of, lists_of, read_steps
from polars_tadoc.kernels.host.grammars.coded_streams import (
    SCALE,
    STATES,
    are_spent,
    code_of,
    load_states,
    place_in,
    read_codes,
    refill,
    with_room,
)
from polars_tadoc.kernels.host.grammars.coded_symbols import (
    END,
    EXACT,
    LONG_RULE,
    MAX_CODES,
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
    adapted,
    context_of,
    guessed,
    learnt,
    slot_of,
)
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner

_POLL = (1 << 12) - 1
"""Between looks for an interrupt, this number of events, less 1, a power of two less 1."""

_1 = np.uint64(1)


@inner
def _enter(lists: UInt64, members: UInt32, stands: UInt32, left: UInt8, symbol: int, c: int) -> None:
    """Add a symbol to the list of its class, which has room: a symbol enters once."""
    base = LIST * nb.uint64(OLD + c)
    length = lists[base + _1]
    members[lists[base] + length] = symbol
    left[nb.uint64(symbol)] = min(c, EXACT + 1)
    stands[nb.uint64(symbol)] = length
    lists[base + _1] = length + _1


@inner
def _use(lists: UInt64, members: UInt32, stands: UInt32, left: UInt8, symbol: int, kind: int) -> bool:
    """Count a use of a symbol of an exact class: after the last it leaves its list. False if none is left."""
    place = nb.uint64(symbol)
    if left[place] == 0:
        return False
    left[place] -= nb.uint8(1)
    if left[place] == 0:
        base = LIST * nb.uint64(kind)
        length = lists[base + _1] - _1
        moved = members[lists[base] + length]
        members[lists[base] + nb.uint64(stands[place])] = moved
        stands[nb.uint64(moved)] = stands[place]
        lists[base + _1] = length
    return True


@polled
@njit
def read_guesses(
    words: int,
    guesses: UInt32,
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
    """Decode both streams, as :func:`~polars_tadoc.kernels.host.grammars.coded_runs.read_runs`.

    ``guesses`` has zeros: work space of two tables, whose sizes are powers of two.
    """
    rules, rows = len(heights), len(root_offsets) - 1
    states = np.empty(STATES, np.uint64)
    if not load_states(kinds, states):
        return TRUNCATED
    top = nb.int64(words + rules)
    if top + OLD >= MAX_CODES:
        return WRONG_COUNT
    kind_at, place_at, turn = nb.int64(2 * STATES), nb.uint64(0), nb.uint64(0)
    bits, places = nb.uint64(32) * nb.uint64(len(places)), with_room(places)
    class_by, step_bits = np.empty(words + rules, np.uint8), np.empty(rules, np.uint8)
    for part, table in ((class_by[:words], WORD_CLASS), (class_by[words:], RULE_CLASS), (step_bits, STEP)):
        kind_at = read_codes(kinds, kind_at, states, entries, table, part)
        if kind_at < 0:
            return WRONG_END
    events = len(spelled) + rows
    lists = np.zeros(LIST * nb.uint64(256), np.uint64)
    wrong: int = lists_of(class_by, lists)
    if wrong != OK:
        return wrong
    members, stands = np.empty(top, np.uint32), np.empty(top, np.uint32)
    left = np.zeros(top, np.uint8)
    shape_ends = np.empty(SHAPES + 1, np.uint32)
    shape_ends[:] = shape_starts
    stack, following = np.empty(rules + 1, np.uint32), np.empty(rules + 1, np.int64)
    half = len(guesses) // 2
    hits = np.full(128, 2048, np.int64)
    found_words, found_rules, body_at, row, depth = 0, 0, nb.int64(0), 0, 0
    position, end = nb.int64(size), nb.int64(len(spelled))  # of the innermost open rule's body, or of rows
    before, last, context, history = nb.int64(0), nb.int64(0), 0, 0
    root_offsets[0] = 0
    began, event = interrupts(), nb.int64(0)
    while row < rows:
        if event & _POLL == 0 and interrupts() != began:
            return WRONG_END
        if event == events:
            return WRONG_COUNT
        if place_at > bits:
            return WRONG_END
        event += 1
        hit, kind, code = False, nb.int64(0), nb.int64(0)
        first, second = slot_of(before, last, half - 1), half + slot_of(0, last, half - 1)
        known_0, known_1 = guesses[first], guesses[second]
        for attempt in range(2):
            known = known_0 if attempt == 0 else known_1
            if known == 0 or (attempt == 1 and guessed(known) == guessed(known_0)):
                continue
            where = attempt * 64 + nb.int64(known & nb.uint32(15)) * 4 + history
            chance = nb.uint64(hits[where])
            number = turn & nb.uint64(STATES - 1)
            x = states[number]
            slot = x & nb.uint64(0xFFF)
            hit = slot < chance
            start = nb.uint64(0) if hit else chance
            frequency = chance if hit else nb.uint64(4096) - chance
            x = frequency * (x >> nb.uint64(SCALE)) + slot - start
            states[number], kind_at = refill(x, kinds, kind_at)
            turn += _1
            hits[where] = adapted(nb.int64(chance), hit)
            if hit:
                code = guessed(known)
                break
        if hit:
            kind = code - top if code >= top else OLD + nb.int64(class_by[code])
        else:
            number = turn & nb.uint64(STATES - 1)
            kind, states[number], kind_at = code_of(states[number], kinds, kind_at, entries, context)
            turn += _1
            code = top + kind
        symbol, length = nb.int64(0), nb.int64(0)
        if kind >= OLD:
            symbol = code
            if not hit:
                base = LIST * nb.uint64(kind)
                if lists[base + _1] == 0:
                    return WRONG_PLACE
                place, place_at = place_in(places, place_at, lists[base + _1])
                symbol = nb.int64(members[lists[base] + place])
                code = symbol
            if kind <= OLD + EXACT and not _use(lists, members, stands, left, symbol, kind):
                return WRONG_PLACE
        elif kind == END:
            if depth > 0:
                return OPEN_RULE
            row += 1
            root_offsets[row] = position - size
        elif kind >= NEW_WORD:
            shape = kind - NEW_WORD
            if shape_ends[shape] == shape_starts[shape + 1]:
                return WRONG_COUNT
            symbol = nb.int64(shape_ends[shape])
            shape_ends[shape] += nb.uint32(1)
            found_words += 1
            c = nb.int64(class_by[symbol])
            if c > 0:
                _enter(lists, members, stands, left, symbol, c)
        else:
            length = kind
            if kind == LONG_RULE:
                upper, place_at = place_in(places, place_at, _1 << nb.uint64(16))
                lower, place_at = place_in(places, place_at, _1 << nb.uint64(16))
                length += nb.int64((upper << nb.uint64(16)) | lower)
            if kind < NEW_RULE or found_rules == rules or length > size - body_at:
                return WRONG_COUNT
            symbol = words + found_rules
        context = context_of(kind)
        guesses[first], guesses[second] = learnt(known_0, code), learnt(known_1, code)
        history = (history * 2 + nb.int64(hit)) & 3
        before, last = last, code
        if kind == END:
            continue
        if position == end:
            return WRONG_COUNT
        spelled[position] = symbol
        position += 1
        if kind < NEW_WORD:
            stack[depth], following[depth] = found_rules, position
            rule_starts[found_rules] = body_at
            position = body_at
            body_at += length
            rule_starts[found_rules + 1] = body_at
            end = body_at
            found_rules += 1
            depth += 1
        while depth > 0 and position == end:
            depth -= 1
            rule = nb.int64(stack[depth])
            heights[rule] = height_of(words, spelled, nb.int64(rule_starts[rule]), position, heights)
            c = nb.int64(class_by[words + rule])
            if c > 0:
                _enter(lists, members, stands, left, words + rule, c)
            position = following[depth]
            end = nb.int64(rule_starts[stack[depth - 1] + 1]) if depth > 0 else nb.int64(len(spelled))
    if found_words != words or found_rules != rules or body_at != size or position != end:
        return WRONG_COUNT
    return read_steps(step_bits, places, place_at, steps) if are_spent(states, kinds, kind_at) else WRONG_END
