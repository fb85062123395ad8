"""The documents that contain each sequence of words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polars_tadoc.kernels.keys.key_ranges_cuda import Batches, Survey, spare_memory
from polars_tadoc.kernels.keys.keys_cuda import (
    Packing,
    no_windows,
    pack,
    read_keys,
    sum_entries,
    sum_runs,
    words_by_rank,
)
from polars_tadoc.kernels.keys.plain_windows_cuda import is_plain, list_plain
from polars_tadoc.kernels.primitives.primitives_cuda import compact, exclusive_scan, radix_sort, segmented_sum
from polars_tadoc.kernels.sequences.bodies_cuda import Text, make_texts
from polars_tadoc.kernels.sequences.protocol import Limits
from polars_tadoc.kernels.sequences.rule_occurrences_cuda import rule_documents
from polars_tadoc.kernels.sequences.windows_cuda import MAX_NUMBERS, Kind, possible_kind, too_many
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.device import device_errors, launch_each

_MAX_ENTRIES = 1 << 30
"""Exclusive limit of entries sorted at a time."""


def list_windows(
    kind: Kind, rules: Rules, root_offsets: Any, roots: Any, rank: Any, strategy: str, limits: Limits
) -> tuple[Any, Any, Any, Any]:
    """Return words by rank, offsets of each window's documents, the documents, and their counts.

    A rule's documents are those of its windows. Documents' own windows need no counting by document.
    """
    min_count, top = limits.get("min_count", 1), limits.get("top")
    with device_errors(f"listing the documents of runs of {kind.words} words"):
        import cupy

        possible = possible_kind(kind, rules, root_offsets, roots)
        if possible is None:
            no_words, no_counts = no_windows(kind.words)
            return no_words, cupy.zeros(1, np.int64), cupy.empty(0, np.uint32), no_counts
        if is_plain(possible, rules, roots, documents=True):
            packing, (keys, offsets, lists, documents, counts) = list_plain(possible, rules, root_offsets, roots, rank)
            made = _limited(keys, offsets, lists, documents, counts, min_count, top)
            return _joined([made], packing, words_by_rank(rank))
        texts = make_texts(possible, rules, root_offsets, roots, rank)
        codes = _write_codes(possible, rules, texts, strategy)
        found = _list_batches(possible, texts, codes, spare_memory(rules, *texts), min_count, top)
        packing = codes.packing
        del texts, codes
        return _joined(found, packing, words_by_rank(rank))


@array_dataclass
class _Codes:
    """The part of entries after a window's key, by rule: see ``window_postings.cu``."""

    packing: Packing
    offsets: Any
    """cupy int64, rules + 1."""
    codes: Any
    """cupy uint64."""


def _write_codes(kind: Kind, rules: Rules, texts: tuple[Text, Text], strategy: str) -> _Codes:
    """Return a code for each document of a rule, or for each digit of its count there."""
    import cupy

    offsets, documents, counts = rule_documents(kind, rules, *texts, strategy)
    most = int(counts.max()) if len(counts) else 1  # synchronize!
    packing = pack(kind, rules.terminals, most, len(texts[1].offsets) - 1)
    size, digit_bits = len(counts), packing.digit_bits
    places, codes = None, counts
    if most.bit_length() > packing.digit_bits:
        sizes = cupy.empty(len(counts), np.uint8)
        launch_each("window_postings", "measure_codes", len(counts), counts, size, digit_bits, sizes)
        places = exclusive_scan(sizes)
        del sizes
        offsets = places.take(offsets)
        codes = cupy.empty(int(places[-1]), np.uint64)  # synchronize!
    launch_each(
        "window_postings", "write_codes", len(counts), documents, counts, size, packing.spare, digit_bits, places, codes
    )
    return _Codes(packing, offsets, codes)


@dataclass(eq=False)
class _Lists:
    """Windows of a range of keys, and their documents."""

    keys: Any
    """cupy uint64, columns by windows."""
    offsets: Any
    """cupy int64: offsets of each window's documents."""
    documents: Any
    """cupy uint32, by descending count."""
    counts: Any
    """cupy uint64, or uint32 until all lists are joined."""

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return int(self.keys.nbytes + self.offsets.nbytes + self.documents.nbytes + self.counts.nbytes)


def _list_batches(
    kind: Kind, texts: tuple[Text, Text], codes: _Codes, room: int, min_count: int, top: int | None
) -> list[_Lists]:
    """Return the lists of each batch, with keys ascending over all batches."""
    import cupy

    packing = codes.packing
    bodies, documents = texts
    parts = (
        (bodies, (codes.offsets, bodies.offsets, len(bodies.offsets) - 1), codes.codes),
        (documents, (None, documents.offsets, len(documents.offsets) - 1), None),
    )

    def write(low: int, last: int, *target: Any) -> None:
        for text, owners, own_codes in parts:
            launch_each(
                *("window_postings", "write_postings", len(text.symbols), text.struct, packing.struct, low, last),
                *(*owners, own_codes, *target),
            )

    def sketch(target: Any) -> None:
        write(0, (1 << 64) - 1, None, 0, None, target)

    row_bytes = 4 * kind.words + 8
    batches = Batches(
        Survey(
            ("window_postings", "survey_postings"),
            packing,
            [part[:2] for part in parts],
            sketch if top is None and min_count <= 1 else None,
        ),
        room - int(codes.offsets.nbytes + codes.codes.nbytes),
        # while entries are joined; while lists are sorted, at least two documents per window
        entry_bytes=max(16 * packing.columns + 24, 4 * packing.columns + 48),
        row_bytes=row_bytes if min_count <= 1 else 0,
        item_bytes=12,
        kept=True,
    )
    found: list[_Lists] = []
    for low, last, entries in batches.ranges(packing.first_bits):
        if entries >= _MAX_ENTRIES:
            raise too_many(entries, "documents of runs")
        columns, taken = [cupy.empty((packing.columns, entries), np.uint64)], cupy.zeros(1, np.uint64)
        write(low, last, columns[0], entries, taken, None)
        found.append(_make_lists(columns, packing, min_count, top))
        lists = found[-1]
        if entries < batches.total and len(lists.counts) and int(lists.counts.max()) <= MAX_NUMBERS:  # synchronize!
            lists.counts = lists.counts.astype(np.uint32)
        batches.found(lists.nbytes, len(lists.offsets) * row_bytes + 12 * len(lists.documents))
        del lists
    return found


