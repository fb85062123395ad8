"""Functions that every engine supplies for moving arrays to and from its kernels. Resident arrays: NumPy or CuPy."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy.typing as npt
import pyarrow as pa

from polars_tadoc.runtime.array_types import UInt32


class PrimitiveKernels(Protocol):
    """Where arrays are resident, and how they are copied."""

    name: str
    """Name of the engine: "cpu" or "gpu"."""

    def device_problem(self) -> str | None:
        """Return why the kernels cannot run here, in one sentence with the remedy; None if they can."""

    def can_run(self) -> bool:
        """Tell whether the kernels can run here, for the choice by "auto"."""
        ...

    def current_device(self) -> int | None:
        """Return the number of the device that this thread's calls run on; None without one."""

    def device_errors(self, action: str) -> AbstractContextManager[None]:
        """Convert errors of a device within a ``with`` block to named errors."""
        ...

    def release_memory(self) -> None:
        """Return unused memory to the device."""

    def load_symbols(self, symbols: UInt32) -> Any:
        """Make symbols resident."""

    def load_array(self, array: npt.NDArray[Any]) -> Any:
        """Make an array of any shape and dtype resident."""

    def to_host(self, array: Any) -> npt.NDArray[Any]:
        """Return a resident array in host memory."""
        ...

    def to_arrow(self, arrays: Sequence[Any]) -> list[pa.Array]:
        """Return resident one-dimensional arrays of numbers in Arrow's memory."""
        ...
