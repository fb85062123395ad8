"""Repeated passages in five stages of tasks.

*List*: a worker finds the stretches of a split's windows, and writes their hashes, by shard. *Share*: of each shard,
the hashes that occur more than once, over all splits. *Send*: the stretches of a split with such hashes, with their
words, by shard. *Find*: all windows of a shard, compared word by word; those that are repeated are written by split.
*Finish*: the passages of a split, or its rows without them. Matches with a reference need one stage only.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from polars_tadoc.analytics.cleaning.drop_repeats import DropRepeatsRequest
from polars_tadoc.analytics.cleaning.laid_words import LaidWords, lay_out_window
from polars_tadoc.analytics.cleaning.overlap import OverlapRequest
from polars_tadoc.analytics.cleaning.passages import PassageSearch
from polars_tadoc.analytics.cleaning.repeats import RepeatsRequest
from polars_tadoc.analytics.cleaning.sent_near import NearRequest
from polars_tadoc.analytics.cleaning.sent_stretches import OwnStretches, find_repeated, repeated_keys
from polars_tadoc.distributed.compute_lock import computing
from polars_tadoc.distributed.file_splits import Files
from polars_tadoc.execute.windows import Window
from polars_tadoc.kernels.host.passages.stretches import Grams, draw_grams
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.runtime.array_types import array_dataclass

PassageRequest = RepeatsRequest | DropRepeatsRequest | OverlapRequest


@dataclass(frozen=True)
class Part:
    """Data from one task for another: a range of bytes in a file."""

    path: Path
    start: int
    size: int


@array_dataclass
class PassageJob:
    """One call, as workers see it."""

    folder: Path
    """Folder of its files."""
    request: PassageRequest | NearRequest
    files: Files
    """The input files."""
    labels: str | None
    """The column that labels rows, if any."""
    shards: int
    """Number of shards."""
    grams: Grams | None
    """The same in all workers; None for calls that compare no windows with one another."""

    @classmethod
    def of(
        cls, folder: Path, request: PassageRequest | NearRequest, files: Files, labels: str | None, shards: int
    ) -> PassageJob:
        """Draw the grams."""
        grams = draw_grams(request.length) if isinstance(request, RepeatsRequest | DropRepeatsRequest) else None
        return cls(folder, request, files, labels, shards, grams)

    def save(self) -> Path:
        """Write it to a file for workers; return the path."""
        path = self.folder / "job"
        path.write_bytes(pickle.dumps(self))
        return path

    def window(self, number: int) -> Window:
        """Read the words of a split's rows."""
        piece, files = self.files.pieces[number], self.files
        if files.packed:
            return Window(piece.first_row, pl.DataFrame(height=piece.rows), tuple(files.corpora(piece)))
        column = files.read(piece, [files.column])[files.column]
        return Window(piece.first_row, pl.DataFrame(height=piece.rows), (), column)

    def laid(self, number: int) -> LaidWords:
        """Lay out the words of a split's rows."""
        assert not isinstance(self.request, OverlapRequest)
        window, request = self.window(number), self.request
        return lay_out_window(window, request.name, request.tokenizer, request.morphism)

    def stretches(self, number: int) -> OwnStretches:
        """Find the stretches of a split's rows."""
        assert self.grams is not None
        return OwnStretches.of(self.laid(number), self.grams)

    def row_labels(self, number: int) -> Labels:
        """Read the labels of a split's rows."""
        piece = self.files.pieces[number]
        values = None if self.labels is None else self.files.labels(piece, self.labels)
        return Labels(values, piece.first_row)

    def write(self, number: int, frame: pl.DataFrame) -> Path:
        """Write a part of the result."""
        path = self.folder / f"result-{number:07d}.parquet"
        frame.write_parquet(path, compression="lz4")
        return path


@lru_cache(maxsize=1)
def load(path: Path) -> PassageJob:
    """Read the call from the file for workers."""
    job: PassageJob = pickle.loads(path.read_bytes())
    return job


def write(path: Path, values: Iterable[Any]) -> list[Part]:
    """Write values for other tasks; return where each is."""
    parts = []
    with path.open("wb") as file:
        for value in values:
            start = file.tell()
            pickle.dump(value, file, protocol=5)
            parts.append(Part(path, start, file.tell() - start))
    return parts


def read(parts: Sequence[Part]) -> list[Any]:
    """Read what other tasks wrote."""
    values = []
    for part in parts:
        with part.path.open("rb") as file:
            file.seek(part.start)
            values.append(pickle.load(file))
    return values


def list_keys(path: Path, number: int) -> list[Part]:
    """Write the hashes of a split's stretches; return a part for each shard."""
    job = load(path)
    with computing:
        return write(job.folder / f"keys-{number}", job.stretches(number).keys(job.shards))


def share_keys(path: Path, shard: int, parts: Sequence[Part]) -> Path:
    """Write the hashes of a shard that occur more than once."""
    file = load(path).folder / f"shared-{shard}.npy"
    np.save(file, repeated_keys(read(parts)))
    return file


def send_stretches(path: Path, number: int, shared: Sequence[Path]) -> list[Part]:
    """Write a split's stretches that may be repeated; return a part for each shard."""
    job = load(path)
    keys = np.concatenate([np.load(file) for file in shared])  # ascending: shards are ranges of hashes
    with computing:
        return write(job.folder / f"sent-{number}", job.stretches(number).with_keys(keys).sent(job.shards))


def find_windows(path: Path, shard: int, parts: Sequence[Part]) -> list[Part]:
    """Write the repeated windows of a shard; return a part for each split."""
    job = load(path)
    assert job.grams is not None
    with computing:
        return write(job.folder / f"found-{shard}", find_repeated(read(parts), job.grams.length))


def finish(path: Path, number: int, parts: Sequence[Part]) -> Path:
    """Write the result of a split."""
    job = load(path)
    request, piece = job.request, job.files.pieces[number]
    assert isinstance(request, RepeatsRequest | DropRepeatsRequest)
    with computing:
        found = PassageSearch.of(request).joined(piece.first_row, job.laid(number), read(parts))
        if isinstance(request, RepeatsRequest):
            return job.write(number, found.frame(job.row_labels(number)))
        are_kept = pl.Series(found.shares < request.share)
        return job.write(number, request.without(job.files.rows(piece), job.files.column, found.cuts, are_kept))


def match(path: Path, number: int) -> Path:
    """Write the matches of a split's rows with a reference."""
    job = load(path)
    assert isinstance(job.request, OverlapRequest)
    with computing:
        found = job.request.frame_of(job.window(number), job.files.column, job.row_labels(number))
    return job.write(number, found)
