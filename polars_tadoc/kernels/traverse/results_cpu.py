"""Results by document and by terminal: threads count chunks of documents, then the results are put in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.documents import documents_cpu as _documents
from polars_tadoc.kernels.documents.classes_cpu import Classes, classes_of
from polars_tadoc.kernels.documents.order_cpu import COUNTERS, FEW, order_documents, rank_documents
from polars_tadoc.kernels.documents.postings_cpu import (
    copy_documents,
    count_postings,
    measure_ranges,
    offset_documents,
    offset_terminals,
    order_postings,
    rank_ranges,
    scatter_postings,
    spread_postings,
    tally_ranges,
)
from polars_tadoc.kernels.documents.text_terms_cpu import terms_of_text
from polars_tadoc.kernels.keys.posting_order_cpu import rank_postings
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.traverse import counts_cpu as _counts
from polars_tadoc.kernels.traverse.kept_tables_cpu import load_tables
from polars_tadoc.kernels.traverse.rules import GrammarArrays, Rules
from polars_tadoc.kernels.traverse.tables_cpu import LANES, add_tables, count_type
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks
from polars_tadoc.runtime.scratch import scratch

ARENA = 1 << 20
"""Terminals per arena; unwritten pages take no memory."""

CHUNKS = 4
"""Chunks of documents per thread: several, to balance uneven documents."""

SMALL = 1 << 12
"""Up to this many symbols and documents, one thread is faster than starting two."""

_rules: WeakKeyDictionary[GrammarArrays, Rules] = WeakKeyDictionary()
"""Rules of the grammars in use."""

LONG = 8
"""Documents with this many times fewer top-level symbols than there are symbols, or with more, are counted without
recording which symbols they contain."""

NUMBERED = 1 << 20
"""Up to this many symbols, documents are numbered in one byte: clearing every 255 documents is cheap."""

MANY = 1 << 18
"""From this many terminals on, postings are first distributed over ranges of terminals, each of which fits a core's
cache."""

LISTS = 1 << 13
"""Terminals, at least, whose postings a thread places."""

RANGE_BITS = 11
"""Bits of the number of ranges: as many write streams as the processor can track."""

Run = Callable[..., tuple[int, int]]
"""Counts documents into an arena; see :func:`polars_tadoc.kernels.documents.documents_cpu.count_documents`."""


@array_dataclass
class _Stretches:
    """Positions of each class's terminals and counts in arenas, which are kept alive here."""

    sizes: Int64
    terminals: UInt64
    counts: UInt64
    arenas: list[Any]
    count_size: int

    @classmethod
    def empty(cls, classes: int, count_size: int) -> _Stretches:
        places = np.zeros((2, classes), np.uint64)
        return cls(np.zeros(classes, np.int64), places[0], places[1], [], count_size)


def load_rules(grammar: GrammarArrays) -> Rules:
    """Return a grammar's rules over its words, for traversals; cached."""
    rules = _rules.get(grammar)
    if rules is None:
        rules = _rules[grammar] = Rules.of(grammar)
    return rules


def rule_weights(rules: Rules, roots: UInt32) -> UInt64:
    """Count the occurrences of each terminal and rule: uint64, length terminals + rules.

    Like :func:`~polars_tadoc.kernels.traverse.counts_cpu.top_down_weights`, which returns the words' part.
    """
    weights = _counts.count_symbols(roots, rules.terminals + rules.rule_count)
    _counts.push_down(rules.terminals, rules.rule_offsets, rules.symbols, weights)
    return weights


def terminal_counts(rules: Rules, roots: UInt32, strategy: str) -> UInt64:
    """Count each terminal over all documents.

    ``roots`` are the top-level symbols of the rows. "top_down" propagates weights from the roots to the terminals,
    "bottom_up" merges the rules' tables (G-TADOC, ICDE 2021, algorithms 1 and 2).
    """
    if strategy == "top_down":
        return rule_weights(rules, roots)[: rules.terminals]
    weights = _counts.count_symbols(roots, rules.terminals + rules.rule_count)
    tables = load_tables(rules, roots, strategy)
    counts = np.zeros(rules.terminals, np.uint64)
    add_tables(rules.terminals, tables.starts, tables.terminals, tables.counts, weights, counts)
    return counts


