"""Folder names of hive partitions: encodes a column's values as names, and parses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote, unquote

import polars as pl

NULL = "__HIVE_DEFAULT_PARTITION__"
"""The folder name's value for null."""

SAFE = "!\"#$&'()*+,;<>?@[\\]^`{|}~"
"""Characters that are not percent-encoded, besides letters and digits: as in Polars."""


def require_key(name: str, dtype: object, call: str) -> None:
    """Raise ``TypeError`` unless values of this type can be written as a folder name and parsed again."""
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
    """Return the folder name of a column's value, given as a String.

    Raises
    ------
    ValueError
        The value equals the marker for null, or the name is longer than a file system allows.

    """
    if value == NULL:
        raise ValueError(f'{call}: column "{column}" has the value "{NULL}", which means null in a folder name')
    key = quote(column, safe=SAFE)
    key = f"%2E{key[1:]}" if key.startswith(".") else key  # a leading dot would hide the folder
    name = f"{key}={NULL if value is None else quote(value, safe=SAFE)}"
    if len(name) > 255:
        raise ValueError(
            f'{call}: column "{column}": a value makes a folder name of {len(name):,} characters, the maximum is 255; '
            "partition by a shorter column"
        )
    return name


def read_names(folders: Sequence[str]) -> dict[str, str | None]:
    """Return the columns and values in the folder names along a path, outermost first; others are ignored."""
    found: dict[str, str | None] = {}
    for folder in folders:
        column, separator, value = folder.partition("=")
        if column and separator:
            found[unquote(column)] = None if value == NULL else unquote(value)
    return found


def column_of(name: str, values: Sequence[str | None], dtype: pl.DataType | None, parse_dates: bool) -> pl.Series:
    """Turn folder-name values of a column, one per file, into a series.

    Parameters
    ----------
    name
        The column.
    values
        Each file's text.
    dtype
        Its type if known; otherwise integers, floats, Booleans and dates are recognised by their form.
    parse_dates
        Whether dates and times are parsed.

    Raises
    ------
    ValueError
        A value cannot be parsed as the type.

    """
    texts = pl.Series(name, values, pl.String)
    if dtype is None:
        return _inferred(texts, parse_dates)
    found = _read_as(texts, dtype)
    wrong = texts.filter(found.is_null() & texts.is_not_null())
    if len(wrong):
        raise ValueError(
            f'scan_packed: folder "{name}={wrong[0]}": not a valid {dtype}; set another type: hive_schema='
        )
    return found


def _inferred(texts: pl.Series, parse_dates: bool) -> pl.Series:
    known = texts.is_not_null()
    if not known.any():
        return texts
    dates: list[pl.DataType] = [pl.Date(), pl.Datetime("us")] if parse_dates else []
    for dtype in [pl.Int64(), pl.Int128(), pl.Float64(), pl.Boolean(), *dates]:
        found = _read_as(texts, dtype)
        is_number = dtype != pl.Float64() or found.drop_nulls().is_finite().all()  # Polars keeps inf and nan as text
        if is_number and found.is_not_null().equals(known):
            return found
    return texts


def _read_as(texts: pl.Series, dtype: pl.DataType) -> pl.Series:
    """Parse texts as values of a type; null where that fails."""
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
    """Format a partition's keys for messages."""
    return "/".join(f"{name}={NULL if value is None else value}" for name, value in values.items())
