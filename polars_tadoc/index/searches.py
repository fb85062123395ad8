"""Searches of the public index: ranked documents, counts, explanations, snippets, suggestions, a server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack, overload

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_tadoc.index.collection import Collection
from polars_tadoc.index.query.expand import did_you_mean, suggest
from polars_tadoc.index.query.explain import explain
from polars_tadoc.index.query.pages import Page
from polars_tadoc.index.query.request import FilterLike, PageOptions, QueriesLike, Request, SearchOptions
from polars_tadoc.index.query.search import count, search, search_page, top, top_and_total
from polars_tadoc.index.query.snippets import snippets
from polars_tadoc.index.serve.server import Server
from polars_tadoc.runtime.arguments import require_bool
from polars_tadoc.runtime.documented import with_imports
from polars_tadoc.scoring.bm25 import Scoring


@with_imports
@dataclass(frozen=True, eq=False, repr=False)
class IndexSearches(Collection):
    """Finds, counts, explains and quotes documents of an index."""

    @overload
    def search(
        self, queries: QueriesLike, k: int = 10, *, facets: None = None, **options: Unpack[PageOptions]
    ) -> pl.DataFrame: ...

    @overload
    def search(
        self, queries: QueriesLike, k: int = 10, *, facets: str | Iterable[str], **options: Unpack[PageOptions]
    ) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]: ...

    def search(
        self,
        queries: QueriesLike,
        k: int = 10,
        *,
        mode: str = "or",
        syntax: str = "lenient",
        scoring: str = "lucene",
        k1: float = 1.5,
        b: float = 0.75,
        delta: float = 0.5,
        filter: FilterLike = None,
        offset: int = 0,
        total: bool = False,
        sort: str | Iterable[str] | None = None,
        descending: bool | Sequence[bool] = False,
        group_by: str | None = None,
        facets: str | Iterable[str] | None = None,
        engine: str | None = None,
    ) -> pl.DataFrame | tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
        """Find the best documents for each query of a batch, by BM25.

        Queries are cut into words by the column's tokenizer and normalised as the index's words were: stop words of
        the index are dropped from queries, too.

        Queries may have syntax: ``"phrases"``, ``"phrases"~2``, ``+must -not``, ``AND OR NOT``, parentheses,
        ``prefix*``, ``wild*card?s``, ``fuzzy~1``, ``word^2``, ``a NEAR/5 b``, and conditions on metadata:
        ``year:2023``, ``year:[2020 TO 2023]``. The page on search says what each means. A phrase is scored as one word
        and counts as one for ``mode``.

        Parameters
        ----------
        queries
            One query as a string, or several as a list, a String series or an Arrow array. A null query has no results.
        k
            Maximum number of documents per query.
        mode
            "or": documents that contain any word of the query; "and": those that contain all words; "and_or": "and",
            then "or" for queries with fewer than ``k`` such documents. In a query with syntax, it says how the parts
            side by side are joined.
        syntax
            "lenient": what can't be read as syntax is text, and no query raises for how it is written; "strict": it
            raises; "plain": everything is words.
        scoring
            Form of BM25: "robertson", "lucene", "atire", "bm25+" or "bm25l" (Kamphuis et al., ECIR 2020), or
            "wakatsuki" (see :func:`bm25_weights`).
        k1
            Saturation of repeated words, from 0 to 1e9.
        b
            Penalty for long documents, from 0 to 1.
        delta
            For "bm25+" and "bm25l": lower bound of a word's contribution, from 0 to 1e9.
        filter
            Documents to search: a Boolean for each (series, list or NumPy array), or a Polars expression over the
            index's metadata.
        offset
            Results to skip, of each query: the second page of ten begins at ``offset=10``.
        total
            Whether to add the number of all hits of the query.
        sort
            Metadata columns by which the hits are ordered, then by score. Nulls are last.
        descending
            Whether ``sort`` is descending: for all of its columns, or for each.
        group_by
            A metadata column: of the hits with the same value only the first is a result.
        facets
            Metadata columns by whose values all hits are counted.
        engine
            "auto", "cpu" or "gpu"; default: ``tadoc.Config``. All give the same scores, bit for bit.

        Returns
        -------
        DataFrame
            ``query: UInt32`` (number in the batch), ``rank: UInt32`` (from ``offset + 1``), ``id`` (of the ids' type)
            and ``score: Float32``, ordered by query and rank. Documents with equal scores are in document order. With
            "bm25+" and "bm25l", documents are ranked before the constant that every document gets is added.

            With ``group_by`` also ``group`` (of the column's type) and ``hits: UInt32``, the hits in the group; with
            ``total`` also ``total: UInt32``. With ``facets`` the result is this frame and a dict: for each column a
            frame of ``query: UInt32``, ``value`` (of the column's type) and ``count: UInt32``, by query, descending
            count, then value.

        Raises
        ------
        TypeError
            ``queries`` are not strings, or another argument has the wrong type.
        ValueError
            ``total``, ``sort``, ``group_by`` or ``facets`` is combined with the mode "and_or", or
            ``mode``, ``syntax``, ``scoring`` or ``engine`` is unknown, a number is out of range, a query is not valid
            text, a query has a phrase or ``NEAR`` and the index was built with ``store=False``, or ``filter`` does not
            have one value per document or cannot be computed.
        QuerySyntaxError
            A query can't be read with ``syntax="strict"``.
        ColumnMissingError
            ``filter``, ``sort``, ``group_by`` or ``facets`` names a column that the metadata does not have.
        EngineUnavailableError
            ``engine="gpu"`` cannot run here.

        Examples
        --------
        >>> column = pl.Series("text", ["to be or not to be", "to do is to be", "do be do be do"]).tadoc.compress()
        >>> index = tadoc.build_index(column)
        >>> index.search(["do", "to be"], k=2).drop("score").rows()
        [(0, 1, 2), (0, 2, 1), (1, 1, 0), (1, 2, 1)]
        >>> index.search("to not", mode="and").get_column("id").to_list()
        [0]
        >>> index.search('"do be"').get_column("id").to_list()
        [2]
        >>> index.search("(do AND be) -or").get_column("id").to_list()
        [2, 1]
        >>> df = pl.DataFrame({"year": [2023, 2024, 2024], "text": ["a disk", "the disk", "disk or disk"]})
        >>> index = df.tadoc.build_index("text", metadata=["year"])
        >>> found, counts = index.search("disk", k=1, offset=1, total=True, facets="year")
        >>> found.select("rank", "id", "total").rows(), counts["year"].drop("query").rows()
        ([(2, 0, 3)], [(2024, 2), (2023, 1)])
        >>> index.search("disk", sort="year", descending=True, group_by="year").select("id", "group", "hits").rows()
        [(2, 2024, 2), (0, 2023, 1)]

        """
        request = Request.of(k, mode, scoring, k1, b, delta, syntax)
        if (type(offset), offset, total, sort, descending, group_by, facets) == _NO_PAGE:
            return search(self, queries, request, filter, engine)
        page = Page.of(self, mode, offset, total, sort, descending, group_by, facets)
        found, counts = search_page(self, queries, request, filter, engine, page)
        return found if facets is None else (found, counts)

    @overload
    def top(
        self, query: str, k: int = 10, *, total: Literal[False] = False, **options: Unpack[SearchOptions]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]: ...

    @overload
    def top(
        self, query: str, k: int = 10, *, total: Literal[True], **options: Unpack[SearchOptions]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32], int]: ...

    def top(
        self,
        query: str,
        k: int = 10,
        *,
        mode: str = "or",
        syntax: str = "lenient",
        scoring: str = "lucene",
        k1: float = 1.5,
        b: float = 0.75,
        delta: float = 0.5,
        filter: FilterLike = None,
        total: bool = False,
        engine: str | None = None,
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]] | tuple[npt.NDArray[Any], npt.NDArray[np.float32], int]:
        """Find the best documents for one query as NumPy arrays: :meth:`search` without the cost of a frame.

        Parameters
        ----------
        query
            One query, as for :meth:`search`.
        k, mode, syntax, scoring, k1, b, delta, filter, engine
            As for :meth:`search`.
        total
            Also count all hits: one call instead of this and :meth:`count`.

        Returns
        -------
        (array, float32 array) or (array, float32 array, int)
            Ids and scores of at most ``k`` documents, best first; with ``total`` also the number of all hits. Integer
            and float ids keep their dtype, except for 128-bit integers; other ids are an object array of Python
            values.

        Raises
        ------
        TypeError, ValueError, QuerySyntaxError, ColumnMissingError, EngineUnavailableError
            As :meth:`search`; ``TypeError`` also for several queries.

        Examples
        --------
        >>> index = tadoc.build_index(pl.Series("text", ["to be or not to be", "to do", "do be do"]).tadoc.compress())
        >>> ids, scores = index.top("do not", k=2)
        >>> ids, scores.round(3)
        (array([0, 2], dtype=uint32), array([0.305, 0.285], dtype=float32))
        >>> index.top("do not", k=1, total=True)[2]
        3

        """
        if total is not False:
            require_bool("total", total, "top")
            return top_and_total(self, query, Request.of(k, mode, scoring, k1, b, delta, syntax), filter, engine)
        return top(self, query, Request.of(k, mode, scoring, k1, b, delta, syntax), filter, engine)

    def count(self, query: str, *, mode: str = "or", syntax: str = "lenient", filter: FilterLike = None) -> int:
        """Count the documents that match a query, without ranking them.

        Parameters
        ----------
        query
            One query, as for :meth:`search`.
        mode
            "or": documents that contain any word or phrase of the query; "and": those that contain all.
        syntax, filter
            As for :meth:`search`.

        Returns
        -------
        int
            Number of documents: that of the results of :meth:`search` without a limit ``k``.

        Raises
        ------
        TypeError, ValueError, QuerySyntaxError, ColumnMissingError
            As for :meth:`search`; ``TypeError`` also for several queries, ``ValueError`` for another ``mode``.

        Examples
        --------
        >>> index = tadoc.build_index(pl.Series("text", ["to be or not to be", "to do", "do be do"]).tadoc.compress())
        >>> index.count("do not"), index.count("do be", mode="and")
        (3, 1)

        """
        return count(self, query, mode, syntax, filter)

    def explain(
        self,
        query: str,
        id: Any,
        *,
        mode: str = "or",
        syntax: str = "lenient",
        scoring: str = "lucene",
        k1: float = 1.5,
        b: float = 0.75,
        delta: float = 0.5,
    ) -> pl.DataFrame:
        """Show the contribution of each word to a document's score for a query.

        Parameters
        ----------
        query
            One query, as for :meth:`search`.
        id
            The document's id.
        mode
            "or" or "and": how the parts of a query with syntax are joined.
        syntax, scoring, k1, b, delta
            As for :meth:`search`.

        Returns
        -------
        DataFrame
            A row for each distinct word or phrase (in quotes): ``word: String``, ``count: UInt32`` (occurrences in the
            document; 0 if the part of the query around the word doesn't match), ``document_frequency: UInt32``, ``idf:
            Float64`` (null if no document contains it), ``weight: Float32`` (its maximum contribution) and ``score:
            Float32`` (its contribution). For "bm25+" and "bm25l" a last row without a word has the constant that every
            result gets. The sum of ``score`` in Float32, in this order, is the score of :meth:`search`, bit for bit.

        Raises
        ------
        TypeError
            ``query`` is not a string, the id has another type than the index's ids, or a constant is not a number.
        ValueError
            No document has the id (the message names similar ones), or several have it; or as :meth:`search`.

        Examples
        --------
        >>> index = tadoc.build_index(pl.Series("text", ["to be or not to be", "to do", "do be do"]).tadoc.compress())
        >>> index.explain('to "not to"', 0).select("word", "count", "document_frequency").rows()
        [('"not to"', 1, 1), ('to', 2, 2)]

        """
        return explain(self, query, id, Scoring(scoring, k1, b, delta), mode, syntax)

    def snippets(
        self,
        results: pl.DataFrame,
        queries: QueriesLike | None = None,
        *,
        syntax: str = "lenient",
        words: int = 30,
        before: str = "**",
        after: str = "**",
        field: str | None = None,
    ) -> pl.DataFrame:
        """Add to each result the passage of its document that matches the query best, with the matches marked.

        It is the passage of ``words`` words with the highest total weight of distinct words and phrases of the query;
        then the one with most matches; then the first. Text keeps its case and separators.

        Parameters
        ----------
        results
            Result of :meth:`search`, possibly filtered and joined: columns ``query`` and ``id``. If several documents
            have an id, the first is taken.
        queries
            The queries that were searched for; required.
        syntax
            As for :meth:`search`.
        words
            Length of a snippet in words, from 1 to 1,000.
        before, after
            Text before and after each match.
        field
            For an index of several columns: the one to take passages from; default: the last.

        Returns
        -------
        DataFrame
            The results with ``snippet: String``; "…" marks omitted text.

        Raises
        ------
        TypeError
            ``results`` is not a DataFrame, ``queries`` are missing, an argument has the wrong type, or ids have another
            type than the index's.
        ColumnMissingError
            The results have no column ``query`` or ``id``.
        ValueError
            A result names an unknown query or document, ``words`` is out of range, ``syntax`` or ``field`` is unknown,
            or the index was built with ``store=False``.
        InvalidGrammarError
            A row is damaged.

        Examples
        --------
        >>> index = tadoc.build_index(pl.Series("text", ["To be, or not to be: that is", "To do"]).tadoc.compress())
        >>> found = index.search('"not to"')
        >>> index.snippets(found, '"not to"', words=5)["snippet"].to_list()
        ['To be, or **not to**…']

        """
        return snippets(self, results, queries, words, before, after, syntax, field)

    def suggest(self, beginning: str, k: int = 10) -> pl.DataFrame:
        """Return the most frequent words that begin with some characters.

        Parameters
        ----------
        beginning
            The first characters of a word. They are normalised as the index's words were.
        k
            Maximum number of words.

        Returns
        -------
        DataFrame
            ``word: String`` and ``document_frequency: UInt32``, by descending frequency, then by word.

        Raises
        ------
        TypeError
            ``beginning`` is not a string, or ``k`` not an integer.
        ValueError
            ``beginning`` is not valid text, or ``k`` is negative.

        Examples
        --------
        >>> index = tadoc.build_index(pl.Series("text", ["compute computers", "computers", "commute"]).tadoc.compress())
        >>> index.suggest("comp").rows()
        [('computers', 2), ('compute', 1)]

        """
        return suggest(self, beginning, k)

    def did_you_mean(self, query: str) -> str | None:
        """Return a query with its unknown words replaced by words of the index that are spelled alike.

        A word is replaced by the one with the fewest edits (an edit inserts, deletes or replaces a character, or swaps
        neighbours); of several, by the most frequent one. Words of 3 to 5 characters allow one edit, longer ones two.

        Parameters
        ----------
        query
            One query; its syntax stays.

        Returns
        -------
        str or None
            The corrected query; None if no word is unknown or none has a replacement.

        Raises
        ------
        TypeError
            ``query`` is not a string.
        ValueError
            ``query`` is not valid text.

        Examples
        --------
        >>> index = tadoc.build_index(pl.Series("text", ["a null pointer", "a point"]).tadoc.compress())
        >>> index.did_you_mean('"null pionter" -point')
        '"null pointer" -point'
        >>> index.did_you_mean("null pointer") is None
        True

        """
        return did_you_mean(self, query)

    def serve(
        self,
        k: int = 10,
        *,
        mode: str = "or",
        syntax: str = "lenient",
        deadline: float | None = None,
        scoring: str = "lucene",
        k1: float = 1.5,
        b: float = 0.75,
        delta: float = 0.5,
        filter: FilterLike = None,
        engine: str | None = None,
    ) -> Server:
        """Answer a stream of queries on all CPU threads, on the GPU, or on both.

        With a GPU, the engine leads that would answer more queries; both are measured at the start and while they
        serve. The other one helps while queries queue, as long as more are answered with its help than without: then
        each query runs on the engine with the lower predicted time, and an idle engine takes work from the other (Ding
        et al., WWW 2009, section 9). Engines take several queries at once.

        Parameters
        ----------
        k, mode, syntax, scoring, k1, b, delta, filter
            As for :meth:`search`; they apply to all queries.
        deadline
            Seconds within which a query must be answered. A query that no engine can answer in time is dropped, and its
            future raises ``DeadlineMissedError``. None: no deadline.
        engine
            "auto": CPU and GPU, or the CPU alone without a GPU; "cpu" or "gpu": that one; default: ``tadoc.Config``.

        Returns
        -------
        Server
            With ``submit(query)``, which returns a ``concurrent.futures.Future`` of the frame that :meth:`search`
            returns for that query, ``statistics()`` and ``close()``. As a context manager it closes at the end, after
            all queries are answered.

        Raises
        ------
        TypeError
            An argument has the wrong type.
        ValueError
            ``mode``, ``syntax``, ``scoring`` or ``engine`` is unknown, a number is out of range, or ``filter`` does not
            have one value per document or cannot be computed.
        EngineUnavailableError
            ``engine="gpu"`` cannot run here.

        Examples
        --------
        >>> index = tadoc.build_index(pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress())
        >>> with index.serve(k=1, mode="and", deadline=10.0) as server:
        ...     futures = [server.submit(query) for query in ["to be", "to do"]]
        ...     [future.result().get_column("id").item() for future in futures]
        [0, 1]

        """
        return Server(self, Request.of(k, mode, scoring, k1, b, delta, syntax), deadline, filter, engine)


_NO_PAGE = int, 0, False, None, False, None, None
"""Arguments of :meth:`Index.search` that ask for the best documents only."""
