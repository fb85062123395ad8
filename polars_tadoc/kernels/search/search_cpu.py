"""Finds the best documents of queries on the CPU: :mod:`.search_any_cpu` and :mod:`.search_all_cpu`, by threads.

Only documents strictly below the threshold, with a margin for rounding, are dropped, and sums are in the lists' order,
so results do not depend on the method.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.kernels.postings.coded import BLOCK, Lists, Postings, Queries
from polars_tadoc.kernels.postings.decode_cpu import addresses_of, view_at
from polars_tadoc.kernels.search.arguments_cpu import BLOCK_SIZE
from polars_tadoc.kernels.search.lookup_cpu import UNKNOWN, bound_list
from polars_tadoc.kernels.search.search_all_cpu import search_all
from polars_tadoc.kernels.search.search_any_cpu import search_any
from polars_tadoc.kernels.search.workspace_cpu import thread_rooms, workspace_of
from polars_tadoc.runtime.array_types import Float32, Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.jit import address_of, call, kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks

READS_BOUNDS = True
"""With bounds, irrelevant blocks are not decoded."""

_CHUNK_POSTINGS = 1 << 20
"""Minimum postings of queries per task; or 32 queries."""

_NO_BOUNDS, _NO_NUMBERS = np.zeros(0, np.float32), np.zeros(0, np.uint32)
_NO_LISTS = Lists(np.zeros(1, np.int64), _NO_NUMBERS, _NO_NUMBERS)


def search_function(require_all: bool) -> int:
    """Return the address of what :func:`run_search` calls: compiled once for all kernels that do."""
    return int(address_of(search_all if require_all else search_any, 1))


@kernel
def run_search(
    function: int,
    block: UInt64,
    addresses: UInt64,
    norms: Float32,
    bounds: Float32,
    offsets: Int64,
    numbers: UInt32,
    weights: Float32,
    extra_offsets: Int64,
    extra_documents: UInt32,
    extra_counts: UInt32,
    allowed: UInt32,
    start: int,
    stop: int,
    accumulators: Float32,
    marks: UInt8,
    for_blocks: UInt32,
    for_lists: UInt64,
    found: Int64,
    documents: UInt32,
    scores: UInt32,
) -> None:
    """Call a :func:`search_function`.

    Arguments are arrays and numbers only: Numba takes 5 µs to unpack a tuple.

    Parameters
    ----------
    function, block
        The function, and work space of ``BLOCK_SIZE`` numbers.
    addresses
        Addresses of the postings.
    norms
        float32 by document.
    bounds
        float32 by block, or empty.
    offsets, numbers, weights
        The queries, as for :func:`search`.
    extra_offsets, extra_documents, extra_counts, allowed
        As for :func:`search`; empty if not given.
    start, stop
        The range of queries.
    accumulators, marks, for_blocks, for_lists
        Work space of this thread: the result of :func:`.workspace_cpu.thread_rooms`, and uint64: twice the maximum
        number of results, ten per list of the longest query, and one.
    found, documents, scores
        Outputs; scores are float32 as bits.

    """
    block[0], block[1], block[2] = addresses.ctypes.data, norms.ctypes.data, bounds.ctypes.data
    block[3], block[4], block[5] = offsets.ctypes.data, numbers.ctypes.data, weights.ctypes.data
    block[6], block[7] = extra_offsets.ctypes.data, extra_documents.ctypes.data
    block[8], block[9] = extra_counts.ctypes.data, allowed.ctypes.data
    block[10], block[11], block[12] = accumulators.ctypes.data, marks.ctypes.data, for_blocks.ctypes.data
    block[13], block[14] = for_lists.ctypes.data, found.ctypes.data
    block[15], block[16] = documents.ctypes.data, scores.ctypes.data
    block[17], block[18], block[19] = len(addresses), len(norms), len(bounds)
    block[20], block[21], block[22] = len(numbers), len(extra_offsets), len(extra_documents)
    block[23], block[24] = len(allowed), len(for_lists)
    block[25], block[26] = documents.shape
    block[27], block[28] = start, stop
    call(nb.uint64(function), nb.uint64(block.ctypes.data))


@kernel
def _bound_blocks(
    addresses: UInt64,
    norms: Float32,
    start: int,
    stop: int,
    accumulators: Float32,
    marks: UInt8,
    for_blocks: UInt32,
    bounds: Float32,
) -> None:
    view, block = view_at(addresses), workspace_of(accumulators, marks, for_blocks).block
    for number in range(start, stop):
        bound_list(view, nb.uint64(number), nb.uint64(norms.ctypes.data), bounds, block)


def unknown_bounds(postings: Postings) -> Float32:
    """Return bounds of blocks for :func:`search` that it computes when it first reads a list."""
    return np.full(len(postings.heads), UNKNOWN, np.float32)


def block_bounds(postings: Postings, norms: Float32) -> Float32:
    """Return the maximum contribution of each block to a score, for weight 1.

    ``norms`` is float32 by document, at least 0.
    """
    bounds = np.empty(len(postings.heads), np.float32)
    addresses = addresses_of(postings)

    def bound(chunk: tuple[int, int]) -> None:
        _bound_blocks(addresses, norms, *chunk, *thread_rooms(), bounds)

    map_parallel(bound, weighted_chunks(BLOCK * postings.block_offsets))
    return bounds


def search(
    postings: Postings,
    norms: Float32,
    bounds: Float32 | None,
    queries: Queries,
    k: int,
    require_all: bool,
    allowed: UInt32 | None = None,
    extra: Lists | None = None,
) -> tuple[Int64, UInt32, Float32]:
    """Return the best documents of each query, as defined by :func:`polars_tadoc.kernels.search.reference.search`.

    Parameters
    ----------
    postings, norms, queries, k, require_all, allowed, extra
        As for the reference.
    bounds
        Result of :func:`block_bounds` for the same norms, or of :func:`unknown_bounds`, with which OR reads less; or
        None.

    Returns
    -------
    (int64 array, uint32 array, float32 array)
        As for the reference.

    """
    count = len(queries.offsets) - 1
    found = np.zeros(count, np.int64)
    documents, scores = np.zeros((count, k), np.uint32), np.zeros((count, k), np.float32)
    kept = min(k, postings.documents)
    if count == 0 or kept == 0:
        return found, documents, scores
    longest = int(np.diff(queries.offsets).max()) if count > 1 else len(queries.lists)
    bounds, allowed = _NO_BOUNDS if bounds is None else bounds, _NO_NUMBERS if allowed is None else allowed
    given = (addresses_of(postings), norms, bounds, *queries, *(_NO_LISTS if extra is None else extra), allowed)
    results, function = (found, documents, scores.view(np.uint32)), search_function(require_all)

    def answer(chunk: tuple[int, int]) -> None:
        block, for_lists = np.empty(BLOCK_SIZE, np.uint64), np.empty(2 * kept + 10 * longest + 1, np.uint64)
        run_search(function, block, *given, *chunk, *thread_rooms(), for_lists, *results)

    map_parallel(answer, [(0, 1)] if count == 1 else even_chunks(count, _chunk_size(postings, queries, count), 4))
    return found, documents, scores


def _chunk_size(postings: Postings, queries: Queries, count: int) -> int:
    """Return the number of queries per task."""
    own = len(postings.frequencies)
    read = int(postings.frequencies[np.minimum(queries.lists, own - 1)].sum(dtype=np.int64)) if own else 0
    return max(1, min(32, _CHUNK_POSTINGS * count // max(read, 1)))
