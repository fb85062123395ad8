"""Matches an automaton in rows: atoms (words and gaps) and rules that change nothing are skipped.

:mod:`polars_tadoc.rows.pattern_automaton` makes automata. After most words an automaton is at rest: no match has begun
that any gap could continue. An atom is quiet if, from rest, it leaves the automaton at rest without a match; so is a
rule of quiet atoms, wherever it occurs and whatever quiet gaps replace those predicted. Only rows with a symbol that is
not quiet are read, and in these each rule once for each state that the automaton enters it in.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.rows.expand import GAP_PLACE, GAP_RANGE, GAPS_CUT, OK
from polars_tadoc.kernels.primitives.varint import read_varint
from polars_tadoc.runtime.addresses import load_u8, trailing_zeros
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt16, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, kernel, polled_njit

REST, FOUND = 0, 1
"""State after a word that no match can continue; state after the first match, if one suffices."""

FULL, COSTLY = -1, -2

INSIDE = 1
"""Flag of symbols that are not quiet: something inside."""

_NEVER = 1 << 62


class Automaton(NamedTuple):
    """A deterministic automaton over classes of characters."""

    classes: UInt8
    """Class by code point; beyond its end, class 0."""
    width: int
    """Number of classes."""
    steps: UInt16
    """Next state, by state and class."""
    hits: UInt8
    """By state and class: matches that this step completes; unused if one match suffices."""
    at_rest: UInt8
    """By state: whether, after a word, it is as good as ``REST``."""
    after_gap: UInt8
    """By state: whether words were tested from it; it is a state after a quiet gap, or a row's start."""
    at_end: UInt8
    """By state: matches that the end of the text completes."""
    stays: UInt8
    """By byte: whether ``REST`` stays at rest, without a match, whatever character it is of."""


class Text(NamedTuple):
    """Words, gaps and rules of a grammar."""

    vocabulary_size: int
    word_offsets: Int64
    words_at: int
    gap_offsets: Int64
    gaps_at: int
    rule_offsets: UInt32
    symbols: UInt32
    predicted_gaps: UInt32
    leading_gaps: UInt32
    short_lengths: UInt8
    """Words of each symbol, at most 255."""
    lengths: UInt64
    """Words of each rule."""


@inner
def step(at: int, state: int, automaton: Automaton) -> Any:
    """Read the character at an address; return the next state and address, and the matches."""
    code = nb.uint64(load_u8(nb.uint64(at)))
    after = nb.uint64(at) + nb.uint64(1)
    if code >= 0x80:
        more = nb.uint64(1) if code < 0xE0 else nb.uint64(2) if code < 0xF0 else nb.uint64(3)
        code &= nb.uint64(0x3F) >> more
        for _ in range(more):
            code = code << nb.uint64(6) | nb.uint64(load_u8(after)) & nb.uint64(0x3F)
            after += nb.uint64(1)
    place = nb.uint64(state) * nb.uint64(automaton.width)
    if code < nb.uint64(len(automaton.classes)):
        place += nb.uint64(automaton.classes[code])
    return nb.uint64(automaton.steps[place]), after, nb.uint64(automaton.hits[place])


@inner
def _run(address: int, length: int, state: int, automaton: Automaton) -> Any:
    """Return the state after a string, and the matches that it completes; ends at ``FOUND``."""
    at, end = nb.uint64(address), nb.uint64(address) + nb.uint64(length)
    own, count = nb.uint64(state), nb.uint64(0)
    while at < end:
        if own == REST:
            while at < end and automaton.stays[load_u8(at)]:
                at += nb.uint64(1)
            if at == end:
                break
        own, at, more = step(at, own, automaton)
        count += more
        if own == FOUND:
            break
    return own, count


