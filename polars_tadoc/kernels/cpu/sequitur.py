"""Sequitur over word ids: linked symbols, a table of digrams, and rules in level order.

``kernels.reference.sequitur`` says what is done and in which order; here is how it is laid out. A symbol
lies at a place, which at first is its index in the sequence. ``nodes`` holds three fields a place, so that
one cache line serves a symbol and its links; a link with the highest bit set leaves the body of a rule, or
the row (``ROW_END``). A match never needs new places: the two that it frees hold the new rule's body.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cpu.memory import prefetch
from polars_tadoc.kernels.cpu.tokenize import SEPARATOR

UInt32 = npt.NDArray[np.uint32]
Int64 = npt.NDArray[np.int64]

NODE_FIELDS = 3
SYMBOL, BEFORE, AFTER = range(NODE_FIELDS)

RULE_FIELDS = 3
FIRST, LAST, USES = range(RULE_FIELDS)
"""Places of a rule's first and last symbol, and how many symbols name it; 0 where the rule is gone."""

EDGE = 1 << 31
"""Links from here on are ``EDGE + rule``, from the ends of its body, or ``ROW_END``."""

ROW_END = 0xFFFFFFFF
GONE = 0xFFFFFFFF
"""Symbol of a place that is no longer linked."""

HELD = 0xFFFFFFFE
"""Recorded place of a digram that is being moved: no place, so that nothing else takes the entry for its own."""

MOST_PUSHES = 16
"""Places that one match makes pending, at most."""

AHEAD = 12
"""Words by which the table is asked for ahead."""

STATE_FIELDS = 5
VOCABULARY_SIZE, RULES, FILLED, PENDING, TAIL = range(STATE_FIELDS)
"""Places in the state vector: words, rules made, table entries, stack height, the current row's last place."""

_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_K1, _K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


@nb.njit(nogil=True, cache=True, inline="always")
def _tag(left: int, right: int) -> Any:
    """32 bits of hash; the low ones are where the digram belongs in the table."""
    h = ((nb.uint64(left) << _32) | nb.uint64(right)) * _K1
    return ((h ^ (h >> _32)) * _K2) >> _32


@nb.njit(nogil=True, cache=True, inline="always")
def _find(slots: Any, nodes: Any, left: int, right: int) -> Any:
    """Slot of a digram, or the empty one where it would be."""
    mask = nb.uint64(len(slots) - 1)
    tag = _tag(left, right)
    s = tag & mask
    while True:
        entry = slots[s]
        if entry == _EMPTY:
            return nb.int64(s)
        if entry >> _32 == tag:
            place = NODE_FIELDS * nb.int64(entry & _LOW)
            if nodes[place + SYMBOL] == left and nodes[NODE_FIELDS * nb.int64(nodes[place + AFTER]) + SYMBOL] == right:
                return nb.int64(s)
        s = (s + nb.uint64(1)) & mask


@nb.njit(nogil=True, cache=True, inline="always")
def _find_place(slots: Any, left: int, right: int, place: int) -> Any:
    """Slot that holds this very place of a digram, or -1."""
    mask = nb.uint64(len(slots) - 1)
    s = _tag(left, right) & mask
    while True:
        entry = slots[s]
        if entry == _EMPTY:
            return nb.int64(-1)
        if entry & _LOW == nb.uint64(place):
            return nb.int64(s)
        s = (s + nb.uint64(1)) & mask


@nb.njit(nogil=True, cache=True, inline="always")
def _record(slots: Any, slot: int, place: int) -> None:
    """Let a slot's digram be the one at another place."""
    slots[slot] = (slots[slot] & ~_LOW) | nb.uint64(place)


@nb.njit(nogil=True, cache=True)
def _erase(slots: Any, slot: int) -> None:
    """Empty a slot and close the gap, so that searches stay as short as if the digram had never been there."""
    mask = nb.uint64(len(slots) - 1)
    hole = nb.uint64(slot)
    s = hole
    while True:
        s = (s + nb.uint64(1)) & mask
        entry = slots[s]
        if entry == _EMPTY:
            break
        home = (entry >> _32) & mask
        if ((s - home) & mask) >= ((s - hole) & mask):
            slots[hole] = entry
            hole = s
    slots[hole] = _EMPTY


@nb.njit(nogil=True, cache=True)
def _doubled(slots: Any) -> Any:
    larger = np.full(2 * len(slots), _EMPTY, np.uint64)
    mask = nb.uint64(len(larger) - 1)
    for entry in slots:
        if entry != _EMPTY:
            s = (entry >> _32) & mask
            while larger[s] != _EMPTY:
                s = (s + nb.uint64(1)) & mask
            larger[s] = entry
    return larger


@nb.njit(nogil=True, cache=True, inline="always")
def _push(pending: Any, state: Any, place: int) -> None:
    pending[state[PENDING]] = place
    state[PENDING] += 1


