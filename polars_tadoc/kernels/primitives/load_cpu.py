"""The CPU's versions of loading and copying arrays: host memory is where its kernels read them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np
import numpy.typing as npt

from polars_tadoc.runtime.array_types import UInt32


def load_symbols(symbols: UInt32) -> UInt32:
    """Make symbols resident for the kernels; on the CPU they already are."""
    return symbols


def load_array(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Make an array resident for the kernels; on the CPU it already is."""
    return array


def to_host(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Return the array in host memory."""
    return array


def device_problem() -> str | None:
    """Return why these kernels cannot run: None, as they always can."""
    return None


def can_run() -> bool:
    """Tell whether these kernels can run: they always can."""
    return True


def current_device() -> int | None:
    """Return the number of the device that this thread's calls run on: None on the CPU."""
    return None


def device_errors(action: str) -> AbstractContextManager[None]:
    """Convert a device's errors to named ones: the CPU has none."""
    return nullcontext()


def release_memory() -> None:
    """Return unused memory to the device: the CPU has none."""
