"""``pl.col("text").tadoc``: row-aligned expressions."""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl

from polars_tadoc.column import DTYPE
from polars_tadoc.compress.compress import ROWS_PER_GRAMMAR, Compression, compress
from polars_tadoc.compress.recompress import Recompression, recompress
from polars_tadoc.decompress import decompress
from polars_tadoc.namespaces.documented import documented_by


@pl.api.register_expr_namespace("tadoc")
class TadocExpr:
    """Grammar compression as expressions.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> df = pl.DataFrame({"text": ["to be", "or not"]}).with_columns(pl.col("text").tadoc.compress())
    >>> df.select(pl.col("text").tadoc.decompress()).to_series().to_list()
    ['to be', 'or not']

    """

    def __init__(self, expr: pl.Expr) -> None:
        self._expr = expr

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
    ) -> pl.Expr:
        """Compress a String column; result as :func:`polars_tadoc.compress`'s.

        Polars hands over each batch of a streaming plan, and each chunk of a column, by itself: each gets a grammar of
        its own. Where batches are small (after a filter, on many cores), ``lf.tadoc.compress("text")`` and
        ``df.tadoc.compress("text")`` gather them first.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be", "or not"]})
        >>> tadoc.is_tadoc(df.with_columns(pl.col("text").tadoc.compress()).schema["text"])
        True

        """
        how = Compression.from_arguments(
            like=like,
            tokenizer=tokenizer,
            method=method,
            lossless=lossless,
            rows_per_grammar=rows_per_grammar,
            progress=progress,
            engine=engine,
        )
        return self._expr.map_batches(replace(how, cached=False).run, return_dtype=DTYPE, is_elementwise=True)

    @documented_by(recompress)
    def recompress(
        self,
        *,
        tail: bool = False,
        method: str = "batch_repair",
        rows_per_grammar: int = ROWS_PER_GRAMMAR,
        progress: bool = False,
        engine: str | None = None,
    ) -> pl.Expr:
        """Merge the grammars of a compressed column, which is held in memory as a whole.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be", "or not"]}).tadoc.compress("text", rows_per_grammar=1)
        >>> df.with_columns(pl.col("text").tadoc.recompress()).tadoc.info()["grammars"].to_list()
        [1]

        """
        how = Recompression.from_arguments(
            tail=tail, method=method, rows_per_grammar=rows_per_grammar, progress=progress, engine=engine
        )
        return self._expr.map_batches(how.run, return_dtype=DTYPE)

    @documented_by(decompress)
    def decompress(self) -> pl.Expr:
        """Give back the text, byte for byte.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> df = pl.DataFrame({"text": ["to be"]}).with_columns(pl.col("text").tadoc.compress())
        >>> df.with_columns(pl.col("text").tadoc.decompress())["text"].to_list()
        ['to be']

        """
        return self._expr.map_batches(decompress, return_dtype=pl.String, is_elementwise=True)