@nb.njit(nogil=True, cache=True)
def _forget(slots: Any, nodes: Any, state: Any, pending: Any, place: int) -> None:
    """Take the digram at a place out of the table if it is the one recorded; it is about to be gone.

    The digrams of a run overlap and only one is recorded: its neighbours become pending.
    """
    at = NODE_FIELDS * place
    following = nb.int64(nodes[at + AFTER])
    left, right = nodes[at + SYMBOL], nodes[NODE_FIELDS * following + SYMBOL]
    slot = _find_place(slots, left, right, place)
    if slot < 0:
        return
    _erase(slots, slot)
    state[FILLED] -= 1
    if left == right:
        previous = nb.int64(nodes[at + BEFORE])
        if previous < EDGE and nodes[NODE_FIELDS * previous + SYMBOL] == left:
            _push(pending, state, previous)
        after = nb.int64(nodes[NODE_FIELDS * following + AFTER])
        if after < EDGE and nodes[NODE_FIELDS * after + SYMBOL] == left:
            _push(pending, state, following)


@nb.njit(nogil=True, cache=True, inline="always")
def _link(nodes: Any, rules: Any, before: int, after: int) -> None:
    """Let one symbol follow another; either may be the edge of a body, or of a row."""
    if before < EDGE:
        nodes[NODE_FIELDS * before + AFTER] = after
    elif before != ROW_END:
        rules[RULE_FIELDS * (before - EDGE) + FIRST] = after
    if after < EDGE:
        nodes[NODE_FIELDS * after + BEFORE] = before
    elif after != ROW_END:
        rules[RULE_FIELDS * (after - EDGE) + LAST] = before


@nb.njit(nogil=True, cache=True, inline="always")
def _add_uses(rules: Any, state: Any, symbol: int, change: int) -> None:
    rule = nb.int64(symbol) - state[VOCABULARY_SIZE]
    if rule >= 0:
        rules[RULE_FIELDS * rule + USES] = nb.uint32(nb.int64(rules[RULE_FIELDS * rule + USES]) + change)


@nb.njit(nogil=True, cache=True)
def _substitute(slots: Any, nodes: Any, rules: Any, state: Any, pending: Any, place: int, rule: int) -> None:
    """Write a rule in place of the two symbols from a place on; the second one's place is free afterwards."""
    at = NODE_FIELDS * place
    second = nb.int64(nodes[at + AFTER])
    before = nb.int64(nodes[at + BEFORE])
    after = nb.int64(nodes[NODE_FIELDS * second + AFTER])
    if before < EDGE:
        _forget(slots, nodes, state, pending, before)
    if after < EDGE:
        _forget(slots, nodes, state, pending, second)
    _add_uses(rules, state, nodes[at + SYMBOL], -1)
    _add_uses(rules, state, nodes[NODE_FIELDS * second + SYMBOL], -1)
    nodes[at + SYMBOL] = state[VOCABULARY_SIZE] + rule
    rules[RULE_FIELDS * rule + USES] += nb.uint32(1)
    nodes[NODE_FIELDS * second + SYMBOL] = GONE
    _link(nodes, rules, place, after)
    if second == state[TAIL]:
        state[TAIL] = place
    if after < EDGE:
        _push(pending, state, place)
    if before < EDGE:
        _push(pending, state, before)


@nb.njit(nogil=True, cache=True)
def _detach_second(slots: Any, nodes: Any, rules: Any, state: Any, pending: Any, place: int) -> None:
    """Unlink the symbol after a place."""
    second = nb.int64(nodes[NODE_FIELDS * place + AFTER])
    after = nb.int64(nodes[NODE_FIELDS * second + AFTER])
    if after < EDGE:
        _forget(slots, nodes, state, pending, second)
    _link(nodes, rules, place, after)
    if second == state[TAIL]:
        state[TAIL] = place
    if after < EDGE:
        _push(pending, state, place)


@nb.njit(nogil=True, cache=True)
def _expand(slots: Any, nodes: Any, rules: Any, state: Any, pending: Any, place: int) -> None:
    """Put a rule's body in place of its only use, if the symbol at this place is that."""
    at = NODE_FIELDS * place
    rule = nb.int64(nodes[at + SYMBOL]) - state[VOCABULARY_SIZE]
    if rule < 0 or rules[RULE_FIELDS * rule + USES] != 1:
        return
    before, after = nb.int64(nodes[at + BEFORE]), nb.int64(nodes[at + AFTER])
    if before < EDGE:
        _forget(slots, nodes, state, pending, before)
    if after < EDGE:
        _forget(slots, nodes, state, pending, place)
    first, last = nb.int64(rules[RULE_FIELDS * rule + FIRST]), nb.int64(rules[RULE_FIELDS * rule + LAST])
    _link(nodes, rules, before, first)
    _link(nodes, rules, last, after)
    nodes[at + SYMBOL] = GONE
    rules[RULE_FIELDS * rule + USES] = 0
    if after < EDGE:
        _push(pending, state, last)
    if before < EDGE:
        _push(pending, state, before)


