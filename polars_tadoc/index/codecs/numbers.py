"""Packs numbers of similar size to bytes of a file.

The low bits of all numbers are stored together, at one width. The few numbers that need more bits (exceptions) are
described by two further arrays: the distances between them and their high bits. Both are coded in the same way until
there are no exceptions (Ding et al., WWW 2009, section 4.1). Distances take fewer bits than places within blocks would,
and need no block sizes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from polars_tadoc.errors import InvalidIndexError
from polars_tadoc.kernels.postings import packed_numbers as kernels
from polars_tadoc.runtime.array_types import UInt8, UInt64
from polars_tadoc.runtime.interrupts import check

Unsigned = npt.NDArray[np.unsignedinteger[Any]]

_HEADER = struct.Struct("<BQ")
"""Width; number of exceptions."""

_SPARE = bytes(8)
"""Padding: numbers are read eight bytes at a time."""

_BLOCK = 1 << 15
"""Numbers unpacked at a time, a multiple of 8; they fit in a processor's caches."""

MANY = 1 << 16
"""Minimum numbers that a kernel reads: the first kernel of a process takes 60 MB."""

_DEEPEST = 4
"""Maximum nesting of arrays of exceptions; the last one has none."""


def pack_numbers(numbers: npt.NDArray[np.unsignedinteger]) -> UInt8:
    """Pack numbers.

    Parameters
    ----------
    numbers
        Unsigned integers below 2^56.

    Returns
    -------
    uint8 array
        Input of :func:`unpack_numbers`.

    """
    return np.frombuffer(b"".join([*_pieces(numbers.astype(np.uint64), 0), _SPARE]), np.uint8)


class Numbers(Protocol):
    """A sequence of numbers on disk, which is read in order several times."""

    def append(self, values: UInt64) -> None:
        """Append numbers."""

    def chunks(self) -> Iterator[npt.NDArray[np.unsignedinteger]]:
        """Yield all numbers; each chunk but the last has a multiple of 8."""

    def delete(self) -> None:
        """Delete the numbers."""


def pack_streamed(numbers: Numbers, new_array: Callable[[], Numbers], write: Callable[[bytes], object]) -> None:
    """Write the same bytes as :func:`pack_numbers`, for numbers that need not fit in memory.

    Parameters
    ----------
    numbers
        Unsigned integers below 2^56.
    new_array
        Makes a sequence for further uint64 numbers.
    write
        Called with each piece of the bytes.

    """
    _write_pieces(numbers, new_array, write, 0)
    write(_SPARE)


def unpack_numbers(data: UInt8, size: int) -> Unsigned:
    """Unpack numbers.

    Parameters
    ----------
    data
        uint8: result of :func:`pack_numbers`.
    size
        How many numbers they contain.

    Returns
    -------
    uint32 or uint64 array
        The numbers, length ``size``; uint32 if all fit.

    Raises
    ------
    InvalidIndexError
        The bytes do not contain this many numbers.

    """
    if data.dtype != np.uint8 or data.ndim != 1:
        raise InvalidIndexError(f"packed numbers are {data.dtype} of {data.ndim} dimensions, not one row of bytes")
    numbers, at = _read(np.ascontiguousarray(data), 0, size, 0)
    if at + len(_SPARE) != len(data):
        raise InvalidIndexError(f"{size} packed numbers end at byte {at} of {len(data) - len(_SPARE)}")
    return numbers