def count_by_document(
    rules: Rules,
    root_offsets: Int64,
    roots: UInt32,
    strategy: str,
    rank: UInt32 | None,
    min_count: int = 1,
    top: int | None = None,
) -> tuple[Int64, UInt32, UInt64]:
    """Count each document's terminals.

    Parameters
    ----------
    rules
        The rules.
    root_offsets
        int64, documents + 1: offsets of each document's symbols in ``roots``.
    roots
        uint32: the concatenated top-level symbols of the documents.
    strategy
        "top_down" propagates each document's weights from its roots and reads each of its rules once. "bottom_up" makes
        each rule's table once and merges the tables of a document's symbols (G-TADOC, ICDE 2021, algorithms 1 and 2).
        Documents with the same symbols are counted once.
    rank
        uint32 by terminal: rank for ties; None for the order of terminals.
    min_count
        Terminals with a lower count in a document are dropped from it.
    top
        Maximum number of terminals per document.

    Returns
    -------
    (int64 array, uint32 array, uint64 array)
        Offsets by document, documents + 1; terminals and counts, within a document by descending count, then rank.

    """
    classes = classes_of(root_offsets, roots, rules.terminals + rules.rule_count)
    stretches = _count(rules, root_offsets, roots, classes, strategy, rank, min_count, top)
    return _by_document(stretches, classes)


def terms_by_document(
    rules: Rules, root_offsets: Int64, roots: UInt32, strategy: str, rank: UInt32 | None = None
) -> tuple[Int64, UInt32, UInt64]:
    """Count each document's distinct terminals, by rank.

    Parameters
    ----------
    rules, root_offsets, roots, strategy
        As for :func:`count_by_document`.
    rank
        uint32 by terminal: its rank; None for the order of terminals.

    Returns
    -------
    (int64 array, uint32 array, uint64 array)
        Offsets by document, documents + 1; terminals and counts, within a document by rank.

    """
    if rules.rule_count == 0:
        return terms_of_text(rules.terminals, root_offsets, roots, rank)
    classes = classes_of(root_offsets, roots, rules.terminals + rules.rule_count)
    return _by_document(_count(rules, root_offsets, roots, classes, strategy, rank, 1, None, order="rank"), classes)


def _by_document(stretches: _Stretches, classes: Classes) -> tuple[Int64, UInt32, UInt64]:
    offsets = np.empty(len(classes.of) + 1, np.int64)
    offset_documents(stretches.sizes, classes.of, offsets)
    _, terminals = allocate(int(offsets[-1]), np.uint32)  # used in results without a copy
    counts = np.empty(offsets[-1], np.uint64)

    found = (stretches.sizes, stretches.terminals, stretches.counts, stretches.count_size, classes.of, offsets)
    map_parallel(lambda chunk: copy_documents(*found, *chunk, terminals, counts), weighted_chunks(offsets))
    return offsets, terminals, counts


def count_by_terminal(
    rules: Rules, root_offsets: Int64, roots: UInt32, strategy: str, counted: bool
) -> tuple[Int64, UInt32, UInt64 | None]:
    """List the documents that contain each terminal.

    Parameters
    ----------
    rules, root_offsets, roots, strategy
        As for :func:`count_by_document`.
    counted
        Whether to return counts.

    Returns
    -------
    (int64 array, uint32 array, uint64 array or None)
        Offsets by terminal, terminals + 1; documents, ascending; counts.

    """
    classes = classes_of(root_offsets, roots, rules.terminals + rules.rule_count)
    if counted:
        stretches = _count(rules, root_offsets, roots, classes, strategy, None, 1, None, order=None)
    else:
        stretches = _list(rules, root_offsets, roots, classes, strategy)
    before = np.empty(len(root_offsets), np.int64)
    offset_documents(stretches.sizes, classes.of, before)
    return _by_terminal(stretches, classes, before, rules.terminals, counted)


