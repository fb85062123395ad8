"""Rows that stand together and share a grammar become one packed row, the other columns lists beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.arrow import owned
from polars_tadoc.column import split
from polars_tadoc.config import settings
from polars_tadoc.corpus import Corpus
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.grammar import VERSION, Grammar
from polars_tadoc.packed.partition import PACKED_DTYPE

MOST_VALUES = 1 << 29
"""Values that a cell may hold: beyond, a page of a Parquet file may not hold it."""

MOST_BYTES = (1 << 31) - 1
"""Bytes of strings that a cell may hold, likewise."""

NO_GRAMMAR = Grammar(
    vocabulary=pa.array([], pa.large_string()),
    rule_offsets=np.zeros(1, np.uint32),
    symbols=np.zeros(0, np.uint32),
    level_offsets=np.zeros(1, np.uint32),
    gap_vocabulary=pa.array([], pa.large_string()),
    predicted_gaps=np.zeros(0, np.uint32),
    tokenizer="words",
)
"""The grammar of rows that are all null."""


def packed_schema(schema: pl.Schema, column: str) -> pl.Schema:
    """Columns of the packed frame: the compressed column packed, any other one a list."""
    return pl.Schema({name: PACKED_DTYPE if name == column else pl.List(dtype) for name, dtype in schema.items()})


def pack(df: pl.DataFrame, column: str) -> pl.DataFrame:
    """Make one row of each run of rows that share a grammar; see ``df.tadoc.pack``.

    Raises
    ------
    LimitExceededError
        One row alone has more values than a cell may hold, or grammars alternate so often that the copies would take
        more than ``Config(payload_limit_bytes=)``.
    TypeError
        A column's type cannot stand in a list.

    """
    for name, dtype in df.schema.items():
        if isinstance(dtype, pl.Object):
            raise TypeError(f'pack: column "{name}" is Object, which no list can hold; drop it or turn it into text')
    df = df.rechunk()
    runs = grammar_runs(df[column])
    _require_few_copies(df[column], runs)
    rows = [_packed_row(df, column, part) for run in runs for part in _parts(df, column, run)]
    if not rows:
        return pl.DataFrame(schema=packed_schema(df.schema, column))
    return pl.concat(rows)


def grammar_runs(column: pl.Series) -> list[tuple[int, int]]:
    """First row and stop of each run of rows that share a grammar; null rows belong to the run before, or the first."""
    if len(column) == 0:
        return []
    fields = column.alias("text").struct  # Polars' own calls take some names for patterns
    codes, symbols = fields.field("grammar").to_physical(), fields.field("symbols")
    codes = pl.DataFrame([codes, symbols.is_not_null().alias("valid")]).select(
        pl.when("valid").then("grammar").forward_fill().backward_fill()
    )["grammar"]
    if codes.null_count():  # then all are null
        return [(0, len(column))]
    values = codes.to_numpy()
    starts = np.flatnonzero(values[1:] != values[:-1]) + 1
    return list(pairwise([0, *starts.tolist(), len(column)]))


def _require_few_copies(column: pl.Series, runs: Sequence[tuple[int, int]]) -> None:
    """Refuse grammars that come again so often that their copies would fill the memory."""
    if len(runs) < 2:
        return
    limit = settings().payload_limit_bytes
    sizes = {corpus.key: corpus.grammar.nbytes for corpus in split(column)}
    if len(runs) <= len(sizes) or len(runs) * max(sizes.values(), default=0) <= limit:
        return
    firsts = pl.concat([column.slice(start, stop - start).drop_nulls().head(1) for start, stop in runs])
    copies = sum(sizes[corpus.key] * corpus.document_count for corpus in split(firsts))
    if copies > limit:
        raise LimitExceededError(
            f"pack: {len(sizes):,} grammars alternate in {len(runs):,} runs of rows, and each run would hold its "
            f"grammar again ({copies:,} bytes, the limit is {limit:,}); bring the rows of a grammar together, or merge "
            "the grammars first: df.tadoc.recompress()"
        )


def _parts(df: pl.DataFrame, column: str, run: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Halve a run until each cell holds what it may."""
    start, stop = run
    rows = df.slice(start, stop - start)
    for name in df.columns:
        series = rows[name]
        if name == column:
            fields = series.alias("text").struct
            values, size = fields.field("symbols").list.len().sum(), fields.field("gaps").bin.size().sum()
        else:
            values, size = _most_values(series.alias("values"))
        if max(values, len(rows)) <= MOST_VALUES and size <= MOST_BYTES:
            continue
        if len(rows) == 1:
            raise LimitExceededError(
                f'pack: row {start} of column "{name}" has {values:,} values and {size:,} bytes; a cell holds '
                f"{MOST_VALUES:,} values and {MOST_BYTES:,} bytes at most"
            )
        middle = (start + stop) // 2
        yield from _parts(df, column, (start, middle))
        yield from _parts(df, column, (middle, stop))
        return
    yield run


