"""Cuts a String column into words and gaps on the device, with the same result as the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.errors import DeviceMemoryError
from polars_tadoc.kernels.primitives.bitmap_cuda import rank
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.primitives.upload_cuda import upload_rows
from polars_tadoc.kernels.repair.gaps_cuda import NotedGaps, note_gaps
from polars_tadoc.kernels.tokenize import characters
from polars_tadoc.kernels.tokenize.intern_cuda import intern
from polars_tadoc.kernels.tokenize.tokenize_cpu import Classes, Matches
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, found_words, require_utf8
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.arrow_memory import binary_views
from polars_tadoc.runtime.device import device_errors, launch, launch_each, side_stream

_MAX_BYTES = 1 << 31


@array_dataclass
class DeviceTokens:
    """Rows as word ids on the device: the input of grammar construction."""

    vocabulary: pa.LargeStringArray
    """Distinct words by descending count, then code point order; in host memory."""
    sequence: Any
    """cupy uint32: word ids of all rows, 0xFFFFFFFF after each row; length words + rows."""
    row_tokens: Any
    """cupy uint32: offset of each row in the sequence, and its length; length rows + 1."""
    gaps: NotedGaps | None
    """The gaps, None if they are dropped."""


@array_dataclass
class WordBits:
    """Bitmaps of the starts and stops of words in a text on the device: a bit per byte and one after the text."""

    row_offsets: Any
    """cupy uint32, rows + 1."""
    row_bits: Any
    start_bits: Any
    stop_bits: Any

    @property
    def words(self) -> int:
        """Length of each bitmap."""
        return len(self.row_bits)


@array_dataclass
class _Spans:
    """Spans of the words, each row followed by an empty token at its end."""

    starts: Any
    stops: Any
    row_tokens: Any


@array_dataclass
class LoadedText:
    """The rows of a String series on the device."""

    text: Any
    """cupy uint8: the concatenated rows, and padding."""
    before: Int64
    """Number of bytes before each row, and in total; length rows + 1; in host memory."""


def load_text(text: pl.Series, after: Any = None) -> LoadedText:
    """Copy the rows of a String series to the current device; ``after`` as for :func:`~.upload_cuda.upload_rows`.

    Raises
    ------
    EngineUnavailableError
        The device is out of memory or failed, or the text exceeds the kernels' 32-bit positions.

    """
    addresses, before, views = text_rows(text, "a smaller rows_per_grammar")
    with device_errors(f"copying {before[-1]:,} bytes of text"):
        loaded = upload_rows(addresses, before, after)
    del views  # the addresses point into them until here
    return LoadedText(loaded, before)


def loading(text: pl.Series) -> Callable[[], LoadedText]:
    """Return a function that loads text in another thread, beside this thread's work on the device."""
    with device_errors("asking for the device"):
        import cupy

        device, stream = cupy.cuda.Device(), cupy.cuda.get_current_stream()

    def load() -> LoadedText:
        with device, side_stream(device.id):
            return load_text(text, stream)

    return load


def tokenize(
    text: pl.Series, tokenizer: Tokenizer, *, lossless: bool = True, loaded: LoadedText | None = None
) -> DeviceTokens:
    """Cut each row of a String series on the current device; null rows count as empty.

    Parameters and errors as for :func:`polars_tadoc.kernels.tokenize.tokenizer.tokenize`; ``loaded`` is the text if it
    has been loaded. The host matches regexes and cuts XML; the device does the rest.

    Raises
    ------
    EngineUnavailableError
        The device is out of memory or failed, or the text exceeds the kernels' 32-bit positions.

    """
    loaded = load_text(text) if loaded is None else loaded
    device_text, before = loaded.text, loaded.before
    with device_errors(f"cutting {before[-1]:,} bytes into words"):
        if tokenizer.has_classes:
            spans = _spans_of_classes(device_text, before.astype(np.uint32), characters.classes(tokenizer.name))
        else:
            require_utf8(text)
            spans = _spans_of_matches(before, found_words(text, tokenizer))
        if spans is None:
            require_utf8(text)  # names the row
            raise AssertionError("a text that is not UTF-8 on the device is UTF-8 on the host")
        words = intern(device_text, spans.starts, spans.stops, leave_empty_out=True)
        gaps = note_gaps(device_text, spans.starts, spans.stops, spans.row_tokens) if lossless else None
        return DeviceTokens(words.distinct, words.ids, spans.row_tokens, gaps)


