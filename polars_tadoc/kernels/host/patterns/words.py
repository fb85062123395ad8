"""Runs an automaton over the words of a vocabulary, and classes words by what they do to it."""

from __future__ import annotations

from typing import Any

import numba as nb

from polars_tadoc.kernels.host.patterns.match import FOUND, Automaton, Text, run_word, step
from polars_tadoc.runtime.array_types import UInt8, UInt16, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, kernel, polled_njit


@polled_njit
def run_some(
    text: Text,
    automaton: Automaton,
    words: UInt32,
    state: int,
    other: int,
    other_exits: UInt16,
    other_counts: UInt32,
    first: int,
    stop: int,
    reached: UInt8,
    exits: UInt16,
    counts: UInt32,
) -> None:
    """Fill the state after each of some words, and the matches, from one state.

    Parameters
    ----------
    text, automaton, words
        Vocabulary, pattern, and ids of words.
    state, other, other_exits, other_counts
        The state before the words; another one, with its results: after some characters, most words go on alike from
        both. The same state: there is no other.
    first, stop
        Places of the words to run.
    reached
        Output by state: 1 if any word leads to it; otherwise unchanged.
    exits, counts
        Output by word; counts, if they have room.

    """
    began = interrupts()
    for k in range(first, stop):
        if k & 0xFFF == 0 and interrupts() != began:
            return
        if state == other:
            own, count = run_word(words[k], state, text, automaton)
        else:
            word = words[k]
            at = nb.uint64(text.words_at) + nb.uint64(text.word_offsets[word])
            end = nb.uint64(text.words_at) + nb.uint64(text.word_offsets[word + nb.uint32(1)])
            own, beside, count, less = nb.uint64(state), nb.uint64(other), nb.uint64(0), nb.uint64(0)
            while at < end and own != beside and own != FOUND:
                beside, _, more = step(at, beside, automaton)
                less += more
                own, at, more = step(at, own, automaton)
                count += more
            if own == beside:
                own = nb.uint64(other_exits[k])
                if len(counts):
                    count += nb.uint64(other_counts[k]) - less
        reached[own] = 1
        exits[k] = own
        if len(counts):
            counts[k] = count


@inner
def _value(row: int, word: int, exits: UInt16, counts: UInt32, after: UInt64) -> Any:
    """Return what a word does from a state."""
    own = after[exits[row, word]]
    return own | nb.uint64(counts[row, word]) << nb.uint64(8) if len(counts) else own


@kernel
def classify_words(exits: UInt16, counts: UInt32, after: UInt64, slots: UInt32, firsts: UInt32, classes: UInt8) -> int:
    """Number what words do from 1 on, 0 for nothing; return the number of classes, -1 if ``firsts`` lacks room.

    Parameters
    ----------
    exits
        uint16 (states, words): the state after each word.
    counts
        uint32 likewise: matches; or empty.
    after
        By state: its number, 0 for the first.
    slots
        Hash table: number of class; initially zero.
    firsts
        Output: a word of each class.
    classes
        Output by word.

    """
    count, mask, rows = 0, nb.uint64(len(slots) - 1), exits.shape[0]
    for k in range(exits.shape[1]):
        key, some = nb.uint64(0), nb.uint64(0)
        for row in range(rows):
            own = _value(row, k, exits, counts, after)
            some |= own
            key = (key * nb.uint64(0x9E3779B97F4A7C15)) ^ own ^ (key >> nb.uint64(29))
        classes[k] = 0
        if some == 0:
            continue
        at = (key * nb.uint64(0x9E3779B97F4A7C15)) >> nb.uint64(40) & mask
        while slots[at] != 0:
            first, same = firsts[slots[at] - nb.uint32(1)], True
            for row in range(rows):
                same = same and _value(row, first, exits, counts, after) == _value(row, k, exits, counts, after)
            if same:
                break
            at = (at + nb.uint64(1)) & mask
        if slots[at] == 0:
            if count == len(firsts):
                return -1
            firsts[count] = k
            count += 1
            slots[at] = count
        classes[k] = slots[at]
    return count
