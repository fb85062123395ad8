"""Counts of terminals by document on the device, from cached tables of rules.

A document's terminals are marked in a bitmap, which gives each terminal's index in the document: they are counted
without a hash table and are in order of rank, and are then sorted by count, if requested, without a global sort. Equal
documents of one symbol are counted once. The host waits once, for the size of the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.documents.marked_documents_cuda import (
    MAX_BITS,
    REPORT_WORDS,
    mark_documents,
    offered_shared,
    scratch_of,
    table_terminals,
)
from polars_tadoc.kernels.keys.keys_cuda import words_by_rank
from polars_tadoc.kernels.primitives.primitives_cuda import exclusive_scan
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.traverse.tables_cuda import Tables
from polars_tadoc.runtime.device import device_errors, launch, launch_each, launch_resident

_COUNT_THREADS, _THREADS, _ITEMS = 512, 256, 8  # of vectors.cu
_HELD = 3 << 10
"""Counts of a document that fit in shared memory."""
_HOT = 1 << 12
"""Number of first terminals that each block counts in shared memory for a long document."""
_ENTRY_BYTES = 8


def list_vectors(
    rules: Rules, tables: Tables, root_offsets: Any, roots: Any, rank: Any, top: int, scratch: int, by_count: bool
) -> tuple[Any, Any, Any] | None:
    """Count each document's terminals from cached tables.

    Parameters
    ----------
    rules
        Rules on the device.
    tables
        Cached tables of the rules.
    root_offsets, roots
        cupy int64, documents + 1, and uint32: the documents' symbols; neither is empty.
    rank
        cupy uint32 by terminal: rank; None for the order of terminals.
    top
        Maximum number of terminals per document.
    scratch
        Bytes of device memory available in addition to the result.
    by_count
        Whether a document's terminals are sorted by count; otherwise by rank.

    Returns
    -------
    (cupy int64[documents + 1], cupy uint32, cupy uint64), or None
        Offsets of each document's terminals; terminals, in a document by descending count, then rank, or by rank alone;
        their counts. None if the bitmaps do not fit in shared memory or would be mostly zeros, counts could exceed 32
        bits, or the scratch memory is too small.

    """
    documents, terminals = len(root_offsets) - 1, rules.terminals
    row_words = -(-terminals // 32)
    shared = 8 * row_words + 4 * _HELD
    if documents * terminals > MAX_BITS or shared > offered_shared() or tables.counts.dtype != np.uint32:
        return None
    scratch -= scratch_of(rules, documents) + 16 * documents + (0 if rank is None else 4 * terminals)
    if scratch <= 0:
        return None
    row_bytes = 8 * row_words
    with device_errors(f"counting the words of {documents:,} documents"):
        import cupy

        marked = mark_documents(rules, tables, root_offsets, roots, rank, row_words, scratch // 5 // row_bytes, 0)
        most_entries = min((scratch - row_bytes * marked.most_rows) // _ENTRY_BYTES, documents * terminals)
        if most_entries <= 0:
            return None
        report = marked.report
        positions, counts = cupy.empty((2, most_entries), np.uint32)
        entry_starts, entry_sizes = cupy.empty(documents, np.uint64), cupy.empty(documents, np.uint32)
        counted = (terminals, *table_terminals(tables), tables.counts)
        entries = (positions, counts, most_entries, entry_starts, entry_sizes, report)
        if marked.most_rows:
            row_ranks = cupy.empty(marked.most_rows * row_words, np.uint32)
            launch_resident(
                *("vectors", "rank_long_documents", documents, _COUNT_THREADS, root_offsets, documents, tables.most),
                *(marked.rows, marked.listed, row_words, marked.row_bits, row_ranks, *entries),
            )
            held = min(_HOT, terminals)
            launch_resident(
                *("vectors", "count_long_documents", marked.pieces, _COUNT_THREADS, *counted, rank, held),
                *(row_ranks, counts, entry_starts, *marked.long_given),
                shared=4 * held,
            )
        launch_resident(
            *("vectors", "count_marked_documents", documents, _COUNT_THREADS, *counted, tables.most, rank),
            *(root_offsets, roots, documents, marked.rows, marked.listed, row_words, _HELD, *entries),
            shared=shared,
        )
        equal = (marked.places, marked.symbol_starts, marked.members)
        given = (root_offsets, roots, documents)
        sizes = cupy.empty(documents, np.uint32)
        launch_each("vectors", "size_marked_documents", documents, *given, top, *equal, entry_sizes, sizes, report)
        offsets = exclusive_scan(sizes)
        by_rank = words_by_rank(rank)
        told = report.get()  # synchronize!
        total = int(told[:2].view(np.uint64)[0])
        failed, members, large, small = (int(number) for number in told[4 : REPORT_WORDS - 2])
        if failed:
            return None
        result = cupy.empty(total, np.uint32), cupy.empty(total, np.uint64)
        if total and not by_count:
            launch_each(
                *("vectors", "gather_entries", documents + total, *given, *equal, positions, counts, entry_starts),
                *(offsets, total, by_rank, *result),
                each=_ITEMS,
            )
        elif total:
            launch(
                *("vectors", "order_marked_documents", large + small, _THREADS, documents, marked.listed, report),
                *(positions, counts, entry_starts, entry_sizes, offsets, by_rank, *result),
            )
            if members > large + small:
                copied = (*given, *equal, offsets, total, *result)
                launch_each("vectors", "copy_equal_documents", total, *copied, each=_ITEMS)
        return offsets, *result
