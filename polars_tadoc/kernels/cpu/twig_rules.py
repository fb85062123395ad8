"""Filters the documents of a grammar without expanding them: each rule is read once, then the documents' symbols.

Each thread makes its own automaton and reduces what its documents reach (see :mod:`.twig_reductions`). Documents for
whose states an automaton has no room are expanded to their events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from polars_tadoc.config import settings
from polars_tadoc.kernels.cpu.bodies import sums_before
from polars_tadoc.kernels.cpu.parallel import map_parallel, weighted_chunks
from polars_tadoc.kernels.cpu.twig_automaton import STATES, Automaton, make_automaton, roomier
from polars_tadoc.kernels.cpu.twig_expansion import XmlGrammar, count_events, expand_events
from polars_tadoc.kernels.cpu.twig_reductions import (
    ARENA_FULL,
    DONE,
    MOST_LEVELS,
    NEXT,
    STATES_FULL,
    Reductions,
    are_documents,
    heights_of,
    mark_needed,
    reduce_bodies,
    reduce_terminals,
    states_of,
)
from polars_tadoc.kernels.cpu.twig_walks import DOCUMENT, USED, gather_lists, list_states
from polars_tadoc.kernels.rules import Rules
from polars_tadoc.kernels.twigs import Events, Twigs, WordEvents

UInt8 = npt.NDArray[np.uint8]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]

MatchEvents = Callable[[Events], tuple[Int64, UInt32]]

MOST_BYTES = 256 << 20
"""What the states and steps of one thread may take."""

MOST_OPEN_BYTES = 256 << 20
"""What its rules close and open may take, and what is open at once."""

KEPT_BYTES = 64 << 20
"""Larger automata are not kept for the next call."""

_FEWEST_ROOTS = 1 << 15
"""Fewer top-level symbols are not worth a thread of their own."""

EXPANDED = 1 << 22
"""Events that are expanded at a time; a longer document is expanded whole."""

_FIRST_ARENA, _FIRST_STACK = 1 << 16, 3 << 6


def load_word_events(words: WordEvents) -> WordEvents:
    """Make word events resident where the kernels run; here they are already."""
    return words


def match_rules(
    twigs: Twigs,
    idle: list[Automaton],
    match: MatchEvents,
    rules: Rules,
    root_offsets: Int64,
    roots: UInt32,
    words: WordEvents,
    most_levels: int,
) -> tuple[Int64, UInt32, UInt8]:
    """Find the twigs that match each document of a grammar.

    Parameters
    ----------
    twigs
        NumPy's arrays.
    idle
        Automata of these twigs that no thread uses; they are taken and put back.
    match
        Finds the twigs that match documents of events; may use all threads.
    rules
        What the documents are made of.
    root_offsets, roots
        int64, documents + 1, and uint32: the documents' symbols.
    words
        What the terminals mean.
    most_levels
        Elements that may be open at once.

    Returns
    -------
    (int64 array, uint32 array, uint8 array)
        Where each document's twigs start, documents + 1, the twigs, ascending, and ``SOUND`` or ``UNSOUND`` by
        document.

    """
    grammar = XmlGrammar.of(rules, root_offsets, roots, words, min(most_levels, MOST_LEVELS))
    # a thread more reduces most rules once more
    chunks = weighted_chunks(root_offsets, max(_FEWEST_ROOTS, len(rules.symbols)))
    parts = map_parallel(lambda chunk: _match_chunk(twigs, idle, grammar, chunk), chunks)
    for part in parts:
        if part.reached < part.stop:
            _match_expanded(twigs, grammar, part, match)
    lengths = np.concatenate([part.lengths for part in parts])
    offsets = sums_before(lengths)
    matches = np.empty(int(offsets[-1]), np.uint32)
    map_parallel(
        lambda part: gather_lists(part.starts, part.lists, offsets[part.first : part.stop + 1], matches), parts
    )
    return offsets, matches, np.concatenate([part.unsound for part in parts])


@dataclass
class Part:
    """Consecutive documents and what has been found out about them."""

    first: int
    stop: int
    reached: int = field(init=False)
    """Those from here on have not been read."""
    unsound: UInt8 = field(init=False)
    starts: Int64 = field(init=False)
    """Where each document's twigs stand in ``lists``; documents may share them."""
    lengths: Int64 = field(init=False)
    lists: UInt32 = field(init=False)

    def __post_init__(self) -> None:
        self.reached = self.first
        self.unsound = np.zeros(self.stop - self.first, np.uint8)
        self.starts = np.zeros(self.stop - self.first, np.int64)
        self.lengths = np.zeros(self.stop - self.first, np.int64)
        self.lists = np.empty(0, np.uint32)

    def give_up(self) -> None:
        """Leave the documents that have not been read to a parser: more is open at once than there is room for."""
        left = self.stop - self.reached
        none = np.zeros(left, np.int64)
        self.add(np.ones(left, np.bool_), none, none, np.empty(0, np.uint32))

    def add(self, unsound: npt.NDArray[np.bool_], starts: Int64, lengths: Int64, lists: UInt32) -> None:
        """Note what was found of the documents from ``reached`` on; ``starts`` refer to ``lists``."""
        at, end = self.reached - self.first, self.reached - self.first + len(unsound)
        self.unsound[at:end], self.starts[at:end], self.lengths[at:end] = unsound, starts + len(self.lists), lengths
        self.lists = np.concatenate([self.lists, lists])
        self.reached += len(unsound)


