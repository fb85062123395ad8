"""Filters the documents of a grammar without expanding them: each rule is read once, then the documents' symbols.

Irrelevant words are dropped first (:mod:`.twig_pruning`). Then each thread, with its own automaton, reduces the rules
that its documents reach (:mod:`.twig_reductions`). Documents for which an automaton has no room are expanded to events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from polars_tadoc.config import settings
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.twigs.arrays import Events, Twigs, WordEvents
from polars_tadoc.kernels.twigs.twig_automaton_cpu import NONE_FOUND, STATES, Automaton, make_automaton, roomier
from polars_tadoc.kernels.twigs.twig_expansion_cpu import count_events, expand_events
from polars_tadoc.kernels.twigs.twig_kept_cpu import load
from polars_tadoc.kernels.twigs.twig_pruning_cpu import Documents, PrunedGrammar, prune_documents
from polars_tadoc.kernels.twigs.twig_reductions_cpu import (
    ARENA_FULL,
    DONE,
    MAX_LEVELS,
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
from polars_tadoc.kernels.twigs.twig_walks_cpu import DOCUMENT, USED, gather_lists, list_states
from polars_tadoc.runtime.array_types import Bools, Int64, UInt8, UInt32
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

MatchEvents = Callable[[Events], tuple[Int64, UInt32]]

MAX_BYTES = 256 << 20
"""Maximum bytes of one thread's states and steps."""

MAX_OPEN_BYTES = 256 << 20
"""Maximum bytes of closes and opens of its rules, and of its stack."""

KEPT_BYTES = 64 << 20
"""Larger automata are not cached for the next call."""

_FEWEST_ROOTS = 1 << 14
"""Minimum top-level symbols per thread."""

EXPANDED = 1 << 22
"""Events expanded at a time; a longer document is expanded whole."""

_FIRST_ARENA, _FIRST_STACK = 1 << 16, 3 << 6


def load_word_events(words: WordEvents) -> WordEvents:
    """Make word events resident for the kernels; on the CPU they already are."""
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
    """Return the twigs that match each document of a grammar.

    Parameters
    ----------
    twigs
        NumPy's arrays.
    idle
        Automata of these twigs that no thread uses; taken and returned.
    match
        Matches twigs against documents of events; may use all threads.
    rules
        The rules of the grammar.
    root_offsets, roots
        int64, documents + 1, and uint32: the documents' symbols.
    words
        Events of the terminals.
    most_levels
        Maximum number of open elements.

    Returns
    -------
    (int64 array, uint32 array, uint8 array)
        Offsets of each document's twigs, documents + 1; the twigs, ascending; and ``SOUND`` or ``UNSOUND`` by document.

    """
    grammar, folded = load(rules, root_offsets, roots, words)
    offsets = root_offsets if folded is None else folded.offsets
    chunks = weighted_chunks(offsets, max(_FEWEST_ROOTS, len(grammar.symbols)))
    most_levels = min(most_levels, MAX_LEVELS)

    def match_chunk(chunk: tuple[int, int]) -> tuple[Part, Documents]:
        own = slice(chunk[0], chunk[1] + 1)
        if folded is None:
            documents = prune_documents(grammar, root_offsets[own], roots)
        else:
            documents = Documents(folded.offsets[own], folded.symbols, folded.outside[chunk[0] : chunk[1]])
        return _match_chunk(twigs, idle, grammar, documents, most_levels), documents

    made = map_parallel(match_chunk, chunks)
    for part, documents in made:
        if part.reached < len(part.unsound):
            _match_expanded(twigs, grammar, documents, most_levels, part, match)
    parts = [part for part, _ in made]
    offsets = running_sum(np.concatenate([part.lengths for part in parts]))
    matches = np.empty(int(offsets[-1]), np.uint32)

    def gather(chunk: tuple[int, int], part: Part) -> None:
        gather_lists(part.starts, part.lists, offsets[chunk[0] : chunk[1] + 1], matches)

    map_parallel(lambda pair: gather(*pair), list(zip(chunks, parts, strict=True)))
    return offsets, matches, np.concatenate([part.unsound for part in parts])


class Part:
    """Consecutive documents and their results so far."""

    def __init__(self, documents: int) -> None:
        self.reached = 0  # the documents from here on have not been read
        self.unsound = np.zeros(documents, np.uint8)
        self.starts = np.zeros(documents, np.int64)  # start of each document's list of twigs; documents may share one
        self.lengths = np.zeros(documents, np.int64)
        self.lists = np.empty(0, np.uint32)

    def give_up(self) -> None:
        """Leave the remaining documents to a parser: they have more open elements than there is room for."""
        none = np.zeros(len(self.unsound) - self.reached, np.int64)
        self.add(np.ones(len(none), np.bool_), none, none, np.empty(0, np.uint32))

    def add(self, unsound: Bools, starts: Int64, lengths: Int64, lists: UInt32) -> None:
        """Store results of the documents from ``reached`` on; ``starts`` are offsets in ``lists``."""
        own = slice(self.reached, self.reached + len(unsound))
        self.unsound[own], self.starts[own], self.lengths[own] = unsound, starts + len(self.lists), lengths
        self.lists = np.concatenate([self.lists, lists])
        self.reached = own.stop


