"""What analytics find, as sorted tables of numbers over sorted words: the form that is spilled, sent and merged.

Every partial result of every analytic has this form, so that beyond one memory, one GPU or one machine there is one way
to write, split, send and merge all of them. Words are numbered in code point order. A mapping from one part's words to
those of all parts therefore rises, and sorted records stay sorted when their words are numbered anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Kind = Literal["word", "row", "query"]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Layout:
    """What the numbers of an analytic's records mean.

    Parameters
    ----------
    columns
        What each column of ``Records.keys`` holds: a word's number, a row's, or a query's (of a set all parts share).
    group
        Records that agree in so many leading columns make one row of the result, or one document of it, and must not be
        torn apart: 1 where a word has a list of rows, n where a sequence has one.
    counted
        Whether records have counts; those of equal records are added.
    by_count
        Whether results are in the order of falling counts, equal ones in that of keys; else in that of keys.
    documents
        Whether rows that are there count even where they have no record, and how many words each has.

    """

    columns: tuple[Kind, ...]
    group: int
    counted: bool = True
    by_count: bool = False
    documents: bool = False


@dataclass(frozen=True, eq=False)
class Records:
    """Sorted records of an analytic.

    Parameters
    ----------
    words
        Distinct words in code point order; a word's number is its place here. Some may be in no record.
    keys
        uint32[records, columns]: distinct, in lexicographic order; columns as ``Layout.columns`` says.
    counts
        uint64 by record; None where ``Layout.counted`` is false.
    rows
        uint32, ascending: rows that are there; None where ``Layout.documents`` is false.
    lengths
        uint64 by entry of ``rows``: its words, with those that are in no record.

    """

    words: pa.LargeStringArray
    keys: UInt32
    counts: UInt64 | None = None
    rows: UInt32 | None = None
    lengths: UInt64 | None = None

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and the words."""
        arrays = (self.keys, self.counts, self.rows, self.lengths)
        return int(self.words.nbytes) + sum(array.nbytes for array in arrays if array is not None)


def merge_records(layout: Layout, parts: Sequence[Records]) -> Records:
    """Make one of the records of several parts: the definition; equal keys become one and their counts are added."""
    words = np.unique(
        np.concatenate([np.zeros(0, object), *(part.words.to_numpy(zero_copy_only=False) for part in parts)])
    )
    order = {word: place for place, word in enumerate(words)}  # Python orders strings by code points, too
    found: dict[tuple[int, ...], int] = {}
    for part in parts:
        own = [order[word] for word in part.words.to_pylist()]
        counts = [0] * len(part) if part.counts is None else part.counts.tolist()
        for key, count in zip(part.keys.tolist(), counts, strict=True):
            named = tuple(own[n] if kind == "word" else n for n, kind in zip(key, layout.columns, strict=True))
            found[named] = found.get(named, 0) + count
    keys = np.array(sorted(found), np.uint32).reshape(len(found), len(layout.columns))
    lengths: dict[int, int] = {}
    for part in parts:
        if part.rows is not None and part.lengths is not None:
            lengths.update(zip(part.rows.tolist(), part.lengths.tolist(), strict=True))
    return Records(
        pa.array(words.tolist(), pa.large_string()),
        keys,
        np.array([found[key] for key in sorted(found)], np.uint64) if layout.counted else None,
        np.array(sorted(lengths), np.uint32) if layout.documents else None,
        np.array([lengths[row] for row in sorted(lengths)], np.uint64) if layout.documents else None,
    )
