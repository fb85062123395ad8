"""Finds phrases in rules and documents without expanding them.

Compressed pattern matching (Kida et al., A unifying framework for compressed pattern matching, SPIRE 1999; Amir, Benson
and Farach, JCSS 1996) with an automaton of the phrases (Aho and Corasick, CACM 1975). Each symbol has the number of
matches inside it and the state after it. Reading a symbol from the start state is one step; from another state, its
words are read only while a match may have begun before it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.rows.row_words import next_word
from polars_tadoc.runtime.addresses import trailing_zeros
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, kernel, polled_njit

HOLDS = 1
LEAVES = 2

LEFT_OUT = -2
"""Term of a word that is ignored."""


class Automaton(NamedTuple):
    """Automaton of phrases. State 0 is the start; word class 0 is in no phrase."""

    classes: UInt32
    """Class by terminal."""
    from_start: UInt32
    """By class: the state after it, from the start."""
    edge_offsets: UInt32
    """By state, and one more: offsets of its edges."""
    edge_classes: UInt32
    """Classes of edges, ascending within a state; none of the start state's."""
    edge_states: UInt32
    fails: UInt32
    """By state: the state of the longest proper suffix of the words read."""
    onward: UInt32
    """By state: itself, or if it has no edges, its longest suffix with edges."""
    depths: UInt32
    """By state: number of words read since the start."""
    ends: UInt8
    """By state: whether a phrase ends there."""


class Matches(NamedTuple):
    """Results by symbol; states and counts only where touched."""

    touched: UInt8
    """``HOLDS`` if a symbol has a match inside, plus ``LEAVES`` if the state after it is not the start."""
    exits: UInt32
    """State after the symbol, starting from state 0."""
    counts: UInt64
    """Matches inside the symbol."""


class Text(NamedTuple):
    """Arrays of rules."""

    terminals: int
    rule_offsets: UInt64
    symbols: UInt32
    first_words: UInt32
    """First word by symbol."""


class Owners(NamedTuple):
    """The rules whose bodies contain a symbol, with repetitions."""

    offsets: UInt32
    """By symbol, and two more: offsets of its rules."""
    rules: UInt32
    """Ascending within a symbol."""


@kernel
def find_first_words(text: Text) -> None:
    """Write the first word of each symbol, except for empty rules, which are in no body."""
    first_words = text.first_words
    for word in range(text.terminals):
        first_words[word] = word
    for rule in range(len(text.rule_offsets) - 1):
        if text.rule_offsets[rule] < text.rule_offsets[rule + 1]:
            first_words[text.terminals + rule] = first_words[text.symbols[text.rule_offsets[rule]]]


@kernel
def find_owners(text: Text, owners: Owners) -> None:
    """List for each symbol the rules whose bodies contain it; the offsets are initially zero, with one extra entry."""
    offsets, one, two = owners.offsets, nb.uint64(1), nb.uint64(2)
    for i in range(len(text.symbols)):
        offsets[nb.uint64(text.symbols[i]) + two] += nb.uint32(1)
    for symbol in range(2, len(offsets)):
        offsets[symbol] += offsets[symbol - 1]
    for rule in range(len(text.rule_offsets) - 1):
        for i in range(text.rule_offsets[rule], text.rule_offsets[rule + 1]):
            symbol = nb.uint64(text.symbols[i])
            owners.rules[offsets[symbol + one]] = rule
            offsets[symbol + one] += nb.uint32(1)


@inner
def _step(state: int, word_class: int, automaton: Automaton) -> Any:
    """Return the state after one more word, before ``onward`` is applied."""
    if word_class == 0:
        return nb.uint64(0)
    while state != 0:
        low = nb.uint64(automaton.edge_offsets[state])
        stop = nb.uint64(automaton.edge_offsets[state + nb.uint64(1)])
        high = stop
        while low < high:
            middle = (low + high) >> nb.uint64(1)
            if automaton.edge_classes[middle] < word_class:
                low = middle + nb.uint64(1)
            else:
                high = middle
        if low < stop and automaton.edge_classes[low] == word_class:
            return nb.uint64(automaton.edge_states[low])
        state = nb.uint64(automaton.fails[state])
    return nb.uint64(automaton.from_start[word_class])


