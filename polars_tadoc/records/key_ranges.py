"""Reads sorted files of keys in parallel: the same range of keys from all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from polars_tadoc.config import one_thread
from polars_tadoc.errors import InvalidRecordsError, LimitExceededError
from polars_tadoc.kernels.host.records.packed_keys import KeyForm, merge_sorted, repack
from polars_tadoc.records.packed_records import Sorted
from polars_tadoc.records.runs import KeysFile
from polars_tadoc.runtime.array_types import UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.parallel import map_parallel

COPIES = 3
"""A range is held three times: as read, in the common form, and merged."""

MAX_RANGES = 4
"""Records that must be in one range may exceed the target size by this factor."""


def record_bytes(form: KeyForm) -> int:
    """Bytes per record while it is read and merged."""
    return 8 * (form.limbs + 1) * COPIES


@array_dataclass
class Source:
    """A sorted file, and the map from its word numbers to common ones."""

    file: KeysFile
    """The file."""
    numbers: UInt32 | None
    """uint32: the common number of each word, ascending; None if the file has common numbers."""

    def firsts(self, form: KeyForm, words: list[bool]) -> UInt64:
        """Return the first limb, in a common form, of each group's first key."""
        limbs = np.zeros((self.file.form.limbs, len(self.file.least)), np.uint64)
        limbs[0] = self.file.least
        firsts: UInt64 = self._repacked(limbs, form, words)[0]
        if (firsts[1:] < firsts[:-1]).any():
            raise InvalidRecordsError(f"the groups of {self.file.path} are not sorted")
        return firsts

    def read(self, groups: Sequence[int], form: KeyForm, words: list[bool]) -> Sorted:
        """Read consecutive groups in a common form."""
        parts = [self.file.read(group) for group in groups]
        keys = np.empty((form.limbs, sum(part[0].shape[1] for part in parts)), np.uint64)
        at = 0
        for limbs, _ in parts:
            keys[:, at : at + limbs.shape[1]] = self._repacked(limbs, form, words)
            at += limbs.shape[1]
        if (keys[0, 1:] < keys[0, :-1]).any():
            raise InvalidRecordsError(f"the records of {self.file.path} are not sorted")
        return keys, np.concatenate(
            [counts for _, counts in parts if counts is not None]
        ) if self.file.counted else None

    def _repacked(self, limbs: UInt64, form: KeyForm, words: list[bool]) -> UInt64:
        out = np.empty((form.limbs, limbs.shape[1]), np.uint64)
        if not repack(limbs, self.file.form, form, words, self.numbers, out):
            raise InvalidRecordsError(f"{self.file.path} has word numbers beyond its run's words")
        return out


@array_dataclass
class Range:
    """Merged records of a range of keys."""

    keys: UInt64
    counts: UInt64 | None
    """``keys``, ``counts``: As ``merge_sorted`` returns them."""
    below: np.uint64 | None
    """All records with a lower first limb have been read; None after the last range."""


def read_ranges(
    sources: Sequence[Source], form: KeyForm, words: list[bool], mask: np.uint64, room: int, call: str
) -> Iterator[Range]:
    """Read and merge sorted files, range by range.

    Parameters
    ----------
    sources
        The files.
    form
        The common form of keys.
    words
        By column: whether it has numbers of words.
    mask
        Bits of the first limb: records that agree in them stay in one range.
    room
        Bytes of a range.
    call
        Prefix of messages.

    Raises
    ------
    LimitExceededError
        Records that must be in one range do not fit.
    InvalidRecordsError
        A file is damaged.

    """
    quota = max(1, room // record_bytes(form))
    plan = _Plan([source.firsts(form, words) for source in sources], [source.file.sizes for source in sources])
    held: list[Sorted] = []
    if not plan.left:
        yield Range(np.zeros((form.limbs, 0), np.uint64), np.zeros(0, np.uint64), None)
    while plan.left:
        waiting = sum(keys.shape[1] for keys, _ in held)
        lowest = min((keys[0, 0] for keys, _ in held), default=np.uint64(plan.next_first))
        most = max(MAX_RANGES * quota - waiting, sum(max(source.file.sizes, default=0) for source in sources))
        groups, below = plan.take(quota - waiting, most, lowest, mask, call)
        read = map_parallel(lambda one: _read(sources[one[0]], one[1], form, words), groups)
        intervals = held + read
        if below is None:
            yield Range(*merge_sorted(intervals), None)
            return
        cuts = [int(np.searchsorted(keys[0], below)) for keys, _ in intervals]
        held = [_cut(one, cut, None) for one, cut in zip(intervals, cuts, strict=True) if cut < one[0].shape[1]]
        ready = [_cut(one, 0, cut) for one, cut in zip(intervals, cuts, strict=True)]
        merged = merge_sorted(ready)
        del read, intervals, ready  # release before the caller works
        yield Range(*merged, below)


def _read(source: Source, groups: Sequence[int], form: KeyForm, words: list[bool]) -> Sorted:
    with one_thread():  # threads that wait for each other would deadlock
        return source.read(groups, form, words)


def _cut(one: Sorted, first: int, last: int | None) -> Sorted:
    """Take a slice; a slice to keep is copied, so that the rest of the range can be freed."""
    keys, counts = one[0][:, first:last], None if one[1] is None else one[1][first:last]
    return (keys, counts) if last is not None else (keys.copy(), None if counts is None else counts.copy())


class _Plan:
    """Groups of all files in the order of their first keys."""

    def __init__(self, firsts: Sequence[UInt64], sizes: Sequence[Sequence[int]]) -> None:
        self._firsts = np.concatenate([np.zeros(0, np.uint64), *firsts])
        files = np.repeat(np.arange(len(firsts)), [len(own) for own in firsts])
        order = np.argsort(self._firsts, kind="stable")
        starts = np.cumsum([0, *(len(own) for own in firsts)])
        self._firsts, self._files = self._firsts[order], files[order]
        self._groups = order - starts[self._files]
        self._sizes = np.concatenate([np.zeros(0, np.int64), *sizes])[order].astype(np.int64)
        self._at = 0

    @property
    def left(self) -> int:
        """Number of remaining groups."""
        return len(self._firsts) - self._at

    @property
    def next_first(self) -> np.uint64:
        """The first limb of the next group."""
        return np.uint64(self._firsts[self._at])

    def take(
        self, quota: int, most: int, lowest: np.uint64, mask: np.uint64, call: str
    ) -> tuple[list[tuple[int, list[int]]], np.uint64 | None]:
        """Take the next groups with about the given number of records, or more if these contain no whole range.

        Returns
        -------
        (list of files and their groups, uint64 or None)
            The first limb below which all records have been taken; None after the last group.

        """
        first, below = self._at, None
        sums = np.cumsum(self._sizes[first:])
        at = first + max(1, int(np.searchsorted(sums, quota, side="right")))
        bounds = self._firsts[at:] & mask
        at += int(np.searchsorted(bounds, min(np.uint64(lowest), self.next_first) & mask, side="right"))
        if sums[at - first - 1] > most:
            raise LimitExceededError(
                f"{call}: about {int(sums[at - first - 1]):,} records belong to one row of the result and do not fit "
                "in memory together; raise memory_limit"
            )
        if at < len(self._firsts):
            below = np.uint64(self._firsts[at] & mask)
        self._at = at
        chosen: dict[int, list[int]] = {}
        for file, group in zip(self._files[first:at].tolist(), self._groups[first:at].tolist(), strict=True):
            chosen.setdefault(file, []).append(group)
        return list(chosen.items()), below
