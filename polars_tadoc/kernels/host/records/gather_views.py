"""Gathers strings by id as Arrow's 16-byte string views; the bytes of the strings are shared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from polars_tadoc.config import thread_count
from polars_tadoc.runtime.array_types import UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.jit import kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

FEW = 1 << 15
"""Up to this many strings, NumPy gathers: no kernel needs to be loaded."""

MAX_CHUNK = 1 << 22
"""Strings per thread between two polls for interrupts."""


def gather_views(strings: Any, ids: UInt32) -> Any:
    """Return the string of each id.

    Parameters
    ----------
    strings
        ``string_view`` array without nulls.
    ids
        uint32, each below ``len(strings)``; need not be contiguous.

    Returns
    -------
    pyarrow.StringViewArray
        Shares the bytes of ``strings``.

    """
    buffers = strings.buffers()
    buffer, made = allocate(2 * len(ids), np.uint64)
    if len(ids):
        views = np.frombuffer(buffers[1], np.uint64)[2 * strings.offset :].reshape(-1, 2)
        out = made.reshape(-1, 2)
        if len(ids) <= FEW:
            np.take(views, ids, axis=0, out=out, mode="clip")
        else:
            each = -(-len(ids) // (MAX_CHUNK * thread_count()))
            map_parallel(
                lambda chunk: _gather(views, np.ascontiguousarray(ids[slice(*chunk)]), out[slice(*chunk)]),
                even_chunks(len(ids), each=each),
            )
    return pa.Array.from_buffers(pa.string_view(), len(ids), [None, buffer, *buffers[2:]])


@kernel
def _gather(views: UInt64, ids: UInt32, out: UInt64) -> None:
    for i in range(len(ids)):
        word = ids[i]
        out[i, 0] = views[word, 0]
        out[i, 1] = views[word, 1]
