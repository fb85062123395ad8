"""Automata of patterns, over classes of characters."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_tadoc.kernels.host.patterns.match import FOUND, REST
from polars_tadoc.rows.pattern_syntax import (
    LINE_END,
    LINE_START,
    NOT_WORD,
    TEXT_START,
    WORD,
    Nodes,
    Unsupported,
    read_pattern,
)
from polars_tadoc.runtime.array_types import UInt8, UInt16, UInt32, array_dataclass
from polars_tadoc.runtime.cache import ByteLRU
from polars_tadoc.runtime.cached_property import cached_property

MAX_STEPS = 1 << 20
"""Maximum size of the table of steps: states by classes."""


@array_dataclass
class PatternAutomaton:
    """A deterministic automaton; state ``FOUND`` is absorbing and unused where matches are counted."""

    classes: UInt8
    """Class by code point; code points beyond its end are of class 0."""
    steps: UInt16
    """Next state, by state and class."""
    hits: UInt8
    """Matches completed, likewise."""
    start: int
    """State before the text; ``FOUND`` if every text matches."""
    at_end: UInt8
    """By state: matches completed by the end of the text."""
    literal: str | None = None
    """The string, if it finds one."""
    key: str = ""
    """Key in caches: the pattern, and for a regular expression its alphabet."""
    counts: bool = False
    """Whether it counts matches; otherwise the first one ends in ``FOUND``."""

    @cached_property
    def is_over(self) -> bool:
        """Whether no match can begin once the automaton is at rest: it is anchored at the text's start."""
        if self.literal is not None:
            return False
        seen, todo = {REST}, [REST]
        while todo:
            state = todo.pop()
            if state == FOUND or self.hits[state].any() or self.at_end[state]:
                return False
            following = set(self.steps[state].tolist()) - seen
            seen |= following
            todo.extend(following)
        return True

    @cached_property
    def beyond(self) -> UInt8:
        """Classes of characters beyond ASCII."""
        some = self.classes[128:]  # nearly all are 0
        return np.unique(np.append(some[np.flatnonzero(some.view(np.bool_))], np.uint8(0)))

    @property
    def width(self) -> int:
        """Number of classes."""
        return int(self.steps.shape[1])


def literal_automaton(literal: str, counts: bool) -> PatternAutomaton | None:
    """Build the automaton that finds a string (Knuth, Morris and Pratt, 1977); None if it would be too large.

    Parameters
    ----------
    literal
        At least one character.
    counts
        Whether to count the matches, which do not overlap; otherwise the first one ends in ``FOUND``.

    """
    distinct = sorted(set(literal))
    width = len(distinct) + 1
    if width > 255 or len(literal) * width > MAX_STEPS or len(literal) >= 60_000:
        return None
    numbers = {character: 1 + k for k, character in enumerate(distinct)}
    classes = np.zeros(max(ord(distinct[-1]), 127) + 1, np.uint8)
    for character, number in numbers.items():
        classes[ord(character)] = number
    size = len(literal) + 1  # state k + 1 has read k characters; FOUND is in the place of the first, after REST
    steps = np.full((size, width), REST, np.uint16)
    hits = np.zeros((size, width), np.uint8)
    steps[FOUND] = FOUND
    fallen = REST
    for place, character in enumerate(literal):
        own = REST if place == 0 else place + 1
        if place:
            steps[own] = steps[fallen]
        number = numbers[character]
        if place:
            fallen = int(steps[fallen, number])
        steps[own, number] = place + 2
    if counts:
        steps[own, number], hits[own, number] = REST, 1
    else:
        steps[own, number] = FOUND
    return PatternAutomaton(
        classes, steps, hits, REST, np.zeros(size, np.uint8), literal, f"{counts} {literal}", counts
    )


MAX_STATES = 1500
"""Maximum states of a regular expression's automaton."""

MAX_LATER = 4
"""Maximum searches at once, and matches of each, while a longer match may follow."""

_EDGE, _OTHER, _WORD, _LINE = 0, 1, 2, 3
"""Kinds of characters that assertions tell apart: the text's edge, others, those of words, line ends."""

_WORD_SET, _LINE_SET = r"\w", r"\n"


