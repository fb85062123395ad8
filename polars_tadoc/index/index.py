"""The index that users hold: segments of postings, what is known of their documents, how queries become words."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_tadoc.index.analyzer import Analyzer
from polars_tadoc.index.documents import Documents
from polars_tadoc.index.search import FilterLike, QueriesLike, search
from polars_tadoc.index.segment import Segment


@dataclass(frozen=True, eq=False, repr=False)
class Index:
    """A search index, made by :func:`polars_tadoc.build_index`; it never changes.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> df = pl.DataFrame({"name": ["ham", "list"], "text": ["to be or not to be", "to do"]}).tadoc.compress("text")
    >>> index = df.tadoc.build_index("text", id="name")
    >>> index
    Index of 2 documents, 5 terms, 6 postings, ... bytes (pfordelta)
    >>> index.search("be").get_column("id").to_list()
    ['ham']

    """

    segments: tuple[Segment, ...]
    analyzer: Analyzer
    stored: Documents
    codec: str
    """Name of the codec of its postings."""
    prepared: OrderedDict[Any, Any] = field(default_factory=OrderedDict, init=False)
    """What searches keep for the next ones (:mod:`polars_tadoc.index.prepared`)."""

    @cached_property
    def documents(self) -> int:
        """Number of documents."""
        return sum(segment.live_count for segment in self.segments)

    @cached_property
    def average_length(self) -> float:
        """Words of a document on average; 0 without documents."""
        return sum(segment.live_words for segment in self.segments) / max(self.documents, 1)

    @cached_property
    def terms(self) -> int:
        """Number of distinct words that documents hold."""
        words = [segment.terms.series.filter(pl.Series(segment.live_frequencies > 0)) for segment in self.segments]
        return len(words[0]) if len(words) == 1 else pl.concat(words).n_unique() if words else 0

    @cached_property
    def postings(self) -> int:
        """Number of pairs of a document and a word that it holds."""
        return sum(int(segment.live_frequencies.sum(dtype="uint64")) for segment in self.segments)

    @cached_property
    def nbytes(self) -> int:
        """Bytes of postings, words and lengths; ids, metadata and text, shared with frames, are not counted."""
        return sum(segment.nbytes for segment in self.segments)

    @property
    def ids(self) -> pl.Series:
        """What documents are called, in their order."""
        return self.stored.ids if self.live is None else self.stored.ids.filter(pl.Series(self.live))

    @property
    def metadata(self) -> pl.DataFrame | None:
        """What is known of documents, a row for each, in their order; None where nothing was given."""
        metadata = self.stored.metadata
        return metadata if metadata is None or self.live is None else metadata.filter(pl.Series(self.live))

    @cached_property
    def live(self) -> npt.NDArray[np.bool_] | None:
        """Whether each document that is stored is still there; None where all are."""
        if all(segment.live is None for segment in self.segments):
            return None
        return np.concatenate(
            [np.ones(segment.size, np.bool_) if segment.live is None else segment.live for segment in self.segments]
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Index, (self.segments, self.analyzer, self.stored, self.codec)

    def __repr__(self) -> str:
        return (
            f"Index of {self.documents:,} documents, {self.terms:,} terms, {self.postings:,} postings, "
            f"{self.nbytes:,} bytes ({self.codec})"
        )

    def search(
        self,
        queries: QueriesLike,
        k: int = 10,
        *,
        mode: str = "or",
        scoring: str = "lucene",
        k1: float = 1.5,
        b: float = 0.75,
        delta: float = 0.5,
        filter: FilterLike = None,
        engine: str | None = None,
    ) -> pl.DataFrame:
        """Find the best documents for each query of a batch, by BM25.

        Queries are cut into words as the column's text was, and words are normalised as the index's were: what it
        leaves out of texts, it leaves out of queries.

        Parameters
        ----------
        queries
            One query as a string, or several as a list, a String series or an Arrow array. A null one finds nothing.
        k
            At most so many documents for each query.
        mode
            "or": documents that hold any word of the query; "and": those that hold all; "and_or": "and", but "or" for
            queries that have fewer than ``k`` such documents.
        scoring
            Form of BM25 (Kamphuis et al., ECIR 2020): "robertson", "lucene", "atire", "bm25+" or "bm25l".
        k1
            How slowly repetition saturates, at least 0.
        b
            How much long documents are held back, from 0 to 1.
        delta
            For "bm25+" and "bm25l": what a word is worth in any document, at least 0.
        filter
            Which documents may be found: a Boolean for each (series, list or NumPy array), or a Polars expression over
            the index's metadata.
        engine
            "auto", "cpu" or "gpu"; by default what ``tadoc.Config`` says. All give the same scores, bit for bit.

        Returns
        -------
        DataFrame
            ``query: UInt32`` (number in the batch), ``rank: UInt32`` (from 1), ``id`` (of the ids' type) and ``score:
            Float32``, in the order of query and rank. Of equal scores the earlier document comes first.

        Raises
        ------
        TypeError
            ``queries`` are no strings, or another argument is of a wrong type.
        ValueError
            There is no such ``mode``, ``scoring`` or ``engine``, or a number is out of range.
        EngineUnavailableError
            ``engine="gpu"`` cannot run here.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.Series("text", ["to be or not to be", "to do is to be", "do be do be do"]).tadoc.compress()
        >>> index = tadoc.build_index(column)
        >>> index.search(["do", "to be"], k=2)
        shape: (4, 4)
        ...
        >>> index.search("to not", mode="and").get_column("id").to_list()
        [0]

        """
        return search(self, queries, k, mode, scoring, k1, b, delta, filter, engine)
