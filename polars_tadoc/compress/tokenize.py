"""Cuts a String column into words and gaps on its Arrow buffers, in parallel over rows."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.arrow import allocate, binary_views
from polars_tadoc.compress import characters
from polars_tadoc.kernels.cpu import tokenize as kernels
from polars_tadoc.kernels.cpu.parallel import map_parallel, weighted_chunks

UInt8 = npt.NDArray[np.uint8]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Tokenizer:
    """A way to cut text; its name is stored in every grammar."""

    name: str
    pattern: str | None = None
    """For regex tokenizers: the pattern in Polars' syntax."""

    @classmethod
    def from_argument(cls, tokenizer: str | re.Pattern[str]) -> Tokenizer:
        """Resolve what a user passes: "words", "whitespace" or a compiled regex.

        A compiled regex is run by Polars' regex engine, so look-around and back-references are refused.
        """
        if isinstance(tokenizer, re.Pattern):
            if not isinstance(tokenizer.pattern, str):
                raise TypeError("tokenizer: the regex is one over bytes; compile it from a str")
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
        if tokenizer in ("words", "whitespace"):
            return cls(tokenizer)
        raise ValueError(
            f'tokenizer={tokenizer!r}: use "words", "whitespace" or a compiled regex such as re.compile("[a-z]+")'
        )


@dataclass(frozen=True)
class Tokens:
    """Rows as word ids: what grammar construction takes."""

    vocabulary: pa.LargeStringArray
    """Distinct words by falling frequency, equal ones in code point order."""
    gap_vocabulary: pa.LargeStringArray
    sequence: UInt32
    """Word ids of all rows, ``SEPARATOR`` after each row; length words + rows."""
    gap_offsets: Int64
    """Where each row's gap bytes start; length rows + 1."""
    gap_data: UInt8


