"""One grammar as one string: what a category of the ``grammar`` field holds.

``TADOC`` · version digit · decoded bytes (16 hex digits) · BLAKE2b-128 of the frame (32 hex digits) ·
base64 of the frame. The frame is one Arrow IPC stream, zstd-compressed. Length and digest are checked
before anything is decompressed or parsed.
"""

from __future__ import annotations

import binascii
import hashlib
import re
import struct

import pyarrow as pa

from polars_tadoc.config import settings
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError
from polars_tadoc.grammar import ARROW_TYPE, Grammar

MAGIC = "TADOC"
FORMAT = "2"
HEADER_LENGTH = len(MAGIC) + 1 + 16 + 32
_ZSTD = pa.Codec("zstd", compression_level=3)
_SCHEMA = pa.schema(list(ARROW_TYPE))

MOST_SLACK = 1 << 13
"""Bytes that a stream may hold beyond its arrays: metadata and padding."""


def encode(grammar: Grammar) -> str:
    """Serialise a grammar; equal grammars give equal payloads."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, _SCHEMA) as stream:
        stream.write_batch(pa.RecordBatch.from_struct_array(grammar.to_arrow()))
    decoded = sink.getvalue()
    frame = _ZSTD.compress(decoded)
    return f"{MAGIC}{FORMAT}{decoded.size:016x}{_digest(frame)}" + binascii.b2a_base64(frame, newline=False).decode()


def key(payload: str) -> str:
    """Return what caches are keyed by: format, content digest and length."""
    encoded = payload.encode()
    return key_of(encoded[:HEADER_LENGTH], len(encoded))


def key_of(header: bytes, size: int) -> str:
    """Return the :func:`key` of a payload from its first ``HEADER_LENGTH`` bytes and its length in bytes."""
    return f"{header.decode(errors='replace')}:{size}"


def short_name(payload: str) -> str:
    """Name a grammar in messages by the start of its digest; takes a payload or a key."""
    return f"grammar {payload[22:34]}…"


def decode(payload: str) -> Grammar:
    """Read a payload and check all of it.

    Raises
    ------
    InvalidGrammarError
        The payload is not one of ours, of another format, truncated, altered, or holds a malformed grammar.
    LimitExceededError
        It declares more than ``Config(payload_limit_bytes=)`` or a rule beyond ``Config(expansion_limit=)``.

    """
    name = short_name(payload) if len(payload) > HEADER_LENGTH else "grammar"
    if not payload.startswith(MAGIC):
        raise InvalidGrammarError(f"{name}: the payload does not start with {MAGIC}: it was not made by this package")
    if payload[5:6] != FORMAT:
        raise InvalidGrammarError(f"{name}: payload format {payload[5:6]!r}, this release reads {FORMAT!r}")
    if not re.fullmatch("[0-9a-f]{48}", payload[6:HEADER_LENGTH]):
        raise InvalidGrammarError(f"{name}: the payload is damaged: its header is not hexadecimal")
    size = int(payload[6:22], 16)
    try:
        frame = binascii.a2b_base64(payload[HEADER_LENGTH:], strict_mode=True)
    except ValueError as error:  # binascii.Error is one
        raise InvalidGrammarError(f"{name}: the payload is damaged: {error}") from error
    if _digest(frame) != payload[22:HEADER_LENGTH]:
        raise InvalidGrammarError(f"{name}: the payload is damaged: its digest does not match")
    limit = settings().payload_limit_bytes
    if size > limit:
        raise LimitExceededError(
            f"{name}: it declares {size:,} bytes, the limit is {limit:,}; "
            "if the data is trusted, raise it: tadoc.Config(payload_limit_bytes=…)"
        )
    try:
        decoded = _ZSTD.decompress(frame, decompressed_size=size)
        batch = _read_batch(decoded)
    except (pa.ArrowException, OSError, EOFError, StopIteration, struct.error) as error:
        raise InvalidGrammarError(f"{name}: the payload cannot be read: {error}") from error
    try:
        return Grammar.from_arrow(batch.to_struct_array())
    except (InvalidGrammarError, LimitExceededError) as error:
        raise type(error)(str(error).replace("grammar", name, 1)) from error


def _read_batch(stream: pa.Buffer) -> pa.RecordBatch:
    """Read the one record batch of a stream; the stream may not hold or unfold into more than its bytes."""
    messages = pa.ipc.MessageReader.open_stream(pa.BufferReader(stream))
    first, second = messages.read_next_message(), messages.read_next_message()
    if first.type != "schema" or second.type != "record batch":
        raise pa.ArrowInvalid("it does not hold a schema and one record batch")
    if _has_compressed_body(second.metadata.to_pybytes()):
        raise pa.ArrowInvalid("it holds compressed buffers, which grammars do not")
    with pa.ipc.open_stream(stream) as reader:
        if reader.schema != _SCHEMA:
            raise pa.ArrowInvalid("its fields are not a grammar's")
        batch = reader.read_next_batch()
    batch.validate()
    if stream.size > batch.get_total_buffer_size() + MOST_SLACK:
        raise pa.ArrowInvalid("it holds bytes that belong to nothing")
    return batch


def _has_compressed_body(metadata: bytes) -> bool:
    """Tell whether a record batch message says that its buffers are compressed (Arrow's Message.fbs).

    Reading it would allocate whatever the buffers claim; pyarrow has no switch for that.
    """

    def field(table: int, number: int) -> int:
        """Place of a field of a FlatBuffers table, or 0 where it is absent."""
        vtable = table - struct.unpack_from("<i", metadata, table)[0]
        size = struct.unpack_from("<H", metadata, vtable)[0]
        offset = struct.unpack_from("<H", metadata, vtable + 4 + 2 * number)[0] if 4 + 2 * number < size else 0
        return table + int(offset) if offset else 0

    root = struct.unpack_from("<I", metadata)[0]
    header = field(root, 2)
    record_batch = header + struct.unpack_from("<I", metadata, header)[0]
    return field(record_batch, 3) != 0


def _digest(frame: bytes | pa.Buffer) -> str:
    return hashlib.blake2b(frame, digest_size=16).hexdigest()