@nb.njit(nogil=True, cache=True, inline="always")
def _complete_rule(nodes: Any, place: int) -> Any:
    """Rule whose whole body are the two symbols from a place on, or -1."""
    before = nb.int64(nodes[NODE_FIELDS * place + BEFORE])
    if before < EDGE or before == ROW_END:
        return nb.int64(-1)
    after = nodes[NODE_FIELDS * nb.int64(nodes[NODE_FIELDS * place + AFTER]) + AFTER]
    if after < EDGE:
        return nb.int64(-1)
    return before - EDGE


@nb.njit(nogil=True, cache=True)
def _match(slots: Any, nodes: Any, rules: Any, state: Any, pending: Any, place: int, slot: int) -> None:
    """Make one symbol of the digram at a place and the one recorded in a slot; they do not overlap."""
    known = nb.int64(slots[slot] & _LOW)
    vocabulary_size = state[VOCABULARY_SIZE]
    left = nb.int64(nodes[NODE_FIELDS * place + SYMBOL])
    second, known_second = nb.int64(nodes[NODE_FIELDS * place + AFTER]), nb.int64(nodes[NODE_FIELDS * known + AFTER])
    right = nb.int64(nodes[NODE_FIELDS * second + SYMBOL])
    rule = _complete_rule(nodes, known)
    own_rule = _complete_rule(nodes, place)
    if rule >= 0 and own_rule >= 0:
        return
    if rule >= 0:
        _substitute(slots, nodes, rules, state, pending, place, rule)
    elif own_rule >= 0:
        rule = own_rule
        _record(slots, slot, HELD)
        _substitute(slots, nodes, rules, state, pending, known, rule)
        _record(slots, _find_place(slots, left, right, HELD), place)
    elif left >= vocabulary_size and rules[RULE_FIELDS * (left - vocabulary_size) + USES] == 2:
        rule = left - vocabulary_size
        _erase(slots, slot)
        state[FILLED] -= 1
        _detach_second(slots, nodes, rules, state, pending, known)
        _detach_second(slots, nodes, rules, state, pending, place)
        nodes[NODE_FIELDS * second + SYMBOL] = GONE
        _add_uses(rules, state, right, -1)
        last = nb.int64(rules[RULE_FIELDS * rule + LAST])
        _link(nodes, rules, last, known_second)
        _link(nodes, rules, known_second, EDGE + rule)
        _push(pending, state, last)
        _expand(slots, nodes, rules, state, pending, known_second)
        return
    else:
        rule = state[RULES]
        state[RULES] += 1
        rules[RULE_FIELDS * rule + USES] = 0
        _record(slots, slot, HELD)
        _substitute(slots, nodes, rules, state, pending, known, rule)
        _substitute(slots, nodes, rules, state, pending, place, rule)
        _record(slots, _find_place(slots, left, right, HELD), known_second)
        nodes[NODE_FIELDS * known_second + SYMBOL] = left
        nodes[NODE_FIELDS * second + SYMBOL] = right
        _add_uses(rules, state, left, 1)
        _add_uses(rules, state, right, 1)
        _link(nodes, rules, EDGE + rule, known_second)
        _link(nodes, rules, known_second, second)
        _link(nodes, rules, second, EDGE + rule)
    _expand(slots, nodes, rules, state, pending, nb.int64(rules[RULE_FIELDS * rule + FIRST]))
    _expand(slots, nodes, rules, state, pending, nb.int64(rules[RULE_FIELDS * rule + LAST]))


