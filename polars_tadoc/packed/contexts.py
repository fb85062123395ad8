"""Packed rows whose symbols, and gaps that differ, are coded in the context of those before.

The fields are those of :mod:`polars_tadoc.packed.coded`, except:

- ``vocabulary``: the words of a shape are stored by column, if that is smaller and all are ASCII: the first characters
  of all, then the second ones. Numbers that ascend have nearly constant columns.
- ``rule_offsets``: three pairs of the header are the gaps visited, the bytes of rows' gaps, and a bit for each shape, 1
  if it is stored by column. There are no frequencies of symbols.
- ``symbols``, ``roots``: the streams of :mod:`polars_tadoc.kernels.host.grammars.coded_contexts`.
- ``gaps``: with flag 4, one value for all rows: the stream of
  :mod:`polars_tadoc.kernels.host.grammars.coded_row_gaps`, 32-bit numbers, little-endian.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.errors import InvalidGrammarError
from polars_tadoc.kernels.host.grammars import coded_contexts as kernels
from polars_tadoc.kernels.host.grammars import coded_row_gaps
from polars_tadoc.kernels.host.grammars.adaptive_codes import write_codes
from polars_tadoc.kernels.host.grammars.coded_row_gaps import code_row_gaps
from polars_tadoc.kernels.host.grammars.coded_streams import STATES, write_places
from polars_tadoc.kernels.host.grammars.coded_symbols import OK, SHAPES, renumber
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32

FROM_BYTES = 14
"""Bytes of words for each event from which contexts are used: decoding an event takes up to 0.1 microseconds."""

LEAST_SAVING = 0.88
"""Share of the bytes of the other form below which contexts are used: they take twice the time to decode."""

_MASK_BITS = (8, 14)
"""Least and most bits of places in each table of guesses: more would not fit the caches."""

_PAIR_BITS = (8, 18)
"""Least and most bits of places in the table of gaps between two words: each pair that shares one costs bits."""

_CODES = 9
"""Maximum codes of an event: four guesses, a type, a value of two codes, and a class."""


_SIZE_LEVEL = 5
"""Brotli level of the trial that chooses the order of a shape's characters."""

_MAX_VISITS = 4
"""Maximum gaps that are visited for each symbol and row: beyond, as with long rules, gaps are stored as they are."""

FREE_STEPS, MAX_STEPS = 1 << 26, 64
"""Places of rows that are read for their gaps, or this many for each symbol and row if that is more: where rows repeat
long rules with a gap that differs, these are the rows' words, billions in a file of some KB. Their gaps are stored."""

SAVES = 0.9
"""Share of the bytes of stored gaps that coded ones may take."""

_PLAIN_LEVEL = 9
"""zstd level of the trial that measures stored gaps."""


def _bits(count: int) -> int:
    low, high = _MASK_BITS
    return min(max(count.bit_length() - 1, low), high)


def _pair_bits(count: int) -> int:
    low, high = _PAIR_BITS
    return min(max(count.bit_length(), low), high)


def encode(
    count: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    root_offsets: Int64,
    roots: UInt32,
    shapes: UInt8,
    order_of: UInt32,
    uses: UInt32,
    steps: Int64,
) -> tuple[UInt32, UInt32] | None:
    """Code the bodies and rows; None if a list of symbols would be too long.

    Parameters
    ----------
    count
        Number of words.
    rule_offsets, symbols, root_offsets, roots
        The bodies and the rows.
    shapes
        Each word's shape.
    order_of, uses
        Each symbol's number by first use, and its uses after the first.
    steps
        As :func:`polars_tadoc.kernels.host.grammars.coded_contexts.code_symbols` takes it.

    """
    rules, events = len(rule_offsets) - 1, len(symbols) + len(roots) + len(root_offsets) - 1
    by_use = np.empty(len(order_of), np.uint32)
    by_use[order_of] = np.arange(len(order_of), dtype=np.uint32)
    rule_starts, bodies = np.empty(rules + 1, np.uint32), np.empty(len(symbols), np.uint32)
    renumber(by_use[count:] - np.uint32(count), order_of, rule_offsets, symbols, rule_starts, bodies)
    sizes = np.bincount(shapes, minlength=SHAPES)
    codes = np.empty(_CODES * events + 2 * rules, np.uint32)
    places = np.empty(2 * (events + 4 * rules), np.uint32)
    wrong, coded, placed = kernels.code_symbols(
        *(False, count, (1 << _bits(events)) - 1, shapes[by_use[:count]], _starts(sizes), uses[by_use], codes, places),
        *(rule_starts, bodies, np.zeros(rules, np.uint32), root_offsets.copy(), order_of[roots], steps),
    )
    return None if wrong != OK else (_written(codes[:coded]), _places_written(places[:placed]))


