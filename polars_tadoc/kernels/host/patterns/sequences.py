"""Drops rows whose words match nothing whatever separates them: an automaton over classes of words, without gaps."""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.patterns.match import FOUND, REST, Automaton, Text, run_word
from polars_tadoc.runtime.addresses import trailing_zeros
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt16, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import polled_njit


@polled_njit
def run_words(text: Text, automaton: Automaton, state: int, exits: UInt16) -> None:
    """Fill the state after each word, from one state; ``REST`` for all that are as good."""
    began = interrupts()
    for word in range(len(exits)):
        if word & 0xFFF == 0 and interrupts() != began:
            return
        after, _ = run_word(word, state, text, automaton)
        exits[word] = REST if automaton.at_rest[after] else after


@polled_njit
def filter_rows(
    text: Text,
    classes: UInt8,
    width: int,
    steps: UInt8,
    start: int,
    ends: UInt8,
    flags: UInt8,
    levels: int,
    root_offsets: Int64,
    roots: UInt32,
    pending: UInt64,
    known: UInt8,
) -> None:
    """Clear the bit of each document that no match can be in.

    Parameters
    ----------
    text
        Words and rules.
    classes
        uint8 by word: its class.
    width, steps
        Number of classes; next state by state and class. ``FOUND`` is absorbing.
    start
        State before a row.
    ends
        uint8 by state: whether a row may match that ends there.
    flags
        uint8 by symbol: 0 if it leaves ``REST`` at rest.
    levels
        Levels of rules.
    root_offsets, roots
        The documents' symbols.
    pending
        Bitmap of the documents to read.
    known
        uint8 by state and rule: 1 plus the state after it; initially zero.

    """
    began = interrupts()
    size, rules = text.vocabulary_size, len(text.rule_offsets) - 1
    place, stop = np.empty(levels + 1, np.int64), np.empty(levels + 1, np.int64)
    entry = np.empty(levels + 1, np.int64)
    one = nb.uint64(1)
    for block in range(len(pending)):
        bits = pending[block]
        while bits != 0:
            row = (block << 6) + trailing_zeros(bits)
            if interrupts() != began:
                return
            place[0], stop[0] = root_offsets[row], root_offsets[row + 1]
            state, depth, reads = nb.int64(start), 0, 0
            while state != FOUND:
                if place[depth] == stop[depth]:
                    if depth == 0:
                        break
                    known[entry[depth]] = state + 1
                    depth -= 1
                    continue
                symbol = nb.int64(roots[place[depth]]) if depth == 0 else nb.int64(text.symbols[place[depth]])
                place[depth] += 1
                reads += 1
                if reads & 0xFFFF == 0 and interrupts() != began:
                    return
                if state == REST and flags[symbol] == 0:
                    continue
                if symbol < size:
                    state = nb.int64(steps[state * width + classes[symbol]])
                    continue
                at = state * rules + symbol - size
                if known[at] != 0:
                    state = nb.int64(known[at]) - 1
                    continue
                depth += 1
                entry[depth] = at
                place[depth] = nb.int64(text.rule_offsets[symbol - size])
                stop[depth] = nb.int64(text.rule_offsets[symbol - size + 1])
            while depth > 0:
                known[entry[depth]] = FOUND + 1
                depth -= 1
            if state != FOUND and ends[state] == 0:
                pending[block] &= ~(bits & (~bits + one))
            bits &= bits - one
