"""Counts terminals of documents on the device, as keys for a radix sort.

A block counts each document in shared memory: in a hash table if the document can only contain few of the terminals,
otherwise with a counter per terminal; documents that do not fit are counted by all blocks together, in global memory.
Equal documents of one symbol are counted once. If results exceed the scratch memory, documents are processed in
batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from polars_tadoc.kernels.documents.marked_documents_cuda import offered_shared
from polars_tadoc.kernels.primitives.primitives_cuda import exclusive_scan
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.traverse.tables_cuda import NARROW, Tables, device_levels
from polars_tadoc.runtime.array_types import Int64
from polars_tadoc.runtime.device import launch_each, launch_resident, work_space

SCRATCH = 26 << 20
"""Minimum bytes of device memory in addition to grammar, rows and result."""

_MAX_ROOTS = 16  # per thread of classes.cu
_NEITHER = 1 << 32  # exclusive limit of 32 bits


@dataclass(frozen=True)
class Class:
    """How documents of a class are counted."""

    threads: int
    slots: int = 0
    """Slots of a hash table in shared memory; 0 for all shared memory of a block."""
    rule_slots: int = 0
    """Slots of a hash table of rules' weights in shared memory (top-down)."""
    words: int = 0
    """Maximum words of a document (top-down); bottom-up, its distinct words are at most two thirds of the slots."""


# Tables may turn out too small for a document with that many words, if most are distinct: the next class processes it.
_TOP_DOWN = (
    Class(128, 1 << 10, 1 << 9, 1 << 11),
    Class(256, 1 << 11, 1 << 10, 1 << 12),
    Class(512, 1 << 12, 1 << 11, 3 << 12),
    Class(1024, 1 << 14, 1 << 13, 3 << 14),
)
_BOTTOM_UP = (Class(32, 1 << 8), Class(128, 1 << 11), Class(512, 1 << 13), Class(1024))
_FEW = 1 << 14
"""Minimum number of documents for a separate class of small ones, bottom-up."""
_LONG_THREADS, _GROUP = 512, 64  # of long_documents.cu
_HOT = 1 << 12
"""Number of first terminals that each block counts in shared memory for a long document."""
_MARKED = 1 << 18
"""Maximum number of rules with a bit each in shared memory."""
_STATIC_SHARED = 2 << 10
"""Maximum static bytes of shared memory per block, in any class."""
_MIN_ROWS = 4 << 20
"""Minimum bytes for counters in global memory."""


class Slice(NamedTuple):
    """Documents ``first`` to ``stop``, whose terminals are sorted together."""

    first: int
    stop: int
    before: int
    """Number of terminals, among those counted together, of the documents before these."""
    total: int


@dataclass(frozen=True)
class Layout:
    """Positions of a terminal (or its rank), its document and its count in a key."""

    counted: bool
    """Whether counts are requested."""
    terminal_bits: int
    document_bits: int
    count_bits: int
    """0 if counts have an array of their own or are not requested."""
    terminal_shift: int
    document_shift: int
    count_shift: int
    """64 if counts are not in the key."""
    count_flip: int
    """All ones of a count's bits if high counts come first."""

    @property
    def bits(self) -> int:
        """Bits of a key."""
        return self.terminal_bits + self.document_bits + self.count_bits

    @property
    def key_type(self) -> type[np.unsignedinteger[Any]]:
        """Type of a key: 32 bits if everything fits, otherwise 64."""
        return np.uint32 if not self.counted and self.bits <= 32 else np.uint64

    @property
    def defines(self) -> tuple[str, ...]:
        """Compiler definitions of kernels for such keys."""
        return (f"-DKEY={'u32' if self.key_type is np.uint32 else 'u64'}",)


