"""Near duplicates in five stages of tasks.

*Sign*: a worker writes the keys of the signatures of a split's distinct rows, by shard. *Join*: of each shard, rows
with equal keys. *Assign*: one task joins these over all shards, and gives each component of rows to a shard. *Send*:
the rows of components of a split, with their words, by shard. *Compare*: the rows of a shard, as in memory; results are
written by split. *Finish*: the result of a split, with copies that only this split has.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from polars_tadoc.analytics.cleaning.sent_near import NearRequest, SignedRows, compare, components_of, edges_of
from polars_tadoc.distributed.compute_lock import computing
from polars_tadoc.distributed.passage_tasks import Part, PassageJob, load, read, write
from polars_tadoc.runtime.array_types import UInt32


def _request(job: PassageJob) -> NearRequest:
    assert isinstance(job.request, NearRequest)
    return job.request


def _signed(job: PassageJob, number: int) -> SignedRows:
    return SignedRows.of(_request(job), job.laid(number), job.files.pieces[number].first_row)


def _assigned(job: PassageJob, number: int, file: Path) -> tuple[UInt32, UInt32]:
    """Return the rows of a split that are in components, and the shard of each."""
    rows, shards = np.load(file, mmap_mode="r")
    piece = job.files.pieces[number]
    first, stop = np.searchsorted(rows, [piece.first_row, piece.first_row + piece.rows])
    return np.array(rows[first:stop]), np.array(shards[first:stop])


def sign(path: Path, number: int) -> list[Part]:
    """Write the keys of a split's rows; return a part for each shard."""
    job = load(path)
    with computing:
        return write(job.folder / f"keys-{number}", _signed(job, number).keys(job.shards))


def join(path: Path, shard: int, parts: Sequence[Part]) -> Part:
    """Write the rows of a shard with equal keys."""
    keys, rows = (np.concatenate(some) for some in zip(*read(parts), strict=True))
    return write(load(path).folder / f"edges-{shard}", [edges_of(keys, rows)])[0]


def assign(path: Path, _: int, parts: Sequence[Part]) -> Path:
    """Write the rows of components, and the shard that compares each."""
    job = load(path)
    rows, roots = components_of(read(parts))
    mixed = roots * np.uint32(0x9E3779B1) >> np.uint32(16)
    file = job.folder / "components.npy"
    np.save(file, np.stack([rows, mixed % np.uint32(job.shards)]))
    return file


def send(path: Path, number: int, components: Path) -> list[Part]:
    """Write a split's rows of components; return a part for each shard."""
    job = load(path)
    with computing:
        sent = _signed(job, number).sent(*_assigned(job, number, components), job.row_labels(number), job.shards)
        return write(job.folder / f"sent-{number}", sent)


def compare_rows(path: Path, shard: int, parts: Sequence[Part]) -> tuple[list[Part], int]:
    """Write the results of a shard; return a part for each split, and the number of candidates."""
    job = load(path)
    with computing:
        found, candidates = compare(_request(job), read(parts))
        edges = np.searchsorted(found["row"].sort(), [piece.first_row for piece in job.files.pieces]).tolist()
        found = found.sort("row")
        own = [found[first:stop] for first, stop in zip(edges, [*edges[1:], len(found)], strict=True)]
        return write(job.folder / f"found-{shard}", own), candidates


def finish(path: Path, number: int, given: tuple[Path, Sequence[Part]]) -> Path:
    """Write the result of a split, given the components and the results of shards."""
    job, (components, parts) = load(path), given
    with computing:
        sent, _ = _assigned(job, number, components)
        return job.write(number, _signed(job, number).finish(sent, read(parts), job.row_labels(number)))
