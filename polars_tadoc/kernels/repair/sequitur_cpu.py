"""Sequitur: a grammar inferred word by word, in linear time (Nevill-Manning and Witten, 1997).

The method of the TADOC papers. No digram (two adjacent symbols) occurs twice, and every rule is used at least twice, so
rules are as long as the repeats, and grammars may have thousands of levels. Runs in one thread.

:func:`polars_tadoc.kernels.repair.reference.sequitur` defines the steps and their order; this is the data layout. A
symbol has a position, initially its index in the sequence. ``nodes`` has three fields per position, so that one cache
line has a symbol and its links. Edges follow the symbols' positions: one that represents the end of any row, then one
per rule, which closes its body to a ring. A match never needs new positions: the two that it frees hold the new rule's
body.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.errors import LimitExceededError
from polars_tadoc.kernels.repair.prune import LevelledRules
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.runtime.addresses import prefetch
from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner, kernel
from polars_tadoc.runtime.secret import first_secret

FIELDS = 3
SYMBOL, BEFORE, AFTER = range(FIELDS)
"""Fields of a rule's edge: number of uses (0 once it is removed), its body's last and first position."""

GONE = 0xFFFFFFFF
"""Symbol of an unlinked position."""

HELD = 0xFFFFFFFE
"""Recorded position of a digram that is being moved: no valid position, so that the entry is not reused."""

MAX_PUSHES = 16
"""Maximum number of positions that one match makes pending."""

AHEAD = 12
"""Prefetch distance in words."""

STATE_FIELDS = 6
VOCABULARY_SIZE, ROW_END, RULES, FILLED, TAIL, PENDING = range(STATE_FIELDS)
"""Indices in the state vector: words, the first edge, rules made, table entries, the row's last position, stack height.

The stack of pending positions follows.
"""

_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW = np.uint64(0xFFFFFFFF)
_1, _32 = np.uint64(1), np.uint64(32)
_K1 = np.uint64(0x9E3779B97F4A7C15)


@inner
def _get(nodes: Any, place: int, field: int) -> Any:
    return nb.int64(nodes[FIELDS * place + field])


@inner
def _link(nodes: Any, before: int, after: int) -> None:
    """Link two positions; either may be an edge."""
    nodes[FIELDS * before + AFTER] = after
    nodes[FIELDS * after + BEFORE] = before


@inner
def _tag(left: int, right: int) -> Any:
    """Return 32 bits of hash; the low ones are the digram's slot in the table."""
    h = ((nb.uint64(left) << _32) | nb.uint64(right)) * _K1
    return ((h ^ (h >> _32)) * first_secret()) >> _32


@inner
def _find(slots: Any, nodes: Any, left: int, right: int) -> Any:
    """Return the slot of a digram, or the empty one for it."""
    mask = nb.uint64(len(slots) - 1)
    tag = _tag(left, right)
    s = tag & mask
    while True:
        entry = slots[s]
        if entry == _EMPTY:
            break
        if entry >> _32 == tag:
            place = nb.int64(entry & _LOW)
            if _get(nodes, place, SYMBOL) == left and _get(nodes, _get(nodes, place, AFTER), SYMBOL) == right:
                break
        s = (s + _1) & mask
    return nb.int64(s)


@inner
def _find_place(slots: Any, left: int, right: int, place: int) -> Any:
    """Return the slot with exactly this position of a digram, or -1."""
    mask = nb.uint64(len(slots) - 1)
    s = _tag(left, right) & mask
    while True:
        entry = slots[s]
        if entry == _EMPTY:
            return nb.int64(-1)
        if entry & _LOW == nb.uint64(place):
            return nb.int64(s)
        s = (s + _1) & mask


@inner
def _record(slots: Any, slot: int, place: int) -> None:
    """Record another position for a slot's digram."""
    slots[slot] = (slots[slot] & ~_LOW) | nb.uint64(place)


