"""Writes postings list by list to the files of a saved index, in bounded memory.

The files are byte for byte those that :meth:`polars_tadoc.index.codecs.codec.Codec.pack` of all lists would give.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.index.codecs import Codec
from polars_tadoc.index.codecs.numbers import pack_streamed
from polars_tadoc.index.codecs.pfordelta import exception_places
from polars_tadoc.index.construct.disk_array import DiskArray
from polars_tadoc.index.store.folder import Writer
from polars_tadoc.kernels.postings import encode_cpu as coding
from polars_tadoc.kernels.postings.coded import BLOCK, RICE, Postings, Stream
from polars_tadoc.runtime.array_types import Int64, UInt32

LONG = 1 << 22
"""Longer lists are coded in parts of this many postings, a multiple of the block size."""


class PostingsWriter:
    """Codes lists and appends them to scratch files; :meth:`finish` assembles the final files.

    Parameters
    ----------
    codec
        Codec of the postings.
    scratch
        Folder for temporary files.

    """

    def __init__(self, codec: Codec, scratch: Path) -> None:
        self._codec, self._scratch = codec, scratch
        self._lists = 0
        self._frequencies, self._heads = self._array("frequencies", np.uint32), self._array("heads", np.uint32)
        high = _Unary if codec.number == RICE else _Exceptions
        self._streams = {name: _StreamWriter(scratch, name, high(scratch, name)) for name in ("gaps", "counts")}

    def _array(self, name: str, dtype: npt.DTypeLike) -> DiskArray:
        return DiskArray(self._scratch / name, dtype)

    def append(self, offsets: Int64, documents: UInt32, counts: npt.NDArray[Any]) -> None:
        """Code lists: int64 offsets, uint32 documents ascending in each, counts of at least 1.

        Raises
        ------
        LimitExceededError
            A count is 2^32 or more.

        """
        postings = self._codec.encode(offsets, documents, counts, 0)
        self._frequencies.append(postings.frequencies - np.uint32(1))
        self._append(postings, np.diff(offsets), list_ends=True)

    def append_long(self, documents: DiskArray, counts: DiskArray) -> None:
        """Code and append one list that is read twice, in parts, as its coding depends on all of it."""
        self._frequencies.append(np.array([len(documents) - 1], np.uint32))
        codec = self._codec.number
        widths = (
            coding.width_of(codec, (_gaps(part) for part in documents.chunks(LONG))),
            coding.width_of(codec, (part - np.uint32(1) for part in counts.chunks(LONG))),
        )
        for own_documents, own_counts in zip(documents.chunks(LONG), counts.chunks(LONG), strict=True):
            offsets = np.array([0, len(own_documents)], np.int64)
            postings = coding.encode(codec, 0, offsets, own_documents, own_counts, widths)
            self._append(postings, np.diff(offsets), list_ends=False)
        for stream, width in zip(self._streams.values(), widths, strict=True):
            stream.widths.append(np.array([width], np.uint8))

    def _append(self, postings: Postings, sizes: Int64, list_ends: bool) -> None:
        self._heads.append(postings.heads)
        for name, writer in self._streams.items():
            stream: Stream = getattr(postings, name)
            if list_ends:
                writer.widths.append(stream.widths)
            writer.append(sizes, postings.block_offsets, stream)

    def finish(self, writer: Writer, name: str) -> list[str]:
        """Write the arrays of a segment; return their names without the segment's prefix."""
        arrays = ["frequencies", "heads"]
        _write_packed(writer, f"{name}.frequencies", self._frequencies, self._scratch)
        _write_packed(writer, f"{name}.heads", self._heads, self._scratch)
        for part, stream in self._streams.items():
            arrays += [f"{part}.{own}" for own in stream.finish(writer, f"{name}.{part}")]
        return arrays