@inner
def _read(symbol: int, state: int, text: Text, automaton: Automaton, stack: UInt64) -> Any:
    """Read a symbol's words from a state until no match can have begun before it.

    Returns the matches that began before it, whether its words ended first, and the state in that case. ``stack`` has
    room for two numbers per level.
    """
    terminals = nb.uint64(text.terminals)
    one = nb.uint64(1)
    top = nb.uint64(0)
    read = nb.uint64(0)
    found = nb.uint64(0)
    while True:
        while symbol >= terminals:
            rule = symbol - terminals
            first = text.rule_offsets[rule]
            stack[top] = first + one
            stack[top + one] = text.rule_offsets[rule + one]
            top += nb.uint64(2)
            symbol = nb.uint64(text.symbols[first])
        state = _step(state, nb.uint64(automaton.classes[symbol]), automaton)
        found += nb.uint64(automaton.ends[state])
        state = nb.uint64(automaton.onward[state])
        read += one
        if automaton.depths[state] <= read:
            return found, False, nb.uint64(0)
        while top != 0 and stack[top - nb.uint64(2)] == stack[top - one]:
            top -= nb.uint64(2)
        if top == 0:
            return found, True, state
        at = stack[top - nb.uint64(2)]
        stack[top - nb.uint64(2)] = at + one
        symbol = nb.uint64(text.symbols[at])


@inner
def _tell_owners(
    symbol: int, text: Text, matches: Matches, owners: Owners, pending: UInt64, read: UInt64, once: bool
) -> None:
    """Mark the rules that contain a touched symbol as ``pending``.

    Also mark them for ``read`` if a match may have begun at the symbol's end.
    """
    counts = matches.counts
    count = counts[symbol]
    begun = nb.uint64(matches.exits[symbol] != 0)
    matches.touched[symbol] = begun * nb.uint64(LEAVES) | nb.uint64(count != 0) * nb.uint64(HOLDS)
    for i in range(owners.offsets[symbol], owners.offsets[symbol + nb.uint64(1)]):
        rule = nb.uint64(owners.rules[i])
        block, place = rule >> nb.uint64(6), rule & nb.uint64(63)
        owner = nb.uint64(text.terminals) + rule
        before = counts[owner] if (pending[block] >> place) & nb.uint64(1) else nb.uint64(0)
        counts[owner] = before | count if once else before + count
        pending[block] |= nb.uint64(1) << place
        read[block] |= begun << place


@kernel
def match_rules(
    text: Text,
    automaton: Automaton,
    words: UInt32,
    owners: Owners,
    once: bool,
    pending: UInt64,
    read: UInt64,
    stack: UInt64,
    matches: Matches,
) -> None:
    """Find the matches inside symbols, bottom-up; only rules that contain words of the phrases are touched.

    Parameters
    ----------
    text, automaton, owners
        Rules and phrases.
    words
        The words of the phrases.
    once
        Whether one match suffices: counts are then 0 or 1.
    pending, read
        Bitmaps of rules, initially zero.
    stack
        Room for two numbers per level.
    matches
        Output; ``touched`` is initially zero.

    """
    touched, exits, counts = matches.touched, matches.exits, matches.counts
    terminals, one, eight = nb.uint64(text.terminals), nb.uint64(1), nb.uint64(8)
    for i in range(len(words)):
        word = nb.uint64(words[i])
        state = nb.uint64(automaton.from_start[automaton.classes[word]])
        exits[word] = automaton.onward[state]
        counts[word] = automaton.ends[state]
        if exits[word] != 0 or counts[word] != 0:
            _tell_owners(word, text, matches, owners, pending, read, once)
    for block in range(len(pending)):
        while pending[block] != 0:  # only higher rules contain a rule: their bits come later
            bits = pending[block]
            pending[block] = bits & (bits - one)
            place = nb.uint64(trailing_zeros(bits))
            rule = (nb.uint64(block) << nb.uint64(6)) + place
            symbol = terminals + rule
            exits[symbol] = 0
            if (read[block] >> place) & one != 0 and not (once and counts[symbol] != 0):
                at, stop = text.rule_offsets[rule], text.rule_offsets[rule + one]
                state, count = nb.uint64(0), nb.uint64(0)
                while at < stop:
                    child = nb.uint64(text.symbols[at])
                    at += one
                    if state != 0:
                        if automaton.classes[text.first_words[child]] == 0:
                            state = nb.uint64(0)
                        else:
                            found, inside, state = _read(child, state, text, automaton, stack)
                            count += found
                            if inside:
                                continue
                    if touched[child] & LEAVES:
                        state = nb.uint64(exits[child])
                    else:
                        while at + eight <= stop and not _any_touched(touched, text.symbols, at) & LEAVES:
                            at += eight
                exits[symbol] = state
                counts[symbol] = min(counts[symbol] + count, one) if once else counts[symbol] + count
            if exits[symbol] != 0 or counts[symbol] != 0:
                _tell_owners(symbol, text, matches, owners, pending, read, once)


