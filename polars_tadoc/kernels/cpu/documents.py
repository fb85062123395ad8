"""Counts each document's terminals: weights go down from its roots, or its symbols' tables are merged."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cpu.memory import load_u32, trailing_zeros

UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]

FEW = 16
"""Terminals up to which a document's are put in order by insertion."""

COUNTERS = 256
"""Counts below this are put in order by counting; the few above by comparison or digit by digit."""

_1 = np.uint64(1)


@nb.njit(nogil=True, cache=True)
def _weigh(
    terminals: int,
    rule_offsets: Int64,
    symbols: int,
    starts: Int64,
    table_terminals: UInt32,
    table_counts: Any,
    roots: int,
    first: int,
    stop: int,
    weights: Any,
    touched: UInt32,
    marks: UInt64,
    summary: UInt64,
) -> Any:
    """Fill ``weights`` of one document's terminals; returns how many there are, in ``touched``.

    ``symbols`` and ``roots`` are addresses. Of a rule that has a table its entries are weighed at once. Any other waits
    until all rules above it are done: rules are marked in a bitmap, highest rule first, whose summary has a bit for
    each of its words; so each body is read once.
    """
    kept = nb.int64(0)
    last = nb.int64(len(rule_offsets) - 2)
    lowest = nb.int64(len(summary))
    word = nb.int64(0)
    body = nb.uint64(roots)
    begin, end = nb.int64(first), nb.int64(stop)
    weight = nb.uint64(1)
    while True:
        n = kept
        for i in range(begin, end):
            s = load_u32(body + nb.uint64(4 * i))
            touched[n] = s  # stays where this is its first time: nothing is asked that a processor might guess wrong
            n += weights[s] == 0
            weights[s] += weight
        k = kept
        while k < n:
            s = nb.int64(touched[k])
            k += 1
            if s < terminals:
                touched[kept] = nb.uint32(s)
                kept += 1
                continue
            a, b = starts[s - terminals], starts[s - terminals + 1]
            if a == b:
                mark = last - (s - terminals)
                marks[mark >> 6] |= _1 << nb.uint64(mark & 63)
                summary[mark >> 12] |= _1 << nb.uint64(mark >> 6 & 63)
                lowest = min(lowest, mark >> 12)
            else:
                weight = nb.uint64(weights[s])
                weights[s] = 0
                for j in range(a, b):
                    t = table_terminals[j]
                    touched[n] = t
                    n += weights[t] == 0
                    weights[t] += weight * nb.uint64(table_counts[j])
        while marks[word] == 0:
            summary[word >> 6] &= ~(_1 << nb.uint64(word & 63))
            while lowest < len(summary) and summary[lowest] == 0:
                lowest += 1
            if lowest == len(summary):
                return kept
            word = (lowest << 6) + trailing_zeros(summary[lowest])
        r = last - ((word << 6) + trailing_zeros(marks[word]))
        marks[word] &= marks[word] - _1
        weight = nb.uint64(weights[terminals + r])
        weights[terminals + r] = 0
        body = nb.uint64(symbols)
        begin, end = rule_offsets[r], rule_offsets[r + 1]


@nb.njit(nogil=True, cache=True)
def _sort_few(n: int, touched: UInt32, weights: Any, rank: UInt32) -> None:
    """Order terminals by count falling, then rank, by insertion."""
    for k in range(1, n):
        t = touched[k]
        weight, place = weights[t], rank[t]
        j = nb.int64(k - 1)
        while j >= 0:
            other = touched[j]
            if weights[other] > weight or (weights[other] == weight and rank[other] < place):
                break
            touched[j + 1] = other
            j -= 1
        touched[j + 1] = t