@dataclass(eq=False)
class Counted:
    """Documents ``first`` to ``stop``, counted."""

    first: int
    stop: int
    fits: bool
    """Whether there was room for keys: otherwise only the sizes are valid."""
    total: int
    """Number of terminals of all these documents."""
    offsets: Any
    """cupy int64: offsets of each document's terminals among these."""
    sizes: Any
    """cupy uint32 by document, of all documents: number of terminals of representatives."""
    own_sizes: Any
    """cupy uint32: number of terminals of representatives, 0 for all others."""
    representatives: Any
    """cupy uint32 by document, of all documents: its representative."""
    starts: Any
    """cupy uint32 by document, of all documents: position of a representative's keys."""
    keys: Any
    counts: Any
    batch_pairs: int
    """Maximum terminals of a batch, except for a single document with more."""
    sort_pairs: int
    """Maximum terminals of a slice sorted while all keys are in memory, except for a single document with more."""
    sorts_at_once: bool
    """Whether all terminals can be sorted by terminal if these keys are freed first."""

    def batches(self) -> list[tuple[int, int]]:
        """Split documents into batches that fit; all of them are counted again."""
        self.release()
        sizes = self.sizes.get()[self.representatives.get()]  # synchronize!
        return _cut(np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]), self.batch_pairs)

    def slices(self) -> list[Slice]:
        """Split documents into slices that can be sorted."""
        before = self.offsets.get()  # synchronize!
        return [
            Slice(self.first + first, self.first + stop, int(before[first]), int(before[stop] - before[first]))
            for first, stop in _cut(before, self.sort_pairs)
        ]

    def release(self) -> None:
        """Free the keys' memory."""
        self.keys = self.counts = None


