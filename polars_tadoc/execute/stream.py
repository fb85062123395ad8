"""Runs an analytic over windows of rows, in memory that does not grow with the number of rows.

Results in row order need only one window in memory. Other results are merged from partial results. Large partial
results are spilled as sorted runs, which are merged while the result is read. So one grammar with its rows must fit in
memory; the column and the result need not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import ExitStack
from itertools import chain
from typing import Any, Generic, Self

import polars as pl

from polars_tadoc.engine.progress import counted
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.execute.aggregation import Part
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.execute.labels import KeptLabels
from polars_tadoc.execute.splits import Pieces, working_bytes
from polars_tadoc.execute.stages import Stages
from polars_tadoc.execute.weight_stream import stream_weights
from polars_tadoc.execute.weights import WeightsRequest
from polars_tadoc.execute.windows import Window, in_parts
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.records import Checkpoint, Spill
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.runtime.free_memory import GROWN_SHARE, give_back_memory
from polars_tadoc.traversal.text_corpus import WORDS, text_corpora

RECORD_BYTES, COLUMN_BYTES = 16, 8
"""Maximum bytes of a record of a partial result: for its count, and per number of its key."""

FRESH_SHARE = 64
"""Partial results of several grammars are merged when they take this share of the limit."""

SPILL_SHARE = 3
"""Records buffered for writing, or read back for merging, take this share of the limit."""

FRAME_BYTES = 1 << 9
"""Approximate maximum bytes per record of a result frame, including work memory."""

FRAME_THREADS = 2
"""Polars holds a frame per thread; with more threads than this, frames are smaller."""

MAX_FRAME = 1 << 20
"""Maximum records of a frame: larger ones are not faster."""


def stream_result(
    windows: Iterable[Window],
    analytic: Analytic[Any, Any],
    labels: str | None,
    limit: int,
    checkpoint: Checkpoint | None = None,
) -> Iterator[pl.DataFrame]:
    """Run an analytic over windows of rows.

    Parameters
    ----------
    windows
        The rows; at least one window, which may be empty. With a checkpoint: an empty window, then one per partition.
    analytic
        The call.
    labels
        Name of the column that labels rows, if any.
    limit
        Memory limit in bytes.
    checkpoint
        Stores partial results of finished partitions.

    Returns
    -------
    iterator of DataFrame
        The result in frames of bounded size, at least one.

    Raises
    ------
    LimitExceededError
        A grammar with its rows does not fit.
    DiskFullError
        Partial results do not fit on the disk.

    """
    windows = counted(windows, analytic.name, lambda window: window.height)
    if isinstance(analytic, WeightsRequest):  # weights of one row depend on all rows
        yield from stream_weights(windows, analytic, labels, limit, checkpoint)
    elif checkpoint is None and analytic.layout.columns[0] == "row":
        stages = Stages(analytic)
        for window in chain.from_iterable(in_parts(window, limit) for window in windows):
            own = Labels(None) if labels is None else Labels(window.frame[labels], window.first)
            found = stages.find_together(window.documents, window.first)
            yield analytic.framed(analytic.finish(found, own, stages.batches))
    else:
        yield from _stream_groups(windows, analytic, labels, limit, checkpoint)


def _stream_groups(
    windows: Iterable[Window],
    analytic: Analytic[Any, Any],
    labels: str | None,
    limit: int,
    checkpoint: Checkpoint | None,
) -> Iterator[pl.DataFrame]:
    """Run an analytic whose results depend on all rows; parameters and errors as for :func:`stream_result`."""
    with KeptLabels(labels, analytic.name, limit) as kept, _Found(analytic, limit, checkpoint) as found:
        for partition, window in enumerate(windows, start=-1):  # the first window has no partition
            kept.keep(window.frame)
            for documents in window.documents:
                if isinstance(documents, pl.Series) and analytic.takes_text:
                    if partition not in found.covered:
                        found.add_text(documents, window.first, partition)
                    continue
                for corpus in _corpora(documents, window.first, analytic):
                    if partition in found.covered:
                        found.count(corpus)
                    else:
                        found.add(corpus, partition)
            del window
        yield from found.frames(kept)


def _corpora(documents: Corpus | pl.Series, first: int, analytic: Analytic[Any, Any]) -> Iterator[Corpus]:
    """Yield the corpora of documents of a window, which may be plain text; ``first`` is the number of its first row."""
    if isinstance(documents, Corpus):
        yield documents
    else:
        yield from text_corpora(documents, analytic.options.tokenizer or WORDS, first)


class _Found(Generic[Part]):
    """Partial results so far: in memory while small, then in a spill."""

    def __init__(self, analytic: Analytic[Part, Any], limit: int, checkpoint: Checkpoint | None = None) -> None:
        self.analytic, self.stages, self.limit = analytic, Stages(analytic), working_bytes(limit)
        self.grown = limit // GROWN_SHARE
        word_bytes = RECORD_BYTES + COLUMN_BYTES * len(analytic.layout.columns)
        self.pieces = Pieces(self.limit, word_bytes * analytic.pairs_per_word)
        self.fresh: list[Part] = []
        self.unfinished: list[int] = []
        self.words = 0
        self.checkpoint = checkpoint
        self.spill: Spill | None = None
        self.open = ExitStack()
        if checkpoint is not None:
            self._spill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self.open.__exit__(*error)

    @property
    def covered(self) -> Set[int]:
        """Partitions in the checkpoint."""
        return frozenset() if self.checkpoint is None else self._spill().covered

    def add(self, corpus: Corpus, partition: int | None = None) -> None:
        """Count in one corpus, a whole partition, and pass on large partial results."""
        self.count(corpus)
        is_bounded = len(self.analytic.layout.columns) == 1  # by the grammar's words, for any number of rows
        for piece in [corpus] if is_bounded else self.pieces.of(corpus):
            if self._is_much:  # of earlier pieces; the last piece's partition finishes below
                self._merge()
            (part,) = self.stages.find(piece)
            self.fresh.append(part)  # partial results that wait for a merge take no device memory
            self.pieces.found = part.nbytes
        if partition is not None:
            self.unfinished.append(partition)
        if self._is_much:
            self._hand_over()

    def add_text(self, text: pl.Series, first: int, partition: int) -> None:
        """Count in plain text, a whole partition: the bytes of text bound each count far below 64 bits."""
        if self._is_much:
            self._merge()
        self.fresh += self.stages.find(text, first)
        self.unfinished.append(partition)
        if self._is_much:
            self._hand_over()

    def count(self, corpus: Corpus) -> None:
        """Raise if counts could exceed 64 bits."""
        self.words += corpus.word_total()
        if self.words * min(self.analytic.pairs_per_word, self.words) >= 1 << 63:
            raise LimitExceededError(f"{self.analytic.name}: the rows contain more than 64 bits can count")

    def frames(self, labels: KeptLabels) -> Iterator[pl.DataFrame]:
        """Yield the result in frames of bounded size."""
        if self.spill is None:
            yield self._finished(self.fresh, labels)
            return
        self._hand_over()
        given = 0
        for records in self._spill().merged(*self.analytic.limits, batch=self.batch):
            given += 1
            yield self.analytic.framed(self.analytic.ranged(records, labels.all()))
            del records
            give_back_memory(self.grown)
        if not given:
            yield self._finished([], labels)

    def _finished(self, parts: Sequence[Any], labels: KeptLabels) -> pl.DataFrame:
        total = self.analytic.merge(parts)
        return self.analytic.framed(self.analytic.finish(total, labels.all(), self.stages.batches))

    @property
    def batch(self) -> int:
        """Records per frame."""
        frames = max(1, pl.thread_pool_size() // FRAME_THREADS)
        return max(1, min(MAX_FRAME, self.limit // (FRAME_BYTES * len(self.analytic.layout.columns) * frames)))

    @property
    def _is_much(self) -> bool:
        return sum(part.nbytes for part in self.fresh) >= self.limit // FRESH_SHARE

    def _merge(self) -> None:
        """Pass partial results to the spill, which writes large ones to disk."""
        if self.fresh:
            part = self.fresh[0] if len(self.fresh) == 1 else self.stages.every.merge(self.fresh)
            self.fresh.clear()
            self._spill().add(self.analytic.transport.records(part))
            del part
            give_back_memory(self.grown)  # otherwise freed memory adds up to half of a small limit

    def _hand_over(self) -> None:
        """Merge, and report finished partitions to the checkpoint."""
        self._merge()
        self._spill().finish(*self.unfinished)
        self.unfinished.clear()

    def _spill(self) -> Spill:
        if self.spill is None:
            room = max(1, self.limit // SPILL_SHARE)
            self.spill = self.open.enter_context(
                Spill(self.analytic.layout, room, call=self.analytic.name, checkpoint=self.checkpoint)
            )
        return self.spill