@nb.njit(nogil=True, cache=True)
def _sort_digits(n: int, ordered: UInt32, spare: UInt32, weights: Any, histogram: Int64) -> None:
    """Order the first n terminals, which stand in the order of their ranks, by count falling: stable, by digits."""
    most = nb.uint64(0)
    for k in range(n):
        most = max(most, nb.uint64(weights[ordered[k]]))
    shift = nb.uint64(0)
    while shift < nb.uint64(64) and most >> shift != 0:
        for c in range(256):
            histogram[c] = 0
        for k in range(n):
            histogram[255 - nb.int64(nb.uint64(weights[ordered[k]]) >> shift & nb.uint64(255))] += 1
        before = nb.int64(0)
        for c in range(256):
            before, histogram[c] = before + histogram[c], before
        for k in range(n):
            digit = 255 - nb.int64(nb.uint64(weights[ordered[k]]) >> shift & nb.uint64(255))
            spare[histogram[digit]] = ordered[k]
            histogram[digit] += 1
        for k in range(n):
            ordered[k] = spare[k]
        shift += nb.uint64(8)


@nb.njit(nogil=True, cache=True)
def _sort_many(
    n: int,
    touched: UInt32,
    spare: UInt32,
    weights: Any,
    rank: UInt32,
    by_rank: UInt32,
    marks: UInt64,
    summary: UInt64,
    histogram: Int64,
) -> None:
    """Order terminals by count falling, then rank: out of a bitmap in rank order, then counted into their places."""
    most = nb.int64(0)
    for k in range(n):
        t = touched[k]
        place = nb.int64(rank[t])
        marks[place >> 6] |= _1 << nb.uint64(place & 63)
        summary[place >> 12] |= _1 << nb.uint64(place >> 6 & 63)
        most = max(most, nb.int64(min(nb.uint64(weights[t]), nb.uint64(COUNTERS - 1))))
    for c in range(most + 1):
        histogram[c] = 0
    k = nb.int64(0)
    for i in range(len(summary)):
        words = summary[i]
        summary[i] = 0
        while words != 0:
            word = (i << 6) + trailing_zeros(words)
            words &= words - _1
            bits = marks[word]
            marks[word] = 0
            while bits != 0:
                t = by_rank[(word << 6) + trailing_zeros(bits)]
                bits &= bits - _1
                spare[k] = t
                k += 1
                histogram[min(nb.uint64(weights[t]), nb.uint64(COUNTERS - 1))] += 1
    before = nb.int64(0)
    for c in range(most, -1, -1):
        before, histogram[c] = before + histogram[c], before
    for k in range(n):
        t = spare[k]
        c = min(nb.uint64(weights[t]), nb.uint64(COUNTERS - 1))
        touched[histogram[c]] = t
        histogram[c] += 1
    if most == COUNTERS - 1:
        large = histogram[most]
        if large <= FEW:
            _sort_few(large, touched, weights, rank)
        else:
            _sort_digits(large, touched, spare, weights, histogram)


@nb.njit(nogil=True, cache=True)
def sort_terminals(
    n: int,
    touched: UInt32,
    spare: UInt32,
    weights: Any,
    rank: UInt32,
    by_rank: UInt32,
    marks: UInt64,
    summary: UInt64,
    histogram: Int64,
) -> None:
    """Order the first n terminals of ``touched`` by count falling, then rank.

    ``by_rank`` turns ``rank`` round; ``spare`` has room for all; the bitmap ``marks`` and its ``summary`` are zero
    before and after; ``histogram`` is ``COUNTERS`` wide.
    """
    if n <= FEW:
        _sort_few(n, touched, weights, rank)
    else:
        _sort_many(n, touched, spare, weights, rank, by_rank, marks, summary, histogram)