def _pieces(numbers: UInt64, depth: int) -> list[bytes]:
    if not len(numbers):
        return []
    check()
    lengths = np.zeros(65, np.int64)
    kernels.count_lengths(numbers, lengths)
    width = _width(lengths) if depth < _DEEPEST else max(1, int(np.flatnonzero(lengths)[-1]))
    low = np.zeros((width * len(numbers) + 7) // 8, np.uint8)
    exceptions = int(lengths[width + 1 :].sum())
    steps, highs = np.empty(exceptions, np.uint64), np.empty(exceptions, np.uint64)
    kernels.split(numbers, np.uint64(width), low, steps, highs)
    own = [_HEADER.pack(width, exceptions), low.tobytes()]
    return [*own, *_pieces(steps, depth + 1), *_pieces(highs, depth + 1)]


def _write_pieces(
    numbers: Numbers, new_array: Callable[[], Numbers], write: Callable[[bytes], object], depth: int
) -> None:
    lengths = np.zeros(65, np.int64)
    for chunk in numbers.chunks():
        kernels.count_lengths(chunk.astype(np.uint64), lengths)
    if not lengths.any():
        return
    width = _width(lengths) if depth < _DEEPEST else max(1, int(np.flatnonzero(lengths)[-1]))
    write(_HEADER.pack(width, int(lengths[width + 1 :].sum())))
    steps, highs = new_array(), new_array()
    since = 0  # numbers after the last exception
    for chunk in numbers.chunks():
        exceptions = int(np.count_nonzero(chunk > np.uint64((1 << width) - 1)))
        low = np.zeros((width * len(chunk) + 7) // 8, np.uint8)
        own_steps, own_highs = np.empty(exceptions, np.uint64), np.empty(exceptions, np.uint64)
        kernels.split(chunk.astype(np.uint64), np.uint64(width), low, own_steps, own_highs)
        write(low.tobytes())
        passed = int(own_steps.sum()) + exceptions
        if exceptions:
            own_steps[0] += np.uint64(since)
            since = 0
        since += len(chunk) - passed
        steps.append(own_steps)
        highs.append(own_highs)
    for more in (steps, highs):
        _write_pieces(more, new_array, write, depth + 1)
        more.delete()


def _width(lengths: npt.NDArray[np.int64]) -> int:
    """Choose the width with the fewest bits in total; ``lengths[w]`` numbers have w significant bits.

    It is at least 1, so that a few bytes cannot claim unlimited memory.
    """
    longest = max(1, int(np.flatnonzero(lengths)[-1]))
    longer = [int(lengths[width + 1 :].sum()) for width in range(longest + 1)]  # numbers with bits above the width
    costs, widths = [0.0] * (longest + 1), [0] * (longest + 1)  # cost of the bits above a width; best next width
    longer[0] = int(lengths.sum())
    for low in reversed(range(longest)):
        costs[low], widths[low] = min(
            (longer[low] * (width - low) + _step_bits(longer[low], longer[width]) + costs[width], width)
            for width in range(low + 1, longest + 1)
        )
    return widths[0]


def _step_bits(total: int, exceptions: int) -> float:
    """Estimate the bits that give the positions of exceptions."""
    if not exceptions:
        return 0
    share = exceptions / total
    entropy = -np.log2(share) - (np.log2(1 - share) * (1 - share) / share if share < 1 else 0)
    return float(exceptions * (entropy + 0.5) + 16 * _HEADER.size)  # observed: half a bit more than the entropy


def _read(data: UInt8, at: int, size: int, depth: int) -> tuple[Unsigned, int]:
    if size == 0:
        return np.empty(0, np.uint32), at
    if at + _HEADER.size > len(data):
        raise InvalidIndexError("packed numbers end within their header")
    width, exceptions = _HEADER.unpack(data[at : at + _HEADER.size].tobytes())
    start = at + _HEADER.size
    at = start + (width * size + 7) // 8
    if not 1 <= width <= kernels.MAX_BITS or exceptions > size or (exceptions and depth == _DEEPEST):
        raise InvalidIndexError(f"{size} packed numbers of {width} bits have {exceptions} exceptions")
    if at + len(_SPARE) > len(data):
        raise InvalidIndexError(f"{size} packed numbers of {width} bits need {at} bytes, of {len(data)}")
    steps, at = _read(data, at, exceptions, depth + 1)
    highs, at = _read(data, at, exceptions, depth + 1)
    longest = width + (int(highs.max()) + 1).bit_length() if exceptions else width
    numbers = _read_low(data, start, width, size, np.uint32 if longest <= 32 else np.uint64)
    _add_highs(numbers, width, steps, highs)
    return numbers, at


def _read_low(data: UInt8, start: int, width: int, size: int, kind: Any) -> Unsigned:
    """Unpack numbers of ``width`` bits from a byte on; reads up to eight bytes beyond the last one.

    Every eighth number starts at the same bit of a byte, ``width`` bytes after the one before, so eight strided views
    read all.
    """
    numbers, mask = np.empty(size, kind), kind((1 << width) - 1)
    if size >= MANY:
        kernels.unpack(data, start, width, numbers)
        return numbers
    for block in range(0, size, _BLOCK):
        own = numbers[block : block + _BLOCK]
        at = start + width * (block // 8)
        for first in range(min(8, len(own))):
            byte, bit = divmod(first * width, 8)
            column = own[first::8]
            words: UInt64 = np.ndarray(column.shape, np.dtype("<u8"), data.data, at + byte, (width,))
            np.right_shift(words, np.uint64(bit), out=column)
        own &= mask
    return numbers


def _add_highs(numbers: Unsigned, width: int, steps: Unsigned, highs: Unsigned) -> None:
    """Add the bits above the lowest ``width``; overwrites ``steps``, a copy of which would be part of the peak."""
    if not len(steps):
        return
    if len(numbers) >= MANY:
        if not kernels.add_highs(numbers, width, steps, highs):
            raise InvalidIndexError("packed numbers have exceptions beyond their end")
        return
    if len(numbers) > 1 << 32:
        steps = steps.astype(np.uint64)
    # no sum wraps: each step is below the size, and then all positions are
    if int(steps.max()) >= len(numbers) or int(steps.sum(dtype=np.uint64)) + len(steps) > len(numbers):
        raise InvalidIndexError("packed numbers have exceptions beyond their end")
    steps += np.uint8(1)
    places = np.cumsum(steps, out=steps)
    places -= np.uint8(1)
    for block in range(0, len(places), _BLOCK):
        own: Unsigned = highs[block : block + _BLOCK].astype(numbers.dtype)
        own += np.uint8(1)
        own <<= np.uint8(width)
        numbers[places[block : block + _BLOCK]] |= own
