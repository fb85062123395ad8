"""A hash table of a dictionary's words on the device: tokens to ids.

Most words of a text have up to eight bytes and are in their slot; longer ones are compared with the words' bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.primitives.primitives_cuda import exclusive_scan
from polars_tadoc.kernels.primitives.upload_cuda import PADDING
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.device import even_blocks, launch, launch_each

_THREADS, _ALONE = 256, 64  # of word_table.cu

hash_defines: tuple[str, ...] = ()
"""Macros for compiling word_table.cu; tests make hashes collide."""


@array_dataclass
class WordTable:
    """Words and their slots, all on the device."""

    offsets: Any
    """cupy uint32, words + 1: offsets of the words in the bytes."""
    data: Any
    """cupy uint8: the words' bytes, and padding."""
    slots: Any
    """cupy uint64[capacity, 2]: a word's bytes or hash, its id and length."""
    longest: int
    """Bytes of the longest word."""
    nbytes: int
    """Bytes of device memory."""


def make_table(offsets: Any, data: Any) -> WordTable | None:
    """Make the table of some words, or None if that would take long, because very many words have the same hash.

    Parameters
    ----------
    offsets
        cupy int64, words + 1: offsets of the words in the bytes, which are fewer than 2^32.
    data
        cupy uint8 with :data:`~.upload.PADDING` bytes after the last word.

    """
    import cupy

    words = len(offsets) - 1
    longest = int((offsets[1:] - offsets[:-1]).max()) if words else 0  # synchronize!
    places, capacity = offsets.astype(np.uint32), 2 * words + 1
    slots = cupy.empty((capacity, 2), np.uint64)
    slots.data.memset_async(0xFF, int(slots.nbytes))
    table = WordTable(places, data, slots, longest, sum(int(array.nbytes) for array in (places, data, slots)))
    if words:
        given = (data, places, slots, capacity, *_long_list(words))
        launch_each("word_table", "insert_words", words, data, places, words, *given[2:], defines=hash_defines)
        if longest > _ALONE:
            launch("word_table", "insert_long_words", even_blocks(32 * words), _THREADS, *given, defines=hash_defines)
        if int(given[-1][1]):  # synchronize!
            return None
    return table


def find_words(table: WordTable, text: Any, starts: Any, stops: Any) -> Any:
    """Look up the tokens ``text[starts[i]:stops[i]]``; the host does not wait.

    Parameters
    ----------
    table
        From :func:`make_table`.
    text
        cupy uint8 with :data:`~.upload.PADDING` bytes after the last token.
    starts, stops
        cupy uint32, fewer than 2^32.

    Returns
    -------
    cupy uint32
        Number of each token's word, the number of words if the table does not have it.

    """
    import cupy

    tokens = len(starts)
    ids = cupy.empty(tokens, np.uint32)
    if tokens:
        given = (table.data, table.offsets, table.slots, len(table.slots))
        found = (len(table.offsets) - 1, ids, *_long_list(tokens if table.longest > _ALONE else 0))
        launch_each(
            *("word_table", "find_words", tokens, text, starts, stops, tokens, *given, table.longest, *found),
            defines=hash_defines,
        )
        if table.longest > _ALONE:
            launch(
                *("word_table", "find_long_words", even_blocks(32 * tokens), _THREADS, text, starts, stops),
                *(*given, *found),
                defines=hash_defines,
            )
    return ids


def copy_words(table: WordTable, ids: Any) -> tuple[Any, Any]:
    """Copy words contiguously.

    Parameters
    ----------
    table
        From :func:`make_table`.
    ids
        cupy uint32; invalid ids give empty words.

    Returns
    -------
    (cupy int64, cupy uint8)
        Offsets of the words, ids + 1; the bytes, padded.

    """
    import cupy

    words, count = len(table.offsets) - 1, len(ids)
    lengths = cupy.empty(len(ids), np.uint32)
    launch_each("word_table", "measure_words", len(ids), table.offsets, words, ids, count, lengths)
    offsets = exclusive_scan(lengths)
    size = int(offsets[-1])  # synchronize!
    data = cupy.empty(size + PADDING, np.uint8)
    data[size:] = 0
    launch_each("word_table", "copy_words", len(ids), table.data, table.offsets, words, ids, count, offsets, data)
    return offsets, data


def _long_list(most: int) -> tuple[Any, Any]:
    """Allocate the list of long words, and a kernel's state."""
    import cupy

    return cupy.empty(most, np.uint32), cupy.zeros(2, np.uint32)
