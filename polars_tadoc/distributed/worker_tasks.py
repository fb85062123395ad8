"""Analytics in three stages of tasks: find per split, merge per shard, order per range.

*Find*: a worker counts splits and merges the partial results until there are no more or its share of memory is full;
then it splits them into shards, by word, and writes each shard to a file. *Merge*: the partial results of all workers
for one shard are merged, sorted in the order of the result and written in blocks; the first record of each block is
reported. From these, the driver chooses ranges of the result of about equal size. *Order*: the blocks of one range,
from all shards, become one file of the result. So every stage is spread over all workers, and no process ever holds the
whole result.
"""

from __future__ import annotations

import os
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
import polars as pl
import pyarrow as pa

from polars_tadoc.distributed.compute_lock import computing
from polars_tadoc.distributed.file_splits import Files
from polars_tadoc.distributed.pool import Kept
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.execute.document_frequencies import FREQUENCIES, document_frequencies
from polars_tadoc.execute.stages import Stages
from polars_tadoc.execute.terms import Totals
from polars_tadoc.kernels.host.records.by_count import count_order
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.arrow_results import to_arrow
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.records.packed_records import merge_records
from polars_tadoc.records.records import Layout, Records, decode, encode, split
from polars_tadoc.runtime.array_types import Bools, Int64

MERGING = 6
"""Memory of merging, as a multiple of the partial results' size, approximately."""

Place = tuple[Any, ...]
"""Position of a record in the result, or of a word or sequence: places compare like the records."""


@dataclass(frozen=True)
class Job:
    """One call, as workers see it."""

    folder: Path
    """Folder of its files."""
    analytic: Analytic[Any, Any]
    """The analytic."""
    files: Files
    """The input files."""
    labels: str | None
    """The column that labels rows, if any."""
    shards: int
    """Number of shards."""
    room: int
    """Maximum bytes of a worker's partial results."""
    block: int
    """Records per block."""

    @property
    def layout(self) -> Layout:
        """The fields of records."""
        return self.analytic.layout

    @property
    def found_layout(self) -> Layout:
        """The fields of merged records; for weights, of document frequencies."""
        return FREQUENCIES if self.layout.documents else self.layout

    def save(self) -> Path:
        """Write it to a file for workers; return the path."""
        path = self.folder / "job"
        path.write_bytes(pickle.dumps(self))
        return path


@dataclass(frozen=True)
class Block:
    """Consecutive records of a shard, in the order of the result."""

    path: Path
    start: int
    size: int
    """``path``, ``start``, ``size``: The file, and the range of bytes in it."""
    records: int
    """Number of records."""
    place: Place
    """Position of its first record."""


@lru_cache(maxsize=1)
def load(path: Path) -> Job:
    """Read a call; each has a folder of its own."""
    job: Job = pickle.loads(path.read_bytes())
    return job


@dataclass(frozen=True)
class Found:
    """The result of a worker."""

    files: list[tuple[int, Path]]
    """Shards and the file of each."""
    documents: int
    words: int
    """``documents``, ``words``: Totals over the splits, if they are weighed."""


