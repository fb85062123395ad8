"""Functions that every engine supplies for weighing the terms of documents."""

from __future__ import annotations

from typing import Any, Protocol


class WeightKernels(Protocol):
    """Weights of terms; ``offsets`` are int64, documents + 1."""

    def document_frequencies(self, terminals: Any, size: int) -> Any:
        """Count the documents that contain each terminal: uint64 by terminal."""

    def document_lengths(self, offsets: Any, counts: Any) -> Any:
        """Sum the counts of each document: uint64 by document."""

    def merge_terms(self, offsets: Any, terminals: Any, counts: Any, image: Any) -> tuple[Any, Any, Any]:
        """Map the terms of documents and sum the counts of adjacent equal ones: offsets, images, counts."""
        ...

    def weigh_bm25(self, offsets: Any, terminals: Any, counts: Any, weights: Any, norms: Any, bases: Any) -> Any:
        """Weigh terms by ``weight * (count / (count + norm)) + base``: float64 by term of a document."""

    def weigh_tfidf(
        self, offsets: Any, terminals: Any, counts: Any, idf: Any, sublinear: bool, norm: str | None
    ) -> Any:
        """Weigh terms by their count times ``idf``, with documents scaled to norm 1: float64 by term of a document."""

    def top_weights(self, offsets: Any, terminals: Any, weights: Any, rank: Any, top: int) -> tuple[Any, Any, Any]:
        """Keep each document's terms of highest weight: offsets, terminals, weights."""
        ...
