"""Copies arrays to the device and back, and names the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.primitives.to_arrow_cuda import copied
from polars_tadoc.runtime.array_types import UInt32
from polars_tadoc.runtime.device import device_errors

STAGED = 4 << 20
"""Bytes from which arrays are copied to the host through pinned memory, several threads at a time."""


def load_symbols(symbols: UInt32) -> Any:
    """Copy symbols to the device.

    Parameters
    ----------
    symbols
        uint32, any length.

    Returns
    -------
    cupy uint32
        The same symbols.

    """
    with device_errors(f"copying {len(symbols):,} symbols"):
        import cupy

        return cupy.asarray(np.ascontiguousarray(symbols, np.uint32))


def load_array(array: npt.NDArray[Any]) -> Any:
    """Copy an array to the device.

    Parameters
    ----------
    array
        Any shape and dtype.

    Returns
    -------
    cupy array
        The same values.

    """
    with device_errors(f"copying {array.nbytes:,} bytes"):
        import cupy

        return cupy.asarray(np.ascontiguousarray(array))


def to_host(array: Any) -> npt.NDArray[Any]:
    """Copy a device array to host memory.

    Parameters
    ----------
    array
        cupy array of any shape and dtype.

    Returns
    -------
    numpy array
        The same values.

    """
    if array.nbytes >= STAGED:
        return copied([array])[0]
    with device_errors("copying a result to the host"):
        return array.get()  # type: ignore[no-any-return]  # synchronize!


def current_device() -> int:
    """Return the number of the device that this thread's calls run on."""
    with device_errors("asking for the device"):
        import cupy

        return int(cupy.cuda.runtime.getDevice())
