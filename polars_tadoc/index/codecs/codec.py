"""The interface of a codec of postings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from polars_tadoc.errors import InvalidIndexError
from polars_tadoc.index.codecs.numbers import pack_numbers, unpack_numbers
from polars_tadoc.kernels.postings import decode_cpu as decoding
from polars_tadoc.kernels.postings import encode_cpu as coding
from polars_tadoc.kernels.postings.coded import BLOCK, Postings, Stream
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.free_memory import give_back_memory

Parts = dict[str, npt.NDArray[Any]]

_WIDEST = 32


class Codec(ABC):
    """Codes the gaps and counts of postings.

    A file has the bits of all lists as in memory, so that they can be mapped, and packed numbers for everything else.
    Arrays that follow from frequencies and widths are not stored.
    """

    name: ClassVar[str]
    number: ClassVar[int]
    """Value of :attr:`~polars_tadoc.kernels.postings.coded.Postings.codec`."""

    block_size: ClassVar[int] = BLOCK
    """Postings per block; a block is decoded at once."""

    def encode(self, offsets: Int64, documents: UInt32, counts: npt.NDArray[Any], document_count: int) -> Postings:
        """Encode lists: int64 offsets, uint32 documents ascending in each, uint32 or uint64 counts of at least 1.

        Raises
        ------
        LimitExceededError
            A count is 2^32 or more.

        """
        return coding.encode(self.number, document_count, offsets, documents, counts)

    def decode(self, postings: Postings, lists: UInt32) -> tuple[Int64, UInt32, UInt32]:
        """Decode whole lists: int64 offsets, uint32 documents, uint32 counts."""
        return decoding.decode_lists(postings, lists)

    def count(self, postings: Postings, number: int, place: int) -> int:
        """Return the count of the posting at ``place`` of list ``number`` without decoding a list.

        Raises
        ------
        IndexError
            The list or the place does not exist.

        """
        if not 0 <= number < len(postings.frequencies) or not 0 <= place < int(postings.frequencies[number]):
            raise IndexError(f"count: list {number} of {len(postings.frequencies)} has no posting {place}")
        return decoding.count_at(postings, number, place)

    def pack(self, postings: Postings) -> Parts:
        """Return the arrays of a file."""
        parts: Parts = {
            "frequencies": pack_numbers(postings.frequencies - np.uint32(1)),
            "heads": pack_numbers(postings.heads),
        }
        for name, stream in (("gaps", postings.gaps), ("counts", postings.counts)):
            parts[f"{name}.widths"] = pack_numbers(stream.widths)
            parts[f"{name}.low"] = stream.low
            own = self._pack_high(postings.frequencies.astype(np.int64), postings.block_offsets, stream)
            parts |= {f"{name}.{part}": array for part, array in own.items()}
        return parts

    def unpack(self, parts: Mapping[str, npt.NDArray[Any]], documents: int, lists: int) -> Postings:
        """Make postings from a file's arrays; the bits of lists are not copied.

        Parameters
        ----------
        parts
            Result of :meth:`pack`.
        documents
            Number of documents.
        lists
            Number of lists.

        Returns
        -------
        Postings
            No kernel accesses memory outside of their arrays, even if bits are damaged.

        Raises
        ------
        InvalidIndexError
            An array is missing, or arrays do not fit together.

        """
        frequencies = unpack_numbers(_part(parts, "frequencies"), lists)
        if lists and int(frequencies.max()) >= documents:
            raise InvalidIndexError(f"a list has {int(frequencies.max()) + 1} postings, of {documents} documents")
        sizes = frequencies.astype(np.int64) + 1
        block_offsets = running_sum(-(-sizes // BLOCK))
        heads = unpack_numbers(_part(parts, "heads"), int(block_offsets[-1]))
        _check_heads(heads, block_offsets, documents)
        gaps, counts = (self._unpack_stream(parts, name, sizes, block_offsets) for name in ("gaps", "counts"))
        return Postings(
            self.number, documents, sizes.astype(np.uint32), block_offsets, heads.astype(np.uint32), gaps, counts
        )

    def _unpack_stream(
        self, parts: Mapping[str, npt.NDArray[Any]], name: str, sizes: Int64, block_offsets: Int64
    ) -> Stream:
        give_back_memory(1 << 24)
        widths = unpack_numbers(_part(parts, f"{name}.widths"), len(sizes))
        if len(widths) and int(widths.max()) > _WIDEST:
            raise InvalidIndexError(f"{name}: {int(widths.max())} bits are more than {_WIDEST}")
        low_offsets = coding.low_offsets(sizes, widths)
        low = _part(parts, f"{name}.low")
        check_bits(low, f"{name}.low", 8 * int(low_offsets[-1]))
        own = {part: _part(parts, f"{name}.{part}") for part in self.high_parts}
        bits = Stream(widths.astype(np.uint8), low, low_offsets, *coding.no_high_parts())
        return self._unpack_high(own, name, sizes, block_offsets, bits)

    high_parts: ClassVar[tuple[str, ...]]
    """Names of the arrays of the high parts."""

    @abstractmethod
    def _pack_high(self, sizes: Int64, block_offsets: Int64, stream: Stream) -> Parts:
        """Return the arrays ``high_parts``."""

    @abstractmethod
    def _unpack_high(self, parts: Parts, name: str, sizes: Int64, block_offsets: Int64, stream: Stream) -> Stream:
        """Return the stream with the high parts from the arrays ``high_parts``."""


def _part(parts: Mapping[str, npt.NDArray[Any]], name: str) -> npt.NDArray[Any]:
    if name not in parts:
        raise InvalidIndexError(f"the array {name} is missing; the file has {', '.join(sorted(parts))}")
    return parts[name]


def check_bits(data: npt.NDArray[Any], name: str, bits: int) -> None:
    """Raise InvalidIndexError unless an array has exactly the padded bytes of ``bits`` bits."""
    wanted = coding.padded(-(-bits // 8))
    if data.dtype != np.uint8 or data.shape != (wanted,) or not data.flags.c_contiguous:
        raise InvalidIndexError(f"{name} is {data.dtype} of shape {data.shape}; expected uint8 of shape ({wanted},)")


def _check_heads(heads: npt.NDArray[np.unsignedinteger], block_offsets: Int64, documents: int) -> None:
    if len(heads) and int(heads.max()) >= documents:
        raise InvalidIndexError(f"a block begins with document {int(heads.max())}, of {documents}")
    ascends = heads[1:] > heads[:-1]
    ascends[block_offsets[1:-1] - 1] = True  # at the start of the next list
    if not ascends.all():
        raise InvalidIndexError(f"block {int(np.flatnonzero(~ascends)[0]) + 1} begins before the one before it")
