"""Counts each document's terminals: propagates weights from its roots, or merges its symbols' tables.

Indices are unsigned: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.traverse.tables_cpu import LANES, WIDE, copy_scaled, copy_wide, nonzero_bits
from polars_tadoc.runtime.addresses import prefetch, trailing_zeros
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.jit import kernel

BLOCK = 512
"""Terminals of tables gathered at a time: they stay in the L1 cache. Longer tables are read in place."""

BUFFER = 2 * BLOCK + WIDE
"""Size of the gather buffer."""

AHEAD = 8
"""Prefetch distance of tables, in rules."""

_0, _1 = np.uint64(0), np.uint64(1)
_AHEAD, _BLOCK, _WIDE, _LANES = (np.uint64(number) for number in (AHEAD, BLOCK, WIDE, LANES))
_6, _12, _63 = (np.uint64(number) for number in (6, 12, 63))


@kernel
def count_documents(
    terminals: int,
    starts: Any,
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
    at: int,
    out_terminals: UInt32,
    sizes: Int64,
    terminal_places: UInt64,
    least: Any,
    weights: Any,
    waiting: UInt32,
    queue: UInt32,
    buffer: UInt32,
    shares: Any,
    marks: UInt64,
    summary: UInt64,
    out_counts: Any,
    count_places: UInt64,
) -> Any:
    """Count the terminals of documents ``members[first:stop]`` and write them contiguously from ``at`` on.

    Returns the first member that might not fit (``stop`` if all did) and the end of the output. ``sizes`` receives each
    member's number of terminals, the addresses their positions in memory. ``weights`` (one number per symbol),
    ``marks`` and ``summary`` are zero before and after.

    Avoids unpredictable branches: tables are gathered several terminals at a time, and a symbol is stored at each
    occurrence but only kept at its first. Rules that others refer to wait until all above them are done: they are
    marked in a bitmap and processed highest first; a summary has a bit per word of the bitmap; so each rule is read
    once. It is all one function, because passing arrays would update their reference counts for each document.
    """
    place, rules_from = nb.uint64(at), nb.uint64(terminals)
    terminals_at = nb.uint64(out_terminals.ctypes.data)
    counts_at = nb.uint64(out_counts.ctypes.data)
    last = nb.uint64(len(starts)) + rules_from - nb.uint64(2)
    for m in range(first, stop):
        if place + rules_from >= nb.uint64(len(out_terminals)):
            return nb.int64(m), nb.int64(place)
        distinct = _0
        for i in range(nb.uint64(root_offsets[members[m]]), nb.uint64(root_offsets[members[m] + 1])):
            s = roots[i]
            waiting[distinct] = s
            distinct += nb.uint64(weights[s] == 0)
            weights[s] += 1
        n = place
        rules = _0
        for k in range(distinct):
            s = waiting[k]
            out_terminals[n] = s
            n += nb.uint64(s < rules_from)
            waiting[rules] = s
            rules += nb.uint64(s >= rules_from)
            prefetch(starts, nb.int64(nb.uint64(s) - rules_from))
        left = _0
        if len(children) > 0:
            ready = _0
            for k in range(rules):
                rule = waiting[k]
                long = nb.uint64(waits[nb.uint64(rule) - rules_from])
                waiting[ready] = rule
                ready += _1 - long
                queue[left] = rule
                left += long
            rules = ready
        taken = _0
        while taken < rules:
            width = _0
            while taken < rules and width <= _BLOCK:
                ahead = nb.uint64(waiting[min(taken + _AHEAD, rules - _1)])
                prefetch(table_terminals, nb.int64(starts[ahead - rules_from]))
                rule = nb.uint64(waiting[taken])
                taken += _1
                weight = nb.uint64(weights[rule])
                weights[rule] = 0
                start, end = nb.uint64(starts[rule - rules_from]), nb.uint64(starts[rule - rules_from + _1])
                if end - start <= _BLOCK:
                    copy_wide(buffer, width, table_terminals, start)
                    copy_scaled(shares, width, table_counts, start, weight)
                    for j in range(start + _WIDE, end, _WIDE):
                        copy_wide(buffer, width + j - start, table_terminals, j)
                        copy_scaled(shares, width + j - start, table_counts, j, weight)
                    width += end - start
                else:
                    for j in range(start, end):
                        t = table_terminals[j]
                        out_terminals[n] = t
                        n += nb.uint64(weights[t] == 0)
                        weights[t] += weight * nb.uint64(table_counts[j])
            for j in range(width):
                t = buffer[j]
                out_terminals[n] = t
                n += nb.uint64(weights[t] == 0)
                weights[t] += shares[j]
        word = _0
        lowest = nb.uint64(len(summary))
        waited = left > _0
        while waited:
            for k in range(left):
                mark = last - nb.uint64(queue[k])
                marks[mark >> _6] |= _1 << (mark & _63)
                summary[mark >> _12] |= _1 << (mark >> _6 & _63)
                lowest = min(lowest, mark >> _12)
            if marks[word] == 0:
                summary[word >> _6] &= ~(_1 << (word & _63))
                while lowest < nb.uint64(len(summary)) and summary[lowest] == 0:
                    lowest += _1
                if lowest == nb.uint64(len(summary)):
                    break
                word = (lowest << _6) + nb.uint64(trailing_zeros(summary[lowest]))
            rule = last - ((word << _6) + nb.uint64(trailing_zeros(marks[word])))
            marks[word] &= marks[word] - _1
            weight = nb.uint64(weights[rule])
            weights[rule] = 0
            r = rule - rules_from
            for j in range(nb.uint64(starts[r]), nb.uint64(starts[r + _1])):
                t = table_terminals[j]
                out_terminals[n] = t
                n += nb.uint64(weights[t] == 0)
                weights[t] += weight * nb.uint64(table_counts[j])
            left = _0
            for j in range(nb.uint64(child_starts[r]), nb.uint64(child_starts[r + _1])):
                t = children[j]
                queue[left] = t
                left += nb.uint64(weights[t] == 0)
                weights[t] += weight
        found = n
        n = place
        for k in range(place, found):
            t = out_terminals[k]
            count = weights[t]
            weights[t] = 0
            out_terminals[n] = t
            out_counts[n] = count
            n += nb.uint64(nb.uint64(count) >= least)
        sizes[m] = nb.int64(n - place)
        terminal_places[m] = terminals_at + nb.uint64(out_terminals.itemsize) * place
        count_places[m] = counts_at + nb.uint64(out_counts.itemsize) * place
        place = n
    return nb.int64(stop), nb.int64(place)


@kernel
def list_documents(
    terminals: int,
    starts: Any,
    table_terminals: UInt32,
    child_starts: Int64,
    children: UInt32,
    waits: UInt8,
    root_offsets: Int64,
    roots: UInt32,
    members: Int64,
    first: int,
    stop: int,
    at: int,
    out_terminals: UInt32,
    sizes: Int64,
    terminal_places: UInt64,
    seen: Any,
    waiting: UInt32,
    buffer: UInt32,
) -> Any:
    """List the terminals of documents ``members[first:stop]`` unsorted; otherwise as :func:`count_documents`.

    ``seen`` has by symbol the number of the last document that contained it; numbers start again when they run out.
    """
    place, rules_from = nb.uint64(at), nb.uint64(terminals)
    terminals_at = nb.uint64(out_terminals.ctypes.data)
    most: Any = _1 << nb.uint64(8 * seen.itemsize)
    number: Any = most - _1
    deep = len(children) > 0
    for m in range(first, stop):
        if place + rules_from >= nb.uint64(len(out_terminals)):
            return nb.int64(m), nb.int64(place)
        number += _1
        if number == most:
            for i in range(nb.uint64(len(seen))):
                seen[i] = 0
            number = _1
        distinct = _0
        for i in range(nb.uint64(root_offsets[members[m]]), nb.uint64(root_offsets[members[m] + 1])):
            s = roots[i]
            waiting[distinct] = s
            distinct += nb.uint64(seen[s] != number)
            seen[s] = number
        n = place
        rules = _0
        for k in range(distinct):
            s = waiting[k]
            out_terminals[n] = s
            n += nb.uint64(s < rules_from)
            waiting[rules] = s
            rules += nb.uint64(s >= rules_from)
            prefetch(starts, nb.int64(nb.uint64(s) - rules_from))
        taken = _0
        while taken < rules:
            width = _0
            while taken < rules and width <= _BLOCK:
                ahead = nb.uint64(waiting[min(taken + _AHEAD, rules - _1)])
                prefetch(table_terminals, nb.int64(starts[ahead - rules_from]))
                r = nb.uint64(waiting[taken]) - rules_from
                taken += _1
                start, end = nb.uint64(starts[r]), nb.uint64(starts[r + _1])
                if end - start <= _BLOCK:
                    copy_wide(buffer, width, table_terminals, start)
                    for j in range(start + _WIDE, end, _WIDE):
                        copy_wide(buffer, width + j - start, table_terminals, j)
                    width += end - start
                else:
                    for j in range(start, end):
                        t = table_terminals[j]
                        out_terminals[n] = t
                        n += nb.uint64(seen[t] != number)
                        seen[t] = number
                if deep and waits[r] != 0:  # any other rule refers to no rules
                    for j in range(nb.uint64(child_starts[r]), nb.uint64(child_starts[r + _1])):
                        s = children[j]
                        waiting[rules] = s
                        rules += nb.uint64(seen[s] != number)
                        seen[s] = number
            for j in range(width):
                t = buffer[j]
                out_terminals[n] = t
                n += nb.uint64(seen[t] != number)
                seen[t] = number
        sizes[m] = nb.int64(n - place)
        terminal_places[m] = terminals_at + nb.uint64(out_terminals.itemsize) * place
        place = n
    return nb.int64(stop), nb.int64(place)


@kernel
def count_long_documents(
    terminals: int,
    starts: Any,
    table_terminals: UInt32,
    table_counts: Any,
    child_starts: Int64,
    children: UInt32,
    parents: Int64,
    root_offsets: Int64,
    roots: UInt32,
    members: Int64,
    first: int,
    stop: int,
    at: int,
    out_terminals: UInt32,
    sizes: Int64,
    terminal_places: UInt64,
    least: Any,
    weights: Any,
    buffer: UInt32,
    shares: Any,
    out_counts: Any,
    count_places: UInt64,
) -> Any:
    """Count documents that use a large share of all symbols; otherwise as :func:`count_documents`.

    Only weights are recorded; afterwards all weights are scanned. ``weights`` has ``LANES`` more zeros than there are
    symbols.
    """
    place, rules_from = nb.uint64(at), nb.uint64(terminals)
    terminals_at = nb.uint64(out_terminals.ctypes.data)
    counts_at = nb.uint64(out_counts.ctypes.data)
    size = nb.uint64(len(weights)) - _LANES
    for m in range(first, stop):
        if place + rules_from >= nb.uint64(len(out_terminals)):
            return nb.int64(m), nb.int64(place)
        for i in range(nb.uint64(root_offsets[members[m]]), nb.uint64(root_offsets[members[m] + 1])):
            weights[roots[i]] += 1
        for k in range(nb.uint64(len(parents))):
            r = nb.uint64(parents[k])
            weight = weights[rules_from + r]
            if weight != 0:
                for j in range(nb.uint64(child_starts[r]), nb.uint64(child_starts[r + _1])):
                    weights[children[j]] += weight
        width = _0
        for low in range(rules_from, size, _LANES):
            bits = nonzero_bits(weights, low)
            while bits != 0:
                rule = low + nb.uint64(trailing_zeros(bits))
                bits &= bits - _1
                weight = nb.uint64(weights[rule])
                weights[rule] = 0
                start, end = nb.uint64(starts[rule - rules_from]), nb.uint64(starts[rule - rules_from + _1])
                if end - start <= _BLOCK:
                    copy_wide(buffer, width, table_terminals, start)
                    copy_scaled(shares, width, table_counts, start, weight)
                    for j in range(start + _WIDE, end, _WIDE):
                        copy_wide(buffer, width + j - start, table_terminals, j)
                        copy_scaled(shares, width + j - start, table_counts, j, weight)
                    width += end - start
                else:
                    for j in range(start, end):
                        weights[table_terminals[j]] += weight * nb.uint64(table_counts[j])
                if width > _BLOCK:
                    for j in range(width):
                        weights[buffer[j]] += shares[j]
                    width = _0
        for j in range(width):
            weights[buffer[j]] += shares[j]
        n = place
        for low in range(_0, rules_from, _LANES):
            bits = nonzero_bits(weights, low)
            while bits != 0:
                t = low + nb.uint64(trailing_zeros(bits))
                bits &= bits - _1
                count = weights[t]
                weights[t] = 0
                out_terminals[n] = t
                out_counts[n] = count
                n += nb.uint64(nb.uint64(count) >= least)
        sizes[m] = nb.int64(n - place)
        terminal_places[m] = terminals_at + nb.uint64(out_terminals.itemsize) * place
        count_places[m] = counts_at + nb.uint64(out_counts.itemsize) * place
        place = n
    return nb.int64(stop), nb.int64(place)


@kernel
def list_long_documents(
    terminals: int,
    starts: Any,
    table_terminals: UInt32,
    child_starts: Int64,
    children: UInt32,
    parents: Int64,
    root_offsets: Int64,
    roots: UInt32,
    members: Int64,
    first: int,
    stop: int,
    at: int,
    out_terminals: UInt32,
    sizes: Int64,
    terminal_places: UInt64,
    marked: UInt8,
    buffer: UInt32,
) -> Any:
    """List the terminals of documents as :func:`count_long_documents` counts them."""
    place, rules_from = nb.uint64(at), nb.uint64(terminals)
    terminals_at = nb.uint64(out_terminals.ctypes.data)
    size = nb.uint64(len(marked)) - _LANES
    for m in range(first, stop):
        if place + rules_from >= nb.uint64(len(out_terminals)):
            return nb.int64(m), nb.int64(place)
        for i in range(nb.uint64(root_offsets[members[m]]), nb.uint64(root_offsets[members[m] + 1])):
            marked[roots[i]] = 1
        for k in range(nb.uint64(len(parents))):
            r = nb.uint64(parents[k])
            if marked[rules_from + r] != 0:
                for j in range(nb.uint64(child_starts[r]), nb.uint64(child_starts[r + _1])):
                    marked[children[j]] = 1
        width = _0
        for low in range(rules_from, size, _LANES):
            bits = nonzero_bits(marked, low)
            while bits != 0:
                rule = low + nb.uint64(trailing_zeros(bits))
                bits &= bits - _1
                marked[rule] = 0
                start, end = nb.uint64(starts[rule - rules_from]), nb.uint64(starts[rule - rules_from + _1])
                if end - start <= _BLOCK:
                    copy_wide(buffer, width, table_terminals, start)
                    for j in range(start + _WIDE, end, _WIDE):
                        copy_wide(buffer, width + j - start, table_terminals, j)
                    width += end - start
                else:
                    for j in range(start, end):
                        marked[table_terminals[j]] = 1
                if width > _BLOCK:
                    for j in range(width):
                        marked[buffer[j]] = 1
                    width = _0
        for j in range(width):
            marked[buffer[j]] = 1
        n = place
        for low in range(_0, rules_from, _LANES):
            bits = nonzero_bits(marked, low)
            while bits != 0:
                t = low + nb.uint64(trailing_zeros(bits))
                bits &= bits - _1
                marked[t] = 0
                out_terminals[n] = t
                n += _1
        sizes[m] = nb.int64(n - place)
        terminal_places[m] = terminals_at + nb.uint64(out_terminals.itemsize) * place
        place = n
    return nb.int64(stop), nb.int64(place)
