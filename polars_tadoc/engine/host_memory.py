"""Counts what a GPU takes of the host's memory towards a memory limit, before CuPy is imported.

``import cupy`` and a CUDA context take some hundred MB of the process, which no kernel of ours allocates. A call that
may not take so much runs on the CPU, or is refused where the GPU was asked for by name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from polars_tadoc.config import settings
from polars_tadoc.errors import LimitExceededError

GPU_BYTES = 400_000_000
"""Host memory that CuPy, a CUDA context and the compiler of kernels take at most, about
(``python -m benchmarks.memory_limits FILES --engines auto gpu`` prints it)."""

WORK_SHARE = 2
"""With "auto" the GPU is taken where what it takes is at most such a share of the limit."""


def share_out(engine: str | None, limit: int, call: str) -> tuple[str, int]:
    """Return the engine that a call under a memory limit runs on, and what of the limit is left for its work.

    The limit alone decides: a call runs on the same engine whether CuPy was imported before or not.

    Parameters
    ----------
    engine
        As the call was asked; None for what ``tadoc.Config`` says.
    limit
        Bytes.
    call
        What messages begin with.

    Returns
    -------
    (str, int)
        "cpu" with the whole limit, or what was asked with what CuPy leaves of it.

    Raises
    ------
    LimitExceededError
        "gpu" was asked for, and CuPy alone takes more than the limit.

    """
    asked = settings().engine if engine is None else engine
    if asked == "gpu":
        if limit <= GPU_BYTES:
            raise LimitExceededError(
                f'{call}: engine="gpu": CuPy and a CUDA context take about {GPU_BYTES:,} bytes of the host\'s memory, '
                f'memory_limit={limit:,} is not more; raise it, or use engine="cpu"'
            )
        return asked, limit - GPU_BYTES
    if asked == "auto" and limit >= WORK_SHARE * GPU_BYTES and _is_installed():
        return asked, limit - GPU_BYTES
    return "cpu", limit


@contextmanager
def telling_share(limit: int, room: int) -> Iterator[None]:
    """Add to what a ``with`` block refuses that a GPU leaves ``room`` of a limit, where it does not leave all."""
    try:
        yield
    except LimitExceededError as error:
        if room == limit:
            raise
        raise LimitExceededError(
            f"{error} (memory_limit={limit:,} leaves so much beside CuPy and its CUDA context, about "
            f'{limit - room:,} bytes; engine="cpu" has all of it)'
        ) from None


def _is_installed() -> bool:
    """Tell whether there is a CuPy, without importing it."""
    return find_spec("cupy") is not None if "cupy" not in sys.modules else sys.modules["cupy"] is not None
