"""Compares rows whose signatures agree in a band.

Rows with one key of a band are a run. All pairs of a run are candidates; a pair is compared in the first band that
proposes it. Of two sets with ``a`` and ``b`` members, ``m`` of them common, the similarity is ``m / (a + b - m)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.host.near.rows import has, insert
from polars_tadoc.kernels.host.near.signatures import mixed
from polars_tadoc.runtime.array_types import Float64, Int64, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, polled_kernel

MEMBER, NEXT, COUNT, WORK = range(4)
"""Numbers of a state: the member and the one to compare it with next, results, comparisons."""

_ONE = np.uint64(1)
_MASK = (1 << 16) - 1
"""Steps between looks at the interrupts."""


@polled_kernel
def band_keys(signatures: UInt32, bands: int, values: int, keys: UInt64) -> None:
    """Hash the values of each band.

    Parameters
    ----------
    signatures
        uint32, rows by permutations.
    bands, values
        Number of bands, and values of each.
    keys
        uint64, rows by bands: the results.

    """
    began = interrupts()
    for row in range(len(signatures)):
        if interrupts() != began:
            return
        for band in range(bands):
            h = np.uint64(band)
            for k in range(band * values, (band + 1) * values):
                h = mixed(h + _ONE + np.uint64(signatures[row, k]))
            keys[row, band] = h


@inner
def _is_proposed(keys: UInt64, one: int, other: int, band: int) -> bool:
    """Tell whether a band proposes a pair that no earlier one does."""
    if keys[one, band] != keys[other, band]:
        return False
    for before in range(band):  # noqa: SIM110 - numba
        if keys[one, before] == keys[other, before]:
            return False
    return True


@inner
def _least_common(a: int, b: int, threshold: float) -> Any:
    """Return how many members two sets have in common at least if they are similar; more than both have: never."""
    least = np.int64(threshold * (a + b) / (1 + threshold))
    while least > 0 and (least - 1) / (a + b - least + 1) >= threshold:
        least -= 1
    while least <= min(a, b) and least / (a + b - least) < threshold:
        least += 1
    return max(least, 1)


@inner
def _table_of(
    starts: Int64, sizes: Int64, ngrams: UInt32, row: int, key: np.uint64, stamp: int, table: UInt64, began: np.uint64
) -> Any:
    """Write a row's n-grams into a table; return its last slot."""
    last: Any = np.uint64(1)
    while last + _ONE < np.uint64(2 * sizes[row]):
        last = last + last + _ONE
    for i in range(starts[row], starts[row] + sizes[row]):
        if i & _MASK == 0 and interrupts() != began:
            return last
        insert(table, last, key, np.uint64(stamp), ngrams[i])
    return last


@inner
def _common(
    starts: Int64,
    sizes: Int64,
    ngrams: UInt32,
    row: int,
    least: int,
    key: np.uint64,
    stamp: int,
    last: np.uint64,
    table: UInt64,
    began: np.uint64,
) -> Any:
    """Count the n-grams of a row in a table; stops where there cannot be ``least`` any more, and returns -1."""
    count, size = 0, sizes[row]
    for i in range(size):
        if i & _MASK == _MASK and interrupts() != began:
            return -1
        if has(table, last, key, np.uint64(stamp), ngrams[starts[row] + i]):
            count += 1
        elif i + 1 - count > size - least:
            return -1
    return count


@polled_kernel
def find_pairs(
    order: UInt32,
    ends: Int64,
    first: int,
    stop: int,
    keys: UInt64,
    band: int,
    starts: Int64,
    sizes: Int64,
    ngrams: UInt32,
    threshold: float,
    key: np.uint64,
    table: UInt64,
    state: Int64,
    ones: UInt32,
    others: UInt32,
    similarities: Float64,
) -> None:
    """Find similar pairs among rows with one key of a band.

    Ends when all members are done (``state[MEMBER]`` is ``stop``), or when there is no room for more results: then it
    is called again with ``state[COUNT]`` at zero.

    Parameters
    ----------
    order, ends
        uint32, rows by the key of the band, equal keys in row order; and int64, the end of each one's run.
    first, stop
        Interval of ``order``: pairs of each of these members with later ones of its run are compared.
    keys, band
        :func:`band_keys` of the rows, and the band.
    starts, sizes, ngrams
        int64, rows + 1, int64 and uint32: each row's distinct n-grams.
    threshold
        Least similarity.
    key
        Random, odd.
    table
        uint64, a power of two, at least twice the n-grams of a row: scratch. At the first call zeros.
    state
        int64, four: :data:`MEMBER` is ``first`` at the first call, :data:`NEXT` -1; the others are zero.
    ones, others, similarities
        uint32, uint32 and float64: results, the earlier row first.

    """
    began, steps = interrupts(), 0
    while state[MEMBER] < stop:
        member = state[MEMBER]
        one = np.int64(order[member])
        after = state[NEXT] if state[NEXT] >= 0 else member + 1
        last, is_filled = np.uint64(0), False
        for place in range(after, ends[member]):
            steps += 1
            if steps & _MASK == 0 and interrupts() != began:
                return
            other = np.int64(order[place])
            if not _is_proposed(keys, one, other, band):
                continue
            least = _least_common(sizes[one], sizes[other], threshold)
            if least > min(sizes[one], sizes[other]):
                continue
            if state[COUNT] == len(ones):
                state[NEXT] = place
                return
            if not is_filled:
                if interrupts() != began:
                    return
                state[WORK] += 1  # stamps tell tables apart
                if state[WORK] == np.int64(1) << 32:
                    table[:] = np.uint64(0)
                    state[WORK] = 1
                last, is_filled = _table_of(starts, sizes, ngrams, one, key, state[WORK], table, began), True
            steps += sizes[other] >> 4
            common = _common(starts, sizes, ngrams, other, least, key, state[WORK], last, table, began)
            if common >= least:
                count = state[COUNT]
                ones[count], others[count] = np.uint32(one), np.uint32(other)
                similarities[count] = common / (sizes[one] + sizes[other] - common)
                state[COUNT] = count + 1
        state[MEMBER], state[NEXT] = member + 1, -1


