"""Finds the best documents of queries (Ding et al., WWW 2009, sections 5 and 6), on the CPU.

OR scores lists from the shortest on into accumulators, window by window. As soon as the k-th best score is above what
all further lists can add, no new document can enter: in those only the documents that can still are looked up (MaxScore,
Turtle and Flood, 1995, with the bounds of blocks of Ding and Suel, SIGIR 2011). AND looks up the shortest list's
documents in the others. Only documents that are strictly below are given up, with room for rounding, and sums are in
the lists' order, so results do not depend on any of this.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cpu.accumulators import (
    GROUP,
    WINDOW,
    is_allowed,
    key_of,
    push,
    push_touched,
    take_touched,
    write_best,
)
from polars_tadoc.kernels.cpu.blocks import (
    BLOCKS,
    FIRST_BLOCK,
    NEXT_BLOCK,
    ROW_BYTES,
    head,
    is_coded,
    list_size,
    open_list,
    read_count,
    read_counts,
    read_documents,
)
from polars_tadoc.kernels.cpu.coding import View, addresses_of
from polars_tadoc.kernels.cpu.memory import load_u64, store_u64
from polars_tadoc.kernels.cpu.parallel import even_chunks, map_parallel, weighted_chunks
from polars_tadoc.kernels.postings import BLOCK, Lists, Postings, Queries

UInt8 = npt.NDArray[np.uint8]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

_0, _1, _2, _6, _8 = (np.uint64(i) for i in (0, 1, 2, 6, 8))
_WINDOW, _GROUP, _BLOCK = np.uint64(WINDOW), np.uint64(GROUP), np.uint64(BLOCK)
_NONE = ~np.uint64(0)
_CHUNK_BLOCKS = np.uint64(8)
"""Blocks of the shortest list of an AND that are looked up together."""
_MANY = np.uint64(12)
"""Counts of a block from which on decoding all costs less than reading them one by one."""


class Workspace(NamedTuple):
    """What a thread needs for a query; accumulators are all untouched and marks 0 between queries."""

    accumulators: Float32
    bits: Int32
    """The accumulators as integers."""
    marks: UInt8
    candidates: UInt32
    """Documents that are looked up in further lists."""
    scores: Float32
    """Of candidates."""
    score_bits: Int32
    origins: UInt32
    """Of candidates: places in the shortest list's chunk (AND)."""
    places: UInt32
    """Of candidates: places in a block."""
    block_documents: UInt32
    block_counts: UInt32


_own = threading.local()