def _make_lists(columns: list[Any], packing: Packing, min_count: int, top: int | None) -> _Lists:
    """Return the lists of some entries, removing these from ``columns``, without parts that the result drops."""
    import cupy

    pairs, counts = sum_entries(columns, packing)
    size = len(counts)
    lists, documents = cupy.empty(len(counts), np.uint32), cupy.empty(len(counts), np.uint32)
    keys, _ = sum_runs(pairs, None, replace(packing, spare=packing.document_bits), None, lists)
    list_count = keys.shape[1]
    offsets = cupy.zeros(list_count + 1, np.int64)
    launch_each(
        *("window_postings", "find_lists", len(lists), lists, pairs[-1], size, list_count, packing.document_bits),
        *(offsets, documents),
    )
    del pairs
    return _limited(keys, offsets, lists, documents, counts, min_count, top)


def _limited(
    keys: Any, offsets: Any, lists: Any, documents: Any, counts: Any, min_count: int, top: int | None
) -> _Lists:
    """Sort lists of ascending documents by descending count, without entries that the result drops.

    ``lists`` is cupy uint32: the list of each document.
    """
    import cupy

    list_count = len(offsets) - 1
    order_lists(lists, list_count, documents, counts)
    if top is None and min_count <= 1:
        return _Lists(keys, offsets, documents, counts)
    wanted = cupy.ones(list_count, np.bool_)
    if min_count > 1:
        wanted = segmented_sum(counts, offsets) >= np.uint64(min(min_count, (1 << 64) - 1))
    keep = cupy.empty(len(lists), np.uint8)
    most = (1 << 64) - 1 if top is None else top
    launch_each(
        "window_postings", "keep_first", len(lists), lists, offsets, wanted.view(np.uint8), len(lists), most, keep
    )
    del lists
    kept_sizes = compact(segmented_sum(keep, offsets), wanted)
    kept = [compact(column, wanted) for column in keys]
    return _Lists(cupy.stack(kept), exclusive_scan(kept_sizes), compact(documents, keep), compact(counts, keep))


def _joined(found: list[_Lists], packing: Packing, words_by_rank: Any) -> tuple[Any, Any, Any, Any]:
    """Join batches; each array is freed as soon as it is part of the result."""
    import cupy

    if len(found) == 1:
        lists = found.pop()
        return read_keys(lists.keys, packing, None, words_by_rank), lists.offsets, lists.documents, lists.counts
    windows = sum(len(lists.offsets) - 1 for lists in found)
    total = sum(len(lists.documents) for lists in found)
    words, offsets = cupy.empty((windows, packing.words), np.uint32), cupy.empty(windows + 1, np.int64)
    window = before = 0
    for lists in found:
        some = slice(window, window + len(lists.offsets) - 1)
        words[some] = read_keys(lists.keys, packing, None, words_by_rank)
        offsets[some] = lists.offsets[:-1] + before
        window, before = some.stop, before + len(lists.documents)
        lists.keys = lists.offsets = None
    offsets[-1:] = total
    return words, offsets, _moved(found, "documents", total, np.uint32), _moved(found, "counts", total, np.uint64)


def _moved(found: list[_Lists], name: str, total: int, dtype: Any) -> Any:
    """Join one array of all batches; each batch loses its own."""
    import cupy

    joined, before = cupy.empty(total, dtype), 0
    for lists in found:
        own = getattr(lists, name)
        joined[before : before + len(own)] = own
        before += len(own)
        setattr(lists, name, None)
        del own
    return joined


def order_lists(lists: Any, list_count: int, documents: Any, counts: Any) -> None:
    """Sort each list of documents by descending count, in place; input is ascending."""
    import cupy

    disordered = cupy.zeros(list_count, np.uint8)
    launch_each("window_postings", "mark_disordered", len(lists), lists, counts, len(lists), disordered)
    places = compact(cupy.arange(len(lists), dtype=np.uint32), disordered.take(lists))
    if not len(places):
        return
    falling = counts.take(places)
    most = int(falling.max())  # synchronize!
    cupy.subtract(np.uint64(most), falling, out=falling)
    if most <= MAX_NUMBERS:
        falling = falling.astype(np.uint32)
    order = radix_sort(falling, places.copy(), most.bit_length(), overwrite=True)[1]
    del falling
    order = radix_sort(lists.take(order), order, list_count.bit_length(), overwrite=True)[1]
    counts[places] = counts.take(order)
    documents[places] = documents.take(order)
