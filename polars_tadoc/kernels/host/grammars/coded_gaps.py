"""Codes the predicted gaps within bodies for files, by the words on either side of each gap."""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.runtime.array_types import UInt32
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import polled_njit

GUESSES = 3
"""Guesses for a gap: the last one between these words (by hash), after the word before it, before the word after it."""


@polled_njit
def code_gaps(
    words: int, rule_offsets: UInt32, symbols: UInt32, bits: int, is_coded: bool, gaps: UInt32, codes: UInt32
) -> bool:
    """Fill the codes of gaps, or the gaps of codes; False if there is no such code.

    A gap within a body has as code the guess that is right, among those that differ, or ``GUESSES`` plus the gap. Gaps
    of words have no codes; those before bodies' first symbols are 0 and have none.

    Parameters
    ----------
    words
        Number of words, whose gaps come first.
    rule_offsets, symbols
        The bodies, none of them empty; a rule's symbols are words or earlier rules.
    bits
        Of the hash of two words.
    is_coded
        Whether ``codes`` is given, and ``gaps`` filled.
    gaps
        By word, then by position of ``symbols``.
    codes
        By position, without bodies' first symbols.

    """
    rules = len(rule_offsets) - 1
    firsts, lasts = np.empty(words + rules, np.uint32), np.empty(words + rules, np.uint32)
    known = np.zeros(2 * words + (1 << bits), np.uint32)  # after words, before words, between words; gap plus 1
    for word in range(words):
        firsts[word], lasts[word] = word, word
        known[words + word] = gaps[word] + nb.uint32(1)
    guesses, places = np.empty(GUESSES, np.uint32), np.empty(GUESSES, np.int64)
    at = 0
    began = interrupts()
    for rule in range(rules):
        if rule & 0xFFF == 0 and interrupts() != began:
            return False
        start, stop = nb.int64(rule_offsets[rule]), nb.int64(rule_offsets[rule + 1])
        if is_coded:
            gaps[words + start] = 0
        for i in range(start + 1, stop):
            before, after = nb.int64(lasts[symbols[i - 1]]), nb.int64(firsts[symbols[i]])
            key = nb.uint64(before) * nb.uint64(0x9E3779B97F4A7C15) + nb.uint64(after) * nb.uint64(0xC2B2AE3D27D4EB4F)
            places[0] = 2 * words + nb.int64(key >> nb.uint64(64 - bits))
            places[1], places[2] = before, words + after
            count = 0
            for place in places:
                is_new = known[place] != 0
                for other in range(count):
                    is_new = is_new and guesses[other] != known[place]
                if is_new:
                    guesses[count] = known[place]
                    count += 1
            code, gap = nb.uint32(0), gaps[words + i] + nb.uint32(1)
            if is_coded:
                code = codes[at]
                if count <= code < GUESSES:
                    return False
                gap = guesses[code] if code < count else code - nb.uint32(GUESSES - 1)
                gaps[words + i] = gap - nb.uint32(1)
            else:
                while code < count and guesses[code] != gap:
                    code += nb.uint32(1)
                codes[at] = code if code < count else gap + nb.uint32(GUESSES - 1)
            at += 1
            for place in places:
                known[place] = gap
        firsts[words + rule] = firsts[symbols[start]]
        lasts[words + rule] = lasts[symbols[stop - 1]]
    return True
