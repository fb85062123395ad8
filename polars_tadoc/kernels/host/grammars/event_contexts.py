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


@inner
def chance_of(number: int, known: Any, tried: int, agree: int, history: int) -> Any:
    """Return the place of a guess's probability: by confidence, guesses tried before, those that agree, and hits."""
    return (((number * 16 + nb.int64(known & nb.uint32(15))) * 4 + tried) * 4 + agree) * 4 + history
