"""A payload: one grammar as one string, a category of the ``grammar`` field.

``TADOC`` · version digit · decoded bytes (16 hex digits) · BLAKE2b-128 of the frame (32 hex digits) · base64 of the
frame. The frame is a sequence of zstd frames, one per section or per piece of a longer section, so that they
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
from _thread import allocate_lock
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import accumulate, pairwise, takewhile
from typing import NamedTuple

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
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks

MAGIC = "TADOC"
FORMAT = "2"
HEADER_LENGTH = len(MAGIC) + 1 + 16 + 32


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


class Coding(NamedTuple):
    """How sections are compressed."""

    codec: pa.Codec
    piece: int
    """Bytes per zstd frame: smaller pieces cost space, larger ones time on many cores."""


STRINGS = Coding(pa.Codec("zstd", compression_level=6), 1 << 16)
"""Words at level 3 take a third of the time, and 3 to 6 % more bytes."""

NUMBERS = Coding(pa.Codec("zstd", compression_level=1), 1 << 18)
"""Planes have few long repetitions: level 6 takes four to five times as long and saves 1 to 2 %.

Of 118 MB of logs, versions, PEPs and books the payload has 2.19 MB, with everything at level 6 and in pieces of 64 KiB
2.17 MB; compressing it takes 16 and 38 ms, its longest piece 0.8 ms.
"""

BLOCK = 1 << 12
"""Gaps that are split into planes at once."""


class Section(NamedTuple):
    """Bytes of the frame, and how they are compressed."""

    data: UInt8
    coding: Coding = NUMBERS


def encode(grammar: Grammar) -> str:
    """Serialise a grammar; equal grammars give equal payloads."""
    return str(encode_text(grammar), "ascii")


def encode_text(grammar: Grammar) -> pa.Buffer:
    """Do as :func:`encode`, and return the text in Arrow's memory."""
    frame = _Frame()
    frame.place(_sections(grammar))()
    return frame.text()


class Words:
    """The compressed words and gaps: the first part of a grammar's payload."""

    def __init__(self, sections: list[Section], *counts: int) -> None:
        self.size, self.counts = _size(sections), counts
        self.pieces = map_parallel(_compress, _cut(sections))


def encode_words(words: pa.LargeStringArray, gaps: pa.LargeStringArray) -> Words:
    """Serialise the vocabularies of words and gaps: the first part."""
    sections = _arrange(_words_part(Vocabulary(words), Vocabulary(gaps)))
    return Words(sections, len(words), len(sections[2].data), len(gaps), len(sections[5].data))


def pack_rules(rule_offsets: UInt32, symbols: UInt32, level_offsets: UInt32) -> list[Section]:
    """Arrange the rules as in :func:`pack`: the second part."""
    return _arrange(_rules_part(rule_offsets, symbols, level_offsets))


def pack_gaps(predicted_gaps: UInt32, vocabulary_size: int, rule_offsets: UInt32, symbols: UInt32) -> list[Section]:
    """Arrange the predicted gaps likewise: the last part."""
    return _arrange(_gaps_part(predicted_gaps, vocabulary_size, rule_offsets, symbols))


class JoinedParts:
    """Makes the payload of :func:`encode` from a grammar's parts, which are added in order: words, rules, gaps.

    Rules and gaps may be compressed side by side. The digest is computed as far as the pieces are known.
    """

    def __init__(self, tokenizer: str) -> None:
        self._tokenizer = tokenizer
        self._frame = _Frame()

    def add_words(self, words: Words, rule_offsets: UInt32, symbols: UInt32, level_offsets: UInt32) -> None:
        """Add the words; the frame begins with counts of words and rules."""
        counts = (len(level_offsets) - 1, len(rule_offsets) - 1, len(symbols))
        self._frame.place(_first_sections(words.counts, self._tokenizer, counts))()
        self._frame.append(words)

    def place(self, sections: list[Section]) -> Callable[[], None]:
        """Add the rules, then the gaps, as packed; returns what compresses them, after that or later."""
        return self._frame.place(sections)

    def text(self) -> pa.Buffer:
        """Return the payload in Arrow's memory; all parts have been added and compressed."""
        return self._frame.text()