@nb.njit(nogil=True, cache=True)
def count_documents(
    terminals: int,
    rule_offsets: Int64,
    symbols: int,
    starts: Int64,
    table_terminals: UInt32,
    table_counts: Any,
    root_offsets: Int64,
    roots: int,
    members: Int64,
    first: int,
    stop: int,
    rank: UInt32,
    by_rank: UInt32,
    least: Any,
    top: int,
    weights: Any,
    touched: UInt32,
    spare: UInt32,
    rule_marks: UInt64,
    rule_summary: UInt64,
    rank_marks: UInt64,
    rank_summary: UInt64,
    histogram: Int64,
    at: int,
    out_terminals: UInt32,
    out_counts: Any,
    sizes: Int64,
    terminal_places: UInt64,
    count_places: UInt64,
) -> Any:
    """Count the terminals of documents ``members[first:stop]`` and write them one after another from ``at`` on.

    Returns the member that did not fit any more (``stop`` if all did), the room that it wants, and how far was
    written. ``sizes`` gets each member's number of terminals, the places where in memory those stand. Scratch arrays
    are zero before and after. With ``top`` below 0 a document's terminals stand in no order.
    """
    place = nb.int64(at)
    for m in range(first, stop):
        d = members[m]
        n = _weigh(
            terminals,
            rule_offsets,
            symbols,
            starts,
            table_terminals,
            table_counts,
            roots,
            root_offsets[d],
            root_offsets[d + 1],
            weights,
            touched,
            rule_marks,
            rule_summary,
        )
        kept = nb.int64(n)
        if least > _1:
            kept = nb.int64(0)
            for k in range(n):
                t = touched[k]
                touched[kept] = t
                if nb.uint64(weights[t]) >= least:
                    kept += 1
                else:
                    weights[t] = 0
        written = kept if top < 0 else min(kept, top)
        if place + written > len(out_terminals):
            for k in range(kept):
                weights[touched[k]] = 0
            return m, written, place
        if top >= 0:
            sort_terminals(kept, touched, spare, weights, rank, by_rank, rank_marks, rank_summary, histogram)
        for k in range(written):
            t = touched[k]
            out_terminals[place + k] = t
            out_counts[place + k] = weights[t]
        for k in range(kept):
            weights[touched[k]] = 0
        sizes[m] = written
        terminal_places[m] = nb.uint64(out_terminals.ctypes.data) + nb.uint64(out_terminals.itemsize * place)
        count_places[m] = nb.uint64(out_counts.ctypes.data) + nb.uint64(out_counts.itemsize * place)
        place += written
    return nb.int64(stop), nb.int64(0), place


@nb.njit(nogil=True, cache=True)
def list_documents(
    terminals: int,
    rule_offsets: Int64,
    symbols: UInt32,
    starts: Int64,
    table_terminals: UInt32,
    root_offsets: Int64,
    roots: int,
    members: Int64,
    first: int,
    stop: int,
    seen: UInt32,
    touched: UInt32,
    at: int,
    out_terminals: UInt32,
    sizes: Int64,
    terminal_places: UInt64,
) -> Any:
    """List the terminals of documents ``members[first:stop]`` in no order, otherwise as :func:`count_documents`.

    ``seen`` (one number a symbol) is 0 or the number, plus 1, of the member that met the symbol last; it must be
    zeroed before a member that did not fit is tried again.
    """
    place = nb.int64(at)
    for m in range(first, stop):
        d = members[m]
        now = nb.uint32(m + 1)
        n = nb.int64(0)
        for i in range(root_offsets[d], root_offsets[d + 1]):
            s = load_u32(nb.uint64(roots) + nb.uint64(4 * i))
            touched[n] = s  # stays where this is its first time
            n += seen[s] != now
            seen[s] = now
        k = nb.int64(0)
        kept = nb.int64(0)
        while k < n:
            s = touched[k]
            k += 1
            if s < terminals:
                touched[kept] = s
                kept += 1
                continue
            r = nb.int64(s) - terminals
            a, b = starts[r], starts[r + 1]
            for j in range(a, b):
                t = table_terminals[j]
                touched[n] = t
                n += seen[t] != now
                seen[t] = now
            if a == b:
                for i in range(rule_offsets[r], rule_offsets[r + 1]):
                    t = symbols[i]
                    touched[n] = t
                    n += seen[t] != now
                    seen[t] = now
        if place + kept > len(out_terminals):
            return m, kept, place
        for k in range(kept):
            out_terminals[place + k] = touched[k]
        sizes[m] = kept
        terminal_places[m] = nb.uint64(out_terminals.ctypes.data) + nb.uint64(out_terminals.itemsize * place)
        place += kept
    return nb.int64(stop), nb.int64(0), place
