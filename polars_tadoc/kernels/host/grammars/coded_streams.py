"""Streams of rANS for files (J. Duda, "Asymmetric numeral systems", arXiv:1311.2540), of 32-bit numbers.

A stream starts with its states, of 64 bits each. Codes use them in turn, so that a processor works on several at once
(F. Giesen, "Interleaved entropy coders", arXiv:1402.3392). Decoders require that all states end as encoders start them.

Places in lists, whose probabilities are equal, are bits: zstd finds repetitions in them, which rANS would hide.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.runtime.addresses import bit_length
from polars_tadoc.runtime.array_types import UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner

STATES = 4

SCALE = 12
"""Frequencies of a table add up to ``1 << SCALE``."""

LOW = np.uint64(1 << 31)
"""The state that encoders start from, and below which decoders read on."""

EXPLICIT = np.uint32(1 << 31)
"""Flag of a code that is its start, 13 bits, and its frequency, 13 bits; others are places in tables."""

STATE_SHIFT = 27
"""The two bits of a code that number its state."""

_POLL = (1 << 12) - 1
"""Between looks for an interrupt, this number of codes, less 1, a power of two less 1."""

_MASK = np.uint64((1 << SCALE) - 1)
ONE = np.uint64(1)

ROOM = 1 << 13
"""Numbers after a stream of bits: events between two looks at the place in the stream take at most half of them."""


@inner
def explicit(start: int, frequency: int) -> int:
    """Return a code whose start and frequency no table has."""
    code: int = EXPLICIT | (nb.uint32(start) << nb.uint32(13)) | nb.uint32(frequency)
    return code


@njit
def write_codes(codes: UInt32, starts: UInt32, frequencies: UInt32, out: UInt32) -> int:
    """Encode codes, the last one first; fill ``out`` from its end and return where it starts."""
    states = np.full(STATES, LOW, np.uint64)
    at = len(out)
    for i in range(len(codes) - 1, -1, -1):
        code = codes[i]
        number = (code >> nb.uint32(STATE_SHIFT)) & nb.uint32(3)
        if code & EXPLICIT:
            start, frequency = (
                nb.uint64((code >> nb.uint32(13)) & nb.uint32(0x1FFF)),
                nb.uint64(code & nb.uint32(0x1FFF)),
            )
        else:
            place = code & nb.uint32((1 << STATE_SHIFT) - 1)
            start, frequency = nb.uint64(starts[place]), nb.uint64(frequencies[place])
        state = states[number]
        if state >= frequency << nb.uint64(63 - SCALE):
            at -= 1
            out[at] = nb.uint32(state & nb.uint64(0xFFFFFFFF))
            state >>= nb.uint64(32)
        states[number] = ((state // frequency) << nb.uint64(SCALE)) + state % frequency + start
    start_at: int = store_states(states, out, at)
    return start_at


@inner
def store_states(states: UInt64, out: UInt32, at: int) -> int:
    """Write states in front of a stream; return the place of the first."""
    for i in range(len(states) - 1, -1, -1):
        out[at - 1] = nb.uint32(states[i] & nb.uint64(0xFFFFFFFF))
        out[at - 2] = nb.uint32(states[i] >> nb.uint64(32))
        at -= 2
    return at


@inner
def load_states(stream: UInt32, states: UInt64) -> bool:
    """Read the states that a stream starts with; False if it is too short."""
    if len(stream) < 2 * len(states):
        return False
    for i in range(len(states)):
        states[i] = (nb.uint64(stream[2 * i]) << nb.uint64(32)) | nb.uint64(stream[2 * i + 1])
    return True


@inner
def are_spent(states: UInt64, stream: UInt32, at: int) -> bool:
    """Tell whether a stream and all its states are at their end."""
    spent = at == len(stream)
    for i in range(len(states)):
        spent = spent and states[i] == LOW
    return spent


@njit
def write_places(places: UInt64, out: UInt32) -> int:
    """Write places in lists, each above 32 bits for the list's length, as bits, the lowest first.

    A list of ``n`` symbols has the first places in ``k`` bits, the rest in one more, where ``2 ** k <= n``. Returns how
    much of ``out`` is filled.
    """
    at, held, window = 0, nb.uint64(0), nb.uint64(0)
    for i in range(len(places)):
        place, length = places[i] >> nb.uint64(32), places[i] & nb.uint64(0xFFFFFFFF)
        bits = nb.uint64(bit_length(length)) - ONE
        beyond = length - (ONE << bits)  # places from 2 ** k on
        least = (ONE << bits) - beyond
        value = place
        if place >= least:
            value = place if place < ONE << bits else (place - beyond) | (ONE << bits)
            bits += ONE
        window |= value << held
        held += bits
        if held >= nb.uint64(32):
            out[at] = nb.uint32(window & nb.uint64(0xFFFFFFFF))
            at += 1
            window >>= nb.uint64(32)
            held -= nb.uint64(32)
    if held > 0:
        out[at] = nb.uint32(window)
        at += 1
    return at


@njit
def with_room(stream: UInt32) -> UInt32:
    """Copy a stream of bits, with zeros after it, so that reading may overshoot by ``ROOM`` numbers less 2."""
    made = np.zeros(len(stream) + ROOM, np.uint32)
    made[: len(stream)] = stream
    return made


@inner(forceinline=True)
def place_in(stream: UInt32, at: int, length: int) -> tuple[int, int]:
    """Read a place in a list that is not empty, from a bit on; return it, below the length, and the bit after it.

    Without a branch: ``length`` is unsigned, and below ``2 ** 31``.
    """
    number = at >> nb.uint64(5)
    window = nb.uint64(stream[number]) | nb.uint64(stream[number + ONE]) << nb.uint64(32)
    window >>= at & nb.uint64(31)
    bits = nb.uint64(bit_length(length)) - ONE
    place = window & ((ONE << bits) - ONE)
    is_longer = (place + length) >> (bits + ONE)
    is_beyond = (window >> bits) & is_longer
    return place + ((length - (ONE << bits)) & (nb.uint64(0) - is_beyond)), at + bits + is_longer


@inner
def ends_at(stream: UInt32, at: int) -> bool:
    """Tell whether a stream with room ends with the number before a bit, and has zeros from there on."""
    size = nb.uint64(len(stream) - ROOM)
    if (at + nb.uint64(31)) >> nb.uint64(5) != size:
        return False
    rest = at & nb.uint64(31)
    return bool(rest == 0 or nb.uint64(stream[size - ONE]) >> rest == 0)


@njit
def look_up(frequencies: UInt32, starts: UInt32, entries: UInt32) -> bool:
    """Fill where each code starts and, by slot of each table, frequency less 1, slot in the code and the code itself.

    Tables have 256 codes. The slots of a table without frequencies have a code that no table has. False if frequencies
    do not add up to all slots or to none.
    """
    for table in range(len(frequencies) // 256):
        total = nb.int64(0)
        for code in range(256):
            frequency = nb.int64(frequencies[table * 256 + code])
            starts[table * 256 + code] = total
            if total + frequency > 1 << SCALE:
                return False
            for slot in range(frequency):
                entries[(table << SCALE) + total + slot] = ((frequency - 1) << 20) | (slot << 8) | code
            total += frequency
        if total != 0 and total != 1 << SCALE:
            return False
        if total == 0:
            for slot in range(1 << SCALE):
                entries[(table << SCALE) + slot] = 255
    return True


@inner(forceinline=True)
def refill(x: int, stream: UInt32, at: int) -> tuple[int, int]:
    """Take the next number of a stream if the state is low; return the state and the place in the stream.

    Without a branch, which could not be foreseen: beyond the end it takes the last number again.
    """
    number = nb.uint64(stream[min(nb.uint64(at), nb.uint64(len(stream) - 1))])
    is_low = x < LOW
    return (x << nb.uint64(32)) | number if is_low else x, at + nb.int64(is_low)


@inner(forceinline=True)
def code_of(x: int, stream: UInt32, at: int, entries: UInt32, table: int) -> tuple[int, int, int]:
    """Decode one code of a table; return it, the new state and place in the stream."""
    entry = nb.uint64(entries[nb.uint64(table << SCALE) + (x & _MASK)])
    frequency = (entry >> nb.uint64(20)) + nb.uint64(1)
    x = frequency * (x >> nb.uint64(SCALE)) + ((entry >> nb.uint64(8)) & _MASK)
    x, at = refill(x, stream, at)
    return nb.int64(entry & nb.uint64(0xFF)), x, at


@njit
def read_codes(stream: UInt32, at: int, states: UInt64, entries: UInt32, table: int, codes: UInt8) -> int:
    """Fill codes of one table, from the first state on; return the place in the stream, -1 if interrupted."""
    began = interrupts()
    x_0, x_1, x_2, x_3 = states[0], states[1], states[2], states[3]
    count = nb.uint64(len(codes))
    i = nb.uint64(0)
    while i + nb.uint64(3) < count:
        if i & nb.uint64(_POLL) == 0 and interrupts() != began:
            return -1
        codes[i], x_0, at = code_of(x_0, stream, at, entries, table)
        codes[i + nb.uint64(1)], x_1, at = code_of(x_1, stream, at, entries, table)
        codes[i + nb.uint64(2)], x_2, at = code_of(x_2, stream, at, entries, table)
        codes[i + nb.uint64(3)], x_3, at = code_of(x_3, stream, at, entries, table)
        i += nb.uint64(4)
    states[0], states[1], states[2], states[3] = x_0, x_1, x_2, x_3
    while i < count:
        codes[i], states[i & nb.uint64(3)], at = code_of(states[i & nb.uint64(3)], stream, at, entries, table)
        i += nb.uint64(1)
    return at
