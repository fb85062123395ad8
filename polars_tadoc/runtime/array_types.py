"""NumPy arrays by the type of their elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt8 = npt.NDArray[np.uint8]
UInt16 = npt.NDArray[np.uint16]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]

Class = TypeVar("Class")


@dataclass_transform(eq_default=False, frozen_default=True)
def array_dataclass(cls: type[Class]) -> type[Class]:
    """Make a frozen dataclass whose instances are compared and hashed by identity: ``==`` of arrays is no bool.

    Examples
    --------
    >>> import numpy as np
    >>> @array_dataclass
    ... class Postings:
    ...     documents: np.ndarray
    >>> one = Postings(np.arange(2))
    >>> one == one, one == Postings(np.arange(2)), len({one})
    (True, False, 1)

    """
    return dataclass(frozen=True, eq=False)(cls)
