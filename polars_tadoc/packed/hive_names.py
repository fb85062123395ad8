"""Folder names of partitions: how a column's values are written in them, and read again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote, unquote

import polars as pl

NULL = "__HIVE_DEFAULT_PARTITION__"
"""What stands for null."""

SAFE = "!\"#$&'()*+,;<>?@[\\]^`{|}~"
"""Characters that are not percent-encoded, beside letters and digits: those that Polars does not encode either."""


def require_key(name: str, dtype: object, call: str) -> None:
    """Raise ``TypeError`` unless values of this type can be written in the name of a folder, and be read again."""
    known = isinstance(dtype, pl.DataType) and (
        dtype.is_integer()
        or dtype in (pl.String, pl.Boolean, pl.Date, pl.Categorical)
        or isinstance(dtype, pl.Enum | pl.Datetime | pl.Decimal)
    )
    if not known:
        raise TypeError(
            f'{call}: partition_by: column "{name}" is {dtype}; keys are text, integers, Booleans, dates or times'
        )


def folder_name(column: str, value: str | None, call: str) -> str:
    """Return the name of the folder of a column's value, which was cast to String.

    Raises
    ------
    ValueError
        The value is what stands for null, or makes a longer name than folders have.

    """
    if value == NULL:
        raise ValueError(f'{call}: column "{column}" has the value "{NULL}", which means null in a folder\'s name')
    key = quote(column, safe=SAFE)
    key = f"%2E{key[1:]}" if key.startswith(".") else key  # or the folder would be a hidden one
    name = f"{key}={NULL if value is None else quote(value, safe=SAFE)}"
    if len(name) > 255:
        raise ValueError(
            f'{call}: a value of column "{column}" makes a folder name of {len(name):,} characters, 255 are the most; '
            "partition by a shorter column"
        )
    return name


def read_names(folders: Sequence[str]) -> dict[str, str | None]:
    """Return the columns and values that folders along a path name, outermost first; other folders name none."""
    found: dict[str, str | None] = {}
    for folder in folders:
        column, separator, value = folder.partition("=")
        if column and separator:
            found[unquote(column)] = None if value == NULL else unquote(value)
    return found


def column_of(name: str, values: Sequence[str | None], dtype: pl.DataType | None, parse_dates: bool) -> pl.Series:
    """Turn what folders say of a column, one value a file, into a series.

    Parameters
    ----------
    name
        The column.
    values
        What is said of each file.
    dtype
        Its type, where that is known; else integers, numbers, Booleans and dates are told by how they look.
    parse_dates
        Whether dates and times are told.

    Raises
    ------
    ValueError
        A value is none of the type.

    """
    texts = pl.Series(name, values, pl.String)
    if dtype is None:
        return _inferred(texts, parse_dates)
    found = _read_as(texts, dtype)
    wrong = texts.filter(found.is_null() & texts.is_not_null())
    if len(wrong):
        raise ValueError(f'scan_packed: folder "{name}={wrong[0]}" names no {dtype}; give another type: hive_schema=')
    return found


def _inferred(texts: pl.Series, parse_dates: bool) -> pl.Series:
    known = texts.is_not_null()
    if not known.any():
        return texts
    dates: list[pl.DataType] = [pl.Date(), pl.Datetime("us")] if parse_dates else []
    for dtype in [pl.Int64(), pl.Float64(), pl.Boolean(), *dates]:
        found = _read_as(texts, dtype)
        if found.is_not_null().equals(known):
            return found
    return texts


def _read_as(texts: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Read texts as values of a type, null where they are none."""
    if dtype == pl.Boolean:
        return texts.replace_strict({"true": True, "false": False}, default=None, return_dtype=pl.Boolean)
    if dtype == pl.Date:
        return texts.str.to_date("%Y-%m-%d", strict=False)
    if isinstance(dtype, pl.Datetime):
        if dtype.time_zone is not None:
            return texts.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%z", time_unit=dtype.time_unit, strict=False).cast(dtype)
        return texts.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit=dtype.time_unit, strict=False)
    return texts.cast(dtype, strict=False)


def shown(values: Mapping[str, str | None]) -> str:
    """Write a partition's keys for messages."""
    return "/".join(f"{name}={NULL if value is None else value}" for name, value in values.items())
