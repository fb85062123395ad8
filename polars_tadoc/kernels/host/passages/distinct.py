"""Distinct stretches of windows, each kept once with the words that it needs, and the passages found by them."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.host.passages.layout import SEPARATOR
from polars_tadoc.kernels.host.passages.runs import LATER, REPEATED
from polars_tadoc.kernels.host.passages.windows import _mixed, _rolled, _whole
from polars_tadoc.runtime.addresses import prefetch
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner, kernel

ANY = -1
"""Repeated windows of all kinds."""

_AHEAD = 6
"""Prefetch distance in stretches."""
_LINE = 16
"""Words of a cache line."""


@inner
def _is_same(words: UInt32, at: int, kept: UInt32, place: int, size: int) -> bool:
    for k in range(size):  # noqa: SIM110 - numba
        if words[at + k] != kept[place + k]:
            return False
    return True


@polled
@kernel
def enter(hashes: UInt64, count: int, slots: UInt32) -> None:
    """Enter the first kept stretches in a larger table; ``slots`` has zeros."""
    last, began = np.uint64(len(slots) - 1), interrupts()
    for k in range(count):
        if k & 0xFFF == 0 and interrupts() != began:
            return
        slot = hashes[k] & last
        while slots[np.int64(slot)] != np.uint32(0):
            slot = (slot + np.uint64(1)) & last
        slots[np.int64(slot)] = k + 1


@polled
@kernel
def collect(
    words: UInt32,
    places: UInt32,
    sizes: UInt32,
    length: int,
    base: np.uint64,
    key: np.uint64,
    first: int,
    kept: UInt32,
    kept_starts: Int64,
    amounts: Int64,
    hashes: UInt64,
    slots: UInt32,
    state: Int64,
    ids: UInt32,
) -> int:
    """Number stretches by their words; keep the words of new ones.

    Parameters
    ----------
    words
        uint32: the documents.
    places, sizes
        uint32 by stretch: place of the first window, number of windows.
    length, base, key
        Words of a window; what stretches are hashed with (:class:`windows.Fingerprints`).
    first
        The first stretch to number.
    kept, kept_starts
        uint32, and int64 by kept stretch and one more: the words that are kept, a separator after each stretch.
    amounts, hashes
        int64 and uint64 by kept stretch: how often it was given, and its hash.
    slots
        uint32, a power of two: a table of their numbers plus one, at most half full.
    state
        int64: number of kept stretches.
    ids
        uint32 by stretch: the number of the kept one.

    Returns
    -------
    int
        Number of stretches that have an id; fewer than all if ``kept``, ``amounts`` or ``slots`` is full.

    """
    last, began = np.uint64(len(slots) - 1), interrupts()
    for k in range(first, len(places)):
        if k & 0xFF == 0 and interrupts() != began:
            return k
        if k + _AHEAD < len(places):
            for j in range(0, np.int64(sizes[k + _AHEAD]) + length, _LINE):
                prefetch(words, np.int64(places[k + _AHEAD]) + j)
        at, size = np.int64(places[k]), np.int64(sizes[k]) + length - 1
        own = _mixed(_whole(words, at, size, base), key)
        slot = own & last
        while True:
            known = np.int64(slots[np.int64(slot)]) - 1
            if known < 0:
                known, start = state[0], kept_starts[state[0]]
                if known == len(amounts) or start + size + 1 > len(kept) or 2 * known >= len(slots):
                    return k
                for j in range(size):
                    kept[start + j] = words[at + j]
                kept[start + size] = SEPARATOR
                kept_starts[known + 1] = start + size + 1
                amounts[known], hashes[known] = 1, own
                slots[np.int64(slot)] = known + 1
                state[0] = known + 1
                break
            start = kept_starts[known]
            if (
                hashes[known] == own
                and kept_starts[known + 1] - start - 1 == size
                and _is_same(words, at, kept, start, size)
            ):
                amounts[known] += 1
                break
            slot = (slot + np.uint64(1)) & last
        ids[k] = known
    return len(places)


@polled
@kernel
def split_windows(
    words: UInt32,
    places: UInt32,
    sizes: UInt32,
    length: int,
    base: np.uint64,
    power: np.uint64,
    key: np.uint64,
    window_places: UInt32,
    keys: UInt64,
) -> None:
    """Write place and fingerprint of each window of some stretches; parameters as above."""
    made, began = 0, interrupts()
    for k in range(len(places)):
        if k & 0xFF == 0 and interrupts() != began:
            return
        at = np.int64(places[k])
        h = _whole(words, at, length, base)
        for j in range(np.int64(sizes[k])):
            if j > 0:
                h = _rolled(h, words, at + j, length, base, power)
            window_places[made], keys[made] = at + j, _mixed(h, key)
            made += 1


@polled
@kernel
def weigh(kept_starts: Int64, length: int, amounts: Int64, first: UInt32, totals: UInt64, marks: UInt64) -> None:
    """Count the occurrences of each window of kept stretches.

    Parameters
    ----------
    kept_starts, amounts
        Of the kept stretches: starts, and how often each was given.
    first
        uint32 by place: the first place of the window.
    totals
        uint64 by place: scratch, zeros.
    marks
        uint64 by window, in order: twice the occurrences, plus one if the window is the first of its kind.

    """
    began = interrupts()
    for k in range(len(amounts)):
        if k & 0xFFF == 0 and interrupts() != began:
            return
        for i in range(kept_starts[k], kept_starts[k + 1] - length):
            totals[np.int64(first[i])] += np.uint64(amounts[k])
    made = 0
    for k in range(len(amounts)):
        if k & 0xFFF == 0 and interrupts() != began:
            return
        for i in range(kept_starts[k], kept_starts[k + 1] - length):
            root = np.int64(first[i])
            marks[made] = np.uint64(2) * totals[root] + np.uint64(root == i)
            made += 1


@polled
@kernel
def list_hits(
    places: UInt32,
    sizes: UInt32,
    ids: UInt32,
    seen: UInt8,
    kept_starts: Int64,
    length: int,
    kind: int,
    min_count: int,
    marks: UInt64,
    hit_places: UInt32,
    hit_sizes: UInt32,
    are_first: UInt8,
    counts: UInt64,
) -> int:
    """List the repeated windows of stretches, adjacent ones together that are alike, or alike for :func:`join_hits`.

    Parameters
    ----------
    places, sizes, ids
        uint32 by stretch: as for :func:`collect`.
    seen
        uint8 by kept stretch: whether it was given before.
    kept_starts, length, marks
        Of the kept stretches: starts, words of a window, and the windows (:func:`weigh`).
    kind, min_count
        The windows that will make runs, ``runs.REPEATED`` or ``runs.LATER``, or :data:`ANY`.
    hit_places, hit_sizes, are_first, counts
        uint32, uint32, uint8 and uint64: place of the first window, number of windows, whether each is its first
        occurrence, and their count, the largest one where it differs. There is room for each window.

    Returns
    -------
    int
        Number of entries.

    """
    made, began = 0, interrupts()
    for k in range(len(places)):
        if k & 0xFFF == 0 and interrupts() != began:
            return made
        own = np.int64(ids[k])
        is_new = seen[own] == 0
        seen[own] = 1
        is_open = False
        window = kept_starts[own] - own * length  # each takes ``length`` more places than it has windows
        for j in range(np.int64(sizes[k])):
            mark = marks[window + j]
            count = mark >> np.uint64(1)
            if count < np.uint64(2):
                is_open = False
                continue
            is_first = np.uint8(is_new and mark & np.uint64(1) != np.uint64(0))
            if is_open:
                before, was_first = counts[made - 1], are_first[made - 1]
                if kind == REPEATED:
                    is_alike = (before >= np.uint64(min_count)) == (count >= np.uint64(min_count))
                else:
                    is_alike = was_first == is_first and (kind == LATER or before == count)
                if is_alike:
                    hit_sizes[made - 1] += np.uint32(1)
                    counts[made - 1], are_first[made - 1] = max(before, count), was_first & is_first
                    continue
            hit_places[made], hit_sizes[made] = np.int64(places[k]) + j, 1
            are_first[made], counts[made] = is_first, count
            made += 1
            is_open = True
    return made


@polled
@kernel
def join_hits(
    rows: Int64,
    offsets: Int64,
    sizes: Int64,
    are_first: UInt8,
    counts: UInt64,
    length: int,
    kind: int,
    min_count: int,
    found_rows: Int64,
    begins: Int64,
    ends: Int64,
    copies: UInt64,
    firsts: UInt8,
) -> int:
    """Join repeated windows to maximal runs of words.

    Parameters
    ----------
    rows, offsets, sizes, are_first, counts
        By entry, in the order of rows and words: row, number of the first window's first word, number of windows,
        whether they are first occurrences, and their count.
    length
        Words of a window.
    kind, min_count
        ``runs.REPEATED`` or ``runs.LATER``: the windows that make runs.
    found_rows, begins, ends
        int64 by run: row, first word, and the one after the last. There is room for each entry.
    copies, firsts
        uint64 and uint8 by run: largest count, and whether all windows inside are first occurrences.

    Returns
    -------
    int
        Number of runs.

    """
    made, began = 0, interrupts()
    waits: Any = np.uint8(1)  # whether the windows after the last one of the run, below the count, are first
    for k in range(len(rows)):
        if k & 0xFFFF == 0 and interrupts() != began:
            return made
        is_hit = counts[k] >= np.uint64(min_count) and not (kind == LATER and are_first[k])
        if not is_hit:
            waits &= are_first[k]
            continue
        end = offsets[k] + sizes[k] - 1 + length
        if made > 0 and found_rows[made - 1] == rows[k] and offsets[k] <= ends[made - 1]:
            ends[made - 1] = max(end, ends[made - 1])
            copies[made - 1] = max(copies[made - 1], counts[k])
            firsts[made - 1] &= are_first[k] & waits
        else:
            found_rows[made], begins[made], ends[made] = rows[k], offsets[k], end
            copies[made], firsts[made] = counts[k], are_first[k]
            made += 1
        waits = np.uint8(1)
    return made