@inner
def run_gap(code: int, state: int, text: Text, automaton: Automaton) -> Any:
    """Do as :func:`_run` for a gap's code; 0 is one space."""
    if code == 0:
        place = nb.uint64(state) * nb.uint64(automaton.width) + nb.uint64(automaton.classes[32])
        return nb.uint64(automaton.steps[place]), nb.uint64(automaton.hits[place])
    first = text.gap_offsets[code - 1]
    return _run(nb.uint64(text.gaps_at) + nb.uint64(first), text.gap_offsets[code] - first, state, automaton)


@inner
def run_word(word: int, state: int, text: Text, automaton: Automaton) -> Any:
    """Do as :func:`_run` for a word."""
    first = text.word_offsets[word]
    return _run(nb.uint64(text.words_at) + nb.uint64(first), text.word_offsets[word + 1] - first, state, automaton)


@kernel
def run_gaps(text: Text, automaton: Automaton, state: int, exits: UInt16, counts: UInt64) -> None:
    """Fill the state after each gap code, and the matches, from one state."""
    for code in range(len(exits)):
        after, count = run_gap(code, state, text, automaton)
        exits[code], counts[code] = after, count


@polled_njit
def find_words(text: Text, automaton: Automaton, states: UInt16, flags: UInt8) -> Any:
    """Flag the words that are not quiet from some of the states.

    Returns their number, and the number of those that do not hold a match whatever the state before.
    """
    began = interrupts()
    found, open_words = 0, 0
    for word in range(text.vocabulary_size):
        if word & 0xFFF == 0 and interrupts() != began:
            return 0, 0
        matching, loud = 0, 0
        for i in range(len(states)):
            after, count = run_word(word, states[i], text, automaton)
            matching += after == FOUND
            loud += count != 0 or automaton.at_rest[after] == 0
        if loud:
            flags[word] = INSIDE
            found += 1
            open_words += matching < len(states)
    return found, open_words


@kernel
def flag_owners(
    vocabulary_size: int, offsets: UInt32, rules: UInt32, words: UInt32, pending: UInt64, flags: UInt8
) -> None:
    """Flag the rules that contain some words, directly or not, by the lists of rules by symbol."""
    one = nb.uint64(1)
    for k in range(len(words)):
        for i in range(offsets[words[k]], offsets[words[k] + nb.uint32(1)]):
            pending[rules[i] >> nb.uint32(6)] |= one << nb.uint64(rules[i] & nb.uint32(63))
    for block in range(len(pending)):
        while pending[block] != 0:  # only higher rules contain a rule: their bits come later
            bits = pending[block]
            pending[block] = bits & (bits - one)
            symbol = vocabulary_size + (block << 6) + trailing_zeros(bits)
            flags[symbol] = INSIDE
            for i in range(offsets[symbol], offsets[symbol + 1]):
                pending[rules[i] >> nb.uint32(6)] |= one << nb.uint64(rules[i] & nb.uint32(63))


@kernel
def flag_rules(text: Text, loud_gaps: UInt8, flags: UInt8) -> None:
    """Flag the rules that contain a flagged word or gap; and symbols before which a flagged gap is predicted."""
    size = text.vocabulary_size
    for rule in range(len(text.rule_offsets) - 1):
        first, stop = text.rule_offsets[rule], text.rule_offsets[rule + 1]
        own = nb.uint8(0)
        for i in range(first, stop):
            own |= flags[text.symbols[i]]
        if len(loud_gaps):
            for i in range(first + 1, stop):
                own |= loud_gaps[text.predicted_gaps[size + i]]
        flags[size + rule] = own
    if len(loud_gaps):
        for symbol in range(len(flags)):
            flags[symbol] |= loud_gaps[text.leading_gaps[symbol]] << nb.uint8(1)


@polled_njit
def find_rows_by_gaps(loud_gaps: UInt8, addresses: UInt64, sizes: UInt32, pending: UInt64) -> Any:
    """Set the bit of each row with a flagged gap that differs from its prediction; return an error and its row."""
    began = interrupts()
    for row in range(len(sizes)):
        if row & 0xFF == 0 and interrupts() != began:
            return OK, row
        address, left = addresses[row], nb.int64(sizes[row])
        while left > 0:
            _, used = read_varint(address, left)
            code, more = read_varint(address + nb.uint64(used), left - used)
            if used == 0 or more == 0:
                return GAPS_CUT, row
            if code >= len(loud_gaps):
                return GAP_RANGE, row
            if loud_gaps[code]:
                pending[row >> 6] |= nb.uint64(1) << nb.uint64(row & 63)
                break
            address += nb.uint64(used + more)
            left -= used + more
    return OK, 0


