"""Small things that are done with NumPy's arrays before kernels get them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.runtime.array_types import Int64


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """View an array as those in Arrow's memory are: kernels are compiled for one type, not two."""
    view = array.view()
    view.flags.writeable = False
    return view


def sums_before(sizes: Int64) -> Int64:
    """Return where stretches of these sizes start, one after another, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
