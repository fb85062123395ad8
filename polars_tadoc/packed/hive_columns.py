"""Hive columns: taken from folder names, one value per file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from polars_tadoc.packed.hive_names import column_of, read_names
from polars_tadoc.runtime.array_types import array_dataclass


@array_dataclass
class HiveColumns:
    """The hive columns of a scan."""

    said: Mapping[str, Sequence[str | None]]
    """Each column's texts, one per file."""
    given: Mapping[str, pl.DataType]
    """Types given by the caller."""
    parse_dates: bool
    """Whether dates and times are parsed in columns without a given type."""
    columns: Mapping[str, pl.Series]
    """The values, once types are known."""

    @classmethod
    def of(
        cls, folders: Sequence[Sequence[str]], schema: Mapping[str, Any], parse_dates: bool, call: str = "scan_packed"
    ) -> HiveColumns:
        """Read the folder names of each file.

        Raises
        ------
        ValueError
            Files are in folders with different keys, or the schema names a column that no folder has.

        """
        read = [read_names(names) for names in folders]
        first = list(read[0])
        for names, found in zip(folders, read, strict=True):
            if list(found) != first:
                raise ValueError(
                    f'{call}: folder "{"/".join(names)}" has keys {_listed(found)}, the first file has '
                    f"{_listed(first)}; scan them separately, or ignore folder names: hive_partitioning=False"
                )
        unknown = [name for name in schema if name not in first]
        if unknown:
            raise ValueError(f"{call}: hive_schema has {_listed(unknown)}; the folder names have only {_listed(first)}")
        said = {name: [one[name] for one in read] for name in first}
        return cls(said, dict(pl.Schema(schema)), parse_dates, {})

    def typed(self, schema: Mapping[str, pl.DataType]) -> HiveColumns:
        """Parse the texts as values, with the type of the files' column of the same name if there is one."""
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
        """Each file's texts."""
        return [list(texts) for texts in zip(*self.said.values(), strict=True)]

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """Types of the columns."""
        return {name: column.dtype for name, column in self.columns.items()}

    def values(self, file: int) -> dict[str, pl.Series]:
        """Return a file's values, each as a series of length one."""
        return {name: column.slice(file, 1) for name, column in self.columns.items()}

    def passing(self, condition: pl.Expr | None, files: int) -> list[bool]:
        """Tell for each file whether its rows pass a condition on hive columns alone."""
        if condition is None:
            return [True] * files
        frame = pl.DataFrame(list(self.columns.values()))
        return frame.select(condition.alias("passes")).to_series().fill_null(False).to_list()


def _listed(names: Any) -> str:
    return ", ".join(f'"{name}"' for name in names) or "nothing"