@inner
def length_of(symbol: int, text: Text) -> Any:
    """Return the words of a symbol."""
    short = nb.int64(text.short_lengths[symbol])
    return short if short < 255 else nb.int64(text.lengths[symbol - text.vocabulary_size])


@inner
def _slot(key: int, keys: UInt64) -> Any:
    """Return the place of a key in a hash table, or the empty place where it belongs."""
    mask = nb.uint64(len(keys) - 1)
    at = (key * nb.uint64(0x9E3779B97F4A7C15)) >> nb.uint64(20) & mask
    while keys[at] != 0 and keys[at] != key:
        at = (at + nb.uint64(1)) & mask
    return at


@inner
def next_gap(before: int, address: int, left: int, codes: int) -> Any:
    """Read the next gap that differs from its prediction: an error, its place and code, and the rest of the stream."""
    if left <= 0:
        return OK, nb.int64(_NEVER), nb.int64(0), nb.uint64(address), nb.int64(0)
    passed, used = read_varint(address, left)
    code, more = read_varint(address + nb.uint64(used), left - used)
    wrong = GAPS_CUT if used == 0 or more == 0 else GAP_RANGE if code >= codes else OK
    used += more
    return wrong, nb.int64(before + 1 + passed), nb.int64(code), address + nb.uint64(used), nb.int64(left - used)


@kernel
def move_table(keys: UInt64, values: UInt64, new_keys: UInt64, new_values: UInt64) -> None:
    """Move the entries of a hash table to a larger one, which is initially zero."""
    for slot in range(len(keys)):
        if keys[slot] != 0:
            at = _slot(keys[slot], new_keys)
            new_keys[at], new_values[at] = keys[slot], values[slot]


