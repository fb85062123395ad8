"""One grammar as one string: what a category of the ``grammar`` field holds.

``TADOC`` · version digit · decoded bytes (16 hex digits) · BLAKE2b-128 of the frame (32 hex digits) ·
base64 of the frame. The frame is one Arrow IPC stream, zstd-compressed. Length and digest are checked
before anything is decompressed or parsed.
"""

from __future__ import annotations

import binascii
import hashlib
import re

import pyarrow as pa

from polars_tadoc.config import settings
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError
from polars_tadoc.grammar import ARROW_TYPE, Grammar

MAGIC = "TADOC"
FORMAT = "1"
HEADER_LENGTH = len(MAGIC) + 1 + 16 + 32
_ZSTD = pa.Codec("zstd", compression_level=3)


def encode(grammar: Grammar) -> str:
    """Serialise a grammar; equal grammars give equal payloads."""
    struct = grammar.to_arrow()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema(list(ARROW_TYPE))) as stream:
        stream.write_batch(pa.RecordBatch.from_struct_array(struct))
    decoded = sink.getvalue()
    frame = _ZSTD.compress(decoded)
    return f"{MAGIC}{FORMAT}{decoded.size:016x}{_digest(frame)}" + binascii.b2a_base64(frame, newline=False).decode()


def key(payload: str) -> str:
    """Return the content digest with format and length: what caches are keyed by."""
    return payload[:HEADER_LENGTH]


def decode(payload: str) -> Grammar:
    """Read a payload and check all of it.

    Raises
    ------
    InvalidGrammarError
        The payload is not one of ours, of another format, truncated, altered, or holds a malformed grammar.
    LimitExceededError
        It declares more than ``Config(payload_limit_bytes=)`` or a rule beyond ``Config(expansion_limit=)``.

    """
    name = f"grammar {payload[22:34]}…" if len(payload) > HEADER_LENGTH else "grammar"
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
        if decoded.size != size:
            raise InvalidGrammarError(f"{name}: {decoded.size:,} bytes where {size:,} were declared")
        with pa.ipc.open_stream(decoded) as stream:
            batch = stream.read_next_batch()
        struct = batch.to_struct_array()
    except (pa.ArrowException, OSError, StopIteration) as error:
        raise InvalidGrammarError(f"{name}: the payload cannot be read: {error}") from error
    try:
        return Grammar.from_arrow(struct)
    except (InvalidGrammarError, LimitExceededError) as error:
        raise type(error)(str(error).replace("grammar", name, 1)) from error


def _digest(frame: bytes | pa.Buffer) -> str:
    return hashlib.blake2b(frame, digest_size=16).hexdigest()
