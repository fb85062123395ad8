"""Ranked queries over coded postings on the device (Ding et al., WWW 2009, sections 5 and 6).

OR: a block of threads sums the scores of a tile of documents in shared memory, list by list, and keeps its best ones.
AND: a block intersects a part (stretch) of a query's first list with the other lists. In both cases the best results of
all parts of a query are merged. Results of a part raise the threshold for later parts: k documents that reach a score
exclude all below it. Sums are in the order of a query's lists, so scores have the same bits as on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from polars_tadoc.kernels.postings.coded import BLOCK, Lists, Postings, Queries
from polars_tadoc.kernels.postings.coded_postings_cuda import codec_defines, coded, plain
from polars_tadoc.kernels.primitives.primitives_cuda import exclusive_scan, expand, radix_sort
from polars_tadoc.runtime.device import device_attribute, device_errors, get_kernel

READS_BOUNDS = False
"""A GPU decodes a block faster than it tests a bound."""

MAX_KEPT = 1024
"""Maximum results of a query that parts keep and merge; beyond, all matches are sorted."""

WORKING_MEMORY = 1 << 28
"""Bytes of device memory for the results of parts; a larger batch is processed in turns."""

_TILE_THREADS, _TILE_BLOCKS = 512, 3  # of search_any.cu: threads, and blocks per multiprocessor
_TILE_SHARED = 13 << 10  # static shared memory of score_tiles, and the device's share of each block's
_MIN_TILE = 2048
_SLOTS = 4096  # of search_any.cu
_STRETCH_THREADS, _STRETCH = 128, 4  # of search_all.cu
_MIN_ROOM = 64  # fewer keys of a part are kept without selection
_MAX_MERGED, _FEW_QUERIES = 1 << 18, 8  # one block merges a query's keys; sorting all matches is faster beyond
_MERGE_THREADS, _WIDE_MERGE_THREADS, _MERGES = 128, 512, 256


def search(
    postings: Postings,
    norms: Any,
    bounds: Any,
    queries: Queries,
    k: int,
    require_all: bool,
    allowed: Any = None,
    extra: Lists | None = None,
) -> tuple[Any, Any, Any]:
    """Return the best documents of each query.

    Parameters and result as for :func:`polars_tadoc.kernels.search.reference.search`, as cupy arrays. ``bounds`` is
    unused: decoding a block costs less than testing its bound.
    """
    count = len(queries.offsets) - 1
    with device_errors(f"searching for {count:,} queries"):
        import cupy

        found = cupy.zeros(count, np.int64)
        documents, scores = cupy.zeros((count, k), np.uint32), cupy.zeros((count, k), np.float32)
        kept = min(k, postings.documents)
        if count == 0 or kept == 0:
            return found, documents, scores
        batch = _Batch(postings, norms, queries, require_all, allowed, extra)
        if kept > MAX_KEPT:
            batch.sort_all(kept, found, documents, scores)
        elif require_all:
            batch.intersect(kept, found, documents, scores)
        else:
            batch.score(kept, found, documents, scores)
        return found, documents, scores


class _Batch:
    """A batch of queries on the device."""

    def __init__(
        self, postings: Postings, norms: Any, queries: Queries, require_all: bool, allowed: Any, extra: Lists | None
    ) -> None:
        import cupy

        self.count = len(queries.offsets) - 1
        self.documents = postings.documents
        self.require_all = require_all
        self.queries = _load_queries(queries)
        self.extra = None if extra is None else Lists(*map(cupy.asarray, extra))
        self.allowed = None if allowed is None else cupy.asarray(allowed)
        self.device = cupy.cuda.runtime.getDevice()
        self.defines = codec_defines(postings)
        sizes = {"THREADS": _TILE_THREADS, "BLOCKS_PER_MULTIPROCESSOR": _TILE_BLOCKS}
        self.tile_defines = (*self.defines, *(f"-D{macro}={value}" for macro, value in sizes.items()))
        self.lists = (coded(postings), plain(self.extra))
        self.read = (*self.lists, norms, self.allowed)

    def score(self, k: int, found: Any, documents: Any, scores: Any) -> None:
        """Answer OR queries."""
        import cupy

        room = _room(k)
        tiles, tile_size = _cut(self.documents, self.count, room)
        if tiles * k > _MAX_MERGED and self.count < _FEW_QUERIES:
            self.sort_all(k, found, documents, scores)
            return
        floors, written = cupy.zeros((2, self.count), np.uint64)
        most = max(1, WORKING_MEMORY // (8 * room * tiles))
        for first in range(0, self.count, most):
            turn = slice(first, min(first + most, self.count))
            size = turn.stop - first
            keys = cupy.empty(size * tiles * room, np.uint64)
            chosen, counts = cupy.empty((2, size), np.uint32), cupy.zeros(2, np.uint32)
            offsets = self.queries.offsets[first:]
            get_kernel("search_any", "sort_out", self.tile_defines)(
                (-(-size // 8),), (256,), (*self.lists, offsets, self.queries.lists, np.uint32(size), chosen, counts)
            )
            kept = (np.uint32(k), np.uint32(room), floors[turn], written[turn], keys)
            _shared_kernel(self.device, "score_few", self.tile_defines)(
                (size,),
                (_TILE_THREADS,),
                (
                    *(*self.read, offsets, self.queries.lists, self.queries.weights),
                    *(chosen[0], counts, np.uint32(tiles), *kept),
                ),
                shared_mem=8 * _SLOTS + 8 * room,
            )
            self._launch_tiles(turn, chosen[1], counts[1:], tiles, tile_size, *kept)
            _merge(
                size,
                *(keys, None, np.uint64(0), np.uint32(tiles), np.uint32(room), floors[turn], written[turn]),
                *(np.uint32(k), np.uint64(scores.shape[1]), found[turn], documents[turn], scores[turn]),
            )

    def intersect(self, k: int, found: Any, documents: Any, scores: Any) -> None:
        """Answer AND queries."""
        import cupy

        room = min(_room(k), _STRETCH * BLOCK)
        starts, _ = self._plan()
        before = starts.get()  # synchronize!
        owners = expand(starts, int(before[-1]))
        floors, written = cupy.zeros((2, self.count), np.uint64)
        for turn in _turns(before, max(1, WORKING_MEMORY // (8 * room))):
            keys = cupy.empty(int(before[turn.stop] - before[turn.start]) * room, np.uint64)
            self._launch_stretches(before, turn, owners, starts, k, room, floors, written, keys)
            _merge(
                turn.stop - turn.start,
                *(keys, starts[turn], np.uint64(before[turn.start]), np.uint32(0), np.uint32(room)),
                *(floors[turn], written[turn], np.uint32(k), np.uint64(scores.shape[1])),
                *(found[turn], documents[turn], scores[turn]),
            )

    def sort_all(self, k: int, found: Any, documents: Any, scores: Any) -> None:
        """Answer queries with very many results, one by one: all matches are sorted."""
        import cupy

        starts, most = self._plan()
        before, capacities = starts.get(), most.get()  # synchronize!
        owners = expand(starts, int(before[-1])) if self.require_all else None
        floors = cupy.zeros(self.count, np.uint64)
        tiles, tile_size = _cut(self.documents, 1, 0)
        for query in range(self.count):
            keys, written = cupy.empty(int(capacities[query]), np.uint64), cupy.zeros(1, np.uint64)
            turn = slice(query, query + 1)
            if self.require_all:
                self._launch_stretches(before, turn, owners, starts, k, 0, floors, written, keys)
            else:
                kept = (np.uint32(k), np.uint32(0), floors, written, keys)
                self._launch_tiles(turn, None, None, tiles, tile_size, *kept)
            matched = int(written.get()[0])  # synchronize!
            size = min(matched, k)
            found[query] = size
            if size:
                ordered = radix_sort(keys[:matched], overwrite=True)
                get_kernel("merge_best", "write_best")(
                    (-(-size // 256),), (256,), (ordered, np.uint64(size), documents[query], scores[query])
                )

    def _plan(self) -> tuple[Any, Any]:
        """Return the number of stretches before each query, and the maximum number of its results."""
        import cupy

        stretches, most = cupy.empty(self.count, np.uint32), cupy.empty(self.count, np.int64)
        get_kernel("search_all", "plan_queries", self.defines)(
            (-(-self.count // 8),),
            (256,),
            (
                *(*self.lists, self.queries.offsets, self.queries.lists, np.uint32(self.count)),
                *(np.uint32(self.require_all), stretches, most),
            ),
        )
        return exclusive_scan(stretches), most

    def _launch_tiles(self, turn: slice, chosen: Any, count: Any, tiles: int, tile_size: int, *kept: Any) -> None:
        _shared_kernel(self.device, "score_tiles", self.tile_defines)(
            ((turn.stop - turn.start) * tiles,),
            (_TILE_THREADS,),
            (
                *(*self.read, self.queries.offsets[turn.start :], self.queries.lists, self.queries.weights),
                *(chosen, count, np.uint32(tiles), np.uint32(tile_size), *kept),
            ),
            shared_mem=4 * tile_size + 8 * int(kept[1]),
        )

    def _launch_stretches(
        self, before: Any, turn: slice, owners: Any, starts: Any, k: int, room: int, *kept: Any
    ) -> None:
        stretches = int(before[turn.stop] - before[turn.start])
        if stretches:
            get_kernel("search_all", "intersect", self.defines)(
                (stretches,),
                (_STRETCH_THREADS,),
                (
                    *(*self.read, *self.queries, np.uint64(before[turn.start]), owners, starts),
                    *(np.uint32(k), np.uint32(room), *kept),
                ),
                shared_mem=8 * room,
            )


def _load_queries(queries: Queries) -> Queries:
    """Copy queries to the device unless they are there."""
    import cupy

    if isinstance(queries.offsets, cupy.ndarray):
        return queries
    arrays = [
        np.ascontiguousarray(array, dtype)
        for array, dtype in zip(queries, (np.int64, np.uint32, np.float32), strict=True)
    ]
    together = cupy.asarray(np.concatenate([array.view(np.uint8) for array in arrays]))
    stops = np.cumsum([array.nbytes for array in arrays])
    return Queries(
        *(
            together[int(stop) - array.nbytes : int(stop)].view(array.dtype)
            for array, stop in zip(arrays, stops, strict=True)
        )
    )


def _room(k: int) -> int:
    """Return the number of keys that a part may keep: more than k, so that exact selection is rarely needed."""
    return max(2 * k, _MIN_ROOM)


def _cut(documents: int, queries: int, room: int) -> tuple[int, int]:
    """Return the number of tiles of documents, and their size.

    Few queries are split further to occupy all multiprocessors, and many tiles into whole rounds of them.
    """
    whole, offered = (device_attribute(f"MaxSharedMemoryPer{of}") for of in ("Multiprocessor", "BlockOptin"))
    for blocks in range(_TILE_BLOCKS, 0, -1):
        most = (min(whole // blocks, offered) - _TILE_SHARED - 8 * room) // 4
        if most >= _MIN_TILE:
            break
    resident = blocks * device_attribute("MultiProcessorCount")
    tiles = max(-(-documents // most), min(resident // queries, documents // _MIN_TILE), 1)
    if tiles > resident:
        tiles = -(-tiles // resident) * resident
    tile_size = min(-(-documents // tiles) + BLOCK - 1, most) // BLOCK * BLOCK
    return -(-documents // tile_size), tile_size


def _turns(before: Any, most: int) -> Iterator[slice]:
    """Split queries into turns of at most ``most`` stretches, and at least one query each."""
    first = 0
    while first < len(before) - 1:
        stop = int(np.searchsorted(before, before[first] + most, "right")) - 1
        stop = max(first + 1, stop)
        yield slice(first, stop)
        first = stop


@cache
def _shared_kernel(device: int, name: str, defines: tuple[str, ...]) -> Any:
    """Return a kernel that may use all shared memory of the current device."""
    kernel = get_kernel("search_any", name, defines)
    kernel.max_dynamic_shared_size_bytes = device_attribute("MaxSharedMemoryPerBlockOptin") - _TILE_SHARED
    return kernel


def _merge(queries: int, *arguments: Any) -> None:
    threads = _MERGE_THREADS if queries >= _MERGES else _WIDE_MERGE_THREADS
    get_kernel("merge_best", "merge_best", (f"-DTHREADS={threads}",))((queries,), (threads,), arguments)
