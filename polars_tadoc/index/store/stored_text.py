"""The compressed text that an index keeps: of a loaded one it is read when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from polars_tadoc.runtime.cached_property import cached_property


class StoredText:
    """The compressed text of each document.

    Searches of words need none of it, so that an index is loaded without: only phrases, snippets, and saving the
    index elsewhere read it.

    Parameters
    ----------
    rows
        How many documents there are.
    read
        Gives the column; called once, when it is first asked for.

    """

    def __init__(self, rows: int, read: Callable[[], pl.Series]) -> None:
        self._rows = rows
        self._read: Callable[[], pl.Series] | None = read

    @classmethod
    def of(cls, column: pl.Series) -> StoredText:
        """Hold a column that is there."""
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
        self._read = None  # which holds the file open
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
        """Keep the text of some documents."""
        if self.is_read:
            return StoredText.of(self.column.filter(kept))
        return StoredText(int(kept.sum()), lambda: self.column.filter(kept))

    def followed_by(self, more: StoredText, join: Callable[[pl.Series, pl.Series], pl.Series]) -> StoredText:
        """Put the text of further documents behind, joined by a function of both columns."""
        if self.is_read and more.is_read:
            return StoredText.of(join(self.column, more.column))
        return StoredText(len(self) + len(more), lambda: join(self.column, more.column))
