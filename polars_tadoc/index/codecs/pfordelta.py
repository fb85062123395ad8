"""PForDelta: each list has one width that suffices for most of its values; the others are exceptions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from polars_tadoc.errors import InvalidIndexError
from polars_tadoc.index.codecs.codec import Codec, Parts
from polars_tadoc.index.codecs.numbers import MANY, Unsigned, pack_numbers, unpack_numbers
from polars_tadoc.kernels.postings.coded import BLOCK, PFORDELTA, Stream
from polars_tadoc.kernels.postings.packed_numbers import place_in_blocks
from polars_tadoc.runtime.array_types import Int64, UInt8


class PForDelta(Codec):
    """PForDelta after Ding et al. (WWW 2009, section 4.1): a posting's low bits can be read on their own.

    Ding et al. code the two arrays of exceptions recursively. Here this holds for files only. In memory, exceptions
    have one level of 5 bytes each: positions in their blocks (uint8) and high parts (uint32), indexed by block. So a
    kernel decodes a block, or one value of it, without decoding other arrays first.
    """

    name = "pfordelta"
    number = PFORDELTA
    high_parts = ("exceptions", "steps", "highs")

    def _pack_high(self, sizes: Int64, block_offsets: Int64, stream: Stream) -> Parts:
        places = exception_places(sizes, block_offsets, stream)
        steps = np.diff(places, prepend=-1) - 1
        return {
            "exceptions": np.array([len(places)], np.uint64),
            "steps": pack_numbers(steps.astype(np.uint64)),
            "highs": pack_numbers(stream.exception_highs - np.uint32(1)),
        }

    def _unpack_high(self, parts: Parts, name: str, sizes: Int64, block_offsets: Int64, stream: Stream) -> Stream:
        if parts["exceptions"].dtype != np.uint64 or parts["exceptions"].shape != (1,):
            raise InvalidIndexError(f"{name}: the number of exceptions is not one uint64")
        count, total = int(parts["exceptions"][0]), int(sizes.sum())
        if count > total:
            raise InvalidIndexError(f"{name}: {total} values have {count} exceptions")
        offsets, in_blocks = _in_blocks(unpack_numbers(parts["steps"], count), sizes, block_offsets, name)
        highs = unpack_numbers(parts["highs"], count)
        if count and int(highs.max()) >= (1 << 32) - 1:
            raise InvalidIndexError(f"{name}: the exception {int(highs.max())} has more than 32 bits")
        highs += np.uint64(1)
        return stream._replace(
            exception_offsets=offsets, exception_places=in_blocks, exception_highs=highs.astype(np.uint32)
        )


def _in_blocks(steps: Unsigned, sizes: Int64, block_offsets: Int64, name: str) -> tuple[Int64, UInt8]:
    """Return the first exception of each block, and their places in blocks."""
    total, count = int(sizes.sum()), len(steps)
    in_blocks = np.empty(count, np.uint8)
    if count >= MANY:
        _require_below(steps, total, name)
        blocks = np.full(int(block_offsets[-1]), BLOCK)
        blocks[block_offsets[1:] - 1] = (sizes - 1) % BLOCK + 1
        offsets = np.empty(len(blocks) + 1, np.int64)
        if not place_in_blocks(steps, blocks, offsets, in_blocks):
            raise InvalidIndexError(f"{name}: there are exceptions beyond the {total} values")
        return offsets, in_blocks
    places, starts = _places(steps, total, name), _block_starts(sizes, block_offsets)
    offsets = np.full(len(starts) + 1, count)
    offsets[:-1] = np.searchsorted(places, starts)
    in_blocks[:] = places - np.repeat(starts, np.diff(offsets))
    return offsets, in_blocks


def exception_places(sizes: Int64, block_offsets: Int64, stream: Stream) -> Int64:
    """Return the positions of exceptions among the postings of all lists, ascending."""
    starts = _block_starts(sizes, block_offsets)
    places: Int64 = np.repeat(starts, np.diff(stream.exception_offsets)) + stream.exception_places
    return places


def _block_starts(sizes: Int64, block_offsets: Int64) -> Int64:
    """Return the number of postings before each block, over all lists."""
    before = np.cumsum(sizes) - sizes - BLOCK * block_offsets[:-1]
    starts = np.arange(0, BLOCK * int(block_offsets[-1]), BLOCK)
    starts += np.repeat(before, np.diff(block_offsets))
    return starts


def _places(steps: npt.NDArray[np.unsignedinteger], total: int, name: str) -> Int64:
    """Return the positions of exceptions among all postings; ascending, below ``total``."""
    _require_below(steps, total, name)
    places = steps.astype(np.int64)
    places += 1
    np.cumsum(places, out=places)
    places -= 1
    if len(places) and not (places[-1] < total and (places[1:] > places[:-1]).all()):
        raise InvalidIndexError(f"{name}: there are exceptions beyond the {total} values")
    return places


def _require_below(steps: Unsigned, total: int, name: str) -> None:
    if len(steps) and int(steps.max()) >= total:
        raise InvalidIndexError(f"{name}: an exception is {int(steps.max())} values after the previous one")
