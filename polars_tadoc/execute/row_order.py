"""Merges the documents of several corpora in the order of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.host.records.merge_counts import joined
from polars_tadoc.kernels.primitives.lists import gather_lists, running_sum
from polars_tadoc.runtime.array_types import Int64


def in_row_order(
    rows: Sequence[Int64], offsets: Sequence[Int64], *values: tuple[type[np.generic], Sequence[npt.NDArray[Any]]]
) -> tuple[Any, ...]:
    """Merge the documents of several parts.

    Parameters
    ----------
    rows
        int64 by part and document: row numbers.
    offsets
        int64 by part, documents + 1: offsets of each document's values.
    values
        Type and arrays by part, for one or more sets of values.

    Returns
    -------
    tuple of arrays
        int64 rows, ascending; int64 offsets, documents + 1; then each set of values.

    """
    numbers = joined(np.int64, rows)
    starts = running_sum(joined(np.int64, [np.diff(own) for own in offsets]))
    made = [joined(kind, own) for kind, own in values]
    if not (numbers[1:] < numbers[:-1]).any():
        return numbers, starts, *made
    order = np.argsort(numbers)
    gathered: list[Any] = [gather_lists(starts, own, order) for own in made]
    return numbers[order], gathered[0][0], *(own for _, own in gathered)
