"""Copies the rows of a String series to the device, one after another."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.cpu.gather import gather_bytes
from polars_tadoc.kernels.cpu.parallel import map_parallel

PADDING = 32
"""Readable bytes behind the text: kernels load eight at a time."""

_CHUNK = 1 << 22
"""Bytes that are copied at once: of 118 MB, 0.25 MiB at a time took 17 ms, 1 MiB 8, 4 MiB 4.3 on an H200, where
pageable memory took 13.5 and pinned memory 2.1 (``benchmarks/gpu_tokenize.py``)."""
_MOST_WORKERS = 8


def upload_rows(addresses: npt.NDArray[np.uint64], before: npt.NDArray[np.int64]) -> Any:
    """Copy rows to the device through pinned memory, several threads at a time.

    The driver copies pageable memory by itself at a fraction of the bus' rate.

    Parameters
    ----------
    addresses
        Where each row's bytes stand in host memory; the caller keeps them alive.
    before
        Bytes before each row, and all; length rows + 1.

    Returns
    -------
    cupy uint8
        The rows' bytes one after another, and ``PADDING`` zeros.

    """
    import cupy

    size = int(before[-1])
    text = cupy.empty(size + PADDING, np.uint8)
    text[size:] = 0
    chunks = list(pairwise([*range(0, size, _CHUNK), size]))
    workers = min(thread_count(), len(chunks), _MOST_WORKERS)
    stream, device = cupy.cuda.get_current_stream(), cupy.cuda.Device().id
    pinned = cupy.cuda.alloc_pinned_memory(max(1, 2 * workers) * _CHUNK)

    def work(worker: int) -> None:
        with cupy.cuda.Device(device):
            copied = [cupy.cuda.Event(disable_timing=True) for _ in range(2)]
            for turn, (first, stop) in enumerate(chunks[worker::workers]):
                staged = pinned.ptr + (2 * worker + turn % 2) * _CHUNK
                copied[turn % 2].synchronize()
                gather_bytes(addresses, before, first, stop, staged)
                cupy.cuda.runtime.memcpyAsync(
                    text.data.ptr + first, staged, stop - first, cupy.cuda.runtime.memcpyHostToDevice, stream.ptr
                )
                copied[turn % 2].record(stream)
            for event in copied:
                event.synchronize()  # synchronize! the pinned memory goes back to its pool

    map_parallel(work, range(workers))
    return text
