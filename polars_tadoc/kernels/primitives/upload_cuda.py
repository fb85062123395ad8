"""Copies the rows of a String series to the device, concatenated."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.config import thread_count
from polars_tadoc.runtime.addresses import copy_bytes
from polars_tadoc.runtime.array_types import Int64, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.parallel import map_parallel

PADDING = 32
"""Readable bytes after the text: kernels load eight at a time."""

_CHUNK = 1 << 22
"""Bytes per copy. 118 MB took 15.5 ms in chunks of 256 KiB, 6.8 of 1 MiB, 3.8 of 4 MiB, 4.7 of 8 MiB; the driver took
6.9 ms from pageable memory and 2.1 from pinned memory (H200, 16 cores, ``python -m benchmarks.gpu_tokenize --together
--variants``)."""
_MAX_WORKERS = 8


def upload_rows(addresses: UInt64, before: Int64, after: Any = None) -> Any:
    """Copy rows to the device through pinned memory, with several threads.

    The driver copies pageable memory at a fraction of the bus's rate.

    Parameters
    ----------
    addresses
        Address of each row's bytes in host memory; the caller keeps them alive.
    before
        Number of bytes before each row, and in total; length rows + 1.
    after
        A stream, if it is not the current one: its kernels may still read memory that was freed before.

    Returns
    -------
    cupy uint8
        The rows' concatenated bytes, and ``PADDING`` zeros.

    """
    import cupy

    size = int(before[-1])
    stream, device = cupy.cuda.get_current_stream(), cupy.cuda.Device().id
    text = cupy.empty(size + PADDING, np.uint8)
    if after is not None:
        stream.wait_event(after.record())
    text[size:] = 0
    chunks = list(pairwise([*range(0, size, _CHUNK), size]))
    workers = min(thread_count(), len(chunks), _MAX_WORKERS)
    pinned = cupy.cuda.alloc_pinned_memory(max(1, 2 * workers) * _CHUNK)

    def work(worker: int) -> None:
        with cupy.cuda.Device(device):
            copied = [cupy.cuda.Event(disable_timing=True) for _ in range(2)]
            for turn, (first, stop) in enumerate(chunks[worker::workers]):
                staged = pinned.ptr + (2 * worker + turn % 2) * _CHUNK
                copied[turn % 2].synchronize()
                _gather_bytes(addresses, before, first, stop, staged)
                cupy.cuda.runtime.memcpyAsync(
                    text.data.ptr + first, staged, stop - first, cupy.cuda.runtime.memcpyHostToDevice, stream.ptr
                )
                copied[turn % 2].record(stream)
            for event in copied:
                event.synchronize()  # synchronize! the pinned memory returns to its pool

    map_parallel(work, range(workers))
    return text


@njit
def _gather_bytes(addresses: UInt64, before: Int64, first: int, stop: int, to: int) -> None:
    """Copy bytes ``first`` to ``stop`` of the concatenated rows to an address.

    ``before`` has the number of bytes before each row, and in total; length rows + 1.
    """
    row = np.searchsorted(before, first, side="right") - 1
    target = nb.uint64(to)
    at = first
    while at < stop:
        source = addresses[row] + nb.uint64(at - before[row])
        count = nb.uint64(min(stop, before[row + 1]) - at)
        copy_bytes(target, source, count)
        target += count
        at += nb.int64(count)
        row += 1
