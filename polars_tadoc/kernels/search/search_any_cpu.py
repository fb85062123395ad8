"""Finds the best documents that hold any of a query's words (Ding et al., WWW 2009, sections 5 and 6) on the CPU.

Adds the scores of lists, shortest first, to accumulators, window by window. As soon as the k-th best score exceeds
what all remaining lists can add, no new document can enter; documents that still can are looked up in these lists if
they are few (MaxScore, Turtle and Flood, 1995, with block bounds as in Ding and Suel, SIGIR 2011).
"""

from __future__ import annotations

from typing import Any

import numba as nb

from polars_tadoc.kernels.postings.coded import BLOCK
from polars_tadoc.kernels.postings.decode_cpu import View
from polars_tadoc.kernels.search.accumulators_cpu import (
    GROUP,
    WINDOW,
    as_bits,
    count_touched,
    key_of,
    push,
    push_touched,
    take_touched,
    weigh,
    write_best,
)
from polars_tadoc.kernels.search.arguments_cpu import arguments_at
from polars_tadoc.kernels.search.blocks_cpu import (
    BLOCKS,
    NEXT_BLOCK,
    ROW_BYTES,
    head,
    list_size,
    open_list,
    read_counts,
    read_documents,
)
from polars_tadoc.kernels.search.lookup_cpu import NO_DOCUMENT, bound_rest, find_block, look_up, needed, score_of
from polars_tadoc.kernels.search.workspace_cpu import Block, room_of
from polars_tadoc.runtime.addresses import load_u64, store_u64
from polars_tadoc.runtime.array_types import Float32, UInt8, UInt32
from polars_tadoc.runtime.jit import inner

_0, _1, _4, _6, _15 = (nb.uint64(i) for i in (0, 1, 4, 6, 15))
_WINDOW, _GROUP, _BLOCK = nb.uint64(WINDOW), nb.uint64(GROUP), nb.uint64(BLOCK)
_POSTINGS_A_LOOKUP = nb.uint64(4)
"""Scoring this many postings takes as long as looking up one document."""


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
    blocks, number = load_u64(row + BLOCKS), find_block(row, load_u64(row + NEXT_BLOCK), first)
    width, first_32 = nb.uint32(stop - first), nb.uint32(first)
    behind = NO_DOCUMENT
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
def _may_leave_out(scored: int, size: int, room: int, all_lists: float, rest: float) -> Any:
    """Tell whether finding the k-th best score so far pays: it may exceed ``rest``, and saves more than it costs."""
    return scored > room and scored < size and all_lists > rest + rest


def search_any(arguments: int) -> None:
    """Answer queries with documents in any of their lists, given the address of :func:`.search_cpu.run_search`'s."""
    given = arguments_at(arguments)
    view, norms_at, bounds, offsets, numbers, weights, extra, allowed, start, stop, workspace = given[:11]
    for_lists, found, documents, scores = given[11:]
    accumulators, marks = workspace.accumulators, workspace.marks
    bits, candidates, block = workspace.bits, workspace.found, workspace.block
    room = min(nb.uint64(documents.shape[1]), view.documents)
    heap, trial, rows, behind, rest = room_of(for_lists, room)
    whole_marks = marks[: WINDOW // GROUP]
    base = nb.uint64(rows.ctypes.data)
    for q in range(start, stop):
        first_list = nb.uint64(offsets[q])
        lists = nb.uint64(offsets[q + 1]) - first_list
        for i in range(lists):
            row = base + i * ROW_BYTES
            open_list(view, extra, numbers[first_list + i], row)
            behind[i] = head(row, _0) if load_u64(row + BLOCKS) != 0 else NO_DOCUMENT
        bound_rest(view, norms_at, block, rows, lists, weights, first_list, bounds, rest)
        size, threshold, window_stop = _0, -1.0, _0
        while True:
            first = NO_DOCUMENT
            for i in range(lists):
                if needed(threshold, rest[i], lists) > 0:
                    break
                first = min(first, behind[i])
            if first == NO_DOCUMENT:
                break
            first = max(first & ~(_GROUP - _1), window_stop)
            window_stop = first + _WINDOW
            scored = _0
            i = _0
            while i < lists:
                row = base + i * ROW_BYTES
                need = needed(threshold, rest[i], lists)
                if need <= 0 and size < room and _may_leave_out(scored, list_size(row), room, rest[_0], rest[i]):
                    tried = push_touched(bits, whole_marks, first, allowed, trial, _0, False)
                    threshold = score_of(trial[_0]) if tried == room else threshold
                    need = needed(threshold, rest[i], lists)
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
                least = as_bits(max(needed(threshold, rest[i], lists), nb.float32(0)))
                count = take_touched(bits, whole_marks, first, allowed, least, candidates.documents, candidates.bits)
                while i < lists and count > 0:
                    row, weight = base + i * ROW_BYTES, weights[first_list + i]
                    need = needed(threshold, rest[i + _1], lists)
                    count = look_up(view, row, weight, bounds, norms_at, need, False, count, candidates, block)
                    i += _1
                for c in range(count):
                    size = push(heap, size, key_of(nb.uint32(candidates.bits[c]), candidates.documents[c]))
            if size == room:
                threshold = max(threshold, score_of(heap[_0]))
        found[q] = nb.int64(size)
        write_best(heap, size, documents[q], scores[q])
