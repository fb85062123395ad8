"""``lf.tadoc``: strip tokenize the compressed form, and what rows hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import polars as pl
import polars.selectors as cs

from polars_tadoc.analytics.info import SCHEMA as INFO_SCHEMA
from polars_tadoc.analytics.info import InfoRequest
from polars_tadoc.compress.compress import Compression, CompressOptions, compress
from polars_tadoc.compress.recompress import RecompressOptions, recompress
from polars_tadoc.compress.stream import compress_stream
from polars_tadoc.execute.columns import compressed_column, each_column, string_column
from polars_tadoc.execute.plan import read_columns
from polars_tadoc.namespaces.dataframe import TadocFrame
from polars_tadoc.namespaces.dataframe.base import EACH_COLUMN
from polars_tadoc.namespaces.expr import TadocExpr
from polars_tadoc.namespaces.lazyframe.base import PlanBase
from polars_tadoc.runtime.documented import documented_by


class PlanColumns(PlanBase):
    """Strip tokenize the compressed form, and what rows hold."""

    @documented_by(
        compress,
        returns="The plan with the columns as ``tadoc.DTYPE``, or in the type of ``like`` or ``Config(column_type=)``.",
        column=EACH_COLUMN,
    )
    def compress(self, column: str | Sequence[str], **options: Unpack[CompressOptions]) -> pl.LazyFrame:
        """Replace String columns by their compressed form.

        The plan runs in Polars' streaming engine and is compressed block by block, so that
        ``pl.scan_parquet("big.parquet").tadoc.compress("text").tadoc.sink_parquet("big.tadoc.parquet")`` needs memory
        for a few blocks only.

        Examples
        --------
        >>> lf = pl.LazyFrame({"text": ["to be", "to do"]}).tadoc.compress("text")
        >>> tadoc.is_tadoc(lf.collect_schema()["text"])
        True

        """
        lf = self._lf
        schema = lf.collect_schema()
        how = Compression.from_arguments(**options)
        for name in each_column(column, lambda name: string_column(schema, name, "compress")):
            lf = compress_stream(lf, lf.collect_schema(), name, how)
        return lf

    @documented_by(recompress, returns="The plan with the same rows; the type of the column does not change.")
    def recompress(self, column: str | None = None, **options: Unpack[RecompressOptions]) -> pl.LazyFrame:
        """Merge the grammars of a compressed column (optional if there is only one).

        Holds all rows of the column in memory, compressed.

        Examples
        --------
        >>> lf = pl.concat([pl.LazyFrame({"text": [text]}).tadoc.compress("text") for text in ("to be", "to do")])
        >>> lf.tadoc.recompress().tadoc.info().collect()["grammars"].to_list()
        [1]

        """
        name = compressed_column(self._lf.collect_schema(), column, "recompress")
        return self._lf.with_columns(TadocExpr(cs.by_name(name).as_expr()).recompress(**options))

    @documented_by(TadocFrame.decompress)
    def decompress(self, column: str | Sequence[str] | None = None) -> pl.LazyFrame:
        """Replace compressed columns (optional if there is only one) by their text.

        Examples
        --------
        >>> pl.LazyFrame({"text": ["to be"]}).tadoc.compress("text").tadoc.decompress().collect().rows()
        [('to be',)]

        """
        schema = self._lf.collect_schema()
        names = each_column(column, lambda name: compressed_column(schema, name, "decompress"))
        return self._lf.with_columns(TadocExpr(cs.by_name(*names).as_expr()).decompress())

    @documented_by(TadocFrame.info)
    def info(self, column: str | None = None) -> pl.LazyFrame:
        """Describe a compressed column in one row; columns as for :func:`polars_tadoc.info`.

        Examples
        --------
        >>> lf = pl.LazyFrame({"text": ["to be"]}).tadoc.compress("text")
        >>> lf.tadoc.info().select("rows", "words").collect().row(0)
        (1, 2)

        """
        lf = self._lf
        name = compressed_column(lf.collect_schema(), column, "info")
        return read_columns(lf, InfoRequest(), name, None, INFO_SCHEMA)
