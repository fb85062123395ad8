"""scikit-learn's vectorizer of texts, on text columns and compressed ones; needs the extra ``sklearn``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self

import numpy as np
import polars as pl
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.utils.validation import check_is_fitted

import polars_tadoc as tadoc

__all__ = ["TadocVectorizer"]


class TadocVectorizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn texts into a sparse matrix of TF-IDF weights or counts, as scikit-learn's ``TfidfVectorizer`` does.

    Words and sequences of words are counted by :func:`polars_tadoc.to_csr`, on compressed columns without decompressing
    them. On the same tokens,
    results equal those of ``TfidfVectorizer`` and ``CountVectorizer``. Tokens differ by default: words of one character
    count here, and each Han or kana character is a word.

    Parameters
    ----------
    weights
        "tfidf" or "count".
    lowercase
        Whether to lower-case words.
    stop_words
        Words to drop, or the name of a language, such as "english" (:func:`polars_tadoc.stop_words`); then n-grams are
        made of the remaining words.
    tokenizer
        Cuts plain text into words, as for ``compress``: "words", "whitespace" or a regular expression. A compressed
        column is tokenized already.
    ngram_range
        Minimum and maximum number of words of a feature; n-grams are words joined by a space.
    min_df
        Drop features that fewer documents contain: a number, or a share of the documents as a float.
    max_df
        Drop features that more documents contain.
    max_features
        Maximum number of features: those that occur most often.
    norm
        "l2", "l1" or None: norm of each document's weights.
    use_idf
        Whether to weigh by inverse document frequency, of the documents of ``fit``.
    smooth_idf
        Whether to count one document more that contains every word.
    sublinear_tf
        Whether to take ``1 + ln(tf)`` for a count ``tf``.
    engine
        "auto", "cpu" or "gpu"; by default the engine of ``tadoc.Config``.

    Examples
    --------
    >>> import polars as pl
    >>> from polars_tadoc.sklearn import TadocVectorizer
    >>> texts = pl.Series("text", ["To be, or not to be", "to do is to be"]).tadoc.compress()
    >>> vectorizer = TadocVectorizer(weights="count", ngram_range=(1, 2), min_df=2)
    >>> vectorizer.fit_transform(texts).toarray().tolist()
    [[2, 2, 2], [1, 2, 1]]
    >>> vectorizer.get_feature_names_out().tolist()
    ['be', 'to', 'to be']
    >>> vectorizer.transform(["to be seen"]).toarray().tolist()
    [[1, 1, 1]]

    """

    def __init__(
        self,
        *,
        weights: str = "tfidf",
        lowercase: bool = True,
        stop_words: str | Iterable[str] | None = None,
        tokenizer: Any = None,
        ngram_range: tuple[int, int] = (1, 1),
        min_df: int | float = 1,
        max_df: int | float = 1.0,
        max_features: int | None = None,
        norm: str | None = "l2",
        use_idf: bool = True,
        smooth_idf: bool = True,
        sublinear_tf: bool = False,
        engine: str | None = None,
    ) -> None:
        self.weights = weights
        self.lowercase = lowercase
        self.stop_words = stop_words
        self.tokenizer = tokenizer
        self.ngram_range = ngram_range
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.norm = norm
        self.use_idf = use_idf
        self.smooth_idf = smooth_idf
        self.sublinear_tf = sublinear_tf
        self.engine = engine

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: N803  # scikit-learn's names
        """Learn the features of documents, and their document frequencies.

        Parameters
        ----------
        X
            Texts: a Series (String or compressed) or an iterable of strings; None is an empty document.
        y
            Ignored.

        Returns
        -------
        TadocVectorizer
            This vectorizer.

        Raises
        ------
        TypeError, ValueError
            ``X`` is not texts, a parameter is wrong, or no feature remains.

        """
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: object = None) -> Any:  # noqa: N803
        """Learn the features of documents, and return their matrix; parameters and errors as for :meth:`fit`."""
        if self.weights not in ("tfidf", "count"):
            raise ValueError(f'TadocVectorizer: weights={self.weights!r}: use "tfidf" or "count"')
        counts, vocabulary = self._counts(_series(X))
        kept = self._kept(counts)
        if not len(kept):
            raise ValueError("empty vocabulary; no word remains: lower min_df, or raise max_df")
        self._terms, counts = vocabulary.gather(kept), counts[:, kept]
        if self.weights == "count":
            return counts
        self._tfidf = TfidfTransformer(
            norm=self.norm, use_idf=self.use_idf, smooth_idf=self.smooth_idf, sublinear_tf=self.sublinear_tf
        )
        return self._tfidf.fit_transform(counts)

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Return the matrix of documents, with the features and frequencies of :meth:`fit`.

        Parameters
        ----------
        X
            Texts, as for :meth:`fit`.

        Returns
        -------
        sparse matrix
            int64 counts or float64 weights, shape (documents, features), in CSR.

        Raises
        ------
        NotFittedError
            The vectorizer is not fitted.
        TypeError, ValueError
            ``X`` is not texts.

        """
        check_is_fitted(self, "_terms")
        counts, terms = self._counts(_series(X))
        counts = _gathered(counts, terms, self._terms)
        return counts if self.weights == "count" else self._tfidf.transform(counts, copy=False)

    def get_feature_names_out(self, input_features: object = None) -> Any:
        """Return the features, in the order of the columns.

        Parameters
        ----------
        input_features
            Ignored.

        Returns
        -------
        object array
            Words, and n-grams as words joined by a space, in code point order.

        Raises
        ------
        NotFittedError
            The vectorizer is not fitted.

        """
        check_is_fitted(self, "_terms")
        return np.asarray(self._terms.to_list(), dtype=object)

    @property
    def vocabulary_(self) -> dict[str, int]:
        """Columns by feature."""
        check_is_fitted(self, "_terms")
        return {term: column for column, term in enumerate(self._terms.to_list())}

    @property
    def idf_(self) -> Any:
        """Inverse document frequency by column: float64."""
        if not hasattr(self, "_tfidf"):
            raise NotFittedError('TadocVectorizer: idf_ needs fit, and weights="tfidf"')
        return self._tfidf.idf_

    def _counts(self, column: pl.Series) -> tuple[Any, pl.Series]:
        """Return counts by row and term, and the terms of the columns, ascending."""
        least, most = _range(self.ngram_range)
        options: dict[str, Any] = {"lowercase": self.lowercase, "stopwords": self.stop_words, "engine": self.engine}
        return tadoc.to_csr(column, ngram_range=(least, most), tokenizer=self.tokenizer, **options)

    def _kept(self, counts: Any) -> Any:
        """Return the columns within the limits, as scikit-learn chooses them."""
        documents = counts.shape[0]
        least, most = (limit * documents if isinstance(limit, float) else limit for limit in (self.min_df, self.max_df))
        if most < least:
            raise ValueError("max_df corresponds to < documents than min_df")
        frequencies = np.bincount(counts.indices, minlength=counts.shape[1])
        kept = np.flatnonzero((frequencies >= least) & (frequencies <= most))
        if self.max_features is not None and len(kept) > self.max_features:
            totals = np.asarray(counts.sum(axis=0)).ravel()[kept]
            kept = np.sort(kept[(-totals).argsort()[: self.max_features]])
        return kept

    def __sklearn_tags__(self) -> Any:
        """Say that input is a list of strings."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


