"""Sorts and merges records with keys packed into 64-bit numbers, as in runs on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from polars_tadoc.kernels.host.records.merge_words import merge_words
from polars_tadoc.kernels.host.records.packed_keys import KeyForm, merge_sorted, pack, repack, unpack
from polars_tadoc.kernels.host.records.records import mark
from polars_tadoc.kernels.host.records.sort_keys import sort_keys
from polars_tadoc.model.arrow_results import to_arrow
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.records.records import Layout, Records
from polars_tadoc.runtime.array_types import UInt32, UInt64, array_dataclass

Sorted = tuple[UInt64, UInt64 | None]
"""Keys, uint64[limbs, keys], and counts."""

ROW_FORM = KeyForm((32,))
"""Existing rows with their lengths are sorted keys with counts, too."""


@array_dataclass
class Packed:
    """Sorted records with packed keys."""

    words: pa.LargeStringArray
    """Distinct words in code point order."""
    form: KeyForm
    """Packing of keys."""
    keys: UInt64
    counts: UInt64 | None
    """``keys``, ``counts``: uint64[limbs, keys], and uint64 or None if records have no counts."""
    rows: Sorted | None
    """Existing rows and their lengths; None if the layout has none."""

    def __len__(self) -> int:
        return int(self.keys.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and the words."""
        arrays = [self.keys, self.counts, *(self.rows or ())]
        return int(self.words.nbytes) + sum(int(array.nbytes) for array in arrays if array is not None)


def form_of(layout: Layout, words: int, others: Sequence[int]) -> KeyForm:
    """Choose the packing for a number of words.

    Parameters
    ----------
    layout
        Columns of the keys.
    words
        Number of words.
    others
        By column: bits of the largest number, for columns that are not words.

    """
    of_word = max(1, (words - 1).bit_length())
    return KeyForm(tuple(of_word if word else max(1, n) for word, n in zip(layout.are_words, others, strict=True)))


def merge(layout: Layout, parts: Sequence[Records | Packed]) -> Packed:
    """Merge parts into one; packed parts are consumed.

    Parameters
    ----------
    layout
        Layout of the records.
    parts
        At least one part.

    """
    words, maps = merge_words([part.words for part in parts])
    widest = np.max([_bits(layout, part) for part in parts], axis=0)
    form = form_of(layout, len(words), widest.tolist())
    keys, counts = merge_sorted([_in_form(layout, part, form, own) for part, own in zip(parts, maps, strict=True)])
    rows = merge_sorted([_rows(part) for part in parts]) if layout.documents else None
    return Packed(words, form, keys, counts, rows)


def merge_records(layout: Layout, parts: Sequence[Records]) -> Records:
    """Merge the records of several parts; the counts of equal keys are added.

    Parameters
    ----------
    layout
        Layout of the records.
    parts
        Any number of parts; with ``Layout.documents`` their rows must be disjoint.

    """
    if not parts:
        none, keys = np.zeros(0, np.uint64), np.zeros((0, len(layout.columns)), np.uint32)
        made = Records(pa.nulls(0, pa.large_string()), keys, none if layout.counted else None)
        return replace(made, rows=none.astype(np.uint32), lengths=none) if layout.documents else made
    if len(parts) == 1:
        return parts[0]
    merged = merge(layout, parts)
    made = Records(merged.words, unpack(merged.keys, merged.form), merged.counts)
    if merged.rows is None:
        return made
    rows, lengths = merged.rows
    return replace(made, rows=rows[0].astype(np.uint32), lengths=lengths)


def sort_records(
    layout: Layout,
    words: Vocabulary,
    keys: UInt32,
    counts: UInt64 | None = None,
    rows: UInt32 | None = None,
    lengths: UInt64 | None = None,
) -> Records:
    """Make records from unsorted keys; the counts of equal keys are added.

    ``words`` are in any order, unused ones are dropped; other arguments as in :class:`Records`, but ``keys`` is
    unsorted and holds ids of words.
    """
    used = np.zeros(len(words), np.bool_)
    mark(keys, layout.are_words, used)
    by_rank = words.by_rank[used[words.by_rank]]
    numbers = np.zeros(len(words), np.uint32)
    numbers[by_rank] = np.arange(len(by_rank), dtype=np.uint32)
    part = Records(words.strings.take(to_arrow(by_rank)), keys, counts)
    form = form_of(layout, len(by_rank), _bits(layout, part))
    made, counts = sort_keys(*_in_form(layout, part, form, numbers))
    return Records(part.words, unpack(made, form), counts, rows, lengths)


def _bits(layout: Layout, part: Records | Packed) -> list[int]:
    """Return the bits of the largest number of each column that does not hold words."""
    if isinstance(part, Packed):
        return list(part.form.bits)
    words = layout.are_words
    return [
        0 if word or not len(part) else int(own.max()).bit_length()
        for own, word in zip(part.keys.T, words, strict=True)
    ]


def _in_form(layout: Layout, part: Records | Packed, form: KeyForm, numbers: UInt32 | None) -> Sorted:
    if isinstance(part, Packed):
        one_limb = part.form.limbs == form.limbs == 1
        out = part.keys if one_limb else np.empty((form.limbs, len(part)), np.uint64)
        repack(part.keys, part.form, form, layout.are_words, numbers, out)
    else:
        out = np.empty((form.limbs, len(part)), np.uint64)
        pack(part.keys, form, layout.are_words, numbers, out)
    return out, part.counts if layout.counted else None


def _rows(part: Records | Packed) -> Sorted:
    assert part.rows is not None
    return part.rows if isinstance(part, Packed) else (part.rows.astype(np.uint64)[None, :], part.lengths)
