"""``series.tadoc``: the same calls on one column."""

from __future__ import annotations

import re
from collections.abc import Iterable

import polars as pl

from polars_tadoc.analytics import word_count as word_count_analytic
from polars_tadoc.analytics.info import info
from polars_tadoc.compress.compress import ROWS_PER_GRAMMAR, compress
from polars_tadoc.compress.recompress import recompress
from polars_tadoc.decompress import decompress
from polars_tadoc.namespaces.documented import documented_by


@pl.api.register_series_namespace("tadoc")
class TadocSeries:
    """Grammar compression and analytics on a series.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> pl.Series("text", ["to be or not to be"]).tadoc.compress().tadoc.word_count(top=2).rows()
    [('be', 2), ('to', 2)]

    """

    def __init__(self, series: pl.Series) -> None:
        self._held = series

    def _series(self) -> pl.Series:
        # Polars caches the accessor on the series: left there it would keep the series alive in a cycle
        self._held.__dict__.pop("tadoc", None)
        return self._held

    @documented_by(compress)
    def compress(
        self,
        *,
        like: pl.Series | None = None,
        tokenizer: str | re.Pattern[str] | None = None,
        method: str = "batch_repair",
        lossless: bool | None = None,
        rows_per_grammar: int | None = None,
        progress: bool = False,
        engine: str | None = None,
    ) -> pl.Series:
        """Compress a String series; result as :func:`polars_tadoc.compress`'s.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> tadoc.is_tadoc(pl.Series(["to be"]).tadoc.compress().dtype)
        True

        """
        return compress(
            self._series(),
            like=like,
            tokenizer=tokenizer,
            method=method,
            lossless=lossless,
            rows_per_grammar=rows_per_grammar,
            progress=progress,
            engine=engine,
        )

    @documented_by(recompress)
    def recompress(
        self,
        *,
        tail: bool = False,
        method: str = "batch_repair",
        rows_per_grammar: int = ROWS_PER_GRAMMAR,
        progress: bool = False,
        engine: str | None = None,
    ) -> pl.Series:
        """Merge the grammars of a compressed series.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.concat([pl.Series(["to be"]).tadoc.compress(), pl.Series(["to do"]).tadoc.compress()])
        >>> column.tadoc.recompress().tadoc.info()["grammars"].to_list()
        [1]

        """
        return recompress(
            self._series(),
            tail=tail,
            method=method,
            rows_per_grammar=rows_per_grammar,
            progress=progress,
            engine=engine,
        )

    @documented_by(decompress)
    def decompress(self) -> pl.Series:
        """Give back the text, byte for byte.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be", None]).tadoc.compress().tadoc.decompress().to_list()
        ['to be', None]

        """
        return decompress(self._series())

    @documented_by(word_count_analytic.word_count)
    def word_count(
        self,
        *,
        top: int | None = None,
        min_count: int = 1,
        normalize: pl.Expr | None = None,
        lowercase: bool = False,
        stopwords: Iterable[str] | None = None,
        engine: str | None = None,
    ) -> pl.DataFrame:
        """Count words: ``word: String, count: UInt64``.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be", "To do"]).tadoc.compress().tadoc.word_count(lowercase=True).rows()
        [('to', 2), ('be', 1), ('do', 1)]

        """
        request = word_count_analytic.Request.from_arguments(
            top=top,
            min_count=min_count,
            normalize=normalize,
            lowercase=lowercase,
            stopwords=stopwords,
            engine=engine,
        )
        return request.run(self._series()).to_frame()

    @documented_by(info)
    def info(self) -> pl.DataFrame:
        """Describe the column in one row; columns as :func:`polars_tadoc.info`'s.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be", "to do"]).tadoc.compress().tadoc.info().select("rows", "words", "vocabulary").row(0)
        (2, 4, 3)

        """
        return pl.DataFrame(info(self._series()))
