"""``df.tadoc``: analytics over the rows that a frame holds."""

from __future__ import annotations

import re
from collections.abc import Iterable

import polars as pl

from polars_tadoc.analytics import word_count as word_count_analytic
from polars_tadoc.analytics.info import info
from polars_tadoc.compress.compress import ROWS_PER_GRAMMAR, compress
from polars_tadoc.compress.recompress import recompress
from polars_tadoc.decompress import decompress
from polars_tadoc.namespaces.columns import compressed_column, string_column
from polars_tadoc.namespaces.documented import documented_by


@pl.api.register_dataframe_namespace("tadoc")
class TadocFrame:
    """Grammar compression and analytics on a frame.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> df = pl.DataFrame({"year": [1, 2], "text": ["to be or not", "to do"]}).tadoc.compress("text")
    >>> df.filter(pl.col("year") > 1).tadoc.word_count("text").rows()
    [('do', 1), ('to', 1)]

    """

    def __init__(self, df: pl.DataFrame) -> None:
        self._held = df

    def _frame(self) -> pl.DataFrame:
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
    ) -> pl.DataFrame:
        """Replace a String column by its compressed form.

        A misspelt column raises ``ColumnMissingError`` with the nearest names.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be", "to do"]}).tadoc.compress("text")
        >>> tadoc.is_tadoc(df.schema["text"])
        True

        """
        df = self._frame()
        name = string_column(df.schema, column, "compress")
        return df.with_columns(
            compress(
                df[name],
                like=like,
                tokenizer=tokenizer,
                method=method,
                lossless=lossless,
                rows_per_grammar=rows_per_grammar,
                progress=progress,
                engine=engine,
            )
        )

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
    ) -> pl.DataFrame:
        """Merge the grammars of a compressed column (may be left out where there is one).

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.concat([pl.DataFrame({"text": [text]}).tadoc.compress("text") for text in ("to be", "to do")])
        >>> df.tadoc.recompress().tadoc.info()["grammars"].to_list()
        [1]

        """
        df = self._frame()
        return df.with_columns(
            recompress(
                df[compressed_column(df.schema, column, "recompress")],
                tail=tail,
                method=method,
                rows_per_grammar=rows_per_grammar,
                progress=progress,
                engine=engine,
            )
        )

    @documented_by(decompress)
    def decompress(self, column: str | None = None) -> pl.DataFrame:
        """Replace a compressed column (may be left out where there is one) by its text.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.DataFrame({"text": ["to be"]}).tadoc.compress("text").tadoc.decompress().rows()
        [('to be',)]

        """
        df = self._frame()
        return df.with_columns(decompress(df[compressed_column(df.schema, column, "decompress")]))

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
    ) -> pl.DataFrame:
        """Count the words of a compressed column (may be left out where there is one).

        Returns
        -------
        DataFrame
            ``word: String, count: UInt64``, by count falling, then word in code point order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["the cat", "the dog"]}).tadoc.compress("text")
        >>> df.tadoc.word_count("text", stopwords=["the"]).rows()
        [('cat', 1), ('dog', 1)]

        """
        df = self._frame()
        request = word_count_analytic.Request.from_arguments(
            top=top,
            min_count=min_count,
            normalize=normalize,
            lowercase=lowercase,
            stopwords=stopwords,
            engine=engine,
        )
        return request.run(df[compressed_column(df.schema, column, "word_count")]).to_frame()

    @documented_by(info)
    def info(self, column: str | None = None) -> pl.DataFrame:
        """Describe a compressed column in one row; columns as :func:`polars_tadoc.info`'s.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.DataFrame({"text": ["to be"]}).tadoc.compress("text").tadoc.info().select("rows", "words").row(0)
        (1, 2)

        """
        df = self._frame()
        return pl.DataFrame(info(df[compressed_column(df.schema, column, "info")]))
