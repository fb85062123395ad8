"""How words of documents are weighed: BM25 and TF-IDF with their options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polars_tadoc.runtime.arguments import require_bool
from polars_tadoc.runtime.array_types import Float64
from polars_tadoc.scoring.bm25 import Scoring

if TYPE_CHECKING:
    pass

SCALES = ("l1", "l2", None)
"""To what TF-IDF weights of a document are scaled."""


@dataclass(frozen=True)
class BM25:
    """Weigh a word by what it adds to a document's score for a query of this word alone.

    Parameters
    ----------
    scoring
        "robertson", "lucene", "atire", "bm25+" or "bm25l", as Kamphuis et al. (ECIR 2020) name them, or "wakatsuki":
        ``log((N + 0.5) / (df + 0.5)) * (k1 + 1) * tf / (k1 * ((1 - b) + b * L / Lave) + tf)``, as Wakatsuki et al.
        weigh words, for ``tf`` words in a document of ``L`` words, and ``df`` documents of all ``N`` that hold it.
    k1
        How slowly repetition saturates, from 0 to 1e9.
    b
        How much long documents are held back, from 0 to 1.
    delta
        For "bm25+" and "bm25l": what a word is worth in any document, from 0 to 1e9.

    Raises
    ------
    TypeError
        A constant is no number.
    ValueError
        There is no such scoring, or a constant is out of range.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> column = pl.Series("text", ["to be", "to do"]).tadoc.compress()
    >>> weights, words = tadoc.to_csr(column, weights=tadoc.BM25("atire", k1=1.0, b=0.0))
    >>> words.to_list(), weights.toarray().round(3).tolist()
    (['be', 'do', 'to'], [[0.693, 0.0, 0.0], [0.0, 0.693, 0.0]])

    """

    scoring: str = "lucene"
    k1: float = 1.5
    b: float = 0.75
    delta: float = 0.5

    def __post_init__(self) -> None:
        try:
            _ = self.form  # which checks all of them
        except (TypeError, ValueError) as error:
            raise type(error)(f"BM25: {error}") from None

    @property
    def form(self) -> Scoring:
        """The form of BM25 and its constants."""
        return Scoring(self.scoring, self.k1, self.b, self.delta)


@dataclass(frozen=True)
class TFIDF:
    """Weigh a word by its count and how few documents hold it, as scikit-learn's ``TfidfTransformer`` does.

    Parameters
    ----------
    use_idf
        Multiply counts by ``ln(N / df) + 1``, for a word that ``df`` of ``N`` documents hold.
    smooth_idf
        Take ``N + 1`` and ``df + 1`` there, as if one more document held every word.
    sublinear_tf
        Take ``1 + ln(tf)`` for a count ``tf``.
    norm
        What the weights of a document are scaled to: "l2", a sum of squares of 1; "l1", a sum of 1; None, as they are.

    Raises
    ------
    TypeError
        ``use_idf``, ``smooth_idf`` or ``sublinear_tf`` is neither True nor False.
    ValueError
        There is no such ``norm``.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> column = pl.Series("text", ["to be", "to do"]).tadoc.compress()
    >>> weights, words = tadoc.to_csr(column, weights=tadoc.TFIDF(norm=None))
    >>> words.to_list(), weights.toarray().round(3).tolist()
    (['be', 'do', 'to'], [[1.405, 0.0, 1.0], [0.0, 1.405, 1.0]])

    """

    use_idf: bool = True
    smooth_idf: bool = True
    sublinear_tf: bool = False
    norm: str | None = "l2"

    def __post_init__(self) -> None:
        for name in ("use_idf", "smooth_idf", "sublinear_tf"):
            require_bool(name, getattr(self, name), "TF-IDF")
        if not isinstance(self.norm, str | None) or self.norm not in SCALES:
            raise ValueError(f'TF-IDF: norm={self.norm!r}: use "l1", "l2" or None')

    def idf(self, documents: int, frequencies: Float64) -> Float64 | None:
        """Return the factor of each word's counts.

        Parameters
        ----------
        documents
            Number of documents.
        frequencies
            float64 by word: number of documents that contain it.

        Returns
        -------
        float64 array or None
            Inverse document frequency by word, as scikit-learn defines it; None without ``use_idf``: all factors are 1.

        Examples
        --------
        >>> import numpy as np
        >>> import polars_tadoc as tadoc
        >>> tadoc.TFIDF(smooth_idf=False).idf(4, np.array([4.0, 1.0])).round(3).tolist()
        [1.0, 2.386]

        """
        if not self.use_idf:
            return None
        more = float(self.smooth_idf)
        factors: Float64 = np.log((documents + more) / (frequencies + more)) + 1.0
        return factors


Weighting = BM25 | TFIDF
