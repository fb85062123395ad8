"""Codes numbers by probabilities that adapt, in a stream of rANS; one function encodes and decodes.

A state of 64 bits, and numbers of 32, as in :mod:`polars_tadoc.kernels.host.grammars.coded_streams`. Codes are of 4
bits, whose cumulative frequencies move towards what occurred (F. Giesen, "Interleaved entropy coders",
arXiv:1402.3392, and his notes on adaptive models).
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.grammars.coded_streams import refill
from polars_tadoc.runtime.array_types import UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.jit import inner, kernel

SCALE = 15
"""Frequencies of the codes in a context add up to ``1 << SCALE``."""

BYTE = 17
"""Contexts of a number of 8 bits: one for its upper half, and one for each value of it."""

CHOICES = 5
"""Codes of a choice."""

_RATE = 5
_GREATEST = (1 << (SCALE - _RATE)) - 1
"""Gain of a start that moves up: in the long run such starts are ``32 * _GREATEST`` and the number of codes before."""


def _lanes(numbers: Any) -> UInt64:
    """Pack numbers of 16 bits, the lowest first."""
    return np.ascontiguousarray(numbers, "<u2").view("<u8").astype(np.uint64)


_ONES = np.uint64(0x0001_0001_0001_0001)
_TOPS = np.uint64(0x8000_8000_8000_8000)
_LANE = np.uint64(0xFFFF)
_SHIFTED = np.uint64(_GREATEST) * _ONES
_FIRSTS = _lanes(np.arange(16))
_GAINS = _lanes([[_GREATEST * (start > code) for start in range(16)] for code in range(16)])
_FIRST_CHOICES = np.uint64(0x0004_0003_0002_0001)
_CHOICE_GAINS = _lanes([[_GREATEST * (start > code) for start in range(1, CHOICES)] for code in range(CHOICES)])[:, 0]
_LOW = np.uint64(1 << 31)
_1, _3, _4, _15, _16 = (np.uint64(number) for number in (1, 3, 4, 15, 16))


@njit
def new_contexts(count: int) -> UInt64:
    """Return contexts in which all codes are as likely: where each code starts, four to a number, lowest first."""
    made = np.zeros(4 * count, np.uint64)
    for i in range(16 * count):
        start = nb.uint64(i & 15) << nb.uint64(SCALE - 4)
        made[i >> 2] |= start << nb.uint64(16 * (i & 3))
    return made


@njit
def new_choices(count: int) -> UInt64:
    """Return contexts of choices that are as likely: where each starts but the first."""
    return np.full(count, 4 * 6553 << 48 | 3 * 6553 << 32 | 2 * 6553 << 16 | 6553, np.uint64)


@inner(forceinline=True)
def _taken(is_coded: bool, state: int, stream: UInt32, at: int, start: int, end: int) -> Any:
    """Remove a code from the state, or append it to ``stream``, by start and end; return the state and the place."""
    if is_coded:
        state = (end - start) * (state >> nb.uint64(SCALE)) + (state & nb.uint64((1 << SCALE) - 1)) - start
        return refill(state, stream, at)
    stream[at] = (start << _16) | (end - start)
    return state, at + 1


@kernel(forceinline=True)
def code_4_bits(
    is_coded: bool, state: int, stream: UInt32, at: int, contexts: UInt64, context: int, code: int
) -> tuple[int, int, int]:
    """Decode a code, or append its start and frequency to ``stream``; return it, the new state and place in the stream.

    Adapts the context: starts lose a 32nd of their distance from the least possible one, and those above the code gain.
    Four starts are computed at once: they have 15 bits.
    """
    base = nb.uint64(4 * context)
    if is_coded:
        wanted, found = (state & nb.uint64((1 << SCALE) - 1)) * _ONES | _TOPS, nb.uint64(0)
        for i in range(_4):
            found += ((wanted - contexts[base + i]) & _TOPS) >> _15
        code = nb.int64((found * _ONES) >> nb.uint64(48)) - 1
    own, following = nb.uint64(code), nb.uint64(code + 1)
    start = (contexts[base + (own >> nb.uint64(2))] >> (_16 * (own & _3))) & _LANE
    word = contexts[base + (min(following, _15) >> nb.uint64(2))]
    end = (word >> (_16 * (following & _3))) & _LANE if following < _16 else nb.uint64(1 << SCALE)
    state, at = _taken(is_coded, state, stream, at, start, end)
    for i in range(_4):
        known = contexts[base + i]
        contexts[base + i] = known - (((known - _FIRSTS[i]) >> nb.uint64(_RATE)) & _SHIFTED) + _GAINS[own, i]
    return code, state, at


@inner(forceinline=True)
def code_choice(
    is_coded: bool, state: int, stream: UInt32, at: int, choices: UInt64, context: int, code: int
) -> tuple[int, int, int]:
    """Code a choice of ``CHOICES``; like :func:`code_4_bits`."""
    known = choices[nb.uint64(context)]
    if is_coded:
        wanted = (state & nb.uint64((1 << SCALE) - 1)) * _ONES | _TOPS
        code = nb.int64(((((wanted - known) & _TOPS) >> _15) * _ONES) >> nb.uint64(48))
    own = nb.uint64(code)
    start = (known << _16 >> (_16 * own)) & _LANE if own < _4 else known >> nb.uint64(48)
    end = (known >> (_16 * own)) & _LANE if own < _4 else nb.uint64(1 << SCALE)
    state, at = _taken(is_coded, state, stream, at, start, end)
    lost = ((known - _FIRST_CHOICES) >> nb.uint64(_RATE)) & _SHIFTED
    choices[nb.uint64(context)] = known - lost + _CHOICE_GAINS[own]
    return code, state, at


@inner
def code_byte(
    is_coded: bool, state: int, stream: UInt32, at: int, contexts: UInt64, context: int, code: int
) -> tuple[int, int, int]:
    """Code a number of 8 bits, the upper half first; like :func:`code_4_bits`."""
    high, state, at = code_4_bits(is_coded, state, stream, at, contexts, context, code >> 4)
    low, state, at = code_4_bits(is_coded, state, stream, at, contexts, context + 1 + high, code & 15)
    return (high << 4) | low, state, at


@njit
def write_codes(codes: UInt32, out: UInt32) -> int:
    """Encode starts and frequencies, last one first; fill ``out`` from its end and return where it starts."""
    state = _LOW
    at = len(out)
    for i in range(len(codes) - 1, -1, -1):
        start, frequency = nb.uint64(codes[i] >> nb.uint32(16)), nb.uint64(codes[i] & nb.uint32(0xFFFF))
        if state >= frequency << nb.uint64(63 - SCALE):
            at -= 1
            out[at] = nb.uint32(state & nb.uint64(0xFFFFFFFF))
            state >>= nb.uint64(32)
        state = ((state // frequency) << nb.uint64(SCALE)) + state % frequency + start
    out[at - 1] = nb.uint32(state & nb.uint64(0xFFFFFFFF))
    out[at - 2] = nb.uint32(state >> nb.uint64(32))
    return at - 2
