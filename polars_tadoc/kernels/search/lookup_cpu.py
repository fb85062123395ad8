"""Looks up documents in the blocks of a list, and bounds what further lists can add to scores."""

from __future__ import annotations

from typing import Any

import numba as nb

from polars_tadoc.kernels.postings.coded import BLOCK
from polars_tadoc.kernels.postings.decode_cpu import View, decode_counts, decode_documents
from polars_tadoc.kernels.search.accumulators_cpu import as_bits, as_float, weigh
from polars_tadoc.kernels.search.blocks_cpu import (
    BLOCKS,
    FIRST_BLOCK,
    NEXT_BLOCK,
    ROW_BYTES,
    head,
    is_coded,
    list_number,
    read_count,
    read_counts,
    read_documents,
)
from polars_tadoc.kernels.search.workspace_cpu import Block, Candidates
from polars_tadoc.runtime.addresses import load_u64, store_u64
from polars_tadoc.runtime.array_types import Float32, Float64, UInt32, UInt64
from polars_tadoc.runtime.jit import inner

_0, _1, _4, _8, _15 = (nb.uint64(i) for i in (0, 1, 4, 8, 15))
_BLOCK = nb.uint64(BLOCK)
NO_DOCUMENT = ~nb.uint64(0)
UNKNOWN = nb.float32(2)
"""Bound of a block before it is computed: for weight 1, no contribution exceeds 1."""
MANY = nb.uint64(12)
"""From this many counts of a block on, decoding all costs less than reading them one by one."""


@inner
def places_below(documents: UInt32, document: int) -> Any:
    """Count the ascending documents of a full block that are below one; the block's last is never counted."""
    place = _0
    step = nb.uint64(BLOCK // 2)
    while step != 0:
        place += step * nb.uint64(documents[place + step - _1] < document)
        step >>= _1
    return place


@inner
def find_block(row: int, block: int, document: int) -> Any:
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
def look_up(
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
        number = find_block(row, number, nb.uint64(candidates[at]))
        limit = head(row, number + _1) if number + _1 < blocks else NO_DOCUMENT
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
            place = places_below(documents, candidates[c])
            hits[matches] = nb.uint32(c)
            places[matches] = nb.uint32(place)
            matches += nb.uint64(documents[place] == candidates[c])
        if matches >= MANY:
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
def bound_list(view: View, number: int, norms: int, bounds: Float32, block: Block) -> None:
    """Write the maximum contribution of each of a list's blocks to a score, for weight 1."""
    to_documents, to_counts = nb.uint64(block.documents.ctypes.data), nb.uint64(block.counts.ctypes.data)
    to_added, added, offsets = nb.uint64(block.added.ctypes.data), block.added, view.block_offsets + _8 * number
    for own in range(load_u64(offsets), load_u64(offsets + _8)):
        size = decode_documents(view, number, nb.uint64(own), to_documents)
        decode_counts(view, number, nb.uint64(own), to_counts)
        weigh(to_documents, to_counts, (size + _15) >> _4, norms, nb.float32(1), to_added)
        bound = nb.int32(0)
        for i in range(size):
            bound = max(bound, as_bits(added[i]))
        bounds[own] = as_float(bound)


@inner
def _largest(bounds: Float32, first: int, blocks: int) -> Any:
    largest = nb.int32(0)
    for block in range(first, first + blocks):
        largest = max(largest, as_bits(bounds[block]))
    return largest


@inner
def bound_rest(
    view: View, norms: int, block: Block, rows: UInt64, lists: int, weights: Float32, first: int, bounds: Float32,
    rest: Float64,
) -> None:  # fmt: skip
    """Write the maximum sum of contributions of lists i and on to ``rest[i]``.

    The bounds of a list's blocks are made when it is first searched. Threads may do so at once: until a bound is
    written it is ``UNKNOWN``, which is one, too.
    """
    base = nb.uint64(rows.ctypes.data)
    rest[lists] = 0.0
    for back in range(lists):
        i = lists - _1 - nb.uint64(back)
        row = base + i * ROW_BYTES
        bound = 1.0
        if is_coded(row) and len(bounds) > 0:
            if load_u64(row + BLOCKS) != _0 and bounds[load_u64(row + FIRST_BLOCK)] == UNKNOWN:
                bound_list(view, list_number(row), norms, bounds, block)
            bound = nb.float64(as_float(_largest(bounds, load_u64(row + FIRST_BLOCK), load_u64(row + BLOCKS))))
        rest[i] = rest[i + _1] + nb.float64(weights[first + i]) * bound


@inner
def score_of(key: int) -> Any:
    """Return the score in a heap's key."""
    return nb.float64(as_float(nb.int32(key >> nb.uint64(32))))


@inner
def needed(threshold: float, rest: float, lists: int) -> Any:
    """Return the score (float32) below which adding ``rest`` cannot reach a threshold, with a margin for rounding."""
    need = threshold * (1.0 - 1.2e-7 * (nb.float64(lists) + 8.0)) - rest
    return nb.float32(need - 1e-6 * abs(need))