@inner
def _erase(slots: Any, slot: int) -> None:
    """Empty a slot and close the gap, so that searches stay as short as without it."""
    mask = nb.uint64(len(slots) - 1)
    hole = nb.uint64(slot)
    s = hole
    while True:
        s = (s + _1) & mask
        entry = slots[s]
        if entry == _EMPTY:
            break
        home = (entry >> _32) & mask
        if ((s - home) & mask) >= ((s - hole) & mask):
            slots[hole] = entry
            hole = s
    slots[hole] = _EMPTY


@njit
def _doubled(slots: Any) -> Any:
    larger = np.full(2 * len(slots), _EMPTY, np.uint64)
    mask = nb.uint64(len(larger) - 1)
    for entry in slots:
        if entry != _EMPTY:
            s = (entry >> _32) & mask
            while larger[s] != _EMPTY:
                s = (s + _1) & mask
            larger[s] = entry
    return larger


@inner
def _push(state: Any, place: int) -> None:
    state[STATE_FIELDS + state[PENDING]] = place
    state[PENDING] += 1


@inner
def _forget(slots: Any, nodes: Any, state: Any, place: int) -> None:
    """Remove the digram at a position from the table if it is the recorded one; it is about to be removed.

    The digrams of a run overlap and only one is recorded: the adjacent ones become pending.
    """
    following = _get(nodes, place, AFTER)
    left, right = _get(nodes, place, SYMBOL), _get(nodes, following, SYMBOL)
    slot = _find_place(slots, left, right, place)
    if slot < 0:
        return
    _erase(slots, slot)
    state[FILLED] -= 1
    if left == right:
        row_end = state[ROW_END]
        previous, after = _get(nodes, place, BEFORE), _get(nodes, following, AFTER)
        if previous < row_end and _get(nodes, previous, SYMBOL) == left:
            _push(state, previous)
        if after < row_end and _get(nodes, after, SYMBOL) == left:
            _push(state, following)


@inner
def _use(nodes: Any, state: Any, symbol: int, change: int) -> None:
    """Change the number of uses of a symbol if it is a rule."""
    rule = symbol - state[VOCABULARY_SIZE]
    if rule >= 0:
        at = FIELDS * (state[ROW_END] + 1 + rule) + SYMBOL
        nodes[at] = nb.uint32(nb.int64(nodes[at]) + change)


@inner
def _detach_second(slots: Any, nodes: Any, state: Any, place: int) -> None:
    """Unlink the symbol after a position."""
    second = _get(nodes, place, AFTER)
    after = _get(nodes, second, AFTER)
    _use(nodes, state, _get(nodes, second, SYMBOL), -1)
    if second == state[TAIL]:
        state[TAIL] = place
    if after < state[ROW_END]:
        _forget(slots, nodes, state, second)
        _push(state, place)
    nodes[FIELDS * second + SYMBOL] = GONE
    _link(nodes, place, after)


@inner
def _substitute(slots: Any, nodes: Any, state: Any, place: int, symbol: int) -> None:
    """Replace two symbols from a position on by a rule's symbol; the second one's position becomes free."""
    before = _get(nodes, place, BEFORE)
    if before < state[ROW_END]:
        _forget(slots, nodes, state, before)
    _detach_second(slots, nodes, state, place)
    _use(nodes, state, _get(nodes, place, SYMBOL), -1)
    nodes[FIELDS * place + SYMBOL] = symbol
    _use(nodes, state, symbol, 1)
    if before < state[ROW_END]:
        _push(state, before)


