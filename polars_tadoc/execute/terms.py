"""Each row's words with their counts: the input of weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from polars_tadoc.engine.choose import CPU, Engine
from polars_tadoc.kernels.primitives.codes import DELETED
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.array_types import Bools, Int64, UInt64, array_dataclass
from polars_tadoc.runtime.cached_property import cached_property
from polars_tadoc.scoring.weighting import BM25, Weighting


class Totals(NamedTuple):
    """Totals over all documents, for weighing a part of them."""

    documents: int
    """Number of documents."""
    words: int
    """Number of words in all documents, including those outside of a dictionary."""
    frequencies: UInt64
    """uint64 by id, in host memory: number of documents that contain each word."""


@array_dataclass
class Terms:
    """Each document's distinct words with counts, in code point order."""

    engine: Engine
    """Engine of the arrays."""
    words: Vocabulary
    """The words by id."""
    ascending: bool
    """Whether ids are in code point order."""
    rows: Int64
    """int64 by document, in host memory, ascending: row numbers."""
    offsets: Any
    ids: Any
    counts: Any
    """``offsets``, ``ids``, ``counts``: int64, documents + 1; uint32 and uint64 by (document, word): arrays of the
    engine."""
    known_lengths: Any | None = None
    """uint64 by document, an array of the engine: number of words, including those outside of a dictionary; None if no
    word was dropped."""
    known_rank: Any | None = None
    """uint32 by id, an array of the engine: rank in code point order, if already computed."""
    known_totals: Totals | None = None
    """Totals over all documents if these are a part of them; None if these are all."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and the words."""
        arrays = (self.rows, self.offsets, self.ids, self.counts)
        return sum(int(array.nbytes) for array in arrays) + self.words.nbytes

    @cached_property
    def frequencies(self) -> UInt64:
        """Number of documents that contain each word, uint64, in host memory."""
        if self.known_totals is not None:
            return self.known_totals.frequencies
        kernels = self.engine.kernels
        found: UInt64 = kernels.to_host(kernels.document_frequencies(self.ids, len(self.words)))
        return found

    @property
    def lengths(self) -> UInt64:
        """Number of words of each document, uint64, in host memory."""
        kernels, lengths = self.engine.kernels, self.known_lengths
        lengths = kernels.document_lengths(self.offsets, self.counts) if lengths is None else lengths
        made: UInt64 = kernels.to_host(lengths)
        return made

    @property
    def rank(self) -> Any | None:
        """Rank of each word in code point order, uint32, an array of the engine; None if ids are in this order."""
        if self.ascending:
            return None
        return self.engine.kernels.load_array(self.words.rank) if self.known_rank is None else self.known_rank

    def on_host(self) -> Terms:
        """Return a copy with all arrays in host memory."""
        return self.on(CPU)

    def on(self, engine: Engine) -> Terms:
        """Return a copy with arrays of an engine."""
        if self.engine is engine:
            return self
        take, load = self.engine.kernels.to_host, engine.kernels.load_array
        return self._moved(engine, lambda array: load(take(array)))

    def some(self, first: int, stop: int) -> Terms:
        """Return documents ``first`` to ``stop`` in host memory, with the totals of all documents."""
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
        """Keep some words, bool by id; others still count in the lengths of documents."""
        kernels = self.engine.kernels
        image = np.where(kept, np.arange(len(kept), dtype=np.uint32), np.uint32(DELETED))
        lengths = self.known_lengths
        lengths = kernels.document_lengths(self.offsets, self.counts) if lengths is None else lengths
        offsets, ids, counts = kernels.merge_terms(self.offsets, self.ids, self.counts, kernels.load_array(image))
        return replace(self, offsets=offsets, ids=ids, counts=counts, known_lengths=lengths)

    def weigh(self, weighting: Weighting) -> Any:
        """Return the weights of all words: float64 by (document, word), an array of the engine."""
        kernels, totals = self.engine.kernels, self.known_totals
        documents = len(self.rows) if totals is None else totals.documents
        found = np.maximum(self.frequencies, np.uint64(1)).astype(np.float64)  # a word may be in no row any more
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
        """Keep each document's words of highest weight; return offsets, ids and weights, arrays of the engine."""
        kept: tuple[Any, Any, Any] = self.engine.kernels.top_weights(self.offsets, self.ids, weights, self.rank, top)
        return kept