def _most_values(series: pl.Series) -> tuple[int, int]:
    """Values and bytes of the largest leaf of a series."""
    if isinstance(series.dtype, pl.Struct):
        inner = [_most_values(series.struct.field(field.name)) for field in series.dtype.fields]
        return max((v for v, _ in inner), default=0), max((b for _, b in inner), default=0)
    if isinstance(series.dtype, pl.List | pl.Array):
        lists = series.arr.to_list() if isinstance(series.dtype, pl.Array) else series
        return _most_values(lists.list.explode(keep_nulls=False, empty_as_null=False).alias("values"))
    if series.dtype == pl.String:
        return len(series), int(series.str.len_bytes().sum())
    if series.dtype == pl.Binary:
        return len(series), int(series.bin.size().sum())
    return len(series), 0


def _packed_row(df: pl.DataFrame, column: str, run: tuple[int, int]) -> pl.DataFrame:
    start, stop = run
    rows = df.slice(start, stop - start)
    return pl.DataFrame(
        [pack_rows(series) if series.name == column else series.implode() for series in rows.get_columns()]
    )


def pack_rows(column: pl.Series) -> pl.Series:
    """Pack the rows of a compressed column that share one grammar: a series of one packed row."""
    corpora = split(column)
    gaps, valid = column.alias("text").struct.field("gaps"), pl.repeat(True, len(column), eager=True)
    if not corpora:
        nothing = np.zeros(0, np.uint32)
        documents = Corpus("", NO_GRAMMAR, np.zeros(0, np.int64), np.zeros(1, np.int64), nothing, gaps.head(0))
    else:
        (documents,) = corpora
    offsets = documents.root_offsets
    if documents.document_count < len(column):
        lengths = np.zeros(len(column), np.int64)
        lengths[documents.rows] = np.diff(offsets)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        present = np.zeros(len(column), np.bool_)
        present[documents.rows] = True
        valid = pl.Series("valid", present.tolist(), pl.Boolean)
        gaps = pl.DataFrame([gaps, valid]).select(pl.when("valid").then("gaps"))["gaps"]
    grammar = documents.grammar
    cells: dict[str, pl.Series] = {
        "vocabulary": grammar.words.series,
        "rule_offsets": _numbers(grammar.rule_offsets),
        "symbols": _numbers(grammar.symbols),
        "level_offsets": _numbers(grammar.level_offsets),
        "gap_vocabulary": grammar.gaps.series,
        "predicted_gaps": _numbers(grammar.predicted_gaps),
        "document_offsets": _numbers(offsets),
        "roots": _numbers(documents.roots),
        "gaps": gaps,
        "valid": valid,
    }
    fields = {name: cell.rechunk().implode() for name, cell in cells.items()}
    fields["tokenizer"] = pl.Series([grammar.tokenizer])
    fields["version"] = pl.Series([VERSION], dtype=pl.UInt32)
    return pl.DataFrame([fields[field.name].alias(field.name) for field in PACKED_DTYPE.fields]).to_struct(column.name)


def _numbers(array: npt.NDArray[Any]) -> pl.Series:
    """Copy an array into memory that Polars may own."""
    kind = pa.from_numpy_dtype(array.dtype)
    return cast(pl.Series, pl.from_arrow(pa.Array.from_buffers(kind, len(array), [None, owned(array)])))