@inner
def _expand(slots: Any, nodes: Any, state: Any, place: int) -> None:
    """Replace a rule's only use by its body, if the symbol at this position is that use."""
    row_end = state[ROW_END]
    edge = row_end + 1 + _get(nodes, place, SYMBOL) - state[VOCABULARY_SIZE]
    if edge <= row_end or nodes[FIELDS * edge + SYMBOL] != 1:
        return
    before, after = _get(nodes, place, BEFORE), _get(nodes, place, AFTER)
    first, last = _get(nodes, edge, AFTER), _get(nodes, edge, BEFORE)
    if before < row_end:
        _forget(slots, nodes, state, before)
    if after < row_end:
        _forget(slots, nodes, state, place)
        _push(state, last)
    _link(nodes, before, first)
    _link(nodes, last, after)
    nodes[FIELDS * place + SYMBOL] = GONE
    nodes[FIELDS * edge + SYMBOL] = 0
    if before < row_end:
        _push(state, before)


@inner
def _whole_body(nodes: Any, row_end: int, place: int) -> Any:
    """Return the edge of the rule whose whole body is the two symbols from a position on, or 0."""
    edge = _get(nodes, place, BEFORE)
    if edge > row_end and _get(nodes, _get(nodes, place, AFTER), AFTER) == edge:
        return edge
    return nb.int64(0)


@inner
def _match(slots: Any, nodes: Any, state: Any, place: int, slot: int) -> None:
    """Replace the digram at a position and the one recorded in a slot by one symbol; they do not overlap."""
    known = nb.int64(slots[slot] & _LOW)
    row_end = state[ROW_END]
    first_rule = state[VOCABULARY_SIZE] - row_end - 1  # added to an edge's index gives the rule's symbol
    known_second, second = _get(nodes, known, AFTER), _get(nodes, place, AFTER)
    left, right = _get(nodes, place, SYMBOL), _get(nodes, second, SYMBOL)
    edge, own_edge = _whole_body(nodes, row_end, known), _whole_body(nodes, row_end, place)
    if edge and own_edge:
        return
    if edge:
        _substitute(slots, nodes, state, place, edge + first_rule)
    elif own_edge:
        edge = own_edge
        _record(slots, slot, HELD)
        _substitute(slots, nodes, state, known, edge + first_rule)
        _record(slots, _find_place(slots, left, right, HELD), place)
    elif left >= state[VOCABULARY_SIZE] and nodes[FIELDS * (left - first_rule) + SYMBOL] == 2:
        edge = left - first_rule
        last = _get(nodes, edge, BEFORE)
        _erase(slots, slot)
        state[FILLED] -= 1
        _detach_second(slots, nodes, state, known)
        _detach_second(slots, nodes, state, place)
        nodes[FIELDS * known_second + SYMBOL] = right
        _use(nodes, state, right, 1)
        _link(nodes, last, known_second)
        _link(nodes, known_second, edge)
        _push(state, last)
        _expand(slots, nodes, state, known_second)
        return
    else:
        edge = row_end + 1 + state[RULES]
        state[RULES] += 1
        nodes[FIELDS * edge + SYMBOL] = 0
        _record(slots, slot, HELD)
        _substitute(slots, nodes, state, known, edge + first_rule)
        _substitute(slots, nodes, state, place, edge + first_rule)
        _record(slots, _find_place(slots, left, right, HELD), known_second)
        nodes[FIELDS * known_second + SYMBOL] = left
        nodes[FIELDS * second + SYMBOL] = right
        _use(nodes, state, left, 1)
        _use(nodes, state, right, 1)
        _link(nodes, edge, known_second)
        _link(nodes, known_second, second)
        _link(nodes, second, edge)
    _expand(slots, nodes, state, _get(nodes, edge, AFTER))
    _expand(slots, nodes, state, _get(nodes, edge, BEFORE))


