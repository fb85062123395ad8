"""Finds the best documents that hold all of a query's words (Ding et al., WWW 2009, section 5) on the CPU.

Looks up the shortest list's documents in the others.
"""

from __future__ import annotations

from typing import Any

import numba as nb

from polars_tadoc.kernels.postings.coded import BLOCK
from polars_tadoc.kernels.postings.decode_cpu import View
from polars_tadoc.kernels.search.accumulators_cpu import is_allowed, key_of, push, weigh, write_best
from polars_tadoc.kernels.search.arguments_cpu import arguments_at
from polars_tadoc.kernels.search.blocks_cpu import (
    BLOCKS,
    ROW_BYTES,
    list_size,
    open_list,
    read_count,
    read_counts,
    read_documents,
)
from polars_tadoc.kernels.search.lookup_cpu import MANY, NO_DOCUMENT, bound_rest, look_up, needed, score_of
from polars_tadoc.kernels.search.workspace_cpu import Block, Candidates, room_of
from polars_tadoc.runtime.addresses import load_u64
from polars_tadoc.runtime.array_types import UInt32
from polars_tadoc.runtime.jit import inner

_0, _1, _2, _4, _15 = (nb.uint64(i) for i in (0, 1, 2, 4, 15))
_BLOCK = nb.uint64(BLOCK)
_CHUNK_BLOCKS = nb.uint64(8)
"""Blocks of the shortest list that are looked up together."""


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
        if stop - at >= MANY:
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


def search_all(arguments: int) -> None:
    """Answer queries with documents in all of their lists, given the address of :func:`.search_cpu.run_search`'s."""
    given = arguments_at(arguments)
    view, norms_at, bounds, offsets, numbers, weights, extra, allowed, start, stop, workspace = given[:11]
    for_lists, found, documents, scores = given[11:]
    candidates, block = workspace.found, workspace.block
    room = min(nb.uint64(documents.shape[1]), view.documents)
    heap, _, rows, _, rest = room_of(for_lists, room)
    base = nb.uint64(rows.ctypes.data)
    for q in range(start, stop):
        first_list = nb.uint64(offsets[q])
        lists = nb.uint64(offsets[q + 1]) - first_list
        shortest, fewest = _0, NO_DOCUMENT
        for i in range(lists):
            row = base + i * ROW_BYTES
            open_list(view, extra, numbers[first_list + i], row)
            if list_size(row) < fewest:
                shortest, fewest = i, list_size(row)
        own_row, blocks = base + shortest * ROW_BYTES, _0
        if lists != 0:
            blocks = load_u64(own_row + BLOCKS)
        own_bounds = bounds
        if blocks <= _CHUNK_BLOCKS:  # there is no threshold yet when the last document is scored
            own_bounds = bounds[:0]
            for i in range(lists + _1):
                rest[i] = 0.0
        else:
            bound_rest(view, norms_at, block, rows, lists, weights, first_list, bounds, rest)
        size, threshold, number = _0, -1.0, _0
        while number < blocks and needed(threshold, rest[_0], lists) <= 0:
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
                    need = needed(threshold, rest[i + _1] + (rest[_0] - rest[_1] if step < i else 0.0), lists)
                    count = look_up(view, row, weight, own_bounds, norms_at, need, True, count, candidates, block)
            for c in range(count):
                size = push(heap, size, key_of(nb.uint32(candidates.bits[c]), candidates.documents[c]))
            if size == room:
                threshold = score_of(heap[_0])
        found[q] = nb.int64(size)
        write_best(heap, size, documents[q], scores[q])
