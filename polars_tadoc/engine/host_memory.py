"""Counts a GPU's use of host memory towards a memory limit, before CuPy is imported.

``import cupy`` and a CUDA context take some hundred MB of the process, outside our kernels. A call whose limit does not
allow that runs on the CPU, or raises if the GPU was asked for by name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from polars_tadoc.config import settings
from polars_tadoc.errors import LimitExceededError

GPU_BYTES = 400_000_000
"""Maximum host memory of CuPy, a CUDA context and the kernel compiler, approximately (printed by
``python -m benchmarks.memory_limits FILES --engines auto gpu``)."""

WORK_SHARE = 2
"""Maximum share of the limit that a GPU may take with "auto"."""


def share_out(engine: str | None, limit: int, call: str) -> tuple[str, int]:
    """Return the engine of a call under a memory limit, and the part of the limit left for its work.

    Only the limit decides: a call runs on the same engine whether CuPy was imported before or not.

    Parameters
    ----------
    engine
        The ``engine=`` argument; None for the default in ``tadoc.Config``.
    limit
        Bytes.
    call
        Start of messages.

    Returns
    -------
    (str, int)
        "cpu" with the whole limit, or the given engine with the rest that CuPy leaves.

    Raises
    ------
    LimitExceededError
        "gpu" was asked for, and CuPy alone exceeds the limit.

    """
    asked = settings().engine if engine is None else engine
    if asked == "gpu":
        if limit <= GPU_BYTES:
            raise LimitExceededError(
                f'{call}: engine="gpu": CuPy and a CUDA context take about {GPU_BYTES:,} bytes of host memory, '
                f'but memory_limit={limit:,}; raise it, or use engine="cpu"'
            )
        return asked, limit - GPU_BYTES
    if asked == "auto" and limit >= WORK_SHARE * GPU_BYTES and _is_installed():
        return asked, limit - GPU_BYTES
    return "cpu", limit


@contextmanager
def telling_share(limit: int, room: int) -> Iterator[None]:
    """Add to errors of a ``with`` block that a GPU leaves only ``room`` of a limit, if it does not leave all."""
    try:
        yield
    except LimitExceededError as error:
        if room == limit:
            raise
        raise LimitExceededError(
            f"{error} (memory_limit={limit:,} leaves this much beside CuPy and its CUDA context, about "
            f'{limit - room:,} bytes; engine="cpu" has all of it)'
        ) from None


def _is_installed() -> bool:
    """Tell whether CuPy is installed, without importing it."""
    return find_spec("cupy") is not None if "cupy" not in sys.modules else sys.modules["cupy"] is not None
