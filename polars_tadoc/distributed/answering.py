"""Analytics in three rounds of tasks: find in pieces, merge shard by shard, put in order range by range.

*Find*: a worker counts pieces and merges what it finds, until there are no more or a share of memory is full; then it
splits that into shards, by the words, and writes each one to a file. *Merge*: what all workers found of one shard is
merged, put into the order of the result, and written in blocks; the first record of each block is reported. From those
the ranges are chosen: stretches of the result of about equal size. *Order*: the blocks of a range, of all shards, become
a file of the result. So each round is spread over all workers, and no process ever holds the whole.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from polars_tadoc.analytics.analytic import Analytic
from polars_tadoc.analytics.records import Layout, Records, decode, encode, merge_records, split
from polars_tadoc.analytics.results import Labels
from polars_tadoc.compress.compress import Compression
from polars_tadoc.column import split as split_column
from polars_tadoc.corpus import Corpus, require_countable
from polars_tadoc.distributed.pool import Kept
from polars_tadoc.distributed.sources import Files, Piece

BLOCK = 1 << 16
"""Records of a block: what is read in vain at the ends of a range is at most one block of each shard."""

MERGING = 6
"""How many times what was found merging takes, about."""

Order = tuple[Any, ...]
"""Where a record stands in the result: tuples compare as the records do."""


@dataclass(frozen=True)
class Job:
    """One call, as workers know it.

    Parameters
    ----------
    folder
        Where its files are.
    analytic
        What is asked.
    files
        What is read.
    labels
        The column that labels rows, if any.
    tokenizer
        How text is cut.
    shards
        How many there are.
    room
        Bytes that a worker may take for what it finds.

    """

    folder: Path
    analytic: Analytic[Any, Any]
    files: Files
    labels: str | None
    tokenizer: Any
    shards: int
    room: int

    @property
    def layout(self) -> Layout:
        """What the numbers of records mean."""
        return self.analytic.layout

    def save(self) -> Path:
        """Write it where workers find it; returns the file."""
        path = self.folder / "job"
        path.write_bytes(pickle.dumps(self))
        return path


@lru_cache(maxsize=1)
def load(path: Path) -> Job:
    """Read a call; each has a folder of its own."""
    job: Job = pickle.loads(path.read_bytes())
    return job


class _Found:
    """What this worker has found and not yet handed over."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.merged: list[Records] = []
        self.fresh: list[Records] = []
        self.tasks: set[int] = set()
        self.handed_over = 0

    def add(self, number: int, found: list[Records]) -> Kept | None:
        """Take what was found in a piece; hands all over where a share of memory is full."""
        self.tasks.add(number)
        self.fresh += found
        before, fresh = (sum(part.nbytes for part in parts) for parts in (self.merged, self.fresh))
        room = self.job.room // MERGING
        if fresh >= max(before, room // MERGING) or before + fresh > room:
            self.merged, self.fresh = [merge_records(self.job.layout, [*self.merged, *self.fresh])], []
            if self.merged[0].nbytes > room // 2:
                return self.hand_over()
        return None

    def hand_over(self) -> Kept:
        """Write what was found, a file for each shard that has some."""
        found = merge_records(self.job.layout, [*self.merged, *self.fresh])
        self.merged, self.fresh = [], []
        tasks, self.tasks = frozenset(self.tasks), set()
        self.handed_over += 1
        written: list[tuple[int, Path]] = []
        for shard, part in enumerate(split(self.job.layout, found, self.job.shards)):
            if len(part):
                path = self.job.folder / f"found-{min(tasks)}-{id(self):x}-{self.handed_over}-{shard}"
                path.write_bytes(encode(part))
                written.append((shard, path))
        return Kept(tasks, written)


_current: _Found | None = None
_lock = threading.Lock()


def find(path: Path, number: int) -> Kept | None:
    """Find what is asked for in one piece."""
    global _current
    job = load(path)
    every = job.analytic.without_limits()
    found = [every.records(part) for part in partials(job, every, job.files.pieces[number])]
    with _lock:
        if _current is None or _current.job is not job:
            _current = _Found(job)
        return _current.add(number, found)


def hand_over() -> Kept:
    """Hand over what this worker has found."""
    global _current
    with _lock:
        found, _current = _current, None
        return Kept(frozenset(), []) if found is None else found.hand_over()


def partials(job: Job, every: Analytic[Any, Any], piece: Piece) -> Iterator[Any]:
    """Answer for one piece, without limits."""
    for corpus in corpora(job, piece):
        require_countable([corpus], every.pairs_per_word)
        yield every.partial(corpus, every.choose_engine(corpus.symbol_count))


def corpora(job: Job, piece: Piece) -> Iterator[Corpus]:
    """Read a piece; text is compressed first."""
    if job.files.packed:
        yield from job.files.corpora(piece, gaps=job.analytic.reads_gaps)
    ...
