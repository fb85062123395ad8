"""``df.tadoc``: strip tokenize the compressed form, and what rows hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import polars as pl

from polars_tadoc.analytics.info import info
from polars_tadoc.compress.compress import CompressOptions, compress
from polars_tadoc.compress.decompress import decompress
from polars_tadoc.compress.recompress import RecompressOptions, recompress
from polars_tadoc.execute.columns import compressed_column, each_column, string_column
from polars_tadoc.namespaces.dataframe.base import EACH_COLUMN, FrameBase
from polars_tadoc.rows.preview import ROWS, WORDS, preview
from polars_tadoc.runtime.documented import documented_by, with_imports
from polars_tadoc.runtime.option_signature import takes_progress


@with_imports
class FrameColumns(FrameBase):
    """Strip tokenize the compressed form, and what rows hold."""

    @documented_by(
        compress,
        returns="The frame with the columns as ``tadoc.DTYPE``, or in the type of ``like`` or "
        "``Config(column_type=)``.",
        column=EACH_COLUMN,
    )
    def compress(self, column: str | Sequence[str], **options: Unpack[CompressOptions]) -> pl.DataFrame:
        """Replace String columns by their compressed form.

        A misspelt column raises ``ColumnMissingError`` with the nearest names.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["to be", "to do"]}).tadoc.compress("text")
        >>> tadoc.is_tadoc(df.schema["text"])
        True

        """
        df = self._df
        names = each_column(column, lambda name: string_column(df.schema, name, "compress"))
        return df.with_columns(compress(df[name], **options) for name in names)

    @documented_by(recompress, returns="The frame with the same rows; the type of the column does not change.")
    def recompress(self, column: str | None = None, **options: Unpack[RecompressOptions]) -> pl.DataFrame:
        """Merge the grammars of a compressed column (optional if there is only one).

        Examples
        --------
        >>> df = pl.concat([pl.DataFrame({"text": [text]}).tadoc.compress("text") for text in ("to be", "to do")])
        >>> df.tadoc.recompress().tadoc.info()["grammars"].to_list()
        [1]

        """
        return self._df.with_columns(recompress(self._column("recompress", column), **options))

    @documented_by(decompress)
    @takes_progress
    def decompress(self, column: str | Sequence[str] | None = None, *, progress: bool | None = None) -> pl.DataFrame:
        """Replace compressed columns (optional if there is only one) by their text.

        Parameters
        ----------
        column
            Name of the compressed column, or a list of names; optional if there is only one.

        Returns
        -------
        DataFrame
            The frame with the columns as String.

        Examples
        --------
        >>> pl.DataFrame({"text": ["to be"]}).tadoc.compress("text").tadoc.decompress().rows()
        [('to be',)]

        """
        df = self._df
        names = each_column(column, lambda name: compressed_column(df.schema, name, "decompress"))
        return df.with_columns(decompress(df[name]) for name in names)

    def preview(self, rows: int = ROWS, words: int = WORDS) -> pl.DataFrame:
        """Return the first rows, with the first words of each instead of every compressed column, for printing.

        Polars prints the whole grammar in each row of a compressed column; print the preview instead.

        Parameters
        ----------
        rows
            Number of rows.
        words
            Words per row.

        Returns
        -------
        DataFrame
            Compressed columns as String, other columns unchanged.

        Raises
        ------
        TypeError, ValueError
            ``rows`` or ``words`` is not an integer, or negative.

        Examples
        --------
        >>> df = pl.DataFrame({"day": [1, 2], "text": ["to be, or not to be", "to do"]}).tadoc.compress("text")
        >>> df.tadoc.preview(words=3).rows()
        [(1, 'to be, or'), (2, 'to do')]

        """
        return preview(self._df, rows, words)

    @documented_by(info, returns="One row; UInt64 and Float64 columns as described there.")
    def info(self, column: str | None = None) -> pl.DataFrame:
        """Describe a compressed column in one row; columns as for :func:`polars_tadoc.info`.

        Parameters
        ----------
        column
            Name of the compressed column; optional if there is only one.

        Examples
        --------
        >>> pl.DataFrame({"text": ["to be"]}).tadoc.compress("text").tadoc.info().select("rows", "words").row(0)
        (1, 2)

        """
        return info(self._column("info", column))
