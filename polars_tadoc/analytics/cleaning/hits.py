"""Repeated windows of a column larger than memory, by ranges of hashes.

Equal windows have equal least grams (:mod:`polars_tadoc.kernels.host.passages.stretches`), so each range of their
hashes is a problem of its own. The stretches that may occur again are written to a file, by hash. For each range, every
distinct stretch is kept once in memory with its words, and all windows of these are found as in memory: exactly, word
by word. Threads share the words that are read for a range: it is cut into sub-ranges, each the work of one thread, and
the windows of only some sub-ranges are found at a time, which takes most memory. What a range takes is known only when
it was read: if its stretches do not fit, it is split. The windows of one gram are split by their own hashes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from polars_tadoc.analytics.cleaning.kept_stretches import (
    FIND_BYTES,
    NO_WORDS,
    RECORD,
    STRETCH_BYTES,
    KeptStretches,
)
from polars_tadoc.analytics.cleaning.kept_words import Block, KeptWords
from polars_tadoc.config import thread_count
from polars_tadoc.engine.progress import show
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.execute.splits import working_bytes
from polars_tadoc.kernels.host.passages import distinct as kernels
from polars_tadoc.kernels.host.passages import stretches
from polars_tadoc.kernels.host.passages.windows import Fingerprints, draw_fingerprints
from polars_tadoc.kernels.windows.windows_cpu import ALL_BITS, stretches_of
from polars_tadoc.records import Spill, SpillFolder
from polars_tadoc.records.records import Layout, Records
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.free_memory import GROWN_SHARE, give_back_memory
from polars_tadoc.runtime.parallel import map_apart, map_parallel, weighted_chunks

LAYOUT = Layout(("row", "row", "row"), group=1)
"""Row, number of the window's first word, and twice the number of windows alike, plus one if they are first
occurrences; counted: the occurrences of each."""

PART_BITS = 10
PARTS = 1 << PART_BITS
"""Parts of all hashes: stretches are written part by part, and checkpoints cover whole parts."""

GRAM_BASE = 0x9E6C63D0876A9A47
"""Base of grams' hashes for checkpoints: a later process cuts hashes into the same parts."""

FILTER_SHARE = 4
"""Maximum share of the limit for each of two filters, which are made before ranges are read."""

ROTATIONS = stretches.ROTATION, np.uint64(37)
"""Each filter takes other bits of the hashes: the second one recognises most of what the first one did not."""

RANGE_SHARE = 0.75
"""Share of the limit for the distinct stretches of a range: the fewer ranges, the less often words are read."""

FIND_SHARE = 0.4
"""Share of that for the windows of stretches while they are found."""

SUBRANGES = 4
"""Sub-ranges of a range for each thread: as many have the memory that one has while its windows are found."""

WORD_BYTES = 4 + 3
"""Maximum bytes for each word of a distinct stretch: itself, and the windows found."""

SPARE = 0.9
"""Share of the room that the estimated size of a range may take."""

_NONE = np.zeros(0, np.uint32)


@array_dataclass
class _Listed:
    """Stretches of a block in the file."""

    block: Block
    start: int
    offsets: Int64
    """int64, parts + 1: stretches of each part."""


