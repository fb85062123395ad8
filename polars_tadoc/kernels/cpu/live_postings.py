"""Coded lists without the documents that were deleted."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cpu.coding import addresses_of, decode_counts, decode_documents
from polars_tadoc.kernels.cpu.parallel import map_parallel, weighted_chunks
from polars_tadoc.kernels.postings import BLOCK, Postings

UInt32 = npt.NDArray[np.uint32]
Int64 = npt.NDArray[np.int64]

DELETED = np.uint32(0xFFFFFFFF)
"""New number of a document that goes."""


def live_frequencies(postings: Postings, numbers: UInt32) -> UInt32:
    """Count the documents of each list that stay.

    Parameters
    ----------
    postings
        The lists.
    numbers
        uint32 by document: ``DELETED`` for those that go.

    Returns
    -------
    uint32 array
        By list.

    """
    frequencies = np.empty(len(postings.frequencies), np.uint32)
    map_parallel(lambda chunk: _count(postings, numbers, *chunk, frequencies), _chunks(postings))
    return frequencies


def renumber(postings: Postings, numbers: UInt32, at: Int64, documents: UInt32, counts: UInt32) -> bool:
    """Decode the lists without the documents that go, the others numbered anew.

    Parameters
    ----------
    postings
        The lists.
    numbers
        uint32 by document: its new number, ``DELETED`` for those that go.
    at
        int64 by list: where it starts in the results, which have room for all that stay.
    documents, counts
        uint32 arrays, written.

    Returns
    -------
    bool
        Whether documents ascend and counts are at least 1, as they do unless the postings are damaged.

    """
    return all(
        map_parallel(lambda chunk: _renumber(postings, numbers, *chunk, at, documents, counts), _chunks(postings))
    )


def _chunks(postings: Postings) -> list[tuple[int, int]]:
    before = np.zeros(len(postings.frequencies) + 1, np.int64)
    np.cumsum(postings.frequencies, out=before[1:])
    return weighted_chunks(before)


@nb.njit(nogil=True, cache=True)
def _count(postings: Postings, numbers: UInt32, start: int, stop: int, frequencies: UInt32) -> None:
    addresses = addresses_of(postings)
    documents = np.empty(BLOCK, np.uint32)
    target = nb.uint64(documents.ctypes.data)
    for t in range(start, stop):
        live = 0
        for block in range(postings.block_offsets[t], postings.block_offsets[t + 1]):
            size = decode_documents(addresses, nb.uint64(t), nb.uint64(block), target)
            for i in range(size):
                live += nb.int64(numbers[documents[i]] != DELETED)
        frequencies[t] = live


@nb.njit(nogil=True, cache=True)
def _renumber(
    postings: Postings, numbers: UInt32, start: int, stop: int, at: Int64, documents: UInt32, counts: UInt32
) -> bool:
    sound = True
    addresses = addresses_of(postings)
    own_documents, own_counts = np.empty(BLOCK, np.uint32), np.empty(BLOCK, np.uint32)
    to_documents, to_counts = nb.uint64(own_documents.ctypes.data), nb.uint64(own_counts.ctypes.data)
    for t in range(start, stop):
        place, least = at[t], nb.int64(0)
        for block in range(postings.block_offsets[t], postings.block_offsets[t + 1]):
            size = decode_documents(addresses, nb.uint64(t), nb.uint64(block), to_documents)
            decode_counts(addresses, nb.uint64(t), nb.uint64(block), to_counts)
            for i in range(size):
                number = numbers[own_documents[i]]
                if number != DELETED:
                    sound = sound and nb.int64(number) >= least and own_counts[i] > 0
                    documents[place] = number
                    counts[place] = own_counts[i]
                    place, least = place + 1, nb.int64(number) + 1
    return sound