class _StreamWriter:
    """Accumulates one number per posting."""

    def __init__(self, scratch: Path, name: str, high: _Exceptions | _Unary) -> None:
        self._scratch, self._high = scratch, high
        self.widths, self._low = (
            DiskArray(scratch / f"{name}.widths", np.uint8),
            DiskArray(scratch / f"{name}.low", np.uint8),
        )

    def append(self, sizes: Int64, block_offsets: Int64, stream: Stream) -> None:
        """Append the numbers of lists with these sizes, except for their widths."""
        self._low.append(stream.low[: int(stream.low_offsets[-1])])
        self._high.append(sizes, block_offsets, stream)

    def finish(self, writer: Writer, name: str) -> list[str]:
        """Write the arrays; return their names without the prefix ``name``."""
        _write_packed(writer, f"{name}.widths", self.widths, self._scratch)
        _write_bits(writer, f"{name}.low", self._low)
        return ["widths", "low", *self._high.finish(writer, name)]


class _Exceptions:
    """High parts of PForDelta."""

    def __init__(self, scratch: Path, name: str) -> None:
        self._scratch = scratch
        self._steps = DiskArray(scratch / f"{name}.steps", np.uint64)
        self._highs = DiskArray(scratch / f"{name}.highs", np.uint32)
        self._postings, self._next = 0, 0

    def append(self, sizes: Int64, block_offsets: Int64, stream: Stream) -> None:
        places = exception_places(sizes, block_offsets, stream) + self._postings
        self._steps.append((np.diff(places, prepend=self._next - 1) - 1).astype(np.uint64))
        self._highs.append(stream.exception_highs - np.uint32(1))
        self._postings += int(sizes.sum())
        self._next = int(places[-1]) + 1 if len(places) else self._next

    def finish(self, writer: Writer, name: str) -> list[str]:
        writer.array(f"{name}.exceptions", np.array([len(self._highs)], np.uint64))
        _write_packed(writer, f"{name}.steps", self._steps, self._scratch)
        _write_packed(writer, f"{name}.highs", self._highs, self._scratch)
        return ["exceptions", "steps", "highs"]


class _Unary:
    """High parts of Rice: a bit stream that continues across ranges of lists."""

    def __init__(self, scratch: Path, name: str) -> None:
        self._bytes = DiskArray(scratch / f"{name}.unary", np.uint8)
        self._bits = self._last = 0
        """Number of used bits of an incomplete last byte, and that byte."""

    def append(self, sizes: Int64, block_offsets: Int64, stream: Stream) -> None:
        count = int(stream.unary_offsets[-1])
        own = stream.unary[: -(-count // 8)]
        filled = self._bits
        if filled:
            shifted = np.append(own << np.uint8(filled), np.uint8(0))
            shifted[1:] |= own >> np.uint8(8 - filled)
            shifted[0] |= np.uint8(self._last)
            own = shifted
        whole, self._bits = divmod(filled + count, 8)
        self._last = int(own[whole]) if self._bits else 0
        self._bytes.append(own[:whole])

    def finish(self, writer: Writer, name: str) -> list[str]:
        if self._bits:
            self._bytes.append(np.array([self._last], np.uint8))
        _write_bits(writer, f"{name}.unary", self._bytes)
        return ["unary"]


def _gaps(documents: UInt32) -> UInt32:
    """Return the coded gaps of the documents of a list, or of a part that starts with a block."""
    gaps = np.diff(documents, prepend=np.uint32(0)) - np.uint32(1)
    gaps[::BLOCK] = 0
    return gaps


def _write_packed(writer: Writer, name: str, numbers: DiskArray, scratch: Path) -> None:
    made = (DiskArray(scratch / f"{name}.{place}", np.uint64) for place in range(1 << 10))
    with writer.open_array(name, np.uint8) as file:
        pack_streamed(numbers, lambda: next(made), file.write)
    numbers.delete()


def _write_bits(writer: Writer, name: str, data: DiskArray) -> None:
    """Write bytes of bits, with the padding after them."""
    with writer.open_array(name, np.uint8) as file:
        for chunk in _with_padding(data):
            file.write(chunk.data)
    data.delete()


def _with_padding(data: DiskArray) -> Iterator[npt.NDArray[np.uint8]]:
    yield from data.chunks()
    yield np.zeros(coding.padded(len(data)) - len(data), np.uint8)
