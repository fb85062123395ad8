"""Computes the decompressed size of an Arrow IPC file from its messages, before any is decompressed.

Each buffer of a compressed batch begins with its decompressed length (Apache Arrow, *Columnar Format*, and its
``File.fbs`` and ``Message.fbs``): readers allocate exactly that. The file's footer gives the positions of the batches;
readers and this module use them. Only the necessary part of FlatBuffers is parsed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

MAGIC = b"ARROW1"

DICTIONARY_BATCH, RECORD_BATCH = 2, 3
"""Message types that have buffers."""


def decompressed_bytes(data: bytes) -> int:
    """Return the sum of the decompressed lengths of a file's buffers.

    Raises
    ------
    pyarrow.ArrowInvalid
        It is not an Arrow file, or damaged.

    """
    end = len(data) - len(MAGIC) - 4
    if end < len(MAGIC) or not data.endswith(MAGIC):
        raise pa.ArrowInvalid("not an Arrow file")
    try:
        (size,) = struct.unpack_from("<i", data, end)
        if not 0 < size <= end:
            raise pa.ArrowInvalid("the footer is damaged")
        footer = _Table.root(memoryview(data)[end - size : end])
        return sum(_message_bytes(data, *block) for field in (2, 3) for block in footer.structures(field, "<qi4xq"))
    except (struct.error, IndexError, EOFError) as error:
        raise pa.ArrowInvalid(f"a message is damaged: {error}") from None


def stream_bytes(data: bytes) -> int:
    """Return the sum of the decompressed lengths of a stream's buffers; errors as for :func:`decompressed_bytes`."""
    try:
        reader = pa.ipc.MessageReader.open_stream(pa.py_buffer(data))
        return sum(sum(_buffers(memoryview(message.metadata), message.body)) for message in reader)
    except (struct.error, IndexError, EOFError) as error:
        raise pa.ArrowInvalid(f"a message is damaged: {error}") from None


def _message_bytes(data: bytes, at: int, metadata_bytes: int, body_bytes: int) -> int:
    if not 0 <= at <= at + metadata_bytes + body_bytes <= len(data):
        raise IndexError("outside the file")
    message = pa.ipc.read_message(pa.BufferReader(pa.py_buffer(data)[at : at + metadata_bytes + body_bytes]))
    return sum(_buffers(memoryview(message.metadata), message.body))


def _buffers(metadata: memoryview, body: pa.Buffer | None) -> Iterator[int]:
    """Yield the decompressed lengths of a message's buffers."""
    message = _Table.root(metadata)
    kind = message.number(1, "<B")
    if kind not in (DICTIONARY_BATCH, RECORD_BATCH) or body is None:
        return
    batch = message.table(2)
    batch = batch.table(1) if kind == DICTIONARY_BATCH else batch
    is_compressed = batch.has(3)
    content = memoryview(body)
    for offset, length in batch.structures(2, "<qq"):
        if min(offset, length) < 0:
            raise IndexError("a buffer is outside its message")
        if not is_compressed or length < 8:
            yield length
        else:
            (size,) = struct.unpack_from("<q", content, offset)
            yield length if size == -1 else max(size, 0)


class _Table:
    """A FlatBuffers table; raises ``struct.error`` if it exceeds its bytes."""

    def __init__(self, data: memoryview, at: int) -> None:
        self._data, self._at = data, at
        (back,) = struct.unpack_from("<i", data, at)
        self._fields = at - back
        if self._fields < 0:
            raise IndexError("a table's fields are outside its bytes")
        (self._size,) = struct.unpack_from("<H", data, self._fields)

    @classmethod
    def root(cls, data: memoryview) -> _Table:
        return cls(data, struct.unpack_from("<I", data, 0)[0])

    def has(self, field: int) -> bool:
        return self._place(field) != self._at

    def number(self, field: int, form: str) -> int:
        return int(struct.unpack_from(form, self._data, self._place(field))[0]) if self.has(field) else 0

    def table(self, field: int) -> _Table:
        if not self.has(field):
            raise IndexError("a table is missing")
        place = self._place(field)
        return _Table(self._data, place + self.number(field, "<I"))

    def structures(self, field: int, form: str) -> Iterator[tuple[Any, ...]]:
        """Yield the structs of a vector."""
        if not self.has(field):
            return
        at = self._place(field) + self.number(field, "<I")
        (count,) = struct.unpack_from("<I", self._data, at)
        for place in range(count):
            yield struct.unpack_from(form, self._data, at + 4 + struct.calcsize(form) * place)

    def _place(self, field: int) -> int:
        within = 4 + 2 * field
        return self._at + (struct.unpack_from("<H", self._data, self._fields + within)[0] if within < self._size else 0)
