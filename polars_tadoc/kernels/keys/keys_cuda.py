"""Windows as keys of packed ranks: their layout, their order, runs of equal ones, their words."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polars_tadoc.kernels.primitives.primitives_cuda import compact, exclusive_scan, radix_sort
from polars_tadoc.kernels.sequences.windows_cuda import MAX_NUMBERS, Kind, too_many
from polars_tadoc.runtime.device import even_blocks, launch, launch_each

THREADS = 256
_RUN_TILE = 8 * THREADS
_STRUCT = np.dtype(7 * "u4,")  # Packing of own_windows.cuh


@dataclass(frozen=True)
class Packing:
    """Layout of a key: see ``own_windows.cuh``."""

    words: int
    bits: int
    per_column: int
    columns: int
    spare: int
    digit_bits: int
    document_bits: int = 0

    def sorted_bits(self, column: int) -> tuple[int, int]:
        """Return the number of bits of a column that belong to the key, and the lowest one."""
        if column + 1 < self.columns:
            return self.per_column * self.bits, 0
        return (self.words - column * self.per_column) * self.bits + self.document_bits, self.spare

    @property
    def first_bits(self) -> int:
        """Bits of the words in the first column."""
        return (self.words if self.columns == 1 else self.per_column) * self.bits

    def ranges(self) -> list[tuple[int, int]]:
        """Return the sorted bits of all columns."""
        return [self.sorted_bits(column) for column in range(self.columns)]

    @property
    def struct(self) -> Any:
        """Return the struct that kernels take by value."""
        sizes = (self.words, self.bits, self.per_column, self.columns)
        return np.array((*sizes, self.spare, self.digit_bits, self.document_bits), _STRUCT)


ANY_WEIGHT = (1 << 64) - 1


def pack(kind: Kind, terminals: int, most: int, documents: int = 1) -> Packing:
    """Lay out keys in as few columns as possible, with a document and a digit of the weight in the last column.

    Weights are at most ``most``, documents less than ``documents``.
    """
    bits = max(1, (terminals - 1).bit_length())
    document_bits = (documents - 1).bit_length()
    for columns in itertools.count(1):
        per_column = -(-kind.words // columns)
        last = kind.words - (columns - 1) * per_column
        spare = 64 - last * bits - document_bits
        if last >= 0 and spare > 0 and (columns == 1 or per_column * bits <= 64):
            digit_bits = _digit_bits(spare, max(1, most.bit_length()))
            if digit_bits:
                return Packing(kind.words, bits, per_column, columns, spare, digit_bits, document_bits)
    raise AssertionError


def _digit_bits(spare: int, weight_bits: int) -> int:
    """Return the bits of a digit if digits and their positions fit in ``spare`` bits, 0 if there are too few."""
    for place_bits in range(7):
        bits = min(spare - place_bits, 32)
        if bits >= min(weight_bits, 4) and bits << place_bits >= weight_bits:
            return bits
    return 0


def sum_entries(columns: list[Any], packing: Packing) -> tuple[Any, Any]:
    """Return the distinct keys and the sums of their weights; empties the list of columns, to free memory early."""
    order, ordered = _sort(columns, packing.ranges())
    return sum_runs(ordered, order, packing)


def _sort(columns: list[Any], ranges: Sequence[tuple[int, int]]) -> tuple[Any, Any]:
    """Return the order of the entries and their columns; None if the columns themselves are sorted."""
    import cupy

    given = columns.pop()
    if len(given) == 1:
        return None, radix_sort(given[0], None, *ranges[0], overwrite=True).reshape(1, -1)
    if len(given) == 2:
        by_last = list(radix_sort(given[1], given[0], *ranges[1], overwrite=True))
        del given
        ordered = radix_sort(by_last.pop(), by_last.pop(), *ranges[0], overwrite=True)  # frees its arguments
        return None, cupy.stack(ordered)
    return order_columns(given, ranges), given


def order_columns(columns: Any, ranges: Sequence[tuple[int, int]]) -> Any:
    """Return the order of the entries, cupy uint32; the columns do not change."""
    import cupy

    order = cupy.arange(columns.shape[1], dtype=np.uint32)
    for column, (bits, first_bit) in reversed(list(zip(columns, ranges, strict=True))):
        if bits:
            order = radix_sort(column.take(order), order, bits, first_bit, overwrite=True)[1]
    return order


def sum_runs(columns: Any, order: Any, packing: Packing, slots: Any = None, derived: Any = None) -> tuple[Any, Any]:
    """Return distinct keys and sums of weights, or write each entry's key number into ``derived`` at ``slots``."""
    import cupy

    size = columns.shape[1]
    tiles = cupy.empty(-(-size // _RUN_TILE), np.uint64)
    sorted_entries = (columns, size, packing.columns, packing.spare)
    launch("keys", "count_runs", len(tiles), THREADS, *sorted_entries, order, size, tiles)
    before = exclusive_scan(tiles)
    runs = int(before[-1])  # synchronize!
    if runs + 1 > MAX_NUMBERS:
        raise too_many(runs, "runs of words")
    keys = cupy.empty((packing.columns, runs), np.uint64)
    sums = cupy.zeros(runs, np.uint64) if derived is None else None
    launch(
        *("keys", "sum_runs", len(tiles), THREADS, *sorted_entries, packing.digit_bits, order, size, before, runs),
        *(keys, sums, slots, derived),
    )
    return keys, sums


def compact_keys(keys: Any, counts: Any, keep: Any) -> tuple[Any, Any]:
    """Drop the keys that are not kept, and their counts."""
    import cupy

    columns = [compact(column, keep) for column in keys]
    return (columns[0].reshape(1, -1) if len(columns) == 1 else cupy.stack(columns)), compact(counts, keep)


def words_by_rank(rank: Any) -> Any:
    """Return the word of each rank, cupy uint32; None if words are numbered by rank."""
    import cupy

    if rank is None:
        return None
    words = cupy.empty(len(rank), np.uint32)
    launch_each("keys", "invert", len(rank), rank, len(rank), words)
    return words


def read_keys(keys: Any, packing: Packing, order: Any, words_by_rank: Any) -> Any:
    """Return the words of keys, in the given order or their own, cupy uint32[m, words]."""
    import cupy

    size = keys.shape[1] if order is None else len(order)
    words = cupy.empty((size, packing.words), np.uint32)
    if words.size:
        launch(
            *("keys", "read_keys", 4 * even_blocks(words.size), THREADS, keys, keys.shape[1], order, size),
            *(packing.words, packing.bits, packing.per_column, packing.columns, words_by_rank, words),
        )
    return words


def no_windows(words: int) -> tuple[Any, Any]:
    """Return empty words and counts."""
    import cupy

    return cupy.empty((0, words), np.uint32), cupy.empty(0, np.uint64)
