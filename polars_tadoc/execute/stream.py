"""Answers an analytic over the rows of a lazy plan batch by batch, in memory that does not grow with the rows.

Rows are gathered until a share of the limit is full, and go through the kernels grammar by grammar. What is found is
merged, and what does not stay small goes to the disk as sorted runs, which are merged in the end while the result is
read. So one grammar with its rows is what has to fit; neither the column nor the result need.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any, Generic, Self

import numpy as np
import numpy.typing as npt
import polars as pl
import polars.selectors as cs

from polars_tadoc.config import MOST
from polars_tadoc.engine.device_batches import DeviceBatches
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.execute.analytic import Analytic, Made, Part
from polars_tadoc.execute.labels import KeptLabels
from polars_tadoc.execute.splits import Pieces, working_bytes
from polars_tadoc.model.column import split_one_by_one
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.payload import short_name
from polars_tadoc.model.text_type import STORAGE, storage
from polars_tadoc.packed.pushdown import PackedQuestion
from polars_tadoc.records import Checkpoint, Spill
from polars_tadoc.runtime.free_memory import GROWN_SHARE, give_back_memory
from polars_tadoc.runtime.io_source import batches
from polars_tadoc.runtime.prefetch import read_ahead

ROWS_SHARE = 64
"""Rows that wait take at most so small a share of the limit."""

TEXT_SHARE = 16
"""Text that waits takes at most so small a share of the limit; cutting it into words takes some times as much."""

FRESH_SHARE = 64
"""What was found in several grammars waits to be merged until it takes such a share of the limit."""

SPILL_SHARE = 3
"""What waits to be written, or to be merged when it was read again, takes such a share of the limit."""

FRAME_BYTES = 1 << 9
"""What a record takes in a frame of the result, with what is at work on it, at most about."""

FRAME_THREADS = 2
"""Polars holds a frame for each of its threads; where it has more threads than this, frames are smaller."""

MAX_FRAME = 1 << 20
"""Records of a frame: more are no faster."""

AHEAD_SHARE = 4
"""While a partition is worked on that takes at most such a share of the limit, the next one is read."""

SYMBOL_BYTES = 40
"""What kernels take for each symbol of a grammar and its rows, about (``benchmarks.streaming_analytics``)."""

MAX_ROWS = 1 << 32
"""Results number rows in 32 bits."""

TOO_MANY_ROWS = f"the plan has more than {MAX_ROWS:,} rows, which results number in 32 bits"


def run_stream(
    plan: pl.LazyFrame, column: str, labels: str | None, analytic: Analytic[Part, Made], limit: int
) -> Iterator[pl.DataFrame]:
    """Answer an analytic over a compressed column of a plan, which runs in Polars' streaming engine.

    Parameters
    ----------
    plan
        The plan.
    column, labels
        Names of the compressed column and of the one that labels rows, if any.
    analytic
        What is asked; its records do not begin with a row.
    limit
        Bytes.

    Raises
    ------
    LimitExceededError
        One grammar with its rows does not fit.
    DiskFullError
        What does not fit into memory does not fit on the disk.

    """
    names = [column] if labels in (None, column) else [column, labels]
    read = plan.select(cs.by_name(*names))
    with KeptLabels(labels, analytic.name, limit) as kept:
        kept.keep(read.collect_schema().to_frame())  # of a plan without rows there may be no batch
        columns = (kept.keep(batch)[column] for batch in batches(read))
        corpora = corpora_of_batches(columns, limit, analytic.reads_gaps)
        with _Found(analytic, limit) as found:
            for corpus in corpora:
                found.add(corpus)
            yield from found.frames(kept)


def run_packed(
    question: PackedQuestion,
    labels: str | None,
    analytic: Analytic[Part, Made],
    limit: int | None,
    checkpoint: Checkpoint | None = None,
) -> Iterator[pl.DataFrame]:
    """Answer an analytic over documents of a packed scan, without making rows of them.

    Parameters
    ----------
    question
        The documents.
    labels
        Name of the column that labels rows, if any.
    analytic
        What is asked.
    limit
        Bytes; None to hold all partitions, and keep their grammars for the next call.
    checkpoint
        Where what was found in each partition is kept, and found again.

    Raises
    ------
    LimitExceededError
        One grammar with its rows does not fit.
    DiskFullError
        What does not fit into memory does not fit on the disk.

    """
    others = [] if labels is None else [labels]
    with KeptLabels(labels, analytic.name, MOST if limit is None else limit) as kept:
        kept.keep(question.scan.schema.to_frame())
        if limit is None:
            corpora = list(_labelled(question.corpora(others, cached=True), kept))
            yield analytic.answer(corpora, kept.all()).to_frame()
            return
        require_fitting_footers(question, limit)
        with _Found(analytic, limit, checkpoint) as found:
            parts = _labelled(question.corpora(others, cached=False, gaps=analytic.reads_gaps), kept)
            # the next partition is read while one is worked on that leaves room for it
            ahead = read_ahead(parts, lambda corpus: _needed(corpus) <= limit // AHEAD_SHARE)
            for partition, corpus in enumerate(ahead):
                if partition in found.covered:
                    found.count(corpus)
                else:
                    found.add(_fitting(corpus, limit), partition)
            yield from found.frames(kept)


def _labelled(found: Iterable[tuple[pl.DataFrame, Corpus]], kept: KeptLabels) -> Iterator[Corpus]:
    for frame, corpus in found:
        if corpus.document_count and corpus.rows[-1] >= MAX_ROWS:
            raise LimitExceededError(TOO_MANY_ROWS)
        kept.keep(frame)
        yield corpus


def corpora_of_batches(batches: Iterable[pl.Series], limit: int, gaps: bool = False) -> Iterator[Corpus]:
    """Gather the rows of batches grammar by grammar; a grammar's rows may come in several corpora.

    Parameters
    ----------
    batches
        Compressed columns, one after another.
    limit
        Bytes; rows that wait take at most a share of it and a batch.
    gaps
        Keep what stood between words; most analytics do not read it.

    """
    held, numbers, size, first = [pl.Series("text", [], STORAGE)], [np.zeros(0, np.int64)], 0, 0
    for own in batches:
        batch = storage(own)
        if first + len(batch) > MAX_ROWS:
            raise LimitExceededError(TOO_MANY_ROWS)
        held.append(batch.alias("text") if gaps else _without_gaps(batch))
        numbers.append(np.arange(first, first + len(batch)))
        first += len(batch)
        size += _nbytes(held[-1])
        if size >= limit // ROWS_SHARE:
            column, rows = pl.concat(held), np.concatenate(numbers)
            later = _of_last_grammar(column)  # of which more may come
            yield from _corpora(column.filter(~later), rows[~later.to_numpy()], limit)
            held, numbers = [column.filter(later)], [rows[later.to_numpy()]]
            size = _nbytes(held[0])
    yield from _corpora(pl.concat(held), np.concatenate(numbers), limit)


def _corpora(column: pl.Series, rows: npt.NDArray[np.int64], limit: int) -> Iterator[Corpus]:
    for corpus in split_one_by_one(column, cached=False):
        yield replace(_fitting(corpus, limit), rows=rows[corpus.rows])


def require_fitting_footers(question: PackedQuestion, limit: int) -> None:
    """Refuse a limit that a partition passes by what its file's footer says, before any is read.

    Raises
    ------
    LimitExceededError
        One grammar with its rows does not fit.

    """
    if _may_read_some(question):
        return
    for place, symbols, word_bytes in question.grammar_sizes():
        needed = SYMBOL_BYTES * symbols + word_bytes
        if needed > limit:
            raise _too_large(f"the grammar of {place}", needed, limit)


def suits_gpu(question: PackedQuestion, limit: int, repays_at: float) -> bool:
    """Tell by footers whether a GPU repays on some partition, and each fits the limit that CuPy leaves."""
    if _may_read_some(question):
        return True
    sizes = [(symbols, SYMBOL_BYTES * symbols + word_bytes) for _, symbols, word_bytes in question.grammar_sizes()]
    return any(symbols >= repays_at for symbols, _ in sizes) and all(needed <= limit for _, needed in sizes)


def _may_read_some(question: PackedQuestion) -> bool:
    """Tell whether perhaps not all partitions are read that a question may read."""
    return question.limit is not None or question.scan.skips


def _needed(corpus: Corpus) -> int:
    """Bytes that a grammar with its rows takes, and the kernels that read it, about."""
    return corpus.grammar.nbytes + SYMBOL_BYTES * corpus.symbol_count


def _fitting(corpus: Corpus, limit: int) -> Corpus:
    needed = _needed(corpus)
    if needed > limit:
        raise _too_large(short_name(corpus.key), needed, limit)
    return corpus


def _too_large(what: str, needed: int, limit: int) -> LimitExceededError:
    return LimitExceededError(
        f"{what} and its rows take about {needed:,} bytes, more than memory_limit={limit:,}; "
        "raise it, or make smaller grammars: compress(rows_per_grammar=…)"
    )


def _without_gaps(column: pl.Series) -> pl.Series:
    """Drop what most analytics do not read."""
    column = column.alias("text")  # Polars' own calls take some names for patterns
    gaps = pl.Series("gaps", [None], pl.Binary).new_from_index(0, len(column))
    return pl.DataFrame([column.struct.field("grammar"), column.struct.field("symbols"), gaps]).to_struct("text")


def _nbytes(column: pl.Series) -> int:
    """Bytes of rows."""
    gaps = int(column.struct.field("gaps").bin.size().sum())
    return 4 * int(column.struct.field("symbols").list.len().sum()) + gaps + 40 * len(column)


def _of_last_grammar(column: pl.Series) -> pl.Series:
    """Tell the rows of the last row's grammar; none where that is the only one."""
    codes = column.struct.field("grammar").to_physical()
    used = codes.drop_nulls()
    if used.n_unique() < 2:
        return pl.Series([False]).new_from_index(0, len(codes))
    same: pl.Series = codes == used[-1]
    return same.fill_null(False)


