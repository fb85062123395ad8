"""Records in memory as runs hold them: packed keys over words in code point order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from polars_tadoc.kernels.host.records.merge_words import merge_words
from polars_tadoc.kernels.host.records.packed_keys import KeyForm, merge_sorted, pack, repack
from polars_tadoc.records.records import Layout, Records

UInt64 = npt.NDArray[np.uint64]
UInt32 = npt.NDArray[np.uint32]

Sorted = tuple[UInt64, UInt64 | None]
"""Keys, uint64[limbs, keys], and counts."""

ROW_FORM = KeyForm((32,))
"""Rows that are there, with their lengths, are sorted keys with counts, too."""


@dataclass(frozen=True, eq=False)
class Packed:
    """Sorted records whose keys are packed.

    Parameters
    ----------
    words
        Distinct words in code point order.
    form
        How keys are packed.
    keys, counts
        uint64[limbs, keys] and uint64, if records are counted.
    rows
        Rows that are there and their lengths; None where the layout has none.

    """

    words: pa.LargeStringArray
    form: KeyForm
    keys: UInt64
    counts: UInt64 | None
    rows: Sorted | None

    def __len__(self) -> int:
        return int(self.keys.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and the words."""
        arrays = [self.keys, self.counts, *(self.rows or ())]
        return int(self.words.nbytes) + sum(int(array.nbytes) for array in arrays if array is not None)


def are_words(layout: Layout) -> list[bool]:
    """Tell which columns hold numbers of words."""
    return [kind == "word" for kind in layout.columns]


def form_of(layout: Layout, words: int, others: Sequence[int]) -> KeyForm:
    """Choose the form for so many words.

    Parameters
    ----------
    layout
        What keys hold.
    words
        How many words there are.
    others
        By column: bits of the largest number, where it is not a word's.

    """
    of_word = max(1, (words - 1).bit_length())
    return KeyForm(tuple(of_word if word else max(1, n) for word, n in zip(are_words(layout), others, strict=True)))


def merge(layout: Layout, parts: Sequence[Records | Packed]) -> Packed:
    """Make one of several parts; packed ones are used up.

    Parameters
    ----------
    layout
        What the records mean.
    parts
        One or more.

    """
    words, maps = merge_words([part.words for part in parts])
    widest = np.max([_bits(layout, part) for part in parts], axis=0)
    form = form_of(layout, len(words), widest.tolist())
    keys, counts = merge_sorted([_in_form(layout, part, form, own) for part, own in zip(parts, maps, strict=True)])
    rows = merge_sorted([_rows(part) for part in parts]) if layout.documents else None
    return Packed(words, form, keys, counts, rows)


def _bits(layout: Layout, part: Records | Packed) -> list[int]:
    """Bits of the largest number of each column that holds no words."""
    if isinstance(part, Packed):
        return list(part.form.bits)
    words = are_words(layout)
    return [
        0 if word or not len(part) else int(own.max()).bit_length()
        for own, word in zip(part.keys.T, words, strict=True)
    ]


def _in_form(layout: Layout, part: Records | Packed, form: KeyForm, numbers: UInt32 | None) -> Sorted:
    if isinstance(part, Packed):
        one_limb = part.form.limbs == form.limbs == 1
        out = part.keys if one_limb else np.empty((form.limbs, len(part)), np.uint64)
        repack(part.keys, part.form, form, are_words(layout), numbers, out)
    else:
        out = np.empty((form.limbs, len(part)), np.uint64)
        pack(part.keys, form, are_words(layout), numbers, out)
    return out, part.counts if layout.counted else None


def _rows(part: Records | Packed) -> Sorted:
    if isinstance(part, Packed):
        assert part.rows is not None
        return part.rows
    assert part.rows is not None
    return part.rows.astype(np.uint64)[None, :], part.lengths
