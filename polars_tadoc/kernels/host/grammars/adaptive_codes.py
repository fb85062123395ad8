"""Codes numbers by probabilities that adapt, in a stream of rANS; one function encodes and decodes.

A state of 64 bits, and numbers of 32, as in :mod:`polars_tadoc.kernels.host.grammars.coded_streams`. Codes are of 4
bits, whose cumulative frequencies move towards what occurred (F. Giesen, "Interleaved entropy coders",
arXiv:1402.3392, and his notes on adaptive models).
"""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.grammars.coded_streams import refill
from polars_tadoc.runtime.array_types import UInt16, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.jit import inner, kernel

SCALE = 15
"""Frequencies of the codes in a context add up to ``1 << SCALE``."""

BYTE = 17
"""Contexts of a number of 8 bits: one for its upper half, and one for each value of it."""

_RATE = 5
_ONES = np.uint64(0x0001_0001_0001_0001)
_TOPS = np.uint64(0x8000_8000_8000_8000)
_LANE = np.uint64(0xFFFF)
_SHIFTED = np.uint64(0x07FF_07FF_07FF_07FF)
_FIRST_FOUR = np.uint64(0x0003_0002_0001_0000)
_GREATEST = np.uint64(0x7FF0_7FF0_7FF0_7FF0)
_LOW = np.uint64(1 << 31)


@njit
def new_contexts(count: int) -> UInt64:
    """Return contexts in which all codes are as likely: where each code starts, four to a number, lowest first."""
    made = np.zeros(4 * count, np.uint64)
    for i in range(16 * count):
        start = nb.uint64(i & 15) << nb.uint64(SCALE - 4)
        made[i >> 2] |= start << nb.uint64(16 * (i & 3))
    return made


@kernel(forceinline=True)
def code_4_bits(
    is_coded: bool, state: int, stream: UInt32, at: int, contexts: UInt64, context: int, code: int
) -> tuple[int, int, int]:
    """Decode a code, or append its start and frequency to ``stream``; return it, the new state and place in the stream.

    Adapts the context: starts up to the code's move towards their least possible value, others to their greatest, by
    ``1 / 32`` of the distance. Four starts are computed at once: they have 15 bits, and differences are not negative.
    """
    base = nb.uint64(4 * context)
    slot = nb.int64(state & nb.uint64((1 << SCALE) - 1))
    if is_coded:
        wanted, found = nb.uint64(slot) * _ONES | _TOPS, nb.uint64(0)
        for i in range(nb.uint64(4)):
            found += ((wanted - contexts[base + i]) & _TOPS) >> nb.uint64(15)
        code = nb.int64((found * _ONES) >> nb.uint64(48)) - 1
    own, following = nb.uint64(code), nb.uint64(code + 1)
    start = nb.int64((contexts[base + own // nb.uint64(4)] >> (nb.uint64(16) * (own & nb.uint64(3)))) & _LANE)
    end = 1 << SCALE
    if code < 15:
        word = contexts[base + following // nb.uint64(4)]
        end = nb.int64((word >> (nb.uint64(16) * (following & nb.uint64(3)))) & _LANE)
    if is_coded:
        state = nb.uint64(end - start) * (state >> nb.uint64(SCALE)) + nb.uint64(slot - start)
        state, at = refill(state, stream, at)
    else:
        stream[at] = (start << 16) | (end - start)
        at += 1
    least, left = _FIRST_FOUR, code + 1
    for i in range(nb.uint64(4)):
        known = contexts[base + i]
        shift = min(max(left, 0), 4)
        beyond = ~nb.uint64(0) << nb.uint64(16 * shift) if shift < 4 else nb.uint64(0)
        down = ((known - least + nb.uint64(31) * _ONES) >> nb.uint64(_RATE)) & _SHIFTED
        up = ((least + _GREATEST - known) >> nb.uint64(_RATE)) & _SHIFTED
        contexts[base + i] = known - (down & ~beyond) + (up & beyond)
        least += nb.uint64(4) * _ONES
        left -= 4
    return code, state, at


@inner
def code_byte(
    is_coded: bool, state: int, stream: UInt32, at: int, contexts: UInt64, context: int, code: int
) -> tuple[int, int, int]:
    """Code a number of 8 bits, the upper half first; like :func:`code_4_bits`."""
    high, state, at = code_4_bits(is_coded, state, stream, at, contexts, context, code >> 4)
    low, state, at = code_4_bits(is_coded, state, stream, at, contexts, context + 1 + high, code & 15)
    return (high << 4) | low, state, at


@inner(forceinline=True)
def code_hit(
    is_coded: bool, state: int, stream: UInt32, at: int, chances: UInt16, place: int, hit: bool
) -> tuple[bool, int, int]:
    """Code whether a guess is right, and adapt its probability; like :func:`code_4_bits`."""
    chance = nb.uint64(chances[place])
    slot = state & nb.uint64((1 << SCALE) - 1)
    if is_coded:
        hit = slot < chance
    start = nb.uint64(0) if hit else chance
    frequency = chance if hit else nb.uint64(1 << SCALE) - chance
    if is_coded:
        state = frequency * (state >> nb.uint64(SCALE)) + slot - start
        state, at = refill(state, stream, at)
    else:
        stream[at] = (start << nb.uint64(16)) | frequency
        at += 1
    if hit:
        chances[place] = chance + ((nb.uint64(1 << SCALE) - chance) >> nb.uint64(_RATE))
    else:
        chances[place] = chance - (chance >> nb.uint64(_RATE))
    return hit, state, at


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
