"""A payload: one grammar as one string, a category of the ``grammar`` field.

``TADOC`` · version digit · decoded bytes (16 hex digits) · BLAKE2b-128 of the frame (32 hex digits) · base64 of the
frame. The frame is a sequence of zstd frames, one per section or per ``PIECE`` bytes of a longer section, so that they
are compressed in parallel. Length and digest are checked before anything is decompressed or parsed.

The decompressed frame is eight counts (uint64, little-endian), then the sections: arrays arranged so that general
compression finds repetitions. Words and gaps are front-coded, because they ascend within one frequency; 32-bit numbers
are stored as four planes of bytes; the rules' first symbols are stored as differences; the predicted gaps of bodies are
stored as 0 where the next symbol predicts the same gap.
"""

from __future__ import annotations

import binascii
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from polars_tadoc.config import settings
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError
from polars_tadoc.kernels.host.grammars import payload as kernels
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.array_types import UInt8, UInt32
from polars_tadoc.runtime.arrow_memory import ARROW_ERRORS, allocate, not_of_the_file
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

MAGIC = "TADOC"
FORMAT = "2"
HEADER_LENGTH = len(MAGIC) + 1 + 16 + 32
_ZSTD = pa.Codec("zstd", compression_level=6)  # level 9 takes 1.5 times as long and saves under 1 %; level 3 loses 2 %


@dataclass(frozen=True)
class _Counts:
    """Counts of a grammar's parts, at the start of the frame."""

    words: int
    word_bytes: int
    """Bytes of front-coded words that are not shared with the previous word."""
    gaps: int
    gap_bytes: int
    tokenizer_bytes: int
    levels: int
    rules: int
    symbols: int

    @property
    def section_sizes(self) -> dict[str, int]:
        """Bytes of each section, in order."""
        others = self.symbols - self.rules
        return {
            "tokenizer": self.tokenizer_bytes,
            "shared_words": self.words,  # bytes shared with the previous word
            "word_lengths": 4 * self.words,
            "word_bytes": self.word_bytes,
            "shared_gaps": self.gaps,
            "gap_lengths": 4 * self.gaps,
            "gap_bytes": self.gap_bytes,
            "levels": 4 * self.levels,  # number of rules by level
            "rules": 4 * self.rules,  # number of symbols by rule
            "first_symbols": 4 * self.rules,
            "other_symbols": 4 * others,
            "word_gaps": 4 * self.words,
            "body_gaps": 4 * others,  # not before first symbols
        }


_COUNTS_BYTES = 8 * len(fields(_Counts))


PIECE = 1 << 19
"""Bytes of a section per zstd frame: smaller pieces cost space, larger ones time on many cores."""


def encode(grammar: Grammar) -> str:
    """Serialise a grammar; equal grammars give equal payloads."""
    arranged = pack(grammar)
    pieces = [section[at : at + PIECE] for section in arranged for at in range(0, len(section), PIECE)]
    frame = b"".join(map_parallel(lambda piece: _ZSTD.compress(piece, asbytes=True), pieces))
    digest, text = map_parallel(lambda make: make(frame), [_digest, _base64])
    return f"{MAGIC}{FORMAT}{sum(map(len, arranged)):016x}{digest}{text}"