@polled
@njit
def infer(sequence: UInt32, vocabulary_size: int, nodes: UInt32) -> Any:
    """Read the sequence word by word; return the number of rules made (some removed again) and of remaining symbols.

    ``nodes`` has entries for the sequence, the end of rows, and as many rules.
    """
    began = interrupts()
    size = len(sequence)
    state = np.zeros(STATE_FIELDS + (1 << 10), np.int64)
    state[VOCABULARY_SIZE], state[ROW_END], state[TAIL] = vocabulary_size, size, size
    slots = np.full(1 << 10, _EMPTY, np.uint64)
    for i in range(size):
        if i & 0xFFFF == 0 and interrupts() != began:
            return state[RULES], 0
        if i + AHEAD + 1 < size:
            tag = _tag(sequence[i + AHEAD], sequence[i + AHEAD + 1])
            prefetch(slots, nb.int64(tag & nb.uint64(len(slots) - 1)))
        symbol = sequence[i]
        if symbol == SEPARATOR:
            nodes[FIELDS * i + SYMBOL] = GONE
            state[TAIL] = size
            continue
        tail = state[TAIL]
        nodes[FIELDS * i + SYMBOL] = symbol
        _link(nodes, tail, i)
        _link(nodes, i, size)
        state[TAIL] = i
        if tail == size:
            continue
        _push(state, tail)
        while state[PENDING] > 0:
            if STATE_FIELDS + state[PENDING] + MAX_PUSHES > len(state):
                larger = np.empty(2 * len(state), np.int64)
                larger[: len(state)] = state
                state = larger
            if 5 * state[FILLED] >= 3 * len(slots):
                slots = _doubled(slots)
            state[PENDING] -= 1
            place = state[STATE_FIELDS + state[PENDING]]
            left, after = _get(nodes, place, SYMBOL), _get(nodes, place, AFTER)
            if left == GONE or after >= size:
                continue
            right = _get(nodes, after, SYMBOL)
            slot = _find(slots, nodes, left, right)
            entry = slots[slot]
            if entry == _EMPTY:
                slots[slot] = (_tag(left, right) << _32) | nb.uint64(place)
                state[FILLED] += 1
                continue
            known = nb.int64(entry & _LOW)
            known_after = _get(nodes, known, AFTER)
            if known == place or known_after == place:
                continue
            if after == known:
                _record(slots, slot, place)
                _push(state, known_after)
                continue
            _match(slots, nodes, state, place, slot)
    left_over = 0
    for i in range(size):
        left_over += nodes[FIELDS * i + SYMBOL] != GONE
    return state[RULES], left_over


@polled
@njit
def levels(nodes: UInt32, row_end: int, made: int, vocabulary_size: int) -> Any:
    """Return the level of each rule, from 1; 0 if it was removed. Depth first with a stack, as chains may be long."""
    began = interrupts()
    result = np.zeros(made, np.uint32)
    highest = np.zeros(made, np.uint32)  # in the part of the body visited so far
    stack = np.empty(made + 1, np.uint32)
    cursor = np.empty(made + 1, np.uint32)
    for root in range(made):
        if root & 0xFF == 0 and interrupts() != began:
            return result
        if nodes[FIELDS * (row_end + 1 + root) + SYMBOL] == 0 or result[root] > 0:
            continue
        stack[0], cursor[0] = root, nodes[FIELDS * (row_end + 1 + root) + AFTER]
        top = 0
        while top >= 0:
            rule = nb.int64(stack[top])
            place = nb.int64(cursor[top])
            if place >= row_end:
                result[rule] = highest[rule] + nb.uint32(1)
                top -= 1
                continue
            child = _get(nodes, place, SYMBOL) - vocabulary_size
            if child >= 0 and result[child] == 0:
                top += 1
                stack[top], cursor[top] = child, nodes[FIELDS * (row_end + 1 + child) + AFTER]
                continue
            if child >= 0:
                highest[rule] = max(highest[rule], result[child])
            cursor[top] = nodes[FIELDS * place + AFTER]
    return result


@inner
def _write_line(nodes: Any, first: int, row_end: int, vocabulary_size: int, numbers: Any, out: Any, at: int) -> Any:
    place = first
    while place < row_end:
        symbol = nodes[FIELDS * place + SYMBOL]
        out[at] = symbol if symbol < vocabulary_size else numbers[symbol - vocabulary_size]
        at += 1
        place = _get(nodes, place, AFTER)
    return at


