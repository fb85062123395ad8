"""The hash table of a reference's windows."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from polars_tadoc.analytics.cleaning.laid_words import LaidWords
from polars_tadoc.kernels.host.passages import matches as kernels
from polars_tadoc.kernels.host.passages.windows import NONE, fingerprints_of
from polars_tadoc.runtime.array_types import UInt32, UInt64, array_dataclass

BITS_A_WINDOW = 16
"""Bits of the filter for each distinct window; one of as many foreign windows passes, about."""

MOST_PROBES = 1 << 9
"""Maximum number of adjacent slots that are filled. At most half of all are, so that even of 2^31 windows no honest
table has 256 (D. E. Knuth, *The Art of Computer Programming* 3, section 6.4)."""

CHUNK = 1 << 20
"""Slots that are checked at once."""


@array_dataclass
class PassageTable:
    """Where each distinct window of a reference is."""

    seed: int
    """128 bits, of which the fingerprints follow."""
    slots: UInt64
    bits: UInt64
    """uint64: see :func:`polars_tadoc.kernels.host.passages.matches.fill_table`."""

    @classmethod
    def of(cls, laid: LaidWords, length: int, first: UInt32) -> PassageTable:
        """Make the table of windows of a length, given the first occurrence of each.

        The seed is a digest of the words, so that equal references give equal files. Windows that collide cannot be
        made, because every change of a text changes its seed.
        """
        seed = int.from_bytes(blake2b(laid.words.data, digest_size=16).digest(), "little")
        firsts = int(np.count_nonzero(first == np.arange(len(first), dtype=np.uint32)))
        made = cls(
            seed,
            np.zeros(1 << (2 * firsts).bit_length(), np.uint64),
            np.zeros(1 << (BITS_A_WINDOW * firsts // 64).bit_length(), np.uint64),
        )
        fingerprints = fingerprints_of(seed, length)
        kernels.fill_table(laid.words, laid.starts, length, *fingerprints, first, made.slots, made.bits)
        return made

    def require_sound(self, first: UInt32, firsts: int) -> None:
        """Check all that kernels rely on; ``first`` is checked, and has ``firsts`` distinct windows.

        Raises
        ------
        ValueError
            A distinct window has not one slot, or slots are filled so that look-ups would be slow.

        """
        slots, bits = self.slots, self.bits
        if slots.dtype != np.uint64 or bits.dtype != np.uint64:
            raise ValueError(f"its table is of {slots.dtype} and {bits.dtype}")
        if len(slots).bit_count() != 1 or len(bits).bit_count() != 1 or len(slots) <= 2 * firsts:
            raise ValueError("its table has no size of a table")
        filled, has_slot, free = 0, np.zeros(len(first), np.bool_), -1
        for begin in range(0, len(slots), CHUNK):
            own = slots[begin : begin + CHUNK]
            used = (own[own != 0] & np.uint64(NONE)) - np.uint64(1)
            if (used >= np.uint64(len(first))).any() or (first[used.astype(np.int64)] != used).any():
                raise ValueError("its table does not fit its windows")
            has_slot[used.astype(np.int64)] = True
            filled += len(used)
            edges = np.concatenate([[free], begin + np.flatnonzero(own == 0), [begin + len(own)]])
            if np.diff(edges).max() > MOST_PROBES:
                raise ValueError("its table has too many filled slots in a row")
            free = int(edges[-2])
        if not filled == firsts == np.count_nonzero(has_slot):
            raise ValueError("its table does not fit its windows")
