"""The compressed text of an index; a loaded index reads it on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from polars_tadoc.runtime.cached_property import cached_property


class StoredText:
    """The compressed text of each document.

    Searches for words do not need it, so loading an index does not read it. Only phrases, snippets and saving the index
    elsewhere do.

    Parameters
    ----------
    rows
        Number of documents.
    read
        Returns the column; called once, on first use.

    """

    def __init__(self, rows: int, read: Callable[[], pl.Series]) -> None:
        self._rows = rows
        self._read: Callable[[], pl.Series] | None = read

    @classmethod
    def of(cls, column: pl.Series) -> StoredText:
        """Wrap a column in memory."""
        made = cls(len(column), lambda: column)
        made.__dict__["column"], made._read = column, None
        return made

    @cached_property
    def column(self) -> pl.Series:
        """The column."""
        read = self._read
        if read is None:  # another thread has just read it
            return self.__dict__["column"]  # type: ignore[no-any-return]
        column = read()
        self.__dict__.setdefault("column", column)
        self._read = None  # it keeps the file open
        return column

    @property
    def is_read(self) -> bool:
        """Whether the column is in memory."""
        return "column" in self.__dict__

    def __len__(self) -> int:
        return self._rows

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredText.of, (self.column,)

    def filter(self, kept: pl.Series) -> StoredText:
        """Select the text of some documents."""
        if self.is_read:
            return StoredText.of(self.column.filter(kept))
        return StoredText(int(kept.sum()), lambda: self.column.filter(kept))

    def followed_by(self, more: StoredText, join: Callable[[pl.Series, pl.Series], pl.Series]) -> StoredText:
        """Append the text of further documents, joined by a function of both columns."""
        if self.is_read and more.is_read:
            return StoredText.of(join(self.column, more.column))
        return StoredText(len(self) + len(more), lambda: join(self.column, more.column))
