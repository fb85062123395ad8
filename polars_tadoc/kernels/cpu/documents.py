"""Counts each document's terminals: weights go down from its roots, or its symbols' tables are merged."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cpu.memory import prefetch, trailing_zeros
from polars_tadoc.kernels.cpu.tables import WIDE, copy_scaled, copy_wide

UInt8 = npt.NDArray[np.uint8]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]

BLOCK = 512
"""Terminals of tables that are gathered at a time: they stay in the nearest cache. Longer tables are read in place."""

BUFFER = 2 * BLOCK + WIDE
"""Room for what is gathered."""

AHEAD = 8
"""How many rules before it is read a table is asked for."""

_1 = np.uint64(1)


@nb.njit(nogil=True, cache=True)
def count_documents(
    terminals: int,
    starts: Int64,
    table_terminals: UInt32,
    table_counts: Any,
    child_starts: Int64,
    children: UInt32,
    waits: UInt8,
    root_offsets: Int64,
    roots: UInt32,
    members: Int64,
    first: int,
    stop: int,
    least: Any,
    weights: Any,
    touched: UInt32,
    waiting: UInt32,
    queue: UInt32,
    buffer: UInt32,
    shares: Any,
    marks: UInt64,
    summary: UInt64,
    at: int,
    out_terminals: UInt32,
    out_counts: Any,
    sizes: Int64,
    terminal_places: UInt64,
    count_places: UInt64,
) -> Any:
    """Count the terminals of documents ``members[first:stop]`` and write them one after another from ``at`` on.

    Returns the member that did not fit any more (``stop`` if all did), the room that it wants, and how far was
    written. ``sizes`` gets each member's number of terminals, the places where in memory those stand. ``weights``
    (one number a symbol), ``marks`` and ``summary`` are zero before and after.

    Little is asked that a processor might guess wrong: tables are gathered some terminals at a time, a symbol is put
    down each time it comes and stays where that is its first. Rules that others name wait until all above them are
    done, marked in a bitmap, highest rule first, whose summary has a bit for each of its words; so each is read once.
    All in one function: arrays handed on to another would have their references counted for each document.
    """
    place = nb.int64(at)
    last = nb.int64(len(starts) - 2 + terminals)
    for m in range(first, stop):
        distinct = nb.int64(0)
        for i in range(root_offsets[members[m]], root_offsets[members[m] + 1]):
            s = roots[i]
            touched[distinct] = s
            distinct += weights[s] == 0
            weights[s] += 1
        n = nb.int64(0)
        rules = nb.int64(0)
        for k in range(distinct):
            s = touched[k]
            touched[n] = s
            n += s < terminals
            waiting[rules] = s
            rules += s >= terminals
            prefetch(starts, nb.int64(s) - terminals)
        left = nb.int64(0)
        if len(children) > 0:
            ready = nb.int64(0)
            for k in range(rules):
                rule = waiting[k]
                long = waits[nb.int64(rule) - terminals]
                waiting[ready] = rule
                ready += 1 - long
                queue[left] = rule
                left += long
            rules = ready
        k = nb.int64(0)
        while k < rules:
            width = nb.int64(0)
            while k < rules and width <= BLOCK:
                prefetch(table_terminals, starts[nb.int64(waiting[min(k + AHEAD, rules - 1)]) - terminals])
                rule = nb.int64(waiting[k])
                k += 1
                weight = nb.uint64(weights[rule])
                weights[rule] = 0
                start, end = starts[rule - terminals], starts[rule - terminals + 1]
                if end - start <= BLOCK:
                    for j in range(start, end, WIDE):
                        copy_wide(buffer, width + j - start, table_terminals, j)
                        copy_scaled(shares, width + j - start, table_counts, j, weight)
                    width += end - start
                else:
                    for j in range(start, end):
                        t = table_terminals[j]
                        touched[n] = t
                        n += weights[t] == 0
                        weights[t] += weight * nb.uint64(table_counts[j])
            for j in range(width):
                t = buffer[j]
                touched[n] = t
                n += weights[t] == 0
                weights[t] += shares[j]
        word = nb.int64(0)
        lowest = nb.int64(len(summary))
        waited = left > 0
        while waited:
            for k in range(left):
                mark = last - nb.int64(queue[k])
                marks[mark >> 6] |= _1 << nb.uint64(mark & 63)
                summary[mark >> 12] |= _1 << nb.uint64(mark >> 6 & 63)
                lowest = min(lowest, mark >> 12)
            if marks[word] == 0:
                summary[word >> 6] &= ~(_1 << nb.uint64(word & 63))
                while lowest < len(summary) and summary[lowest] == 0:
                    lowest += 1
                if lowest == len(summary):
                    break
                word = (lowest << 6) + trailing_zeros(summary[lowest])
            rule = last - ((word << 6) + trailing_zeros(marks[word]))
            marks[word] &= marks[word] - _1
            weight = nb.uint64(weights[rule])
            weights[rule] = 0
            r = rule - terminals
            for j in range(starts[r], starts[r + 1]):
                t = table_terminals[j]
                touched[n] = t
                n += weights[t] == 0
                weights[t] += weight * nb.uint64(table_counts[j])
            left = nb.int64(0)
            for j in range(child_starts[r], child_starts[r + 1]):
                t = children[j]
                queue[left] = t
                left += weights[t] == 0
                weights[t] += weight
        if least > _1:
            found = n
            n = nb.int64(0)
            for k in range(found):
                t = touched[k]
                touched[n] = t
                if nb.uint64(weights[t]) >= least:
                    n += 1
                else:
                    weights[t] = 0
        fits = place + n <= len(out_terminals)
        if fits:
            for k in range(n):
                t = touched[k]
                out_terminals[place + k] = t
                out_counts[place + k] = weights[t]
        for k in range(n):
            weights[touched[k]] = 0
        if not fits:
            return m, n, place
        sizes[m] = n
        terminal_places[m] = nb.uint64(out_terminals.ctypes.data) + nb.uint64(out_terminals.itemsize * place)
        count_places[m] = nb.uint64(out_counts.ctypes.data) + nb.uint64(out_counts.itemsize * place)
        place += n
    return nb.int64(stop), nb.int64(0), place


@nb.njit(nogil=True, cache=True)
def list_documents(
    terminals: int,
    starts: Int64,
    table_terminals: UInt32,
    child_starts: Int64,
    children: UInt32,
    waits: UInt8,
    root_offsets: Int64,
    roots: UInt32,
    members: Int64,
    first: int,
    stop: int,
    seen: UInt32,
    touched: UInt32,
    waiting: UInt32,
    buffer: UInt32,
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
        distinct = nb.int64(0)
        for i in range(root_offsets[d], root_offsets[d + 1]):
            s = roots[i]
            touched[distinct] = s
            distinct += seen[s] != now
            seen[s] = now
        n = nb.int64(0)
        rules = nb.int64(0)
        for k in range(distinct):
            s = touched[k]
            touched[n] = s
            n += s < terminals
            waiting[rules] = s
            rules += s >= terminals
            prefetch(starts, nb.int64(s) - terminals)
        k = nb.int64(0)
        while k < rules:
            width = nb.int64(0)
            while k < rules and width <= BLOCK:
                prefetch(table_terminals, starts[nb.int64(waiting[min(k + AHEAD, rules - 1)]) - terminals])
                r = nb.int64(waiting[k]) - terminals
                k += 1
                start, end = starts[r], starts[r + 1]
                if end - start <= BLOCK:
                    for j in range(start, end, WIDE):
                        copy_wide(buffer, width + j - start, table_terminals, j)
                    width += end - start
                else:
                    for j in range(start, end):
                        t = table_terminals[j]
                        touched[n] = t
                        n += seen[t] != now
                        seen[t] = now
                if waits[r] != 0:  # any other names no rule
                    for j in range(child_starts[r], child_starts[r + 1]):
                        s = children[j]
                        waiting[rules] = s
                        rules += seen[s] != now
                        seen[s] = now
            for j in range(width):
                t = buffer[j]
                touched[n] = t
                n += seen[t] != now
                seen[t] = now
        if place + n > len(out_terminals):
            return m, n, place
        for k in range(n):
            out_terminals[place + k] = touched[k]
        sizes[m] = n
        terminal_places[m] = nb.uint64(out_terminals.ctypes.data) + nb.uint64(out_terminals.itemsize * place)
        place += n
    return nb.int64(stop), nb.int64(0), place
