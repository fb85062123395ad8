"""Finds documents of equal symbols: what is counted of one holds for all of its class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

UInt32 = npt.NDArray[np.uint32]
Int64 = npt.NDArray[np.int64]

LONGEST = 16
"""Symbols up to which a document is compared with others: longer ones are seldom equal and cost more to hash."""


@dataclass(frozen=True, eq=False)
class Classes:
    """Classes of equal documents, numbered by their first members.

    Parameters
    ----------
    of
        uint32 by document: its class.
    members
        int64 by class: its first document.

    """

    of: UInt32
    members: Int64


@nb.njit(nogil=True, cache=True)
def classify(root_offsets: Int64, roots: UInt32, longest: int, slots: UInt32, of: UInt32, members: Int64) -> Any:
    """Number the classes; returns how many there are. ``slots`` is zero, its size a power of two above the documents.

    A slot holds 1 + a class; what hashes alike stands in the slots after.
    """
    count = nb.int64(0)
    mask = nb.uint64(len(slots) - 1)
    for d in range(len(root_offsets) - 1):
        first = root_offsets[d]
        size = root_offsets[d + 1] - first
        found = count
        if size <= longest:
            key = nb.uint64(size)
            for i in range(first, first + size):
                key = (key ^ nb.uint64(roots[i])) * nb.uint64(0x9E3779B97F4A7C15)
                key ^= key >> nb.uint64(32)
            slot = key & mask
            while slots[slot] != 0:
                c = nb.int64(slots[slot]) - 1
                other = root_offsets[members[c]]
                if root_offsets[members[c] + 1] - other == size:
                    k = nb.int64(0)
                    while k < size and roots[other + k] == roots[first + k]:
                        k += 1
                    if k == size:
                        found = c
                        break
                slot = (slot + nb.uint64(1)) & mask
            if found == count:
                slots[slot] = nb.uint32(count + 1)
        of[d] = nb.uint32(found)
        if found == count:
            members[count] = d
            count += 1
    return count


def classes_of(root_offsets: Int64, roots: UInt32) -> Classes:
    """Find the classes of equal documents among those of few symbols; any other is a class of its own."""
    documents = len(root_offsets) - 1
    of, members = np.empty(documents, np.uint32), np.empty(documents, np.int64)
    slots = np.zeros(1 << (2 * documents).bit_length(), np.uint32)
    count = classify(root_offsets, roots, LONGEST, slots, of, members)
    return Classes(of, members[:count])