class _Finding:
    """The partial results of this worker that are not handed over yet."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.stages = _stages(job)
        self._merged: list[Records] = []
        self._fresh: list[Records] = []
        self._tasks: set[int] = set()
        self._documents = self._words = 0

    def add(self, number: int, found: list[Records], documents: int, words: int) -> Kept | None:
        """Add the partial results of a split; hand over all if the share of memory is full."""
        self._tasks.add(number)
        self._fresh += found
        self._documents += documents
        self._words += words
        before, fresh = (sum(part.nbytes for part in parts) for parts in (self._merged, self._fresh))
        room = self.job.room // MERGING
        if fresh >= max(before, room // MERGING) or before + fresh > room:
            self._merged, self._fresh = [self._all()], []
            if self._merged[0].nbytes > room:
                return self.hand_over()
        return None

    def hand_over(self) -> Kept:
        """Write the partial results, one file per shard that has some."""
        files: list[tuple[int, Path]] = []
        for shard, part in enumerate(split(self.job.found_layout, self._all(), self.job.shards)):
            if len(part):
                path = self.job.folder / f"found-{min(self._tasks)}-{os.getpid()}-{shard}"
                path.write_bytes(encode(part))
                files.append((shard, path))
        kept = Kept(frozenset(self._tasks), Found(files, self._documents, self._words))
        self._merged, self._fresh, self._tasks = [], [], set()
        self._documents = self._words = 0
        return kept

    def _all(self) -> Records:
        return merge_records(self.job.found_layout, [*self._merged, *self._fresh])


_finding: _Finding | None = None
_lock = threading.Lock()


def _current(job: Job) -> _Finding:
    global _finding
    with _lock:
        if _finding is None or _finding.job.folder != job.folder:  # two threads may have loaded it
            _finding = _Finding(job)
        return _finding


def find(path: Path, number: int) -> Kept | None:
    """Compute the partial result of one split."""
    job = load(path)
    now = _current(job)
    found = [job.analytic.transport.records(part) for part in _parts(job, now.stages, number)]
    with _lock:
        return now.add(number, found, 0, 0)


def find_frequencies(path: Path, number: int) -> Kept | None:
    """Count the words of each row of one split, keep that in a file, and count the rows of each word."""
    job = load(path)
    now = _current(job)
    parts = [job.analytic.transport.records(part) for part in _parts(job, now.stages, number)]
    counted = merge_records(job.layout, parts)
    _terms_file(job, number).write_bytes(encode(counted))
    assert counted.rows is not None
    assert counted.lengths is not None
    found = document_frequencies(counted)
    with _lock:
        return now.add(number, [found], len(counted.rows), int(counted.lengths.sum()))


def _terms_file(job: Job, number: int) -> Path:
    return job.folder / f"terms-{number}"


def hand_over() -> Kept:
    """Hand over this worker's partial results."""
    with _lock:
        return Kept(frozenset(), Found([], 0, 0)) if _finding is None else _finding.hand_over()


def _parts(job: Job, stages: Stages[Any], number: int) -> Iterator[Any]:
    """Yield the partial results of one split; it is prefetched while another split is counted."""
    piece = job.files.pieces[number]
    documents: list[Any]
    if job.files.packed:
        documents = list(job.files.corpora(piece))
    else:
        documents = [job.files.read(piece, [job.files.column])[job.files.column]]
    with computing:
        for one in documents:
            yield from stages.find(one, piece.first_row)


def merge_shard(path: Path, shard: int, found: Sequence[Path]) -> list[Block]:
    """Merge the partial results of a shard, and write them in the order of the result; return the blocks."""
    job = load(path)
    layout, (least, top) = job.found_layout, job.analytic.limits
    merged = merge_records(layout, [decode(layout, _bytes_of(file)) for file in found])
    if merged.counts is not None and least > 1:
        merged = merged.some(layout, merged.counts >= np.uint64(least))
    order = _order(layout, merged)[:top]
    target = job.folder / f"merged-{shard}"
    blocks = []
    with target.open("wb") as file:
        for start in range(0, len(order), job.block):
            chosen = order[start : start + job.block]
            data = encode(merged.some(layout, np.sort(chosen)))
            blocks.append(Block(target, file.tell(), len(data), len(chosen), _place(layout, merged, chosen[0])))
            file.write(data)
    return blocks


def order_range(path: Path, number: int, blocks: Sequence[Block], first: Place | None, stop: Place | None) -> Path:
    """Write a range of the result: the records of some blocks between two places."""
    job = load(path)
    parts = []
    for part in _read(job.layout, blocks):
        kept = np.ones(len(part), np.bool_)
        if first is not None:
            kept &= ~_before(job.layout, part, first)
        if stop is not None:
            kept &= _before(job.layout, part, stop)
        parts.append(part.some(job.layout, kept))
    merged = merge_records(job.layout, parts)
    order = _order(job.layout, merged)[: job.analytic.limits[1]]
    counts = None if merged.counts is None else merged.counts[order]
    ordered = replace(merged, keys=merged.keys[order], counts=counts)
    return _write(job, number, job.analytic.ranged(ordered, all_labels(path)).to_frame())