def _by_terminal(
    stretches: _Stretches, classes: Classes, before: Int64, terminals: int, counted: bool
) -> tuple[Int64, UInt32, UInt64 | None]:
    """List the documents of each terminal; ``before`` is the number of terminals in the documents before each."""
    if terminals >= MANY and not (counted and stretches.count_size > 4):
        return _by_ranges(stretches, classes, before, terminals, counted)
    chunks = list(enumerate(weighted_chunks(before)))
    cursors = scratch((len(chunks), terminals), np.int64)
    where = (stretches.sizes, stretches.terminals, stretches.counts, stretches.count_size, classes.of)

    def size(item: tuple[int, tuple[int, int]]) -> None:
        cursors[item[0]] = 0
        count_postings(*where[:2], classes.of, *item[1], cursors[item[0]])

    map_parallel(size, chunks)
    ranges = even_chunks(terminals, LISTS)
    ends = running_sum(np.array(map_parallel(lambda own: cursors[:, slice(*own)].sum(), ranges), np.int64))
    offsets = np.empty(terminals + 1, np.int64)
    offsets[-1] = ends[-1]
    placed = list(zip(ranges, ends.tolist(), strict=False))
    map_parallel(lambda own: offset_terminals(cursors, *own[0], own[1], offsets), placed)
    documents = allocate(int(offsets[-1]), np.uint32)[1]  # frames and tables take them without a copy
    counts = allocate(int(offsets[-1]) if counted else 0, np.uint64)[1]

    def scatter(item: tuple[int, tuple[int, int]]) -> None:
        scatter_postings(*where, *item[1], cursors[item[0]], documents, counts)

    map_parallel(scatter, chunks)
    return offsets, documents, counts if counted else None


def rank_by_terminal(
    rules: Rules, root_offsets: Int64, roots: UInt32, strategy: str, min_count: int = 1, top: int | None = None
) -> tuple[UInt32 | Int64 | None, Int64, UInt32, UInt64]:
    """List the documents that contain each terminal, by descending count, then ascending.

    Parameters
    ----------
    rules, root_offsets, roots, strategy
        As for :func:`count_by_document`.
    min_count
        Terminals with a lower total count are dropped, as are terminals that no document contains.
    top
        Maximum number of documents per terminal.

    Returns
    -------
    (uint32 array, int64 array, or None, int64 array, uint32 array, uint64 array)
        The terminals, None for all; offsets by terminal; documents; counts.

    """
    classes = classes_of(root_offsets, roots, rules.terminals + rules.rule_count)
    stretches = _count(rules, root_offsets, roots, classes, strategy, None, 1, None, order=None)
    before = np.empty(len(root_offsets), np.int64)
    offset_documents(stretches.sizes, classes.of, before)
    if rules.terminals < MANY or stretches.count_size > 4:
        offsets, documents, counts = _by_terminal(stretches, classes, before, rules.terminals, True)
        assert counts is not None
        return rank_postings(offsets, documents, counts, min_count, top)
    ranges = _Ranges.of(stretches, classes, before, rules.terminals, True)
    given = ranges.postings, ranges.counts, ranges.bounds, ranges.shift, rules.terminals
    most = min(max(top, 0), int(before[-1])) if top is not None else int(before[-1])
    limits = min(max(min_count, 1), (1 << 63) - 1), most
    chunks = weighted_chunks(ranges.bounds)
    told = np.zeros((len(chunks), 2), np.int64)

    def measure(k: int) -> None:
        sizes, totals = np.empty(1 << ranges.shift, np.int64), np.empty(1 << ranges.shift, np.uint64)
        measure_ranges(*given, *chunks[k], *limits, sizes, totals, told[k])

    map_parallel(measure, range(len(chunks)))
    (lists, total), starts = told.sum(axis=0).tolist(), np.cumsum(told, axis=0) - told
    kept = np.empty(0 if lists == rules.terminals else lists, np.uint32)
    offsets = np.empty(lists + 1, np.int64)
    offsets[-1] = total
    made = allocate(total, np.uint32)[1], allocate(total, np.uint64)[1]  # frames and tables take them without a copy
    map_parallel(
        lambda k: rank_ranges(*given, *chunks[k], *limits, *starts[k].tolist(), kept, offsets, *made),
        range(len(chunks)),
    )
    return (None if lists == rules.terminals else kept), offsets, *made


