"""Decodes lists without deleted documents."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.postings.coded import Postings
from polars_tadoc.kernels.postings.decode_cpu import View, addresses_of, decode_counts, decode_documents, view_at
from polars_tadoc.kernels.postings.unary_cpu import block_on_stack
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.runtime.addresses import load_u32, load_u64
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, polled_kernel
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

DELETED = np.uint32(0xFFFFFFFF)
"""New number of a deleted document."""


def live_frequencies(postings: Postings, numbers: UInt32) -> UInt32:
    """Count the live documents of each list; ``numbers`` is uint32 by document, ``DELETED`` for deleted ones."""
    frequencies = np.empty(len(postings.frequencies), np.uint32)
    addresses = addresses_of(postings)
    map_parallel(lambda chunk: _count(addresses, numbers, *chunk, frequencies), _chunks(postings))
    return frequencies


def renumber(postings: Postings, numbers: UInt32, at: Int64, documents: UInt32, counts: UInt32) -> bool:
    """Decode the lists without deleted documents, with new document numbers.

    Parameters
    ----------
    postings
        The lists.
    numbers
        uint32 by document: its new number, ``DELETED`` for deleted ones.
    at
        int64 by list: its start in the results, which have room for all live documents.
    documents, counts
        uint32 arrays, outputs.

    Returns
    -------
    bool
        Whether documents ascend and counts are at least 1, which holds unless the postings are damaged.

    """
    addresses = addresses_of(postings)
    return all(
        map_parallel(lambda chunk: _renumber(addresses, numbers, *chunk, at, documents, counts), _chunks(postings))
    )


def _chunks(postings: Postings) -> list[tuple[int, int]]:
    return weighted_chunks(running_sum(postings.frequencies))


@polled_kernel
def _count(addresses: UInt64, numbers: UInt32, start: int, stop: int, frequencies: UInt32) -> None:
    began = interrupts()
    view, documents = view_at(addresses), block_on_stack()
    for t in range(start, stop):
        if t & 0xFF == 0 and interrupts() != began:
            return
        live = 0
        for block in range(_first_block(view, t), _first_block(view, t + 1)):
            size = decode_documents(view, nb.uint64(t), block, documents)
            for i in range(size):
                live += nb.int64(numbers[load_u32(documents + nb.uint64(4) * i)] != DELETED)
        frequencies[t] = live


@polled_kernel
def _renumber(
    addresses: UInt64, numbers: UInt32, start: int, stop: int, at: Int64, documents: UInt32, counts: UInt32
) -> bool:
    began = interrupts()
    view = view_at(addresses)
    sound = True
    own_documents, own_counts = block_on_stack(), block_on_stack()
    for t in range(start, stop):
        if t & 0xFF == 0 and interrupts() != began:
            return sound
        place, least = at[t], nb.int64(0)
        for block in range(_first_block(view, t), _first_block(view, t + 1)):
            size = decode_documents(view, nb.uint64(t), block, own_documents)
            decode_counts(view, nb.uint64(t), block, own_counts)
            for i in range(size):
                number = numbers[load_u32(own_documents + nb.uint64(4) * i)]
                if number != DELETED:
                    count = load_u32(own_counts + nb.uint64(4) * i)
                    sound = sound and nb.int64(number) >= least and count > 0
                    documents[place] = number
                    counts[place] = count
                    place, least = place + 1, nb.int64(number) + 1
    return sound


@inner
def _first_block(view: View, number: int) -> Any:
    return load_u64(view.block_offsets + nb.uint64(8) * nb.uint64(number))