@dataclass(eq=False)
class Hits:
    """Finds the repeated windows of words.

    Parameters
    ----------
    words
        The words of all rows.
    grams
        The grams of windows: with a checkpoint, the same in all processes.
    kind, min_count
        The windows that will make passages (:mod:`polars_tadoc.kernels.host.passages.runs`).
    limit
        Memory limit in bytes.
    folder
        Where stretches are written.
    spill
        Gets the repeated windows, in :data:`LAYOUT`; parts that its checkpoint covers are left out.
    call
        The call, for messages.

    """

    words: KeptWords
    grams: stretches.Grams
    kind: int
    min_count: int
    limit: int
    folder: SpillFolder
    spill: Spill
    call: str

    def __post_init__(self) -> None:
        length, memory = self.grams.length, RANGE_SHARE * working_bytes(self.limit)
        self._finding = FIND_SHARE * memory
        self._room = max(int((memory - self._finding) / (WORD_BYTES + STRETCH_BYTES / (length + 1))), 4 * length)
        self._most = max(int(self._finding) // FIND_BYTES, 4 * length)
        """Most words of a sub-range."""

    def find(self) -> None:
        """Find all; raises ``LimitExceededError`` if windows with one gram do not fit, or ``DiskFullError``."""
        listed, path = self._list(), self.folder.path / "stretches"
        amounts = sum((np.diff(one.offsets) for one in listed), np.zeros(PARTS, np.int64))
        covered, part, words_each = self.spill.covered, 0, 2.0 * self.grams.length
        while part < PARTS:
            show(f"windows: {part / PARTS:.0%}")
            if part in covered:
                part += 1
                continue
            stop, held = part + 1, int(amounts[part])
            most = SPARE * self._room / words_each
            while stop < PARTS and stop not in covered and held + amounts[stop] <= most:
                held += int(amounts[stop])
                stop += 1
            if held:
                shift = 64 - PART_BITS
                words_each = self._find_between(_Stretches(path, listed), part << shift, (stop << shift) - 1) / held
            self.spill.finish(*range(part, stop))
            part = stop

    def _list(self) -> list[_Listed]:
        """Write the stretches that may occur again to a file."""
        filters: list[UInt64] = []
        most = max(self.limit // FILTER_SHARE // 8, 1)
        for rotation in ROTATIONS:
            numbers = min(most, self.words.words // 2)  # 16 slots for a word
            slots = np.zeros(1 << max(numbers.bit_length() - 1, 0), np.uint64)
            for block in self.words.blocks:
                for _, _, keys in self._stretches(block, filters):
                    stretches.mark(keys, rotation, slots)
            filters.append(slots)
        listed, start = [], 0
        with self.folder.writing(), (self.folder.path / "stretches").open("wb") as file:
            for block in self.words.blocks:
                found = self._stretches(block, filters)
                records = np.empty(sum(len(keys) for _, _, keys in found), RECORD)
                for name, parts in zip(("place", "size", "key"), zip(*found, strict=True), strict=True):
                    records[name] = np.concatenate(parts)
                part = (records["key"] >> np.uint64(64 - PART_BITS)).astype(np.uint16)
                records[np.argsort(part, kind="stable")].tofile(file)
                offsets = np.append(0, np.cumsum(np.bincount(part, minlength=PARTS)))
                listed.append(_Listed(block, start, offsets))
                start += len(records)
                give_back_memory(self.limit // GROWN_SHARE)
        return listed

    def _stretches(self, block: Block, filters: list[UInt64]) -> list[tuple[UInt32, UInt32, UInt64]]:
        """Return the stretches of a block that pass filters."""
        laid = self.words.read(block)

        def find(chunk: tuple[int, int]) -> tuple[UInt32, UInt32, UInt64]:
            places, sizes, keys = stretches_of(laid.words, laid.starts, chunk, self.grams, _NONE)
            for slots, rotation in zip(filters, ROTATIONS, strict=False):
                kept = stretches.keep_marked(slots, rotation, places, sizes, keys)
                places, sizes, keys = places[:kept], sizes[:kept], keys[:kept]
            return places, sizes, keys

        return map_parallel(find, weighted_chunks(laid.starts))

    def _find_between(self, read: _Read, least: int, most: int) -> int:
        """Find the repeated windows whose hashes are in a range; return the words of its distinct stretches."""
        cut = _Cut.of(least, most, SUBRANGES * thread_count())
        kept = [KeptStretches(self._most, self.grams.length) for _ in range(cut.count)]
        parts, ids = list[tuple[int, int]](), self.folder.path / "ids"
        with self.folder.writing(), ids.open("wb") as file:
            for block, records in read(least, most):
                own = cut.split(records)
                collect = partial(_collect, self.words.read(block).words)
                made = map_parallel(collect, list(zip(kept, own, strict=True)))
                full = next((k for k, numbers in enumerate(made) if numbers is None), None)
                if full is not None:
                    parts = cut.around(full)
                elif sum(one.used for one in kept) > self._room:
                    parts = _split(np.unique(records["key"]), least, most)
                if parts:
                    break
                np.concatenate([numbers for numbers in made if numbers is not None]).tofile(file)
                give_back_memory(self.limit // GROWN_SHARE)
        if parts:
            del kept
            return sum(self._find_part(read, *part) for part in parts)
        used = [one.used for one in kept]
        at_once = max(int(self._finding / (FIND_BYTES * max(1, *used))), 1)
        for first in range(0, cut.count, at_once):
            map_apart(KeptStretches.find, kept[first : first + at_once])
            give_back_memory(self.limit // GROWN_SHARE)
        start = 0
        for block, records in read(least, most):
            own = cut.split(records)
            numbers = np.fromfile(ids, np.uint32, len(records), offset=4 * start)
            start += len(records)
            own_numbers = np.split(numbers, np.cumsum([len(some) for some in own[:-1]]))
            found = map_parallel(self._hits, list(zip(kept, own, own_numbers, strict=True)))
            self._spill_hits(block, *map(np.concatenate, zip(*found, strict=True)))
        return sum(used)

    def _hits(self, given: tuple[KeptStretches, Any, UInt32]) -> Any:
        kept, records, ids = given
        return kept.hits(records, ids, self.kind, self.min_count)

    def _find_part(self, read: _Read, least: int, most: int) -> int:
        """Like :meth:`_find_between`; splits the windows of one gram by their own hashes."""
        if least < most:
            return self._find_between(read, least, most)
        if isinstance(read, _Windows):
            raise LimitExceededError(f"{self.call}: windows do not fit memory_limit={self.limit:,}; raise it")
        return self._find_between(
            _Windows(self.words, read, least, self.grams.length, draw_fingerprints(self.grams.length)), 0, ALL_BITS
        )

    def _spill_hits(self, block: Block, places: UInt32, sizes: UInt32, are_first: UInt8, counts: UInt64) -> None:
        if not len(places):
            return
        starts = self.words.starts(block)
        order = np.argsort(places)
        places = places[order]
        rows = np.searchsorted(starts, places, side="right") - 1
        keys = np.empty((len(places), 3), np.uint32)
        keys[:, 0], keys[:, 1] = rows + block.first, places - starts[rows]
        keys[:, 2] = 2 * sizes[order] + are_first[order]
        self.spill.add(Records(NO_WORDS, keys, counts[order]))


def _collect(words: UInt32, given: tuple[KeptStretches, Any]) -> UInt32 | None:
    kept, records = given
    return kept.collect(words, records)


def _split(keys: UInt64, least: int, most: int) -> list[tuple[int, int]]:
    """Split a range of hashes that does not fit, given some of its hashes: between them, or around the only one."""
    if len(keys) > 1:
        middle = int(keys[len(keys) // 2 - 1])
        return [(least, middle), (middle + 1, most)]
    only = int(keys[0])
    return [part for part in ((least, only - 1), (only, only), (only + 1, most)) if part[0] <= part[1]]


@dataclass(frozen=True)
class _Cut:
    """A range of hashes, cut into sub-ranges."""

    least: int
    most: int
    step: int
    """Hashes of a sub-range; the last one may have fewer."""

    @classmethod
    def of(cls, least: int, most: int, count: int) -> _Cut:
        """Cut a range into at most ``count`` sub-ranges, all but the last one equally large."""
        return cls(least, most, -(-(most - least + 1) // count))

    @property
    def count(self) -> int:
        """Number of sub-ranges."""
        return -(-(self.most - self.least + 1) // self.step)

    def split(self, records: Any) -> list[Any]:
        """Split records by sub-range; their order stays."""
        own = ((records["key"] - np.uint64(self.least)) // np.uint64(self.step)).astype(np.uint16)
        edges = np.cumsum(np.bincount(own, minlength=self.count))
        return np.split(records[np.argsort(own, kind="stable")], edges[:-1])

    def around(self, k: int) -> list[tuple[int, int]]:
        """Cut the range before and after sub-range ``k``; return the parts that aren't empty."""
        first = self.least + k * self.step
        last = min(first + self.step - 1, self.most)
        parts = [(self.least, first - 1), (first, last), (last + 1, self.most)]
        return [part for part in parts if part[0] <= part[1]]


@array_dataclass
class _Stretches:
    """The stretches in a file."""

    path: Path
    listed: list[_Listed]

    def __call__(self, least: int, most: int) -> Iterator[tuple[Block, Any]]:
        """Yield those of a range of hashes, by block."""
        shift = 64 - PART_BITS
        first, last = least >> shift, most >> shift
        is_whole = not (least & ((1 << shift) - 1) or (most + 1) & ((1 << shift) - 1))
        for one in self.listed:
            a, b = int(one.offsets[first]), int(one.offsets[last + 1])
            records = np.fromfile(self.path, RECORD, b - a, offset=RECORD.itemsize * (one.start + a))
            if not is_whole:
                records = records[(records["key"] >= np.uint64(least)) & (records["key"] <= np.uint64(most))]
            if len(records):
                yield one.block, records


@array_dataclass
class _Windows:
    """Windows of the stretches of one hash, as stretches of one window."""

    words: KeptWords
    stretches: _Stretches
    key: int
    length: int
    drawn: Fingerprints

    def __call__(self, least: int, most: int) -> Iterator[tuple[Block, Any]]:
        """Yield those of a range of their own hashes, by block."""
        for block, records in self.stretches(self.key, self.key):
            total = int(records["size"].sum(dtype=np.int64))
            places, keys = np.empty(total, np.uint32), np.empty(total, np.uint64)
            given = np.ascontiguousarray(records["place"]), np.ascontiguousarray(records["size"])
            kernels.split_windows(self.words.read(block).words, *given, self.length, *self.drawn, places, keys)
            made = np.ones(total, RECORD)
            made["place"], made["key"] = places, keys
            made = made[(keys >= np.uint64(least)) & (keys <= np.uint64(most))]
            if len(made):
                yield block, made


_Read = _Stretches | _Windows