class Reduction:
    """One thread's reductions of what its documents reach, and of the documents."""

    def __init__(self, automaton: Automaton, grammar: XmlGrammar, first: int, stop: int) -> None:
        symbols = grammar.terminals + len(grammar.rule_offsets) - 1
        self.automaton, self.grammar, self.first = automaton, grammar, first
        self.needed = np.zeros(symbols, np.uint8)
        self.reductions = Reductions(
            np.zeros(symbols, np.uint64),
            np.zeros(symbols, np.int64),
            np.empty(_FIRST_ARENA, np.uint32),
            np.empty(_FIRST_STACK, np.uint32),
        )
        self.documents = np.zeros(stop - first, np.uint64)
        self.progress = np.zeros(3, np.int64)

    def run(self) -> int:
        """Reduce all; returns why it stopped short, ``STATES_FULL`` or ``ARENA_FULL``, or ``DONE``."""
        grammar, terminals, none = self.grammar, self.grammar.terminals, np.zeros(0, np.int64)
        offsets = grammar.root_offsets[self.first : self.first + len(self.documents) + 1]
        rules, documents = (grammar.rule_offsets, grammar.symbols), (offsets, grammar.roots)
        mark_needed(terminals, *rules, *documents, self.needed)
        of_rules = self.needed[terminals:], self.reductions.values[terminals:], self.reductions.places[terminals:]
        of_documents = self.needed[:0], self.documents, none
        code = self._step(lambda *made: reduce_terminals(*made, grammar.words, self.needed))
        if code == DONE:
            code = self._step(lambda *made: reduce_bodies(*made, *rules, *of_rules))
        if code == DONE:
            code = self._step(lambda *made: reduce_bodies(*made, *documents, *of_documents))
        else:
            self.progress[NEXT] = 0  # no document was reached
        return code

    def _step(self, step: Callable[..., int]) -> int:
        self.progress[NEXT] = 0
        while (code := step(self.automaton, self.reductions, self.grammar.most_levels, self.progress)) != DONE:
            if code == STATES_FULL:
                larger = roomier(self.automaton)
                if larger.nbytes > MOST_BYTES:
                    return STATES_FULL
                self.automaton = larger
                continue
            name = "arena" if code == ARENA_FULL else "stack"
            room = getattr(self.reductions, name)
            if 2 * room.nbytes > MOST_OPEN_BYTES:
                return ARENA_FULL
            self.reductions = self.reductions._replace(**{name: np.concatenate([room, np.empty_like(room)])})
        return DONE


def _match_chunk(twigs: Twigs, idle: list[Automaton], grammar: XmlGrammar, chunk: tuple[int, int]) -> Part:
    try:
        automaton = idle.pop()
    except IndexError:
        automaton = make_automaton(twigs)
    reduction = Reduction(automaton, grammar, *chunk)
    code = reduction.run()
    part = Part(*chunk)
    read = int(reduction.progress[NEXT])
    values = reduction.documents[:read]
    sound = are_documents(values)
    finals = np.where(sound, states_of(values), 0)
    part.add(~sound, *_list(reduction.automaton, twigs.roots, finals))
    if code == ARENA_FULL:
        part.give_up()
    if reduction.automaton.nbytes <= KEPT_BYTES:
        idle.append(reduction.automaton)
    return part


def _list(automaton: Automaton, roots: UInt32, finals: Int64) -> tuple[Int64, Int64, UInt32]:
    """List the twigs of each document by its state; where the list starts, its length, the lists."""
    starts, lengths = np.empty(len(finals), np.int64), np.empty(len(finals), np.int64)
    lists, progress = np.empty(2 * len(roots), np.uint32), np.zeros(5, np.int64)
    progress[DOCUMENT] = len(finals)
    first = np.full(automaton.made[STATES], -1, np.int64)
    while not list_states(automaton, roots, finals, progress, first, starts, lengths, lists):
        lists = np.concatenate([lists, np.empty_like(lists)])
    return starts, lengths, lists[: progress[USED]]


def _match_expanded(twigs: Twigs, grammar: XmlGrammar, part: Part, match: MatchEvents) -> None:
    """Match what has not been read by events; which documents are sound is found without twigs, so without states."""
    reduction = Reduction(make_automaton(_without_nodes(twigs)), grammar, part.reached, part.stop)
    if reduction.run() == ARENA_FULL:
        part.give_up()
        return
    values = reduction.documents
    sizes = count_events(grammar, reduction.needed, part.reached, part.stop)
    sound = are_documents(values) & (sizes <= settings().expansion_limit)
    sizes[~sound] = 0
    depth = int(heights_of(values[sound]).max(initial=0)) + 1
    wide = np.uint16 if len(twigs.heads) <= 1 << 16 else np.uint32
    for first, stop in _batches(sizes):
        offsets = sums_before(sizes[first:stop])
        symbols = np.empty(offsets[-1], wide)
        expand_events(grammar, part.reached, offsets, symbols)
        starts, lists = match(Events(symbols, offsets, depth))
        part.add(~sound[first:stop], starts[:-1], np.diff(starts), lists)


def _batches(sizes: Int64) -> Iterator[tuple[int, int]]:
    """Cut documents of so many events into stretches that are expanded at a time."""
    before = sums_before(sizes)
    first = 0
    while first < len(sizes):
        stop = max(first + 1, int(np.searchsorted(before, before[first] + EXPANDED, "right")) - 1)
        yield first, stop
        first = stop


def _without_nodes(twigs: Twigs) -> Twigs:
    none = np.zeros(1, np.uint64)
    return twigs._replace(words=1, heads=np.zeros_like(twigs.heads), leaves=none, descendants=none, branches=none)
