"""Lists the documents that contain each terminal, on the device, with bitmaps instead of a sort.

A block marks a document's terminals in a bitmap in shared memory, so nothing is counted. Documents are appended to
their terminals' lists unsorted; a bitmap of documents sorts each list. Equal documents of one symbol are marked once.
The host waits once, for the size of the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.documents.marked_documents_cuda import (
    MAX_BITS,
    mark_documents,
    offered_shared,
    scratch_of,
    table_terminals,
)
from polars_tadoc.kernels.primitives.primitives_cuda import exclusive_scan
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.traverse.tables_cuda import Tables, device_levels
from polars_tadoc.runtime.device import device_errors, launch, launch_each, launch_resident

_THREADS, _ORDER_THREADS, _CHUNK = 256, 128, 32  # of postings.cu


def list_documents(
    rules: Rules, tables: Tables | None, root_offsets: Any, roots: Any, scratch: int
) -> tuple[Any, Any] | None:
    """List the documents that contain each terminal.

    Parameters
    ----------
    rules
        Rules on the device.
    tables
        Tables of the rules, for bottom-up; None: top-down.
    root_offsets, roots
        cupy int64, documents + 1, and uint32: the documents' symbols; neither is empty.
    scratch
        Bytes of device memory available in addition to the result.

    Returns
    -------
    (cupy int64[terminals + 1], cupy uint32), or None
        Offsets of each terminal's documents, and the documents, ascending. None if the bitmaps do not fit in shared
        memory or would be mostly zeros, or the scratch memory is too small.

    """
    documents, terminals = len(root_offsets) - 1, rules.terminals
    row_words = -(-(terminals + (rules.rule_count if tables is None else 0)) // 32)
    document_words = -(-documents // 32)
    if documents * terminals > MAX_BITS or 4 * max(row_words, document_words) > offered_shared():
        return None
    scratch -= scratch_of(rules, documents) + 4 * terminals
    if scratch <= 0:
        return None
    row_bytes = 4 * row_words
    with device_errors(f"listing the documents of {terminals:,} words"):
        import cupy

        marked = mark_documents(
            rules, tables, root_offsets, roots, None, row_words, scratch // 4 // row_bytes, terminals
        )
        most_chunks = (scratch - row_bytes * marked.most_rows) // (4 * (_CHUNK + 1))
        most_chunks = min(most_chunks, documents * (-(-terminals // _CHUNK)))
        if most_chunks <= 0:
            return None
        sizes, report = marked.zeros[:terminals], marked.report
        pairs, owners = cupy.empty((most_chunks, _CHUNK), np.uint32), cupy.empty(most_chunks, np.uint32)
        defines = (f"-DTOP_DOWN={int(tables is None)}",)
        launch_resident(
            *("postings", "list_terminals", documents, _THREADS, terminals, rules.rule_offsets, rules.symbols),
            *(device_levels(rules), len(rules.level_offsets) - 1, *table_terminals(tables), root_offsets, roots),
            *(documents, marked.class_sizes, marked.places, marked.symbol_starts, marked.members, marked.rows),
            *(marked.listed, row_words, marked.row_bits, most_chunks, pairs, owners, sizes, report),
            defines=defines,
            shared=row_bytes,
        )
        offsets = exclusive_scan(sizes)
        told = report[:4].view(np.uint64)
        total, chunks = (int(number) for number in told.get())  # synchronize!
        if chunks > most_chunks:
            return None
        postings = cupy.empty(total, np.uint32)
        if total:
            launch_each(
                *("postings", "scatter_documents", 32 * chunks, pairs, owners, chunks, root_offsets, roots),
                *(marked.class_sizes, marked.class_starts, marked.members, offsets, sizes, postings),
                defines=defines,
            )
            launch(
                *("postings", "order_documents", -(-terminals // (_ORDER_THREADS // 32)), _ORDER_THREADS),
                *(offsets, terminals, document_words, postings),
                defines=defines,
                shared=4 * document_words,
            )
        return offsets, postings