@nb.njit(nogil=True, cache=True)
def infer(sequence: UInt32, vocabulary_size: int, nodes: UInt32, rules: UInt32) -> Any:
    """Read the sequence word by word; returns the rules made (some are gone again) and the symbols left over."""
    state = np.zeros(STATE_FIELDS, np.int64)
    state[VOCABULARY_SIZE] = vocabulary_size
    slots = np.full(1 << 10, _EMPTY, np.uint64)
    pending = np.empty(1 << 10, np.uint32)
    state[TAIL] = ROW_END
    size = len(sequence)
    for i in range(size):
        if i + AHEAD + 1 < size:
            tag = _tag(sequence[i + AHEAD], sequence[i + AHEAD + 1])
            prefetch(slots, nb.int64(tag & nb.uint64(len(slots) - 1)))
        symbol = sequence[i]
        if symbol == SEPARATOR:
            nodes[NODE_FIELDS * i + SYMBOL] = GONE
            state[TAIL] = ROW_END
            continue
        tail = state[TAIL]
        nodes[NODE_FIELDS * i + SYMBOL] = symbol
        nodes[NODE_FIELDS * i + BEFORE] = tail
        nodes[NODE_FIELDS * i + AFTER] = ROW_END
        state[TAIL] = i
        if tail == ROW_END:
            continue
        nodes[NODE_FIELDS * tail + AFTER] = i
        pending[0] = tail
        state[PENDING] = 1
        while state[PENDING] > 0:
            if state[PENDING] + MOST_PUSHES > len(pending):
                larger = np.empty(2 * len(pending), np.uint32)
                larger[: len(pending)] = pending
                pending = larger
            if 5 * state[FILLED] >= 3 * len(slots):
                slots = _doubled(slots)
            state[PENDING] -= 1
            place = nb.int64(pending[state[PENDING]])
            left = nodes[NODE_FIELDS * place + SYMBOL]
            after = nb.int64(nodes[NODE_FIELDS * place + AFTER])
            if left == GONE or after >= EDGE:
                continue
            right = nodes[NODE_FIELDS * after + SYMBOL]
            slot = _find(slots, nodes, left, right)
            entry = slots[slot]
            if entry == _EMPTY:
                slots[slot] = (_tag(left, right) << _32) | nb.uint64(place)
                state[FILLED] += 1
                continue
            known = nb.int64(entry & _LOW)
            if known == place or nb.int64(nodes[NODE_FIELDS * known + AFTER]) == place:
                continue
            if after == known:
                _record(slots, slot, place)
                _push(pending, state, nb.int64(nodes[NODE_FIELDS * known + AFTER]))
                continue
            _match(slots, nodes, rules, state, pending, place, slot)
    left_over = 0
    for i in range(size):
        left_over += nodes[NODE_FIELDS * i + SYMBOL] != GONE
    return state[RULES], left_over


@nb.njit(nogil=True, cache=True)
def levels(nodes: UInt32, rules: UInt32, made: int, vocabulary_size: int) -> Any:
    """Level of each rule, from 1; 0 where the rule is gone. Depth first with a stack: chains may be long."""
    result = np.zeros(made, np.uint32)
    highest = np.zeros(made, np.uint32)  # in the part of the body walked so far
    stack = np.empty(made + 1, np.uint32)
    cursor = np.empty(made + 1, np.uint32)
    for root in range(made):
        if rules[RULE_FIELDS * root + USES] == 0 or result[root] > 0:
            continue
        stack[0], cursor[0] = root, rules[RULE_FIELDS * root + FIRST]
        top = 0
        while top >= 0:
            rule = nb.int64(stack[top])
            place = nb.int64(cursor[top])
            if place >= EDGE:
                result[rule] = highest[rule] + nb.uint32(1)
                top -= 1
                continue
            child = nb.int64(nodes[NODE_FIELDS * place + SYMBOL]) - vocabulary_size
            if child >= 0 and result[child] == 0:
                top += 1
                stack[top], cursor[top] = child, rules[RULE_FIELDS * child + FIRST]
                continue
            if child >= 0:
                highest[rule] = max(highest[rule], result[child])
            cursor[top] = nodes[NODE_FIELDS * place + AFTER]
    return result


@nb.njit(nogil=True, cache=True, inline="always")
def _write_line(nodes: Any, first: int, vocabulary_size: int, numbers: Any, out: Any, at: int) -> Any:
    place = first
    while place < EDGE:
        symbol = nodes[NODE_FIELDS * place + SYMBOL]
        out[at] = symbol if symbol < vocabulary_size else numbers[symbol - vocabulary_size]
        at += 1
        place = nb.int64(nodes[NODE_FIELDS * place + AFTER])
    return at


@nb.njit(nogil=True, cache=True)
def write_bodies(
    nodes: UInt32, rules: UInt32, order: UInt32, vocabulary_size: int, numbers: UInt32, offsets: UInt32, symbols: UInt32
) -> None:
    """Write the bodies of the rules in ``order``; ``numbers[r]`` is the symbol that rule r gets."""
    at = 0
    for k in range(len(order)):
        first = nb.int64(rules[RULE_FIELDS * nb.int64(order[k]) + FIRST])
        at = _write_line(nodes, first, vocabulary_size, numbers, symbols, at)
        offsets[k + 1] = at


@nb.njit(nogil=True, cache=True)
def write_rows(
    nodes: UInt32, sequence: UInt32, vocabulary_size: int, numbers: UInt32, offsets: Int64, roots: UInt32
) -> None:
    """Write the rows' symbols one row after another; a row's first place is the one after a separator."""
    at = 0
    row = 0
    first = 0
    for i in range(len(sequence)):
        if sequence[i] == SEPARATOR:
            if i > first:
                at = _write_line(nodes, first, vocabulary_size, numbers, roots, at)
            row += 1
            offsets[row] = at
            first = i + 1
