"""A lazy automaton that evaluates all twigs at once.

A *state* is a set of nodes, numbered when it first occurs: the nodes that an element adds to its parent, or that all
children so far have added (*accumulated*). There are two transitions (steps): ``close`` (an element ends) and ``union``
(it is added to its parent's nodes). Each step is computed on node sets once and cached, so its cost does not depend on
the number of twigs.

Gupta and Suciu, SIGMOD 2003 (the lazy XPush machine); RE2 (a lazy automaton in bounded memory that is discarded when
full).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from polars_tadoc.kernels.twigs.arrays import NO_ENTRY, OTHER, Twigs
from polars_tadoc.kernels.twigs.twig_folds_cpu import Folds, fold, keep_whole, make_folds
from polars_tadoc.runtime.array_types import UInt64
from polars_tadoc.runtime.jit import inner, kernel

FULL = -1
"""Returned instead of a state if there is no room for another step; call :func:`roomier` and repeat."""

NONE_FOUND = 0
"""The empty state."""

STATES, CLOSES, UNIONS, READ = range(4)
"""Positions in ``made``."""

_FIRST_STATES, _FIRST_STEPS, _GROWTH = 256, 1024, 2

_UNKNOWN = -1
_0, _1, _32, _63 = (np.uint64(number) for number in (0, 1, 32, 63))
_LOW = np.uint64(0xFFFFFFFF)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class Automaton(NamedTuple):
    """Twigs and their known states, for one thread at a time. All arrays are modified in place."""

    words: int
    """64-bit words in a node set."""
    twigs: Twigs
    wildcards: Any
    """uint64[words]: nodes that any element passes."""
    folds: Folds
    folded: Any
    """uint64[words + 1]: work space for a folded set of found nodes."""

    sets: Any
    """uint64[most states * words]: the nodes of each state; state 0 has none."""
    numbers: Any
    """uint64[a power of two]: hash table of states by their nodes: high half of the hash, state + 1; 0 is free."""
    childless: Any
    """int32[symbols]: result of closing with nothing accumulated, or -1 if unknown."""
    closes: Any
    """uint64[2 * a power of two]: hash table of steps: key (state, symbol), result."""
    unions: Any
    """uint64[2 * a power of two]: the same with a pair of states as key."""
    made: Any
    """int64[4]: number of ``STATES``, of steps in ``CLOSES`` and ``UNIONS``, of events ``READ`` with them."""

    @property
    def most_states(self) -> int:
        """Maximum number of states."""
        return len(self.numbers) // 2

    @property
    def nbytes(self) -> int:
        """Bytes of the growing arrays."""
        return int(self.sets.nbytes + self.numbers.nbytes + self.closes.nbytes + self.unions.nbytes)


def make_automaton(twigs: Twigs) -> Automaton:
    """Make the automaton of twigs, with only the empty state.

    Parameters
    ----------
    twigs
        NumPy arrays; not copied, so they must not change.

    """
    words, symbols = twigs.words, len(twigs.heads)
    arrays: list[Any] = [np.zeros(words, np.uint64), make_folds(twigs), np.zeros(words + 1, np.uint64)]
    arrays.append(np.zeros(_FIRST_STATES * words, np.uint64))
    arrays.append(np.zeros(2 * _FIRST_STATES, np.uint64))
    arrays.append(np.empty(symbols, np.int32))
    arrays += [np.zeros(4 * _FIRST_STEPS, np.uint64) for _ in range(2)]
    arrays.append(np.zeros(4, np.int64))
    automaton = Automaton(words, twigs, *arrays)
    entries = twigs.entry_words, twigs.entry_bits, twigs.entry_next
    _collect_wildcards(twigs.heads[OTHER], *entries, automaton.wildcards)
    forget(automaton)
    return automaton


def roomier(automaton: Automaton) -> Automaton:
    """Return the automaton with more room where it is full; states keep their numbers, and steps stay cached."""
    states, closes, unions = automaton.most_states, automaton.closes, automaton.unions
    if automaton.made[STATES] >= states:
        sets = np.zeros(_GROWTH * states * automaton.words, np.uint64)
        sets[: automaton.sets.size] = automaton.sets
        automaton = automaton._replace(sets=sets, numbers=np.zeros(_GROWTH * automaton.numbers.size, np.uint64))
        _number_again(sets, automaton.words, states, automaton.numbers)
    if automaton.made[CLOSES] >= closes.size // 4:
        automaton = automaton._replace(closes=_wider(closes))
    if automaton.made[UNIONS] >= unions.size // 4:
        automaton = automaton._replace(unions=_wider(unions))
    return automaton


def forget(automaton: Automaton) -> None:
    """Discard all states but the empty one, and all steps."""
    for table in (automaton.numbers, automaton.closes, automaton.unions, automaton.made):
        table[:] = 0
    automaton.childless[:] = _UNKNOWN
    automaton.sets[: automaton.words] = 0
    _number_again(automaton.sets, automaton.words, 1, automaton.numbers)
    automaton.made[STATES] = 1


def _wider(steps: UInt64) -> UInt64:
    wider = np.zeros(_GROWTH * steps.size, np.uint64)
    _copy_steps(steps, wider)
    return wider


@inner
def close(automaton: Any, accumulated: Any, symbol: Any) -> Any:
    """Return what a closed element, attribute or text adds to its parent.

    Parameters
    ----------
    automaton
        The thread's automaton.
    accumulated
        int64: accumulated state of its children.
    symbol
        int64.

    Returns
    -------
    int64
        A state, or ``FULL``.

    """
    if accumulated == NONE_FOUND:
        element = np.int64(automaton.childless[symbol])
        if element != _UNKNOWN:
            return element
    else:
        slot = find_step(automaton.closes, accumulated, symbol)
        if automaton.closes[slot] != _0:
            return np.int64(automaton.closes[slot + _1])
    return close_first(automaton, accumulated, symbol)


@inner
def union(automaton: Any, accumulated: Any, element: Any) -> Any:
    """Return the union of two states, or ``FULL``.

    Parameters
    ----------
    automaton
        The thread's automaton.
    accumulated, element
        int64: states.

    Returns
    -------
    int64
        A state, or ``FULL``.

    """
    if accumulated == element or element == NONE_FOUND:
        return accumulated
    if accumulated == NONE_FOUND:
        return element
    slot = find_step(automaton.unions, accumulated, element)
    if automaton.unions[slot] != _0:
        return np.int64(automaton.unions[slot + _1])
    return union_first(automaton, accumulated, element)


@inner
def state_of(automaton: Any, source: Any, start: Any) -> Any:
    """Return the state of the node set at ``source[start]``, or ``FULL``."""
    states, words = automaton.made[STATES], automaton.words
    if states >= len(automaton.numbers) // 2:
        return np.int64(FULL)
    for word in range(words):
        automaton.sets[states * words + word] = source[start + word]
    return number_last(automaton)


@inner
def find_step(steps: Any, state: Any, other: Any) -> Any:
    """Return the position of a step in a hash table; its key is zero if the step is unknown. State 0 has no steps."""
    key = np.uint64(state) << _32 | np.uint64(other)
    mask = np.uint64(len(steps) - 1)
    product = key * _FACTOR
    slot = (product ^ product >> _32) << _1 & mask
    while steps[slot] != key and steps[slot] != _0:
        slot = slot + np.uint64(2) & mask
    return slot


@inner
def close_first(automaton: Any, accumulated: Any, symbol: Any) -> Any:
    """Compute and cache a step that ``close`` does not know."""
    states = automaton.made[STATES]
    if states >= len(automaton.numbers) // 2 or automaton.made[CLOSES] >= len(automaton.closes) // 4:
        return np.int64(FULL)
    words = automaton.words
    close_nodes(automaton, automaton.sets, accumulated * words, symbol, automaton.sets, states * words)
    element = number_last(automaton)
    if accumulated == NONE_FOUND:
        automaton.childless[symbol] = element
    else:
        slot = find_step(automaton.closes, accumulated, symbol)
        automaton.closes[slot] = np.uint64(accumulated) << _32 | np.uint64(symbol)
        automaton.closes[slot + _1] = np.uint64(element)
        automaton.made[CLOSES] += 1
    return element


@inner
def union_first(automaton: Any, accumulated: Any, element: Any) -> Any:
    """Compute and cache a step that ``union`` does not know."""
    states = automaton.made[STATES]
    if states >= len(automaton.numbers) // 2 or automaton.made[UNIONS] >= len(automaton.unions) // 4:
        return np.int64(FULL)
    words, sets = automaton.words, automaton.sets
    a, b, to = accumulated * words, element * words, states * words
    more = _0
    for word in range(words):
        sets[to + word] = sets[a + word] | sets[b + word]
        more |= sets[to + word] ^ sets[a + word]
    joined = number_last(automaton) if more != _0 else accumulated
    slot = find_step(automaton.unions, accumulated, element)
    automaton.unions[slot] = np.uint64(accumulated) << _32 | np.uint64(element)
    automaton.unions[slot + _1] = np.uint64(joined)
    automaton.made[UNIONS] += 1
    return joined


@inner
def close_nodes(automaton: Any, source: Any, found: Any, symbol: Any, target: Any, to: Any) -> None:
    """Compute ``close`` on node sets.

    The accumulated set is at ``source[found]``, the result is written to ``target[to]``; the two must not overlap.
    """
    words, folded = automaton.words, automaton.folded
    fold(automaton.folds, words, source, found, folded)
    anything = _0 - np.uint64(automaton.twigs.elements[symbol])
    for word in range(words):
        begun = automaton.twigs.leaves[word] | folded[word] >> _1 | folded[word + 1] << _63
        target[to + word] = begun & automaton.wildcards[word] & anything
    entry = automaton.twigs.heads[symbol]
    while entry != NO_ENTRY:
        own = np.int64(automaton.twigs.entry_words[entry])
        begun = automaton.twigs.leaves[own] | folded[own] >> _1 | folded[own + 1] << _63
        target[to + own] |= begun & automaton.twigs.entry_bits[entry]
        entry = automaton.twigs.entry_next[entry]
    keep_whole(automaton.folds, automaton.twigs.branches, automaton.twigs.siblings, source, found, target, to)
    for word in range(words):
        target[to + word] |= source[found + word] & automaton.twigs.descendants[word]


@inner
def number_last(automaton: Any) -> Any:
    """Return the state of the set after the last state's; if new, it becomes the next state."""
    words, sets, numbers = automaton.words, automaton.sets, automaton.numbers
    last = automaton.made[STATES]
    hashed = _hash(sets, last * words, words)
    mask = np.uint64(len(numbers) - 1)
    slot = hashed & mask
    while numbers[slot] != _0:
        if (numbers[slot] ^ hashed) >> _32 == _0:
            state = np.int64(numbers[slot] & _LOW) - 1
            word = 0
            while word < words and sets[state * words + word] == sets[last * words + word]:
                word += 1
            if word == words:
                return state
        slot = slot + _1 & mask
    numbers[slot] = hashed >> _32 << _32 | np.uint64(last + 1)
    automaton.made[STATES] = last + 1
    return last


