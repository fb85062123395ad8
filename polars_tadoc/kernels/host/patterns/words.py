"""Runs an automaton over the words of a vocabulary, and classes words by what they do to it."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.patterns.match import FOUND, REST, Automaton, Text, run_word, step
from polars_tadoc.runtime.addresses import load_u8
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt16, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, kernel, polled_njit

MAX_STATES, MAX_WIDTH = 64, 64
"""Maximum states and classes of an automaton whose required classes are looked for."""


@kernel
def sum_up_words(offsets: Int64, data_at: int, bits: UInt64, sets: UInt64) -> None:
    """Fill the union of the bits of each word's bytes."""
    for word in range(len(sets)):
        own = nb.uint64(0)
        for at in range(offsets[word], offsets[word + 1]):
            own |= bits[load_u8(nb.uint64(data_at) + nb.uint64(at))]
        sets[word] = own


@polled_njit
def find_required(steps: UInt16, width: int, bits: UInt64, required: UInt64) -> int:
    """List the bits of each class without which no match is reached from ``REST``; return their number."""
    states, count = len(steps) // width, 0
    if states > MAX_STATES or width > MAX_WIDTH:
        return 0
    todo = np.empty(states, np.uint16)
    for without in range(width):
        seen = np.zeros(states, np.uint8)
        todo[0], filled = REST, 1
        seen[REST] = 1
        while filled and not seen[FOUND]:
            filled -= 1
            state = nb.int64(todo[filled])
            for k in range(width):
                after = steps[state * width + k]
                if k != without and not seen[after]:
                    seen[after] = 1
                    todo[filled] = after
                    filled += 1
        if not seen[FOUND]:
            required[count] = bits[without]
            count += 1
    return count


@kernel
def choose_words(sets: UInt64, lasts: UInt8, moves: int, required: UInt64, ends: UInt8, some: UInt32) -> int:
    """List the words that may lead from ``REST`` elsewhere; return their number.

    Parameters
    ----------
    sets, lasts
        By word: the bits of its bytes, and its last byte.
    moves
        Bits of the bytes that lead from ``REST`` elsewhere.
    required
        Bits of each class of which a match has a character.
    ends
        By byte: whether it may be a word's last one that leads from any state to another than ``REST``.
    some
        Output: the words, ascending.

    """
    count, others = 0, nb.uint64(moves)
    for word in range(len(sets)):
        own = sets[word]
        if own & others == 0:
            continue
        if ends[lasts[word]] == 0:
            holds = True
            for k in range(len(required)):
                holds = holds and own & required[k] != 0
            if not holds:
                continue
        some[count] = word
        count += 1
    return count


@kernel
def pass_words(
    sets: UInt64,
    firsts: UInt8,
    states: UInt16,
    moves: UInt64,
    some: UInt32,
    touched: UInt8,
    exits: UInt16,
    counts: UInt32,
    others: UInt32,
) -> int:
    """Fill the state after the words that stay in the one after their first characters; list the others of some words.

    Parameters
    ----------
    sets, firsts
        By word: the bits of its bytes, and its first byte.
    states
        By first byte: the state after it.
    moves
        By first byte: bits of the bytes that lead from that state elsewhere, or match.
    some
        The words.
    touched, exits, counts
        As for :func:`run_some`.
    others
        Output: words that may not stay.

    """
    count = 0
    for k in some:
        first = firsts[k]
        if sets[k] & moves[first] != 0:
            others[count] = k
            count += 1
            continue
        exits[k] = states[first]
        if states[first] != REST:
            touched[k] = 1
        if len(counts):
            counts[k] = 0
    return count


@polled_njit
def run_some(
    text: Text,
    automaton: Automaton,
    words: UInt32,
    state: int,
    other: int,
    other_exits: UInt16,
    other_counts: UInt32,
    some: UInt32,
    first: int,
    stop: int,
    reached: UInt8,
    touched: UInt8,
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
    some, first, stop
        The words to run, by their places in ``words``: which of ``some``.
    reached
        Output by state: 1 if any word leads to it; otherwise unchanged.
    touched
        Output by word: 1 if it leads to another state than ``REST``, or matches; otherwise unchanged.
    exits, counts
        Output by word; counts, if they have room.

    """
    began = interrupts()
    for place in range(first, stop):
        if place & 0xFFF == 0 and interrupts() != began:
            return
        k = some[place]
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
        if own != REST or count != 0:
            touched[k] = 1
        exits[k] = own
        if len(counts):
            counts[k] = count


@inner
def _value(row: int, word: int, exits: UInt16, counts: UInt32, after: UInt64) -> Any:
    """Return what a word does from a state."""
    own = after[exits[row, word]]
    return own | nb.uint64(counts[row, word]) << nb.uint64(8) if len(counts) else own


@kernel
def classify_words(
    exits: UInt16, counts: UInt32, some: UInt32, after: UInt64, slots: UInt32, firsts: UInt32, classes: UInt8
) -> int:
    """Number what some words do from 1 on, 0 for nothing; return the number of classes, -1 if ``firsts`` lacks room.

    Parameters
    ----------
    exits
        uint16 (states, words): the state after each word.
    counts
        uint32 likewise: matches; or empty.
    some
        The words; the others do nothing.
    after
        By state: its number, 0 for the first.
    slots
        Hash table: number of class; initially zero.
    firsts
        Output: a word of each class.
    classes
        Output by word; initially zero.

    """
    count, mask, rows = 0, nb.uint64(len(slots) - 1), exits.shape[0]
    for k in some:
        key, does = nb.uint64(0), nb.uint64(0)
        for row in range(rows):
            own = _value(row, k, exits, counts, after)
            does |= own
            key = (key * nb.uint64(0x9E3779B97F4A7C15)) ^ own ^ (key >> nb.uint64(29))
        if does == 0:
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
