"""Arrow memory: reads Polars' strings where they stand, allocates what Polars is to own.

Polars frees buffers on its own threads, sometimes while the interpreter waits for it with the GIL held. A
buffer that NumPy owns needs the GIL to be freed: the two would wait for each other. So whatever goes to
Polars lies in Arrow's own memory.
"""

from __future__ import annotations

import ctypes
import mmap
from functools import cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

ARROW_ERRORS = (pa.ArrowException, OSError, UnicodeDecodeError)
"""What PyArrow raises of data that is damaged; the last where names are no text."""


def allocate(count: int, dtype: npt.DTypeLike) -> tuple[pa.Buffer, npt.NDArray[Any]]:
    """Allocate an Arrow buffer, contents undefined; returns it and an array over it."""
    size = np.dtype(dtype).itemsize * count
    buffer = pa.allocate_buffer(size)
    _ask_for_large_pages(buffer.address, size)
    return buffer, np.frombuffer(buffer, dtype) if size else np.zeros(0, dtype)


_LARGE_PAGE = 2 << 20


def _ask_for_large_pages(address: int, size: int) -> None:
    """Let Linux fill fresh memory page by large page: the first touch of a page is most of what writing a result costs.

    It does nothing where the system has no such pages, or gives them to all.
    """
    first = -(-address // _LARGE_PAGE) * _LARGE_PAGE
    last = (address + size) // _LARGE_PAGE * _LARGE_PAGE
    if last > first and hasattr(mmap, "MADV_HUGEPAGE"):
        _madvise()(first, last - first, mmap.MADV_HUGEPAGE)  # its failure does no harm


@cache
def _madvise() -> Any:
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return madvise


def buffer_under(array: npt.NDArray[Any]) -> pa.Buffer | None:
    """Return the Arrow buffer that an array is the whole of, as :func:`allocate` makes it; None where it is of none."""
    buffer = array.base
    whole = isinstance(buffer, pa.Buffer) and (buffer.address, buffer.size) == (array.ctypes.data, array.nbytes)
    return buffer if whole else None


def lent(array: npt.NDArray[Any]) -> pa.Array:
    """View an array's numbers as Arrow's, for Arrow's own calls: nothing of it may come to Polars.

    ``pyarrow.array`` would import pandas.
    """
    buffer = pa.py_buffer(np.ascontiguousarray(array))
    return pa.Array.from_buffers(pa.from_numpy_dtype(array.dtype), len(array), [None, buffer])


def owned(array: npt.NDArray[Any]) -> pa.Buffer:
    """Copy an array into an Arrow buffer."""
    buffer, copy = allocate(len(array), array.dtype)
    copy[:] = array
    return buffer


def view(array: pa.Array) -> npt.NDArray[Any]:
    """Look at the numbers of an Arrow array that holds some, and no nulls, without a copy.

    ``array.to_numpy()`` imports pandas, during which a keyboard interrupt is lost.
    """
    dtype = np.dtype(str(array.type))
    numbers = np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)
    numbers.flags.writeable = False
    return numbers


def binary_views(
    series: pl.Series,
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], object]:
    """Address and length in bytes of each string or binary of a series, without copying any.

    Returns
    -------
    (uint64 array, uint32 array, object)
        Addresses, lengths, and the Arrow array that owns the bytes: keep it while addresses are used.
        A null counts as empty.

    """
    nothing: Any = "" if series.dtype == pl.String else b""
    filled = series.fill_null(nothing) if series.null_count() else series  # which copies, needed or not
    array: Any = filled.rechunk().to_arrow(compat_level=pl.CompatLevel.newest())
    count = len(array)
    if count == 0:
        return np.zeros(0, np.uint64), np.zeros(0, np.uint32), array
    buffers = array.buffers()
    views = np.frombuffer(buffers[1], np.uint32)[4 * array.offset : 4 * (array.offset + count)].reshape(count, 4)
    lengths = views[:, 0].copy()  # of one row, too: kernels are compiled for arrays that can be written
    inline = np.uint64(buffers[1].address + 16 * array.offset + 4) + np.arange(count, dtype=np.uint64) * np.uint64(16)
    data = np.array([0 if buffer is None else buffer.address for buffer in buffers[2:]] or [0], np.uint64)
    long = lengths > 12  # shorter ones stand in the view itself
    outside = data[np.where(long, views[:, 2], 0)] + views[:, 3]
    return np.where(long, outside, inline), lengths, array


def frame_of(table: pa.Table) -> pl.DataFrame:
    """Give a table that came from a file, and was validated, to Polars.

    Raises
    ------
    pyarrow.ArrowInvalid
        Polars does not have its types; or its schema is damaged, at which Polars panics.

    """
    try:
        frame = cast(pl.DataFrame, pl.from_arrow(table))
        frame.columns = table.column_names  # Polars gives a column without a name one
    except (pa.ArrowException, pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError, TypeError) as error:
        raise pa.ArrowInvalid(f"its columns are none that Polars has: {error}") from None
    return frame


def copied_strings(words: pl.Series) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Copy a String series into Arrow's older form.

    Returns
    -------
    (uint8 array, int64 array)
        The bytes of all strings and eight spare ones, and where each string starts; a null's bytes may be any.

    """
    strings: Any = words.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    if len(strings) == 0:
        return np.zeros(8, np.uint8), np.zeros(1, np.int64)
    offsets = np.frombuffer(strings.buffers()[1], np.int64, len(strings) + 1, 8 * strings.offset)
    size = int(offsets[-1] - offsets[0])
    data = np.zeros(size + 8, np.uint8)
    if size:
        data[:size] = np.frombuffer(strings.buffers()[2], np.uint8, size, int(offsets[0]))
    return data, offsets - offsets[0]
