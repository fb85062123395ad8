"""Weighs the words of rows that are more than memory holds, in two passes.

Windows of rows are counted, and their counts wait, on the disk where they are many. Meanwhile it is counted in how many
rows each word occurs. Then the windows are weighed one after another, in their order. Rows are not counted a second
time: a plan need not give the same ones twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.engine.choose import CPU
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.execute.document_frequencies import FrequencyTable
from polars_tadoc.execute.labels import KeptLabels
from polars_tadoc.execute.splits import working_bytes
from polars_tadoc.execute.terms import Terms, Totals
from polars_tadoc.execute.weights import WeightsRequest
from polars_tadoc.execute.window_counting import WindowCounting, labels_of
from polars_tadoc.execute.windows import Window, in_parts, packed_windows
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.packed.pushdown import PackedQuestion
from polars_tadoc.records import Checkpoint, Spill, SpillFolder
from polars_tadoc.records.labelled_results import Labels, to_arrow
from polars_tadoc.records.records import Layout, Records
from polars_tadoc.runtime.arrow_memory import view
from polars_tadoc.runtime.free_memory import GROWN_SHARE, give_back_memory

FREQUENCIES = Layout(("word",), 1)
"""How many rows hold each word."""

WAITING_SHARE = 8
"""Counts that wait in memory take at most such a share of what a limit leaves (:func:`.pieces.working_bytes`)."""

SPILL_SHARE = 4
"""So do words that were not merged yet."""

TABLE_SHARE = 4
"""So do words that several rows hold, with numbers of rows."""

BATCH = 1 << 20
"""Counts that are weighed at a time, where they were kept by row."""

_ARRAYS = ("rows", "offsets", "ids", "counts", "lengths")


def stream_weights(
    windows: Iterable[Window], request: WeightsRequest, labels: str | None, limit: int
) -> Iterator[pl.DataFrame]:
    """Weigh words; parameters and errors as for :func:`polars_tadoc.execute.row_stream.stream_rows`."""
    counting, room = WindowCounting(request), working_bytes(limit)
    with ExitStack() as stack:
        waiting = _Waiting(stack.enter_context(SpillFolder(request.name)), room // WAITING_SHARE)
        totals = stack.enter_context(_AllRows(request.name, waiting.folder, room))
        for window in chain.from_iterable(in_parts(window, limit) for window in windows):
            terms = _of_own_words(counting.part(window))
            totals.add(terms)
            waiting.append(_counted(terms, labels_of(window, labels)))
        totals.settle()
        for counted in waiting.all():
            yield request.finish(totals.given_to(counted.terms), Labels(counted.labels), counting.batches).to_frame()
            del counted
            give_back_memory(limit // GROWN_SHARE)


def run_checkpointed(
    question: PackedQuestion, labels: str | None, request: WeightsRequest, limit: int, checkpoint: Checkpoint
) -> Iterator[pl.DataFrame]:
    """Weigh words of a packed scan; what was counted in finished partitions is kept, and found again.

    Parameters
    ----------
    question
        The documents.
    labels
        Name of the column that labels rows, if any.
    request
        What is asked.
    limit
        Bytes.
    checkpoint
        Where counts are kept.

    Raises
    ------
    LimitExceededError
        One grammar with its rows does not fit.
    DiskFullError
        Counts do not fit on the disk.

    """
    counting, others = WindowCounting(request), [] if labels is None else [labels]
    room = working_bytes(limit)
    with ExitStack() as stack:
        kept = stack.enter_context(KeptLabels(labels, request.name, room))
        folder = stack.enter_context(SpillFolder(request.name))
        totals = stack.enter_context(_AllRows(request.name, folder, room))
        counts = stack.enter_context(Spill(request.layout, room // WAITING_SHARE, request.name, checkpoint))
        for number, window in enumerate(packed_windows(question, others, limit)):
            kept.keep(window.frame)
            if number and number - 1 not in counts.covered:  # the first window is of no partition
                for part in in_parts(window, limit):
                    counts.add(request.records(counting.part(part)))
                counts.finish(number - 1)
        for records in counts.merged(batch=BATCH):
            totals.add(_of_own_words(request.part(records)))
        totals.settle()
        yield request.finish(request.merge([]), kept.all(), counting.batches).to_frame()
        for records in counts.merged(batch=BATCH):
            terms = totals.given_to(_of_own_words(request.part(records)))
            yield request.finish(terms, kept.all(), counting.batches).to_frame()
            del records, terms
            give_back_memory(limit // GROWN_SHARE)


class _AllRows:
    """What weights take from all rows: gathered, then given to some of them.

    Parameters
    ----------
    call
        What messages begin with.
    folder
        Where words go that memory does not hold.
    room
        Bytes that a limit leaves beside what threads hold.

    """

    def __init__(self, call: str, folder: SpillFolder, room: int) -> None:
        self._call = call
        self._spill = Spill(FREQUENCIES, room // SPILL_SHARE, call)
        self._table = FrequencyTable(folder, room // TABLE_SHARE)
        self._documents = self._words = 0

    def add(self, terms: Terms) -> None:
        """Count further rows, and in how many of them each word occurs; words are those that occur, in order."""
        self._documents += len(terms.rows)
        self._words += int(terms.lengths.sum())
        if self._words >= 1 << 63:
            raise LimitExceededError(f"{self._call}: the rows stand for more words than 64 bits can count")
        numbers = np.arange(len(terms.words), dtype=np.uint32).reshape(-1, 1)
        self._spill.add(Records(terms.words.strings, numbers, terms.frequencies))

    def settle(self) -> None:
        """Say that all rows were added."""
        for records in self._spill.merged(min_count=2):
            assert records.counts is not None
            self._table.append(records.words.take(pa.array(records.keys[:, 0])), records.counts)

    def given_to(self, terms: Terms) -> Terms:
        """Return rows that were added with what all rows have."""
        return replace(terms, known_totals=Totals(self._documents, self._words, self._table.look_up(terms.words)))

    def __enter__(self) -> _AllRows:
        self._spill.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._spill.__exit__(kind, error, trace)


def _of_own_words(terms: Terms) -> Terms:
    """Number the words that documents hold in code point order, and leave out the others."""
    used = np.zeros(len(terms.words), np.bool_)
    used[terms.ids] = True
    own = np.flatnonzero(used).astype(np.uint32)
    own = own[np.argsort(terms.words.rank_of(own))]
    numbers = np.zeros(len(terms.words), np.uint32)
    numbers[own] = np.arange(len(own), dtype=np.uint32)
    words, ids = Vocabulary(terms.words.strings.take(pa.array(own))), numbers[terms.ids]
    return Terms(CPU, words, True, terms.rows, terms.offsets, ids, terms.counts, terms.lengths)


@dataclass(frozen=True, eq=False)
class _Counted:
    """A window's counts.

    Parameters
    ----------
    terms
        The counts.
    labels
        What each of the documents is called, which then are rows 0, 1, 2…; None for the numbers of their rows.

    """

    terms: Terms
    labels: pl.Series | None

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        return self.terms.nbytes + (0 if self.labels is None else int(self.labels.estimated_size()))


def _counted(terms: Terms, labels: Labels) -> _Counted:
    if labels.values is None:
        return _Counted(terms, None)
    return _Counted(replace(terms, rows=np.arange(len(terms.rows))), labels.series(terms.rows))


class _Waiting:
    """Counts of windows: in memory while they are few, then in files."""

    def __init__(self, folder: SpillFolder, room: int) -> None:
        self.folder, self._room = folder, room
        self._held: list[_Counted] = []
        self._files = self._size = 0

    def append(self, counted: _Counted) -> None:
        """Keep counts behind the others."""
        self._held.append(counted)
        self._size += counted.nbytes
        if self._size > self._room:
            with self.folder.writing():
                for one in self._held:
                    _write(one, self._path(self._files))
                    self._files += 1
            self._held, self._size = [], 0

    def all(self) -> Iterator[_Counted]:
        """Give all in their order; each is forgotten then."""
        for number in range(self._files):
            yield _read(self._path(number))
        while self._held:
            yield self._held.pop(0)

    def _path(self, number: int) -> Path:
        return self.folder.path / f"window-{number}.arrow"


def _write(counted: _Counted, path: Path) -> None:
    """Write arrays one after another, each an Arrow stream: they have different lengths."""
    arrays = [getattr(counted.terms, name) for name in _ARRAYS]
    narrow: list[npt.NDArray[Any]] = [
        array.astype(np.min_scalar_type(int(array.max(initial=0))), copy=False) for array in arrays
    ]
    with pa.OSFile(str(path), "wb") as file:
        for array in [counted.terms.words.strings, *map(to_arrow, narrow)]:
            batch = pa.record_batch([array], ["values"])
            with pa.ipc.new_stream(file, batch.schema) as writer:
                writer.write_batch(batch)
    if counted.labels is not None:
        counted.labels.to_frame("labels").write_ipc(_labels_path(path), compression="lz4")


def _read(path: Path) -> _Counted:
    """Read what was written, and delete it."""
    with pa.OSFile(str(path), "rb") as file:
        words, *arrays = [pa.ipc.open_stream(file).read_all()[0].combine_chunks() for _ in range(len(_ARRAYS) + 1)]
    rows, offsets, ids, counts, lengths = (
        view(array).astype(dtype, copy=False)
        for array, dtype in zip(arrays, (np.int64, np.int64, np.uint32, np.uint64, np.uint64), strict=True)
    )
    path.unlink()
    labels = None
    if _labels_path(path).exists():
        labels = pl.read_ipc(_labels_path(path).read_bytes()).to_series()
        _labels_path(path).unlink()
    return _Counted(Terms(CPU, Vocabulary(words), True, rows, offsets, ids, counts, lengths), labels)


def _labels_path(path: Path) -> Path:
    return path.with_suffix(".labels")