class Work:
    """A call's documents, prepared for counting."""

    def __init__(self, rules: Rules, tables: Tables | None, root_offsets: Any, roots: Any) -> None:
        import cupy

        self.rules, self.tables, self.root_offsets, self.roots = rules, tables, root_offsets, roots
        self.documents = len(root_offsets) - 1
        self.scratch = scratch_bytes(rules, roots, tables)
        self.classes = _TOP_DOWN if self.tables is None else _BOTTOM_UP
        zeros = cupy.zeros(2 * self.documents + 3 + len(self.classes), np.uint64)
        entries, self.lengths = zeros[: 2 * self.documents].reshape(2, -1)
        report = zeros[2 * self.documents :]  # as Report in classes.cu
        items = min(_MAX_ROOTS, max(1, len(roots) >> 18))
        launch_each(
            *("classes", "weigh_roots", max(-(-len(roots) // items), min(rules.rule_count, 1 << 16)), rules.terminals),
            *(rules.lengths, rules.rule_count, None if self.tables is None else self.tables.sizes, root_offsets),
            *(self.documents, roots, len(roots), items, entries, self.lengths, report),
        )
        self.entries = self.lengths if self.tables is None else entries
        self.classified = self._classify(0, self.documents, report)
        # this host work overlaps with the device's
        self.given = self._given()
        self.fresh: tuple[Any, Any, Any] | None = self._fresh()
        self.longest, self.bound, *self.class_sizes = (int(number) for number in report.get())  # synchronize!

    def layout(self, order: Literal["terminal", "document", "rank"], counted: bool = True) -> Layout:
        """Lay keys out for sorting by terminal, or by document, and then by descending count or by rank alone."""
        terminal_bits = (self.rules.terminals - 1).bit_length()
        document_bits = (self.documents - 1).bit_length()
        count_bits = self.longest.bit_length()
        if not counted or terminal_bits + document_bits + count_bits > 64 or self.longest >= NARROW:
            count_bits = 0
        bits = (counted, terminal_bits, document_bits, count_bits)
        if order == "terminal":
            return Layout(*bits, count_bits + document_bits, count_bits, 0 if count_bits else 64, 0)
        if order == "rank":
            return Layout(*bits, count_bits, count_bits + terminal_bits, 0 if count_bits else 64, 0)
        count_shift = terminal_bits if count_bits else 64
        return Layout(*bits, 0, terminal_bits + count_bits, count_shift, (1 << count_bits) - 1)

    def count(
        self, first: int, stop: int, layout: Layout, rank: Any, least: int, most: int, batch: bool = False
    ) -> Counted:
        """Count documents ``first`` to ``stop``: all of them, or a batch of known size."""
        import cupy

        if batch:
            self.classified = self._classify(first, stop, cupy.zeros(3 + len(self.classes), np.uint64))
        representatives, bounds, lists, class_sizes = self.classified
        wide = self.longest >= NARROW
        apart = layout.counted and not layout.count_bits  # counts have an array of their own
        pair_bytes = np.dtype(layout.key_type).itemsize + (8 if apart else 0)
        held_tables = 0 if self.tables is None or self.tables.resident else self.tables.nbytes
        # cached tables leave keys more than half of the remaining memory
        batch_pairs = (self.scratch // 2 if held_tables or self.tables is None else self.scratch // 4 * 3) // pair_bytes
        capacity = min(self.bound, batch_pairs)
        if batch:
            capacity = max(capacity, min(self.rules.terminals, self.bound))  # of one document
        keys = cupy.empty(capacity, layout.key_type)
        counts = cupy.empty(capacity, np.uint64) if apart else None
        cursor, starts, sizes = self._fresh() if self.fresh is None else self.fresh
        self.fresh = None
        written = (
            *(rank, least, layout.terminal_shift, layout.document_shift),
            *(layout.count_shift, layout.count_flip, keys, counts),
            *(min(capacity, _NEITHER - 1), cursor, starts, sizes),
        )
        defines = (*self._defines(wide), *layout.defines)
        expected = 0  # upper bound of documents whose tables turned out too small, plus those of the class
        for number, kind in enumerate(self.classes):
            expected = self.class_sizes[number] + (expected if self.tables is None else 0)
            if expected:
                listed = (
                    *(lists[number], class_sizes[number:], lists[number + 1], class_sizes[number + 1 :]),
                    *(cursor[2 + number :], bounds),
                )
                self._count_class(kind, defines, wide, min(expected, stop - first), listed, written)
        expected = self.class_sizes[-1] + (expected if self.tables is None else 0)
        if expected:
            room = max(self.scratch - pair_bytes * capacity - held_tables, _MIN_ROWS)
            self._count_long(
                defines, wide, room, min(expected, stop - first), (lists[-1], class_sizes[-1:], cursor[-1:]), written
            )
        shown, own_sizes = cupy.empty((2, stop - first), np.uint32)
        launch_each(
            *("arrange", "size_documents", stop - first, representatives, sizes, first, stop, most, shown, own_sizes),
            cursor[1:],
        )
        offsets = exclusive_scan(shown)
        stored, total, *_ = (int(number) for number in cursor.get())  # synchronize!
        fits = stored <= capacity
        if fits:
            if not batch:
                self.tables = None
                self.given = ()

            keys, counts = keys[:stored], None if counts is None else counts[:stored]
        return Counted(
            *(first, stop, fits, total, offsets, sizes, own_sizes, representatives, starts, keys, counts, batch_pairs),
            sort_pairs=(self.scratch - pair_bytes * capacity) // (2 * pair_bytes),
            # a sort needs the keys twice; half of the result's memory adds to the scratch memory
            sorts_at_once=total <= self.scratch // (2 * pair_bytes - 2),
        )

    def _classify(self, first: int, stop: int, report: Any) -> tuple[Any, Any, Any, Any]:
        """Find equal documents of one symbol, and group the others by the maximum number of their terminals."""
        import cupy

        rules = self.rules
        first_with = cupy.empty(rules.terminals + rules.rule_count, np.uint32)
        first_with.data.memset_async(0xFF, first_with.nbytes)
        some = (self.root_offsets, self.roots, first, stop, first_with)
        launch_each("classes", "find_equal", stop - first, *some)
        representatives, bounds = cupy.empty((2, self.documents), np.uint32)
        lists = cupy.empty((len(self.classes) + 1, stop - first), np.uint32)
        launch_each(
            *("classes", "class_documents", stop - first, rules.terminals, *some, self.entries, self.lengths),
            *(self.tables is None, *(self._most(kind) for kind in self.classes), representatives),
            *(bounds, lists, report),
        )
        return representatives, bounds, lists, report[2:]

    def _most(self, kind: Class) -> int:
        """Return the maximum words of a class's documents, or distinct words bottom-up."""
        if self.tables is None:
            # the bits exceed shared memory: all documents are counted as long ones
            return kind.words if self.rules.rule_count <= _MARKED else 0
        if kind is self.classes[0] and self.documents <= _FEW:
            return 0  # if all fit at a time, small documents are counted with the next class: one launch less
        offered = offered_shared()
        if not kind.slots and self.rules.terminals <= offered // 8:
            return self.rules.terminals
        return (kind.slots or offered // 12) // 3 * 2

    def _count_class(
        self,
        kind: Class,
        defines: tuple[str, ...],
        wide: bool,
        documents: int,
        listed: tuple[Any, ...],
        written: tuple[Any, ...],
    ) -> None:
        """Count the documents of one class, each in a block's shared memory."""
        top_down = self.tables is None
        count_bytes = 8 if wide else 4
        # a document without room in tables of its terminals and rules is processed by the next class
        slots, rule_slots = (kind.slots * 4 // count_bytes, kind.rule_slots * 4 // count_bytes) if top_down else (0, 0)
        shared = (4 + count_bytes) * (slots + rule_slots or kind.slots) or offered_shared()
        marked = self.rules.rule_count if top_down else 0
        marks = -(-marked // 64) * 8
        launch_resident(
            *("documents", "count_documents", documents, kind.threads, *self.given, *listed, slots),
            *(rule_slots, shared, marked, *written),
            defines=defines,
            shared=shared + marks,
        )

    def _count_long(
        self,
        defines: tuple[str, ...],
        wide: bool,
        room: int,
        documents: int,
        listed: tuple[Any, ...],
        written: tuple[Any, ...],
    ) -> None:
        """Count long documents, each by all blocks; ``room`` bytes may be used for rows of counters."""
        import cupy

        count_bytes = 8 if wide else 4
        held = min(self.rules.terminals, _HOT)
        row_size = self.rules.terminals + (self.rules.rule_count if self.tables is None else 0)
        group = max(1, min(_GROUP, documents, room // (count_bytes * row_size)))
        rows = cupy.zeros(group * row_size, np.uint64 if wide else np.uint32)
        launch_resident(
            *("long_documents", "count_long_documents", None, _LONG_THREADS, *self.given, *listed, held),
            *(rows, group, *written),
            defines=defines,
            shared=count_bytes * held,
            cooperative=True,
        )

    def _fresh(self) -> tuple[Any, Any, Any]:
        """Return initial arrays: the cursor, positions of documents' keys and their numbers."""
        import cupy

        # number of keys, terminals including equal documents', documents taken by class, the long ones' barriers
        cursors = 3 + len(self.classes)
        zeros = cupy.zeros(cursors + self.documents, np.uint64)
        return (zeros[:cursors], *zeros[cursors:].view(np.uint32).reshape(2, -1))

    def _defines(self, wide: bool) -> tuple[str, ...]:
        """Return the compiler definitions of kernels that count these documents."""
        wide_tables = self.tables is not None and self.tables.counts.dtype == np.uint64
        return f"-DTOP_DOWN={int(self.tables is None)}", f"-DWIDE={int(wide)}", f"-DWIDE_TABLES={int(wide_tables)}"

    def _given(self) -> tuple[Any, ...]:
        """Return rules, tables and documents as arguments of kernels."""
        rules, tables = self.rules, self.tables
        return (
            *(rules.terminals, rules.rule_count, rules.rule_offsets, rules.symbols),
            *(device_levels(rules), len(rules.level_offsets) - 1),
            *((None,) * 4 if tables is None else (tables.starts, tables.sizes, tables.terminals, tables.counts)),
            *(self.root_offsets, self.roots),
        )


def scratch_bytes(rules: Rules, roots: Any, tables: Tables | None) -> int:
    """Return the bytes of device memory available in addition to grammar, rows, result and cached tables."""
    scratch = work_space(SCRATCH) + int(rules.nbytes + roots.nbytes) // 2
    return scratch if tables is None or not tables.resident else max(scratch - tables.nbytes, scratch // 3)


def _cut(before: Int64, most: int) -> list[tuple[int, int]]:
    """Split documents into parts of at most ``most`` terminals, or one document."""
    cuts = [0]
    while cuts[-1] < len(before) - 1:
        stop = int(np.searchsorted(before, before[cuts[-1]] + most, side="right")) - 1
        cuts.append(max(stop, cuts[-1] + 1))
    return list(pairwise(cuts))