def text_rows(text: pl.Series, mend: str) -> tuple[UInt64, Int64, object]:
    """Return the rows of a String series; null rows count as empty.

    Parameters
    ----------
    text
        String series, in host memory.
    mend
        How to make the text small enough, for the message.

    Returns
    -------
    (uint64 array, int64 array, object)
        Address of each row; number of bytes before each, and in total; the owner of the bytes.

    Raises
    ------
    DeviceMemoryError
        The text exceeds the kernels' 32-bit positions; fewer rows may fit.

    """
    addresses, lengths, views = binary_views(text)
    before = running_sum(lengths)
    if before[-1] + len(lengths) >= _MAX_BYTES:
        raise DeviceMemoryError(
            f'engine="gpu": {len(lengths):,} rows with {before[-1]:,} bytes in total exceed its 32-bit positions; '
            f'use engine="cpu", or {mend}'
        )
    return addresses, before, views


def mark_words(text: Any, row_offsets: UInt32, classes: Classes) -> WordBits | None:
    """Cut concatenated rows at character classes; None if the text is not UTF-8."""
    import cupy

    rows, size = len(row_offsets) - 1, int(row_offsets[-1])
    bitmap_words = size // 32 + 1
    offsets = cupy.asarray(row_offsets)
    row_bits = cupy.zeros(bitmap_words, np.uint32)
    launch_each("tokenize", "mark_rows", rows + 1, offsets, rows, row_bits)
    start_bits, stop_bits = (cupy.empty(bitmap_words, np.uint32) for _ in range(2))
    page_of, pages = (cupy.asarray(array) for array in (classes.page_of, classes.pages))
    # at most one character is deferred per run of 32 marks or more
    far, report = cupy.empty(size // 32 + 1, np.uint32), cupy.zeros(2, np.uint32)
    launch_each(
        *("tokenize", "classify", bitmap_words, text, size, page_of, pages, row_bits, start_bits, stop_bits),
        *(bitmap_words, far, report),
    )
    invalid, left = (int(value) for value in report.get())  # synchronize!
    if invalid:
        return None
    if left:
        launch("tokenize", "resolve_marks", left, 256, text, page_of, pages, row_bits, far, start_bits, stop_bits)
    return WordBits(offsets, row_bits, start_bits, stop_bits)


def _spans_of_classes(text: Any, row_offsets: UInt32, classes: Classes) -> _Spans | None:
    """Cut at character classes; None if the text is not UTF-8."""
    import cupy

    marked = mark_words(text, row_offsets, classes)
    if marked is None:
        return None
    rows, bitmap_words = len(row_offsets) - 1, marked.words
    offsets, row_bits, start_bits, stop_bits = marked.row_offsets, marked.row_bits, marked.start_bits, marked.stop_bits
    row_ranks, start_ranks = rank(row_bits), rank(start_bits)
    tokens = int(start_ranks[-1]) + rows  # synchronize!
    starts, stops = cupy.empty(tokens, np.uint32), cupy.empty(tokens, np.uint32)
    row_tokens, filled_rows = cupy.empty(rows + 1, np.uint32), cupy.empty(rows, np.uint32)
    launch_each(
        *("tokenize", "place_rows", rows + 1, offsets, rows, row_bits, row_ranks, start_bits, start_ranks),
        *(row_tokens, filled_rows, starts, stops),
    )
    launch_each(
        *("tokenize", "place_words", bitmap_words, row_bits, row_ranks, start_bits, start_ranks, stop_bits),
        *(bitmap_words, filled_rows, starts, stops),
    )
    return _Spans(starts, stops, row_tokens)


def _spans_of_matches(before: Int64, matches: Matches) -> _Spans:
    """Convert matches, whose starts are relative to their rows, to spans of the text."""
    import cupy

    rows = len(before) - 1
    row_tokens = np.concatenate([[0], matches.ends + np.arange(1, rows + 1)])
    row_of = np.repeat(np.arange(rows), np.diff(matches.ends, prepend=0))
    starts, stops = np.empty(row_tokens[-1], np.uint32), np.empty(row_tokens[-1], np.uint32)
    starts[row_tokens[1:] - 1] = stops[row_tokens[1:] - 1] = before[1:]
    places = np.arange(len(row_of)) + row_of
    starts[places] = matches.starts + before[row_of]
    stops[places] = starts[places] + matches.lengths
    return _Spans(cupy.asarray(starts), cupy.asarray(stops), cupy.asarray(row_tokens.astype(np.uint32)))