@polled
@kernel
def write_bodies(
    nodes: UInt32, row_end: int, order: UInt32, vocabulary_size: int, numbers: UInt32, offsets: UInt32, symbols: UInt32
) -> None:
    """Write the bodies of the rules in ``order``; ``numbers[r]`` is the symbol of rule r."""
    began = interrupts()
    at = 0
    for k in range(len(order)):
        if k & 0xFFF == 0 and interrupts() != began:
            return
        first = _get(nodes, row_end + 1 + nb.int64(order[k]), AFTER)
        at = _write_line(nodes, first, row_end, vocabulary_size, numbers, symbols, at)
        offsets[k + 1] = at


@polled
@kernel
def write_rows(
    nodes: UInt32, sequence: UInt32, vocabulary_size: int, numbers: UInt32, offsets: Int64, roots: UInt32
) -> None:
    """Write the rows' concatenated symbols; a row's first position is the one after a separator."""
    began = interrupts()
    at = 0
    row = 0
    first = 0
    for i in range(len(sequence)):
        if i & 0xFFFF == 0 and interrupts() != began:
            return
        if sequence[i] == SEPARATOR:
            if i > first:
                at = _write_line(nodes, first, len(sequence), vocabulary_size, numbers, roots, at)
            row += 1
            offsets[row] = at
            first = i + 1


def build(sequence: UInt32, vocabulary_size: int, rows: int) -> LevelledRules:
    """Infer rules over all rows; digrams never cross the end of a row.

    ``sequence`` and ``vocabulary_size`` as for :func:`polars_tadoc.kernels.repair.batch_repair.build`; ``rows`` is the
    number of separators in the sequence.

    Returns
    -------
    LevelledRules
        Bodies of at least two symbols, in level order, and within a level in order of creation.

    Raises
    ------
    LimitExceededError
        2^31 words or more in one grammar, or more words and rules than 32-bit symbols can number.

    Examples
    --------
    >>> import numpy as np
    >>> end = 0xFFFFFFFF
    >>> rules = build(np.array([0, 1, 2, 0, 1, 2, end, 1, 2, end], np.uint32), 3, 2)
    >>> rules.rule_offsets, rules.symbols
    (array([0, 2, 4], dtype=uint32), array([1, 2, 0, 3], dtype=uint32))
    >>> rules.root_offsets, rules.roots
    (array([0, 2, 3]), array([4, 4, 3], dtype=uint32))

    """
    size = len(sequence)
    if max(vocabulary_size + size, 2 * size + 1) > HELD:
        raise LimitExceededError(
            f"sequitur: {size:,} words and row ends in one grammar are too many; compress with fewer rows_per_grammar"
        )
    nodes = np.empty(FIELDS * (2 * size + 1), np.uint32)  # untouched pages of unused rules take no memory
    made, left_over = infer(sequence, vocabulary_size, nodes)
    levels_of = levels(nodes, size, made, vocabulary_size)
    kept = np.flatnonzero(levels_of)
    order = kept[np.argsort(levels_of[kept], kind="stable")].astype(np.uint32)
    numbers = np.zeros(made, np.uint32)
    numbers[order] = vocabulary_size + np.arange(len(order), dtype=np.uint32)
    rule_offsets = np.zeros(len(order) + 1, np.uint32)
    root_offsets = np.zeros(rows + 1, np.int64)
    out = np.empty(left_over, np.uint32)
    write_bodies(nodes, size, order, vocabulary_size, numbers, rule_offsets, out)
    symbols, roots = out[: rule_offsets[-1]], out[rule_offsets[-1] :]
    write_rows(nodes, sequence, vocabulary_size, numbers, root_offsets, roots)
    level_offsets = np.cumsum(np.bincount(levels_of[kept], minlength=1)).astype(np.uint32)
    return LevelledRules(rule_offsets, symbols, level_offsets, root_offsets, roots)
