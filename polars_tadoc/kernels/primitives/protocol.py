"""What every engine supplies to bring arrays to its kernels and back. Resident arrays are ``Any``: NumPy or CuPy."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy.typing as npt
import pyarrow as pa

from polars_tadoc.runtime.array_types import UInt32


class PrimitiveKernels(Protocol):
    """Where arrays are resident, and the way there and back."""

    name: str
    """Name of the engine: "cpu" or "gpu"."""

    def device_problem(self) -> str | None:
        """Tell why the kernels cannot run here, in one sentence with the mend; None where they can."""

    def can_run(self) -> bool:
        """Tell whether the kernels can run here, where "auto" decides."""
        ...

    def current_device(self) -> int | None:
        """Return the number of the device that this thread's calls run on; None where there is none."""

    def device_errors(self, action: str) -> AbstractContextManager[None]:
        """Turn what a device reports within a ``with`` block into named errors."""
        ...

    def release_memory(self) -> None:
        """Give memory that no array takes any more back to the device."""

    def load_symbols(self, symbols: UInt32) -> Any:
        """Make symbols resident."""

    def load_array(self, array: npt.NDArray[Any]) -> Any:
        """Make an array of any shape and dtype resident."""

    def to_host(self, array: Any) -> npt.NDArray[Any]:
        """Return a resident array in host memory."""
        ...

    def to_arrow(self, arrays: Sequence[Any]) -> list[pa.Array]:
        """Return resident arrays of numbers, of one dimension, in Arrow's memory."""
        ...
