"""Analytics in three rounds of tasks: find in pieces, merge shard by shard, put in order range by range.

*Find*: a worker counts pieces and merges what it finds, until there are no more or a share of memory is full; then it
splits that into shards, by the words, and writes each one to a file. *Merge*: what all workers found of one shard is
merged, put into the order of the result and written in blocks; the first record of each block is reported. From those
the ranges are chosen: stretches of the result of about equal size. *Order*: the blocks of a range, of all shards,
become a file of the result. So each round is spread over all workers, and no process ever holds the whole.
"""

from __future__ import annotations

import pickle
import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.analytic import Analytic
from polars_tadoc.analytics.records import Layout, Records, decode, encode, merge_records, split
from polars_tadoc.analytics.results import Labels
from polars_tadoc.column import split_one_by_one
from polars_tadoc.compress.compress import Compression
from polars_tadoc.corpus import Corpus, require_countable
from polars_tadoc.distributed.pool import Kept
from polars_tadoc.distributed.sources import Files, Piece

MERGING = 6
"""How many times what was found merging takes, about."""

Place = tuple[Any, ...]
"""Where a record stands in the result, or those of a word or sequence: places compare as the records do."""


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
    shards
        How many there are.
    room
        Bytes that a worker may take for what it finds.
    block
        Records of a block.

    """

    folder: Path
    analytic: Analytic[Any, Any]
    files: Files
    labels: str | None
    shards: int
    room: int
    block: int

    @property
    def layout(self) -> Layout:
        """What the numbers of records mean."""
        return self.analytic.layout

    @property
    def limited(self) -> bool:
        """Whether some of what is found may be left out."""
        top, least = getattr(self.analytic, "top", None), getattr(self.analytic, "min_count", 1)
        return top is not None or least > 1

    def save(self) -> Path:
        """Write it where workers find it; returns the file."""
        path = self.folder / "job"
        path.write_bytes(pickle.dumps(self))
        return path


@dataclass(frozen=True)
class Block:
    """Records that stand together in the order of the result.

    Parameters
    ----------
    path, start, size
        The file, and which bytes of it.
    records
        Number of records.
    place
        Where the first one stands.

    """

    path: Path
    start: int
    size: int
    records: int
    place: Place


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
    """Answer for one piece, as an analytic asks."""
    if not job.files.packed and type(every).text_partials is not Analytic.text_partials:
        text = job.files.read(piece, [job.files.column])[job.files.column]
        yield from every.text_partials(text, piece.first_row)
        return
    for corpus in corpora(job, piece):
        require_countable([corpus], every.pairs_per_word)
        yield every.partial(corpus, every.choose_engine(corpus.symbol_count))


def corpora(job: Job, piece: Piece) -> Iterator[Corpus]:
    """Read a piece; text is compressed first."""
    if job.files.packed:
        yield from job.files.corpora(piece, gaps=job.analytic.reads_gaps)
        return
    how = Compression.from_arguments(
        like=None,
        tokenizer=None,
        method="batch_repair",
        lossless=job.analytic.reads_gaps,
        rows_per_grammar=None,
        progress=False,
        engine=None,
    )
    column = replace(how, cached=False).run(job.files.read(piece, [job.files.column])[job.files.column])
    for corpus in split_one_by_one(column, cached=False):
        yield replace(corpus, rows=corpus.rows + piece.first_row)


def merge_shard(path: Path, shard: int, found: Sequence[Path]) -> list[Block]:
    """Merge what was found of a shard, and write it in the order of the result; reports the blocks."""
    job = load(path)
    merged = merge_records(job.layout, [decode(job.layout, file.read_bytes()) for file in found])
    if job.limited:  # a shard has all there is of its words: what its own limits leave out is in no result
        merged = job.analytic.records(job.analytic.merge([job.analytic.part(merged)]))
    order = _order(job.layout, merged)
    target = job.folder / f"merged-{shard}"
    blocks = []
    with target.open("wb") as file:
        for start in range(0, len(merged), job.block):
            stop = min(start + job.block, len(merged))
            chosen = np.arange(start, stop) if order is None else order[start:stop]
            data = encode(_some(job.layout, merged, np.sort(chosen)))
            blocks.append(Block(target, file.tell(), len(data), len(chosen), _place(job.layout, merged, chosen[0])))
            file.write(data)
    return blocks


def order_range(path: Path, number: int, blocks: Sequence[Block], first: Place | None, stop: Place | None) -> Path:
    """Write a stretch of the result: the records of some blocks from one place on to another."""
    job = load(path)
    parts = []
    for block in blocks:
        with block.path.open("rb") as file:
            file.seek(block.start)
            part = decode(job.layout, file.read(block.size))
        kept = np.ones(len(part), np.bool_)
        if first is not None:
            kept &= ~_before(job.layout, part, first)
        if stop is not None:
            kept &= _before(job.layout, part, stop)
        counts = None if part.counts is None else part.counts[kept]
        parts.append(replace(part, keys=part.keys[kept], counts=counts))
    merged = merge_records(job.layout, parts)
    total = job.analytic.merge([job.analytic.part(merged)])
    return _write(job, number, job.analytic.result(total, all_labels(path)).to_frame())


def answer_piece(path: Path, number: int) -> Path:
    """Answer for the rows of one piece, whose results are in the order of rows."""
    job = load(path)
    piece = job.files.pieces[number]
    labels = Labels(None)
    if job.labels is not None:
        piece, labels = replace(piece, first_row=0), Labels(job.files.labels(piece, job.labels))
    total = job.analytic.merge(list(partials(job, job.analytic, piece)))
    return _write(job, number, job.analytic.result(total, labels).to_frame())


@lru_cache(maxsize=1)
def all_labels(path: Path) -> Labels:
    """Read what all rows are called."""
    job = load(path)
    if job.labels is None:
        return Labels(None)
    return Labels(pl.concat([job.files.labels(piece, job.labels) for piece in job.files.pieces]))


def ranges(blocks: Sequence[Block], count: int) -> Iterator[tuple[list[Block], Place | None, Place | None]]:
    """Cut the result into so many stretches of about as many blocks; gives what holds each, and where it lies."""
    places = sorted({block.place for block in blocks})
    bounds = [None, *(places[len(places) * number // count] for number in range(1, count)), None]
    of_shards: dict[Path, list[Block]] = {}
    for block in blocks:
        of_shards.setdefault(block.path, []).append(block)
    for first, stop in pairwise(bounds):
        held = []
        for own in of_shards.values():
            ends = [block.place for block in own[1:]] + [None]
            for block, end in zip(own, ends, strict=True):
                if (stop is None or block.place < stop) and (first is None or end is None or end >= first):
                    held.append(block)
        yield held, first, stop


def _write(job: Job, number: int, frame: pl.DataFrame) -> Path:
    path = job.folder / f"result-{number:07d}.parquet"
    frame.write_parquet(path, compression="lz4")
    return path


def _order(layout: Layout, records: Records) -> npt.NDArray[np.int64] | None:
    """Put records into the order of the result; None where they are in it."""
    if not layout.by_count or records.counts is None:
        return None
    rising = np.minimum(records.counts, np.uint64(0xFFFF)).astype(np.uint16)
    order = np.argsort(~rising, kind="stable")  # by radix, as there are 16 bits
    large = int(np.searchsorted(~rising[order], np.uint16(0), side="right"))
    order[:large] = order[:large][np.argsort(~records.counts[order[:large]], kind="stable")]
    return order


def _some(layout: Layout, records: Records, chosen: npt.NDArray[np.int64]) -> Records:
    """Take some records, with their own words."""
    keys = records.keys[chosen]
    used = np.zeros(len(records.words), np.bool_)
    for column, kind in enumerate(layout.columns):
        if kind == "word":
            used[keys[:, column]] = True
    own = np.cumsum(used, dtype=np.uint32) - np.uint32(1)
    for column, kind in enumerate(layout.columns):
        if kind == "word":
            keys[:, column] = own[keys[:, column]]
    words = records.words.take(pa.array(np.flatnonzero(used)))
    return Records(words, keys, None if records.counts is None else records.counts[chosen])


def _place(layout: Layout, records: Records, record: int) -> Place:
    words = tuple(records.words[int(word)].as_py() for word in records.keys[record, : layout.group])
    if not layout.by_count or records.counts is None:
        return words
    return (-int(records.counts[record]), *words)


def _before(layout: Layout, records: Records, place: Place) -> npt.NDArray[np.bool_]:
    """Tell which records stand before a place."""
    less, equal = np.zeros(len(records), np.bool_), np.ones(len(records), np.bool_)
    names: Sequence[str] = place
    if layout.by_count and records.counts is not None:
        count, *names = place
        less, equal = records.counts > np.uint64(-count), records.counts == np.uint64(-count)
    for column, name in enumerate(names):
        ids = records.keys[:, column]
        at = bisect_left(records.words, name, key=lambda word: word.as_py())
        less |= equal & (ids < at)
        equal &= (ids == at) if at < len(records.words) and records.words[at].as_py() == name else np.False_
    return less
