"""Work space of the CPU kernels that search: one per thread, reused by all of its queries."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numba as nb
import numpy as np

from polars_tadoc.kernels.postings.coded import BLOCK
from polars_tadoc.kernels.search.accumulators_cpu import GROUP, WINDOW
from polars_tadoc.runtime.array_types import Float32, Float64, Int32, UInt8, UInt32, UInt64
from polars_tadoc.runtime.jit import inner

_1, _2 = nb.uint64(1), nb.uint64(2)


class Block(NamedTuple):
    """Work space for one block."""

    documents: UInt32
    counts: UInt32
    places: UInt32
    """Positions in the window, or in the block."""
    added: Float32
    """Contributions of postings to scores."""


class Candidates(NamedTuple):
    """Documents to look up in the remaining lists, ascending."""

    documents: UInt32
    scores: Float32
    bits: Int32
    """The scores as integers."""
    origins: UInt32
    """Positions in the shortest list's chunk (AND)."""
    hits: UInt32
    """Numbers of the candidates before one block's end that are in it."""


class Workspace(NamedTuple):
    """A thread's work space for a query; between queries, accumulators are untouched and marks 0."""

    accumulators: Float32
    bits: Int32
    """The accumulators as integers."""
    marks: UInt8
    found: Candidates
    block: Block


class Room(NamedTuple):
    """A thread's work space for a query, sized by its numbers of lists and results."""

    heap: UInt64
    trial: UInt64
    """A second heap."""
    rows: UInt64
    """The opened lists."""
    behind: UInt64
    """By list: its first document after the window."""
    rest: Float64
    """By list, and one more: maximum sum of contributions of the lists from this one on."""


_own = threading.local()


def thread_rooms() -> tuple[Float32, UInt8, UInt32]:
    """Return this thread's arrays for :func:`workspace_of`; queries restore their initial state."""
    if not hasattr(_own, "rooms"):
        accumulators = np.full(WINDOW + GROUP, -0.0, np.float32)
        _own.rooms = accumulators, np.zeros(WINDOW // GROUP + 8, np.uint8), np.zeros(3 * WINDOW + 5 * BLOCK, np.uint32)
    rooms: tuple[Float32, UInt8, UInt32] = _own.rooms
    return rooms


@inner
def workspace_of(accumulators: Float32, marks: UInt8, numbers: UInt32) -> Workspace:
    """Return the work space in the arrays of :func:`thread_rooms`."""
    scores, blocks = numbers[WINDOW : 2 * WINDOW], numbers[3 * WINDOW :]
    found = Candidates(
        numbers[:WINDOW],
        scores.view(np.float32),
        scores.view(np.int32),
        numbers[2 * WINDOW : 3 * WINDOW],
        blocks[:BLOCK],
    )
    block = Block(
        blocks[BLOCK : 2 * BLOCK],
        blocks[2 * BLOCK : 3 * BLOCK],
        blocks[3 * BLOCK : 4 * BLOCK],
        blocks[4 * BLOCK :].view(np.float32),
    )
    return Workspace(accumulators, accumulators.view(np.int32), marks, found, block)


@inner
def room_of(numbers: UInt64, kept: int) -> Room:
    """Return the work space for ``kept`` results in ``numbers``, whose size tells the number of lists."""
    lists = (nb.uint64(len(numbers)) - _2 * kept - _1) // nb.uint64(10)
    rows, behind = _2 * kept, _2 * kept + nb.uint64(8) * lists
    rest = numbers[behind + lists :].view(np.float64)
    return Room(numbers[:kept], numbers[kept:rows], numbers[rows:behind], numbers[behind : behind + lists], rest)