@dataclass(frozen=True)
class _State:
    """Where a search is after some characters."""

    threads: tuple[int, ...]
    """Nodes to go on from, preferred ones first."""
    before: int
    """Kind of the last character; ``_OTHER`` where no assertion asks for it."""
    later: _State | None = None
    """If a match has ended and a longer one may follow: the search for the next match from its end."""
    matches: int = 0
    """Matches that this search has completed."""
    depth: int = 0
    """Searches in ``later``, one in another."""


def regex_automaton(pattern: str, alphabet: UInt32, counts: bool) -> PatternAutomaton | None:
    """Build the automaton of a regular expression; None if it would be too large, or lacks something.

    Matches are leftmost-first, as in Rust's ``regex``: alternatives are tried in their order.

    Parameters
    ----------
    pattern
        A pattern that Polars can read.
    alphabet
        uint32: the code points of the text, ascending.
    counts
        Whether to count the matches, which do not overlap; otherwise the first one ends in ``FOUND``.

    """
    try:
        return _Determinised(read_pattern(pattern), alphabet, counts).automaton()
    except Unsupported:
        return None


class _Determinised:
    """States by the subset construction, with nodes in order of preference."""

    def __init__(self, nodes: Nodes, alphabet: UInt32, counts: bool) -> None:
        self._nodes, self._counts = nodes, counts
        used = {assertion for assertion in nodes.assertions if assertion}
        self._kinds = [_OTHER]
        sets = sorted({own for own in nodes.sets if own is not None})
        if used:
            self._kinds = [_EDGE, _OTHER]
            if used & {WORD, NOT_WORD}:
                sets.append(_WORD_SET)
                self._kinds.append(_WORD)
            if used & {LINE_START, LINE_END}:
                sets.append(_LINE_SET)
                self._kinds.append(_LINE)
        inside = np.zeros((len(sets) + 1, len(alphabet)), np.bool_)
        for row, members in zip(inside, _tell_members(sets, alphabet), strict=False):
            row[:] = members
        packed = np.packbits(inside, axis=0)
        keys = np.ascontiguousarray(packed.T).view(f"V{len(packed)}").reshape(-1)
        _, firsts, numbers = np.unique(keys, return_index=True, return_inverse=True)
        distinct = inside[:, firsts]
        self.width = distinct.shape[1]
        if self.width > 255:
            raise Unsupported
        self.classes = np.zeros(max(int(alphabet.max(initial=0)), 127) + 1, np.uint8)
        self.classes[alphabet] = numbers.reshape(-1)
        of_sets = {own: {int(k) for k in np.flatnonzero(row)} for own, row in zip(sets, distinct, strict=False)}
        self._members = [of_sets[own] if own is not None else set() for own in nodes.sets]
        lines, words = (of_sets[own] if kind in self._kinds else set() for kind, own in _KIND_SETS)
        self._kind_of = [_LINE if k in lines else _WORD if k in words else _OTHER for k in range(self.width)]
        self._closures: dict[tuple[tuple[int, ...], int, int], tuple[tuple[int, ...], bool]] = {}
        self._rest = _State((), _WORD if _WORD in self._kinds else _OTHER)
        self._start = _State((), _EDGE if used else _OTHER)
        empty = [self._closure((nodes.start,), left, right)[1] for left in self._kinds for right in self._kinds]
        if counts and any(empty):
            raise Unsupported
        self._is_everywhere = all(empty)

    def automaton(self) -> PatternAutomaton:
        """Number the states from ``REST`` on; ``FOUND`` has no state."""
        numbers: dict[_State, int] = {self._rest: REST}
        order: list[_State | None] = [self._rest, None]
        steps: list[list[int]] = []
        hits: list[list[int]] = []

        def number(state: _State) -> int:
            if state not in numbers:
                if len(order) >= MAX_STATES or len(order) * self.width > MAX_STEPS:
                    raise Unsupported
                numbers[state] = len(order)
                order.append(state)
            return numbers[state]

        start = FOUND if self._is_everywhere else number(self._start)
        for state in order:  # which grows
            if state is None:
                steps.append([FOUND] * self.width)
                hits.append([0] * self.width)
                continue
            own = [self._step(state, k) for k in range(self.width)]
            steps.append([FOUND if after is None else number(after) for after, _ in own])
            hits.append([count for _, count in own])
        if max(map(max, hits), default=0) > 255:
            raise Unsupported
        at_end = [0 if state is None else self._at_end(state) for state in order]
        return PatternAutomaton(
            self.classes,
            np.array(steps, np.uint16),
            np.array(hits, np.uint8),
            start,
            np.array(at_end, np.uint8),
            counts=self._counts,
        )

    def _closure(self, threads: tuple[int, ...], left: int, right: int) -> tuple[tuple[int, ...], bool]:
        """Return the reading nodes that threads reach between two kinds, up to a match, and whether there is one."""
        key = threads, left, right
        if key in self._closures:
            return self._closures[key]
        seen: set[int] = set()
        reading: list[int] = []
        stack = list(reversed(threads))
        matched = False
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if node == 0:
                matched = True
                break
            if self._nodes.sets[node] is not None:
                reading.append(node)
            elif self._nodes.assertions[node] is None or _holds(self._nodes.assertions[node], left, right):
                stack.extend(reversed(self._nodes.onward[node]))
        self._closures[key] = tuple(reading), matched
        return self._closures[key]

    def _step(self, state: _State, k: int) -> tuple[_State | None, int]:
        """Return the state after a character of a class, None if a first match was found, and the matches completed."""
        kind = self._kind_of[k]
        before = kind if kind in self._kinds and len(self._kinds) > 1 else _OTHER
        threads = state.threads if state.later is not None else (*state.threads, self._nodes.start)
        reading, matched = self._closure(threads, state.before, before)
        if matched and not self._counts:
            return None, 0
        after = tuple(dict.fromkeys(self._nodes.onward[node][0] for node in reading if k in self._members[node]))
        if not self._counts:
            after = tuple(sorted(after))
            if all(self._closure(after, before, right)[1] for right in self._kinds):
                return None, 0  # whatever follows
            return _State(after, before), 0
        later, matches = state.later, state.matches
        if matched:
            later, matches = self._step(_State((), state.before), k)
        elif later is not None:
            later, more = self._step(later, k)
            matches += more
        if later is not None and not after:
            return later, 1 + matches
        depth = 0 if later is None else 1 + later.depth
        if matches > MAX_LATER or depth > MAX_LATER:
            raise Unsupported
        return _State(after, before, later, matches, depth), 0

    def _at_end(self, state: _State) -> int:
        threads = state.threads if state.later is not None else (*state.threads, self._nodes.start)
        _, matched = self._closure(threads, state.before, _EDGE if _EDGE in self._kinds else _OTHER)
        if matched:
            return 1
        return 0 if state.later is None else 1 + state.matches + self._at_end(state.later)


