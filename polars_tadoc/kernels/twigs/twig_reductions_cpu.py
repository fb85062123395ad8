"""Reduces runs of words to their effect on any document, from words over rules to documents.

Suppose that a run closes k elements that were opened before it and leaves m open. Then only the following matters: at
each of the k closes, the nodes accumulated at its level since the run began or since the previous close, and the name
of the end tag; the nodes accumulated at the level reached then; and for each of the m opens the symbol, the name of the
start tag and the nodes accumulated below it. This is the run's *reduction*. For a balanced run it is one state of the
automaton. Names are compared where an open meets its close. Beside the state a reduction keeps what tells a sound
document: how Names are compared when an open meets its close. Besides the state, a reduction records what determines
soundness: the maximum height of the run above its start, and the number of elements (0, 1, more) at the lowest level
that it reaches, the only level that may be outside of the root element.

A body's reduction follows from those of its symbols. G-TADOC (Zhang et al., ICDE 2021) traverses the rules bottom-up in
the same way to count words.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from polars_tadoc.kernels.twigs.arrays import DOUBTFUL, EMPTY, OPEN, SHUT, TEXT
from polars_tadoc.kernels.twigs.twig_automaton_cpu import FULL, NONE_FOUND, close, union
from polars_tadoc.runtime.array_types import Bools, Int64, UInt64
from polars_tadoc.runtime.jit import inner, kernel

MAX_LEVELS = (1 << 28) - 1
"""Maximum levels of a value."""

DONE, STATES_FULL, ARENA_FULL, STACK_FULL = range(4)
"""Why a kernel returned: finished, or no room in the automaton, the arena or the stack."""

NEXT, USED, VALUE = range(3)
"""Positions in ``progress``: the next word or body, the used part of the arena, the value of the last body."""

# a value: state (32 bits), height (28), elements outside (0, 1, 2 = more), not balanced, unsound
_0, _1, _2, _3, _5 = (np.uint64(number) for number in (0, 1, 2, 3, 5))
_STATE = np.uint64(0xFFFFFFFF)
_HEIGHT = np.uint64(32)
_ELEMENTS = np.uint64(60)
_UNBALANCED = np.uint64(1 << 62)
_UNSOUND = np.uint64(1 << 63)
_OUTSIDE = np.uint64(0b1111 << 60)
_ONE_ELEMENT = np.uint64(1 << 60)
_ONE_LEVEL = np.uint64(1 << 32)
_MAX_LEVELS = np.uint64(MAX_LEVELS)


class Reductions(NamedTuple):
    """Reductions of symbols (terminals, then rules)."""

    values: Any
    """uint64 by symbol."""
    places: Any
    """int64 by symbol that is not balanced: position of its closes and opens in ``arena``."""
    arena: Any
    """uint32. At each position the numbers of closes and opens, then ``state, name`` of each close, and ``symbol, name,
    state`` of each open."""
    stack: Any
    """uint32, a stack of open elements: ``symbol, name, state of its parent`` each."""


def states_of(values: UInt64) -> Int64:
    """Return the states of balanced runs."""
    return (values & _STATE).astype(np.int64)


def are_documents(values: UInt64) -> Bools:
    """Tell which runs are balanced and a single element."""
    documents: Bools = (values & _OUTSIDE) == _ONE_ELEMENT
    return documents


def heights_of(values: UInt64) -> Int64:
    """Return the maximum number of open elements of each run."""
    return (values >> _HEIGHT & _MAX_LEVELS).astype(np.int64)


@kernel
def mark_needed(terminals: Any, rule_offsets: Any, symbols: Any, root_offsets: Any, roots: Any, needed: Any) -> None:
    """Set ``needed``, uint8 by symbol and initially zero, to 1 for symbols that documents reach."""
    for i in range(np.uint64(root_offsets[0]), np.uint64(root_offsets[-1])):
        needed[roots[i]] = 1
    rule = np.uint64(len(rule_offsets)) - _1
    while rule > _0:
        rule -= _1
        if needed[np.uint64(terminals) + rule]:
            for i in range(np.uint64(rule_offsets[rule]), np.uint64(rule_offsets[rule + _1])):
                needed[symbols[i]] = 1


@kernel
def reduce_terminals(automaton: Any, reductions: Any, most_levels: Any, progress: Any, words: Any, needed: Any) -> Any:
    """Reduce the needed words, from ``progress[NEXT]`` on."""
    values, arena = reductions.values, reductions.arena
    for word in range(np.uint64(progress[NEXT]), np.uint64(len(words.kinds))):
        if not needed[word]:
            continue
        progress[NEXT] = word
        at = np.uint64(progress[USED])
        if at + _5 > np.uint64(len(arena)):
            return ARENA_FULL
        kind = words.kinds[word]
        first, stop = np.uint64(words.offsets[word]), np.uint64(words.offsets[word + _1])
        is_element = kind in (OPEN, EMPTY)
        value = _0
        if kind == TEXT or is_element:
            state = _accumulate_leaves(automaton, words.symbols, first + np.uint64(is_element), stop)
            if kind == EMPTY and state != FULL:
                state = close(automaton, state, np.int64(words.symbols[first]))
            if state == FULL:
                return STATES_FULL
            if kind == OPEN:
                arena[at], arena[at + _1] = 0, 1
                arena[at + _2], arena[at + _3] = words.symbols[first], words.names[word]
                arena[at + _2 + _2] = state
                progress[USED] += 5
            else:
                value = np.uint64(state)
            if is_element:
                value |= _ONE_LEVEL | _ONE_ELEMENT
        elif kind == SHUT:
            arena[at], arena[at + _1] = 1, 0
            arena[at + _2], arena[at + _3] = NONE_FOUND, words.names[word]
            progress[USED] += 4
        if kind in (OPEN, SHUT):
            reductions.places[word] = at
            value |= _UNBALANCED
        if kind == DOUBTFUL or (is_element and most_levels < 1):
            value = _UNSOUND
        values[word] = value
    return DONE


@inner
def _accumulate_leaves(automaton: Any, symbols: Any, first: Any, stop: Any) -> Any:
    """Accumulate attributes or texts, each a symbol with its ``CLOSE``; of an empty element with the final one."""
    state = np.int64(NONE_FOUND)
    while first + _1 < stop:
        below = close(automaton, np.int64(NONE_FOUND), np.int64(symbols[first]))
        if below == FULL:
            return below
        state = union(automaton, state, below)
        if state == FULL:
            return state
        first += _2
    return state


@kernel
def reduce_bodies(
    automaton: Any,
    reductions: Any,
    most_levels: Any,
    progress: Any,
    offsets: Any,
    symbols: Any,
    needed: Any,
    values: Any,
    places: Any,
) -> Any:
    """Reduce bodies from ``progress[NEXT]`` on: the ``needed`` rules, or all documents if ``needed`` is empty.

    ``values`` and, of rules, ``places`` are filled by body.
    """
    for body in range(np.uint64(progress[NEXT]), np.uint64(len(values))):
        first, stop = np.uint64(offsets[body]), np.uint64(offsets[body + _1])
        if len(needed) == 0:
            if stop == first + _1:
                values[body] = reductions.values[symbols[first]]
                continue
        elif not needed[body]:
            continue
        progress[NEXT] = body
        used = progress[USED]
        code = _reduce(automaton, reductions, np.uint64(most_levels), progress, symbols, first, stop)
        if code != DONE:
            return code
        values[body] = progress[VALUE]
        if len(needed) == 0:
            progress[USED] = used
        else:
            places[body] = used
    progress[NEXT] = len(values)
    return DONE


@inner
def _reduce(
    automaton: Any, reductions: Any, most_levels: Any, progress: Any, symbols: Any, first: Any, stop: Any
) -> Any:
    """Reduce ``symbols[first:stop]``: the value is stored in ``progress``, closes and opens in the arena."""
    values, places, arena, stack = reductions.values, reductions.places, reductions.arena, reductions.stack
    used, room = np.uint64(progress[USED]), np.uint64(len(arena))
    at = used + _2
    state = np.int64(NONE_FOUND)
    depth = closes = elements = _0
    highest = np.int64(0)  # above the run's start
    progress[VALUE] = np.int64(_UNSOUND)  # overwritten on success
    for i in range(first, stop):
        symbol = symbols[i]
        value = values[symbol]
        if value >= _UNSOUND:
            return DONE
        highest = max(highest, np.int64(depth + (value >> _HEIGHT & _MAX_LEVELS)) - np.int64(closes))
        opens, place = _0, _0
        if value >= _UNBALANCED:
            place = np.uint64(places[symbol])
            opens = np.uint64(arena[place + _1])
            first_close = place + _2
            place = first_close + (np.uint64(arena[place]) << _1)
            for begun in range(first_close, place, _2):
                state = union(automaton, state, np.int64(arena[begun]))
                if state == FULL:
                    return STATES_FULL
                name = arena[begun + _1]
                if depth > _0:
                    depth -= _1
                    frame = depth * _3
                    if stack[frame + _1] != name:
                        return DONE
                    state = close(automaton, state, np.int64(stack[frame]))
                    if state != FULL:
                        state = union(automaton, np.int64(stack[frame + _2]), state)
                    if state == FULL:
                        return STATES_FULL
                else:
                    if at + _2 > room:
                        return ARENA_FULL
                    arena[at], arena[at + _1] = state, name
                    at += _2
                    closes += _1
                    state = np.int64(NONE_FOUND)
                    elements = _0
        if np.uint64(highest) + closes > most_levels:
            return DONE
        state = union(automaton, state, np.int64(value & _STATE))
        if state == FULL:
            return STATES_FULL
        if depth == _0:
            elements = min(_2, elements + (value >> _ELEMENTS & _3))
        if (depth + opens) * _3 > np.uint64(len(stack)):
            return STACK_FULL
        for _ in range(opens):
            frame = depth * _3
            stack[frame], stack[frame + _1], stack[frame + _2] = arena[place], arena[place + _1], state
            state = np.int64(arena[place + _2])
            place += _3
            depth += _1
    value = np.uint64(highest) << _HEIGHT | elements << _ELEMENTS
    if closes + depth == _0:
        progress[VALUE] = np.int64(value | np.uint64(state))
        return DONE
    if at + depth * _3 > room:
        return ARENA_FULL
    arena[used], arena[used + _1] = closes, depth
    for level in range(depth):
        frame = np.uint64(level) * _3
        arena[at], arena[at + _1] = stack[frame], stack[frame + _1]
        arena[at + _2] = np.int64(stack[frame + _5]) if frame + _3 < depth * _3 else state
        at += _3
    progress[USED] = np.int64(at)
    progress[VALUE] = np.int64(value | _UNBALANCED | np.uint64(np.int64(stack[_2]) if depth > _0 else state))
    return DONE
