"""Distinct stretches of windows in memory, each kept once with its words, and their repeated windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.analytics.cleaning.laid_words import LaidWords
from polars_tadoc.analytics.cleaning.windows import find_windows
from polars_tadoc.kernels.host.passages import distinct as kernels
from polars_tadoc.kernels.host.passages.windows import draw_fingerprints
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.arrow_arrays import strings

RECORD = np.dtype([("key", np.uint64), ("place", np.uint32), ("size", np.uint32)])
"""A stretch: hash of its least gram, place of its first window, number of windows."""

STRETCH_BYTES = 44
"""Maximum bytes for each kept stretch beside its words."""

FIND_BYTES = 28
"""Maximum bytes for each kept word while windows are found, beside the word."""

NO_WORDS: Any = strings([])

_LEAST_SLOTS = 1 << 8


def marks_of(laid: LaidWords, length: int, amounts: Int64) -> UInt64:
    """Find the windows of distinct stretches, and count them.

    Parameters
    ----------
    laid
        The stretches, as rows.
    length
        Words of a window.
    amounts
        int64 by stretch: how often it occurs.

    Returns
    -------
    uint64 array
        By window, in order: twice the occurrences, plus one if the window is the first of its kind.

    """
    marks = np.empty(int((np.diff(laid.starts) - length).sum()), np.uint64)
    first = find_windows(laid, length).first
    kernels.weigh(laid.starts, length, amounts, first, np.zeros(len(laid.words), np.uint64), marks)
    return marks


class KeptStretches:
    """Distinct stretches of a range of hashes.

    Parameters
    ----------
    room
        Maximum number of words, with a separator for each stretch; memory is used as stretches arrive.
    length
        Words of a window.

    """

    def __init__(self, room: int, length: int) -> None:
        self.length = length
        most = max(room // (length + 1), 1)
        self._words, self._starts = np.empty(room, np.uint32), np.empty(most + 1, np.int64)
        self._starts[0] = 0
        self._amounts, self._hashes = np.empty(most, np.int64), np.empty(most, np.uint64)
        self._slots = np.zeros(_LEAST_SLOTS, np.uint32)
        self._state = np.zeros(1, np.int64)
        drawn = draw_fingerprints(1)
        self._hashed_with = drawn.base, drawn.key

    @property
    def used(self) -> int:
        """Words that are kept."""
        return int(self._starts[self._state[0]])

    @property
    def words(self) -> UInt32:
        """Words that are kept, a separator after each stretch."""
        return self._words[: self.used]

    @property
    def starts(self) -> Int64:
        """Starts of the stretches, int64, one more than there are."""
        return self._starts[: int(self._state[0]) + 1]

    def collect(self, words: UInt32, records: Any) -> UInt32 | None:
        """Return the number of each stretch; None if they do not fit."""
        ids = np.empty(len(records), np.uint32)
        given = np.ascontiguousarray(records["place"]), np.ascontiguousarray(records["size"])
        made = 0
        while True:
            table = (self._words, self._starts, self._amounts, self._hashes, self._slots, self._state, ids)
            made = kernels.collect(words, *given, self.length, *self._hashed_with, made, *table)
            if made == len(records):
                return ids
            count = int(self._state[0])
            if 2 * count < len(self._slots):
                return None
            self._slots = np.zeros(2 * len(self._slots), np.uint32)
            kernels.enter(self._hashes, count, self._slots)

    def find(self) -> None:
        """Find the windows of the kept stretches; their words are dropped."""
        count = int(self._state[0])
        laid = LaidWords(Vocabulary(NO_WORDS), self.starts, self.words, np.ones(count, np.bool_), ())
        self._marks = marks_of(laid, self.length, self._amounts[:count])
        self._seen = np.zeros(count, np.uint8)
        del self._words, self._amounts, self._hashes, self._slots

    def hits(self, records: Any, ids: UInt32, kind: int, min_count: int) -> tuple[UInt32, UInt32, UInt8, UInt64]:
        """Return place, windows, whether they are first occurrences, and count, of repeated windows of stretches.

        ``kind`` and ``min_count`` are those of :func:`polars_tadoc.kernels.host.passages.distinct.list_hits`.
        """
        given = np.ascontiguousarray(records["place"]), np.ascontiguousarray(records["size"])
        room = int(given[1].sum(dtype=np.int64))
        made: Any = (np.empty(room, kind) for kind in (np.uint32, np.uint32, np.uint8, np.uint64))
        made = tuple(made)
        count = kernels.list_hits(
            *given, ids, self._seen, self._starts, self.length, kind, min_count, self._marks, *made
        )
        return tuple(one[:count].copy() for one in made)