@inner
def _hash(sets: Any, start: Any, words: Any) -> Any:
    a, b, c, d = _FACTOR, _FACTOR, _FACTOR, _FACTOR  # four accumulators: no product waits for the previous one
    for word in range(start, start + words - 3, 4):
        a = _mixed(a, sets[word])
        b = _mixed(b, sets[word + 1])
        c = _mixed(c, sets[word + 2])
        d = _mixed(d, sets[word + 3])
    for word in range(start + words - words % 4, start + words):
        a = _mixed(a, sets[word])
    return _mixed(_mixed(_mixed(a, b), c), d)


@inner
def _mixed(hashed: Any, bits: Any) -> Any:
    product = (hashed ^ bits) * _FACTOR
    return product ^ product >> _32


@kernel
def _number_again(sets: Any, words: Any, states: Any, numbers: Any) -> None:
    mask = np.uint64(len(numbers) - 1)
    for state in range(states):
        hashed = _hash(sets, state * words, words)
        slot = hashed & mask
        while numbers[slot] != _0:
            slot = slot + _1 & mask
        numbers[slot] = hashed >> _32 << _32 | np.uint64(state + 1)


@kernel
def _copy_steps(steps: Any, wider: Any) -> None:
    for slot in range(0, len(steps), 2):
        key = steps[slot]
        if key != _0:
            place = find_step(wider, key >> _32, key & _LOW)
            wider[place] = key
            wider[place + _1] = steps[slot + 1]


@kernel
def _collect_wildcards(entry: Any, entry_words: Any, entry_bits: Any, entry_next: Any, wildcards: Any) -> None:
    while entry != NO_ENTRY:
        wildcards[entry_words[entry]] |= entry_bits[entry]
        entry = entry_next[entry]