@kernel
def match_rows(
    text: Text,
    automaton: Automaton,
    matches: Matches,
    root_offsets: UInt64,
    roots: UInt32,
    once: bool,
    pending: UInt64,
    stack: UInt64,
    counts_by_row: UInt64,
) -> None:
    """Count the matches in documents.

    Parameters
    ----------
    text, automaton, matches
        Rules, phrases, and the results of :func:`match_rules`.
    root_offsets, roots
        The documents' symbols.
    once
        Whether one match suffices.
    pending
        Bitmap of the documents to read.
    stack
        Room for two numbers per level.
    counts_by_row
        Output for each document that is read.

    """
    touched, exits, counts = matches.touched, matches.exits, matches.counts
    one, eight = nb.uint64(1), nb.uint64(8)
    for block in range(len(pending)):
        bits = pending[block]
        while bits != 0:
            row = (nb.uint64(block) << nb.uint64(6)) + nb.uint64(trailing_zeros(bits))
            bits &= bits - one
            at, stop = root_offsets[row], root_offsets[row + one]
            state, count = nb.uint64(0), nb.uint64(0)
            while at < stop:
                symbol = nb.uint64(roots[at])
                at += one
                if state != 0:
                    if automaton.classes[text.first_words[symbol]] == 0:
                        state = nb.uint64(0)
                    else:
                        found, inside, state = _read(symbol, state, text, automaton, stack)
                        count += found
                        if inside:
                            if touched[symbol]:
                                count += counts[symbol]
                            continue
                if touched[symbol]:
                    state = nb.uint64(exits[symbol])
                    count += counts[symbol]
                    if once and count != 0:
                        break
                else:
                    while at + eight <= stop and not _any_touched(touched, roots, at):
                        at += eight
            counts_by_row[row] = count


@inner
def _any_touched(touched: UInt8, symbols: UInt32, at: int) -> Any:
    """Combine the flags of eight symbols: one branch for all of them."""
    return (
        touched[symbols[at]]
        | touched[symbols[at + nb.uint64(1)]]
        | touched[symbols[at + nb.uint64(2)]]
        | touched[symbols[at + nb.uint64(3)]]
        | touched[symbols[at + nb.uint64(4)]]
        | touched[symbols[at + nb.uint64(5)]]
        | touched[symbols[at + nb.uint64(6)]]
        | touched[symbols[at + nb.uint64(7)]]
    )


@kernel
def find_rows(touched: UInt8, root_offsets: UInt64, roots: UInt32, pending: UInt64) -> None:
    """Set the bit of each document that contains a touched symbol."""
    one, eight = nb.uint64(1), nb.uint64(8)
    rows = nb.uint64(len(root_offsets) - 1)
    at, stop = root_offsets[0], root_offsets[rows]
    row = nb.uint64(0)
    while at < stop:
        if at + eight <= stop and not _any_touched(touched, roots, at):
            at += eight
            continue
        while at < stop and touched[roots[at]] == 0:
            at += one
        if at == stop:
            break
        width = one  # the next row is near if many symbols are touched, otherwise far
        while row + width < rows and root_offsets[row + width] <= at:
            row += width
            width += width
        while width != 0:
            if row + width < rows and root_offsets[row + width] <= at:
                row += width
            width >>= one
        pending[row >> nb.uint64(6)] |= one << (row & nb.uint64(63))
        at = root_offsets[row + one]


@polled_njit
def count_in_rows(
    terminals: int,
    rule_offsets: Int64,
    symbols: UInt32,
    levels: int,
    terms: Int64,
    root_offsets: Int64,
    roots: UInt32,
    documents: Int64,
    phrase: Int64,
    borders: Int64,
    counts: UInt64,
) -> None:
    """Count the occurrences of a phrase in a few documents, word by word (Knuth, Morris and Pratt, 1977).

    Parameters
    ----------
    terminals, rule_offsets, symbols, levels
        The rules.
    terms
        int64 by terminal: its term, ``UNKNOWN`` or ``LEFT_OUT``.
    root_offsets, roots
        The documents' symbols.
    documents
        int64: numbers of the documents to read.
    phrase
        Its terms.
    borders
        Border table: by prefix length, the length of the longest proper prefix that is also a suffix.
    counts
        Output by document that is read.

    """
    began = interrupts()
    position, end = np.empty(levels + 1, np.int64), np.empty(levels + 1, np.int64)
    for row in range(len(documents)):
        if interrupts() != began:
            return
        position[0], end[0] = root_offsets[documents[row]], root_offsets[documents[row] + 1]
        depth, read, count = nb.int64(0), 0, 0
        while True:
            symbol, depth = next_word(terminals, rule_offsets, symbols, roots, position, end, depth)
            if symbol < 0:
                break
            term = terms[symbol]
            if term == LEFT_OUT:
                continue
            while read > 0 and phrase[read] != term:
                read = borders[read]
            read += nb.int64(phrase[read] == term)
            if read == len(phrase):
                count += 1
                read = borders[read]
        counts[row] = count
