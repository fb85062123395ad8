"""Counts the documents in all lists, or in any, without ranking them; makes the bitmaps of long lists."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.postings.coded import BLOCK, Postings
from polars_tadoc.kernels.postings.decode_cpu import View, addresses_of, decode_documents, view_at
from polars_tadoc.kernels.search.accumulators_cpu import WINDOW, is_allowed
from polars_tadoc.kernels.search.blocks_cpu import BLOCKS, ROW_BYTES, Bitmaps, list_size, read_documents
from polars_tadoc.kernels.search.programs_cpu import WORDS, count_bits, keep_common, list_bits, mark_all
from polars_tadoc.kernels.search.workspace_cpu import Workspace
from polars_tadoc.runtime.addresses import load_u64
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner, kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

FEW = 1 << 13
"""Maximum documents that are merged in arrays; more are marked in bitmaps, window by window."""

_0, _WINDOW = nb.uint64(0), nb.uint64(WINDOW)
_BLOCKS_AT_ONCE = 64
_POSTINGS_A_LOOKUP = 8
"""Decoding this many postings takes as long as looking up one document."""


@inner
def _by_size(base: int, lists: int, order: Int64) -> None:
    """Write the opened lists, the shortest first."""
    for i in range(lists):
        at, size = i, list_size(base + nb.uint64(i) * ROW_BYTES)
        while at > 0 and list_size(base + nb.uint64(order[at - 1]) * ROW_BYTES) > size:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i


@inner
def count_all(view: View, base: int, lists: int, allowed: UInt32, order: Int64, workspace: Workspace) -> Any:
    """Count the allowed documents in all of the opened lists at an address; ``order`` has room for the lists."""
    candidates, room = workspace.found.documents, workspace.block.documents
    _by_size(base, lists, order)
    row, total, number = base + nb.uint64(order[0]) * ROW_BYTES, nb.int64(0), nb.int64(0)
    blocks = nb.int64(load_u64(row + BLOCKS))
    while number < blocks:
        count, stop = nb.int64(0), min(number + _BLOCKS_AT_ONCE, blocks)
        while number < stop:
            to_candidates = nb.uint64(candidates.ctypes.data) + nb.uint64(4 * count)
            count += nb.int64(read_documents(view, row, nb.uint64(number), to_candidates))
            number += 1
        for i in range(1, lists):
            if count != 0:
                count = keep_common(view, base + nb.uint64(order[i]) * ROW_BYTES, candidates, count, room)
        if len(allowed):
            for c in range(count):
                total += nb.int64(is_allowed(allowed, nb.uint64(candidates[c])))
        else:
            total += count
    return total


@inner
def _merged(view: View, row: int, own: UInt32, count: int, room: UInt32, merged: UInt32) -> Any:
    """Write the union of ascending documents and a list; return its size."""
    at, size = 0, 0
    for number in range(load_u64(row + BLOCKS)):
        for i in range(read_documents(view, row, nb.uint64(number), nb.uint64(room.ctypes.data))):
            document = room[i]
            while at < count and own[at] < document:
                merged[size] = own[at]
                at, size = at + 1, size + 1
            at += nb.int64(at < count and own[at] == document)
            merged[size] = document
            size += 1
    while at < count:
        merged[size] = own[at]
        at, size = at + 1, size + 1
    return size


@inner
def count_any(view: View, base: int, lists: int, order: Int64, sets: UInt64, workspace: Workspace) -> Any:
    """Count the documents in any of the opened lists at an address.

    The documents of all lists but the longest are united; of the longest one, only these are looked up.

    Parameters
    ----------
    view, base, lists
        The postings; the address of the lists, at least one, and their number.
    order, sets, workspace
        Work space: room for the lists, two bitmaps of a window, and that of the thread.

    Returns
    -------
    int
        Number of documents, also deleted ones.

    """
    _by_size(base, lists, order)
    longest, postings = base + nb.uint64(order[lists - 1]) * ROW_BYTES, nb.int64(0)
    for i in range(lists - 1):
        postings += nb.int64(list_size(base + nb.uint64(order[i]) * ROW_BYTES))
    total, room = nb.int64(list_size(longest)), workspace.block.documents
    own, merged = workspace.found.documents, workspace.found.origins
    if postings <= FEW:
        count = nb.int64(0)
        for i in range(lists - 1):
            count = _merged(view, base + nb.uint64(order[i]) * ROW_BYTES, own, count, room, merged)
            own, merged = merged, own
        return total + count - (keep_common(view, longest, own, count, room) if count != 0 else 0)
    marks, others = sets[0], sets[1]
    for window in range((nb.int64(view.documents) + WINDOW - 1) // WINDOW):
        first = nb.uint64(window) * _WINDOW
        for word in range(WORDS):
            marks[word] = _0
        for i in range(lists - 1):
            mark_all(view, base + nb.uint64(order[i]) * ROW_BYTES, first, marks, room)
        count = count_bits(marks, WORDS)
        share = nb.int64(list_size(longest)) // (1 + nb.int64(view.documents) // WINDOW)
        total += count
        if count * _POSTINGS_A_LOOKUP < share:
            total -= keep_common(view, longest, own, list_bits(marks, WORDS, first, own), room)
        elif count != 0:
            for word in range(WORDS):
                others[word] = _0
            mark_all(view, longest, first, others, room)
            for word in range(WORDS):
                others[word] &= marks[word]
            total -= count_bits(others, WORDS)
    return total


@polled
@kernel
def mark_lists(addresses: UInt64, lists: Int64, start: int, stop: int, documents: UInt32, words: UInt64) -> None:
    """Write the bitmaps of some of the ``lists``, :class:`.blocks_cpu.Bitmaps`; ``documents`` is room for a block."""
    view, began, size = view_at(addresses), interrupts(), len(words) // max(len(lists), 1)
    to_documents = nb.uint64(documents.ctypes.data)
    for i in range(start, stop):
        number, own = nb.uint64(lists[i]), words[i * size : (i + 1) * size]
        own[:] = 0
        offsets = view.block_offsets + nb.uint64(8) * number
        for block in range(load_u64(offsets), load_u64(offsets + nb.uint64(8))):
            if interrupts() != began:
                return
            for j in range(decode_documents(view, number, nb.uint64(block), to_documents)):
                document = nb.uint64(documents[j])
                own[document >> nb.uint64(6)] |= nb.uint64(1) << (document & nb.uint64(63))


def bitmaps_of(postings: Postings, least: int, most: int) -> Bitmaps:
    """Make the bitmaps of lists of at least ``least`` documents: of the ``most`` longest ones."""
    frequencies, size = postings.frequencies, (int(postings.documents) + 63) >> 6
    lists = (frequencies >= least).nonzero()[0]
    if len(lists) > most:
        lists = np.sort(lists[np.argsort(-frequencies[lists].astype(np.int64), kind="stable")[:most]])
    words, addresses = np.empty(len(lists) * size, np.uint64), addresses_of(postings)

    def mark(chunk: tuple[int, int]) -> None:
        mark_lists(addresses, lists, *chunk, np.empty(BLOCK, np.uint32), words)

    map_parallel(mark, even_chunks(len(lists), 1))
    return Bitmaps(lists, words)


assert _BLOCKS_AT_ONCE * BLOCK <= WINDOW