def are_smaller(streams: tuple[UInt32, UInt32], planned: Any) -> bool:
    """Tell whether streams are so much smaller than those of the other form that slower decoding is worth it."""
    if planned is None:
        return True
    _, tables, others = planned
    used = int((tables > 0).sum())  # about the bytes that tables take in a file
    return sum(map(len, streams)) < LEAST_SAVING * (sum(map(len, others)) + used / 4)


def decode(words: int, shape_sizes: UInt32, streams: tuple[UInt32, UInt32], events: int, arrays: Any) -> int:
    """Fill what :func:`polars_tadoc.kernels.host.grammars.coded_symbols.read` fills, with the same result."""
    rule_starts, size, spelled, heights, root_offsets, steps = arrays
    shapes, mask = np.repeat(np.arange(SHAPES, dtype=np.uint8), shape_sizes), (1 << _bits(events)) - 1
    nothing = np.zeros(0, np.uint32)
    kinds, places = (stream.copy() for stream in streams)  # a kernel that may write takes them
    filled = rule_starts, spelled[:size], heights, root_offsets, spelled[size:], steps
    given = True, words, mask, shapes, _starts(shape_sizes), nothing, kinds, places, *filled
    return int(kernels.code_symbols(*given)[0])


def turn(joined: pl.Series, shape_sizes: UInt32, lines: tuple[int, ...]) -> tuple[pl.Series, int]:
    """Store shapes by column where that is smaller; return the strings, and a bit for each shape."""
    made, turned = joined.to_list(), 0
    for shape, (text, size) in enumerate(zip(made, shape_sizes.tolist(), strict=True)):
        if shape in lines or size < 2 or not text.isascii():
            continue
        data = text.encode()
        columns = np.frombuffer(data, np.uint8).reshape(size, -1).T.tobytes()
        if _size(columns) < _size(data):
            made[shape] = columns.decode()
            turned |= 1 << shape
    return pl.Series(joined.name, made, pl.String), turned


def _size(data: bytes) -> int:
    return len(pa.Codec("brotli", _SIZE_LEVEL).compress(data, asbytes=True))


