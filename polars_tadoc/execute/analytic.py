"""What all analytics have in common: a partial result on each corpus, an associative merge, a result with labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import polars as pl
import pyarrow as pa

from polars_tadoc.engine.choose import GPU_REPAYS_AT, Engine, choose, release_all
from polars_tadoc.engine.device_batches import DeviceBatches
from polars_tadoc.errors import DeviceMemoryError, NotCompressedError
from polars_tadoc.model.column import require_tadoc, split
from polars_tadoc.model.corpus import Corpus, require_countable
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.records.records import Layout, Records
from polars_tadoc.runtime.interrupts import interruptible
from polars_tadoc.traversal.options import Options

RECORD_BYTES, COLUMN_BYTES = 16, 8
"""A record of a partial result takes at most so many bytes for its count, and for each number of its key."""


class Partial(Protocol):
    """What was found in some of the rows."""

    @property
    def nbytes(self) -> int:
        """Bytes that it holds, with those of its words."""


class Result(Protocol):
    """What a call gives; strings are made only in the form asked for."""

    def to_arrow(self) -> pa.Table:
        """As a table with dictionary-encoded words."""

    def to_frame(self) -> pl.DataFrame:
        """As a frame."""


Part = TypeVar("Part", bound=Partial)
Made = TypeVar("Made", bound=Result)


class Analytic(ABC, Generic[Part, Made]):
    """What is asked of a column; equal ones ask for the same.

    Results on parts of the rows can be merged in any grouping, in the order of the rows: so one frame with several
    grammars and a stream of partitions are the same work.
    """

    name: ClassVar[str]
    """The call, for messages."""
    reads_gaps: ClassVar[bool] = False
    """Whether what stood between words matters."""
    gpu_repays_at: ClassVar[float] = GPU_REPAYS_AT
    """Symbols from which ``engine="auto"`` takes a GPU."""
    options: Options

    def run(self, column: pl.Series, id: pl.Series | None = None) -> Made:
        """Answer for a compressed column, held in memory.

        Raises
        ------
        NotCompressedError
            The series is not a compressed column.
        InvalidGrammarError, LimitExceededError
            A payload or a row is damaged or too large.
        EngineUnavailableError
            ``engine="gpu"`` cannot run here.

        """
        column = require_tadoc(column, self.name)
        with interruptible():
            return self.answer(split(column), Labels.of(column, id, self.name))

    def answer(self, corpora: Sequence[Corpus], labels: Labels) -> Made:
        """Answer for corpora that are held in memory; errors as for :meth:`run`."""
        require_countable(corpora, self.pairs_per_word)
        engine = self.choose_engine(sum(corpus.symbol_count for corpus in corpora))
        batches = DeviceBatches(self.name, self.options.engine)
        if len(corpora) == 1:
            return self.finish(self.partial_in(batches, corpora[0], engine), labels, batches)
        every = self.without_limits()
        parts = [every.on_host(every.partial_in(batches, corpus, engine)) for corpus in corpora]
        return self.finish(self.merge(parts), labels, batches)

    def partial_in(self, batches: DeviceBatches, corpus: Corpus, engine: Engine) -> Part:
        """Answer for one corpus as :meth:`partial` does, in batches where a device has too little memory."""
        every = self.without_limits()

        def some(corpus: Corpus, engine: Engine) -> Part:
            return every.on_host(every.partial(corpus, engine))

        parts = batches.parts(corpus, engine, self.partial, some)
        return parts[0] if len(parts) == 1 else self.merge(parts)

    def on_host(self, part: Part) -> Part:
        """Bring what was found to host memory; most is there already."""
        return part

    def finish(self, total: Part, labels: Labels, batches: DeviceBatches | None = None) -> Made:
        """Put the answer into its form as :meth:`result` does, in host memory where a device has too little.

        ``batches`` are those of the call, which may have said so already.
        """
        try:
            return self.result(total, labels)
        except DeviceMemoryError as error:
            (batches or DeviceBatches(self.name, self.options.engine)).leave_to_cpu("all that was found", error)
        release_all()  # not while the error is handled: its traceback holds arrays
        return self.result(self.on_host(total), labels)

    def choose_engine(self, symbols: int) -> Engine:
        """Choose the engine for so many symbols; errors as for :meth:`run`."""
        return choose(self.options.engine, symbols, self.gpu_repays_at)

    def frame(self, column: pl.Series, id: pl.Series | None = None) -> pl.DataFrame:
        """Answer with a frame."""
        return self.run(column, id).to_frame()

    @property
    def pairs_per_word(self) -> int:
        """How many counts one word can add to."""
        return 1

    @property
    def bytes_per_word(self) -> int:
        """Bytes that one word of the rows adds to a partial result, at most."""
        return (RECORD_BYTES + COLUMN_BYTES * len(self.layout.columns)) * self.pairs_per_word

    @property
    def reading(self) -> Options:
        """How rows and rules are read: without a normalisation where it is applied to what was counted."""
        return self.options

    def without_limits(self) -> Analytic[Part, Made]:
        """Ask for everything: what is rare in each part may be frequent in all."""
        without: Any = {"top": None, "min_count": 1} if hasattr(self, "top") else {"min_count": 1}
        return replace(self, **without)  # type: ignore[type-var]

    @abstractmethod
    def partial(self, corpus: Corpus, engine: Engine) -> Part:
        """Answer for one corpus, whose counts fit 64 bits; documents are numbered by their rows."""

    def text_partials(self, text: pl.Series, first: int) -> Iterator[Part]:
        """Answer for a String column whose first row has a number, a part of it at a time; most take none."""
        raise NotCompressedError.for_column(text.name, text.dtype, self.name)

    @abstractmethod
    def merge(self, partials: Sequence[Part]) -> Part:
        """Join the answers for parts of the rows, none of them limited; the limits are applied."""

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """What the numbers of its records mean."""

    @abstractmethod
    def records(self, part: Part) -> Records:
        """Turn what was found in some of the rows, none of it left out, into records."""

    @abstractmethod
    def part(self, records: Records) -> Part:
        """Turn records back; ``result(merge([part]), labels)`` is the answer for all rows where they are of all."""

    @property
    def asked(self) -> dict[str, Any]:
        """What decides which records there are, as values that JSON has: a checkpoint is of one such question."""
        morphism = self.options.morphism or Morphism()
        return {"call": self.name, **morphism.described}

    @property
    def limits(self) -> tuple[int, int | None]:
        """What sums of counts must reach, and how many results there may be at most, where that hangs on no group."""
        return 1, None

    def ranged(self, records: Records, labels: Labels) -> Made:
        """Make the results that some records of all rows stand for.

        Parameters
        ----------
        records
            Whole groups, in the order of the results. Where :attr:`Layout.by_count` is set that is not the order of
            keys, and the limits were applied.
        labels
            What rows are called.

        """
        return self.result(self.merge([self.part(records)]), labels)

    @abstractmethod
    def result(self, total: Part, labels: Labels) -> Made:
        """Put the answer for all rows into its form."""
