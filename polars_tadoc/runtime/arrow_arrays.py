"""Arrow arrays of numbers, bools and strings, made and read without pandas.

``pyarrow.array``, ``pyarrow.scalar`` and ``Array.to_numpy`` import pandas where it is installed: a second and 35 MB, in
which a keyboard interrupt is lost. No kernel imports this module: kernels are compiled again when what they import
changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.runtime.arrow_memory import lent, owned, view

__all__ = ["bools", "copied", "lent", "strings", "view"]


def copied(array: npt.NDArray[Any]) -> pa.Array:
    """Copy an array's numbers to an Arrow array."""
    return pa.Array.from_buffers(pa.from_numpy_dtype(array.dtype), len(array), [None, owned(array)])


def strings(values: Sequence[str]) -> pa.LargeStringArray:
    """Make an Arrow array of some strings."""
    made: Any = pl.Series(values, dtype=pl.String).to_arrow(compat_level=pl.CompatLevel.oldest())
    return made


def bools(array: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    """Copy an Arrow array of bools without nulls to NumPy."""
    if not len(array):
        return np.zeros(0, np.bool_)
    bits = np.unpackbits(np.frombuffer(array.buffers()[1], np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)].view(np.bool_)
