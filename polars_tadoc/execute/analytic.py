"""A counting call: its partial results, their transport, and its labelled result."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import polars as pl
import pyarrow as pa

from polars_tadoc.engine.choose import release_all
from polars_tadoc.engine.device_batches import DeviceBatches
from polars_tadoc.engine.progress import BATCHES, bar_over
from polars_tadoc.errors import DeviceMemoryError
from polars_tadoc.execute.aggregation import Aggregation, Part
from polars_tadoc.execute.stages import Stages
from polars_tadoc.execute.transport import Transport
from polars_tadoc.model.arrow_results import with_categories
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.records.records import Layout, Records
from polars_tadoc.runtime.interrupts import interruptible
from polars_tadoc.traversal.options import Options, WordForm, require_word_form


class Result(Protocol):
    """Result of a call; strings are only made by the methods below."""

    def to_arrow(self) -> pa.Table:
        """Return a table with dictionary-encoded words."""

    def to_frame(self, form: WordForm = "string") -> pl.DataFrame:
        """Return a frame with words in a form."""


Made = TypeVar("Made", bound=Result)


class Analytic(Aggregation[Part], Generic[Part, Made]):
    """A call with checked arguments. Equal calls return equal results."""

    reads_gaps: ClassVar[bool] = False
    """Whether the call needs the separators of words."""
    schema: ClassVar[pl.Schema | staticmethod[[pl.DataType | None], pl.Schema]]
    """Return the columns of the frame, given the type of the labels if there are any."""

    def run(self, column: pl.Series, id: pl.Series | None = None, owner: object = None) -> Made:
        """Count in a column held in memory; errors as for :func:`polars_tadoc.word_count`.

        While ``owner`` lives, the frame that the column is of (by default the column itself), the next call reads what
        this one has split and transferred.
        """
        stages = Stages(self)
        with interruptible(), bar_over(column, self.name, BATCHES):
            total = stages.all(column, column if owner is None else owner)
            return self.finish(total, Labels.of(column, id, self.name), stages.batches)

    def frame(self, column: pl.Series, id: pl.Series | None = None, owner: object = None) -> pl.DataFrame:
        """Return a frame; errors as for :meth:`run`."""
        return self.framed(self.run(column, id, owner))

    def framed(self, made: Made) -> pl.DataFrame:
        """Return a frame of a result, with words in the form that the call asks for."""
        return made.to_frame(self.options.words)

    def columns(self, id_type: pl.DataType | None = None) -> pl.Schema:
        """Return the columns of the frame, given the type of the labels if there are any."""
        schema = self.schema
        if not isinstance(schema, pl.Schema):
            schema = schema(id_type)
        return schema if self.options.words == "string" else with_categories(schema)

    def answer(self, corpora: Sequence[Corpus], labels: Labels) -> Made:
        """Count in corpora held in memory; errors as for :meth:`run`."""
        stages = Stages(self)
        return self.finish(stages.all_of(corpora), labels, stages.batches)

    def finish(self, total: Part, labels: Labels, batches: DeviceBatches) -> Made:
        """Make the result as :meth:`result` does; falls back to host memory if the device has too little.

        ``batches`` belongs to the call, so that it warns only once.
        """
        try:
            return self.result(total, labels)
        except DeviceMemoryError as error:
            batches.leave_to_cpu("all results", error)
        release_all()  # only after the error is handled: its traceback keeps arrays alive
        return self.result(self.on_host(total), labels)

    @property
    def reading(self) -> Options:
        """Options for reading rows and rules; without the normalisation if it is applied to counts instead."""
        return self.options

    @property
    def asked(self) -> dict[str, Any]:
        """Everything that determines the records, as JSON values; a checkpoint is valid for one such value."""
        morphism = self.options.morphism or Morphism()
        return {"call": self.name, **morphism.described}

    @property
    @abstractmethod
    def transport(self) -> Transport[Part]:
        """Return the conversion of partial results to records."""

    @property
    def layout(self) -> Layout:
        """Return the meaning of the records' columns."""
        return self.transport.layout

    @property
    def limits(self) -> tuple[int, int | None]:
        """Minimum count and maximum number of records, if each record is a row of the result."""
        return 1, None

    def ranged(self, records: Records, labels: Labels) -> Made:
        """Make the result of a range of the records of all rows.

        Parameters
        ----------
        records
            Whole groups in the order of the result: by key, or by count with the limits applied if
            :attr:`Layout.by_count` is set.
        labels
            Labels of the rows.

        """
        return self.result(self.merge([self.transport.part(records)]), labels)

    @abstractmethod
    def result(self, total: Part, labels: Labels) -> Made:
        """Make the result of all rows."""


Asked = TypeVar("Asked", bound=Aggregation[Any])


def asking_for_frames(make: Callable[..., Asked], options: Mapping[str, Any]) -> Asked:
    """Make a call from its options and :class:`WordFormOption`.

    Raises
    ------
    TypeError, ValueError
        As ``make`` does; ``words`` is unknown.

    """
    own = dict(options)
    words = own.pop("words", "string")
    require_word_form(words)
    analytic = make(**own)
    return replace(analytic, options=replace(analytic.options, words=words))  # type: ignore[type-var]
