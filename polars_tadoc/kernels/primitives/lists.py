"""Concatenated lists: offsets, and reordering."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner, kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks

_SUMMED = 1 << 17
"""Minimum sizes that a thread adds up: most of the time is the first touch of the result's memory."""

_MANY = 1 << 20
"""Values copied between two interrupt checks."""

_FILLED = 1 << 22
"""Values written to a new array between two interrupt checks: the system has to make its pages."""


def running_sum(sizes: npt.NDArray[np.integer]) -> Int64:
    """Return the prefix sums and the total: int64, one more than there are sizes."""
    sums = np.empty(len(sizes) + 1, np.int64)
    sums[0] = 0
    chunks = even_chunks(len(sizes), _SUMMED)
    map_parallel(lambda own: np.cumsum(sizes[slice(*own)], out=sums[own[0] + 1 : own[1] + 1]), chunks)
    if len(chunks) > 1:
        ends = np.cumsum([sums[stop] for _, stop in chunks])
        later = [(sums[first + 1 : stop + 1], end) for (first, stop), end in zip(chunks[1:], ends, strict=False)]
        map_parallel(lambda own: np.add(own[0], own[1], out=own[0]), later)
    return sums


def filled(size: int, value: int | np.integer, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array of one value; a large one on all threads, so that an interrupt need not wait for its pages."""
    made: npt.NDArray[Any] = np.empty(size, dtype)
    map_parallel(lambda first: made[first : first + _FILLED].fill(value), range(0, size, _FILLED))
    return made


def gather_lists(offsets: Int64, values: npt.NDArray[np.generic], order: npt.NDArray[np.integer]) -> tuple[Int64, ...]:
    """Select lists in a given order.

    Parameters
    ----------
    offsets, values
        int64, lists + 1, and the concatenated lists.
    order
        Numbers of the selected lists, any integers.

    Returns
    -------
    (int64[taken + 1], array)
        The selected lists, in that order.

    """
    taken = running_sum((offsets[1:] - offsets[:-1])[order])
    gathered: npt.NDArray[Any] = allocate(int(taken[-1]), values.dtype)[1]
    order = order.astype(np.int64)

    def gather(chunk: tuple[int, int]) -> None:
        first, stop = chunk
        _gather(offsets, values, order[first:stop], taken[first : stop + 1], gathered)

    map_parallel(gather, weighted_chunks(taken))
    return taken, gathered


@polled
@kernel
def _gather(
    offsets: Int64, values: npt.NDArray[np.generic], order: Int64, taken: Int64, gathered: npt.NDArray[np.generic]
) -> None:
    began = interrupts()
    for k in range(len(order)):
        if k & 0xFF == 0 and interrupts() != began:
            return
        start = offsets[order[k]] - taken[k]
        for i in range(taken[k], taken[k + 1]):
            gathered[i] = values[start + i]


@polled
@kernel
def append_lists(
    offsets: Int64,
    documents: UInt32,
    counts: UInt64,
    owners: UInt32,
    free: Int64,
    all_documents: UInt32,
    all_counts: UInt64,
) -> None:
    """Append lists of documents and counts to their owners' lists.

    Parameters
    ----------
    offsets, documents, counts
        int64, lists + 1, and the concatenated lists.
    owners
        uint32: owner of each list; distinct.
    free
        int64 by owner: position of its next document; advanced.
    all_documents, all_counts
        Outputs.

    """
    began = interrupts()
    for own in range(len(owners)):
        if own & 0xFF == 0 and interrupts() != began:
            return
        at = free[owners[own]] - offsets[own]
        for i in range(offsets[own], offsets[own + 1]):
            all_documents[at + i], all_counts[at + i] = documents[i], counts[i]
        free[owners[own]] += offsets[own + 1] - offsets[own]


@inner(inline="always")
def copy_run(values: UInt32, source: int, at: int, length: int, began: int) -> bool:
    """Copy values of an array to a later place in it, which may be long; False if an interrupt ended it."""
    for part in range(0, length, _MANY):
        if interrupts() != began:
            return False
        for j in range(part, min(part + _MANY, length)):
            values[at + j] = values[source + j]
    return True