def _series(documents: Any) -> pl.Series:
    """Return documents as a Series of texts."""
    if isinstance(documents, pl.Series):
        return documents
    if isinstance(documents, str):
        raise ValueError("Iterable over raw text documents expected, string object received.")
    if isinstance(documents, pl.DataFrame | pl.LazyFrame) or hasattr(documents, "columns"):
        kind = type(documents).__name__
        raise TypeError(f'TadocVectorizer: documents are a {kind}; pass one of its columns: frame["text"]')
    held = list(_strings(documents))
    return pl.Series("text", held, pl.String)


def _strings(documents: Iterable[Any]) -> Iterator[str | None]:
    for document in documents:
        if document is not None and not isinstance(document, str):
            raise TypeError(f"TadocVectorizer: documents are strings, not {type(document).__name__}")
        yield None if document is None else str(document)


def _range(ngram_range: tuple[int, int]) -> tuple[int, int]:
    match ngram_range:
        case (least, most) if 1 <= least <= most:
            return int(least), int(most)
    raise ValueError(f"TadocVectorizer: ngram_range={ngram_range}: give (least, most) with 1 <= least <= most")


def _matrix(values: Any, rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    """Return a matrix with indices of 32 bits if they fit: some estimators, such as LinearSVC, require them."""
    index = sparse.get_index_dtype(maxval=max(*shape, len(values)))
    return sparse.csr_array((values, (rows.astype(index), columns.astype(index))), shape=shape)


def _gathered(counts: Any, terms: pl.Series, vocabulary: pl.Series) -> Any:
    """Return counts with a column for each term of the vocabulary; columns of equal terms are added."""
    columns = pl.DataFrame({"term": vocabulary}).with_row_index("column")
    found = pl.DataFrame({"term": terms}).with_row_index("place").join(columns, on="term", maintain_order="left")
    ones = np.ones(found.height, np.int64)
    shape = (len(terms), len(vocabulary))
    made = counts @ _matrix(ones, found["place"].to_numpy(), found["column"].to_numpy(), shape)
    made.sort_indices()
    return made
