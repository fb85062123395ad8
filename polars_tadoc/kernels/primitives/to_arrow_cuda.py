"""Copies results to host memory owned by Arrow."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.primitives.to_arrow_cpu import to_arrow as in_arrow
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.device import device_errors
from polars_tadoc.runtime.parallel import map_parallel

_CHUNK = 1 << 22
"""Bytes per copy."""
_SMALL_CHUNK = 1 << 20
"""The same for small totals, so that several threads copy."""
_MAX_WORKERS = 12


def to_arrow(arrays: Sequence[Any]) -> list[pa.Array]:
    """Copy arrays of numbers to Arrow's memory through pinned memory, with several threads.

    Most of the time is the first touch of fresh memory, which threads share.

    Parameters
    ----------
    arrays
        One-dimensional cupy arrays.

    Returns
    -------
    list of pyarrow.Array
        The same values, of the same types.

    """
    return in_arrow(copied(arrays))


def copied(arrays: Sequence[Any]) -> list[npt.NDArray[Any]]:
    """Copy arrays of any shape as :func:`to_arrow` does; those returned view Arrow's memory."""
    with device_errors(f"copying {sum(int(array.nbytes) for array in arrays):,} bytes to the host"):
        import cupy

        given = [cupy.ascontiguousarray(array) for array in arrays]
        made = [allocate(array.size, array.dtype)[1] for array in given]
        large = sum(int(array.nbytes) for array in given) >= _MAX_WORKERS * _CHUNK
        each = _CHUNK if large else _SMALL_CHUNK
        _copy(
            [
                (array.data.ptr + first, view.ctypes.data + first, min(each, array.nbytes - first))
                for array, view in zip(given, made, strict=True)
                for first in range(0, array.nbytes, each)
            ],
            each,
        )
        return [view if array.ndim == 1 else view.reshape(array.shape) for array, view in zip(given, made, strict=True)]


def _copy(chunks: list[tuple[int, int, int]], most: int) -> None:
    """Copy bytes, ``most`` at most for each chunk, from device to host addresses."""
    import cupy

    workers = min(thread_count(), len(chunks), _MAX_WORKERS)
    stream, device = cupy.cuda.get_current_stream(), cupy.cuda.Device().id
    pinned = cupy.cuda.alloc_pinned_memory(max(1, 2 * workers) * most)  # the system takes long to pin a page

    def work(worker: int) -> None:
        with cupy.cuda.Device(device):
            own = chunks[worker::workers]
            copied = [cupy.cuda.Event(disable_timing=True) for _ in range(2)]
            for turn in range(len(own) + 1):
                if turn < len(own):  # the next chunk is copied while this thread moves the previous one
                    source, _, size = own[turn]
                    cupy.cuda.runtime.memcpyAsync(
                        staged(worker, turn), source, size, cupy.cuda.runtime.memcpyDeviceToHost, stream.ptr
                    )
                    copied[turn % 2].record(stream)
                if turn > 0:
                    _, target, size = own[turn - 1]
                    copied[(turn - 1) % 2].synchronize()  # synchronize!
                    ctypes.memmove(target, staged(worker, turn - 1), size)

    def staged(worker: int, turn: int) -> int:
        return int(pinned.ptr) + (2 * worker + turn % 2) * most

    map_parallel(work, range(workers))
