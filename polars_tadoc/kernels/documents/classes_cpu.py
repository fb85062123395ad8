"""Finds documents with equal symbols: results of one hold for its whole class."""

from __future__ import annotations

import secrets
from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.runtime.array_types import Int64, UInt32, array_dataclass
from polars_tadoc.runtime.jit import kernel

LONGEST = 16
"""Maximum symbols of a document that is compared with others: longer ones are rarely equal and cost more to hash."""


PROBES = 32
"""Probes per document: half of the slots are free, so more are hardly ever needed."""

_KEY = np.uint64(secrets.randbits(64))
_0, _1, _32, _LONGEST, _ODD = (np.uint64(number) for number in (0, 1, 32, LONGEST, 0x9E3779B97F4A7C15))


@array_dataclass
class Classes:
    """Classes of equal documents, numbered by first occurrence."""

    of: UInt32
    """uint32 by document: its class."""
    members: Int64
    """int64 by class: its first document."""


@kernel
def classify(
    root_offsets: Int64, roots: UInt32, key: Any, single: UInt32, slots: UInt32, of: UInt32, members: Int64
) -> Any:
    """Number the classes; return their number.

    ``single`` has an entry by symbol for documents of that symbol alone, ``slots`` for others, a power of two above the
    number of documents; both are initially zero, and have 1 + a class. Open addressing with linear probing. The hash
    has a random key, and a document that finds no slot in ``PROBES`` is a class of its own, so crafted rows cannot make
    this slow.
    """
    count = nb.int64(0)
    mask = nb.uint64(len(slots) - 1)
    for d in range(nb.uint64(len(root_offsets) - 1)):
        first, end = nb.uint64(root_offsets[d]), nb.uint64(root_offsets[d + _1])
        found = count
        if end == first + _1:
            if single[roots[first]] != 0:
                found = nb.int64(single[roots[first]]) - 1
            else:
                single[roots[first]] = count + 1
        elif end - first <= _LONGEST:
            mixed = key ^ (end - first)
            for i in range(first, end):
                mixed = (mixed ^ nb.uint64(roots[i])) * _ODD
                mixed ^= mixed >> _32
            for _ in range(PROBES):
                slot = mixed & mask
                if slots[slot] == 0:
                    slots[slot] = count + 1
                    break
                c = nb.int64(slots[slot]) - 1
                other = nb.uint64(root_offsets[members[c]])
                if nb.uint64(root_offsets[members[c] + 1]) - other == end - first:
                    k = _0
                    while first + k < end and roots[other + k] == roots[first + k]:
                        k += _1
                    if first + k == end:
                        found = c
                        break
                mixed += _1
        of[d] = found
        if found == count:
            members[count] = d
            count += 1
    return count


def classes_of(root_offsets: Int64, roots: UInt32, symbols: int) -> Classes:
    """Find the classes of equal documents among short ones; any other document is a class of its own.

    Parameters
    ----------
    root_offsets
        int64, documents + 1: offsets of each document's symbols in ``roots``.
    roots
        uint32: the documents' symbols.
    symbols
        One more than the largest symbol.

    """
    documents = len(root_offsets) - 1
    of, members = np.empty(documents, np.uint32), np.empty(documents, np.int64)
    single, slots = np.zeros(symbols, np.uint32), np.zeros(1 << (2 * documents).bit_length(), np.uint32)
    count = classify(root_offsets, roots, _KEY, single, slots, of, members)
    return Classes(of, members[:count])