class Reduction:
    """One thread's reductions of the symbols that its documents reach, and of the documents from ``first`` on."""

    def __init__(
        self, automaton: Automaton, grammar: PrunedGrammar, documents: Documents, most_levels: int, first: int = 0
    ) -> None:
        symbols = grammar.terminals + len(grammar.rule_offsets) - 1
        self.automaton, self.grammar, self.most_levels = automaton, grammar, most_levels
        self.bodies = documents.offsets[first:], documents.symbols
        self.needed = np.zeros(symbols, np.uint8)
        self.reductions = Reductions(
            np.zeros(symbols, np.uint64),
            np.zeros(symbols, np.int64),
            np.empty(_FIRST_ARENA, np.uint32),
            np.empty(_FIRST_STACK, np.uint32),
        )
        self.values = np.zeros(len(documents.outside) - first, np.uint64)
        self.progress = np.zeros(3, np.int64)

    def run(self) -> int:
        """Reduce everything; return ``DONE``, or why it stopped: ``STATES_FULL`` or ``ARENA_FULL``."""
        grammar, terminals, none = self.grammar, self.grammar.terminals, np.zeros(0, np.int64)
        rules = grammar.rule_offsets, grammar.symbols
        mark_needed(terminals, *rules, *self.bodies, self.needed)
        of_rules = self.needed[terminals:], self.reductions.values[terminals:], self.reductions.places[terminals:]
        of_documents = self.needed[:0], self.values, none
        code = self._step(lambda *made: reduce_terminals(*made, grammar.words, self.needed))
        if code == DONE:
            code = self._step(lambda *made: reduce_bodies(*made, *rules, *of_rules))
        if code == DONE:
            code = self._step(lambda *made: reduce_bodies(*made, *self.bodies, *of_documents))
        else:
            self.progress[NEXT] = 0  # no document was reached
        return code

    def _step(self, step: Callable[..., int]) -> int:
        self.progress[NEXT] = 0
        while (code := step(self.automaton, self.reductions, self.most_levels, self.progress)) != DONE:
            if code == STATES_FULL:
                larger = roomier(self.automaton)
                if larger.nbytes > MAX_BYTES:
                    return STATES_FULL
                self.automaton = larger
                continue
            name = "arena" if code == ARENA_FULL else "stack"
            room = getattr(self.reductions, name)
            if 2 * room.nbytes > MAX_OPEN_BYTES:
                return ARENA_FULL
            self.reductions = self.reductions._replace(**{name: np.concatenate([room, np.empty_like(room)])})
        return DONE


def _match_chunk(
    twigs: Twigs, idle: list[Automaton], grammar: PrunedGrammar, documents: Documents, most_levels: int
) -> Part:
    try:
        automaton = idle.pop()
    except IndexError:
        automaton = make_automaton(twigs)
    reduction = Reduction(automaton, grammar, documents, most_levels)
    code = reduction.run()
    part = Part(len(documents.outside))
    read = int(reduction.progress[NEXT])
    values = reduction.values[:read]
    sound = are_documents(values) & (documents.outside[:read] == 0)
    finals = np.where(sound, states_of(values), NONE_FOUND)
    part.add(~sound, *_list(reduction.automaton, twigs.roots, finals))
    if code == ARENA_FULL:
        part.give_up()
    if reduction.automaton.nbytes <= KEPT_BYTES:
        idle.append(reduction.automaton)
    return part


def _list(automaton: Automaton, roots: UInt32, finals: Int64) -> tuple[Int64, Int64, UInt32]:
    """List the twigs of each document by its state; return the start and length of each list, and the lists."""
    starts, lengths = np.empty(len(finals), np.int64), np.empty(len(finals), np.int64)
    lists, progress = np.empty(2 * len(roots), np.uint32), np.zeros(5, np.int64)
    progress[DOCUMENT] = len(finals)
    first = np.full(automaton.made[STATES], -1, np.int64)
    while not list_states(automaton, roots, finals, progress, first, starts, lengths, lists):
        lists = np.concatenate([lists, np.empty_like(lists)])
    return starts, lengths, lists[: progress[USED]]


def _match_expanded(
    twigs: Twigs, grammar: PrunedGrammar, documents: Documents, most_levels: int, part: Part, match: MatchEvents
) -> None:
    """Match the remaining documents by events; soundness is determined without twigs, so without states."""
    first = part.reached
    reduction = Reduction(make_automaton(_without_nodes(twigs)), grammar, documents, most_levels, first)
    if reduction.run() == ARENA_FULL:
        part.give_up()
        return
    sizes = count_events(grammar, reduction.needed, *reduction.bodies)
    sound = are_documents(reduction.values) & (documents.outside[first:] == 0) & (sizes <= settings().expansion_limit)
    sizes[~sound] = 0
    depth = int(heights_of(reduction.values[sound]).max(initial=0)) + 1
    wide = np.uint16 if len(twigs.heads) <= 1 << 16 else np.uint32
    for start, stop in _batches(sizes):
        offsets = running_sum(sizes[start:stop])
        symbols = np.empty(offsets[-1], wide)
        expand_events(grammar, documents.offsets[part.reached :], documents.symbols, offsets, symbols)
        starts, lists = match(Events(symbols, offsets, depth))
        part.add(~sound[start:stop], starts[:-1], np.diff(starts), lists)


def _batches(sizes: Int64) -> Iterator[tuple[int, int]]:
    """Split documents, given their numbers of events, into batches that are expanded at a time."""
    before = running_sum(sizes)
    first = 0
    while first < len(sizes):
        stop = max(first + 1, int(np.searchsorted(before, before[first] + EXPANDED, "right")) - 1)
        yield first, stop
        first = stop


def _without_nodes(twigs: Twigs) -> Twigs:
    none = np.zeros(1, np.uint64)
    return twigs._replace(words=1, heads=np.zeros_like(twigs.heads), leaves=none, descendants=none, branches=none)
