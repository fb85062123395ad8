"""Counts terminals by document and by terminal on the device.

If bitmaps suffice, :mod:`~polars_tadoc.kernels.documents.postings_cuda` lists the documents of terminals and
:mod:`~polars_tadoc.kernels.documents.vectors_cuda` the terminals of documents. Everything else is counted into keys for
a radix sort (:mod:`~polars_tadoc.kernels.documents.document_keys_cuda`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from polars_tadoc.kernels.documents.document_keys_cuda import Counted, Slice, Work, scratch_bytes
from polars_tadoc.kernels.documents.postings_cuda import list_documents
from polars_tadoc.kernels.documents.text_terms_cuda import terms_of_text
from polars_tadoc.kernels.documents.vectors_cuda import list_vectors
from polars_tadoc.kernels.keys.keys_cuda import words_by_rank
from polars_tadoc.kernels.primitives.primitives_cuda import exclusive_scan, radix_sort
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.traverse.tables_cuda import Tables, resident_tables
from polars_tadoc.kernels.traverse.tables_cuda import rule_weights as rule_weights
from polars_tadoc.kernels.traverse.tables_cuda import terminal_counts as terminal_counts
from polars_tadoc.runtime.device import device_errors, launch_each

_ITEMS = 8  # per thread of arrange.cu
_MOST = (1 << 32) - 1  # maximum of 32 bits


def count_by_document(
    rules: Rules,
    root_offsets: Any,
    roots: Any,
    strategy: str,
    rank: Any = None,
    min_count: int = 1,
    top: int | None = None,
) -> tuple[Any, Any, Any]:
    """Count each document's terminals (term vector, G-TADOC, ICDE 2021).

    Parameters and result as for :func:`polars_tadoc.kernels.traverse.results_cpu.count_by_document`, as cupy arrays.
    """
    return _list_by_document(rules, root_offsets, roots, strategy, rank, max(min_count, 1), top)


def terms_by_document(
    rules: Rules, root_offsets: Any, roots: Any, strategy: str, rank: Any = None
) -> tuple[Any, Any, Any]:
    """List each document's terminals in their order, with counts.

    With cached tables of rules, terminals are listed in order; otherwise they are counted into keys for a radix sort.
    Text without rules is counted by :func:`~polars_tadoc.kernels.documents.text_terms_cuda.terms_of_text`.

    Parameters and result as for :func:`polars_tadoc.kernels.traverse.results_cpu.terms_by_document`, as cupy arrays.
    """
    if rules.rule_count == 0:
        return terms_of_text(rules.terminals, root_offsets, roots, rank)
    return _list_by_document(rules, root_offsets, roots, strategy, rank, by_count=False)


def count_by_terminal(
    rules: Rules, root_offsets: Any, roots: Any, strategy: str, counted: bool
) -> tuple[Any, Any, Any]:
    """List the documents that contain each terminal (inverted index, G-TADOC, ICDE 2021).

    Parameters and result as for :func:`polars_tadoc.kernels.traverse.results_cpu.count_by_terminal`, as cupy arrays.
    """
    with device_errors(f"indexing the words of {len(root_offsets) - 1:,} documents"):
        import cupy

        if not len(roots) or not rules.terminals:
            nothing = cupy.empty(0, np.uint64) if counted else None
            return cupy.zeros(rules.terminals + 1, np.int64), cupy.empty(0, np.uint32), nothing
        tables = _tables(rules, strategy)
        if not counted:
            scratch = scratch_bytes(rules, roots, tables)
            held = 0 if tables is None or tables.resident else scratch // 2
            listed = list_documents(rules, tables, root_offsets, roots, scratch - held)
            if listed is not None:
                return *listed, None
        work = Work(rules, tables, root_offsets, roots)
        layout = work.layout("terminal", counted=counted)
        defines, terminals, shift = layout.defines, rules.terminals, layout.terminal_shift

        def gather(part: Counted, piece: Slice) -> tuple[Any, Any]:
            keys = cupy.empty(piece.total, layout.key_type)
            key_counts = None if part.counts is None else cupy.empty(piece.total, np.uint64)
            launch_each(
                *("arrange", "gather_documents", piece.total, part.keys, part.counts),
                *(part.offsets[piece.first - part.first :], part.starts, part.representatives, piece.first),
                *(piece.stop - piece.first, piece.before, piece.total, layout.document_shift, shift, keys, key_counts),
                each=_ITEMS,
                defines=defines,
            )
            return keys, key_counts

        def write(keys: Any, key_counts: Any, places: Any, documents: Any, counts: Any) -> Any:
            if key_counts is None:
                keys = radix_sort(keys, None, layout.terminal_bits, shift, overwrite=True)
            else:
                keys, key_counts = radix_sort(keys, key_counts, layout.terminal_bits, shift, True)
            offsets, size = cupy.empty(terminals + 1, np.int64), len(keys)
            found = (keys, size, shift, terminals, offsets)
            launch_each("arrange", "find_terminals", terminals + 1, *found, defines=defines)
            launch_each(
                *("arrange", "write_by_terminal", size, keys, key_counts, size, shift, layout.document_shift),
                *((1 << layout.count_bits) - 1, offsets, places, documents, counts),
                defines=defines,
            )
            return offsets

        whole = work.count(0, work.documents, layout, None, 1, _MOST)
        total = whole.total
        if whole.fits and whole.sorts_at_once:
            keys, key_counts = gather(whole, Slice(0, work.documents, 0, total))
            whole.release()
            documents, counts = _postings(total, counted)
            return write(keys, key_counts, None, documents, counts), documents, counts

        batches = [] if whole.fits else whole.batches()

        def slices() -> Iterator[tuple[Counted, Slice]]:
            if whole.fits:
                yield from ((whole, piece) for piece in whole.slices())
                return
            for first, stop in batches:
                part = work.count(first, stop, layout, None, 1, _MOST, batch=True)
                yield from ((part, piece) for piece in part.slices())

        sizes = cupy.zeros(terminals, np.uint64)
        for part, piece in slices():
            keys, _ = gather(part, piece)
            launch_each("arrange", "count_terminals", len(keys), keys, len(keys), shift, sizes, defines=defines)
            del keys
        offsets = exclusive_scan(sizes)
        places = offsets.copy()
        documents, counts = _postings(total, counted)
        for part, piece in slices():
            here = write(*gather(part, piece), places, documents, counts)
            launch_each("arrange", "advance_places", terminals, here, terminals, places, defines=defines)
        return offsets, documents, counts


def _list_by_document(
    rules: Rules,
    root_offsets: Any,
    roots: Any,
    strategy: str,
    rank: Any,
    least: int = 1,
    top: int | None = None,
    by_count: bool = True,
) -> tuple[Any, Any, Any]:
    """List each document's terminals by descending count, then rank, or by rank alone."""
    with device_errors(f"counting the words of {len(root_offsets) - 1:,} documents"):
        import cupy

        if least >= 1 << 64 or (top is not None and top <= 0) or not len(roots) or not rules.terminals:
            return cupy.zeros(len(root_offsets), np.int64), cupy.empty(0, np.uint32), cupy.empty(0, np.uint64)
        most = min(_MOST if top is None else top, _MOST)
        tables = _tables(rules, strategy)
        if tables is not None and tables.resident and least == 1:
            scratch = scratch_bytes(rules, roots, tables)
            listed = list_vectors(rules, tables, root_offsets, roots, rank, most, scratch, by_count)
            if listed is not None:
                return listed
        work = Work(rules, tables, root_offsets, roots)
        layout = work.layout("document" if by_count else "rank")
        by_rank = words_by_rank(rank)

        def write(counted: Counted, terminals: Any, counts: Any) -> None:
            keys, key_counts = counted.keys, counted.counts
            own_offsets = exclusive_scan(counted.own_sizes)
            if not by_count:
                bits, first_bit = layout.terminal_bits + layout.document_bits, layout.terminal_shift
                keys = radix_sort(keys, key_counts, bits, first_bit, overwrite=True)
                keys, key_counts = (keys, None) if key_counts is None else keys
            elif key_counts is None:
                keys = radix_sort(keys, bits=layout.bits, overwrite=True)
            else:  # by rank, then count, then document
                keys, key_counts = radix_sort(keys, key_counts, layout.document_shift, overwrite=True)
                falling, keys = radix_sort(~key_counts, keys, overwrite=True)
                keys, key_counts = radix_sort(keys, ~falling, layout.document_bits, layout.document_shift, True)
            launch_each(
                *("arrange", "write_by_document", counted.total, keys, key_counts, counted.offsets, own_offsets),
                *(counted.representatives, counted.first, counted.stop - counted.first, 0, counted.total),
                *(layout.terminal_shift, (1 << layout.terminal_bits) - 1, min(layout.count_shift, 63)),
                *((1 << layout.count_bits) - 1, layout.count_flip, by_rank, terminals, counts),
                each=_ITEMS,
            )

        whole = work.count(0, work.documents, layout, rank, least, most)
        terminals, counts = cupy.empty(whole.total, np.uint32), cupy.empty(whole.total, np.uint64)
        if whole.fits:
            write(whole, terminals, counts)
        else:
            before_documents = whole.offsets.get()  # synchronize!
            for first, stop in whole.batches():
                part = work.count(first, stop, layout, rank, least, most, batch=True)
                before = int(before_documents[first])
                write(part, terminals[before:], counts[before:])
        return whole.offsets, terminals, counts


def _tables(rules: Rules, strategy: str) -> Tables | None:
    """Return the tables for bottom-up traversal; None top-down."""
    return None if strategy == "top_down" else resident_tables(rules)


def _postings(total: int, counted: bool) -> tuple[Any, Any]:
    """Allocate the documents of all terminals, and their counts if requested."""
    import cupy

    return cupy.empty(total, np.uint32), cupy.empty(total, np.uint64) if counted else None