@inner
def _root(parents: UInt32, row: int) -> Any:
    """Return the first row of a row's component; shortens the path."""
    at: Any = row
    while np.int64(parents[at]) != at:
        parents[at] = parents[np.int64(parents[at])]
        at = np.int64(parents[at])
    return at


@polled_kernel
def join_pairs(rows: UInt32, others: UInt32, parents: UInt32) -> None:
    """Join the components of pairs of rows; ``parents`` as for :func:`join_rows`."""
    began = interrupts()
    for k in range(len(rows)):
        if k & 0xFFFF == 0 and interrupts() != began:
            return
        one, other = _root(parents, np.int64(rows[k])), _root(parents, np.int64(others[k]))
        parents[max(one, other)] = np.uint32(min(one, other))


@polled_kernel
def join_rows(
    order: UInt32,
    ends: Int64,
    keys: UInt64,
    band: int,
    starts: Int64,
    sizes: Int64,
    ngrams: UInt32,
    threshold: float,
    most: int,
    key: np.uint64,
    table: UInt64,
    parents: UInt32,
    later: Int64,
    heads: Int64,
    tails: Int64,
    clusters: Int64,
    places: Int64,
    state: Int64,
) -> None:
    """Join the components of similar rows with one key of a band; pairs that are joined already are not compared.

    The members of a run are kept by component, in lists. Each new member is compared with the members of each
    component that it isn't in, until one is similar.

    Parameters
    ----------
    order, ends, keys, band, starts, sizes, ngrams, threshold, key, table
        As for :func:`find_pairs`.
    most
        Pairs to look at, at most; :data:`WORK` of ``state`` is above it when it is reached.
    parents
        uint32 by row: union-find (R. E. Tarjan, *Efficiency of a good but not linear set union algorithm*, 1975), the
        first row of a component at the root.
    later
        int64 by row: scratch, the next member of the same list.
    heads, tails
        int64 by row: scratch; at roots, the first and the last member of the component's list in this run.
    clusters, places
        int64 by row: scratch, roots of the run's lists, and at roots the number of the list. Zeros at the first call.
    state
        int64, four: :data:`WORK` counts pairs, :data:`COUNT` tables.

    """
    began, run = interrupts(), 0
    while run < len(order):
        end = ends[run]
        if end == run + 1:
            run = end
            continue
        lists = 0
        for member in range(run, end):
            if interrupts() != began:
                return
            row = np.int64(order[member])
            own = _root(parents, row)
            last, is_filled = np.uint64(0), False
            mine = places[own]  # this member's list
            if mine >= lists or clusters[mine] != own:
                mine = -1
            k = 0
            while k < lists:
                root = clusters[k]
                if k == mine:
                    k += 1
                    continue
                at, is_joined = heads[root], False
                while at >= 0:
                    state[WORK] += 1
                    if state[WORK] & _MASK == 0 and interrupts() != began:
                        return
                    if state[WORK] > most:
                        return
                    if _is_proposed(keys, at, row, band):
                        least = _least_common(sizes[row], sizes[at], threshold)
                        if least <= min(sizes[row], sizes[at]):
                            if not is_filled:
                                state[COUNT] += 1
                                if state[COUNT] == np.int64(1) << 32:
                                    table[:] = np.uint64(0)
                                    state[COUNT] = 1
                                last = _table_of(starts, sizes, ngrams, row, key, state[COUNT], table, began)
                                is_filled = True
                            if interrupts() != began:
                                return
                            found = _common(starts, sizes, ngrams, at, least, key, state[COUNT], last, table, began)
                            if found >= least:
                                is_joined = True
                                break
                    at = later[at]
                if not is_joined:
                    k += 1
                    continue
                # the two components become one, and so do their lists
                top, low = min(own, root), max(own, root)
                parents[low] = np.uint32(top)
                if mine < 0:
                    heads[top], tails[top] = heads[root], tails[root]
                    mine = k
                else:
                    tail = tails[own]
                    later[tails[root]] = heads[own]
                    heads[top], tails[top] = heads[root], tail
                    lists -= 1  # the last list takes this one's place
                    clusters[k] = clusters[lists]
                    places[clusters[k]] = k
                    if mine == lists:
                        mine = k
                clusters[mine], places[top] = top, mine
                own = top
            later[row] = -1
            if mine < 0:
                heads[own] = tails[own] = row
                clusters[lists], places[own] = own, lists
                lists += 1
            else:
                later[tails[own]] = row
                tails[own] = row
        run = end
