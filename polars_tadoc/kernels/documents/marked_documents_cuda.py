"""Lists documents by class on the device, so that each one's terminals can be marked in a bitmap.

Equal documents of one symbol are a class, and one document is marked for all; long documents are marked by many
blocks, each in a row of global memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.traverse.tables_cuda import Tables
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.device import device_attribute, launch, launch_resident

MAX_BITS = 1 << 34
"""Maximum documents times terminals for which bitmaps pay: larger ones are mostly zeros, which must be cleared and
read."""

REPORT_WORDS = 10
"""Words of the kernels' report: total, written, failed; the rest is internal."""

_THREADS, _LONG_THREADS = 256, 512  # of marked_documents.cu
_STATIC_SHARED = 2 << 10  # maximum static bytes of a block in addition to its bitmap
_LARGE = 512
"""Minimum roots, or terminals of one root, of a document that is processed before smaller ones."""
_LONG = 1 << 12
"""Minimum roots of a document that many blocks mark together, and roots per block at a time."""


def offered_shared() -> int:
    """Return the bytes of shared memory per block for bitmaps and counts."""
    return device_attribute("MaxSharedMemoryPerBlockOptin") - _STATIC_SHARED


@array_dataclass
class MarkedDocuments:
    """Classes of documents, and the rows of long ones with their terminals (top-down, their roots) marked."""

    report: Any
    """cupy uint32[REPORT_WORDS]."""
    class_sizes: Any
    """cupy uint32 by symbol: number of documents that consist of this symbol alone."""
    zeros: Any
    """cupy uint32: the requested number of zeros."""
    places: Any
    """cupy uint32 by document: its rank in its class."""
    class_starts: Any
    """cupy uint32 by listed document: start of its class's room."""
    symbol_starts: Any
    """cupy uint32 by symbol with a class: start of its room."""
    members: Any
    """cupy uint32: classes' documents; only the first of each class is filled in."""
    rows: Any
    """cupy uint32 by listed document: its row, or 2^32 - 1."""
    listed: Any
    """cupy uint32[documents]: large ones from the front, small ones from the back."""
    most_rows: int
    row_words: int
    row_bits: Any
    """cupy uint32."""
    pieces: int
    """Roots per piece of all roots."""
    long_given: tuple[Any, ...]
    """Arguments of a kernel over the roots of long documents."""


def mark_documents(
    rules: Rules,
    tables: Tables | None,
    root_offsets: Any,
    roots: Any,
    rank: Any,
    row_words: int,
    most_rows: int,
    zeros: int,
) -> MarkedDocuments:
    """List the documents by class and mark the roots of long ones.

    Parameters
    ----------
    rules
        Rules on the device.
    tables
        Tables of the rules, whose terminals are marked; None marks symbols.
    root_offsets, roots
        cupy int64, documents + 1, and uint32: the documents' symbols; neither is empty.
    rank
        cupy uint32: position of a terminal's bit; None for its own number.
    row_words
        32-bit words of a bitmap.
    most_rows
        Maximum number of long documents with a row; the others are treated as short ones.
    zeros
        Number of additional zeros for the caller.

    Returns
    -------
    MarkedDocuments
        The result.

    """
    import cupy

    documents, symbols = len(root_offsets) - 1, rules.terminals + rules.rule_count
    most_rows = max(0, min(len(roots) // _LONG, most_rows))
    all_zeros = cupy.zeros(REPORT_WORDS + symbols + zeros + most_rows * row_words, np.uint32)
    report, class_sizes = all_zeros[:REPORT_WORDS], all_zeros[REPORT_WORDS:]
    row_bits = class_sizes[symbols + zeros :]
    places, class_starts, members, rows, listed = cupy.empty((5, documents), np.uint32)
    symbol_starts = cupy.empty(symbols, np.uint32)
    defines = (f"-DTOP_DOWN={int(tables is None)}",)
    blocks = -(-documents // _THREADS)
    given = (root_offsets, roots, documents)
    launch("marked_documents", "join_equal", blocks, _THREADS, *given, class_sizes, places, defines=defines)
    launch(
        *("marked_documents", "list_classes", blocks, _THREADS, rules.terminals),
        *(None if tables is None else tables.sizes, *given, _LARGE, _LONG, most_rows, class_sizes, places),
        *(class_starts, symbol_starts, members, rows, listed, report),
        defines=defines,
    )
    long_given = (*(root_offsets, roots, len(roots), documents, _LONG, rows), *(row_words, row_bits, report))
    pieces = -(-len(roots) // _LONG)
    if most_rows:
        launch_resident(
            *("marked_documents", "mark_long_documents", pieces, _LONG_THREADS, rules.terminals),
            *(*table_terminals(tables), rank, *long_given),
            defines=defines,
            shared=4 * row_words,
        )
    return MarkedDocuments(
        *(report, class_sizes, class_sizes[symbols:], places, class_starts, symbol_starts, members, rows, listed),
        *(most_rows, row_words, row_bits, pieces, long_given),
    )


def table_terminals(tables: Tables | None) -> tuple[Any, Any, Any]:
    """Return tables as arguments of kernels that do not count."""
    return (None, None, None) if tables is None else (tables.starts, tables.sizes, tables.terminals)


def scratch_of(rules: Rules, documents: int) -> int:
    """Return the bytes of device memory for classes of this many documents, without rows."""
    return 4 * (2 * (rules.terminals + rules.rule_count) + 5 * documents)
