"""Size of a compressed column in Parquet files, where each row group repeats the grammars of its rows."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa
from polars.exceptions import ComputeError

from polars_tadoc.analytics.info import WORTH_A_WARNING, grammars_are_small
from polars_tadoc.config import settings
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError, RepeatedGrammarsWarning, warn_caller
from polars_tadoc.execute.columns import compressed_column
from polars_tadoc.model import payload
from polars_tadoc.runtime.documented import with_imports
from polars_tadoc.storage.files import File, chunk_range
from polars_tadoc.storage.find import Source, find
from polars_tadoc.storage.object_store import Access
from polars_tadoc.untrusted.parquet_footer import open_parquet
from polars_tadoc.untrusted.parquet_sizes import decompressed_bytes, leaf_types
from polars_tadoc.untrusted.thrift import MalformedError

CALL = "parquet_info"

SCHEMA = pl.Schema(
    {
        "files": pl.UInt64,
        "rows": pl.UInt64,
        "row_groups": pl.UInt64,
        "grammars": pl.UInt64,
        "copies": pl.UInt64,
        "grammar_bytes": pl.UInt64,
        "bytes": pl.UInt64,
        "advice": pl.String,
    }
)


@with_imports
def parquet_info(
    path: Source,
    column: str | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    credential_provider: Any = "auto",
) -> pl.DataFrame:
    """Describe a compressed column of Parquet files in one row; of the data, reads only the grammars.

    Warns if copies of the same grammars take more space than the rest of the column: because row groups are small, rows
    are mixed, or one column was cut into many files, each of which repeats all grammars. Also warns of many grammars of
    few rows that take more space than the rows.

    Parameters
    ----------
    path
        A file, a folder (also with Hive partitions), a glob pattern, an address (``s3://bucket/folder``), an open
        binary file, or a list of these.
    column
        Name of the column; optional if exactly one column is compressed.

    Returns
    -------
    DataFrame
        One row: ``files``; ``rows``; ``row_groups``; ``grammars`` (distinct); ``copies`` (grammars of each row group,
        summed); ``grammar_bytes`` (of all copies, as stored in the files); ``bytes`` (of the whole column there),
        UInt64; ``advice`` (what to do if that is much more than necessary, otherwise null), String.

    Raises
    ------
    ColumnMissingError
        The file lacks the column; the message suggests the nearest names.
    NotCompressedError
        The column has another type, or ``column`` is missing and not exactly one column is compressed.
    InvalidGrammarError
        The file is damaged, or not a Parquet file.
    LimitExceededError
        The grammars of a row group claim to decode to more than ``Config(payload_limit_bytes=)``.
    FileNotFoundError
        No file matches.
    TypeError, ValueError
        ``path`` has another type, or is an address with an unknown scheme.

    Examples
    --------
    >>> df = pl.DataFrame({"text": ["to be", "or not", "to be"]}).tadoc.compress("text")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     df.write_parquet(Path(folder) / "small.parquet", row_group_size=1)
    ...     info = tadoc.parquet_info(Path(folder) / "small.parquet")
    >>> info.select(["rows", "row_groups", "grammars", "copies"]).to_dicts()
    [{'rows': 3, 'row_groups': 3, 'grammars': 1, 'copies': 3}]

    """
    found = find(path, CALL, Access(storage_options, credential_provider))
    keys: list[str] = []
    rows = groups = of_grammars = total = 0
    names = []
    for place in (one.file for one in found):
        about = _described(place, column)
        keys += about.keys
        names.append(about.column)
        rows, groups = rows + about.rows, groups + about.groups
        of_grammars, total = of_grammars + about.sizes[0], total + sum(about.sizes)
    distinct, others = len(set(keys)), f" and {len(found) - 1} more" if len(found) > 1 else ""
    advice = _advice(len(found), rows, groups, distinct, len(keys), of_grammars, total, f'"{names[0]}"')
    if advice is not None:
        warn_caller(f"{found[0].file}{others}: {advice}", RepeatedGrammarsWarning)
    row = (len(found), rows, groups, distinct, len(keys), of_grammars, total, advice)
    return pl.DataFrame([row], schema=SCHEMA, orient="row")


def _advice(
    files: int, rows: int, groups: int, distinct: int, copies: int, of_grammars: int, total: int, column: str
) -> str | None:
    """Explain what takes unnecessary space, and what to do; None if that would save little."""
    repeated = of_grammars - of_grammars * distinct // max(copies, 1)
    if repeated > max(total - repeated, WORTH_A_WARNING):
        said = (
            f"{distinct:,} grammars are stored {copies:,} times in {groups:,} row groups"
            f"{f' of {files:,} files' if files > 1 else ''}, {repeated / 1e6:,.1f} of the {total / 1e6:,.1f} MB of "
            f"column {column} are copies; "
        )
        if files > 1 and 2 * groups < 3 * files:
            return (
                said + "each file repeats the grammars of all: write partitions by "
                "lf.tadoc.sink_parquet(folder, partition_by=…), which makes grammars of each one's rows"
            )
        return (
            said
            + "write it again in larger row groups, df.write_parquet(path, row_group_size=250_000), and before that "
            "call tadoc.recompress(column) if rows are mixed"
        )
    if grammars_are_small(distinct, rows, of_grammars, total - of_grammars, WORTH_A_WARNING // 2):
        return (
            f"{distinct:,} grammars of {of_grammars / 1e6:,.1f} MB for {rows:,} rows of "
            f"{(total - of_grammars) / 1e6:,.1f} MB in column {column}"
            f"{f', in {files:,} files' if files > 1 else ''}: grammars of few rows find few repeats; read them "
            "together and merge them with tadoc.recompress(column), or partition by a coarser key"
        )
    return None


class _FileInfo(NamedTuple):
    """The statistics of a file's compressed column."""

    column: str
    rows: int
    groups: int
    keys: list[str]
    sizes: list[int]


def _described(place: File, column: str | None) -> _FileInfo:
    try:
        source, ranges = place.open()
        with source, open_parquet(source) as file:
            name = compressed_column(_schema(source), column, CALL)
            metadata, keys = file.metadata, []
            places = _places(file.schema_arrow, name)
            groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
            for number, group in enumerate(groups):
                if ranges is not None:
                    ranges.fetch([chunk_range(group.column(places[0]))])
                _require_within_limit(place, source, file, number, places[0])
                keys += _keys(file.read_row_group(number, columns=[f"{name}.grammar"])[name])
            sizes = [sum(group.column(leaf).total_compressed_size for group in groups) for leaf in places]
            return _FileInfo(name, metadata.num_rows, len(groups), keys, sizes)
    except (pa.ArrowException, ComputeError, MalformedError) as error:
        raise InvalidGrammarError(f"{CALL}: {place}: not a Parquet file, or damaged: {error}") from error


def _schema(source: pa.NativeFile) -> pl.Schema:
    """Read the columns from the footer only, like Polars."""
    size = source.size()
    length = int.from_bytes(source.read_at(4, size - 8), "little")
    return pl.Schema(pl.read_parquet_schema(io.BytesIO(b"PAR1" + source.read_at(length + 8, size - 8 - length))))


def _keys(column: pa.ChunkedArray) -> list[str]:
    """Return the keys of a row group's grammars, without making Python strings of payloads."""
    dictionaries = [chunk.field(0).dictionary for chunk in column.chunks]
    unique = pa.chunked_array(dictionaries).unique().drop_null() if dictionaries else []
    texts = [cell.as_buffer() for cell in unique]
    return [
        payload.key_of(text.slice(0, min(payload.HEADER_LENGTH, text.size)).to_pybytes(), text.size) for text in texts
    ]


def _require_within_limit(place: File, source: pa.NativeFile, file: Any, group: int, leaf: int) -> None:
    """Raise ``LimitExceededError`` if the grammars of a row group claim to decode to more than the limit."""
    limit = settings().payload_limit_bytes
    size = decompressed_bytes(source, file, group, [leaf], limit)
    if size > limit:
        raise LimitExceededError(
            f"{CALL}: {place}, row group {group}: its grammars claim to decode to at least {size:,} bytes, "
            f"the limit is {limit:,}; if the data is trusted, raise it: tadoc.Config(payload_limit_bytes=…)"
        )


def _places(schema: pa.Schema, name: str) -> range:
    """Return the numbers of a column's leaf columns; a path such as ``text.grammar`` may belong to another column."""
    at = schema.get_field_index(name)
    first, count = (
        sum(1 for field in fields for _ in leaf_types(field.type)) for fields in (list(schema)[:at], [schema.field(at)])
    )
    return range(first, first + count)