@polled_njit
def match_rows(
    text: Text,
    automaton: Automaton,
    start: int,
    flags: UInt8,
    loud_gaps: UInt8,
    levels: int,
    root_offsets: Int64,
    roots: UInt32,
    gap_addresses: UInt64,
    gap_sizes: UInt32,
    most: int,
    is_over: bool,
    pending: UInt64,
    keys: UInt64,
    values: UInt64,
    counts: UInt64,
) -> Any:
    """Count the matches in documents, or tell whether there is one.

    Parameters
    ----------
    text, automaton
        Words, gaps, rules and the pattern.
    start
        State at the start of a row.
    flags
        uint8 by symbol: its flags, 0 if it is quiet.
    loud_gaps
        uint8 by gap code: whether it is not quiet; empty if all are.
    levels
        Levels of rules.
    root_offsets, roots, gap_addresses, gap_sizes
        The documents' symbols and gaps.
    most
        Steps after which to stop before the next document.
    is_over
        Whether no match can begin once the automaton is at rest.
    pending
        Bitmap of the documents to read; bits of documents that are done are cleared.
    keys, values
        Hash table of rules by state: the state after the rule, and the matches. Initially zero.
    counts
        Output by document that is read.

    Returns
    -------
    (error, document)
        ``FULL``: the table needs more room, ``COSTLY``: all steps are taken; the documents in ``pending`` remain.

    """
    began = interrupts()
    one = nb.uint64(1)
    size, codes = text.vocabulary_size, len(text.gap_offsets)
    position, stop = np.empty(levels + 1, np.int64), np.empty(levels + 1, np.int64)
    first = np.empty(levels + 1, np.int64)
    frame_key, frame_count = np.empty(levels + 1, np.uint64), np.empty(levels + 1, np.uint64)
    used, taken = 0, 0
    for slot in range(len(keys)):
        used += keys[slot] != 0
    for block in range(len(pending)):
        while pending[block] != 0:
            bits = pending[block]
            row = (block << 6) + trailing_zeros(bits)
            wrong, special, special_code, address, left = next_gap(-1, gap_addresses[row], gap_sizes[row], codes)
            word, depth, reads = nb.int64(0), 0, 0
            state, count = nb.uint64(start), nb.uint64(0)
            position[0], stop[0], first[0] = root_offsets[row], root_offsets[row + 1], root_offsets[row]
            frame_key[0] = 0
            while depth >= 0 and wrong == OK and state != FOUND:
                if reads & 0xFFFF == 0 and interrupts() != began:
                    return OK, row
                reads += 1
                at = position[depth]
                if at == stop[depth]:
                    if frame_key[depth] != 0:
                        slot = _slot(frame_key[depth], keys)
                        keys[slot] = frame_key[depth]
                        values[slot] = (count - frame_count[depth]) << nb.uint64(16) | state
                        used += 1
                        if 2 * used > len(keys):
                            return FULL, row
                    depth -= 1
                    continue
                position[depth] = at + 1
                if depth == 0:
                    symbol = nb.int64(roots[at])
                    code = nb.int64(text.leading_gaps[symbol])
                else:
                    symbol = nb.int64(text.symbols[at])
                    code = nb.int64(text.predicted_gaps[size + at])
                follows = at > first[depth]  # the gap before a rule is read before the rule's first symbol
                length = length_of(symbol, text)
                if special == word and (follows or depth == 0):
                    follows, code = True, special_code
                    wrong, special, special_code, address, left = next_gap(special, address, left, codes)
                quiet = flags[symbol] & nb.uint8(INSIDE) == 0
                if quiet and follows:
                    quiet = automaton.at_rest[state] != 0 and (len(loud_gaps) == 0 or loud_gaps[code] == 0)
                elif quiet:
                    quiet = automaton.after_gap[state] != 0
                if quiet and len(loud_gaps) == 0:
                    while special < word + length and wrong == OK:
                        wrong, special, special_code, address, left = next_gap(special, address, left, codes)
                if quiet and special >= word + length:
                    state = nb.uint64(REST)
                    word += length
                    if is_over:
                        special, depth = nb.int64(_NEVER), 0
                        break
                    continue
                if follows:
                    state, more = run_gap(code, state, text, automaton)
                    count += more
                    if state == FOUND:
                        break
                if symbol < size:
                    state, more = run_word(symbol, state, text, automaton)
                    count += more
                    word += 1
                    continue
                key = nb.uint64(0)
                if special >= word + length:
                    key = (nb.uint64(symbol) << nb.uint64(16) | state) + one
                    slot = _slot(key, keys)
                    if keys[slot] == key:
                        state = values[slot] & nb.uint64(0xFFFF)
                        count += values[slot] >> nb.uint64(16)
                        word += length
                        continue
                depth += 1
                position[depth] = nb.int64(text.rule_offsets[symbol - size])
                stop[depth] = nb.int64(text.rule_offsets[symbol - size + 1])
                first[depth] = position[depth]
                frame_key[depth], frame_count[depth] = key, count
            if wrong != OK:
                return wrong, row
            if state != FOUND:
                if special == word:  # after the last word
                    state, more = run_gap(special_code, state, text, automaton)
                    count += more
                elif special != _NEVER:
                    return GAP_PLACE, row
            while depth > 0:  # a match was found inside rules
                if frame_key[depth] != 0:
                    slot = _slot(frame_key[depth], keys)
                    keys[slot] = frame_key[depth]
                    values[slot] = nb.uint64(FOUND)
                    used += 1
                depth -= 1
            counts[row] = one if state == FOUND else count + nb.uint64(automaton.at_end[state])
            pending[block] = bits & (bits - one)
            taken += reads
            if taken > most:
                return COSTLY, row
            if 2 * used > len(keys):
                return FULL, row
    return OK, 0
