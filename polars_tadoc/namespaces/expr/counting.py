"""``pl.col(…).tadoc``: counts and weights."""

from __future__ import annotations

from typing import Unpack

import polars as pl

from polars_tadoc.analytics import index_by_group
from polars_tadoc.analytics.by_group import count_lengths, count_pairs, count_sequences, count_words, sort_words
from polars_tadoc.analytics.cooccurrence import CooccurrenceOptions, CooccurrenceRequest, cooccurrence
from polars_tadoc.analytics.inverted_index import InvertedIndexRequest, inverted_index
from polars_tadoc.analytics.ranked_inverted_index import RankedInvertedIndexRequest, ranked_inverted_index
from polars_tadoc.analytics.sequence_count import LengthsRequest, request_of, sequence_count
from polars_tadoc.analytics.sort import SortRequest, sort
from polars_tadoc.analytics.term_vector import TermVectorRequest, term_vector
from polars_tadoc.analytics.word_count import WordCountRequest, word_count
from polars_tadoc.namespaces.expr.base import LABEL, ExprBase
from polars_tadoc.rows.expressions import elementwise
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.traversal.options import CountOptions, LengthsOptions, RunOptions, TopOptions


class ExprCounting(ExprBase):
    """Counts and weights."""

    @documented_by(
        word_count,
        returns="``List(Struct{word: String, count: UInt64})``, by descending count, then word in code point order.",
    )
    def word_count(self, **options: Unpack[TopOptions]) -> pl.Expr:
        """Count the words of each group of rows: one list per group, or one for all rows.

        Examples
        --------
        >>> df = pl.DataFrame({"year": [1, 2, 1], "text": ["to be", "to do", "not to be"]}).tadoc.compress("text")
        >>> counts = df.group_by("year", maintain_order=True).agg(pl.col("text").tadoc.word_count(top=2))
        >>> counts.explode("text").unnest("text").rows()
        [(1, 'be', 2), (1, 'to', 2), (2, 'do', 1), (2, 'to', 1)]

        """
        return self._by_group(count_words("word_count", WordCountRequest.from_arguments(**options)))

    @documented_by(sort, returns="``List(Struct{word: String, count: UInt64})``, by word in code point order.")
    def sort(self, **options: Unpack[CountOptions]) -> pl.Expr:
        """List the words of each group of rows in code point order: one list per group, or one for all rows.

        Examples
        --------
        >>> df = pl.DataFrame({"year": [1, 1], "text": ["to be", "not to be"]}).tadoc.compress("text")
        >>> df.group_by("year").agg(pl.col("text").tadoc.sort()).explode("text").unnest("text").rows()
        [(1, 'be', 2), (1, 'not', 1), (1, 'to', 2)]

        """
        return self._by_group(sort_words(SortRequest.from_arguments(**options)))

    @documented_by(inverted_index, id=LABEL)
    def inverted_index(self, *, id: str | pl.Expr | None = None, **options: Unpack[CountOptions]) -> pl.Expr:
        """List the rows of each group that contain each word: one list per group, or one for all rows.

        Returns
        -------
        Expr
            ``List(Struct{word: String, documents: List})``, by word in code point order; ``documents`` are labels, or
            rows numbered within the group, in row order.

        Examples
        --------
        >>> df = pl.DataFrame({"year": [1, 2, 1], "day": ["a", "b", "c"], "text": ["to be", "to do", "not to be"]})
        >>> df = df.tadoc.compress("text")
        >>> index = df.group_by("year", maintain_order=True).agg(pl.col("text").tadoc.inverted_index(id="day"))
        >>> index.explode("text").unnest("text").rows()[:2]
        [(1, 'be', ['a', 'c']), (1, 'not', ['c'])]

        """
        request = InvertedIndexRequest.from_arguments(**options)
        return self._index(index_by_group.InvertedIndex(request), id, index_by_group.index_dtype)

    @documented_by(ranked_inverted_index, id=LABEL)
    def ranked_inverted_index(self, *, id: str | pl.Expr | None = None, **options: Unpack[RunOptions]) -> pl.Expr:
        """List the rows of each group that contain each sequence of n words, by descending count.

        Returns
        -------
        Expr
            ``List(Struct{sequence: List(String), documents: List(Struct{id, count: UInt64})})``; by words in code point
            order, documents by descending count, then in row order.

        Examples
        --------
        >>> df = pl.DataFrame({"year": [1, 1], "text": ["to be", "to be or not to be"]}).tadoc.compress("text")
        >>> index = df.group_by("year").agg(pl.col("text").tadoc.ranked_inverted_index(n=2, min_count=2))
        >>> index.explode("text").unnest("text").rows()
        [(1, ['to', 'be'], [{'id': 1, 'count': 2}, {'id': 0, 'count': 1}])]

        """
        request = RankedInvertedIndexRequest.from_arguments(**options)
        return self._index(index_by_group.RankedInvertedIndex(request), id, index_by_group.ranked_dtype)

    @documented_by(
        term_vector,
        returns="``List(Struct{word: String, count: UInt64})``, by descending count, then word in code point order.",
    )
    def term_vector(self, **options: Unpack[TopOptions]) -> pl.Expr:
        """Count the words of each row: row-wise, null for null rows.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["to be or not to be", None]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.term_vector(top=1)).to_series().to_list()
        [[{'word': 'be', 'count': 2}], None]

        """
        request = TermVectorRequest.from_arguments(**options)
        how = count_words("term_vector", request)
        return elementwise(how.run_rows, how.dtype, self._expr)

    @documented_by(
        sequence_count,
        returns="``List(Struct{sequence: List(String), count: UInt64})``, by descending count, then in code point "
        "order; with several lengths the first field is ``n: UInt32``, in the order of ``n``.",
    )
    def sequence_count(self, **options: Unpack[LengthsOptions]) -> pl.Expr:
        """Count the sequences of n words in each group of rows: one list per group, or one for all rows.

        Examples
        --------
        >>> df = pl.DataFrame({"year": [1, 1, 2], "text": ["to be", "not to be", "to do"]}).tadoc.compress("text")
        >>> counts = df.group_by("year", maintain_order=True).agg(pl.col("text").tadoc.sequence_count(n=2, top=1))
        >>> counts.explode("text").unnest("text").rows()
        [(1, ['to', 'be'], 2), (2, ['to', 'do'], 1)]

        """
        request = request_of(**options)
        if isinstance(request, LengthsRequest):
            return self._by_group(count_lengths(request))
        return self._by_group(count_sequences(request))

    @documented_by(
        cooccurrence,
        returns="``List(Struct{word: String, other: String, count: UInt64})``, by descending count, then both "
        "words in order.",
    )
    def cooccurrence(self, **options: Unpack[CooccurrenceOptions]) -> pl.Expr:
        """Count the pairs of words within a window in each group of rows, or in all rows.

        Examples
        --------
        >>> df = pl.DataFrame({"year": [1, 1, 2], "text": ["to be", "be to", "to do"]}).tadoc.compress("text")
        >>> counts = df.group_by("year", maintain_order=True).agg(pl.col("text").tadoc.cooccurrence(window=1))
        >>> counts.explode("text").unnest("text").rows()
        [(1, 'be', 'to', 2), (2, 'do', 'to', 1)]

        """
        return self._by_group(count_pairs(CooccurrenceRequest.from_arguments(**options)))
