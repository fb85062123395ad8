"""Columns that the folders of files name: one value a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from polars_tadoc.packed.hive_names import column_of, read_names


@dataclass(frozen=True, eq=False)
class HiveColumns:
    """What the folders of files say.

    Parameters
    ----------
    said
        Texts of each column, one a file.
    given
        Types that the caller names.
    parse_dates
        Whether dates and times are told where no type is named.
    columns
        The values, once types are known.

    """

    said: Mapping[str, Sequence[str | None]]
    given: Mapping[str, pl.DataType]
    parse_dates: bool
    columns: Mapping[str, pl.Series]

    @classmethod
    def of(
        cls, folders: Sequence[Sequence[str]], schema: Mapping[str, Any], parse_dates: bool, call: str = "scan_packed"
    ) -> HiveColumns:
        """Read the folders of each file.

        Raises
        ------
        ValueError
            Files lie in folders of different keys, or the schema names a column that no folder does.

        """
        read = [read_names(names) for names in folders]
        first = list(read[0])
        for names, found in zip(folders, read, strict=True):
            if list(found) != first:
                raise ValueError(
                    f'{call}: folder "{"/".join(names)}" names {_listed(found)}, those of the first file '
                    f"{_listed(first)}; scan them apart, or leave folders out: hive_partitioning=False"
                )
        unknown = [name for name in schema if name not in first]
        if unknown:
            raise ValueError(f"{call}: hive_schema names {_listed(unknown)}; the folders name {_listed(first)}")
        said = {name: [one[name] for one in read] for name in first}
        return cls(said, dict(pl.Schema(schema)), parse_dates, {})

    def typed(self, schema: Mapping[str, pl.DataType]) -> HiveColumns:
        """Read the texts as values; of the type that files have of a column, where they have it, too."""
        columns = {
            name: column_of(name, texts, self.given.get(name, schema.get(name)), self.parse_dates)
            for name, texts in self.said.items()
        }
        return replace(self, columns=columns)

    @property
    def names(self) -> frozenset[str]:
        """The columns."""
        return frozenset(self.said)

    @property
    def texts(self) -> list[list[str | None]]:
        """What is said of each file."""
        return [list(texts) for texts in zip(*self.said.values(), strict=True)]

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """Types of the columns."""
        return {name: column.dtype for name, column in self.columns.items()}

    def values(self, file: int) -> dict[str, pl.Series]:
        """Give a file's values, each a series of one."""
        return {name: column.slice(file, 1) for name, column in self.columns.items()}

    def passing(self, condition: pl.Expr | None, files: int) -> list[bool]:
        """Tell by file whether its rows pass a condition on these columns alone."""
        if condition is None:
            return [True] * files
        frame = pl.DataFrame(list(self.columns.values()))
        return frame.select(condition.alias("passes")).to_series().fill_null(False).to_list()


def _listed(names: Any) -> str:
    return ", ".join(f'"{name}"' for name in names) or "nothing"
