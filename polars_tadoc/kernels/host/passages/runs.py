"""Passages: maximal runs of words inside windows of a kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.host.passages.windows import NONE
from polars_tadoc.runtime.array_types import Bools, Int64, UInt32
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, polled_kernel

REPEATED, LATER, EARLIER_ROW, KNOWN = 0, 1, 2, 3
"""Windows with at least ``min_count`` occurrences; those of them that are not the first; those that an earlier row has;
those with a place in ``first``."""


@inner
def _is_hit(kind: int, min_count: int, first: UInt32, counts: UInt32, begin: int, at: int) -> Any:
    place = np.int64(first[at])
    if kind == EARLIER_ROW:
        return place < begin
    if kind == KNOWN:
        return first[at] != NONE
    if kind == LATER and place == at:
        return False
    return np.int64(counts[place]) >= min_count


@inner
def _next_run(
    kind: int,
    min_count: int,
    first: UInt32,
    counts: UInt32,
    begin: int,
    at: int,
    end: int,
    length: int,
    began: np.uint64,
) -> tuple[int, int]:
    """Return a document's next run from a place on: its first word and the one after the last.

    Both are -1 if there is none, or after an interrupt. ``end`` is the place after the document's last window.
    """
    while at < end and not _is_hit(kind, min_count, first, counts, begin, at):
        at += 1
        if at & 0xFFFF == 0 and interrupts() != began:
            return -1, -1
    if at >= end:
        return -1, -1
    start, stop = at, at + length
    at += 1
    while at < end and at <= stop:
        if at & 0xFFFF == 0 and interrupts() != began:
            return -1, -1
        if _is_hit(kind, min_count, first, counts, begin, at):
            stop = at + length
        at += 1
    return start, stop


@polled_kernel
def find_runs(
    starts: Int64,
    first_document: int,
    stop_document: int,
    length: int,
    kind: int,
    min_count: int,
    first: UInt32,
    counts: UInt32,
    rows: Int64,
    begins: Int64,
    ends: Int64,
) -> int:
    """Find the maximal runs of words in windows of a kind, in row order.

    Parameters
    ----------
    starts
        int64, documents + 1: start of each document's words; a separator ends each.
    first_document, stop_document
        The documents to search.
    length
        Words of a window.
    kind, min_count
        The windows to look for.
    first, counts
        uint32 by place: first occurrence of the window, and, there, the count.
    rows, begins, ends
        int64 by run: document, place of the first word, and of the one after the last. Empty: runs are only counted.

    Returns
    -------
    int
        Number of runs.

    """
    found, began = 0, interrupts()
    for d in range(first_document, stop_document):
        if interrupts() != began:
            return found
        begin, end = starts[d], starts[d + 1] - length
        start, stop = _next_run(kind, min_count, first, counts, begin, begin, end, length, began)
        while start >= 0:
            if found < len(rows):
                rows[found], begins[found], ends[found] = d, start, stop
            found += 1
            start, stop = _next_run(kind, min_count, first, counts, begin, stop + 1, end, length, began)
    return found


@polled_kernel
def describe_runs(
    begins: Int64, ends: Int64, length: int, first: UInt32, counts: UInt32, copies: UInt32, are_first: Bools
) -> None:
    """Fill the largest count of the windows inside each run, and whether all of them are first occurrences."""
    began = interrupts()
    for k in range(len(begins)):
        if k & 0xFFF == 0 and interrupts() != began:
            return
        most, is_first = np.uint32(0), True
        for i in range(begins[k], ends[k] - length + 1):
            if i & 0xFFFF == 0 and interrupts() != began:
                return
            place = np.int64(first[i])
            most = max(most, counts[place])
            is_first &= place == i
        copies[k], are_first[k] = most, is_first


@polled_kernel
def count_covered(
    starts: Int64,
    length: int,
    kind: int,
    min_count: int,
    first: UInt32,
    counts: UInt32,
    covered: Int64,
) -> None:
    """Count the words of each document inside windows of a kind: int64 by document. Parameters as above."""
    began = interrupts()
    for d in range(len(covered)):
        if interrupts() != began:
            return
        begin, end = starts[d], starts[d + 1] - length
        words = 0
        start, stop = _next_run(kind, min_count, first, counts, begin, begin, end, length, began)
        while start >= 0:
            words += stop - start
            start, stop = _next_run(kind, min_count, first, counts, begin, stop + 1, end, length, began)
        covered[d] = words
