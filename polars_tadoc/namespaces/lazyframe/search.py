"""``lf.tadoc``: indexes, phrases and XPath queries."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any, Unpack

import polars as pl

from polars_tadoc.analytics.collocations import SCHEMA as COLLOCATIONS_SCHEMA
from polars_tadoc.analytics.collocations import CollocationsOptions, CollocationsRequest
from polars_tadoc.analytics.concordance import ConcordanceOptions, ConcordanceRequest, PositionsRequest
from polars_tadoc.analytics.twig_filter import TwigFilterRequest
from polars_tadoc.execute.columns import text_column
from polars_tadoc.execute.plan import read_columns
from polars_tadoc.index.construct.build import IndexColumnOptions, build_index
from polars_tadoc.index.construct.sink_plan import sink_plan
from polars_tadoc.namespaces.accessors import require_phrase
from polars_tadoc.namespaces.dataframe import TadocFrame
from polars_tadoc.namespaces.lazyframe.base import PlanBase, TwigFilterInPlans, documented
from polars_tadoc.rows.phrases import PhraseOptions
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.process.writer_thread import apart
from polars_tadoc.storage.object_store import Access
from polars_tadoc.twig.twig_set import TwigSet


class PlanSearch(PlanBase):
    """Indexes, phrases and XPath queries."""

    @documented(TadocFrame.twig_filter)
    def twig_filter(
        self,
        column: str | None = None,
        queries: Mapping[str, str] | TwigSet | None = None,
        *,
        id: str | None = None,
        **options: Unpack[TwigFilterInPlans],
    ) -> pl.LazyFrame:
        """Find the XPath queries that each row's XML document matches; only it and ``id`` are read.

        The column is optional if there is only one compressed column: ``twig_filter(queries=…)``. Later changes of a
        :class:`TwigSet` have no effect on the plan.

        Examples
        --------
        >>> lf = pl.LazyFrame({"name": ["x", "y"], "xml": ["<a><b/><c/></a>", "<a><c/></a>"]})
        >>> lf.tadoc.twig_filter("xml", {"both": "/a[b]/c", "any": "//c"}, id="name").collect().rows()
        [('x', 'both'), ('x', 'any'), ('y', 'any')]

        """
        required = TwigFilterRequest.required(column, queries)
        return self._plan(partial(TwigFilterRequest.from_arguments, required), options, column, id)

    @documented_by(TadocFrame.collocations)
    def collocations(self, column: str | None = None, **options: Unpack[CollocationsOptions]) -> pl.LazyFrame:
        """Score pairs of words of a compressed column or text; only the column is read.

        The column is held in memory while the plan runs.

        Examples
        --------
        >>> lf = pl.LazyFrame({"text": ["New York is big", "is New York on", "is it on"]})
        >>> lf.tadoc.collocations("text", min_count=2).collect().rows()
        [('New', 'York', 2, 1.0)]

        """
        request = CollocationsRequest.from_arguments(**options)
        name = text_column(self._lf.collect_schema(), column, request.name)
        return read_columns(self._lf, request, name, None, COLLOCATIONS_SCHEMA)

    @documented_by(TadocFrame.positions)
    def positions(
        self,
        column: str | None = None,
        phrase: str | None = None,
        *,
        id: str | None = None,
        **options: Unpack[PhraseOptions],
    ) -> pl.LazyFrame:
        """Find where a phrase occurs in a compressed column or text; only the column and ``id`` are read.

        The column is held in memory while the plan runs.

        Examples
        --------
        >>> lf = pl.LazyFrame({"text": ["to be or not to be", "be"]})
        >>> lf.tadoc.positions("text", "to be").collect().rows()
        [(0, 0, 2), (0, 4, 2)]

        """
        return self._labelled(PositionsRequest.of(require_phrase(phrase, "positions"), options), column, id)

    @documented_by(TadocFrame.concordance)
    def concordance(
        self,
        column: str | None = None,
        phrase: str | None = None,
        *,
        id: str | None = None,
        **options: Unpack[ConcordanceOptions],
    ) -> pl.LazyFrame:
        """Show a phrase in context, each occurrence with the words around it; only the column and ``id`` are read.

        The column is held in memory while the plan runs.

        Examples
        --------
        >>> lf = pl.LazyFrame({"text": ["To be, or not to be!", "be"]})
        >>> lf.tadoc.concordance("text", "not", window=2).collect().rows()
        [(0, 3, 'be, or', 'not', 'to be')]

        """
        return self._labelled(ConcordanceRequest.of(require_phrase(phrase, "concordance"), **options), column, id)

    @documented_by(
        build_index,
        id="Name of a column with the ids of documents; default: row numbers. Several documents may share an id:\n"
        "    deleting it deletes all of them.",
        metadata="Names of columns for filters.",
        store="Whether to write the compressed text with the index, for phrases and snippets; a loaded index holds\n"
        "    it in memory.",
        memory_limit="""Bytes, or a number with a unit ("2GB", "512MiB"): documents are indexed batch by batch, and
    merged word by word. Postings that do not fit are spilled to disk (``tadoc.Config(spill_folder=…)``), and the new
    index is written to a hidden folder beside the target. One grammar with its rows must fit; Polars' prefetched data
    is extra.""",
        checkpoint="""Local folder for postings of finished partitions of a packed scan. The same call with the same
    folder continues after them; the folder stays until you delete it. Requires a scan that raises errors
    (``on_error="raise"``).""",
        path="The folder to create, or its address in an object store (``s3://bucket/index``).",
        overwrite="Whether to replace a saved index of that name. Processes that have loaded it keep the old one.",
        storage_options="Access to the object store, as for :func:`polars_tadoc.scan_packed`.",
        credential_provider="As for :func:`polars_tadoc.scan_packed`.",
    )
    @apart
    def sink_index(
        self,
        path: str | os.PathLike[str],
        column: str | Mapping[str, float] | None = None,
        *,
        id: str | None = None,
        memory_limit: int | str = "1GB",
        checkpoint: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
        storage_options: Mapping[str, Any] | None = None,
        credential_provider: Any = "auto",
        **options: Unpack[IndexColumnOptions],
    ) -> None:
        """Run the plan and save a search index of its rows as a folder, for :func:`polars_tadoc.load_index`.

        The column is compressed or plain text, which is compressed only to be stored. Saves the index of
        :func:`polars_tadoc.build_index` in the format of :meth:`polars_tadoc.Index.save`, for more
        documents than memory holds. The folder appears only when it is complete. Several columns with their weights,
        ``{"title": 2.0, "body": 1.0}``, are fields of the index, as in :func:`polars_tadoc.build_index`.

        Examples
        --------
        >>> df = pl.DataFrame({"year": [1, 2], "text": ["to be", "to do"]}).tadoc.compress("text")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     df.tadoc.write_packed(Path(folder) / "texts.parquet")
        ...     tadoc.scan_packed(folder).tadoc.sink_index(Path(folder) / "index", id="year")
        ...     tadoc.load_index(Path(folder) / "index").search("do")["id"].to_list()
        [2]

        """
        access = Access(storage_options, credential_provider)
        sink_plan(self._lf, path, column, id, memory_limit, checkpoint, overwrite, access, options)
