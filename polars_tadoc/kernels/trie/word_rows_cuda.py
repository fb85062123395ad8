"""Copies the strings of a column to the device as words; short ones are inside their views."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.primitives.upload_cuda import PADDING, upload_rows
from polars_tadoc.runtime.arrow_memory import binary_views
from polars_tadoc.runtime.device import launch_each

_VIEW = 16
_MAX_BYTES = (1 << 32) - 2 * PADDING
"""Bytes of a part: positions have 32 bits, and kernels read slightly beyond a word."""
_WASTE = 4
"""Buffers are copied whole if they are at most this many times as long as the views."""


class Words(NamedTuple):
    """Strings on the device."""

    text: Any
    """cupy uint8, with padding."""
    starts: Any
    stops: Any
    """cupy uint32 by string."""


def upload_words(words: pl.Series) -> Iterator[Words]:
    """Copy a String series to the device in as many parts as needed; nulls become undefined words.

    Parameters
    ----------
    words
        String series.

    Yields
    ------
    Words
        The next rows.

    """
    array: Any = words.rechunk().to_arrow(compat_level=pl.CompatLevel.newest())
    if not len(array):
        return
    views, *buffers = (buffer or pa.py_buffer(b"") for buffer in array.buffers()[1:])
    addresses = np.array([views.address + _VIEW * array.offset, *(buffer.address for buffer in buffers)], np.uint64)
    sizes = np.array([_VIEW * len(array), *(buffer.size for buffer in buffers)], np.int64)
    if sizes.sum() < _MAX_BYTES and sizes[1:].sum() <= _WASTE * sizes[0]:
        yield _place_views(addresses, sizes)
    else:
        yield from _upload_gathered(words)


def _place_views(addresses: Any, sizes: Any) -> Words:
    import cupy

    before = np.concatenate([[0], np.cumsum(sizes)])
    text, rows = upload_rows(addresses, before), int(sizes[0]) // _VIEW
    starts, stops = cupy.empty(rows, np.uint32), cupy.empty(rows, np.uint32)
    bases, lengths = (cupy.asarray(np.append(array, 0).astype(np.uint32)) for array in (before[1:-1], sizes[1:]))
    launch_each("word_rows", "place_rows", rows, text, rows, bases, lengths, len(sizes) - 1, starts, stops)
    return Words(text, starts, stops)


def _upload_gathered(words: pl.Series) -> Iterator[Words]:
    import cupy

    addresses, lengths, views = binary_views(words)
    before = running_sum(lengths)
    first = 0
    while first < len(lengths):
        stop = max(first + 1, int(np.searchsorted(before, before[first] + _MAX_BYTES, side="right")) - 1)
        own = before[first : stop + 1] - before[first]
        text, offsets = upload_rows(addresses[first:stop], own), cupy.asarray(own.astype(np.uint32))
        yield Words(text, offsets[:-1], offsets[1:])
        first = stop
    del views  # the addresses point into them until here
