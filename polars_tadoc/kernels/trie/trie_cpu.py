"""Dictionaries as tries on the CPU: construction, words to ids, ids to words, prefix searches."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.trie.arrays import BLOCK, COUNTED, NO_PARENT, WORDS, Trie
from polars_tadoc.kernels.trie.trie_edges_cpu import (
    Edges,
    common_lengths,
    count_levels,
    fill_directory,
    fill_inner_words,
    list_edges,
    place_edges,
)
from polars_tadoc.kernels.trie.trie_phrases_cpu import write_tails
from polars_tadoc.kernels.trie.trie_spelling_cpu import (
    list_below,
    list_prefixes,
    spelled_lengths,
    top_of_prefix,
    write_words,
)
from polars_tadoc.kernels.trie.trie_words_cpu import LANES, look_up_words
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

GATHERS_SPELLED = True
"""For more ids than words, spelling all words once in trie order and gathering them is faster."""


def build_trie(offsets: Int64, data: UInt8) -> Trie:
    """Build the trie of words.

    Parameters
    ----------
    offsets
        int64, words + 1: offsets of the words in ``data``.
    data
        uint8: the words, distinct, in ascending byte order, without zero bytes.

    Returns
    -------
    Trie
        Read-only NumPy arrays. The same words give the same arrays.

    Raises
    ------
    ValueError
        A word is empty, not greater than the one before, or contains a zero byte; or there are too many words.

    """
    common = _common(offsets, data)
    starts, lengths, ends_word, labels, blocks = _edges(offsets, data, common)
    edges = len(starts)
    tailed = np.flatnonzero(lengths > 1)
    codes, code_ends, phrases, phrase_starts = write_tails(data, starts[tailed], lengths[tailed])
    if len(codes) >= NO_PARENT:
        raise ValueError(f"the words' tails take {len(codes):,} codes, too many for one dictionary")
    fill_directory(edges, blocks, len(codes), code_ends)
    inner = int(np.bitwise_count(blocks.reshape(-1, WORDS)[:, :2]).sum(dtype=np.int64))
    counts = max(1, -(-inner // COUNTED))
    inner_words, before = np.zeros(counts * (COUNTED // 64), np.uint64), np.zeros(counts, np.uint32)
    fill_inner_words(edges, blocks, ends_word, inner_words, before)
    longest = int(np.diff(offsets).max()) if len(common) else 0
    arrays = (labels, blocks, codes, code_ends, phrases, phrase_starts, inner_words, before)
    return Trie(len(common), edges, inner, longest, *(_on_large_pages(array) for array in arrays))


def load_trie(trie: Trie) -> Trie:
    """Make a trie resident for the kernels; on the CPU it already is."""
    return trie


def look_up(trie: Trie, data: UInt8, starts: npt.NDArray[Any], stops: npt.NDArray[Any]) -> UInt32:
    """Look words up.

    Parameters
    ----------
    trie
        The dictionary.
    data
        uint8, with eight spare bytes at the end.
    starts, stops
        Integers: start and end of each word in ``data``.

    Returns
    -------
    uint32 array
        Ids; ``trie.words`` for missing words.

    """
    starts, stops = (np.ascontiguousarray(array, np.int64) for array in (starts, stops))
    found = np.empty(len(starts), np.uint32)
    address = np.uint64(data.ctypes.data)

    def look(chunk: tuple[int, int]) -> None:
        lanes = np.empty((4, LANES), np.uint64)
        look_up_words(trie, address, starts, stops, *chunk, found, lanes)

    map_parallel(look, even_chunks(len(starts), 1 << 14))
    return found


def spell(trie: Trie, ids: UInt32) -> tuple[Int64, UInt8]:
    """Return the words of ids.

    Parameters
    ----------
    trie
        The dictionary.
    ids
        uint32; invalid ids give empty words.

    Returns
    -------
    (int64 array, uint8 array)
        Offsets of the words, ids + 1, and the words.

    """
    ids = np.ascontiguousarray(ids, np.uint32)
    chunks = even_chunks(len(ids), 1 << 13)
    lengths = np.empty(len(ids), np.int64)
    map_parallel(lambda chunk: spelled_lengths(trie, ids, *chunk, lengths), chunks)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    data = np.zeros(int(offsets[-1]), np.uint8)
    address = np.uint64(data.ctypes.data)
    map_parallel(lambda chunk: write_words(trie, ids, offsets, *chunk, address), chunks)
    return offsets, data


def common_prefixes(trie: Trie, text: bytes) -> UInt32:
    """Return the ids of the words that are prefixes of a text, shortest word first."""
    data = np.frombuffer(text + bytes(8), np.uint8)
    found = np.empty(min(len(text), trie.words), np.uint32)
    start = np.uint64(data.ctypes.data)
    count = list_prefixes(trie, start, start + np.uint64(len(text)), found)
    return found[:count]


def with_prefix(trie: Trie, prefix: bytes, limit: int) -> UInt32:
    """List the words with a prefix.

    Parameters
    ----------
    trie
        The dictionary.
    prefix
        Any bytes; all words have the empty prefix.
    limit
        Maximum number of words.

    Returns
    -------
    uint32 array
        Ids, in the byte order of the words.

    """
    top: Any = trie.edges
    if prefix:
        data, buffer = np.frombuffer(prefix + bytes(8), np.uint8), np.empty(len(prefix) + 8, np.uint8)
        start = np.uint64(data.ctypes.data)
        top = top_of_prefix(trie, start, start + np.uint64(len(prefix)), np.uint64(buffer.ctypes.data))
        if top >= trie.edges:
            return np.zeros(0, np.uint32)
    found = np.empty(max(0, min(limit, trie.words)), np.uint32)
    return found[: list_below(trie, np.uint64(top), found)]


def _on_large_pages(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Copy an array to memory with large pages: successive reads in a large trie are rarely on the same page.

    Looking up ten million runs of words is a fifth faster with them.
    """
    copy = allocate(len(array), array.dtype)[1]
    copy[:] = array
    copy.flags.writeable = False
    return copy


