"""Codes the gaps of rows that differ from the predicted ones, for files: a row's as one string.

The string of a row is guessed: the last one of rows of as many words that end with the same symbol, of as many words
whose greatest symbol is the same, and of as many words. Which guess is right is one choice; the others are a string
that occurred before, by number, and a new one. New strings are numbered in the order of their first use.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.grammars.adaptive_codes import (
    BYTE,
    code_4_bits,
    code_byte,
    code_choice,
    new_choices,
    new_contexts,
)
from polars_tadoc.kernels.host.grammars.coded_symbols import (
    OK,
    TRUNCATED,
    WRONG_COUNT,
    WRONG_END,
    WRONG_PLACE,
    learnt,
    slot_of,
)
from polars_tadoc.kernels.host.grammars.coded_words import copy_word
from polars_tadoc.kernels.host.grammars.event_contexts import CHOICE_CONTEXTS, choice_of
from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import kernel

GUESSES, KNOWN, NEW = 3, 3, 4
"""Guesses, and the choices after them."""

MAX_STRINGS = 1 << 28
CODES = 10
"""Maximum codes of a row: a choice, and a number of a string: two for its bits, and up to seven for these."""

_CONTEXTS = BYTE + 8 * 29
_LOW = np.uint64(1 << 31)
_POLL = (1 << 12) - 1


@polled
@njit
def code_row_gaps(
    is_coded: bool,
    words: int,
    bits: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    root_offsets: Int64,
    roots: UInt32,
    strings: int,
    codes: UInt32,
    numbers: UInt32,
) -> tuple[int, int]:
    """Decode the number of each row's string, or list the codes; return ``OK`` or what is wrong, and the codes.

    Never accesses memory out of bounds if ``is_coded``.

    Parameters
    ----------
    is_coded
        Whether ``codes`` is the stream, and ``numbers`` filled.
    words, bits
        Number of words, and bits of a place in each table of guesses.
    rule_offsets, symbols, root_offsets, roots
        The bodies, none of them empty, and the rows; a rule's symbols are words or earlier rules.
    strings
        Number of strings.
    codes
        The stream, or filled with start and frequency of up to ``CODES`` codes for each row.
    numbers
        By row, the number of its string; numbers are in the order of first use.

    """
    rules = len(rule_offsets) - 1
    x, at = _LOW, 0
    if is_coded:
        if len(codes) < 2:
            return TRUNCATED, 0
        x, at = (nb.uint64(codes[0]) << nb.uint64(32)) | nb.uint64(codes[1]), 2
    lengths = np.ones(words + rules, np.uint16)  # without higher bits: they tell rows apart as well
    began, events = interrupts(), 0
    for rule in range(rules):
        total = nb.uint16(0)
        for i in range(nb.int64(rule_offsets[rule]), nb.int64(rule_offsets[rule + 1])):
            events += 1
            if events & _POLL == 0 and interrupts() != began:
                return WRONG_END, 0
            total += lengths[symbols[i]]
        lengths[words + rule] = total
    contexts, choices = new_contexts(_CONTEXTS), new_choices(CHOICE_CONTEXTS)
    size = 1 << bits
    known, found, history = np.zeros(GUESSES * size, np.uint32), nb.int64(0), 0
    for row in range(len(numbers)):
        greatest, last, total = nb.uint32(0), nb.uint32(0), nb.uint64(0)
        for i in range(root_offsets[row], root_offsets[row + 1]):
            events += 1
            if events & _POLL == 0 and interrupts() != began:
                return WRONG_END, 0
            last = roots[i]
            greatest = max(greatest, last)
            total += nb.uint64(lengths[last])
        if row & _POLL == 0 and interrupts() != began:
            return WRONG_END, 0
        count = nb.int64(total & nb.uint64(0xFFFF))
        slot_0 = slot_of(count, nb.int64(last), size - 1)
        slot_1 = size + slot_of(count, nb.int64(greatest), size - 1)
        slot_2 = 2 * size + slot_of(count, 0, size - 1)
        known_0, known_1, known_2 = known[slot_0], known[slot_1], known[slot_2]
        number, choice = nb.int64(0), nb.int64(NEW)
        if not is_coded:
            number = nb.int64(numbers[row])
            entry = nb.uint32(number) << nb.uint32(4)
            if number < found:
                choice = nb.int64(KNOWN)
            if known_2 != 0 and known_2 & nb.uint32(0xFFFFFFF0) == entry:
                choice = nb.int64(2)
            if known_1 != 0 and known_1 & nb.uint32(0xFFFFFFF0) == entry:
                choice = nb.int64(1)
            if known_0 != 0 and known_0 & nb.uint32(0xFFFFFFF0) == entry:
                choice = nb.int64(0)
        context = choice_of(known_0, known_1, known_2, nb.uint32(0), history)
        choice, x, at = code_choice(is_coded, x, codes, at, choices, context, choice)
        if choice < GUESSES:
            entry = known_0 if choice == 0 else (known_1 if choice == 1 else known_2)
            if entry == 0:
                return WRONG_PLACE, 0
            number = nb.int64(entry >> nb.uint32(4))
        elif choice == NEW:
            number = found
            found += 1
            if found > strings:
                return WRONG_COUNT, 0
        else:
            length, rest = 0, nb.int64(0)
            while number >> length:
                length += 1
            length, x, at = code_byte(is_coded, x, codes, at, contexts, 0, length)
            if length > 28:
                return WRONG_PLACE, 0
            for i in range((length + 2) // 4):
                shift = 4 * ((length + 2) // 4 - 1 - i)
                own = (number & ((1 << (length - 1)) - 1)) >> shift & 15
                own, x, at = code_4_bits(is_coded, x, codes, at, contexts, BYTE + 8 * length + i, own)
                rest |= own << shift
            if is_coded:
                number = rest | 1 << (length - 1) if length > 0 else nb.int64(0)
            if number >= found:
                return WRONG_PLACE, 0
        if is_coded:
            numbers[row] = number
        known[slot_0], known[slot_1] = learnt(known_0, number), learnt(known_1, number)
        known[slot_2] = learnt(known_2, number)
        history = (2 * history + nb.int64(choice != 0)) & 3
    if found != strings or (is_coded and (at != len(codes) or x != _LOW)):
        return WRONG_END, 0
    return OK, at


@kernel
def spread(numbers: UInt32, starts: Int64, offsets: Int64) -> None:
    """Fill where each row's string ends, if they follow each other; ``starts`` has where each string starts."""
    offsets[0] = 0
    for row in range(len(numbers)):
        offsets[row + 1] = offsets[row] + starts[numbers[row] + 1] - starts[numbers[row]]


@kernel
def copy_strings(numbers: UInt32, starts: Int64, source: int, offsets: Int64, target: int) -> None:
    """Copy each row's string, from one address to another."""
    for row in range(len(numbers)):
        start, end = np.uint64(starts[numbers[row]]), np.uint64(starts[numbers[row] + 1])
        copy_word(np.uint64(source) + start, np.uint64(source) + end, np.uint64(target) + np.uint64(offsets[row]))