def encode_gaps(
    count: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    predicted: UInt32,
    root_offsets: Int64,
    roots: UInt32,
    shapes: UInt8,
    gaps: pl.Series,
    valid: pl.Series,
) -> tuple[pl.Series, int, int] | None:
    """Code the gaps of rows; return the field, the gaps visited and their bytes, None if they can't be coded."""
    if not (gaps.is_null() ^ valid).all():
        return None
    strings: Any = gaps.fill_null(b"").rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    offsets = np.frombuffer(strings.buffers()[1], np.int64, len(strings) + 1, 8 * strings.offset)
    held = strings.buffers()[2]
    data = np.frombuffer(held, np.uint8)[offsets[0] : offsets[-1]] if held else np.zeros(0, np.uint8)
    offsets, data = offsets - offsets[0], data.copy()  # a kernel that may write takes them
    bits = _pair_bits(len(roots) + len(root_offsets))
    given = count, bits, shapes, rule_offsets, symbols, predicted, root_offsets, roots
    steps = _most_steps(*given)
    loud = np.zeros(len(symbols), np.bool_)
    if code_row_gaps(coded_row_gaps.MARK, *given, 0, steps, loud, np.zeros(0, np.uint32), offsets, data)[0] != OK:
        return None
    room = _MAX_VISITS * (len(symbols) + len(roots) + len(root_offsets)) + coded_row_gaps.CODES
    codes = np.empty(len(symbols) + 2 * room, np.uint32)
    wrong, coded, visits = code_row_gaps(coded_row_gaps.ENCODE, *given, room, steps, loud, codes, offsets, data)
    if wrong != OK:
        return None
    stream = _written(codes[:coded])
    if stream.nbytes > SAVES * _plain_size(offsets, data):
        return None
    again, back = np.empty(len(offsets), np.int64), np.empty(len(data), np.uint8)
    wrong = code_row_gaps(coded_row_gaps.DECODE, *given, visits, steps, loud, stream, again, back)[0]
    if wrong != OK or not np.array_equal(again, offsets) or not np.array_equal(back, data):
        return None  # not as the tokenizer writes them
    return pl.Series("gaps", [stream.astype("<u4").tobytes()], pl.Binary), visits, len(data)


def _plain_size(offsets: Int64, data: UInt8) -> int:
    """Return the bytes of the gaps of rows in Parquet's plain encoding, compressed."""
    sizes = np.diff(offsets)
    plain = np.empty(4 * len(sizes) + len(data), np.uint8)
    plain[np.arange(len(data)) + 4 * np.repeat(np.arange(1, len(sizes) + 1), sizes)] = data
    starts = offsets[:-1] + 4 * np.arange(len(sizes))
    for byte in range(4):
        plain[starts + byte] = sizes >> (8 * byte) & 0xFF
    return len(pa.Codec("zstd", _PLAIN_LEVEL).compress(plain, asbytes=True))


def decode_gaps(
    count: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    predicted: UInt32,
    root_offsets: Int64,
    roots: UInt32,
    shapes: UInt8,
    visits: int,
    size: int,
    coded: pl.Series,
    valid: pl.Series,
) -> pl.Series:
    """Decode the gaps of rows.

    Raises
    ------
    InvalidGrammarError
        The stream does not match the rows, or is damaged.

    """
    if len(coded) != 1 or coded[0] is None or len(coded[0]) % 4:
        raise InvalidGrammarError("grammar: the gaps of rows are not one stream")
    codes = np.frombuffer(coded[0], "<u4").astype(np.uint32)
    loud, offsets = np.empty(len(symbols), np.bool_), np.empty(len(root_offsets), np.int64)
    data = np.empty(size, np.uint8)
    bits = _pair_bits(len(roots) + len(root_offsets))
    given = count, bits, shapes, rule_offsets, symbols, predicted, root_offsets, roots
    if code_row_gaps(coded_row_gaps.DECODE, *given, visits, _most_steps(*given), loud, codes, offsets, data)[0] != OK:
        raise InvalidGrammarError("grammar: the stream of gaps does not match the rows")
    bits_of_valid = None if valid.all() else pa.py_buffer(np.packbits(valid.to_numpy(), bitorder="little"))
    buffers = [bits_of_valid, *(pa.py_buffer(part) for part in (offsets, data))]
    array = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(valid), buffers)
    return cast(pl.Series, pl.from_arrow(array)).alias("gaps")


def _most_steps(*given: Any) -> int:
    *_, symbols, _, root_offsets, roots = given
    return max(FREE_STEPS, MAX_STEPS * (len(symbols) + len(roots) + len(root_offsets)))


def _starts(sizes: Any) -> UInt32:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint32)


def _written(codes: UInt32) -> UInt32:
    stream = np.empty(len(codes) + 2, np.uint32)
    return stream[write_codes(codes, stream) :]


def _places_written(places: UInt32) -> UInt32:
    stream = np.empty(len(places) + 2 * STATES, np.uint32)
    return stream[write_places(places.view("<u8"), stream) :]
