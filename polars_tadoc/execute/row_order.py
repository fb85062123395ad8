"""Puts the documents of several corpora into the order of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.primitives.lists import gather_lists, running_sum

Int64 = npt.NDArray[np.int64]


def in_row_order(
    rows: Sequence[Int64], offsets: Sequence[Int64], *values: tuple[type[np.generic], Sequence[npt.NDArray[Any]]]
) -> tuple[Any, ...]:
    """Join the lists of documents of several parts.

    Parameters
    ----------
    rows
        int64 by part and document: its row.
    offsets
        int64 by part, documents + 1: where each document's values start.
    values
        Type and arrays by part, one or more sets of them.

    Returns
    -------
    tuple of arrays
        int64 rows, ascending; int64 offsets, documents + 1; then each set of values.

    """
    joined = np.concatenate([np.zeros(0, np.int64), *rows])
    starts = running_sum(np.concatenate([np.zeros(0, np.int64), *(np.diff(own) for own in offsets)]))
    made = [np.concatenate([np.zeros(0, kind), *own]) for kind, own in values]
    if not (joined[1:] < joined[:-1]).any():
        return joined, starts, *made
    order = np.argsort(joined)
    gathered: list[Any] = [gather_lists(starts, own, order) for own in made]
    return joined[order], gathered[0][0], *(own for _, own in gathered)
