"""Request and result shared by the calls that weigh the words of rows.

Counts stay in the engine's memory until strings or host arrays are requested. Document frequencies depend on all rows,
so weighing starts after the last row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.engine.choose import CPU, Engine
from polars_tadoc.engine.device_batches import DeviceBatches
from polars_tadoc.errors import DeviceMemoryError
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.execute.counting import Counting, CountingOptions
from polars_tadoc.execute.terms import Terms
from polars_tadoc.execute.transport import Transport
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.primitives.to_arrow_cpu import spread
from polars_tadoc.model.arrow_results import dictionary, from_arrow, word_series
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.records.labelled_results import INDEX, Labels
from polars_tadoc.records.packed_records import sort_records
from polars_tadoc.records.records import Layout, Records
from polars_tadoc.runtime.array_types import Float64, Int64, UInt32, array_dataclass
from polars_tadoc.runtime.arrow_memory import view
from polars_tadoc.scoring.weighting import Weighting
from polars_tadoc.traversal.options import Options, TopOption, WordForm, require_top


def schema(id_type: pl.DataType | None = None) -> pl.Schema:
    """Return the columns of the result, given the type of the ``id`` column if there is one."""
    return pl.Schema({"id": Labels.dtype(id_type), "word": pl.String(), "weight": pl.Float64()})


@array_dataclass
class WeightedWords:
    """The result; labels and strings are only made by the methods below."""

    labels: Labels
    engine: Engine
    words: Vocabulary
    rows: Int64
    """int64 by document, in host memory: row numbers."""
    offsets: Any
    """int64, documents + 1, an array of the engine, as are uint32 ids and float64 weights."""
    ids: Any
    weights: Any

    def to_arrow(self) -> pa.Table:
        """Return a table with dictionary-encoded words."""
        offsets, ids, weights = self._on_host()
        rows = self._rows(offsets)
        labels = rows if self.labels.values is None else self.labels.arrow(view(rows))
        return pa.table({"id": labels, "word": dictionary(self.words, ids), "weight": weights})

    def to_frame(self, form: WordForm = "string") -> pl.DataFrame:
        """Return a frame with the columns of :func:`schema`."""
        offsets, ids, weights = self._on_host()
        rows = self._rows(offsets)
        labels = from_arrow("id", rows) if self.labels.values is None else self.labels.series(view(rows))
        return pl.DataFrame([labels, word_series(self.words, view(ids), form), from_arrow("weight", weights)])

    def _on_host(self) -> tuple[Int64, pa.Array, pa.Array]:
        kernels = self.engine.kernels
        ids, weights = kernels.to_arrow([self.ids, self.weights])
        return kernels.to_host(self.offsets), ids, weights

    def _rows(self, offsets: Int64) -> pa.Array:
        """Return the row of each word, with Polars' type of row numbers."""
        return spread(self.rows.astype(np.uint32 if pl.UInt32 == INDEX else np.uint64), offsets)


class WeighingOptions(TopOption, CountingOptions, total=False):
    """Options of all calls that weigh words."""


class WeightTransport(Transport[Terms]):
    """Records of (row, word) with the count; rows without words are documents, too."""

    def records(self, part: Terms) -> Records:
        """Convert terms to records of rows and words."""
        part = part.on_host()
        rows = part.rows.astype(np.uint32)
        keys = np.stack([np.repeat(rows, np.diff(part.offsets)), part.ids], axis=1)
        return sort_records(self.layout, part.words, keys, part.counts, rows, part.lengths)

    def part(self, records: Records) -> Terms:
        """Convert records to the words of each row."""
        assert records.rows is not None
        assert records.counts is not None
        offsets = np.searchsorted(records.keys[:, 0], np.append(records.rows, np.uint64(1 << 32)))
        words, ids = records.vocabulary, records.keys[:, 1].copy()
        return Terms(CPU, words, True, records.rows.astype(np.int64), offsets, ids, records.counts, records.lengths)


@dataclass(frozen=True)
class WeightsRequest(Analytic[Terms, WeightedWords]):
    """Checked arguments; each call has its own subclass."""

    takes_text: ClassVar[bool] = True
    schema = staticmethod(schema)
    transport = WeightTransport(Layout(("row", "word"), 1, documents=True))
    weighting: Weighting
    top: int | None
    counting: Counting
    options: Options

    @classmethod
    def weighing(cls, weighting: Weighting, options: WeighingOptions) -> Self:
        """Check the options that all calls share; raises as they do."""
        counting = Counting.of(cls.name, options)
        return cls(weighting, require_top(options["top"]), counting, counting.options)

    @property
    def reading(self) -> Options:
        """Options for reading; normalisation is applied while counting."""
        return replace(self.options, morphism=None)

    def without_limits(self) -> Self:
        """Return itself, as limits only apply to the result."""
        return self

    def partial(self, corpus: Corpus, engine: Engine) -> Terms:
        """Count one corpus' words by document."""
        return self.counting.partial(corpus, engine)

    def text_partials(self, text: pl.Series, first: int, batches: DeviceBatches) -> Iterator[Terms]:
        """Count the words of each row of a String column, block by block."""
        return self.counting.text_partials(text, first, batches)

    def on_host(self, part: Terms) -> Terms:
        """Copy the counts to host memory."""
        return part.on_host()

    def merge(self, partials: Sequence[Terms]) -> Terms:
        """Sort the documents of several corpora by row; counts stay the same."""
        return self.counting.merge(partials)

    @property
    def asked(self) -> dict[str, Any]:
        """Everything that determines the records."""
        return {**super().asked, **self.counting.described}

    def result(self, total: Terms, labels: Labels) -> WeightedWords:
        """Weigh all words, and attach labels to rows."""
        total = self.counting.settle(total)
        weights = total.weigh(self.weighting)
        kept = (total.offsets, total.ids, weights) if self.top is None else total.top(weights, self.top)
        return WeightedWords(labels, total.engine, total.words, total.rows, *kept)

    def finish(self, total: Terms, labels: Labels, batches: DeviceBatches) -> WeightedWords:
        """Like :meth:`result`, in batches of documents that fit the device's memory."""
        try:
            return self.result(total, labels)
        except DeviceMemoryError:
            pass
        total = total.on_host()  # drops the last reference to device arrays
        offsets, ids, weights = weigh_in_batches(total, self.weighting, self.top, batches)
        return WeightedWords(labels, CPU, total.words, total.rows, offsets, ids, weights)


def weigh_in_batches(
    total: Terms, weighting: Weighting, top: int | None, batches: DeviceBatches
) -> tuple[Int64, UInt32, Float64]:
    """Weigh the words of documents in host memory; on a GPU in batches that fit its memory.

    Returns
    -------
    (numpy int64, numpy uint32, numpy float64)
        Offsets of each document's words; ids of all words or the ``top`` of highest weight; their weights.

    """

    def work(first: int, stop: int, engine: Engine) -> tuple[Any, Any, Any]:
        some = total.some(first, stop).on(engine)
        weights = some.weigh(weighting)
        kept = (some.offsets, some.ids, weights) if top is None else some.top(weights, top)
        offsets, ids, weights = map(engine.kernels.to_host, kept)
        return np.diff(offsets), ids, weights

    parts = batches.each_on_device(total.offsets, work, "words to be weighed")
    sizes, ids, weights = map(np.concatenate, zip(*parts, strict=True))
    return running_sum(sizes), ids, weights
