"""Weights of the terms of documents on the device: BM25, TF-IDF, and the top terms of each document.

Every pass distributes postings evenly over the device's threads, however long documents are (``weights.cu``,
``top_weights.cu``); only sizes are copied to the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.primitives.primitives_cuda import exclusive_scan, segmented_sum
from polars_tadoc.runtime.device import device_attribute, device_errors, launch, launch_each

TILE = 2048
"""Documents' ends and postings per block (balanced_postings.cuh)."""
PIECE = 512
"""Postings of a document that a block sorts together (top_weights.cu)."""
FAN = 32
"""Pieces of a document merged at a time."""
_SIZES = (f"-DTILE={TILE}u", f"-DPIECE={PIECE}u", f"-DFAN={FAN}u")

_THREADS, _COUNT_THREADS = 256, 1024  # of balanced_postings.cuh and top_weights.cu; of count_frequencies
_MIN_SHARE, _MAX_SHARE = 1 << 13, 1 << 16
"""Postings per block that counts documents: with more, late terminals find its table full."""
_WINDOW = TILE - PIECE
"""Positions whose pieces a block sorts."""


def document_frequencies(terminals: Any, size: int) -> Any:
    """Count the documents that contain each terminal.

    Parameters and result as for :func:`polars_tadoc.kernels.weights.weights_cpu.document_frequencies`, as cupy arrays.
    """
    with device_errors(f"counting the documents of {size:,} words"):
        import cupy

        frequencies = cupy.zeros(size, np.uint64)
        postings = len(terminals)
        if postings:
            share = -(-postings // (2 * device_attribute("MultiProcessorCount")))
            share = min(max(share, _MIN_SHARE), _MAX_SHARE)
            given = (terminals, postings, share, frequencies)
            launch("weights", "count_frequencies", -(-postings // share), _COUNT_THREADS, *given)
        return frequencies


def document_lengths(offsets: Any, counts: Any) -> Any:
    """Sum the counts of each document, cupy uint64; see :func:`segmented_sum`."""
    return segmented_sum(counts, offsets)


def weigh_bm25(offsets: Any, terminals: Any, counts: Any, weights: Any, norms: Any, bases: Any = None) -> Any:
    """Weigh terms by ``weight * (count / (count + norm)) + base``, rounded after every operation.

    Parameters and result as for :func:`polars_tadoc.kernels.weights.weights_cpu.weigh_bm25`, as cupy arrays.
    """
    with device_errors(f"weighing the words of {len(offsets) - 1:,} documents"):
        import cupy

        weighed = cupy.empty(len(terminals), np.float64)
        _balanced("weigh_bm25", offsets, terminals, counts, weights, norms, bases, weighed)
        return weighed


def weigh_tfidf(offsets: Any, terminals: Any, counts: Any, idf: Any, sublinear: bool, norm: str | None) -> Any:
    """Weigh terms by their count times ``idf``, with documents scaled to norm 1.

    The order of additions depends on the documents' lengths only: equal calls return equal bits. Parameters as for
    :func:`polars_tadoc.kernels.weights.weights_cpu.weigh_tfidf`, as cupy arrays; the result is cupy float64 by posting.
    """
    with device_errors(f"weighing the words of {len(offsets) - 1:,} documents"):
        import cupy

        documents = len(offsets) - 1
        weighed = cupy.empty(len(terminals), np.float64)
        given = (idf, sublinear)
        sums = None
        if norm is not None and len(terminals):
            sums = cupy.empty(documents, np.float64)
            heads, tails = cupy.empty((2, _tiles(offsets, terminals)), np.float64)
            squares = norm == "l2"
            _balanced("sum_weights", offsets, terminals, counts, *given, squares, sums, heads, tails)
            launch_each("weights", "find_norms", documents, offsets, documents, heads, tails, squares, sums)
        _balanced("weigh_tfidf", offsets, terminals, counts, *given, sums, weighed)
        return weighed


def top_weights(offsets: Any, terminals: Any, weights: Any, rank: Any, top: int) -> tuple[Any, Any, Any]:
    """Keep each document's terms of highest weight.

    Sorts pieces of documents in shared memory (Green, McColl and Bader, GPU Merge Path, ICS 2012) and keeps the top of
    each; then merges the pieces of a document until one is left.

    Parameters and result as for :func:`polars_tadoc.kernels.weights.weights_cpu.top_weights`, as cupy arrays.
    """
    with device_errors(f"ordering the words of {len(offsets) - 1:,} documents by weight"):
        import cupy

        postings = len(terminals)
        if top <= 0 or not postings:
            return cupy.zeros(len(offsets), np.int64), cupy.empty(0, np.uint32), cupy.empty(0, np.float64)
        most = min(top, postings)
        kept, report = _size_pieces(offsets, PIECE, most)
        total, last_total, longest = (int(number) for number in report.get())  # synchronize!
        result = cupy.empty(total, np.uint32), cupy.empty(total, np.float64)
        given = (offsets, len(offsets) - 1, postings, terminals, weights, rank, most, kept)
        _launch_top("sort_pieces", -(-postings // _WINDOW), *given, *result)
        piece = PIECE
        while longest > piece:
            longest = longest // piece * min(piece, most) + min(longest % piece, most)
            length, piece = min(piece, most), FAN * min(piece, most)
            merged, report = _size_pieces(kept, piece, most)
            total = last_total if longest <= piece else int(report[:1].get()[0])  # synchronize!
            target = cupy.empty(total, np.uint32), cupy.empty(total, np.float64)
            size = len(result[0])
            pieces = (kept, len(kept) - 1, size, *result, rank, length, most, merged)
            _launch_top("merge_pieces", -(-size // _THREADS), *pieces, *target)
            kept, result = merged, target
        return kept, *result


def _size_pieces(offsets: Any, piece: int, most: int) -> tuple[Any, Any]:
    """Return the start of each document's remaining postings, and the report of size_pieces."""
    import cupy

    documents = len(offsets) - 1
    sizes, report = cupy.empty(documents, np.uint64), cupy.zeros(3, np.uint64)
    _launch_top("size_pieces", -(-documents // _THREADS), offsets, documents, piece, most, sizes, report)
    return exclusive_scan(sizes), report


def _launch_top(kernel: str, blocks: int, *arguments: Any) -> None:
    launch("top_weights", kernel, blocks, _THREADS, *arguments, defines=_SIZES)


def _tiles(offsets: Any, terminals: Any) -> int:
    """Return the number of blocks for a pass over documents and postings."""
    return -(-(len(offsets) - 1 + len(terminals)) // TILE)


def _balanced(kernel: str, offsets: Any, terminals: Any, *arguments: Any) -> None:
    """Launch a pass over documents and postings unless there are no postings."""
    if len(terminals):
        given = (offsets, len(offsets) - 1, len(terminals), terminals)
        launch("weights", kernel, _tiles(offsets, terminals), _THREADS, *given, *arguments)
