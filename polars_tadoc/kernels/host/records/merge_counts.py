"""Merges the counts of several corpora by the common numbers of their words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.host.records.sort_keys import sort_with
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.jit import kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks


def add_counts(counts: UInt64, numbers: UInt32, totals: UInt64) -> None:
    """Add counts to totals.

    Parameters
    ----------
    counts
        uint64 by word of a corpus.
    numbers
        uint32: the common number of each word; distinct.
    totals
        uint64 by common number, changed in place.

    """
    map_parallel(lambda chunk: _add(counts, numbers, totals, *chunk), even_chunks(len(counts)))


@kernel
def _add(counts: UInt64, numbers: UInt32, totals: UInt64, first: int, stop: int) -> None:
    for i in range(first, stop):
        totals[numbers[i]] += counts[i]


def renumber(ids: Sequence[UInt32], maps: Sequence[UInt32], made: UInt32 | None = None) -> UInt32:
    """Concatenate the word ids of corpora, mapped to common numbers.

    Parameters
    ----------
    ids
        uint32 arrays by corpus.
    maps
        uint32 by corpus and own word id: the common number.
    made
        Where to write the result, which may be the only array of ``ids``; by default, fresh memory.

    """
    made = allocate(sum(map(len, ids)), np.uint32)[1] if made is None else made
    pieces = [
        (own, numbers, target, chunk)
        for own, numbers, target in zip(ids, maps, _places(made, ids), strict=True)
        for chunk in even_chunks(len(own))
    ]
    map_parallel(lambda piece: _renumber(*piece[:3], *piece[3]), pieces)
    return made


def _places(made: npt.NDArray[Any], arrays: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """Cut an array into parts with the lengths of some arrays."""
    ends = running_sum(np.array([len(own) for own in arrays], np.int64)).tolist()
    return [made[first:stop] for first, stop in pairwise(ends)]


@kernel
def _renumber(ids: UInt32, numbers: UInt32, made: UInt32, first: int, stop: int) -> None:
    for i in range(first, stop):
        made[i] = numbers[ids[i]]


def join_lists(
    size: int, maps: Sequence[UInt32], offsets: Sequence[Int64], values: Sequence[UInt32]
) -> tuple[Int64, UInt32]:
    """Concatenate ascending lists by word over several corpora.

    Parameters
    ----------
    size
        Number of words.
    maps
        uint32 by corpus and own word id: the common number; distinct within a corpus.
    offsets, values
        By corpus: int64 offsets, words + 1, and the concatenated lists, disjoint from those of other corpora.

    Returns
    -------
    (int64[size + 1], uint32 array)
        Offsets of each word's list, and the lists, ascending.

    """
    extremes = [_extremes(*own) for own in zip(offsets, values, strict=True) if len(own[1])]
    if any(most > least for (_, most), (least, _) in pairwise(extremes)):  # rows of grammars interleave
        owners = [np.repeat(numbers, np.diff(own)) for numbers, own in zip(maps, offsets, strict=True)]
        pairs = joined(np.uint64, owners) << np.uint64(32)
        pairs |= joined(np.uint32, values)
        pairs = sort_with(pairs, None)[0]
        return running_sum(np.bincount(pairs >> np.uint64(32), minlength=size)), pairs.astype(np.uint32)
    sizes = np.zeros(size, np.uint64)
    for own, numbers in zip(offsets, maps, strict=True):
        add_counts(np.diff(own).view(np.uint64), numbers, sizes)
    starts = running_sum(sizes.view(np.int64))
    made: UInt32 = allocate(int(starts[-1]), np.uint32)[1]
    free = starts[:-1].copy()
    for own, numbers, rows in zip(offsets, maps, values, strict=True):
        chunks = weighted_chunks(own)
        map_parallel(lambda chunk: _append(own, rows, numbers, free, made, *chunk), chunks)  # noqa: B023
    return starts, made


@kernel
def _append(offsets: Int64, rows: UInt32, numbers: UInt32, free: Int64, made: UInt32, first: int, stop: int) -> None:
    for word in range(first, stop):
        at = free[numbers[word]]
        for i in range(offsets[word], offsets[word + 1]):
            made[at] = rows[i]
            at += 1
        free[numbers[word]] = at


def _extremes(offsets: Int64, values: UInt32) -> tuple[int, int]:
    """Return the least and the greatest value of ascending lists, which are their first and last ones."""
    ends = offsets[:-1][offsets[1:] > offsets[:-1]]
    return int(values[ends].min()), int(values[np.append(ends[1:], len(values)) - 1].max())


def joined(kind: type[np.generic], arrays: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Concatenate arrays of numbers; a single array is returned without a copy."""
    if len(arrays) == 1 and arrays[0].dtype == kind:
        return arrays[0]
    made = allocate(sum(map(len, arrays)), kind)[1]
    pieces = [
        (target[slice(*chunk)], own[slice(*chunk)])
        for own, target in zip(arrays, _places(made, arrays), strict=True)
        for chunk in even_chunks(len(own))
    ]
    map_parallel(lambda piece: np.copyto(*piece), pieces)
    return made
