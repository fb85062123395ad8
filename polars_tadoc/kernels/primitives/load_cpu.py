"""Moves arrays to where the CPU's kernels read them, which is where they are already."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np
import numpy.typing as npt

from polars_tadoc.runtime.array_types import UInt32


def load_symbols(symbols: UInt32) -> UInt32:
    """Make symbols resident where the kernels run; here they are already."""
    return symbols


def load_array(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Make an array resident where the kernels run; here it is already."""
    return array


def to_host(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Return the array in host memory."""
    return array


def device_problem() -> str | None:
    """Tell why these kernels cannot run here: they always can, so None."""
    return None


def can_run() -> bool:
    """Tell whether these kernels can run here: they always can."""
    return True


def current_device() -> int | None:
    """Return the number of the device that calls of this thread run on: there is none."""
    return None


def device_errors(action: str) -> AbstractContextManager[None]:
    """Turn a device's errors into named ones: host memory reports none."""
    return nullcontext()


def release_memory() -> None:
    """Give unused memory back to the device: there is none."""