@array_dataclass
class _Ranges:
    """Postings by ranges of terminals: no thread needs a counter for each terminal."""

    shift: int
    """A range has ``1 << shift`` terminals."""
    bounds: Int64
    """int64, ranges + 1: start of each range's postings."""
    postings: UInt64
    """The terminal within its range above the document."""
    counts: UInt32
    """Empty if they are not asked for."""

    @classmethod
    def of(cls, stretches: _Stretches, classes: Classes, before: Int64, terminals: int, counted: bool) -> _Ranges:
        shift = max(terminals.bit_length() - RANGE_BITS, 0)
        chunks, total = weighted_chunks(before), int(before[-1])
        tallies = np.zeros((len(chunks), (terminals - 1 >> shift) + 1), np.int64)
        found = stretches.sizes, stretches.terminals
        map_parallel(
            lambda k: tally_ranges(*found, classes.of, shift, *chunks[k], tallies[k]),
            range(len(chunks)),
        )
        ends = running_sum(tallies.T.ravel())
        places = ends[:-1].reshape(-1, len(chunks)).T.copy()
        postings, own = scratch(total, np.uint64), scratch(total if counted else 0, np.uint32)
        map_parallel(
            lambda k: spread_postings(
                *found, stretches.counts, classes.of, shift, *chunks[k], places[k], postings, own
            ),
            range(len(chunks)),
        )
        return cls(shift, np.ascontiguousarray(ends[:: len(chunks)]), postings, own)


def _by_ranges(
    stretches: _Stretches, classes: Classes, before: Int64, terminals: int, counted: bool
) -> tuple[Int64, UInt32, UInt64 | None]:
    """List the documents of each terminal, range by range of terminals."""
    ranges, total = _Ranges.of(stretches, classes, before, terminals, counted), int(before[-1])
    offsets = np.empty(terminals + 1, np.int64)
    offsets[-1] = total
    documents = allocate(total, np.uint32)[1]  # frames and tables take them without a copy
    counts = allocate(total if counted else 0, np.uint64)[1]

    def order(chunk: tuple[int, int]) -> None:
        cursors = np.empty(1 << ranges.shift, np.int64)
        given = ranges.postings, ranges.counts, ranges.bounds, ranges.shift
        order_postings(*given, *chunk, cursors, offsets, documents, counts)

    map_parallel(order, weighted_chunks(ranges.bounds))
    return offsets, documents, counts if counted else None


def _share_out(
    root_offsets: Int64, classes: Classes, symbols: int, start: Callable[[], Run], arena_type: Any, room: int
) -> list[Any]:
    """Let threads count chunks of the classes' members; return the arenas with the results.

    Each thread starts with its own chunks; an arena without room for one more document is followed by another. The
    documents of a chunk are either all long or all short.
    """
    sizes = root_offsets[classes.members + 1] - root_offsets[classes.members]
    before = running_sum(sizes + 1)
    threads = thread_count() if before[-1] > SMALL else 1
    targets = before[-1] * np.arange(1, threads * CHUNKS) // (threads * CHUNKS)
    long = sizes * LONG >= symbols
    turns = np.flatnonzero(long[1:] != long[:-1]) + 1
    edges = sorted({0, *np.searchsorted(before, targets).tolist(), *turns.tolist(), len(sizes)})
    chunks = deque(pairwise(edges))

    def work(_: int) -> list[Any]:
        run, arenas, at = start(), [], room
        while chunks:
            try:
                first, stop = chunks.popleft()
            except IndexError:  # another thread took the last chunk
                break
            while first < stop:
                if at == room:
                    arenas.append(_arena(room, arena_type))
                    at = 0
                first, at = run(bool(long[first]), first, stop, at, *arenas[-1])
                at = at if first == stop else room
        return arenas

    return map_parallel(work, range(threads))


def _arena(size: int, dtype: Any) -> tuple[UInt32, Any]:
    return np.empty(size, np.uint32), np.empty(size, dtype)


def _bitmap(size: int) -> tuple[UInt64, UInt64]:
    """Return a bitmap and its summary, each of at least one word."""
    return np.zeros((size >> 6) + 1, np.uint64), np.zeros((size >> 12) + 1, np.uint64)


