"""``df.tadoc``: indexes, phrases and XPath queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import polars as pl

from polars_tadoc.analytics.collocations import CollocationsOptions, CollocationsRequest, collocations
from polars_tadoc.analytics.concordance import (
    ConcordanceOptions,
    ConcordanceRequest,
    PositionsRequest,
    concordance,
    positions,
)
from polars_tadoc.analytics.twig_filter import TwigFilterOptions, TwigFilterRequest, twig_filter
from polars_tadoc.execute.columns import metadata_columns
from polars_tadoc.index.construct.build import IndexColumnOptions, build_fields, build_index
from polars_tadoc.index.index import Index
from polars_tadoc.namespaces.accessors import require_phrase
from polars_tadoc.namespaces.dataframe.base import LABELS, FrameBase
from polars_tadoc.rows.phrases import PhraseOptions
from polars_tadoc.runtime.documented import documented_by, with_imports
from polars_tadoc.twig.twig_set import TwigSet


@with_imports
class FrameSearch(FrameBase):
    """Indexes, phrases and XPath queries."""

    @documented_by(
        build_index,
        id="Name of a column of the frame with the ids of documents; default: row numbers.",
        metadata="Names of columns of the frame that filters may use.",
    )
    def build_index(
        self,
        column: str | Mapping[str, float] | None = None,
        *,
        id: str | None = None,
        **options: Unpack[IndexColumnOptions],
    ) -> Index:
        """Build a search index of a column, text or compressed (optional if there is only one compressed).

        Several columns are given with their weights. A document's words then count as often as their fields weigh, also
        for its length (Robertson, Zaragoza and Taylor, CIKM 2004), and queries may ask for the words of one field:
        ``title:disk``. The columns are compressed anew, together. A misspelt column raises ``ColumnMissingError`` with
        the nearest names.

        Returns
        -------
        Index
            The index, in memory; :meth:`polars_tadoc.Index.save` writes it.

        Examples
        --------
        >>> df = pl.DataFrame({"year": [1, 2, 3], "text": ["to be", "to do", "do be"]}).tadoc.compress("text")
        >>> index = df.tadoc.build_index("text", id="year", metadata=["year"])
        >>> index.search("do", filter=pl.col("year") > 2)["id"].to_list()
        [3]
        >>> df = pl.DataFrame({"title": ["Disks", "Links"], "body": ["a link", "a disk and links"]})
        >>> index = df.tadoc.build_index({"title": 2.0, "body": 1.0})
        >>> index.search("links")["id"].to_list(), index.count("title:link"), index.count("body:link")
        ([1], 0, 1)

        """
        call, names = "build_index", options["metadata"]
        listed = [] if names is None else metadata_columns(self._df.columns, names, call)
        own: Any = {**options, "metadata": self._df[listed] if listed else None}
        if isinstance(column, Mapping):
            return build_fields(self._df, column, self._labels(call, id), **own)
        return build_index(self._text(call, column), id=self._labels(call, id), **own)

    def append_to(
        self,
        index: Index,
        column: str | None = None,
        *,
        id: str | None = None,
        upsert: bool = False,
        strategy: str = "auto",
        engine: str | None = None,
        progress: bool | None = None,
    ) -> Index:
        """Return an index with the documents of this frame appended, as :meth:`polars_tadoc.Index.append`.

        Parameters
        ----------
        index
            The index, which does not change.
        column
            Compressed column (optional if there is only one), with the index's tokenizer; or a column of plain text.
        id
            Name of the column with the ids of the new documents, if the index has ids. An id that the index has already
            raises, unless ``upsert`` is set; several rows may have one id.
        upsert
            Whether to replace the documents of the index whose ids the frame has, in the same step. A row with null
            text deletes the documents of its id.
        strategy
            "auto", "top_down" or "bottom_up": direction in which the rules are traversed; the index is the same.
        engine
            "auto", "cpu" or "gpu": where words are counted; by default the engine of ``tadoc.Config``.

        Returns
        -------
        Index
            The new index. Its metadata are the frame's columns of the same names.

        Raises
        ------
        TypeError
            ``index`` is not an index, or as for :meth:`polars_tadoc.Index.append`.
        ColumnMissingError
            The frame lacks the column, or a metadata column of the index.
        ValueError
            The index has documents with some of the ids (the message names some) and ``upsert`` is not set, or as for
            :meth:`polars_tadoc.Index.append`.
        NotCompressedError, InvalidGrammarError, LimitExceededError, EngineUnavailableError
            As for :meth:`polars_tadoc.Index.append`.

        Examples
        --------
        >>> df = pl.DataFrame({"year": [1, 2, 3], "text": ["to be", "to do", "do be"]}).tadoc.compress("text")
        >>> index = df.head(2).tadoc.build_index("text", id="year", metadata=["year"])
        >>> df.tail(1).tadoc.append_to(index, "text", id="year").search("do", filter=pl.col("year") > 2)["id"].to_list()
        [3]
        >>> df.tadoc.append_to(index, "text", id="year", upsert=True).ids.to_list()
        [1, 2, 3]

        """
        if not isinstance(index, Index):
            kind = type(index).__name__
            raise TypeError(f"append_to: index is {kind}, not an Index; build_index or load_index(path) gives one")
        ids, known = self._labels("append_to", id), index.stored.metadata
        if index.fields is not None and column is not None:
            raise ValueError("append_to: the index has several fields; omit the column: the frame's have their names")
        texts = self._df if index.fields is not None else self._text("append_to", column)
        listed = [] if known is None else known.columns
        metadata_columns(self._df.columns, listed, "append_to", "the index's metadata")
        metadata = None if known is None else self._df.select(listed)
        how: Any = {"upsert": upsert, "strategy": strategy, "engine": engine, "progress": progress}
        return index.append(texts, id=ids, metadata=metadata, **how)

    @documented_by(twig_filter, id=LABELS)
    def twig_filter(
        self,
        column: str | None = None,
        queries: Mapping[str, str] | TwigSet | None = None,
        *,
        id: str | None = None,
        **options: Unpack[TwigFilterOptions],
    ) -> pl.DataFrame:
        """Find the XPath queries that each row's XML document matches, compressed or String.

        The column is optional if there is only one compressed column: ``twig_filter(queries=…)``.

        Returns
        -------
        DataFrame
            ``id, query: String``, one row per match; in row order, each row's queries in the order of
            the set.

        Examples
        --------
        >>> df = pl.DataFrame({"name": ["x", "y"], "xml": ["<a><b/><c/></a>", "<a><c/></a>"]})
        >>> df.tadoc.twig_filter("xml", {"both": "/a[b]/c", "any": "//c"}, id="name").rows()
        [('x', 'both'), ('x', 'any'), ('y', 'any')]

        """
        return self._answer(TwigFilterRequest.of_frame(column, queries, **options), column, id)

    @documented_by(
        collocations,
        returns="``word, other: String, count: UInt64, score: Float64``, by descending score, then in code "
        "point order.",
    )
    def collocations(self, column: str | None = None, **options: Unpack[CollocationsOptions]) -> pl.DataFrame:
        """Score pairs of words of a compressed column or text by how much more often they occur than by chance.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["New York is big", "is New York on", "is it on"]})
        >>> df.tadoc.collocations("text", min_count=2).rows()
        [('New', 'York', 2, 1.0)]

        """
        return CollocationsRequest.from_arguments(**options).frame(self._text("collocations", column))

    @documented_by(
        positions,
        returns="``id, offset: UInt32, length: UInt32``, in row order: the occurrence's first word and its "
        "number of words.",
        id=LABELS,
    )
    def positions(
        self,
        column: str | None = None,
        phrase: str | None = None,
        *,
        id: str | None = None,
        **options: Unpack[PhraseOptions],
    ) -> pl.DataFrame:
        """Find where a phrase occurs in a compressed column or text.

        The column is optional if there is only one compressed column: ``positions(phrase=…)``.

        Examples
        --------
        >>> df = pl.DataFrame({"page": ["a", "b"], "text": ["to be or not to be", "be"]}).tadoc.compress("text")
        >>> df.tadoc.positions("text", "to be", id="page").rows()
        [('a', 0, 2), ('a', 4, 2)]

        """
        request = PositionsRequest.of(require_phrase(phrase, "positions"), options)
        return request.frame(self._text(request.name, column), self._labels(request.name, id))

    @documented_by(concordance, returns="``id, offset: UInt32, left, match, right: String``, in row order.", id=LABELS)
    def concordance(
        self,
        column: str | None = None,
        phrase: str | None = None,
        *,
        id: str | None = None,
        **options: Unpack[ConcordanceOptions],
    ) -> pl.DataFrame:
        """Show a phrase in context: each occurrence in a compressed column or text, with the words around it.

        The column is optional if there is only one compressed column: ``concordance(phrase=…)``.

        Examples
        --------
        >>> df = pl.DataFrame({"page": ["a", "b"], "text": ["To be, or not to be!", "be"]}).tadoc.compress("text")
        >>> df.tadoc.concordance("text", "not", id="page", window=2).rows()
        [('a', 3, 'be, or', 'not', 'to be')]

        """
        request = ConcordanceRequest.of(require_phrase(phrase, "concordance"), **options)
        return request.frame(self._text(request.name, column), self._labels(request.name, id))
