"""``pl.col(…).tadoc``: strip tokenize the compressed form, and what rows hold."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Unpack

import polars as pl

from polars_tadoc.analytics.info import SCHEMA as INFO_SCHEMA
from polars_tadoc.analytics.info import info, info_by_group
from polars_tadoc.compress.compress import Compression, CompressOptions, compress
from polars_tadoc.compress.decompress import decompress
from polars_tadoc.compress.recompress import Recompression, RecompressOptions, recompress
from polars_tadoc.namespaces.expr.base import COUNT, ExprBase, Integers
from polars_tadoc.rows.content_hash import DTYPE as HASH_DTYPE
from polars_tadoc.rows.content_hash import content_hash
from polars_tadoc.rows.equals import EqualsRequest as Comparison
from polars_tadoc.rows.equals import WithLiteral, equals
from polars_tadoc.rows.expressions import by_row, elementwise
from polars_tadoc.rows.extract import extract, head, tail
from polars_tadoc.rows.token_count import token_count
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.io_source import at_work
from polars_tadoc.traversal.options import TokenizerOption, tokenizer_of


class ExprColumns(ExprBase):
    """Strip tokenize the compressed form, and what rows hold."""

    @documented_by(
        compress, returns="``tadoc.DTYPE``, or the type of ``like`` or ``Config(column_type=)``; null for null rows."
    )
    def compress(self, **options: Unpack[CompressOptions]) -> pl.Expr:
        """Compress a String column; result as for :func:`polars_tadoc.compress`.

        Polars passes each batch of a streaming plan, and each chunk of a column, separately: each gets a grammar of its
        own. If batches are small (after a filter, on many cores), use ``lf.tadoc.compress("text")`` or
        ``df.tadoc.compress("text")``, which gather them first.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["to be", "or not"]})
        >>> tadoc.is_tadoc(df.with_columns(pl.col("text").tadoc.compress()).schema["text"])
        True

        """
        how = Compression.from_arguments(**options)
        return elementwise(replace(how, cached=False).run, how.dtype, self._expr)

    @documented_by(recompress, returns="The type of the column; null for null rows.")
    def recompress(self, **options: Unpack[RecompressOptions]) -> pl.Expr:
        """Merge the grammars of a compressed column, which must fit in memory.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["to be", "or not"]}).tadoc.compress("text", rows_per_grammar=1)
        >>> df.with_columns(pl.col("text").tadoc.recompress()).tadoc.info()["grammars"].to_list()
        [1]

        """
        how = Recompression.from_arguments(**options)
        return self._expr.map_batches(at_work()(how.run), return_dtype=pl.self_dtype())

    @documented_by(decompress, returns="``String``; null for null rows.")
    def decompress(self) -> pl.Expr:
        """Return the text, byte for byte.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["to be"]}).with_columns(pl.col("text").tadoc.compress())
        >>> df.with_columns(pl.col("text").tadoc.decompress())["text"].to_list()
        ['to be']

        """
        return elementwise(decompress, pl.String, self._expr)

    @documented_by(token_count, returns="``UInt64``; null for null rows.")
    def token_count(self, **options: Unpack[TokenizerOption]) -> pl.Expr:
        """Count the words of each row.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["to be or not to be", None]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.token_count()).to_series().to_list()
        [6, None]

        """
        tokenizer_of(options)
        return elementwise(partial(token_count, **options), pl.UInt64, self._expr)

    @documented_by(content_hash, returns="``UInt128``; null for null rows.")
    def content_hash(self) -> pl.Expr:
        """Hash the text of each row: a key for ``unique``, ``group_by`` and ``join``, equal for all forms of the text.

        Examples
        --------
        >>> df = pl.DataFrame({"row": [1, 2, 3], "text": ["to be", "or not", "to be"]}).tadoc.compress("text")
        >>> df.group_by(key=pl.col("text").tadoc.content_hash(), maintain_order=True).agg("row")["row"].to_list()
        [[1, 3], [2]]

        """
        return elementwise(content_hash, HASH_DTYPE, self._expr)

    @documented_by(
        equals, other="Text (a literal, as in Polars' ``eq``), an expression or a series, compressed or String."
    )
    def eq(self, other: str | pl.Expr | pl.Series, *, nulls_equal: bool = False) -> pl.Expr:
        """Tell which rows equal a text, or the text of another column.

        Returns
        -------
        Expr
            ``Boolean``; null if either side is, unless ``nulls_equal``.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["to be", "or not"], "other": ["to be", "or"]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.eq("or not"), other=pl.col("text").tadoc.eq(pl.col("other"))).rows()
        [(False, True), (True, False)]

        """
        how = Comparison("eq", nulls_equal)
        if isinstance(other, str):
            return elementwise(WithLiteral(how, other).run, pl.Boolean, self._expr)
        beside = pl.lit(how.required(other)) if isinstance(other, pl.Series) else how.required_expression(other)
        return elementwise(how.run, pl.Boolean, self._expr, beside)

    @documented_by(
        extract,
        offset="Number of the first word, from 0; negative numbers count from the row's end. An integer, the name\n"
        "    of a column of integers, an expression or a series.",
    )
    def extract(self, offset: Integers, length: Integers | None = None, **options: Unpack[TokenizerOption]) -> pl.Expr:
        """Return words of each row by their number, with the separators between them.

        The arguments have the meaning of those of ``str.slice``, for words instead of characters.

        Returns
        -------
        Expr
            ``String``, from the start of the first word to the end of the last; empty if there is no such word, null if
            the row or the offset is.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["To be, or not to be!", "To do."], "at": [-2, 0]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.extract("at", 2)).to_series().to_list()
        ['to be', 'To do']

        """
        arguments = {"offset": offset} if length is None else {"offset": offset, "length": length}
        return by_row(partial(extract, **options), self._expr, pl.String, **arguments)

    @documented_by(
        head, returns="``String``, as for :meth:`extract`; null if the row or ``n`` is.", n=COUNT.format("end")
    )
    def head(self, n: Integers = 5, **options: Unpack[TokenizerOption]) -> pl.Expr:
        """Return the first words of each row, with the separators between them.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["To be, or not to be!", "To do."]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.head(3)).to_series().to_list()
        ['To be, or', 'To do']

        """
        return by_row(partial(head, **options), self._expr, pl.String, n=n)

    @documented_by(
        tail, returns="``String``, as for :meth:`extract`; null if the row or ``n`` is.", n=COUNT.format("start")
    )
    def tail(self, n: Integers = 5, **options: Unpack[TokenizerOption]) -> pl.Expr:
        """Return the last words of each row, with the separators between them.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["To be, or not to be!", "To do."]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.tail(3)).to_series().to_list()
        ['not to be', 'To do']

        """
        return by_row(partial(tail, **options), self._expr, pl.String, n=n)

    @documented_by(info, returns="``Struct`` with ``UInt64`` and ``Float64`` fields.")
    def info(self) -> pl.Expr:
        """Describe each group of rows, or all rows, in a struct; fields as the columns of :func:`polars_tadoc.info`.

        A grammar counts in each group that has rows of it.

        Examples
        --------
        >>> df = pl.DataFrame({"year": [1, 2, 1], "text": ["to be", "to do", "not to be"]}).tadoc.compress("text")
        >>> described = df.group_by("year", maintain_order=True).agg(pl.col("text").tadoc.info()).unnest("text")
        >>> described.select("year", "rows", "words").rows()
        [(1, 2, 5), (2, 1, 2)]

        """
        return self._expr.implode().map_batches(
            at_work()(info_by_group), return_dtype=pl.Struct(INFO_SCHEMA), is_elementwise=True
        )
