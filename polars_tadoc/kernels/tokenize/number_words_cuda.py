"""Cuts a String column into words numbered in code point order on the device, with the same result as the CPU.

Numbering 32.0 million words of 200 MB, 576,602 of them distinct, and copying these to the host takes 4.5 ms with a hash
table, 9.9 ms by sorting hashes and 4.5 ms by looking up each word in a dictionary of 798,488 words (H200, ``python -m
benchmarks.gpu_text_weights vocabulary.parquet``): the dictionary saves the table, but needs a pass that drops missing
words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.kernels.primitives.bitmap_cuda import rank
from polars_tadoc.kernels.primitives.codes import DELETED, UNKNOWN
from polars_tadoc.kernels.primitives.primitives_cuda import compact, exclusive_scan, segmented_sum
from polars_tadoc.kernels.primitives.upload_cuda import upload_rows
from polars_tadoc.kernels.tokenize import characters
from polars_tadoc.kernels.tokenize.intern_cuda import Interned, intern, number_strings
from polars_tadoc.kernels.tokenize.number_words_cpu import Choice, Known, NumberedWords
from polars_tadoc.kernels.tokenize.text_sort_cuda import number_by_sort
from polars_tadoc.kernels.tokenize.tokenize_cuda import mark_words, text_rows
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, found_words, require_utf8
from polars_tadoc.kernels.trie.trie_cuda import look_up
from polars_tadoc.runtime.device import device_errors, launch_each

_NONE = 0xFFFFFFFF


class Words(NamedTuple):
    """Positions of the words in a text, on the device."""

    text: Any
    """cupy uint8: the concatenated rows, and ``PADDING`` bytes."""
    starts: Any
    stops: Any
    """cupy uint32 by word."""
    offsets: Any
    """cupy int64, rows + 1: words before each row, and all."""


def number_words(text: pl.Series, tokenizer: Tokenizer, choice: Choice, mapping: str | None = None) -> NumberedWords:
    """Cut each row of a String series; null rows count as empty.

    Parameters
    ----------
    text
        String series, in host memory.
    tokenizer
        The tokenizer. Regexes and XML are matched on the host, the rest runs on the device.
    choice
        Selects and numbers words.
    mapping
        Method to find equal words: "hash" (a hash table), "sort" (sorting hashes). None: look-ups in the dictionary if
        there is one, otherwise "hash".

    Returns
    -------
    NumberedWords
        cupy arrays.

    Raises
    ------
    ValueError
        A row is not UTF-8, or ``mapping`` is unknown.
    EngineUnavailableError
        The device is out of memory or failed, or the text exceeds the kernels' 32-bit positions.

    """
    number = _NUMBER.get(mapping or "hash")
    if number is None:
        raise ValueError(f"mapping={mapping!r}: use {' or '.join(map(repr, _NUMBER))}")
    cut = cut_words(text, tokenizer)
    with device_errors(f"numbering {len(cut.starts):,} words"):
        if choice.known is not None and mapping is None:
            return _number_known(cut, choice.known())
        found = number(cut.text, cut.starts, cut.stops)
        words, numbers = choice.choose(found.distinct)
        offsets = cut.offsets
        if numbers is None:
            return NumberedWords(words, offsets, found.ids, (offsets[1:] - offsets[:-1]).view(np.uint64))
        import cupy

        ids = cupy.asarray(np.append(numbers, np.uint32(DELETED)))[found.ids]  # never empty
        lengths = segmented_sum(ids != np.uint32(DELETED), offsets)
        return NumberedWords(words, *_keep(offsets, ids), lengths)


def count_text_words(text: pl.Series, tokenizer: Tokenizer) -> tuple[pa.LargeStringArray, Any]:
    """Count the words of all rows; parameters and errors as above.

    Returns
    -------
    (LargeStringArray, cupy uint64 array)
        The distinct words in code point order, in host memory, and how often each occurs.

    """
    import cupy

    cut = cut_words(text, tokenizer)
    with device_errors(f"counting {len(cut.starts):,} words"):
        found = _number_by_hash(cut.text, cut.starts, cut.stops)
        counts = cupy.zeros(len(found.distinct), np.uint64)
        if len(found.ids):
            counts += cupy.bincount(found.ids, minlength=len(counts)).astype(np.uint64)
        return found.distinct, counts


def cut_words(text: pl.Series, tokenizer: Tokenizer) -> Words:
    """Find the words of each row of a String series on the current device; parameters and errors as above."""
    addresses, before, views = text_rows(text, "fewer rows at a time")
    with device_errors(f"cutting {before[-1]:,} bytes into words"):
        device_text = upload_rows(addresses, before)
        del views  # the addresses point into them until here
        if tokenizer.has_classes:
            words = _cut_at_classes(device_text, before.astype(np.uint32), tokenizer)
            if words is None:
                require_utf8(text)  # names the row
                raise AssertionError("a text that is not UTF-8 on the device is UTF-8 on the host")
            return words
        import cupy

        require_utf8(text)
        matches = found_words(text, tokenizer)
        offsets = np.append(0, matches.ends)
        starts = (matches.starts + np.repeat(before[:-1], np.diff(offsets))).astype(np.uint32)
        spans = (cupy.asarray(starts), cupy.asarray(starts + matches.lengths))
        return Words(device_text, *spans, cupy.asarray(offsets))


def _cut_at_classes(text: Any, row_offsets: Any, tokenizer: Tokenizer) -> Words | None:
    import cupy

    marked = mark_words(text, row_offsets, characters.classes(tokenizer.name))
    if marked is None:
        return None
    rows, ranks = len(row_offsets) - 1, rank(marked.start_bits)
    offsets = cupy.empty(rows + 1, np.int64)
    launch_each(
        "text_words", "count_before_rows", rows + 1, marked.row_offsets, rows, marked.start_bits, ranks, offsets
    )
    starts, stops = cupy.empty((2, int(ranks[-1])), np.uint32)  # synchronize!
    launch_each(
        *("text_words", "place_spans", len(marked.start_bits), marked.start_bits, ranks, marked.stop_bits),
        *(marked.words, starts, stops),
    )
    return Words(text, starts, stops, offsets)


def _number_known(cut: Words, known: Known) -> NumberedWords:
    """Look up each word; the words found get numbers in code point order."""
    import cupy

    count = len(cut.starts)
    found = look_up(known.trie, cut.text, cut.starts, cut.stops)
    places = cupy.empty(known.words + 1, np.uint32)
    places.data.memset_async(0xFF, int(places.nbytes))
    launch_each("text_words", "note_places", len(found), found, count, places)
    unknown = int(places[-1]) != _NONE  # synchronize!
    slots = cupy.flatnonzero(places[:-1] != np.uint32(_NONE)).astype(np.uint32)  # synchronize!
    own = places[slots]
    numbers, strings = number_strings(cut.text, slots, cut.starts[own], cut.stops[own], known.words + 1)
    numbers[-1] = UNKNOWN
    ids = cupy.empty(len(found), np.uint32)
    launch_each("intern", "map_slots", len(found), found, count, numbers, ids)
    lengths = (cut.offsets[1:] - cut.offsets[:-1]).view(np.uint64)
    return NumberedWords(
        known.vocabulary(strings), *(_keep(cut.offsets, ids) if unknown else (cut.offsets, ids)), lengths
    )


def _keep(offsets: Any, ids: Any) -> tuple[Any, Any]:
    """Drop words that are not kept."""
    kept = ids < UNKNOWN
    return exclusive_scan(kept)[offsets], compact(ids, kept)


def _number_by_hash(text: Any, starts: Any, stops: Any) -> Interned:
    return intern(text, starts, stops, leave_empty_out=False, by_count=False)


_NUMBER: dict[str, Callable[[Any, Any, Any], Interned]] = {"hash": _number_by_hash, "sort": number_by_sort}