def _order_scratch(size: int, dtype: Any) -> tuple[Any, ...]:
    return (
        *_bitmap(size),
        np.empty(FEW, np.int64),
        np.empty(max(size, FEW), np.uint32),
        np.empty(max(size, FEW), dtype),
        np.empty(COUNTERS, np.int64),
    )


def _count(
    rules: Rules,
    root_offsets: Int64,
    roots: UInt32,
    classes: Classes,
    strategy: str,
    rank: UInt32 | None,
    min_count: int,
    top: int | None,
    order: Literal["count", "rank"] | None = "count",
) -> _Stretches:
    tables = load_tables(rules, roots, strategy)
    size, symbols = rules.terminals, rules.terminals + rules.rule_count
    ordered = rank is None  # the order in which long documents are counted
    by_rank = np.arange(size if order else 0, dtype=np.uint32)
    if rank is None:
        rank = by_rank
    elif order:
        by_rank[rank] = np.arange(size, dtype=np.uint32)
    most = int(rules.lengths.max(initial=1)) * int(np.diff(root_offsets).max(initial=0))
    dtype = count_type(most)
    found = _Stretches.empty(len(classes.members), np.dtype(dtype).itemsize)
    least = np.uint64(min(max(min_count, 1), (1 << 64) - 1))
    arrays = tables.starts, tables.terminals, tables.counts, tables.child_starts, tables.children
    documents = root_offsets, roots, classes.members

    def start() -> Run:
        weights = np.zeros(symbols + LANES, dtype)
        buffers = np.empty(_documents.BUFFER, np.uint32), np.empty(_documents.BUFFER, dtype)
        waiting, queue = np.empty(symbols + 1, np.uint32), np.empty(rules.rule_count + 1, np.uint32)
        bitmap = _bitmap(rules.rule_count)
        order_scratch = _order_scratch(size, dtype) if order == "count" else ()
        rank_scratch = (*_bitmap(size), np.empty(size, dtype)) if order == "rank" else ()

        def run(long: bool, first: int, stop: int, at: int, terminals: UInt32, counts: Any) -> tuple[int, int]:
            what = (*documents, first, stop, at, terminals, found.sizes, found.terminals, least, weights)
            out = counts, found.counts
            if long:
                done, end = _documents.count_long_documents(size, *arrays, tables.parents, *what, *buffers, *out)
            else:
                done, end = _documents.count_documents(
                    size, *arrays, tables.waits, *what, waiting, queue, *buffers, *bitmap, *out
                )
            where = found.sizes, first, done, at, terminals, counts, rank, by_rank
            if order == "count":
                order_documents(*where, *order_scratch)
            elif order == "rank" and not (long and ordered):
                rank_documents(*where, *rank_scratch)
            return done, end

        return run

    found.arenas.extend(_share_out(root_offsets, classes, symbols, start, dtype, ARENA + size + 1))
    if top is not None:
        np.minimum(found.sizes, min(top, size), out=found.sizes)
    return found


def _list(rules: Rules, root_offsets: Int64, roots: UInt32, classes: Classes, strategy: str) -> _Stretches:
    tables = load_tables(rules, roots, strategy)
    size, symbols = rules.terminals, rules.terminals + rules.rule_count
    found = _Stretches.empty(len(classes.members), 0)
    arrays = tables.starts, tables.terminals, tables.child_starts, tables.children
    documents = root_offsets, roots, classes.members

    def start() -> Run:
        buffer = np.empty(_documents.BUFFER, np.uint32)
        seen = np.empty(symbols, np.uint8 if symbols <= NUMBERED else np.uint32)
        waiting = np.empty(symbols + 1, np.uint32)
        marked = np.zeros(symbols + LANES, np.uint8)

        def run(long: bool, first: int, stop: int, at: int, terminals: UInt32, counts: Any) -> tuple[int, int]:
            where = (*documents, first, stop, at, terminals, found.sizes, found.terminals)
            kernel = _documents.list_long_documents if long else _documents.list_documents
            scratch = (
                (tables.parents, *where, marked, buffer) if long else (tables.waits, *where, seen, waiting, buffer)
            )
            return kernel(size, *arrays, *scratch)  # type: ignore[no-any-return]

        return run

    found.arenas.extend(_share_out(root_offsets, classes, symbols, start, np.uint8, ARENA + size + 1))
    return found