class _Frame:
    """Compressed pieces of sections, in order, and their digest."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        """Empty while a piece is being compressed."""
        self.size = 0
        """Bytes before compression."""
        self._hash = hashlib.blake2b(digest_size=16)
        self._hashed, self._hashing = 0, allocate_lock()

    def place(self, sections: list[Section]) -> Callable[[], None]:
        """Add sections; returns what compresses them on all threads, one of which computes the digest meanwhile."""
        raw = _cut(sections)
        before = len(self._pieces)
        self._pieces += [b""] * len(raw)
        self.size += _size(sections)

        def compress(k: int) -> None:
            self._pieces[before + k] = _compress(raw[k])
            self._update()

        def compress_all() -> None:
            map_parallel(compress, range(len(raw)))

        return compress_all

    def append(self, words: Words) -> None:
        """Add compressed pieces."""
        self.size += words.size
        self._pieces += words.pieces
        self._update()

    def _update(self) -> None:
        """Hash the pieces that are next, unless another thread does."""
        if self._hashing.acquire(blocking=False):
            try:
                while ready := [*takewhile(len, self._pieces[self._hashed :])]:
                    self._hash.update(b"".join(ready))  # at once: another thread may keep the GIL after each update
                    self._hashed += len(ready)
            finally:
                self._hashing.release()

    def text(self) -> pa.Buffer:
        """Return header and frame as text."""
        self._update()
        starts = np.array([0, *accumulate(map(len, self._pieces))], np.int64)
        addresses = np.array([pa.py_buffer(piece).address for piece in self._pieces], np.uint64)
        groups = -(-int(starts[-1]) // 3)  # three bytes make four letters
        buffer, text = allocate(HEADER_LENGTH + 4 * groups, np.uint8)
        header = f"{MAGIC}{FORMAT}{self.size:016x}{self._hash.hexdigest()}"
        text[:HEADER_LENGTH] = np.frombuffer(header.encode(), np.uint8)
        letters = text[HEADER_LENGTH:]
        map_parallel(lambda own: kernels.encode_base64(*own, addresses, starts, letters), even_chunks(groups))
        return buffer


def _size(sections: list[Section]) -> int:
    return sum(len(section.data) for section in sections)


def _cut(sections: list[Section]) -> list[Section]:
    return [
        Section(data[at : at + coding.piece], coding)
        for data, coding in sections
        for at in range(0, len(data), coding.piece)
    ]


def _compress(piece: Section) -> bytes:
    compressed: bytes = piece.coding.codec.compress(piece.data, asbytes=True)
    return compressed


def pack(grammar: Grammar) -> list[UInt8]:
    """Arrange a grammar's arrays in the frame's order before zstd: counts, then sections."""
    return [section.data for section in _sections(grammar)]


def _sections(grammar: Grammar) -> list[Section]:
    rules = (grammar.rule_offsets, grammar.symbols)
    sections = _arrange(
        _words_part(grammar.words, grammar.gaps),
        _rules_part(*rules, grammar.level_offsets),
        _gaps_part(grammar.predicted_gaps, grammar.vocabulary_size, *rules),
    )
    counts = [len(grammar.words), len(sections[2].data), len(grammar.gaps), len(sections[5].data)]
    sizes = (grammar.level_count, grammar.rule_count, len(grammar.symbols))
    return [*_first_sections(counts, grammar.tokenizer, sizes), *sections]


def _first_sections(words: Sequence[int], tokenizer: str, rules: Sequence[int]) -> list[Section]:
    """Return the counts of words, their bytes, gaps, theirs, then of the rules' parts; and the tokenizer's name."""
    name = np.frombuffer(tokenizer.encode(), np.uint8)
    return [Section(np.array([*words, len(name), *rules], "<u8").view(np.uint8)), Section(name)]


_Part = tuple[list[Callable[[], object]], Callable[[], list[Section]]]
"""Tasks that arrange a part of a grammar, side by side, and what returns its sections after them."""


def _arrange(*parts: _Part) -> list[Section]:
    map_parallel(lambda task: task(), [task for tasks, _ in parts for task in tasks])
    return [section for _, sections in parts for section in sections()]


def _words_part(words: Vocabulary, gaps: Vocabulary) -> _Part:
    both = [_FrontCoded(words), _FrontCoded(gaps)]
    return [task for one in both for task in one.tasks()], lambda: [part for one in both for part in one.sections()]


class _FrontCoded:
    """Strings without the prefix that each shares with the one before; coded in chunks."""

    def __init__(self, strings: Vocabulary) -> None:
        self._offsets, self._data = strings.offsets, strings.bytes
        self._shared, self._lengths = np.empty(len(strings), np.uint8), np.empty(0, np.uint8)
        self._rest = np.empty(len(self._data), np.uint8)
        self._chunks = weighted_chunks(self._offsets)
        self._sizes = [0] * len(self._chunks)

    def tasks(self) -> list[Callable[[], object]]:
        return [partial(self._code, k) for k in range(len(self._chunks))] + [self._measure]

    def _code(self, k: int) -> None:
        chunk = self._chunks[k]
        self._sizes[k] = kernels.front_code(*chunk, self._offsets, self._data, self._shared, self._rest)

    def _measure(self) -> None:
        self._lengths = _planes(np.diff(self._offsets))

    def sections(self) -> list[Section]:
        starts = [int(self._offsets[first]) for first, _ in self._chunks]
        rests = [self._rest[start : start + size] for start, size in zip(starts, self._sizes, strict=True)]
        rest = rests[0] if len(rests) == 1 else np.concatenate(rests)
        return [Section(self._shared), Section(self._lengths), Section(rest, STRINGS)]


def _rules_part(rule_offsets: UInt32, symbols: UInt32, level_offsets: UInt32) -> _Part:
    first = symbols[rule_offsets[:-1]]
    others = np.empty(4 * (len(symbols) - len(first)), np.uint8)
    numbers: dict[str, UInt8] = {"others": others}

    def levels() -> None:
        numbers["levels"] = _planes(np.diff(level_offsets))

    def lengths() -> None:
        numbers["lengths"] = _planes(np.diff(rule_offsets))

    def steps() -> None:
        differences = np.diff(first, prepend=np.uint32(0)).view(np.int32)
        numbers["steps"] = _planes(((differences << 1) ^ (differences >> 31)).view(np.uint32))

    def bodies(chunk: tuple[int, int]) -> None:
        kernels.split_bodies(*chunk, rule_offsets, symbols, others)

    chunks = weighted_chunks(rule_offsets.astype(np.int64))
    tasks: list[Callable[[], object]] = [levels, lengths, steps, *(partial(bodies, chunk) for chunk in chunks)]
    return tasks, lambda: [Section(numbers[name]) for name in ("levels", "lengths", "steps", "others")]


def _gaps_part(predicted_gaps: UInt32, vocabulary_size: int, rule_offsets: UInt32, symbols: UInt32) -> _Part:
    word_gaps, body_gaps = np.split(predicted_gaps, [vocabulary_size])
    expected = np.empty(vocabulary_size + len(rule_offsets) - 1, np.uint32)
    kernels.expect_gaps(word_gaps, rule_offsets, symbols, expected)
    own, surprises = (
        np.empty(4 * len(word_gaps), np.uint8),
        np.empty(4 * (len(symbols) - len(rule_offsets) + 1), np.uint8),
    )

    def bodies(chunk: tuple[int, int]) -> None:
        block = np.empty(BLOCK, np.uint32)
        kernels.split_gaps(*chunk, rule_offsets, symbols, body_gaps, expected, block, surprises)

    chunks = weighted_chunks(rule_offsets.astype(np.int64))
    tasks: list[Callable[[], object]] = [
        lambda: kernels.split_planes(word_gaps, own),
        *(partial(bodies, chunk) for chunk in chunks),
    ]
    return tasks, lambda: [Section(own), Section(surprises)]


def _planes(numbers: npt.NDArray[np.integer]) -> UInt8:
    """Return the lowest bytes of all numbers, then the next ones: four planes."""
    planes = np.empty(4 * len(numbers), np.uint8)
    kernels.split_planes(np.ascontiguousarray(numbers, np.uint32), planes)
    return planes


def key(payload: str | pa.Buffer) -> str:
    """Return a payload's cache key: format, content digest and length."""
    if isinstance(payload, pa.Buffer):
        return key_of(payload[:HEADER_LENGTH].to_pybytes(), payload.size)
    size = len(payload) if payload.isascii() else len(payload.encode())
    return key_of(payload[:HEADER_LENGTH].encode()[:HEADER_LENGTH], size)


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
        stream = NUMBERS.codec.decompress(frame, decompressed_size=size)
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