_KIND_SETS = ((_LINE, _LINE_SET), (_WORD, _WORD_SET))


_members: ByteLRU[NDArray[np.bool_]] = ByteLRU(lambda: 1 << 20, lambda own: own.nbytes + 256)
"""Cache: which characters of an alphabet are in a set."""


def _tell_members(sets: list[str], alphabet: UInt32) -> list[NDArray[np.bool_]]:
    """Tell for each set which characters are in it."""
    digest = blake2b(alphabet.tobytes()).hexdigest()
    known = {own: _members.get(f"{digest} {own}") for own in sets}
    for own in sets:
        if own[0] not in "\\.[(" or (own[0] == "\\" and not own[1].isalnum()):  # one character
            known[own] = alphabet == ord(own[-1])
    unknown = [own for own, row in known.items() if row is None]
    if unknown:
        characters = pl.Series([chr(code) for code in alphabet.tolist()], dtype=pl.String)
        named = (pl.first().str.contains(rf"\A(?:{own})\z").alias(own) for own in unknown)
        for own, column in zip(unknown, characters.to_frame().select(named), strict=True):
            known[own] = _members.put(f"{digest} {own}", column.to_numpy())
    return [np.asarray(known[own]) for own in sets]


def _holds(assertion: str | None, left: int, right: int) -> bool:
    """Tell whether an assertion holds between characters of two kinds."""
    if assertion in (WORD, NOT_WORD):
        return ((left == _WORD) != (right == _WORD)) == (assertion == WORD)
    if assertion in (TEXT_START, LINE_START):
        return left == _EDGE or (left == _LINE and assertion == LINE_START)
    return right == _EDGE or (right == _LINE and assertion == LINE_END)
