"""Matches twigs against events on the CPU."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.twigs.arrays import Events, Twigs, WordEvents
from polars_tadoc.kernels.twigs.twig_automaton_cpu import (
    CLOSES,
    READ,
    STATES,
    UNIONS,
    Automaton,
    forget,
    make_automaton,
    roomier,
)
from polars_tadoc.kernels.twigs.twig_rules_cpu import match_rules
from polars_tadoc.kernels.twigs.twig_walks_cpu import (
    POSITION,
    USED,
    gather_lists,
    list_states,
    to_nodes,
    to_states,
    walk_nodes,
    walk_states,
)
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

MAX_BYTES = 64 << 20
"""Maximum bytes of a thread's cached states and steps; beyond it all are discarded."""

_FEWEST_EVENTS = 1 << 13
"""Minimum events per thread."""

_WORTH = 8
"""Minimum ratio of look-ups to computed steps for caching to pay."""

_NODES_FOR = 16
"""If caching does not pay, do without for this many times the events read since the last discard."""


def load_events(events: Events) -> Events:
    """Make events resident for the kernels; on the CPU they already are."""
    return events


class TwigMatcher:
    """Twigs prepared for matching; thread-safe.

    Calls share cached states and steps.

    Parameters
    ----------
    twigs
        NumPy arrays; they must not change.

    """

    def __init__(self, twigs: Twigs) -> None:
        self._twigs = twigs
        self.idle: list[Automaton] = []  # at most one per concurrent thread

    def asking(self, roots: UInt32) -> TwigMatcher:
        """Return a matcher for other roots of the same twigs; the two share their caches."""
        other = TwigMatcher(self._twigs._replace(roots=roots))
        other.idle = self.idle
        return other

    def match(self, events: Events) -> tuple[Int64, UInt32]:
        """Return the twigs that match each document.

        One thread reads a document, as one thread parses it, which takes many times as long.

        Parameters
        ----------
        events
            NumPy's arrays.

        Returns
        -------
        (int64 array, uint32 array)
            Offsets of each document's twigs, documents + 1, and the twigs, ascending.

        """
        chunks = weighted_chunks(events.offsets, _FEWEST_EVENTS)
        parts = map_parallel(lambda chunk: self._match_chunk(events, chunk), chunks)
        offsets = running_sum(np.concatenate([part.lengths for part in parts]))
        matches = allocate(int(offsets[-1]), np.uint32)[1]

        def gather(chunk: tuple[int, int], part: Lists) -> None:
            gather_lists(part.starts, part.lists, offsets[chunk[0] : chunk[1] + 1], matches)

        map_parallel(lambda pair: gather(*pair), list(zip(chunks, parts, strict=True)))
        return offsets, matches

    def match_rules(
        self, rules: Rules, root_offsets: Int64, roots: UInt32, words: WordEvents, most_levels: int
    ) -> tuple[Int64, UInt32, UInt8]:
        """Return the twigs that match each document of a grammar; see :func:`.twig_rules.match_rules`."""
        return match_rules(self._twigs, self.idle, self.match, rules, root_offsets, roots, words, most_levels)

    def _match_chunk(self, events: Events, chunk: tuple[int, int]) -> Lists:
        try:
            automaton = self.idle.pop()
        except IndexError:
            automaton = make_automaton(self._twigs)
        walk = _Walk(automaton, self._twigs.roots, events, chunk)
        walk.run()
        self.idle.append(walk.automaton)
        return Lists(walk.starts, walk.lengths, walk.lists)


class Lists(NamedTuple):
    """Twigs that match documents; documents with the same matches may share one list."""

    starts: Int64
    """Start of each document's list."""
    lengths: Int64
    lists: UInt32


class _Walk:
    """One thread's walk over documents."""

    def __init__(self, automaton: Automaton, roots: UInt32, events: Events, chunk: tuple[int, int]) -> None:
        documents = chunk[1] - chunk[0]
        self.automaton, self.roots, self.levels = automaton, roots, events.depth + 1
        self.symbols = events.symbols
        self.offsets = events.offsets[chunk[0] : chunk[1] + 1]
        self.opened, self.states = np.empty(self.levels, np.int64), np.zeros(self.levels, np.int64)
        self.progress = np.zeros(5, np.int64)
        self.progress[POSITION] = self.offsets[0]
        self.finals, self.starts, self.lengths = (np.empty(documents, np.int64) for _ in range(3))
        self.lists = np.empty(2 * len(roots), np.uint32)

    def run(self) -> None:
        events = self.symbols, self.offsets, self.opened
        while not walk_states(self.automaton, *events, self.states, self.progress, self.finals):
            if not self._widen():
                self._forget()
        self._list_states()

    def _widen(self) -> bool:
        larger = roomier(self.automaton)
        if larger.nbytes > MAX_BYTES:
            return False
        self.automaton = larger
        return True

    def _forget(self) -> None:
        """Discard everything but the sets on open levels; if look-ups did not pay, do without for a while."""
        self._list_states()
        nodes = np.empty((self.levels + 1) * self.automaton.words, np.uint64)
        to_nodes(self.automaton, self.states, self.progress, nodes)
        read, steps = int(self.automaton.made[READ]), int(self.automaton.made[CLOSES] + self.automaton.made[UNIONS])
        forget(self.automaton)
        paid = read > _WORTH * steps
        while not paid or not self._number(nodes):
            self._walk_nodes(nodes, int(self.progress[POSITION]) + _NODES_FOR * (read + 1))
            forget(self.automaton)
            paid = True

    def _number(self, nodes: UInt64) -> bool:
        while not to_states(self.automaton, nodes, self.progress, self.states):
            if not self._widen():
                return False
        return True

    def _walk_nodes(self, nodes: UInt64, last: int) -> None:
        events = self.symbols, self.offsets, last, self.opened, nodes
        while not walk_nodes(self.automaton, self.roots, *events, self.progress, self.starts, self.lengths, self.lists):
            self._lengthen_lists()

    def _list_states(self) -> None:
        first = np.full(self.automaton.made[STATES], -1, np.int64)
        lists = self.starts, self.lengths
        while not list_states(self.automaton, self.roots, self.finals, self.progress, first, *lists, self.lists):
            self._lengthen_lists()

    def _lengthen_lists(self) -> None:
        longer = np.empty(2 * self.lists.size, np.uint32)
        longer[: self.progress[USED]] = self.lists[: self.progress[USED]]
        self.lists = longer
