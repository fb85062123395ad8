"""Counts terms of documents without rules on the device: sorts each one's words, and counts runs of equal ones.

Data-parallel steps as in Wakatsuki et al.: lengths, sort by document and word, counts by runs. Documents are already in
order, so only each document's own words are sorted: up to 32 words in a warp's registers, more in a block's shared
memory, and documents too large for it all together by a radix sort of as many bits as words and documents need. 32.0
million words of 43,160 documents take 2.1 ms in this way and 3.3 ms by the radix sort alone (H200, ``python -m
benchmarks.gpu_text_weights vocabulary.parquet``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.documents.marked_documents_cuda import offered_shared
from polars_tadoc.kernels.keys.keys_cuda import words_by_rank
from polars_tadoc.kernels.primitives.primitives_cuda import exclusive_scan, radix_sort
from polars_tadoc.runtime.device import device_errors, launch, launch_each

_SHORT = 32  # maximum words of a document that a warp sorts
LIMITS = (1 << 9, 1 << 11, 1 << 13, 1 << 15)
"""Maximum words of a document sorted in shared memory, and the threads for each limit."""
_THREADS = (64, 256, 512, 1024)
_ITEMS = 8  # places of a thread of text_terms.cu


def terms_of_text(terminals: int, root_offsets: Any, roots: Any, rank: Any = None) -> tuple[Any, Any, Any]:
    """Count each document's terminals, by rank (see :func:`~polars_tadoc.kernels.traverse.analytics_reference`).

    Parameters
    ----------
    terminals
        Number of terminals.
    root_offsets, roots
        cupy int64, documents + 1, and uint32: the documents' terminals, fewer than 2^32 per document.
    rank
        cupy uint32 by terminal, or None if they are numbered by rank.

    Returns
    -------
    (cupy int64, cupy uint32, cupy uint64)
        Offsets of each document's terms, documents + 1; terminals and their counts.

    Raises
    ------
    EngineUnavailableError
        The device is out of memory or failed; too many words in documents beyond the last limit.

    """
    with device_errors(f"counting {len(roots):,} words by document"):
        import cupy

        documents = len(root_offsets) - 1
        words, begins = cupy.empty((2, len(roots)), np.uint32)
        found = cupy.zeros(documents, np.uint32)
        written = (words, begins, found)
        limits = [limit if 4 * limit <= offered_shared() else 0 for limit in LIMITS]
        lists, sizes = _class_documents(root_offsets, documents, limits)
        given = (root_offsets, roots, rank)
        launch_each("text_terms", "count_short", 32 * sizes[0], *given, lists[0], sizes[0], *written)
        for limit, threads, listed, size in zip(limits, _THREADS, lists[1:], sizes[1:], strict=False):
            if size:
                shared = 4 * max(limit, 2 * threads)
                launch("text_terms", "count_in_block", size, threads, *given, listed, *written, shared=shared)
        if sizes[-1]:
            _count_sorted(terminals, given, lists[-1][: sizes[-1]], written)
        offsets = exclusive_scan(found)
        total = int(offsets[-1])  # synchronize!
        chosen, counts = cupy.empty(total, np.uint32), cupy.empty(total, np.uint64)
        launch_each(
            *("text_terms", "gather_runs", total, root_offsets, offsets, documents, total, words, begins),
            *(words_by_rank(rank), chosen, counts),
            each=_ITEMS,
        )
        return offsets, chosen, counts


def _class_documents(offsets: Any, documents: int, limits: list[int]) -> tuple[Any, list[int]]:
    """List documents by sorting method; a limit of 0 excludes all documents."""
    import cupy

    for i in range(1, len(limits)):
        limits[i] = limits[i] or limits[i - 1]
    lists, sizes = cupy.empty((len(limits) + 2, documents), np.uint32), cupy.zeros(len(limits) + 2, np.uint32)
    launch_each(
        *("text_terms", "class_documents", documents, offsets, documents),
        *(max(limit, _SHORT) for limit in limits),
        *(lists, sizes),
    )
    return lists, [int(size) for size in sizes.get()]  # synchronize!


def _count_sorted(terminals: int, given: tuple[Any, ...], listed: Any, written: tuple[Any, ...]) -> None:
    """Count documents together by a radix sort."""
    import cupy

    offsets, count = given[0], len(listed)
    sizes = cupy.empty(len(listed), np.uint64)
    launch_each("text_terms", "size_listed", len(listed), offsets, listed, count, sizes)
    listed_offsets = exclusive_scan(sizes)
    total = int(listed_offsets[-1])  # synchronize!
    word_bits = (terminals - 1).bit_length()
    bits = word_bits + (len(listed) - 1).bit_length()
    narrow = bits <= 32
    defines = (f"-DKEY={'u32' if narrow else 'u64'}",)
    keys = cupy.empty(total, np.uint32 if narrow else np.uint64)
    among = (listed, count, listed_offsets, total, word_bits)
    launch_each("text_terms", "gather_keys", total, *given, *among, keys, each=_ITEMS, defines=defines)
    keys = radix_sort(keys, None, bits, overwrite=True)
    heads = cupy.empty(total, np.uint8)
    launch_each("text_terms", "mark_heads", total, keys, total, heads, defines=defines)
    runs = (offsets, *among, keys, exclusive_scan(heads), *written)
    launch_each("text_terms", "write_runs", total, *runs, each=_ITEMS, defines=defines)
