"""Makes long result columns in Arrow's memory with several threads, because the first touch of memory is slow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from polars_tadoc.runtime.array_types import Int64
from polars_tadoc.runtime.arrow_memory import allocate, buffer_under
from polars_tadoc.runtime.jit import kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel


@kernel
def _spread(values: Any, offsets: Any, document: Any, first: Any, stop: Any, to: Any) -> None:
    at = first
    while at < stop:
        end = min(stop, offsets[document + 1])
        value = values[document]
        for i in range(at, end):
            to[i] = value
        at = max(at, end)
        document += 1


def spread(values: npt.NDArray[np.integer], offsets: Int64) -> pa.Array:
    """Repeat each document's value for each of its terms.

    Parameters
    ----------
    values
        uint32 or uint64 by document.
    offsets
        int64, documents + 1, from 0: offsets of each one's terms.

    Returns
    -------
    pyarrow.Array
        Of the values' type, with the last offset as its length, in Arrow's own memory.

    Examples
    --------
    >>> spread(np.array([7, 8, 9], np.uint32), np.array([0, 2, 2, 3], np.int64)).to_pylist()
    [7, 7, 9]

    """
    total = int(offsets[-1])
    buffer, spread_out = allocate(total, values.dtype)
    chunks = even_chunks(total, each=4) if total else []

    def fill(chunk: tuple[int, int]) -> None:
        document = int(np.searchsorted(offsets, chunk[0], side="right")) - 1
        _spread(values, offsets, document, *chunk, spread_out)

    map_parallel(fill, chunks)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), total, [None, buffer])


def to_arrow(arrays: Sequence[npt.NDArray[Any]]) -> list[pa.Array]:
    """Copy one-dimensional arrays of numbers to Arrow's memory; arrays already in it are not copied.

    Examples
    --------
    >>> to_arrow([np.arange(3, dtype=np.uint32)])[0].to_pylist()
    [0, 1, 2]

    """
    return [_to_arrow(array) for array in arrays]


def _as_made(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array that one with another shape and back is a view of, or the array itself."""
    base = array.base
    if not isinstance(base, np.ndarray) or not array.flags.c_contiguous:
        return array
    same = (base.dtype, base.shape, base.ctypes.data) == (array.dtype, array.shape, array.ctypes.data)
    return base if same else array


def _to_arrow(array: npt.NDArray[Any]) -> pa.Array:
    buffer = buffer_under(_as_made(array))
    if buffer is None:
        buffer, copy = allocate(len(array), array.dtype)

        def fill(chunk: tuple[int, int]) -> None:
            copy[slice(*chunk)] = array[slice(*chunk)]

        map_parallel(fill, even_chunks(len(array)))
    return pa.Array.from_buffers(pa.from_numpy_dtype(array.dtype), len(array), [None, buffer])
