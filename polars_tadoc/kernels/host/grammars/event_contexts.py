"""Contexts in which symbols and gaps are coded: groups of words, notes of events, and guesses of the next code."""

from __future__ import annotations

from typing import Any

import numba as nb

from polars_tadoc.kernels.host.grammars.coded_symbols import END, NEW_WORD, OLD
from polars_tadoc.runtime.jit import inner

GROUPS = 6
"""Groups of words: without digits, of 1, 2, 3 and more digits, of digits and others."""

FOLLOWS = 64
"""Notes of the event that followed a word last."""


@inner
def group_of(shape: int) -> int:
    """Return the group of a word."""
    if shape == 0:
        return 0
    return min(shape, 4) if shape <= 16 else 5


@inner
def follow_of(kind: int, group: int) -> int:
    """Return the note of an event: below ``FOLLOWS``."""
    if kind == END:
        return 1
    if kind < NEW_WORD:
        return 2 + int(kind > 2) + int(kind > 4)
    if kind < OLD:
        shape = kind - NEW_WORD
        return 5 + shape if shape <= 16 else 22 + (shape - 16) // 4
    return 30 + group


@inner(forceinline=True)
def level_of(known: Any) -> Any:
    """Return how sure a guess is, 0 if there is none: 0, 1, 2, 3, from 4, from 8, and 15, which is the most."""
    sure = nb.int64(known & nb.uint32(15))
    return nb.int64((0x6555_5555_4444_3210 >> (4 * sure)) & 15)


CHOICE_CONTEXTS = 1 << 12


@inner(forceinline=True)
def choice_of(known_0: Any, known_1: Any, known_2: Any, known_3: Any, history: int) -> Any:
    """Return the context of the choice among guesses: which are new, which agree with the first, and how sure it is."""
    guess_0, guess_1 = known_0 >> nb.uint32(4), known_1 >> nb.uint32(4)
    guess_2, guess_3 = known_2 >> nb.uint32(4), known_3 >> nb.uint32(4)
    like_1, like_2, like_3 = guess_1 == guess_0, guess_2 == guess_0, guess_3 == guess_0
    is_new_2 = not (like_2 or guess_2 == guess_1)
    is_new_3 = not (like_3 or guess_3 in (guess_1, guess_2))
    which = nb.int64(not like_1) | nb.int64(is_new_2) << 1 | nb.int64(is_new_3) << 2
    agree = nb.int64(like_1) + nb.int64(like_2) + nb.int64(like_3)
    second = nb.int64(known_1 & nb.uint32(15) > 1) + nb.int64(known_1 & nb.uint32(15) > 4)
    return (((level_of(known_0) * 8 + which) * 4 + agree) * 4 + second) * 4 + history