class _Found(Generic[Part]):
    """What was found so far: in memory as long as it is little, then in a spill."""

    def __init__(self, analytic: Analytic[Part, Any], limit: int, checkpoint: Checkpoint | None = None) -> None:
        self.analytic, self.every, self.limit = analytic, analytic.without_limits(), working_bytes(limit)
        self.grown = limit // GROWN_SHARE
        self.batches = DeviceBatches(analytic.name, analytic.options.engine)
        self.pieces = Pieces(self.limit, analytic.bytes_per_word)
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.open.__exit__(kind, error, trace)

    @property
    def covered(self) -> Set[int]:
        """Partitions that a checkpoint has."""
        return frozenset() if self.checkpoint is None else self._spill().covered

    def add(self, corpus: Corpus, partition: int | None = None) -> None:
        """Answer for one corpus, all of a partition, and hand over what was found where it is much."""
        self.count(corpus)
        engine = self.analytic.choose_engine(corpus.symbol_count)
        is_bounded = len(self.analytic.layout.columns) == 1  # by the words of the grammar, however many rows there are
        for piece in [corpus] if is_bounded else self.pieces.of(corpus):
            if self._is_much:  # of earlier pieces; the last one's partition is finished below
                self._merge()
            part = self.every.on_host(self.every.partial_in(self.batches, piece, engine))
            self.fresh.append(part)  # what waits to be merged takes no memory of a device
            self.pieces.found = part.nbytes
        if partition is not None:
            self.unfinished.append(partition)
        if self._is_much:
            self._hand_over()

    def count(self, corpus: Corpus) -> None:
        """Check that no count can wrap 64 bits."""
        self.words += corpus.word_total()
        if self.words * min(self.analytic.pairs_per_word, self.words) >= 1 << 63:
            raise LimitExceededError(f"{self.analytic.name}: the rows stand for more than 64 bits can count")

    def frames(self, labels: KeptLabels) -> Iterator[pl.DataFrame]:
        """Give the result, so many rows at a time."""
        if self.spill is None:
            yield self.analytic.finish(self.analytic.merge(self.fresh), labels.all(), self.batches).to_frame()
            return
        self._hand_over()
        given = 0
        for records in self._spill().merged(*self.analytic.limits, batch=self.batch):
            given += 1
            yield self.analytic.ranged(records, labels.all()).to_frame()
            del records
            give_back_memory(self.grown)
        if not given:
            yield self.analytic.finish(self.analytic.merge([]), labels.all(), self.batches).to_frame()

    @property
    def batch(self) -> int:
        """Records that one frame is made of."""
        frames = max(1, pl.thread_pool_size() // FRAME_THREADS)
        return max(1, min(MAX_FRAME, self.limit // (FRAME_BYTES * len(self.analytic.layout.columns) * frames)))

    @property
    def _is_much(self) -> bool:
        return sum(part.nbytes for part in self.fresh) >= self.limit // FRESH_SHARE

    def _merge(self) -> None:
        """Give what was found to the spill, which writes it to the disk where it is too much."""
        if self.fresh:
            part = self.fresh[0] if len(self.fresh) == 1 else self.every.merge(self.fresh)
            self.fresh.clear()
            self._spill().add(self.every.records(part))
            del part
            give_back_memory(self.grown)  # what was at work: else freed memory adds up to half of a small limit

    def _hand_over(self) -> None:
        """Do so, and tell the checkpoint which partitions that finishes."""
        self._merge()
        self._spill().finish(*self.unfinished)
        self.unfinished.clear()

    def _spill(self) -> Spill:
        if self.spill is None:
            room = max(1, self.limit // SPILL_SHARE)
            self.spill = self.open.enter_context(
                Spill(self.every.layout, room, call=self.analytic.name, checkpoint=self.checkpoint)
            )
        return self.spill
