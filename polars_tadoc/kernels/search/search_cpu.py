"""Finds the best documents of queries (Ding et al., WWW 2009, sections 5 and 6) on the CPU.

OR adds the scores of lists, shortest first, to accumulators, window by window. As soon as the k-th best score exceeds
what all remaining lists can add, no new document can enter; documents that still can are looked up in these lists if
they are few (MaxScore, Turtle and Flood, 1995, with block bounds as in Ding and Suel, SIGIR 2011). AND looks up the
shortest list's documents in the others. Only documents strictly below the threshold, with a margin for rounding, are
dropped, and sums are in the lists' order, so results do not depend on the method.
"""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import numba as nb
import numpy as np
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from polars_tadoc.kernels.postings.coded import BLOCK, Lists, Postings, Queries
from polars_tadoc.kernels.postings.decode_cpu import View, addresses_of, decode_counts, decode_documents, view_at
from polars_tadoc.kernels.search.accumulators_cpu import (
    GROUP,
    WINDOW,
    as_bits,
    as_float,
    count_touched,
    is_allowed,
    key_of,
    push,
    push_touched,
    take_touched,
    weigh,
    write_best,
)
from polars_tadoc.kernels.search.blocks_cpu import (
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
from polars_tadoc.runtime.addresses import load_u64, store_u64
from polars_tadoc.runtime.array_types import Float32, Float64, Int32, Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.jit import address_of, call, inner, kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks

READS_BOUNDS = True
"""With bounds, irrelevant blocks are not decoded."""

_0, _1, _2, _4, _6, _15 = (nb.uint64(i) for i in (0, 1, 2, 4, 6, 15))
_WINDOW, _GROUP, _BLOCK = nb.uint64(WINDOW), nb.uint64(GROUP), nb.uint64(BLOCK)
_NONE = ~nb.uint64(0)
_POSTINGS_A_LOOKUP = nb.uint64(4)
"""Scoring this many postings takes as long as looking up one document."""
_CHUNK_BLOCKS = nb.uint64(8)
"""Blocks of the shortest list of an AND that are looked up together."""
_CHUNK_POSTINGS = 1 << 20
"""Minimum postings of queries per task; or 32 queries."""
_MANY = nb.uint64(12)
"""From this many counts of a block on, decoding all costs less than reading them one by one."""


BLOCK_SIZE = 29
"""Numbers by which arguments are handed to a separately compiled search."""

_NO_BOUNDS, _NO_NUMBERS = np.zeros(0, np.float32), np.zeros(0, np.uint32)
_NO_LISTS = Lists(np.zeros(1, np.int64), _NO_NUMBERS, _NO_NUMBERS)


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
    """Return this thread's arrays for :func:`_workspace`; queries restore their initial state."""
    if not hasattr(_own, "rooms"):
        accumulators = np.full(WINDOW + GROUP, -0.0, np.float32)
        _own.rooms = accumulators, np.zeros(WINDOW // GROUP + 8, np.uint8), np.zeros(3 * WINDOW + 5 * BLOCK, np.uint32)
    rooms: tuple[Float32, UInt8, UInt32] = _own.rooms
    return rooms


@inner
def _workspace(accumulators: Float32, marks: UInt8, numbers: UInt32) -> Workspace:
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
def _below(documents: UInt32, document: int) -> Any:
    """Count the ascending documents of a full block that are below one; the block's last is never counted."""
    place = _0
    step = nb.uint64(BLOCK // 2)
    while step != 0:
        place += step * nb.uint64(documents[place + step - _1] < document)
        step >>= _1
    return place


@inner
def _find_block(row: int, block: int, document: int) -> Any:
    """Return the last block, from one on, whose head is at most the document; the first of them if there is none."""
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


@inner
def _mark(marks: UInt8, places: UInt32, size: int) -> None:
    """Mark the groups of a block's positions; if they are close, all groups from the first to the last."""
    lowest, highest = nb.uint32(WINDOW), nb.uint32(0)
    for i in range(size):
        place = places[i]
        lowest = min(lowest, place)
        highest = max(highest, place if place < nb.uint32(WINDOW) else nb.uint32(0))
    lowest, highest = nb.uint64(lowest) >> _6, nb.uint64(highest) >> _6
    if highest < lowest + _BLOCK:
        for group in range(lowest, highest + _1):
            marks[group] = 1
    else:
        for i in range(size):
            marks[nb.uint64(places[i]) >> _6] = 1


@inner
def _score_window(
    view: View,
    row: int,
    weight: float,
    norms: int,
    first: Any,
    stop: Any,
    accumulators: Float32,
    marks: UInt8,
    block: Block,
) -> Any:
    """Add a list's scores of the window's documents; return the list's first document after it."""
    documents, places, added = block.documents, block.places, block.added
    to_documents, to_counts = nb.uint64(documents.ctypes.data), nb.uint64(block.counts.ctypes.data)
    to_added = nb.uint64(added.ctypes.data)
    blocks, number = load_u64(row + BLOCKS), _find_block(row, load_u64(row + NEXT_BLOCK), first)
    width, first_32 = nb.uint32(stop - first), nb.uint32(first)
    behind = _NONE
    while number < blocks:
        if head(row, number) >= stop:
            behind = head(row, number)
            break
        size = read_documents(view, row, number, to_documents)
        read_counts(view, row, number, to_counts)
        weigh(to_documents, to_counts, (size + _15) >> _4, norms, weight, to_added)
        for i in range(size):
            place = documents[i] - first_32  # modulo 2^32: documents before the window wrap to large positions
            places[i] = place if place < width else nb.uint32(WINDOW)
        _mark(marks, places, size)
        for i in range(size):
            accumulators[nb.uint64(places[i])] += added[i]
        if nb.uint64(documents[size - _1]) >= stop:
            inside = _0
            for i in range(size):
                inside += nb.uint64(nb.uint64(documents[i]) < stop)
            behind = max(nb.uint64(documents[min(inside, size - _1)]), stop)
            break
        number += _1
    store_u64(row + NEXT_BLOCK, min(number, blocks - _1))  # the last block stays: documents after it may be looked up
    return behind


@inner
def _look_up(
    view: View,
    row: int,
    weight: float,
    bounds: Float32,
    norms: int,
    need: float,
    require: bool,
    count: int,
    found: Candidates,
    block: Block,
) -> Any:
    """Add a list's scores to those of candidates; return the number of remaining candidates.

    Parameters
    ----------
    need
        Candidates that stay below are dropped.
    require
        Whether candidates that are not in the list are dropped.

    """
    candidates, scores, origins, hits = found.documents, found.scores, found.origins, found.hits
    documents, counts, places, added = block.documents, block.counts, block.places, block.added
    to_documents, to_counts, to_added = (
        nb.uint64(documents.ctypes.data),
        nb.uint64(counts.ctypes.data),
        nb.uint64(added.ctypes.data),
    )
    blocks, number = load_u64(row + BLOCKS), load_u64(row + NEXT_BLOCK)
    bounded = is_coded(row) and len(bounds) > 0
    first_block = load_u64(row + FIRST_BLOCK)
    kept, at = _0, _0
    while at < count:
        number = _find_block(row, number, nb.uint64(candidates[at]))
        limit = head(row, number + _1) if number + _1 < blocks else _NONE
        bound = weight * bounds[first_block + number] if bounded else weight
        stop, best = at, nb.float32(-1)
        most = min(count, at + _BLOCK)
        while stop < most and nb.uint64(candidates[stop]) < limit:
            best = max(best, scores[stop])
            stop += _1
        stop = max(stop, at + _1)  # guards against damaged heads that do not ascend
        if nb.float32(best + bound) < need:
            at = stop
            continue
        size = read_documents(view, row, number, to_documents)
        for i in range(size, _BLOCK):
            documents[i] = nb.uint32(0xFFFFFFFF)
        matches = _0
        for c in range(at, stop):
            place = _below(documents, candidates[c])
            hits[matches] = nb.uint32(c)
            places[matches] = nb.uint32(place)
            matches += nb.uint64(documents[place] == candidates[c])
        if matches >= _MANY:
            read_counts(view, row, number, to_counts)
            for h in range(matches):
                places[h] = counts[nb.uint64(places[h])]
        else:
            for h in range(matches):
                places[h] = read_count(view, row, number, nb.uint64(places[h]))
        for h in range(matches):
            documents[h] = candidates[nb.uint64(hits[h])]
        for h in range(matches, (matches + _15) & ~_15):
            documents[h] = 0
        weigh(to_documents, nb.uint64(places.ctypes.data), (matches + _15) >> _4, norms, weight, to_added)
        if require:
            for h in range(matches):
                c = nb.uint64(hits[h])
                score = scores[c] + added[h]
                candidates[kept] = candidates[c]
                origins[kept] = origins[c]
                scores[kept] = score
                kept += nb.uint64(score >= need)
        else:
            for h in range(matches):
                scores[nb.uint64(hits[h])] += added[h]
            for c in range(at, stop):
                score = scores[c]
                candidates[kept] = candidates[c]
                scores[kept] = score
                kept += nb.uint64(score >= need)
        at = stop
    store_u64(row + NEXT_BLOCK, number)
    return kept


@inner
def _largest(bounds: Float32, first: int, blocks: int) -> Any:
    largest = nb.int32(0)
    for block in range(first, first + blocks):
        largest = max(largest, as_bits(bounds[block]))
    return largest


@inner
def _bound_rest(rows: UInt64, lists: int, weights: Float32, first: int, bounds: Float32, rest: Float64) -> None:
    """Write the maximum sum of contributions of lists i and on to ``rest[i]``."""
    base = nb.uint64(rows.ctypes.data)
    rest[lists] = 0.0
    for back in range(lists):
        i = lists - _1 - nb.uint64(back)
        row = base + i * ROW_BYTES
        bound = 1.0
        if is_coded(row) and len(bounds) > 0:
            bound = nb.float64(as_float(_largest(bounds, load_u64(row + FIRST_BLOCK), load_u64(row + BLOCKS))))
        rest[i] = rest[i + _1] + nb.float64(weights[first + i]) * bound


@inner
def _score_of(key: int) -> Any:
    return nb.float64(as_float(nb.int32(key >> nb.uint64(32))))


@inner
def _needed(threshold: float, rest: float, lists: int) -> Any:
    """Return the score (float32) below which adding ``rest`` cannot reach a threshold, with a margin for rounding."""
    need = threshold * (1.0 - 1.2e-7 * (nb.float64(lists) + 8.0)) - rest
    return nb.float32(need - 1e-6 * abs(need))


@inner
def _may_leave_out(scored: int, size: int, room: int, all_lists: float, rest: float) -> Any:
    """Tell whether finding the k-th best score so far pays: it may exceed ``rest``, and saves more than it costs."""
    return scored > room and scored < size and all_lists > rest + rest


@inner
def _room(numbers: UInt64, kept: int) -> Room:
    lists = (nb.uint64(len(numbers)) - _2 * kept - _1) // nb.uint64(10)
    rows, behind = _2 * kept, _2 * kept + nb.uint64(8) * lists
    rest = numbers[behind + lists :].view(np.float64)
    return Room(numbers[:kept], numbers[kept:rows], numbers[rows:behind], numbers[behind : behind + lists], rest)


@inner
def _search_any(
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
    """Answer queries ``start`` to ``stop`` with documents in any of their lists.

    Parameters
    ----------
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
        Work space of this thread: the result of :func:`thread_rooms`, and uint64: twice the maximum number of results,
        ten per list of the longest query, and one.
    found, documents, scores
        Outputs; scores are float32 as bits.

    """
    view, norms_at = view_at(addresses), nb.uint64(norms.ctypes.data)
    extra = Lists(extra_offsets, extra_documents, extra_counts)
    workspace = _workspace(accumulators, marks, for_blocks)
    bits, candidates, block = workspace.bits, workspace.found, workspace.block
    room = min(nb.uint64(documents.shape[1]), view.documents)
    heap, trial, rows, behind, rest = _room(for_lists, room)
    whole_marks = marks[: WINDOW // GROUP]
    base = nb.uint64(rows.ctypes.data)
    for q in range(start, stop):
        first_list = nb.uint64(offsets[q])
        lists = nb.uint64(offsets[q + 1]) - first_list
        for i in range(lists):
            row = base + i * ROW_BYTES
            open_list(view, extra, numbers[first_list + i], row)
            behind[i] = head(row, _0) if load_u64(row + BLOCKS) != 0 else _NONE
        _bound_rest(rows, lists, weights, first_list, bounds, rest)
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
                row = base + i * ROW_BYTES
                need = _needed(threshold, rest[i], lists)
                if need <= 0 and size < room and _may_leave_out(scored, list_size(row), room, rest[_0], rest[i]):
                    tried = push_touched(bits, whole_marks, first, allowed, trial, _0, False)
                    threshold = _score_of(trial[_0]) if tried == room else threshold
                    need = _needed(threshold, rest[i], lists)
                if need > 0 and _POSTINGS_A_LOOKUP * count_touched(bits, whole_marks, as_bits(need)) <= list_size(row):
                    break
                if behind[i] < window_stop:
                    scored += list_size(row)
                    weight = weights[first_list + i]
                    behind[i] = _score_window(
                        view, row, weight, norms_at, first, window_stop, accumulators, marks, block
                    )
                i += _1
            if i == lists:
                size = push_touched(bits, whole_marks, first, allowed, heap, size, True)
            else:
                least = as_bits(max(_needed(threshold, rest[i], lists), nb.float32(0)))
                count = take_touched(bits, whole_marks, first, allowed, least, candidates.documents, candidates.bits)
                while i < lists and count > 0:
                    row, weight = base + i * ROW_BYTES, weights[first_list + i]
                    need = _needed(threshold, rest[i + _1], lists)
                    count = _look_up(view, row, weight, bounds, norms_at, need, False, count, candidates, block)
                    i += _1
                for c in range(count):
                    size = push(heap, size, key_of(nb.uint32(candidates.bits[c]), candidates.documents[c]))
            if size == room:
                threshold = max(threshold, _score_of(heap[_0]))
        found[q] = nb.int64(size)
        write_best(heap, size, documents[q], scores[q])


@inner
def _take_blocks(view: View, row: int, first: int, stop: int, allowed: UInt32, found: Candidates, block: Block) -> Any:
    """Make the allowed documents of some blocks of a list the candidates; return their number."""
    candidates, scores, origins, documents = found.documents, found.scores, found.origins, block.documents
    count, origin = _0, _0
    for number in range(first, stop):
        size = read_documents(view, row, number, nb.uint64(documents.ctypes.data))
        for i in range(size):
            candidates[count] = documents[i]
            origins[count] = origin + i
            scores[count] = nb.float32(-0.0)
            count += nb.uint64(is_allowed(allowed, nb.uint64(documents[i])))
        origin += _BLOCK
    return count


@inner
def _add_own(
    view: View, row: int, weight: float, norms: int, first_block: int, count: int, found: Candidates, block: Block
) -> None:
    """Add the scores of the candidates' own list; ``first_block`` is their chunk's first block."""
    candidates, scores, origins = found.documents, found.scores, found.origins
    documents, counts, places, added = block.documents, block.counts, block.places, block.added
    at = _0
    while at < count:
        number = nb.uint64(origins[at]) // _BLOCK
        stop = at
        while stop < count and nb.uint64(origins[stop]) // _BLOCK == number:
            documents[stop - at] = candidates[stop]
            stop += _1
        if stop - at >= _MANY:
            read_counts(view, row, first_block + number, nb.uint64(counts.ctypes.data))
            for c in range(at, stop):
                places[c - at] = counts[nb.uint64(origins[c]) % _BLOCK]
        else:
            for c in range(at, stop):
                places[c - at] = read_count(view, row, first_block + number, nb.uint64(origins[c]) % _BLOCK)
        groups = (stop - at + _15) >> _4
        for i in range(stop - at, groups << _4):
            documents[i] = nb.uint32(0)
        weigh(
            nb.uint64(documents.ctypes.data),
            nb.uint64(places.ctypes.data),
            groups,
            norms,
            weight,
            nb.uint64(added.ctypes.data),
        )
        for c in range(at, stop):
            scores[c] += added[c - at]
        at = stop


@inner
def _search_all(
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
    """Answer queries ``start`` to ``stop`` with documents in all of their lists; otherwise as :func:`_search_any`."""
    view, norms_at = view_at(addresses), nb.uint64(norms.ctypes.data)
    extra = Lists(extra_offsets, extra_documents, extra_counts)
    workspace = _workspace(accumulators, marks, for_blocks)
    candidates, block = workspace.found, workspace.block
    room = min(nb.uint64(documents.shape[1]), view.documents)
    heap, _, rows, _, rest = _room(for_lists, room)
    base = nb.uint64(rows.ctypes.data)
    for q in range(start, stop):
        first_list = nb.uint64(offsets[q])
        lists = nb.uint64(offsets[q + 1]) - first_list
        shortest, fewest = _0, _NONE
        for i in range(lists):
            row = base + i * ROW_BYTES
            open_list(view, extra, numbers[first_list + i], row)
            if list_size(row) < fewest:
                shortest, fewest = i, list_size(row)
        _bound_rest(rows, lists, weights, first_list, bounds, rest)
        own_row, blocks = base + shortest * ROW_BYTES, _0
        if lists != 0:
            blocks = load_u64(own_row + BLOCKS)
        size, threshold, number = _0, -1.0, _0
        while number < blocks and _needed(threshold, rest[_0], lists) <= 0:
            first_block = number
            number = min(first_block + _CHUNK_BLOCKS, blocks)
            count = _take_blocks(view, own_row, first_block, number, allowed, candidates, block)
            for step in range(lists):
                # addition commutes: if the shortest list is the first, only documents also in the second list are
                # scored
                i = _1 - step if shortest == 0 and lists > _1 and step < _2 else step
                row, weight = base + i * ROW_BYTES, weights[first_list + i]
                if i == shortest:
                    _add_own(view, row, weight, norms_at, first_block, count, candidates, block)
                else:
                    need = _needed(threshold, rest[i + _1] + (rest[_0] - rest[_1] if step < i else 0.0), lists)
                    count = _look_up(view, row, weight, bounds, norms_at, need, True, count, candidates, block)
            for c in range(count):
                size = push(heap, size, key_of(nb.uint32(candidates.bits[c]), candidates.documents[c]))
            if size == room:
                threshold = _score_of(heap[_0])
        found[q] = nb.int64(size)
        write_best(heap, size, documents[q], scores[q])


def _array_at(dtype: Any) -> Any:
    def array_at(typing_context: Any, address: Any, size: Any) -> Any:
        """Return an array of ``size`` numbers at an address."""
        array_type = types.Array(dtype, 1, "C")

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            made = context.make_array(array_type)(context, builder)
            step = context.get_constant(types.intp, dtype.bitwidth // 8)
            data = builder.inttoptr(arguments[0], made.data.type)
            populate_array(made, data=data, shape=[arguments[1]], strides=[step], itemsize=step, meminfo=None)
            return made._getvalue()

        return array_type(types.uint64, types.int64), generate

    return intrinsic(array_at)


_u8s, _u32s, _u64s, _i64s, _f32s = map(_array_at, (nb.uint8, nb.uint32, nb.uint64, nb.int64, nb.float32))


@inner
def _opened(block: int) -> Any:
    """Return the arguments that :func:`run_search` wrote at an address."""
    a = _u64s(block, BLOCK_SIZE)
    queries, width = nb.int64(a[25]), nb.int64(a[26])
    return (
        _u64s(a[0], nb.int64(a[17])),
        _f32s(a[1], nb.int64(a[18])),
        _f32s(a[2], nb.int64(a[19])),
        _i64s(a[3], queries + 1),
        _u32s(a[4], nb.int64(a[20])),
        _f32s(a[5], nb.int64(a[20])),
        _i64s(a[6], nb.int64(a[21])),
        _u32s(a[7], nb.int64(a[22])),
        _u32s(a[8], nb.int64(a[22])),
        _u32s(a[9], nb.int64(a[23])),
        nb.int64(a[27]),
        nb.int64(a[28]),
        _f32s(a[10], WINDOW + GROUP),
        _u8s(a[11], WINDOW // GROUP + 8),
        _u32s(a[12], 3 * WINDOW + 5 * BLOCK),
        _u64s(a[13], nb.int64(a[24])),
        _i64s(a[14], queries),
        _u32s(a[15], queries * width).reshape((queries, width)),
        _u32s(a[16], queries * width).reshape((queries, width)),
    )


def _any(block: int) -> None:
    _search_any(*_opened(block))


def _all(block: int) -> None:
    _search_all(*_opened(block))


def search_function(require_all: bool) -> int:
    """Return the address of what :func:`run_search` calls: compiled once for all kernels that do."""
    return int(address_of(_all if require_all else _any, 1))


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
    addresses, norms, bounds, offsets, numbers, weights, extra_offsets, extra_documents, extra_counts, allowed
        As for :func:`_search_any`.
    start, stop, accumulators, marks, for_blocks, for_lists, found, documents, scores
        As there.

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
    view, block = view_at(addresses), _workspace(accumulators, marks, for_blocks).block
    to_documents, to_counts = nb.uint64(block.documents.ctypes.data), nb.uint64(block.counts.ctypes.data)
    to_added, added = nb.uint64(block.added.ctypes.data), block.added
    for t in range(start, stop):
        offsets = view.block_offsets + nb.uint64(8 * t)
        for number in range(load_u64(offsets), load_u64(offsets + nb.uint64(8))):
            size = decode_documents(view, nb.uint64(t), number, to_documents)
            decode_counts(view, nb.uint64(t), number, to_counts)
            weigh(to_documents, to_counts, (size + _15) >> _4, nb.uint64(norms.ctypes.data), nb.float32(1), to_added)
            bound = nb.int32(0)
            for i in range(size):
                bound = max(bound, as_bits(added[i]))
            bounds[number] = as_float(bound)


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
        Result of :func:`block_bounds` for the same norms, with which OR reads less; or None.

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
