"""Arrow memory: reads Polars' strings in place, and allocates buffers that Polars will own.

Polars frees buffers on its own threads, sometimes while the interpreter waits for it with the GIL held. A buffer that
NumPy owns needs the GIL to be freed, which would be a deadlock. So buffers for Polars are in Arrow's own memory.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from functools import cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.runtime.parallel import even_chunks, map_parallel

ARROW_ERRORS = (pa.ArrowException, OSError, UnicodeDecodeError)
"""PyArrow's errors for damaged data; the last one if names are not UTF-8."""


def not_of_the_file(error: BaseException) -> bool:
    """Tell errors of the system and of signal handlers (out of memory, a time limit) from those of damaged data."""
    is_arrows = type(error) is OSError and not error.errno
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and not is_arrows)


def allocate(count: int, dtype: npt.DTypeLike) -> tuple[pa.Buffer, npt.NDArray[Any]]:
    """Allocate an uninitialised Arrow buffer; return it and an array over it."""
    size = np.dtype(dtype).itemsize * count
    buffer = pa.allocate_buffer(size)
    _ask_for_large_pages(buffer.address, size)
    return buffer, np.frombuffer(buffer, dtype) if size else np.zeros(0, dtype)


_LARGE_PAGE = 2 << 20

_MANY_PAGES = 32 * _LARGE_PAGE
"""Bytes from which on large pages are worth the memory."""

_COPIED = 1 << 18
"""Items, at least, that a thread copies."""