def pack(grammar: Grammar) -> list[UInt8]:
    """Arrange a grammar's arrays in the frame's order before zstd: counts, then sections."""
    words, gaps, rule_offsets, symbols = grammar.words, grammar.gaps, grammar.rule_offsets, grammar.symbols
    word_gaps, body_gaps = np.split(grammar.predicted_gaps, [len(words)])
    expected = np.empty(len(words) + len(rule_offsets) - 1, np.uint32)
    kernels.expect_gaps(word_gaps, rule_offsets, symbols, expected)
    first = symbols[rule_offsets[:-1]]
    others, surprises = (np.empty(4 * (len(symbols) - len(first)), np.uint8) for _ in range(2))

    def bodies(first: int, stop: int) -> None:
        kernels.split_bodies(first, stop, rule_offsets, symbols, body_gaps, expected, others, surprises)

    def steps() -> UInt8:
        differences = np.diff(first, prepend=np.uint32(0)).view(np.int32)
        return _planes(((differences << 1) ^ (differences >> 31)).view(np.uint32))

    words.data, gaps.data, words.offsets, gaps.offsets  # noqa: B018 - made here, not on several threads at once
    makers: list[Callable[[], object]] = [
        lambda: _front_code(words),
        lambda: _front_code(gaps),
        lambda: _planes(np.diff(words.offsets)),
        lambda: _planes(np.diff(gaps.offsets)),
        lambda: _planes(np.diff(grammar.level_offsets)),
        lambda: _planes(np.diff(rule_offsets)),
        steps,
        lambda: _planes(word_gaps),
    ]
    makers += [partial(bodies, *rules) for rules in weighted_chunks(rule_offsets.astype(np.int64))]
    made: list[Any] = map_parallel(lambda make: make(), makers)
    (shared_words, word_bytes), (shared_gaps, gap_bytes), word_lengths, gap_lengths, *numbers = made[:8]
    levels, rules, rule_steps, own_gaps = numbers
    name = np.frombuffer(grammar.tokenizer.encode(), np.uint8)
    counts = [len(words), len(word_bytes), len(gaps), len(gap_bytes), len(name)]
    counts += [grammar.level_count, grammar.rule_count, len(symbols)]
    strings = [shared_words, word_lengths, word_bytes, shared_gaps, gap_lengths, gap_bytes]
    numbers = [levels, rules, rule_steps, others, own_gaps, surprises]
    return [np.array(counts, "<u8").view(np.uint8), name, *strings, *numbers]


def _front_code(strings: Vocabulary) -> tuple[UInt8, UInt8]:
    shared = np.empty(len(strings), np.uint8)
    rest = np.empty(int(strings.offsets[-1]), np.uint8)
    size = kernels.front_code(strings.offsets, strings.data, shared, rest)
    return shared, rest[:size]


def _planes(numbers: npt.NDArray[np.integer]) -> UInt8:
    """Return the lowest bytes of all numbers, then the next ones: four planes."""
    planes = np.empty(4 * len(numbers), np.uint8)
    kernels.split_planes(np.ascontiguousarray(numbers, np.uint32), planes)
    return planes


def _base64(frame: bytes) -> str:
    return binascii.b2a_base64(frame, newline=False).decode()


def key(payload: str) -> str:
    """Return a payload's cache key: format, content digest and length."""
    encoded = payload.encode()
    return key_of(encoded[:HEADER_LENGTH], len(encoded))


def key_of(header: bytes, size: int) -> str:
    """Return the :func:`key` of a payload from its first ``HEADER_LENGTH`` bytes and its length in bytes."""
    return f"{header.decode(errors='replace')}:{size}"


def short_name(payload: str) -> str:
    """Name a grammar in messages by the start of its digest; takes a payload or a key."""
    return f"grammar {payload[22:34]}…"