def _common(offsets: Int64, data: UInt8) -> UInt32:
    count = len(offsets) - 1
    common = np.zeros(count, np.uint32)
    chunks = even_chunks(count)
    wrong = [word for word in map_parallel(lambda c: common_lengths(offsets, data, *c, common), chunks) if word >= 0]
    if wrong:
        raise ValueError(f"word {wrong[0]:,} is empty or not greater than the one before it")
    if count and not data[offsets[0] : offsets[-1]].all():
        raise ValueError("a word contains a zero byte")
    if count >= 1 << 31:
        raise ValueError(f"{count:,} words are too many for one dictionary")
    return common


def _edges(offsets: Int64, data: UInt8, common: UInt32) -> Edges:
    count = len(common)
    longest = int(np.diff(offsets).max()) if count else 0
    words, ends = np.empty(2 * count, np.uint32), np.empty(2 * count, np.uint32)
    stack = np.zeros(longest + 1, np.uint32)
    first = list_edges(offsets, common, words, ends, stack)
    words, ends = words[first:], ends[first:]
    edges = len(words)
    levels, sizes = np.empty(edges, np.uint32), np.zeros(longest + 1, np.int64)
    count_levels(words, ends, common, stack, levels, sizes)
    number = max(1, -(-edges // BLOCK))
    placed = Edges(
        np.empty(edges, np.int64),
        np.empty(edges, np.uint32),
        np.empty(edges, np.uint8),
        np.zeros(number * BLOCK, np.uint8),
        np.zeros(number * WORDS, np.uint64),
    )
    place_edges(offsets, data, words, ends, levels, np.cumsum(sizes) - sizes, stack, placed)
    return placed