def _workspace() -> Workspace:
    """Return this thread's workspace."""
    if not hasattr(_own, "workspace"):
        accumulators = np.full(WINDOW + GROUP, -0.0, np.float32)
        scores = np.empty(WINDOW, np.float32)
        _own.workspace = Workspace(
            accumulators,
            accumulators.view(np.int32),
            np.zeros(WINDOW // GROUP + 8, np.uint8),
            np.empty(WINDOW, np.uint32),
            scores,
            scores.view(np.int32),
            np.empty(WINDOW, np.uint32),
            np.empty(WINDOW, np.uint32),
            np.empty(2 * BLOCK, np.uint32),
            np.empty(2 * BLOCK, np.uint32),
        )
    workspace: Workspace = _own.workspace
    return workspace


@nb.njit(nogil=True, cache=True)
def _below(documents: UInt32, document: int) -> Any:
    """Count the ascending documents of a full block that are below one; a block's last counts as not."""
    place = _0
    step = nb.uint64(BLOCK // 2)
    while step != 0:
        place += step * nb.uint64(documents[place + step - _1] < document)
        step >>= _1
    return place


@nb.njit(nogil=True, cache=True)
def _find_block(row: int, block: int, document: int) -> Any:
    """Return the last block, from one on, whose head is not behind a document; that one if there is none."""
    blocks = load_u64(row + BLOCKS)
    if block + _1 >= blocks or head(row, block + _1) > document:
        return block
    block += _1
    step = _1
    while block + step < blocks and head(row, block + step) <= document:
        block += step
        step += step
    while step > _1:
        step >>= _1
        if block + step < blocks and head(row, block + step) <= document:
            block += step
    return block


@nb.njit(nogil=True, cache=True, error_model="numpy")
def _score_window(
    view: View,
    row: int,
    weight: float,
    norms: Float32,
    first: int,
    accumulators: Float32,
    marks: UInt8,
    documents: UInt32,
    counts: UInt32,
) -> Any:
    """Add a list's scores of the window's documents; return the list's first document behind it."""
    stop, blocks, block = first + _WINDOW, load_u64(row + BLOCKS), load_u64(row + NEXT_BLOCK)
    to_documents, to_counts = nb.uint64(documents.ctypes.data), nb.uint64(counts.ctypes.data)
    behind = _NONE
    while block < blocks:
        if head(row, block) >= stop:
            behind = head(row, block)
            break
        size = read_documents(view, row, block, to_documents)
        read_counts(view, row, block, to_counts)
        for i in range(size):
            document = nb.uint64(documents[i])
            place = min(document - first, _WINDOW)  # modulo 2^64: what lies before the window goes behind it, too
            count = nb.float32(counts[i])
            accumulators[place] += weight * (count / (count + norms[document]))
            marks[place >> _6] = 1
        if documents[size - _1] >= stop:
            inside = _0
            for i in range(size):
                inside += nb.uint64(documents[i] < stop)
            behind = max(nb.uint64(documents[min(inside, size - _1)]), stop)
            break
        block += _1
    store_u64(row + NEXT_BLOCK, block)
    return behind


@nb.njit(nogil=True, cache=True, error_model="numpy")
def _look_up(
    view: View,
    row: int,
    weight: float,
    bounds: Float32,
    norms: Float32,
    need: float,
    require: bool,
    count: int,
    candidates: UInt32,
    scores: Float32,
    origins: UInt32,
    places: UInt32,
    documents: UInt32,
    counts: UInt32,
) -> Any:
    """Add a list's scores to those of candidates; return how many candidates remain.

    Parameters
    ----------
    need
        Candidates whose score remains below are left out.
    require
        Whether candidates that are not in the list are left out.

    """
    blocks, block = load_u64(row + BLOCKS), load_u64(row + NEXT_BLOCK)
    to_documents, to_counts = nb.uint64(documents.ctypes.data), nb.uint64(counts.ctypes.data)
    bounded = is_coded(row) and len(bounds) > 0
    first_block = load_u64(row + FIRST_BLOCK)
    kept, at = _0, _0
    while at < count:
        block = _find_block(row, block, nb.uint64(candidates[at]))
        limit = head(row, block + _1) if block + _1 < blocks else _NONE
        bound = weight * bounds[first_block + block] if bounded else weight
        stop, best = at, nb.float32(-1)
        while stop < count and nb.uint64(candidates[stop]) < limit:
            best = max(best, scores[stop])
            stop += _1
        stop = max(stop, at + _1)  # heads that do not ascend are damaged: go on all the same
        if nb.float32(best + bound) < need:
            at = stop
            continue
        size = read_documents(view, row, block, to_documents)
        for i in range(size, _BLOCK):
            documents[i] = nb.uint32(0xFFFFFFFF)
        matches = _0
        for c in range(at, stop):
            place = _below(documents, candidates[c])
            matched = documents[place] == candidates[c]
            places[c] = nb.uint32(place) if matched else nb.uint32(BLOCK)
            matches += nb.uint64(matched)
        whole = matches >= _MANY
        if whole:
            read_counts(view, row, block, to_counts)
        for c in range(at, stop):
            place = nb.uint64(places[c])
            score = scores[c]
            if place < size:
                number = nb.float32(counts[place] if whole else read_count(view, row, block, place))
                score += weight * (number / (number + norms[nb.uint64(candidates[c])]))
            elif require:
                continue
            candidates[kept] = candidates[c]
            origins[kept] = origins[c]
            scores[kept] = score
            kept += nb.uint64(score >= need)
        at = stop
    store_u64(row + NEXT_BLOCK, block)
    return kept


@nb.njit(nogil=True, cache=True)
def _largest(bounds: Int32, first: int, blocks: int) -> Any:
    largest = nb.int32(0)
    for block in range(first, first + blocks):
        largest = max(largest, bounds[block])
    return largest


@nb.njit(nogil=True, cache=True)
def _bound_rest(
    rows: UInt64, lists: int, weights: Float32, first: int, bounds: Float32, bound_bits: Int32, rest: Float64
) -> None:
    """Write what lists i and on add at most to ``rest[i]``."""
    base = nb.uint64(rows.ctypes.data)
    rest[lists] = 0.0
    one = np.empty(1, np.int32)
    as_float = one.view(np.float32)
    for back in range(lists):
        i = lists - _1 - nb.uint64(back)
        row = base + i * ROW_BYTES
        bound = 1.0
        if is_coded(row) and len(bounds) > 0:
            one[0] = _largest(bound_bits, load_u64(row + FIRST_BLOCK), load_u64(row + BLOCKS))
            bound = nb.float64(as_float[0])
        rest[i] = rest[i + _1] + nb.float64(weights[first + i]) * bound


@nb.njit(nogil=True, cache=True)
def _needed(threshold: float, rest: float, lists: int) -> Any:
    """Return below which score (float32) one cannot reach a threshold by adding ``rest``, with room for rounding."""
    need = threshold * (1.0 - 1.2e-7 * (nb.float64(lists) + 8.0)) - rest
    return nb.float32(need - 1e-6 * abs(need))


@nb.njit(nogil=True, cache=True)
def search_any(
    postings: Postings,
    norms: Float32,
    bounds: Float32,
    queries: Queries,
    extra: Lists,
    allowed: UInt32,
    start: int,
    stop: int,
    workspace: Workspace,
    heap: UInt64,
    trial: UInt64,
    rows: UInt64,
    behind: UInt64,
    rest: Float64,
    found: Int64,
    documents: UInt32,
    scores: UInt32,
) -> None:
    """Answer queries ``start`` to ``stop`` with documents that stand in any of their lists.

    Parameters
    ----------
    postings, norms, queries
        As for :func:`search`.
    bounds
        float32 by block, or none.
    extra, allowed
        As for :func:`search`; empty if not given.
    start, stop
        Which queries.
    workspace
        This thread's.
    heap, trial
        uint64, as many as there may be results.
    rows, behind, rest
        Eight, one and one for each list of the longest query, and one more.
    found, documents, scores
        Results; scores are float32 as bits.

    """
    view = addresses_of(postings)
    accumulators, bits, marks = workspace.accumulators, workspace.bits, workspace.marks
    candidates, scores_of, score_bits = workspace.candidates, workspace.scores, workspace.score_bits
    origins, places = workspace.origins, workspace.places
    block_documents, block_counts = workspace.block_documents, workspace.block_counts
    offsets, numbers, weights = queries.offsets, queries.lists, queries.weights
    bound_bits = bounds.view(np.int32)
    whole_marks = marks[: WINDOW // GROUP]
    one_bits = np.empty(1, np.int32)
    one_score = one_bits.view(np.float32)
    base = nb.uint64(rows.ctypes.data)
    room = nb.uint64(len(heap))
    for q in range(start, stop):
        first_list = nb.uint64(offsets[q])
        lists = nb.uint64(offsets[q + 1]) - first_list
        for i in range(lists):
            row = base + i * ROW_BYTES
            open_list(postings, extra, numbers[first_list + i], row)
            behind[i] = head(row, _0) if load_u64(row + BLOCKS) != 0 else _NONE
        _bound_rest(rows, lists, weights, first_list, bounds, bound_bits, rest)
        size, threshold, window_stop = _0, -1.0, _0
        while True:
            first = _NONE
            for i in range(lists):
                if _needed(threshold, rest[i], lists) > 0:
                    break
                first = min(first, behind[i])
            if first == _NONE:
                break
            first = max(first & ~(_GROUP - _1), window_stop)
            window_stop = first + _WINDOW
            scored = _0
            i = _0
            while i < lists:
                if _needed(threshold, rest[i], lists) > 0:
                    break
                row = base + i * ROW_BYTES
                if (
                    size < room
                    and i > 0
                    and rest[_0] > rest[i] + rest[i]
                    and scored >= room
                    and list_size(row) > scored
                ):
                    trial_size = push_touched(bits, whole_marks, first, allowed, trial, _0, False)
                    if trial_size == room:
                        one_bits[0] = nb.int32(trial[_0] >> nb.uint64(32))
                        threshold = max(threshold, nb.float64(one_score[0]))
                        if _needed(threshold, rest[i], lists) > 0:
                            break
                if behind[i] < window_stop:
                    scored += list_size(row)
                    behind[i] = _score_window(
                        view,
                        row,
                        weights[first_list + i],
                        norms,
                        first,
                        accumulators,
                        marks,
                        block_documents,
                        block_counts,
                    )
                i += _1
            if i == lists:
                size = push_touched(bits, whole_marks, first, allowed, heap, size, True)
            else:
                one_score[0] = max(_needed(threshold, rest[i], lists), nb.float32(0))
                count = take_touched(bits, whole_marks, first, allowed, one_bits[0], candidates, score_bits)
                while i < lists and count > 0:
                    count = _look_up(
                        view,
                        base + i * ROW_BYTES,
                        weights[first_list + i],
                        bounds,
                        norms,
                        _needed(threshold, rest[i + _1], lists),
                        False,
                        count,
                        candidates,
                        scores_of,
                        origins,
                        places,
                        block_documents,
                        block_counts,
                    )
                    i += _1
                for c in range(count):
                    size = push(heap, size, key_of(nb.uint32(score_bits[c]), candidates[c]))
            if size == room:
                one_bits[0] = nb.int32(heap[_0] >> nb.uint64(32))
                threshold = max(threshold, nb.float64(one_score[0]))
        found[q] = nb.int64(size)
        write_best(heap, size, documents[q], scores[q])


@nb.njit(nogil=True, cache=True, error_model="numpy")
def _add_own(
    view: View,
    row: int,
    weight: float,
    norms: Float32,
    first_block: int,
    count: int,
    candidates: UInt32,
    scores: Float32,
    origins: UInt32,
    counts: UInt32,
) -> None:
    """Add the scores of the list that the candidates came from, whose block ``first_block`` was their chunk's first."""
    at = _0
    while at < count:
        block = nb.uint64(origins[at]) // _BLOCK
        stop = at
        while stop < count and nb.uint64(origins[stop]) // _BLOCK == block:
            stop += _1
        whole = stop - at >= _MANY
        if whole:
            read_counts(view, row, first_block + block, nb.uint64(counts.ctypes.data))
        for c in range(at, stop):
            place = nb.uint64(origins[c]) % _BLOCK
            number = nb.float32(counts[place] if whole else read_count(view, row, first_block + block, place))
            scores[c] += weight * (number / (number + norms[nb.uint64(candidates[c])]))
        at = stop


@nb.njit(nogil=True, cache=True)
def search_all(
    postings: Postings,
    norms: Float32,
    bounds: Float32,
    queries: Queries,
    extra: Lists,
    allowed: UInt32,
    start: int,
    stop: int,
    workspace: Workspace,
    heap: UInt64,
    rows: UInt64,
    rest: Float64,
    found: Int64,
    documents: UInt32,
    scores: UInt32,
) -> None:
    """Answer queries ``start`` to ``stop`` with documents that stand in all of their lists: as :func:`search_any`."""
    view = addresses_of(postings)
    candidates, scores_of, score_bits = workspace.candidates, workspace.scores, workspace.score_bits
    origins, places = workspace.origins, workspace.places
    block_documents, block_counts = workspace.block_documents, workspace.block_counts
    offsets, numbers, weights = queries.offsets, queries.lists, queries.weights
    bound_bits = bounds.view(np.int32)
    one_bits = np.empty(1, np.int32)
    one_score = one_bits.view(np.float32)
    base = nb.uint64(rows.ctypes.data)
    room = nb.uint64(len(heap))
    for q in range(start, stop):
        first_list = nb.uint64(offsets[q])
        lists = nb.uint64(offsets[q + 1]) - first_list
        shortest, fewest = _0, _NONE
        for i in range(lists):
            row = base + i * ROW_BYTES
            open_list(postings, extra, numbers[first_list + i], row)
            if list_size(row) < fewest:
                shortest, fewest = i, list_size(row)
        _bound_rest(rows, lists, weights, first_list, bounds, bound_bits, rest)
        own_row, blocks = base + shortest * ROW_BYTES, _0
        if lists != 0:
            blocks = load_u64(own_row + BLOCKS)
        size, threshold, block = _0, -1.0, _0
        while block < blocks and _needed(threshold, rest[_0], lists) <= 0:
            first_block, count = block, _0
            while block < min(first_block + _CHUNK_BLOCKS, blocks):
                held = read_documents(view, own_row, block, nb.uint64(block_documents.ctypes.data))
                for i in range(held):
                    candidates[count] = block_documents[i]
                    origins[count] = (block - first_block) * _BLOCK + i
                    scores_of[count] = nb.float32(-0.0)
                    count += nb.uint64(is_allowed(allowed, nb.uint64(block_documents[i])))
                block += _1
            for step in range(lists):
                # a + b is b + a: where the shortest list is the first, only what the second leaves of it is scored
                i = _1 - step if shortest == 0 and lists > _1 and step < _2 else step
                if i == shortest:
                    _add_own(
                        view,
                        own_row,
                        weights[first_list + i],
                        norms,
                        first_block,
                        count,
                        candidates,
                        scores_of,
                        origins,
                        block_counts,
                    )
                else:
                    still = rest[i + _1] + (rest[_0] - rest[_1] if step < i else 0.0)
                    count = _look_up(
                        view,
                        base + i * ROW_BYTES,
                        weights[first_list + i],
                        bounds,
                        norms,
                        _needed(threshold, still, lists),
                        True,
                        count,
                        candidates,
                        scores_of,
                        origins,
                        places,
                        block_documents,
                        block_counts,
                    )
            for c in range(count):
                size = push(heap, size, key_of(nb.uint32(score_bits[c]), candidates[c]))
            if size == room:
                one_bits[0] = nb.int32(heap[_0] >> nb.uint64(32))
                threshold = nb.float64(one_score[0])
        found[q] = nb.int64(size)
        write_best(heap, size, documents[q], scores[q])


@nb.njit(nogil=True, cache=True, error_model="numpy")
def _bound_blocks(
    postings: Postings,
    norms: Float32,
    start: int,
    stop: int,
    documents: UInt32,
    counts: UInt32,
    row: UInt64,
    extra: Lists,
    bounds: Float32,
) -> None:
    view = addresses_of(postings)
    at = nb.uint64(row.ctypes.data)
    for number in range(start, stop):
        open_list(postings, extra, number, at)
        first = load_u64(at + FIRST_BLOCK)
        for block in range(load_u64(at + BLOCKS)):
            size = read_documents(view, at, block, nb.uint64(documents.ctypes.data))
            read_counts(view, at, block, nb.uint64(counts.ctypes.data))
            bound = nb.float32(0)
            for i in range(size):
                count = nb.float32(counts[i])
                bound = max(bound, count / (count + norms[nb.uint64(documents[i])]))
            bounds[first + block] = bound


def block_bounds(postings: Postings, norms: Float32) -> Float32:
    """Return what each block adds at most to a score, for a weight of 1.

    Parameters
    ----------
    postings
        The lists.
    norms
        float32 by document.

    Returns
    -------
    float32 array
        By block: the largest count / (count + norm) of its postings.

    """
    bounds = np.empty(len(postings.heads), np.float32)

    def bound(chunk: tuple[int, int]) -> None:
        documents, counts = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.uint32)
        row = np.empty(8, np.uint64)
        _bound_blocks(postings, norms, *chunk, documents, counts, row, _no_lists(), bounds)

    map_parallel(bound, weighted_chunks(BLOCK * postings.block_offsets))
    return bounds


def _no_lists() -> Lists:
    return Lists(np.zeros(1, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.uint32))


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
    """Find the best documents for each query, as :func:`polars_tadoc.kernels.reference_search.search` defines.

    Parameters
    ----------
    postings, norms, queries, k, require_all, allowed, extra
        As there.
    bounds
        Of :func:`block_bounds` for the same norms, with which OR reads less; or None.

    Returns
    -------
    (int64 array, uint32 array, float32 array)
        As there.

    """
    count = len(queries.offsets) - 1
    found = np.zeros(count, np.int64)
    documents, scores = np.zeros((count, k), np.uint32), np.zeros((count, k), np.float32)
    kept = min(k, postings.documents)
    if count == 0 or kept == 0:
        return found, documents, scores
    longest = int(np.diff(queries.offsets).max())
    bounds = np.empty(0, np.float32) if bounds is None else bounds
    allowed = np.empty(0, np.uint32) if allowed is None else allowed
    given = (postings, norms, bounds, queries, _no_lists() if extra is None else extra, allowed)

    def answer(chunk: tuple[int, int]) -> None:
        heap, rows, rest = np.empty(kept, np.uint64), np.empty(8 * longest, np.uint64), np.empty(longest + 1)
        results = (found, documents, scores.view(np.uint32))
        if require_all:
            search_all(*given, *chunk, _workspace(), heap, rows, rest, *results)
        else:
            trial, behind = np.empty(kept, np.uint64), np.empty(longest, np.uint64)
            search_any(*given, *chunk, _workspace(), heap, trial, rows, behind, rest, *results)

    map_parallel(answer, even_chunks(count, 32, 4))
    return found, documents, scores
