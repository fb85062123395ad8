"""Joins the sequences that several corpora counted."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]


def sum_sequences(
    sequences: UInt32, counts: UInt64, rank: UInt32, min_count: int = 1, top: int | None = None
) -> tuple[UInt32, UInt64]:
    """Add the counts of equal sequences.

    Parameters
    ----------
    sequences
        uint32[m, n]: word ids.
    counts
        uint64[m].
    rank
        uint32 by word id: place in code point order.
    min_count, top
        Leave out sequences counted less often; at most so many.

    Returns
    -------
    (uint32[k, n], uint64[k])
        Each sequence once and its count; by count falling, then by rank.

    """
    places, ids = _distinct(sequences, rank)
    totals = np.zeros(len(places), np.uint64)
    np.add.at(totals, ids, counts)
    order = np.argsort(~totals, kind="stable")[: int(np.count_nonzero(totals >= np.uint64(min_count)))][:top]
    return sequences[places[order]], totals[order]


def join_postings(
    sequences: UInt32,
    sizes: Int64,
    rows: UInt32,
    counts: UInt64,
    rank: UInt32,
    min_count: int = 1,
    top: int | None = None,
) -> tuple[UInt32, Int64, UInt32, UInt64]:
    """Join the rows of equal sequences.

    Parameters
    ----------
    sequences, rank
        As for :func:`sum_sequences`.
    sizes
        int64[m]: rows of each sequence.
    rows, counts
        uint32 and uint64, sequence after sequence; no row is with a sequence twice.
    min_count, top
        Leave out sequences counted less often in all rows together; at most so many rows for each.

    Returns
    -------
    (uint32[k, n], int64[k + 1], uint32 array, uint64 array)
        Sequences by rank, where each one's rows start, rows by count falling, then ascending, and counts.

    """
    places, ids = _distinct(sequences, rank)
    owners = np.repeat(ids, sizes)
    totals = np.zeros(len(places), np.uint64)
    np.add.at(totals, owners, counts)
    order = np.lexsort((rows, ~counts, owners))
    order = order[(totals >= np.uint64(min_count))[owners[order]]]
    owners = owners[order]
    if top is not None and len(order):
        within = np.arange(len(order)) - np.searchsorted(owners, owners)
        order, owners = order[within < top], owners[within < top]
    kept = np.flatnonzero(totals >= np.uint64(min_count))
    offsets = np.append(np.searchsorted(owners, kept), len(owners)).astype(np.int64)
    return sequences[places[kept]], offsets, rows[order], counts[order]


def _distinct(sequences: UInt32, rank: UInt32) -> tuple[Int64, Int64]:
    """Return a place of each distinct sequence, by rank, and the number of each place's sequence among them."""
    ids = np.zeros(len(sequences), np.int64)
    places = np.zeros(min(len(sequences), 1), np.int64)
    for column in sequences.T:  # pairs of an id so far and a rank: both below 2^32, so no key is cut
        keys = ids.astype(np.uint64) << np.uint64(32) | rank[column]
        _, places, ids = np.unique(keys, return_index=True, return_inverse=True)
    return places, ids
