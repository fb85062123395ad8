"""Each row's words and how often it has them: what weights are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polars_tadoc.engine.choose import CPU, Engine
from polars_tadoc.kernels.primitives.codes import DELETED
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.array_types import Bools, Int64, UInt64
from polars_tadoc.runtime.cached_property import cached_property
from polars_tadoc.scoring.weighting import BM25, Weighting


@dataclass(frozen=True, eq=False)
class Totals:
    """What weights take from all documents, where a part of them is weighed."""

    documents: int
    """How many there are."""
    words: int
    """Words of all of them, with those that are not in a dictionary."""
    frequencies: UInt64
    """uint64 by id, in host memory: how many documents hold each word."""


@dataclass(frozen=True, eq=False)
class Terms:
    """Each document's words, each once, in code point order."""

    engine: Engine
    """Whose arrays these are."""
    words: Vocabulary
    """The words by id."""
    ascending: bool
    """Whether ids are in code point order."""
    rows: Int64
    """int64 by document, in host memory, ascending: its row."""
    offsets: Any
    ids: Any
    counts: Any
    """``offsets``, ``ids``, ``counts``: int64, documents + 1, uint32 and uint64 by word of a document: arrays of the
    engine."""
    known_lengths: Any | None = None
    """uint64 by document, an array of the engine: its words, with those that are not in a dictionary; None where none
    is left out."""
    known_rank: Any | None = None
    """uint32 by id, an array of the engine: the place in code point order, where it is there already."""
    known_totals: Totals | None = None
    """Where these are some of the documents: what all of them have; None where these are all."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and the words."""
        arrays = (self.rows, self.offsets, self.ids, self.counts)
        return sum(int(array.nbytes) for array in arrays) + self.words.nbytes

    @cached_property
    def frequencies(self) -> UInt64:
        """How many documents hold each word, uint64, in host memory."""
        if self.known_totals is not None:
            return self.known_totals.frequencies
        kernels = self.engine.kernels
        found: UInt64 = kernels.to_host(kernels.document_frequencies(self.ids, len(self.words)))
        return found

    @property
    def lengths(self) -> UInt64:
        """How many words each document has, uint64, in host memory."""
        kernels, lengths = self.engine.kernels, self.known_lengths
        lengths = kernels.document_lengths(self.offsets, self.counts) if lengths is None else lengths
        made: UInt64 = kernels.to_host(lengths)
        return made

    @property
    def rank(self) -> Any | None:
        """Place of each word in code point order, uint32, an array of the engine; None where ids are in it."""
        if self.ascending:
            return None
        return self.engine.kernels.load_array(self.words.rank) if self.known_rank is None else self.known_rank

    def on_host(self) -> Terms:
        """Return the same with all arrays in host memory."""
        return self.on(CPU)

    def on(self, engine: Engine) -> Terms:
        """Return the same with the arrays of an engine."""
        if self.engine is engine:
            return self
        take, load = self.engine.kernels.to_host, engine.kernels.load_array
        return self._moved(engine, lambda array: load(take(array)))

    def some(self, first: int, stop: int) -> Terms:
        """Return the documents from one on, up to another, which weigh what they do among all; in host memory."""
        terms = self.on_host()
        totals = self.known_totals or Totals(len(self.rows), int(self.lengths.sum()), self.frequencies)
        kept = slice(*terms.offsets[[first, stop]])
        return replace(
            terms,
            rows=self.rows[first:stop],
            offsets=terms.offsets[first : stop + 1] - kept.start,
            ids=terms.ids[kept],
            counts=terms.counts[kept],
            known_lengths=None if terms.known_lengths is None else terms.known_lengths[first:stop],
            known_totals=totals,
        )

    def _moved(self, engine: Engine, move: Callable[[Any], Any]) -> Terms:
        lengths = None if self.known_lengths is None else move(self.known_lengths)
        offsets, ids, counts = (move(array) for array in (self.offsets, self.ids, self.counts))
        totals = self.known_totals
        return Terms(engine, self.words, self.ascending, self.rows, offsets, ids, counts, lengths, known_totals=totals)

    def only(self, kept: Bools) -> Terms:
        """Keep some words, bool by id; the others still count to the lengths of documents."""
        kernels = self.engine.kernels
        image = np.where(kept, np.arange(len(kept), dtype=np.uint32), np.uint32(DELETED))
        lengths = self.known_lengths
        lengths = kernels.document_lengths(self.offsets, self.counts) if lengths is None else lengths
        offsets, ids, counts = kernels.merge_terms(self.offsets, self.ids, self.counts, kernels.load_array(image))
        return replace(self, offsets=offsets, ids=ids, counts=counts, known_lengths=lengths)

    def weigh(self, weighting: Weighting) -> Any:
        """Weigh all words: float64 by word of a document, an array of the engine."""
        kernels, totals = self.engine.kernels, self.known_totals
        documents = len(self.rows) if totals is None else totals.documents
        found = np.maximum(self.frequencies, np.uint64(1)).astype(np.float64)  # words that no row holds any more
        load = kernels.load_array
        if not isinstance(weighting, BM25):
            idf = weighting.idf(documents, found)
            factors = None if idf is None else load(idf)
            return kernels.weigh_tfidf(
                self.offsets, self.ids, self.counts, factors, sublinear=weighting.sublinear_tf, norm=weighting.norm
            )
        form, lengths = weighting.form, self.lengths
        words = int(lengths.sum()) if totals is None else totals.words
        norms = form.exact_norms(lengths, float(words) / max(documents, 1))
        bases = load(form.bases(documents, found)) if form.has_base else None
        weights = load(form.weights(documents, found))
        return kernels.weigh_bm25(self.offsets, self.ids, self.counts, weights, load(norms), bases)

    def top(self, weights: Any, top: int) -> tuple[Any, Any, Any]:
        """Keep each document's heaviest words: offsets, ids and weights, arrays of the engine."""
        kept: tuple[Any, Any, Any] = self.engine.kernels.top_weights(self.offsets, self.ids, weights, self.rank, top)
        return kept
