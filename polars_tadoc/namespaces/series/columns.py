"""``series.tadoc``: strip tokenize the compressed form, and what rows hold."""

from __future__ import annotations

from typing import Unpack

import polars as pl

from polars_tadoc.analytics.info import info
from polars_tadoc.compress.compress import CompressOptions, compress
from polars_tadoc.compress.decompress import decompress
from polars_tadoc.compress.recompress import RecompressOptions, recompress
from polars_tadoc.namespaces.dataframe import TadocFrame
from polars_tadoc.namespaces.series.base import SeriesBase
from polars_tadoc.rows.content_hash import content_hash
from polars_tadoc.rows.equals import EqualsRequest as Comparison
from polars_tadoc.rows.equals import equals
from polars_tadoc.rows.extract import extract, head, tail
from polars_tadoc.rows.preview import ROWS, WORDS, preview
from polars_tadoc.rows.token_count import token_count
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.option_signature import takes_progress
from polars_tadoc.traversal.options import TokenizerOption


class SeriesColumns(SeriesBase):
    """Strip tokenize the compressed form, and what rows hold."""

    @documented_by(compress)
    def compress(self, **options: Unpack[CompressOptions]) -> pl.Series:
        """Compress a String series; result as for :func:`polars_tadoc.compress`.

        Examples
        --------
        >>> tadoc.is_tadoc(pl.Series(["to be"]).tadoc.compress().dtype)
        True

        """
        return compress(self._series, **options)

    @documented_by(recompress)
    def recompress(self, **options: Unpack[RecompressOptions]) -> pl.Series:
        """Merge the grammars of a compressed series.

        Examples
        --------
        >>> column = pl.concat([pl.Series(["to be"]).tadoc.compress(), pl.Series(["to do"]).tadoc.compress()])
        >>> column.tadoc.recompress().tadoc.info()["grammars"].to_list()
        [1]

        """
        return recompress(self._series, **options)

    @documented_by(decompress)
    @takes_progress
    def decompress(self, *, progress: bool | None = None) -> pl.Series:
        """Return the text, byte for byte.

        Examples
        --------
        >>> pl.Series(["to be", None]).tadoc.compress().tadoc.decompress().to_list()
        ['to be', None]

        """
        return decompress(self._series)

    @documented_by(token_count)
    def token_count(self, **options: Unpack[TokenizerOption]) -> pl.Series:
        """Count the words of each row; result as for :func:`polars_tadoc.token_count`.

        Examples
        --------
        >>> pl.Series(["to be or not to be", None]).tadoc.compress().tadoc.token_count().to_list()
        [6, None]

        """
        return token_count(self._series, **options)

    @documented_by(TadocFrame.preview)
    def preview(self, rows: int = ROWS, words: int = WORDS) -> pl.Series:
        """Return the first words of the first rows, for printing.

        Polars prints the whole grammar in each row of a compressed column; print the preview instead.

        Returns
        -------
        String series
            The first words of each row; null for null.

        Examples
        --------
        >>> column = pl.Series("text", ["to be, or not to be", "to do"]).tadoc.compress()
        >>> column.tadoc.preview(words=3).to_list()
        ['to be, or', 'to do']

        """
        return preview(self._series, rows, words)

    @documented_by(content_hash)
    @takes_progress
    def content_hash(self, *, progress: bool | None = None) -> pl.Series:
        """Hash the text of each row, a key equal for all forms of the text; as :func:`polars_tadoc.content_hash`.

        Examples
        --------
        >>> text = pl.Series(["to be", "or not", "to be"])
        >>> text.tadoc.compress().tadoc.content_hash().equals(text.tadoc.content_hash())
        True

        """
        return content_hash(self._series)

    @documented_by(equals, other="Text, or a series, compressed or String.")
    def eq(self, other: str | pl.Series, *, nulls_equal: bool = False) -> pl.Series:
        """Tell which rows equal a text, or the text of another series; as :func:`polars_tadoc.equals`.

        Returns
        -------
        Boolean series
            One value per row; null if either side is, unless ``nulls_equal``.

        Examples
        --------
        >>> pl.Series(["to be", "or not", None]).tadoc.compress().tadoc.eq("to be").to_list()
        [True, False, None]

        """
        return Comparison("eq", nulls_equal).with_any(self._series, other)

    @documented_by(extract)
    def extract(
        self, offset: int | pl.Series, length: int | pl.Series | None = None, **options: Unpack[TokenizerOption]
    ) -> pl.Series:
        """Return words of each row by their number, with the separators between them; as :func:`polars_tadoc.extract`.

        Examples
        --------
        >>> pl.Series(["To be, or not to be!", "To do."]).tadoc.compress().tadoc.extract(1, 3).to_list()
        ['be, or not', 'do']

        """
        return extract(self._series, offset, length, **options)

    @documented_by(head)
    def head(self, n: int | pl.Series = 5, **options: Unpack[TokenizerOption]) -> pl.Series:
        """Return the first words of each row, with the separators between them; as :func:`polars_tadoc.head`.

        Examples
        --------
        >>> pl.Series(["To be, or not to be!", "To do."]).tadoc.compress().tadoc.head(3).to_list()
        ['To be, or', 'To do']

        """
        return head(self._series, n, **options)

    @documented_by(tail)
    def tail(self, n: int | pl.Series = 5, **options: Unpack[TokenizerOption]) -> pl.Series:
        """Return the last words of each row, with the separators between them; as :func:`polars_tadoc.tail`.

        Examples
        --------
        >>> pl.Series(["To be, or not to be!", "To do."]).tadoc.compress().tadoc.tail(3).to_list()
        ['not to be', 'To do']

        """
        return tail(self._series, n, **options)

    @documented_by(TadocFrame.info)
    def info(self) -> pl.DataFrame:
        """Describe the column in one row; columns as for :func:`polars_tadoc.info`.

        Examples
        --------
        >>> pl.Series(["to be", "to do"]).tadoc.compress().tadoc.info().select("rows", "words", "vocabulary").row(0)
        (2, 4, 3)

        """
        return info(self._series)
