"""Cuts a String column into words and gaps on its Arrow buffers, in parallel over rows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.tokenize import characters
from polars_tadoc.kernels.tokenize import tokenize_cpu as kernels
from polars_tadoc.kernels.tokenize.scan_cpu import SCAN_BYTES, scan
from polars_tadoc.kernels.tokenize.shared_words_cpu import SharedWords
from polars_tadoc.kernels.tokenize.tables_cpu import Interned, number
from polars_tadoc.kernels.tokenize.xml.xml_words import xml_words
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import binary_views, string_sizes
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks
from polars_tadoc.runtime.scratch import HUGE_PAGE, pages

PIECE_BYTES = 1 << 19
"""Bytes of text per task; small, so that a delayed thread leaves the rest to the others."""

MANY_THREADS, PIECES_PER_THREAD, MOST_PIECE_BYTES = 8, 4, 1 << 21
"""With many threads, pieces of a large text are larger: threads take turns to begin one, which takes 0.1 ms."""

CHECKED_BYTES = 1 << 21
"""Bytes of text, at least, that a thread checks to be UTF-8."""

BUILT_IN = ("words", "whitespace", "xml", "code")
"""Names of tokenizers."""

CODE = r"\w+(?:\.\w+)*(?:\+\+|#)?"
"""Pattern of "code": names with dots, such as ``a.b.c``, and ``C++``, ``C#``."""


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer; its name is stored in every grammar."""

    name: str
    pattern: str | None = None
    """Pattern of a regex tokenizer, and of "code", in Polars' syntax."""
    is_content: bool = False
    """For "xml": whether texts are element content, as queries are, instead of documents."""

    @classmethod
    def from_argument(cls, tokenizer: str | re.Pattern[str]) -> Tokenizer:
        """Convert a user's argument: "words", "whitespace", "xml", "code" or a compiled regex.

        Polars' regex engine runs the regex, so look-around and back-references raise.
        """
        if isinstance(tokenizer, re.Pattern):
            if not isinstance(tokenizer.pattern, str):
                raise TypeError("tokenizer: the regex matches bytes; compile it from a str")
            if tokenizer.flags & re.VERBOSE:
                raise ValueError("tokenizer: write the regex without re.VERBOSE: spaces in classes would be lost")
            flags = "".join(
                letter
                for flag, letter in ((re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"))
                if tokenizer.flags & flag
            )
            ascii_only = "(?-u:" + tokenizer.pattern + ")" if tokenizer.flags & re.ASCII else tokenizer.pattern
            pattern = f"(?{flags})" * bool(flags) + ascii_only
            try:
                pl.Series([""]).str.extract_all(pattern)
            except pl.exceptions.ComputeError as error:
                raise ValueError(
                    f"tokenizer: Polars' regex engine, which has no look-around, no back-references and matches whole "
                    f"characters only, cannot run {tokenizer.pattern!r}: {error}"
                ) from error
            return cls(f"regex:{pattern}", pattern)
        if tokenizer in BUILT_IN:
            return cls.named(tokenizer)
        raise ValueError(
            f'tokenizer={tokenizer!r}: use "words", "whitespace", "xml", "code" or a compiled regex such as '
            're.compile("[a-z]+")'
        )

    @classmethod
    def named(cls, name: str) -> Tokenizer:
        """Return the tokenizer of a name that a grammar or a file has."""
        if name == "code":
            return cls(name, CODE)
        return cls(name, name.removeprefix("regex:") if name.startswith("regex:") else None)

    @property
    def has_classes(self) -> bool:
        """Whether character classes determine the words, rather than :func:`found_words`."""
        return self.pattern is None and self.name != "xml"

    @property
    def has_parts(self) -> bool:
        """Whether an index also finds the parts of words."""
        return self.name == "code"

    @property
    def of_queries(self) -> Tokenizer:
        """The tokenizer for queries and phrases that are searched in texts of this tokenizer."""
        return replace(self, is_content=True)


@dataclass(frozen=True)
class Tokens:
    """Rows as word ids: the input of grammar construction."""

    vocabulary: pa.LargeStringArray
    """Distinct words by descending count, then code point order."""
    gap_vocabulary: pa.LargeStringArray
    sequence: UInt32
    """Word ids of all rows, ``SEPARATOR`` after each row; length words + rows."""
    gap_offsets: Int64
    """Offsets of each row's gap bytes; length rows + 1."""
    gap_data: UInt8


class _Thread:
    """One thread's tables and work space."""

    def __init__(self) -> None:
        self.gaps = Interned.of([b" ", b""])  # kernels.SPACE_ID, kernels.EMPTY_ID
        self.pairs = np.empty(0, np.uint8)
        self.tail = np.empty(SCAN_BYTES, np.uint8)
        self.rest: tuple[int, UInt32, kernels.Piece] | None = None
        """A piece that is not done: its number, room for its ids, and the rest of it."""

    def reserve(self, count: int) -> None:
        """Make room for the next gaps, and for the pairs of ``count`` gaps."""
        self.gaps.reserve(kernels.BATCH_WORDS)
        if len(self.pairs) < kernels.MAX_PAIR_BYTES * count:
            self.pairs = np.empty(kernels.MAX_PAIR_BYTES * count, np.uint8)


@dataclass
class _Scanned:
    """A piece's gaps, and the thread whose ids they have."""

    piece: kernels.Piece
    ids: int
    """How many."""
    thread: int
    pairs: UInt8
    skipped: int
    had_pair: bool


@dataclass
class Cut:
    """Rows as ids of words, and gaps as ids that are local to each thread."""

    sequence: UInt32
    """Ids in the table of words, ``SEPARATOR_ID`` after each row."""
    scanned: list[_Scanned]
    """By piece, in order."""
    words: SharedWords
    gaps: list[Interned]
    """By thread."""
    gap_offsets: Int64
    text: object
    """Owner of the bytes at the tables' addresses."""


def tokenize(text: pl.Series, tokenizer: Tokenizer, *, lossless: bool = True) -> Tokens:
    """Cut each row of a String series; null rows count as empty.

    Parameters
    ----------
    text
        String series.
    tokenizer
        The tokenizer.
    lossless
        Keep the gaps between words; otherwise ``gap_data`` is empty.

    Raises
    ------
    ValueError
        A row is not UTF-8; Polars does not check strings from other libraries.

    """
    found = cut(text, tokenizer, lossless=lossless)
    sequence = found.sequence

    def number_gaps() -> tuple[pa.LargeStringArray, UInt8]:
        vocabulary, ids = number(found.gaps)
        return vocabulary, _encode_gaps(found.scanned, ids, found.gap_offsets)

    numbering: list[Callable[[], Any]] = [found.words.number, number_gaps]
    (vocabulary, ids), (gap_vocabulary, gap_data) = map_parallel(lambda call: call(), numbering)
    ids[kernels.SEPARATOR_ID] = kernels.SEPARATOR
    map_parallel(lambda own: kernels.renumber(sequence[slice(*own)], ids), even_chunks(len(sequence)))
    return Tokens(vocabulary, gap_vocabulary, sequence, found.gap_offsets, gap_data)


class TextBlock(NamedTuple):
    """Rows of text to be scanned, in pieces; arguments as for :func:`tokenize_cpu.scan`."""

    addresses: UInt64
    lengths: UInt32
    pieces: list[kernels.Piece]
    classes: kernels.Classes
    matches: kernels.Matches
    owner: object
    """Owner of the bytes at the addresses."""

    @classmethod
    def of(cls, text: pl.Series, tokenizer: Tokenizer) -> TextBlock:
        """Cut rows into pieces."""
        addresses, lengths, views = binary_views(text)
        before = running_sum(lengths)
        if tokenizer.has_classes:
            classes, matches = characters.classes(tokenizer.name), NO_MATCHES
            pieces = cut_pieces(addresses, lengths, before, classes)
        else:
            classes, matches = NO_CLASSES, found_words(text, tokenizer)
            pieces = cut_pieces(addresses, lengths, before, None)
        return cls(addresses, lengths, pieces, classes, matches, views)


def cut(text: pl.Series, tokenizer: Tokenizer, *, lossless: bool) -> Cut:
    """Cut each row and intern its words, piece by piece; parameters and errors as for :func:`tokenize`."""
    require_utf8(text)
    addresses, lengths, pieces, classes, matches, views = TextBlock.of(text, tokenizer)
    # ids are counted first, so that each piece writes to its final position: one array, no copy
    places = np.zeros(len(pieces) + 1, np.int64)
    places[1:] = map_parallel(
        lambda piece: kernels.count_ids(addresses, lengths, piece, classes, matches, np.empty(kernels.BLOCK, np.uint8)),
        pieces,
    )
    np.cumsum(places, out=places)
    size = 4 * int(places[-1])
    sequence = pages(size).view(np.uint32) if size >= HUGE_PAGE else np.empty(places[-1], np.uint32)
    gap_offsets = np.zeros(len(lengths) + 1, np.int64)
    threads = [_Thread() for _ in range(min(thread_count(), len(pieces)))]
    words = SharedWords(int(lengths.sum(dtype=np.int64)), len(threads))
    scanned: list[list[_Scanned]] = [[] for _ in pieces]
    # a thread begins with neighbouring pieces, which have words in common, and continues with those of others
    edges = [len(pieces) * k // len(threads) for k in range(len(threads) + 1)]
    shares = [iter(range(*share)) for share in pairwise(edges)]

    def scan_pieces(own: int) -> None:
        thread, waiting = threads[own], chain(*shares[own:], *shares[:own])
        table = (words.caches[own], words.cache_shift, words.shared, words.shift, words.limit)
        while not words.is_full:
            if thread.rest is None:
                number = next(waiting, -1)
                if number < 0:
                    return
                thread.rest = number, sequence[places[number] : places[number + 1]], pieces[number]
            number, ids, piece = thread.rest
            thread.reserve(len(ids))
            gaps, written = thread.gaps, (ids, lossless, gap_offsets[1:], thread.pairs, thread.tail)
            gaps.distinct, many, size, skipped, had_pair, row, byte, is_done = scan(
                addresses, lengths, piece, classes, matches, *table, gaps.arrays, gaps.distinct, *written
            )
            done = piece._replace(last_row=row, last_byte=byte)
            scanned[number].append(_Scanned(done, many, own, thread.pairs[:size].copy(), skipped, had_pair))
            rest = number, ids[many:], piece._replace(first_row=row, first_byte=byte)
            thread.rest = None if is_done else rest

    map_parallel(scan_pieces, range(len(threads)))
    while not all(scanned) or any(thread.rest for thread in threads):
        words.grow()
        map_parallel(scan_pieces, range(len(threads)))
    parts = [part for parts in scanned for part in parts]
    return Cut(sequence, parts, words, [thread.gaps for thread in threads], gap_offsets, views)


def require_utf8(text: pl.Series, first: int = 0) -> None:
    """Raise ``ValueError`` that names the first row that is not UTF-8, counted from ``first``."""
    binary, chunks = text.cast(pl.Binary), [(0, len(text))]
    if text.estimated_size() > 2 * CHECKED_BYTES:
        chunks = weighted_chunks(running_sum(string_sizes(text)), CHECKED_BYTES)
    try:
        map_parallel(lambda own: binary[slice(*own)].cast(pl.String), chunks)  # Polars checks 10 GB/s
    except pl.exceptions.ComputeError:
        for row, value in enumerate(binary):
            try:
                bytes(value or b"").decode()
            except UnicodeDecodeError as error:
                raise ValueError(
                    f'column "{text.name}", row {first + row}: not UTF-8 ({error.reason} at byte {error.start}); '
                    f"fix it at its source, for example with bytes.decode(errors='replace')"
                ) from None
        raise


def cut_pieces(
    addresses: UInt64, lengths: UInt32, before: Int64, classes: kernels.Classes | None
) -> list[kernels.Piece]:
    """Split the text into pieces of about ``PIECE_BYTES``: between rows and, given classes, at ends of words."""
    rows, size = len(lengths), int(before[-1])
    tail = np.empty(kernels.BLOCK, np.uint8)
    edges = [(0, 0)]
    piece_bytes, are_many = PIECE_BYTES, thread_count() >= MANY_THREADS
    if are_many:
        piece_bytes = min(max(piece_bytes, size // (PIECES_PER_THREAD * thread_count())), MOST_PIECE_BYTES)
    count, period = max(1, size // piece_bytes), 4 * PIECES_PER_THREAD
    # of many threads, each one's last piece is cut in quarters, so that they end at about the same time
    quarters = [i for i in range(1, 4 * count + 1) if i % 4 == 0 or (are_many and i % period > period - 4)]
    targets = [size * i // (4 * count) for i in quarters]
    first_rows = (np.searchsorted(before, targets[:-1], side="right") - 1).tolist()
    for (target, limit), row in zip(pairwise(targets), first_rows, strict=True):
        edge = row, 0
        if classes is not None and int(lengths[row]) > PIECE_BYTES // 16:
            start, stop = target - int(before[row]), min(limit - int(before[row]), int(lengths[row]))
            at = kernels.word_end_from(addresses[row], int(lengths[row]), start, stop, classes, tail)
            edge = (row, at) if at >= 0 else edges[-1]
        if edge > edges[-1]:
            edges.append(edge)
    return [kernels.Piece(*first, *last) for first, last in pairwise([*edges, (rows, 0)])]


REGEX_BYTES = 1 << 22
"""Bytes of text per call of Polars' regex engine."""

NO_MATCHES = kernels.Matches(np.zeros(0, np.uint32), np.zeros(0, np.uint32), np.zeros(0, np.int64))
NO_CLASSES = kernels.Classes(np.zeros(0, np.uint16), np.zeros(0, np.uint8), np.uint32(0), np.uint32(0))


def found_words(text: pl.Series, tokenizer: Tokenizer) -> kernels.Matches:
    """Return the words of a tokenizer without character classes; the text must be UTF-8."""
    if tokenizer.pattern is not None:
        return _regex_matches(text, tokenizer.pattern)
    addresses, lengths, views = binary_views(text)
    found = xml_words(addresses, lengths, is_content=tokenizer.is_content)
    del views  # the addresses point into them until here
    return found


def _regex_matches(text: pl.Series, pattern: str) -> kernels.Matches:
    """Return the start of each nonempty match in its row, its bytes, and the number of matches up to each row's end.

    Works piece by piece, because Polars cannot be interrupted while it matches.
    """
    size = pl.element().str.len_bytes()
    before = running_sum(string_sizes(text))
    parts: list[kernels.Matches] = []
    first = words = 0
    while first < len(text) or not parts:
        stop = max(first + 1, int(np.searchsorted(before, before[first] + REGEX_BYTES, side="right")) - 1)
        found = (
            text.slice(first, stop - first)
            .fill_null("")
            .to_frame("text")
            .select(
                gaps=pl.col("text").str.split(pattern, literal=False).list.eval(size),
                matches=pl.col("text").str.extract_all(pattern).list.eval(size),
            )
        )
        own = _match_spans(found["gaps"], found["matches"], pattern)
        own.ends[:] += words
        parts.append(own)
        words += len(own.starts)
        first = stop
    if len(parts) == 1:
        return parts[0]
    return kernels.Matches(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _match_spans(all_gaps: pl.Series, matches: pl.Series, pattern: str) -> kernels.Matches:
    gaps = all_gaps.explode(empty_as_null=False).to_numpy()
    counts, lengths = matches.list.len().to_numpy(), matches.explode(empty_as_null=False).to_numpy().copy()
    starts, ends = np.empty(len(lengths), np.uint32), np.zeros(len(counts), np.int64)
    if not lengths.any():  # an empty regex splits differently from how it matches
        return kernels.Matches(starts[:0], lengths[:0], ends)
    if len(gaps) != len(lengths) + len(counts):
        raise ValueError(f"tokenizer: Polars splits by {pattern!r} differently from how it matches; use another regex")
    kept = kernels.match_spans(gaps, counts, lengths, starts, ends)
    return kernels.Matches(starts[:kept], lengths[:kept], ends)


def _encode_gaps(scanned: list[_Scanned], ids: list[UInt32], gap_offsets: Int64) -> UInt8:
    """Encode the pairs with final ids, row by row; ``gap_offsets`` of the pieces' pairs become global offsets."""
    passed = [0]
    for found in scanned:
        piece = found.piece
        in_same_row = piece.first_row == piece.last_row and not found.had_pair
        passed.append(found.skipped + (passed[-1] if in_same_row else 0) if piece.last_byte else 0)

    def ends_of(found: _Scanned) -> Int64:
        return gap_offsets[1 + found.piece.first_row : 1 + found.piece.last_row]

    def encode(group: tuple[int, int]) -> None:
        # a number has one byte at least
        data = np.empty(kernels.MAX_PAIR_BYTES // 2 * max(len(scanned[i].pairs) for i in range(*group)), np.uint8)
        for i in range(*group):
            found = scanned[i]
            size = kernels.encode_gaps(found.pairs, ends_of(found), ids[found.thread], passed[i], data)
            found.pairs = data[:size].copy()

    map_parallel(encode, even_chunks(len(scanned), 1, 2))
    starts = running_sum(np.array([len(found.pairs) for found in scanned], np.int64))
    made = np.empty(starts[-1], np.uint8)

    def copy(i: int) -> None:
        made[starts[i] : starts[i + 1]] = scanned[i].pairs
        ends_of(scanned[i])[:] += starts[i]

    map_parallel(copy, range(len(scanned)))
    return made
