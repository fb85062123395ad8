"""BM25 in the forms that Kamphuis, de Vries, Boytsov and Lin compare (ECIR 2020), each as weights and norms.

Every form is ``base + sum of weight * tf / (tf + norm)`` over the words of a query that a document holds: norms are by
document, weights by word, and the base is the same for all documents. So one kernel does for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import numpy as np

from polars_tadoc.runtime.array_types import Float32, Float64
from polars_tadoc.runtime.option_signature import Default

MOST = 1e9
"""Largest k1 and delta: beyond, weights would leave what float32 holds."""

Idf = Callable[[Any, Float64], Float64]

IDFS: dict[str, Idf] = {
    "robertson": lambda n, df: np.log(np.maximum(1.0, (n - df + 0.5) / (df + 0.5))),
    "lucene": lambda n, df: np.log(1.0 + (n - df + 0.5) / (df + 0.5)),
    "atire": lambda n, df: np.log(n / df),
    "bm25l": lambda n, df: np.log((n + 1) / (df + 0.5)),
    "bm25+": lambda n, df: np.log((n + 1) / df),
    "wakatsuki": lambda n, df: np.log((n + 0.5) / (df + 0.5)),
}
"""Inverse document frequency of words that ``df`` of ``n`` documents hold, by form; none is negative.

The last is that of Wakatsuki et al., whose weights of words are otherwise those of "atire"."""


class ScoringOptions(TypedDict, total=False):
    """How rows are scored."""

    scoring: Annotated[str, Default("lucene")]
    k1: Annotated[float, Default(1.5)]
    b: Annotated[float, Default(0.75)]
    delta: Annotated[float, Default(0.5)]


def contribution(weight: Any, count: Any, norm: Any) -> Any:
    """Return what postings add to scores, float32 and rounded after every operation, as by the kernels."""
    count32 = np.float32(count)
    return np.float32(weight) * (count32 / (count32 + np.float32(norm)))


@dataclass(frozen=True)
class Scoring:
    """A form of BM25 and its constants, checked when it is made.

    Examples
    --------
    >>> from polars_tadoc.scoring.bm25 import Scoring
    >>> scoring = Scoring("lucene", k1=1.5, b=0.75, delta=0.5)
    >>> scoring.weights(1000, [10, 500]).round(3).tolist(), scoring.norms([50, 100], 100.0).round(4).tolist()
    ([4.557, 0.693], [0.9375, 1.5])

    """

    name: str
    """"robertson", "lucene", "atire", "bm25+", "bm25l" or "wakatsuki"."""
    k1: float
    """How slowly repetition saturates, from 0 to 1e9."""
    b: float
    """How much long documents are held back, from 0 to 1."""
    delta: float
    """For "bm25+" and "bm25l": what a word is worth in any document, from 0 to 1e9."""

    @classmethod
    def of(cls, options: ScoringOptions) -> Scoring:
        """Take the options of a call, which may have more."""
        return cls(options["scoring"], options["k1"], options["b"], options["delta"])

    def __post_init__(self) -> None:
        if self.name not in tuple(IDFS):  # which takes what has no hash, too
            raise ValueError(f"scoring={self.name!r}: use one of {', '.join(map(repr, IDFS))}")
        for name, most in {"k1": MOST, "b": 1, "delta": MOST}.items():
            value = getattr(self, name)
            if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
                raise TypeError(f"{name}={value!r} must be a number")
            if not (math.isfinite(value) and 0 <= value <= most):
                raise ValueError(f"{name}={value!r} must be from 0 to {most:g}")

    def idf(self, documents: Any, frequencies: Any) -> Float64:
        """Return the inverse document frequency of words, given how many of all documents hold each (at least one).

        The number of documents is one for all words, or one for each.
        """
        return IDFS[self.name](documents, np.asarray(frequencies, np.float64))

    def weights(self, documents: Any, frequencies: Any) -> Float64:
        """Return what a posting of a word adds at most; arguments as :meth:`idf`'s."""
        idf = self.idf(documents, frequencies)
        if self.name in ("robertson", "lucene"):
            return idf
        return idf * (self.k1 + 1) * (self._saturating if self.name == "bm25l" else 1)

    def bases(self, documents: Any, frequencies: Any) -> Float64:
        """Return what a word adds to the score of every document; arguments as :meth:`idf`'s."""
        idf = self.idf(documents, frequencies)
        if self.name == "bm25+":
            return idf * self.delta
        if self.name == "bm25l":
            total = self.k1 + self.delta
            return idf * (self.k1 + 1) * (self.delta / total if total else 0.0)  # 1 - k1 / total would lose digits
        return np.zeros_like(idf)

    @property
    def has_base(self) -> bool:
        """Whether words add anything to documents without them."""
        return self.name in ("bm25+", "bm25l")

    def norms(self, lengths: Any, average: Any) -> Float32:
        """Return :meth:`exact_norms` as searches read them, float32."""
        return self.exact_norms(lengths, average).astype(np.float32)

    def exact_norms(self, lengths: Any, average: Any) -> Float64:
        """Return the norm of each document: the constant in the denominator.

        Parameters
        ----------
        lengths
            Number of words of each document.
        average
            Average number of words per document, 0 without documents: one number, or one per document.

        Returns
        -------
        float64 array
            By document.

        """
        k1 = self.k1 + self.delta if self.name == "bm25l" else self.k1
        average = np.asarray(average, np.float64)
        share = np.divide(self.b, average, out=np.zeros_like(average), where=average > 0)
        norms: Float64 = np.asarray(lengths, np.float64) * (k1 * share)
        norms += k1 * (1 - self.b)
        return norms

    @property
    def _saturating(self) -> float:
        """Share of a word's worth in BM25L that depends on how often a document holds it."""
        total = self.k1 + self.delta
        return self.k1 / total if total else 1.0
