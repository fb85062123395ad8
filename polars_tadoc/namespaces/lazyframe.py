"""``lf.tadoc``: the same analytics as nodes of a lazy plan."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import polars as pl
import polars.selectors as cs

from polars_tadoc.analytics import info as info_analytic
from polars_tadoc.analytics import word_count as word_count_analytic
from polars_tadoc.compress.compress import ROWS_PER_GRAMMAR, Compression, compress
from polars_tadoc.compress.recompress import recompress
from polars_tadoc.compress.stream import compress_stream
from polars_tadoc.decompress import decompress
from polars_tadoc.namespaces.columns import compressed_column, string_column
from polars_tadoc.namespaces.documented import documented_by


@pl.api.register_lazyframe_namespace("tadoc")
class TadocLazyFrame:
    """Grammar compression and analytics in a lazy plan: schemas are static, nothing runs before ``collect``.

    The plan's schema is resolved when a call is made, so a wrong column is reported there and then.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> lf = pl.LazyFrame({"year": [1, 2], "text": ["to be", "to do"]}).tadoc.compress("text")
    >>> lf.filter(pl.col("year") == 2).tadoc.word_count("text").collect().rows()
    [('do', 1), ('to', 1)]

    """

    def __init__(self, lf: pl.LazyFrame) -> None:
        self._held = lf

    def _frame(self) -> pl.LazyFrame:
        # Polars caches the accessor on the frame: left there it would keep the frame alive in a cycle
        self._held.__dict__.pop("tadoc", None)
        return self._held

    @documented_by(compress)
    def compress(
        self,
        column: str,
        *,
        like: pl.Series | None = None,
        tokenizer: str | re.Pattern[str] | None = None,
        method: str = "batch_repair",
        lossless: bool | None = None,
        rows_per_grammar: int | None = None,
        progress: bool = False,
        engine: str | None = None,
    ) -> pl.LazyFrame:
        """Replace a String column by its compressed form.

        The plan runs in Polars' streaming engine and is compressed block by block, so that
        ``pl.scan_parquet("big.parquet").tadoc.compress("text").sink_parquet("big.tadoc.parquet")`` needs memory for a
        few blocks only.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"text": ["to be", "to do"]}).tadoc.compress("text")
        >>> tadoc.is_tadoc(lf.collect_schema()["text"])
        True

        """
        lf = self._frame()
        schema = lf.collect_schema()
        how = Compression.from_arguments(
            like=like,
            tokenizer=tokenizer,
            method=method,
            lossless=lossless,
            rows_per_grammar=rows_per_grammar,
            progress=progress,
            engine=engine,
        )
        return compress_stream(lf, schema, string_column(schema, column, "compress"), how)

    @documented_by(recompress)
    def recompress(
        self,
        column: str | None = None,
        *,
        tail: bool = False,
        method: str = "batch_repair",
        rows_per_grammar: int = ROWS_PER_GRAMMAR,
        progress: bool = False,
        engine: str | None = None,
    ) -> pl.LazyFrame:
        """Merge the grammars of a compressed column (may be left out where there is one).

        All rows of the column are held in memory, compressed.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.concat([pl.LazyFrame({"text": [text]}).tadoc.compress("text") for text in ("to be", "to do")])
        >>> lf.tadoc.recompress().tadoc.info().collect()["grammars"].to_list()
        [1]

        """
        lf = self._frame()
        name = compressed_column(lf.collect_schema(), column, "recompress")
        return lf.with_columns(
            cs.by_name(name)
            .as_expr()
            .tadoc.recompress(  # type: ignore[attr-defined]
                tail=tail, method=method, rows_per_grammar=rows_per_grammar, progress=progress, engine=engine
            )
        )

    @documented_by(decompress)
    def decompress(self, column: str | None = None) -> pl.LazyFrame:
        """Replace a compressed column (may be left out where there is one) by its text.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.LazyFrame({"text": ["to be"]}).tadoc.compress("text").tadoc.decompress().collect().rows()
        [('to be',)]

        """
        lf = self._frame()
        name = compressed_column(lf.collect_schema(), column, "decompress")
        return lf.with_columns(cs.by_name(name).as_expr().tadoc.decompress())  # type: ignore[attr-defined]

    @documented_by(word_count_analytic.word_count)
    def word_count(
        self,
        column: str | None = None,
        *,
        top: int | None = None,
        min_count: int = 1,
        normalize: pl.Expr | None = None,
        lowercase: bool = False,
        stopwords: Iterable[str] | None = None,
        engine: str | None = None,
    ) -> pl.LazyFrame:
        """Count the words of a compressed column; only that column is read.

        Returns
        -------
        LazyFrame
            ``word: String, count: UInt64``, by count falling, then word in code point order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"text": ["the cat", "the dog"]}).tadoc.compress("text")
        >>> lf.tadoc.word_count(top=1).collect().rows()
        [('the', 2)]

        """
        request = word_count_analytic.Request.from_arguments(
            top=top,
            min_count=min_count,
            normalize=normalize,
            lowercase=lowercase,
            stopwords=stopwords,
            engine=engine,
        )
        return self._analytic(
            "word_count", column, lambda series: request.run(series).to_frame(), word_count_analytic.SCHEMA
        )

    @documented_by(info_analytic.info)
    def info(self, column: str | None = None) -> pl.LazyFrame:
        """Describe a compressed column in one row; columns as :func:`polars_tadoc.info`'s.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> lf = pl.LazyFrame({"text": ["to be"]}).tadoc.compress("text")
        >>> lf.tadoc.info().select("rows", "words").collect().row(0)
        (1, 2)

        """
        return self._analytic(
            "info", column, lambda series: pl.DataFrame(info_analytic.info(series)), info_analytic.SCHEMA
        )

    def _analytic(
        self, call: str, column: str | None, run: Callable[[pl.Series], pl.DataFrame], schema: pl.Schema
    ) -> pl.LazyFrame:
        lf = self._frame()
        name = compressed_column(lf.collect_schema(), column, call)
        return lf.select(cs.by_name(name)).map_batches(
            lambda df: run(df[name]),
            schema=schema,
            # what follows speaks of the result's columns and rows, not of the input's
            predicate_pushdown=False,
            projection_pushdown=False,
            slice_pushdown=False,
        )