def decode(payload: str) -> Grammar:
    """Decode a payload and check all of it.

    Raises
    ------
    InvalidGrammarError
        The payload has a wrong header or format, is truncated or altered, or its grammar is malformed.
    LimitExceededError
        It declares more than ``Config(payload_limit_bytes=)``, or a rule exceeds ``Config(expansion_limit=)``.

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
    except ValueError as error:  # includes binascii.Error
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
        stream = _ZSTD.decompress(frame, decompressed_size=size)
        return unpack(np.frombuffer(stream, np.uint8), limit)
    except ARROW_ERRORS as error:
        if not_of_the_file(error):
            raise
        raise InvalidGrammarError(f"{name}: the payload cannot be read: {error}") from error
    except (InvalidGrammarError, LimitExceededError) as error:
        raise type(error)(str(error).replace("grammar", name, 1)) from error


def sections(stream: UInt8) -> dict[str, UInt8]:
    """Cut a frame's decompressed bytes into its sections, by name.

    Raises
    ------
    InvalidGrammarError
        The counts at the start do not match the bytes.

    """
    if len(stream) < _COUNTS_BYTES:
        raise InvalidGrammarError("grammar: the payload is shorter than its counts")
    sizes = _Counts(*(int(count) for count in stream[:_COUNTS_BYTES].view("<u8"))).section_sizes
    if min(sizes.values()) < 0 or _COUNTS_BYTES + sum(sizes.values()) != len(stream):
        raise InvalidGrammarError("grammar: the payload's counts do not match its bytes")
    ends = accumulate(sizes.values(), initial=_COUNTS_BYTES)
    return {name: stream[start:stop] for name, (start, stop) in zip(sizes, pairwise(ends), strict=True)}


def unpack(stream: UInt8, limit: int) -> Grammar:
    """Decode the arrays arranged by :func:`pack` and check all of them; words may have at most ``limit`` bytes.

    Raises
    ------
    InvalidGrammarError
        Counts and bytes do not match, or the grammar is malformed.
    LimitExceededError
        Words or gaps have more bytes, or a rule expands to more words, than the limits allow.

    """
    parts = sections(stream)
    word_gaps, body_gaps, rule_lengths = (_numbers(parts[name]) for name in ("word_gaps", "body_gaps", "rules"))
    rules, size = len(rule_lengths), len(word_gaps) + len(rule_lengths) + len(body_gaps)
    if rule_lengths.sum(dtype=np.uint64) != rules + len(body_gaps) or rule_lengths.min(initial=1) == 0:
        raise InvalidGrammarError("grammar: the rules' lengths do not match their symbols")
    rule_offsets = _offsets(rule_lengths)
    symbols = np.empty(rules + len(body_gaps), np.uint32)
    kernels.join_bodies(rule_offsets, _numbers(parts["first_symbols"]), _numbers(parts["other_symbols"]), symbols)
    predicted_gaps = np.zeros(size, np.uint32)
    predicted_gaps[: len(word_gaps)] = word_gaps
    expected = np.empty(len(word_gaps) + rules, np.uint32)
    kernels.expect_gaps(word_gaps, rule_offsets, symbols, expected)
    kernels.join_gaps(rule_offsets, symbols, body_gaps, expected, predicted_gaps[len(word_gaps) :])
    try:
        tokenizer = parts["tokenizer"].tobytes().decode()
    except UnicodeDecodeError as error:
        raise InvalidGrammarError("grammar: the tokenizer's name is not UTF-8") from error
    grammar = Grammar(
        vocabulary=_unfold(parts["shared_words"], _numbers(parts["word_lengths"]), parts["word_bytes"], limit),
        rule_offsets=rule_offsets,
        symbols=symbols,
        level_offsets=_offsets(_numbers(parts["levels"])),
        gap_vocabulary=_unfold(parts["shared_gaps"], _numbers(parts["gap_lengths"]), parts["gap_bytes"], limit),
        predicted_gaps=predicted_gaps,
        tokenizer=tokenizer,
    )
    grammar.check()
    return grammar


def _numbers(planes: UInt8) -> UInt32:
    numbers = np.empty(len(planes) // 4, np.uint32)
    kernels.join_planes(planes, numbers)
    return numbers


def _offsets(lengths: UInt32) -> UInt32:
    offsets = np.zeros(len(lengths) + 1, np.uint32)
    np.cumsum(
        lengths, dtype=np.uint32, out=offsets[1:]
    )  # a sum beyond 32 bits wraps to descending offsets, which the checks refuse
    return offsets


def _unfold(shared: UInt8, lengths: UInt32, rest: UInt8, limit: int) -> pa.LargeStringArray:
    """Undo front coding."""
    size = int(lengths.sum(dtype=np.uint64))
    if size > limit:
        raise LimitExceededError(
            f"grammar: its words decode to {size:,} bytes, the limit is {limit:,}; "
            "if the data is trusted, raise it: tadoc.Config(payload_limit_bytes=…)"
        )
    offset_buffer, offsets = allocate(len(lengths) + 1, np.int64)
    offsets[0] = 0
    np.cumsum(lengths, dtype=np.int64, out=offsets[1:])
    data_buffer, data = allocate(size, np.uint8)
    if not kernels.unfold(shared, offsets, rest, data):
        raise InvalidGrammarError("grammar: a front-coded word shares more bytes than the previous word has")
    strings = pa.LargeStringArray.from_buffers(len(lengths), offset_buffer, data_buffer)
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InvalidGrammarError(f"grammar: {error}") from error
    return strings


def _digest(frame: bytes | pa.Buffer) -> str:
    return hashlib.blake2b(frame, digest_size=16).hexdigest()
