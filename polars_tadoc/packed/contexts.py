"""Packed rows whose symbols, and gaps that differ, are coded in the context of those before.

The fields are those of :mod:`polars_tadoc.packed.coded`, except:

- ``vocabulary``: the words of a shape are stored by column, if that is smaller and all are ASCII: the first characters
  of all, then the second ones. Numbers that ascend have nearly constant columns.
- ``rule_offsets``: two pairs of the header are the bytes of rows' gaps, and a bit for each shape, 1 if it is stored by
  column. There are no frequencies of symbols.
- ``symbols``, ``roots``: the streams of :mod:`polars_tadoc.kernels.host.grammars.coded_contexts`.
- ``gaps``: with flag 4, the stream of :mod:`polars_tadoc.kernels.host.grammars.coded_row_gaps`, 32-bit numbers,
  little-endian, and behind it the rows' strings, each once.
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
from polars_tadoc.kernels.host.grammars.coded_row_gaps import code_row_gaps, copy_strings, spread
from polars_tadoc.kernels.host.grammars.coded_rules import renumber
from polars_tadoc.kernels.host.grammars.coded_streams import write_places
from polars_tadoc.kernels.host.grammars.coded_symbols import OK, SHAPES
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32
from polars_tadoc.runtime.arrow_memory import allocate

FROM_BYTES = 14
"""Bytes of words for each event from which contexts are used: decoding an event takes up to 0.1 microseconds."""

LEAST_SAVING = 0.88
"""Share of the bytes of the other form below which contexts are used: they take twice the time to decode."""

_MASK_BITS = (8, 14)
"""Least and most bits of places in each table of guesses: more would not fit the caches."""

_CODES = 5
"""Maximum codes of an event: a choice, a type, a value of two codes, and a class."""

_SIZE_LEVEL = 5
"""Brotli level of the trial that chooses the order of a shape's characters."""

SAVES = 0.9
"""Share of the bytes of stored gaps that coded ones may take."""

_PLAIN_LEVEL = 9
"""zstd level of the trial that measures stored gaps."""


def _bits(count: int) -> int:
    low, high = _MASK_BITS
    return min(max(count.bit_length() - 1, low), high)


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
        *(count, (1 << _bits(events)) - 1, shapes[by_use[:count]], _starts(sizes), uses[by_use], codes, places),
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
    kinds, places = (stream.copy() for stream in streams)  # a kernel that may write takes them
    filled = rule_starts, spelled[:size], heights, root_offsets, spelled[size:], steps
    given = words, mask, shapes, _starts(shape_sizes), None, kinds, places, *filled
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
    root_offsets: Int64,
    roots: UInt32,
    gaps: pl.Series,
    valid: pl.Series,
) -> tuple[pl.Series, int] | None:
    """Code the gaps of rows; return the field and their bytes, None if that is not smaller."""
    if not (gaps.is_null() ^ valid).all():
        return None
    filled = gaps.fill_null(b"")
    strings = filled.unique(maintain_order=True)
    rows = pl.DataFrame({"gaps": filled}).with_row_index("row")
    firsts = pl.DataFrame({"gaps": strings}).with_row_index("number")
    numbers = rows.join(firsts, on="gaps", maintain_order="left")["number"].to_numpy().astype(np.uint32)
    codes = np.empty(coded_row_gaps.CODES * len(numbers), np.uint32)
    given = count, _bits(len(numbers)), rule_offsets, symbols, root_offsets, roots, len(strings)
    wrong, coded = code_row_gaps(False, *given, codes, numbers)
    if wrong != OK or len(strings) >= coded_row_gaps.MAX_STRINGS:
        return None
    stream = _written(codes[:coded])
    field = pl.concat([pl.Series("gaps", [stream.astype("<u4").tobytes()], pl.Binary), strings.alias("gaps")])
    if _plain_size(field) > SAVES * _plain_size(filled):
        return None
    return field, int(filled.bin.size().sum())


def _plain_size(strings: pl.Series) -> int:
    """Return the bytes of strings in Parquet's plain encoding, compressed."""
    parts = [part for one in strings.to_list() for part in (len(one).to_bytes(4, "little"), one)]
    return len(pa.Codec("zstd", _PLAIN_LEVEL).compress(b"".join(parts), asbytes=True))


def decode_gaps(
    count: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    root_offsets: Int64,
    roots: UInt32,
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
    wrong = InvalidGrammarError("grammar: the stream of gaps does not match the rows")
    if len(coded) == 0 or coded.null_count() or len(coded[0]) % 4:
        raise InvalidGrammarError("grammar: the gaps of rows are not one stream")
    codes, numbers = np.frombuffer(coded[0], "<u4").astype(np.uint32), np.empty(len(valid), np.uint32)
    given = count, _bits(len(valid)), rule_offsets, symbols, root_offsets, roots, len(coded) - 1
    if code_row_gaps(True, *given, codes, numbers)[0] != OK:
        raise wrong
    strings: Any = coded.slice(1).rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    starts = np.frombuffer(strings.buffers()[1], np.int64, len(strings) + 1, 8 * strings.offset)
    ends, offsets = allocate(len(valid) + 1, np.int64)
    spread(numbers, starts, offsets)
    if offsets[-1] != size:
        raise wrong
    data, _ = allocate(size, np.uint8)
    if size:
        addresses = np.uint64(strings.buffers()[2].address), np.uint64(data.address)
        copy_strings(numbers, starts, addresses[0], offsets, addresses[1])
    bits_of_valid = None
    if not valid.all():
        bits_of_valid, bits = allocate(-(-len(valid) // 8), np.uint8)
        bits[:] = np.packbits(valid.to_numpy(), bitorder="little")
    array = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(valid), [bits_of_valid, ends, data])
    return cast(pl.Series, pl.from_arrow(array)).alias("gaps")  # calls no threads of Polars


def _starts(sizes: Any) -> UInt32:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint32)


def _written(codes: UInt32) -> UInt32:
    stream = np.empty(len(codes) + 2, np.uint32)
    return stream[write_codes(codes, stream) :]


def _places_written(places: UInt32) -> UInt32:
    stream = np.empty(len(places) // 2 + 1, np.uint32)
    return stream[: write_places(places.view("<u8"), stream)]