def _ask_for_large_pages(address: int, size: int) -> None:
    """Let Linux use huge pages for fresh memory: first touches of pages are most of the cost of writing a result.

    Does nothing if the system has no huge pages, or uses them everywhere.
    """
    first = -(-address // _LARGE_PAGE) * _LARGE_PAGE
    last = (address + size) // _LARGE_PAGE * _LARGE_PAGE
    if last > first and hasattr(mmap, "MADV_HUGEPAGE"):
        _madvise()(first, last - first, mmap.MADV_HUGEPAGE)  # failure does no harm


def touched_in_part(count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Allocate an uninitialised array of which little may be touched: Linux gives it small pages unless it is large.

    NumPy asks for large pages from 4 MB on: two megabytes are allocated where a byte is written.
    """
    made: npt.NDArray[Any] = np.empty(count, dtype)
    if made.nbytes < _MANY_PAGES and hasattr(mmap, "MADV_NOHUGEPAGE"):
        first = -(-made.ctypes.data // mmap.PAGESIZE) * mmap.PAGESIZE
        last = (made.ctypes.data + made.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
        if last > first:
            _madvise()(first, last - first, mmap.MADV_NOHUGEPAGE)  # failure does no harm
    return made


def drop_pages(values: npt.NDArray[Any]) -> None:
    """Return the pages of an array in this process' own memory to Linux at once; the values are lost."""
    first = -(-values.ctypes.data // mmap.PAGESIZE) * mmap.PAGESIZE
    last = (values.ctypes.data + values.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if last > first and sys.platform == "linux":
        _madvise()(first, last - first, mmap.MADV_DONTNEED)  # failure does no harm


@cache
def _madvise() -> Any:
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return madvise


def buffer_under(array: npt.NDArray[Any]) -> pa.Buffer | None:
    """Return the Arrow buffer of an array made by :func:`allocate`; None for other arrays."""
    buffer = array.base
    whole = isinstance(buffer, pa.Buffer) and (buffer.address, buffer.size) == (array.ctypes.data, array.nbytes)
    return buffer if whole else None


def lent(array: npt.NDArray[Any]) -> pa.Array:
    """View an array's numbers as an Arrow array, for Arrow's own calls: it must not be passed to Polars.

    ``pyarrow.array`` would import pandas.
    """
    buffer = pa.py_buffer(np.ascontiguousarray(array))
    return pa.Array.from_buffers(pa.from_numpy_dtype(array.dtype), len(array), [None, buffer])


def owned(array: npt.NDArray[Any]) -> pa.Buffer:
    """Copy an array into an Arrow buffer."""
    buffer, copy = allocate(len(array), array.dtype)
    map_parallel(lambda own: np.copyto(copy[slice(*own)], array[slice(*own)]), even_chunks(len(array), _COPIED))
    return buffer


def shared(array: npt.NDArray[Any]) -> pa.Buffer:
    """Return the Arrow buffer of an array made by :func:`allocate`, which nothing may change any more, or a copy."""
    buffer = buffer_under(array)
    return owned(array) if buffer is None else buffer


def view(array: pa.Array) -> npt.NDArray[Any]:
    """View the numbers of an Arrow array without nulls, without a copy.

    ``array.to_numpy()`` imports pandas, during which a keyboard interrupt is lost.
    """
    dtype = np.dtype(str(array.type))
    numbers = np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)
    numbers.flags.writeable = False
    return numbers


def binary_views(series: pl.Series) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], object]:
    """Address and length in bytes of each string or binary of a series, without copying any.

    Returns
    -------
    (uint64 array, uint32 array, object)
        Addresses, lengths, and the Arrow array that owns the bytes: keep it while addresses are used. A null has
        length 0.

    """
    series = series.alias("text")  # Polars reads some names as patterns, and Arrow none with a NUL
    nothing: Any = "" if series.dtype == pl.String else b""
    filled = series.fill_null(nothing) if series.null_count() else series  # it copies, needed or not
    array: Any = filled.rechunk().to_arrow(compat_level=pl.CompatLevel.newest())
    count = len(array)
    if count == 0:
        return np.zeros(0, np.uint64), np.zeros(0, np.uint32), array
    buffers = array.buffers()
    views = np.frombuffer(buffers[1], np.uint32)[4 * array.offset : 4 * (array.offset + count)].reshape(count, 4)
    lengths = views[:, 0].copy()  # of one row, too: kernels are compiled for arrays that can be written
    inline = np.uint64(buffers[1].address + 16 * array.offset + 4) + np.arange(count, dtype=np.uint64) * np.uint64(16)
    data = np.array([0 if buffer is None else buffer.address for buffer in buffers[2:]] or [0], np.uint64)
    long = lengths > 12  # shorter ones are stored in the view itself
    outside = data[np.where(long, views[:, 2], 0)] + views[:, 3]
    return np.where(long, outside, inline), lengths, array


def string_sizes(text: pl.Series) -> npt.NDArray[np.int64]:
    """Return the bytes of each string of a series, 0 for null."""
    if len(text) == 1:  # Polars' expressions copy the string of such a series: three times its size
        return binary_views(text)[1].astype(np.int64)
    return text.str.len_bytes().fill_null(0).cast(pl.Int64).to_numpy()


def read_batches(data: Any) -> pa.Table:
    """Read a file in Arrow's IPC format, its record batches in parallel.

    Raises
    ------
    pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError
        It is damaged, or PyArrow lacks its types.

    """
    file = pa.ipc.open_file(data)
    count = file.num_record_batches
    if count < 2 or "dictionary" in str(file.schema.types):  # readers would make a dictionary each
        return file.read_all()

    def read(chunk: tuple[int, int]) -> list[pa.RecordBatch]:
        own = pa.ipc.open_file(data)
        return [own.get_batch(number) for number in range(*chunk)]

    parts = map_parallel(read, even_chunks(count, 1))
    return pa.Table.from_batches([batch for part in parts for batch in part], file.schema)


def frame_of(table: pa.Table) -> pl.DataFrame:
    """Convert a table from a file, after validation, to Polars.

    Raises
    ------
    pyarrow.ArrowInvalid
        Polars lacks its types; or its schema is damaged, which makes Polars panic.

    """
    try:
        frame = cast(pl.DataFrame, pl.from_arrow(table))
        frame.columns = table.column_names  # Polars names a column without a name
    except (pa.ArrowException, pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError, TypeError) as error:
        raise pa.ArrowInvalid(f"Polars does not support its columns: {error}") from None
    return frame


def copied_strings(words: pl.Series) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Copy a String series into Arrow's offset form.

    Returns
    -------
    (uint8 array, int64 array)
        The bytes of all strings plus eight bytes of padding, and the offset of each string; bytes of nulls are
        arbitrary.

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
