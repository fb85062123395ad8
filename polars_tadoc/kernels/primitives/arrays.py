"""Small things that are done with NumPy's arrays before kernels get them."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """View an array as those in Arrow's memory are: kernels are compiled for one type, not two."""
    view = array.view()
    view.flags.writeable = False
    return view
