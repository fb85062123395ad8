"""Codes the predicted gaps within bodies for files, by the words on either side of each gap.

A gap is guessed: the last one between these words (by hash), after the word before it, before the word after it. Which
guess is right, or none, is one code, in the context of which guesses there are and which are equal. A gap that no guess
meets follows as a number. One stream of :mod:`polars_tadoc.kernels.host.grammars.coded_streams`.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.grammars.coded_streams import (
    SCALE,
    STATE_SHIFT,
    STATES,
    are_spent,
    code_of,
    explicit,
    load_states,
    refill,
)
from polars_tadoc.runtime.array_types import UInt32
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, polled_njit

GUESSES = 3

LONG_GAP, MAX_GAP_BITS = 232, 22
"""From this code of gaps on, ``LONG_GAP + b`` is for those whose distance plus 1 has ``b`` bits behind its first."""

CONTEXTS = 128
"""Contexts of a guess: by those that there are, those that are equal, and whether the first was right before."""

CODES = 256 + 4 * CONTEXTS
"""Frequencies: of gaps' numbers, and by context of each guess and of none."""

MOST = 4
"""Maximum codes of a gap: a guess, a number, and two for the bits of a long one."""

_POLL = (1 << 12) - 1


@inner
def _read_bits(x: int, stream: UInt32, at: int, bits: int) -> tuple[int, int, int]:
    """Decode up to 12 bits that are as likely."""
    frequency = nb.uint64(1) << nb.uint64(SCALE - bits)
    slot = x & nb.uint64((1 << SCALE) - 1)
    value = slot >> nb.uint64(SCALE - bits)
    x = frequency * (x >> nb.uint64(SCALE)) + (slot & (frequency - nb.uint64(1)))
    x, at = refill(x, stream, at)
    return nb.int64(value), x, at


@polled_njit
def code_gaps(
    words: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    bits: int,
    is_coded: bool,
    gaps: UInt32,
    codes: UInt32,
    starts: UInt32,
    frequencies: UInt32,
    entries: UInt32,
) -> tuple[bool, int]:
    """Fill the codes of gaps, or the gaps of a stream; return whether the stream is sound, and the number of codes.

    Gaps of words have no codes; those before bodies' first symbols are 0 and have none.

    Parameters
    ----------
    words
        Number of words, whose gaps come first.
    rule_offsets, symbols
        The bodies, none of them empty; a rule's symbols are words or earlier rules.
    bits
        Of the hash of two words.
    is_coded
        Whether ``codes`` is the stream, and ``gaps`` filled.
    gaps
        By word, then by position of ``symbols``.
    codes
        The stream, or filled with codes: up to ``MOST`` for each position that is not a body's first.
    starts, frequencies, entries
        Of the ``CODES`` codes, and the slots of the first 256; only for a stream.

    """
    rules = len(rule_offsets) - 1
    states, at, turn = np.empty(STATES, np.uint64), nb.int64(0), nb.uint64(0)
    last_state = nb.uint64(STATES - 1)
    if is_coded:
        if not load_states(codes, states):
            return False, 0
        at = nb.int64(2 * STATES)
    firsts, lasts = np.empty(words + rules, np.uint32), np.empty(words + rules, np.uint32)
    known = np.zeros(2 * words + (1 << bits), np.uint32)  # after words, before words, between words; gap plus 1
    for word in range(words):
        firsts[word], lasts[word] = word, word
        known[words + word] = gaps[word] + nb.uint32(1)
    guesses = np.empty(GUESSES + 1, np.uint32)
    history, events, began = 0, 0, interrupts()
    for rule in range(rules):
        start, stop = nb.int64(rule_offsets[rule]), nb.int64(rule_offsets[rule + 1])
        if is_coded:
            gaps[words + start] = 0
        for i in range(start + 1, stop):
            events += 1
            if events & _POLL == 0 and interrupts() != began:
                return False, 0
            before, after = nb.uint64(lasts[symbols[i - 1]]), nb.uint64(firsts[symbols[i]])
            key = before * nb.uint64(0x9E3779B97F4A7C15) + after * nb.uint64(0xC2B2AE3D27D4EB4F)
            between = nb.uint64(2 * words) + (key >> nb.uint64(64 - bits))
            after += nb.uint64(words)
            guess_0, guess_1, guess_2 = known[between], known[before], known[after]
            context = nb.int64(guess_0 != 0) | nb.int64(guess_1 != 0) << 1 | nb.int64(guess_0 == guess_1) << 2
            context |= nb.int64(guess_0 == guess_2) << 3 | nb.int64(guess_1 == guess_2) << 4
            base = 256 + 4 * (context * 4 + history)
            gap, choice = gaps[words + i] + nb.uint32(1), nb.int64(GUESSES)
            if is_coded:
                guesses[0], guesses[1], guesses[2] = guess_0, guess_1, guess_2
                x = states[turn & last_state]
                slot = nb.uint32(x & nb.uint64((1 << SCALE) - 1))
                choice = nb.int64(slot >= starts[base + 1]) + nb.int64(slot >= starts[base + 2])
                choice += nb.int64(slot >= starts[base + 3])
                frequency = nb.uint64(frequencies[base + choice])
                if frequency == 0:
                    return False, 0
                x = frequency * (x >> nb.uint64(SCALE)) + nb.uint64(slot - starts[base + choice])
                states[turn & last_state], at = refill(x, codes, at)
                turn += nb.uint64(1)
                gap = guesses[choice]
                if choice == GUESSES:
                    number, states[turn & last_state], at = code_of(states[turn & last_state], codes, at, entries, 0)
                    turn += nb.uint64(1)
                    if number >= LONG_GAP:
                        size = number - LONG_GAP
                        if size > MAX_GAP_BITS:
                            return False, 0
                        upper = max(size - SCALE, 0)
                        high, states[turn & last_state], at = _read_bits(states[turn & last_state], codes, at, upper)
                        turn += nb.uint64(1)
                        low, states[turn & last_state], at = _read_bits(
                            states[turn & last_state], codes, at, size - upper
                        )
                        turn += nb.uint64(1)
                        number = LONG_GAP - 1 + (1 << size | high << (size - upper) | low)
                    gap = nb.uint32(number + 1)
                elif gap == 0:
                    return False, 0
                gaps[words + i] = gap - nb.uint32(1)
            else:
                if gap == guess_0:
                    choice = 0
                elif gap == guess_1:
                    choice = 1
                elif gap == guess_2:
                    choice = 2
                codes[at] = base + choice
                at += 1
                if choice == GUESSES:
                    number, size = nb.int64(gap) - 1, 0
                    over = number - LONG_GAP + 1
                    while over >> (size + 1) > 0:
                        size += 1
                    codes[at] = number if number < LONG_GAP else LONG_GAP + size
                    at += 1
                    if number >= LONG_GAP:
                        upper = max(size - SCALE, 0)
                        lower = size - upper
                        rest = over - (1 << size)
                        codes[at] = explicit(rest >> lower << (SCALE - upper), 1 << (SCALE - upper))
                        codes[at + 1] = explicit((rest & ((1 << lower) - 1)) << (SCALE - lower), 1 << (SCALE - lower))
                        at += 2
            history = (2 * history + nb.int64(choice != 0)) & 3
            known[between], known[before], known[after] = gap, gap, gap
        firsts[words + rule] = firsts[symbols[start]]
        lasts[words + rule] = lasts[symbols[stop - 1]]
    if is_coded:
        return are_spent(states, codes, at), at
    for i in range(at):
        codes[i] |= nb.uint32(nb.uint32(i & (STATES - 1)) << nb.uint32(STATE_SHIFT))
    return True, at
