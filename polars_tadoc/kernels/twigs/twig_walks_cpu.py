"""Walks over the events of documents: by cached states, or by node sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.twigs.arrays import CLOSE
from polars_tadoc.kernels.twigs.twig_automaton_cpu import FULL, NONE_FOUND, READ, close, close_nodes, state_of, union
from polars_tadoc.runtime.jit import inner, kernel

POSITION, DOCUMENT, DEPTH, LISTED, USED = range(5)
"""Positions in ``progress``: the next event, its document, the open levels; number of documents whose twigs are listed,
and the size of their lists."""

_0, _1 = np.uint64(0), np.uint64(1)


@kernel
def walk_states(
    automaton: Any, symbols: Any, offsets: Any, opened: Any, states: Any, progress: Any, finals: Any
) -> bool:
    """Read documents by look-ups of states; return whether all were read, otherwise the automaton needs room.

    ``opened`` has the symbol of each open level, ``states`` the accumulated state of each level and one more;
    ``finals`` receives the state of each document.
    """
    position, document, depth = progress[POSITION], progress[DOCUMENT], progress[DEPTH]
    found = states[depth]
    start, roomy = position, True
    while document < len(finals) and roomy:
        stop = offsets[document + 1]
        while position < stop:
            symbol = np.int64(symbols[position])
            if symbol == CLOSE:
                ended, inside, above, events, levels = opened[depth - 1], found, states[depth - 1], 1, 1
            elif symbols[position + 1] == CLOSE:
                ended, inside, above, events, levels = symbol, np.int64(NONE_FOUND), found, 2, 0
            else:
                opened[depth], states[depth] = symbol, found
                found = np.int64(NONE_FOUND)
                depth += 1
                position += 1
                continue
            element = close(automaton, inside, ended)
            joined = union(automaton, above, element) if element != FULL else element
            if joined == FULL:
                roomy = False
                break
            found = joined
            depth -= levels
            position += events
        if roomy:
            finals[document] = found
            found = np.int64(NONE_FOUND)
            document += 1
    states[depth] = found
    automaton.made[READ] += position - start
    progress[POSITION], progress[DOCUMENT], progress[DEPTH] = position, document, depth
    return roomy


@kernel
def walk_nodes(
    automaton: Any,
    roots: Any,
    symbols: Any,
    offsets: Any,
    last: Any,
    opened: Any,
    nodes: Any,
    progress: Any,
    starts: Any,
    lengths: Any,
    lists: Any,
) -> bool:
    """Read documents up to event ``last`` or the one after it; return whether it was reached, else ``lists`` is full.

    Caches nothing but the nodes that childless elements add. ``nodes`` has the accumulated set of each level, and room
    for one more. Documents that end are listed.
    """
    words = automaton.words
    position, document, depth = progress[POSITION], progress[DOCUMENT], progress[DEPTH]
    roomy = True
    while document < len(starts) and roomy:
        stop = min(offsets[document + 1], last)
        while position < stop:
            symbol = np.int64(symbols[position])
            here = depth * words
            childless = symbol != CLOSE and symbols[position + 1] == CLOSE
            element = close(automaton, np.int64(NONE_FOUND), symbol) if childless else np.int64(FULL)
            if element != FULL:
                for word in range(words):
                    nodes[here + word] |= automaton.sets[element * words + word]
                position += 1
            elif symbol == CLOSE:
                depth -= 1
                close_nodes(automaton, nodes, here, opened[depth], nodes, here + words)
                for word in range(words):
                    nodes[here - words + word] |= nodes[here + words + word]
            else:
                opened[depth] = symbol
                depth += 1
                for word in range(words):
                    nodes[here + words + word] = _0
            position += 1
        if position < offsets[document + 1]:
            break
        roomy = len(lists) - progress[USED] >= len(roots)
        if roomy:
            starts[document] = progress[USED]
            lengths[document] = _list_twigs(roots, nodes, 0, lists, progress)
            for word in range(words):
                nodes[word] = _0
            document += 1
    progress[POSITION], progress[DOCUMENT], progress[DEPTH], progress[LISTED] = position, document, depth, document
    return roomy


@kernel
def list_states(
    automaton: Any, roots: Any, finals: Any, progress: Any, first: Any, starts: Any, lengths: Any, lists: Any
) -> bool:
    """List the twigs of documents that were read by states; return whether all are listed, otherwise ``lists`` is full.

    ``first`` has the first document of each state, or -1; the others share its list.
    """
    for document in range(progress[LISTED], progress[DOCUMENT]):
        state = finals[document]
        if first[state] < 0:
            if len(lists) - progress[USED] < len(roots):
                progress[LISTED] = document
                return False
            first[state] = document
            starts[document] = progress[USED]
            lengths[document] = _list_twigs(roots, automaton.sets, state * automaton.words, lists, progress)
        else:
            starts[document], lengths[document] = starts[first[state]], lengths[first[state]]
    progress[LISTED] = progress[DOCUMENT]
    return True


@inner
def _list_twigs(roots: Any, sets: Any, start: Any, lists: Any, progress: Any) -> Any:
    used = progress[USED]
    for twig in range(len(roots)):
        root = np.int64(roots[twig])
        lists[used] = twig
        used += np.int64(sets[start + (root >> 6)] >> np.uint64(root & 63) & _1)
    count = used - progress[USED]
    progress[USED] = used
    return count


@kernel
def to_nodes(automaton: Any, states: Any, progress: Any, nodes: Any) -> None:
    """Write the sets of the states on all open levels."""
    words = automaton.words
    for level in range(progress[DEPTH] + 1):
        for word in range(words):
            nodes[level * words + word] = automaton.sets[states[level] * words + word]


@kernel
def to_states(automaton: Any, nodes: Any, progress: Any, states: Any) -> bool:
    """Number the sets on all open levels; return whether there was room."""
    for level in range(progress[DEPTH] + 1):
        states[level] = state_of(automaton, nodes, level * automaton.words)
        if states[level] == FULL:
            return False
    return True


@kernel
def gather_lists(starts: Any, lists: Any, offsets: Any, matches: Any) -> None:
    """Copy each document's list to its position."""
    for document in range(len(starts)):
        start, to = starts[document], offsets[document]
        for place in range(offsets[document + 1] - to):
            matches[to + place] = lists[start + place]