@dataclass
class _Table:
    """Interned strings as the kernels take them; the table doubles when half the slots are taken."""

    slots: npt.NDArray[np.int32]
    entries: UInt64
    distinct: int = 0

    @classmethod
    def with_room(cls, strings: int) -> _Table:
        capacity = 1 << max(10, (2 * strings).bit_length())
        return cls(np.zeros(capacity, np.int32), np.zeros(kernels.FIELDS * (capacity // 2 + 1), np.uint64))

    def grow(self) -> None:
        larger = _Table.with_room(len(self.slots) // 2)
        used = kernels.FIELDS * self.distinct
        larger.entries[:used] = self.entries[:used]
        kernels.rehash(larger.slots, larger.entries, self.distinct)
        self.slots, self.entries = larger.slots, larger.entries

    def field(self, field: int) -> UInt64:
        """One field of all entries."""
        return self.entries[field : kernels.FIELDS * self.distinct : kernels.FIELDS]


@dataclass
class _Chunk:
    """What one thread scanned."""

    words: UInt32
    gaps: UInt32
    row_ends: Int64
    word_table: _Table
    gap_table: _Table


def tokenize(text: pl.Series, tokenizer: Tokenizer, *, lossless: bool = True) -> Tokens:
    """Cut each row of a String series; null rows count as empty.

    Parameters
    ----------
    text
        String series in one chunk.
    tokenizer
        How to cut.
    lossless
        Keep what stands between words; without it ``gap_data`` is empty.

    """
    addresses, lengths, views = binary_views(text)
    if tokenizer.pattern is None:
        page_of, pages = characters.words_table() if tokenizer.name == "words" else characters.whitespace_table()
        match_starts = match_lengths = np.zeros(0, np.uint32)
        match_ends = np.zeros(0, np.int64)
    else:
        page_of, pages = np.zeros(0, np.uint16), np.zeros(0, np.uint8)
        match_starts, match_lengths, match_ends = _regex_matches(text, tokenizer.pattern)
    before = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])

    def scan(rows: tuple[int, int]) -> _Chunk:
        first, stop = rows
        size = int(before[stop] - before[first])
        if len(match_ends):
            most = int(match_ends[stop - 1] - (match_ends[first - 1] if first else 0)) if stop > first else 0
        else:
            most = (size + 1) // 2 + (stop - first)  # adjacent words are at least 3 bytes each
        chunk = _Chunk(
            words=np.empty(most, np.uint32),
            gaps=np.empty(most + stop - first, np.uint32),
            row_ends=np.empty(stop - first, np.int64),
            word_table=_Table.with_room(min(size // 16, 1 << 15)),
            gap_table=_Table.with_room(256),
        )
        state = np.zeros(7, np.int64)
        _seed_gaps(chunk.gap_table)
        state[kernels.DISTINCT_GAPS] = chunk.gap_table.distinct
        state[kernels.MATCH] = match_ends[first - 1] if first and len(match_ends) else 0
        ends_here = match_ends[first:stop]
        while True:
            code = kernels.scan(
                addresses[first:stop],
                lengths[first:stop],
                stop - first,
                page_of,
                pages,
                match_starts,
                match_lengths,
                ends_here,
                state,
                chunk.words,
                chunk.gaps,
                chunk.row_ends,
                chunk.word_table.slots,
                chunk.word_table.entries,
                chunk.gap_table.slots,
                chunk.gap_table.entries,
            )
            chunk.word_table.distinct = int(state[kernels.DISTINCT_WORDS])
            chunk.gap_table.distinct = int(state[kernels.DISTINCT_GAPS])
            if code == kernels.DONE:
                break
            for table in (chunk.word_table, chunk.gap_table):
                if 2 * (table.distinct + kernels.BATCH) >= len(table.slots):
                    table.grow()
        chunk.words = chunk.words[: state[kernels.WORDS]]
        chunk.gaps = chunk.gaps[: state[kernels.GAPS]]
        return chunk

    chunks = map_parallel(scan, weighted_chunks(before))
    # gaps are encoded and freed before the sequence is made: peak memory
    if lossless:
        gap_vocabulary, gap_ids = _merge([c.gap_table for c in chunks])
        gap_offsets, gap_data = _encode_gaps(chunks, gap_ids)
    else:
        gap_vocabulary = pa.array([], pa.large_string())
        gap_offsets, gap_data = np.zeros(len(text) + 1, np.int64), np.zeros(0, np.uint8)
    for chunk in chunks:
        chunk.gaps = np.zeros(0, np.uint32)
    vocabulary, word_ids = _merge([c.word_table for c in chunks])
    sequence = np.empty(sum(len(c.words) + len(c.row_ends) for c in chunks), np.uint32)
    starts = np.cumsum([0, *(len(c.words) + len(c.row_ends) for c in chunks)])

    def renumber(i: int) -> None:
        chunk = chunks[i]
        kernels.renumber_rows(chunk.words, chunk.row_ends, word_ids[i], sequence[starts[i] : starts[i + 1]])

    map_parallel(renumber, range(len(chunks)))
    del views  # the tables' addresses point into them until here
    return Tokens(vocabulary, gap_vocabulary, sequence, gap_offsets, gap_data)


def _regex_matches(text: pl.Series, pattern: str) -> tuple[UInt32, UInt32, Int64]:
    """Return where each non-empty match starts in its row, its bytes, and the matches up to the end of each row."""
    size = pl.element().str.len_bytes()
    found = (
        text.fill_null("")
        .to_frame("text")
        .select(
            gaps=pl.col("text").str.split(pattern, literal=False).list.eval(size),
            matches=pl.col("text").str.extract_all(pattern).list.eval(size),
        )
    )
    gaps, matches = found["gaps"].explode(empty_as_null=False).to_numpy(), found["matches"]
    counts, lengths = matches.list.len().to_numpy(), matches.explode(empty_as_null=False).to_numpy().copy()
    starts, ends = np.empty(len(lengths), np.uint32), np.zeros(len(counts), np.int64)
    if not lengths.any():  # an empty regex splits otherwise than it matches
        return starts[:0], lengths[:0], ends
    if len(gaps) != len(lengths) + len(counts):
        raise ValueError(f"tokenizer: Polars splits otherwise by {pattern!r} than it matches; use another regex")
    kept = kernels.match_spans(gaps, counts, lengths, starts, ends)
    return starts[:kept], lengths[:kept], ends


_SEEDS = np.frombuffer(b" ", np.uint8)


def _seed_gaps(table: _Table) -> None:
    """Give one space and nothing their fixed ids, so that the scan need not look them up."""
    for entry, (length, key) in {kernels.SPACE_ID: (1, ord(" ")), kernels.EMPTY_ID: (0, 0)}.items():
        table.entries[kernels.FIELDS * entry : kernels.FIELDS * (entry + 1)] = key, _SEEDS.ctypes.data, length, 0
    table.distinct = 2
    kernels.rehash(table.slots, table.entries, table.distinct)


def _merge(tables: list[_Table]) -> tuple[pa.LargeStringArray, list[UInt32]]:
    """Merge the chunks' strings; number them by falling frequency, then code point order.

    Strings with tally 0 (gaps that were only ever assumed) are left out. Returns the strings and, for
    each chunk, the final id by its own id.
    """
    merged = _Table.with_room(sum(table.distinct for table in tables))
    ids = []
    for table in tables:
        chunk_ids = np.empty(table.distinct, np.uint32)
        merged.distinct = kernels.merge_table(
            merged.slots, merged.entries, merged.distinct, table.entries, table.distinct, chunk_ids
        )
        ids.append(chunk_ids)
    addresses, lengths = merged.field(kernels.ADDRESS), merged.field(kernels.LENGTH)
    tallies = merged.field(kernels.TALLY).astype(np.int64)
    by_word = pl.Series(pl.from_arrow(_gather(addresses, lengths))).arg_sort().to_numpy()
    order = by_word[np.argsort(-tallies[by_word], kind="stable")]
    order = order[: np.count_nonzero(tallies)]
    final = np.zeros(merged.distinct, np.uint32)
    final[order] = np.arange(len(order), dtype=np.uint32)
    return _gather(addresses[order], lengths[order]), [final[chunk_ids] for chunk_ids in ids]


def _gather(addresses: UInt64, lengths: UInt64) -> pa.LargeStringArray:
    offset_buffer, offsets = allocate(len(lengths) + 1, np.int64)
    offsets[0] = 0
    np.cumsum(lengths.astype(np.int64), out=offsets[1:])
    data_buffer, data = allocate(int(offsets[-1]), np.uint8)
    kernels.copy_strings(addresses, offsets, data)
    return pa.LargeStringArray.from_buffers(len(lengths), offset_buffer, data_buffer)


def _encode_gaps(chunks: list[_Chunk], ids: list[UInt32]) -> tuple[Int64, UInt8]:
    rows = np.cumsum([0, *(len(c.row_ends) for c in chunks)])
    sizes = np.empty(rows[-1], np.int64)
    no_data, no_sizes = np.zeros(0, np.uint8), np.zeros(0, np.int64)

    def measure(i: int) -> None:
        chunk = chunks[i]
        kernels.encode_gaps(chunk.gaps, chunk.row_ends, ids[i], False, sizes[rows[i] : rows[i + 1]], no_data)

    map_parallel(measure, range(len(chunks)))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    data = np.empty(int(offsets[-1]), np.uint8)

    def write(i: int) -> None:
        chunk, own = chunks[i], data[offsets[rows[i]] : offsets[rows[i + 1]]]
        kernels.encode_gaps(chunk.gaps, chunk.row_ends, ids[i], True, no_sizes, own)

    map_parallel(write, range(len(chunks)))
    return offsets, data