def answer_piece(path: Path, number: int) -> Path:
    """Compute the result of one split, for results in row order."""
    job = load(path)
    return _finish(job, number, job.analytic.merge(list(_parts(job, _stages(job), number))))


def weigh_piece(path: Path, number: int, documents: int, words: int, blocks: Sequence[Block]) -> Path:
    """Weigh the words of one split's rows, which were counted before, given the totals of all splits."""
    job = load(path)
    counted = decode(job.layout, _bytes_of(_terms_file(job, number)))
    terms = job.analytic.transport.part(counted)
    found = pl.DataFrame(terms.words.series).join(
        _frequencies(path, tuple(blocks)), on="word", how="left", maintain_order="left"
    )
    frequencies = found["count"].fill_null(1).to_numpy()
    terms = replace(terms, known_totals=Totals(documents, words, frequencies))
    return _finish(job, number, terms)


def _stages(job: Job) -> Stages[Any]:
    return Stages(job.analytic, Tokenizer("words"))


def _finish(job: Job, number: int, total: Any) -> Path:
    """Write the result of one split, with the labels of its rows."""
    piece = job.files.pieces[number]
    labels = None if job.labels is None else job.files.labels(piece, job.labels)
    made = job.analytic.finish(total, Labels(labels, piece.first_row), _stages(job).batches)
    return _write(job, number, made.to_frame())


@lru_cache(maxsize=1)
def _frequencies(path: Path, blocks: tuple[Block, ...]) -> pl.DataFrame:
    """Read the document frequencies of words that are in several rows."""
    frames = [pl.DataFrame(schema={"word": pl.String, "count": pl.UInt64})]
    for part in _read(FREQUENCIES, blocks):
        word: Any = pl.from_arrow(part.words.take(to_arrow(part.keys[:, 0].copy())))
        several = pl.col("count") > 1
        frames.append(pl.DataFrame({"word": word, "count": part.counts}).filter(several))
    return pl.concat(frames)


def _bytes_of(path: Path) -> pa.Buffer:
    with pa.OSFile(str(path)) as file:
        return file.read_buffer()


def _read(layout: Layout, blocks: Sequence[Block]) -> Iterator[Records]:
    for block in blocks:
        with pa.OSFile(str(block.path)) as file:  # Arrow's memory can be freed without the interpreter
            file.seek(block.start)
            yield decode(layout, file.read_buffer(block.size))


@lru_cache(maxsize=1)
def all_labels(path: Path) -> Labels:
    """Read the labels of all rows."""
    job = load(path)
    if job.labels is None:
        return Labels(None)
    none = pl.Series(job.labels, [], job.files.schema[job.labels])
    return Labels(pl.concat([none, *(job.files.labels(piece, job.labels) for piece in job.files.pieces)]))


def ranges(blocks: Sequence[Block], count: int) -> Iterator[tuple[list[Block], Place | None, Place | None]]:
    """Cut the result into ``count`` ranges of about equal numbers of blocks; yield the blocks and bounds of each."""
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


def _order(layout: Layout, records: Records) -> Int64:
    """Sort records in the order of the result."""
    if not layout.by_count or records.counts is None:
        return np.arange(len(records))
    return count_order(records.counts)


def _place(layout: Layout, records: Records, record: int) -> Place:
    words = tuple(records.words[int(word)].as_py() for word in records.keys[record, : layout.group])
    if not layout.by_count or records.counts is None:
        return words
    return (-int(records.counts[record]), *words)


def _before(layout: Layout, records: Records, place: Place) -> Bools:
    """Tell which records are before a place."""
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
