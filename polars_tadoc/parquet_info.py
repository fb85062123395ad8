"""What a compressed column weighs in a Parquet file, where each row group repeats the grammars that its rows use."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from polars.exceptions import ComputeError

from polars_tadoc import payload
from polars_tadoc.analytics.info import WORTH_A_WARNING
from polars_tadoc.arguments import require_path
from polars_tadoc.config import settings
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError, RepeatedGrammarsWarning
from polars_tadoc.namespaces.columns import compressed_column
from polars_tadoc.parquet_footer import open_parquet
from polars_tadoc.parquet_sizes import leaf_types, unfolded_bytes
from polars_tadoc.regular_file import arrow_file, open_regular
from polars_tadoc.thrift import MalformedError

SCHEMA = pl.Schema(
    {
        "rows": pl.UInt64,
        "row_groups": pl.UInt64,
        "grammars": pl.UInt64,
        "copies": pl.UInt64,
        "grammar_bytes": pl.UInt64,
        "bytes": pl.UInt64,
    }
)


def parquet_info(path: str | os.PathLike[str], column: str | None = None) -> pa.Table:
    """Describe a compressed column of a Parquet file in one row; of the data only the grammars are read.

    A file in which copies of the same grammars weigh more than all else of the column is warned of: it was written in
    row groups that are small for its grammars, or its rows are mixed.

    Parameters
    ----------
    path
        One Parquet file.
    column
        Name of the column; may be left out where the file has one that is compressed.

    Returns
    -------
    pyarrow.Table
        ``rows``; ``row_groups``; ``grammars`` (distinct); ``copies`` (grammars of each row group, summed);
        ``grammar_bytes`` (of all copies, as they stand in the file); ``bytes`` (of the whole column there), uint64.

    Raises
    ------
    ColumnMissingError
        The file has no such column; the message suggests the nearest names.
    NotCompressedError
        The column is of another type, or none was named and there is not exactly one.
    InvalidGrammarError
        The file is damaged, or no Parquet file.
    LimitExceededError
        The grammars of a row group claim to unfold into more than ``Config(payload_limit_bytes=)``.
    FileNotFoundError
        There is no such file; folders and patterns of names are none.
    TypeError, ValueError
        ``path`` is no path, or an address (``s3://…``).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> df = pl.DataFrame({"text": ["to be", "or not", "to be"]}).tadoc.compress("text")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     df.write_parquet(Path(folder) / "small.parquet", row_group_size=1)
    ...     info = tadoc.parquet_info(Path(folder) / "small.parquet")
    >>> info.select(["rows", "row_groups", "grammars", "copies"]).to_pylist()
    [{'rows': 3, 'row_groups': 3, 'grammars': 1, 'copies': 3}]

    """
    path = require_path("path", path, "parquet_info", "it is that of one Parquet file")
    if not path.is_file():  # also where it is a FIFO or a device
        raise FileNotFoundError(f"parquet_info takes the path of one Parquet file; there is no file {path}")
    keys: list[str] = []
    try:
        with arrow_file(path) as source, open_parquet(source) as file:
            with open_regular(path) as opened:
                schema = pl.Schema(pl.read_parquet_schema(opened))
            name = compressed_column(schema, column, "parquet_info")
            metadata = file.metadata
            places = _places(file.schema_arrow, name)
            _require_within_limit(path, source, file, places[0])
            groups = metadata.num_row_groups
            for group in range(groups):
                keys += _keys(file.read_row_group(group, columns=[f"{name}.grammar"])[name])
            chunks = [metadata.row_group(group) for group in range(groups)]
            sizes = [sum(chunk.column(place).total_compressed_size for chunk in chunks) for place in places]
            rows = metadata.num_rows
    except (pa.ArrowException, ComputeError, MalformedError) as error:
        raise InvalidGrammarError(f"parquet_info: {path} is no Parquet file, or damaged: {error}") from error
    of_grammars, total, distinct = sizes[0], sum(sizes), len(set(keys))
    repeated = of_grammars - of_grammars * distinct // max(len(keys), 1)
    if repeated > max(total - repeated, WORTH_A_WARNING):
        warnings.warn(
            f"{path}: {distinct:,} grammars stand {len(keys):,} times in {groups:,} row groups, {repeated / 1e6:,.1f} "
            f'of the {total / 1e6:,.1f} MB of column "{name}" are copies; write it anew in larger row groups, '
            "df.write_parquet(path, row_group_size=250_000), after tadoc.recompress(column) where rows were mixed",
            RepeatedGrammarsWarning,
            stacklevel=2,
        )
    row = (rows, groups, distinct, len(keys), of_grammars, total)
    return pl.DataFrame([row], schema=SCHEMA, orient="row").to_arrow()


def _keys(column: pa.ChunkedArray) -> list[str]:
    """Keys of the grammars that a row group stores; payloads become no Python strings."""
    dictionaries = [chunk.field(0).dictionary for chunk in column.chunks]
    unique = pa.chunked_array(dictionaries).unique().drop_null() if dictionaries else []
    texts = [cell.as_buffer() for cell in unique]
    return [
        payload.key_of(text.slice(0, min(payload.HEADER_LENGTH, text.size)).to_pybytes(), text.size) for text in texts
    ]


def _require_within_limit(path: Path, source: pa.NativeFile, file: Any, leaf: int) -> None:
    """Raise ``LimitExceededError`` where the grammars of a row group claim to unfold into too much to be read."""
    limit = settings().payload_limit_bytes
    for group in range(file.num_row_groups):
        size = unfolded_bytes(source, file, group, [leaf], limit)
        if size > limit:
            raise LimitExceededError(
                f"parquet_info: {path}, row group {group}: its grammars claim to unfold into {size:,} bytes or more, "
                f"the limit is {limit:,}; if the data is trusted, raise it: tadoc.Config(payload_limit_bytes=…)"
            )


def _places(schema: pa.Schema, name: str) -> range:
    """Give the numbers of the leaf columns that hold a column: a path such as ``text.grammar`` may be of another."""
    at = schema.get_field_index(name)
    first, count = (
        sum(1 for field in fields for _ in leaf_types(field.type)) for fields in (list(schema)[:at], [schema.field(at)])
    )
    return range(first, first + count)
