"""Packs consecutive rows that share a grammar into one packed row; the other columns become lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.config import settings
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.model.column import split
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.grammar import VERSION, Grammar
from polars_tadoc.model.grammar_cache import grammars
from polars_tadoc.model.text_type import storage
from polars_tadoc.packed.coded import numbers
from polars_tadoc.packed.partition import PACKED_DTYPE
from polars_tadoc.runtime.plain_name import plain

MAX_VALUES = 1 << 29
"""Maximum values in a cell: a Parquet page may not hold more."""

MAX_BYTES = (1 << 31) - 1
"""Maximum bytes of strings in a cell, for the same reason."""


def packed_schema(schema: pl.Schema, column: str) -> pl.Schema:
    """Schema of the packed frame: the compressed column is packed, every other column is a list.

    Raises
    ------
    TypeError
        A column's type cannot be an element of a list.

    """
    for name, dtype in schema.items():
        if dtype == pl.Object:
            raise TypeError(f'pack: column "{name}" is Object, which lists cannot hold; drop it or convert it to text')
    return pl.Schema({name: PACKED_DTYPE if name == column else pl.List(dtype) for name, dtype in schema.items()})


def pack(df: pl.DataFrame, column: str) -> pl.DataFrame:
    """Make one row of each run of consecutive rows that share a grammar; see ``df.tadoc.pack``.

    Raises
    ------
    LimitExceededError
        A single row has more values than a cell may hold, or grammars alternate so often that their copies would
        exceed ``Config(payload_limit_bytes=)``.
    TypeError
        A column's type cannot be an element of a list.

    """
    return pl.concat([pl.DataFrame(schema=packed_schema(df.schema, column)), *pack_stream([df], column)])


def pack_stream(batches: Iterable[pl.DataFrame], column: str, *, passing: bool = False) -> Iterator[pl.DataFrame]:
    """Pack rows batch by batch, holding one run and one batch in memory; errors as for :func:`pack`.

    Parameters
    ----------
    batches
        The rows.
    column
        The compressed column.
    passing
        Whether the rows are only passing through: their grammars are then not cached.

    """
    packed = _PackedGrammars(passing)
    held: list[pl.DataFrame] = []
    code: int | None = None
    for batch in batches:
        for own, start, stop in grammar_runs(batch[column]):
            if code is not None and own is not None and own != code:
                yield from _packed_rows(pl.concat(held), column, packed)
                held, code = [], None
            held.append(batch.slice(start, stop - start))
            code = code if own is None else own
    if held:
        yield from _packed_rows(pl.concat(held), column, packed)


def grammar_runs(column: pl.Series) -> list[tuple[int | None, int, int]]:
    """Return category code, first row and stop of each run of rows that share a grammar.

    Null rows belong to the run before them, or to the first run; if all rows are null, the code is None.
    """
    if len(column) == 0:
        return []
    fields = plain(storage(column)).struct
    valid = fields.field("symbols").is_not_null().alias("valid")
    codes = pl.DataFrame([fields.field("grammar").to_physical(), valid]).select(
        pl.when("valid").then("grammar").forward_fill().backward_fill()
    )
    if codes["grammar"].null_count():
        return [(None, 0, len(column))]
    values = codes["grammar"].to_numpy()
    starts = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist()]
    return [(int(values[start]), start, stop) for start, stop in pairwise([*starts, len(column)])]


class _PackedGrammars:
    """Counts the bytes of repeated grammars, which would fill memory or disk if grammars alternate."""

    def __init__(self, passing: bool) -> None:
        self.passing = passing
        self.sizes: dict[str, int] = {}
        self.copied = 0

    def add(self, corpus: Corpus) -> None:
        """Count a packed grammar; raise ``LimitExceededError`` if the copies exceed the limit."""
        if self.passing:
            grammars.discard(corpus.key)
        if corpus.key not in self.sizes:
            self.sizes[corpus.key] = corpus.grammar.nbytes
            return
        self.copied += self.sizes[corpus.key]
        limit = settings().payload_limit_bytes
        if self.copied > limit:
            raise LimitExceededError(
                f"pack: {len(self.sizes):,} grammars alternate from row to row, and each run of rows has its own copy: "
                f"at least {limit:,} bytes; sort rows so that those of one grammar are adjacent, or merge the grammars "
                "first: df.tadoc.recompress()"
            )


def _packed_rows(rows: pl.DataFrame, column: str, packed: _PackedGrammars) -> Iterator[pl.DataFrame]:
    """Pack rows that share a grammar into one packed row, or into several if a cell would exceed its limits."""
    for name in rows.columns:
        values, size = _most_values(plain(rows[name]))
        if max(values, rows.height) <= MAX_VALUES and size <= MAX_BYTES:
            continue
        if rows.height == 1:
            raise LimitExceededError(
                f'pack: column "{name}": a row has {values:,} values and {size:,} bytes; a cell holds at most '
                f"{MAX_VALUES:,} values and {MAX_BYTES:,} bytes"
            )
        middle = rows.height // 2
        yield from _packed_rows(rows.head(middle), column, packed)
        yield from _packed_rows(rows.slice(middle), column, packed)
        return
    yield pl.DataFrame(
        {
            series.name: pack_rows(series.rechunk(), packed) if series.name == column else _implode(series)
            for series in rows.get_columns()
        }
    )


def document_count(column: pl.Series) -> int:
    """Return the number of documents in a packed column's rows."""
    offsets = plain(column).struct.field("document_offsets").list.len()
    return int(offsets.sum()) - len(column)


def _most_values(series: pl.Series) -> tuple[int, int]:
    """Return values and bytes of the largest leaf of a series."""
    if isinstance(series.dtype, pl.BaseExtension):
        return _most_values(storage(series))
    if isinstance(series.dtype, pl.Struct):
        inner = [_most_values(series.struct.field(field.name)) for field in series.dtype.fields]
        return max((v for v, _ in inner), default=0), max((b for _, b in inner), default=0)
    if isinstance(series.dtype, pl.List | pl.Array):
        lists = series.arr.to_list() if isinstance(series.dtype, pl.Array) else series
        return _most_values(plain(lists.list.explode(keep_nulls=False, empty_as_null=False)))
    if series.dtype == pl.String:
        return len(series), int(series.str.len_bytes().sum())
    if series.dtype == pl.Binary:
        return len(series), int(series.bin.size().sum())
    return len(series), 0


def pack_rows(column: pl.Series, packed: _PackedGrammars) -> pl.Series:
    """Pack the rows of a compressed column that share one grammar into a series of length one."""
    corpora = split(column)
    gaps, valid = plain(storage(column)).struct.field("gaps"), pl.repeat(True, len(column), eager=True)
    if not corpora:
        nothing = np.zeros(0, np.uint32)
        documents = Corpus("", _no_grammar(), np.zeros(0, np.int64), np.zeros(1, np.int64), nothing, gaps.head(0))
    else:
        (documents,) = corpora
        packed.add(documents)
    offsets = documents.root_offsets
    if documents.document_count < len(column):
        lengths = np.zeros(len(column), np.int64)
        lengths[documents.rows] = np.diff(offsets)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        present = np.zeros(len(column), np.bool_)
        present[documents.rows] = True
        valid = pl.Series("valid", present)
        gaps = pl.DataFrame([gaps, valid]).select(pl.when("valid").then("gaps"))["gaps"]
    grammar = documents.grammar
    cells: dict[str, pl.Series] = {
        "vocabulary": grammar.words.series,
        "rule_offsets": numbers(grammar.rule_offsets),
        "symbols": numbers(grammar.symbols),
        "level_offsets": numbers(grammar.level_offsets),
        "gap_vocabulary": grammar.gaps.series,
        "predicted_gaps": numbers(grammar.predicted_gaps),
        "document_offsets": numbers(offsets),
        "roots": numbers(documents.roots),
        "gaps": gaps,
        "valid": valid,
    }
    fields = {name: _implode(cell) for name, cell in cells.items()}
    fields["tokenizer"] = pl.Series([grammar.tokenizer])
    fields["version"] = pl.Series([VERSION], dtype=pl.UInt32)
    return pl.DataFrame([fields[field.name].alias(field.name) for field in PACKED_DTYPE.fields]).to_struct(column.name)


def _implode(series: pl.Series) -> pl.Series:
    return plain(series.rechunk()).implode().alias(series.name)


def _no_grammar() -> Grammar:
    """Return the grammar of all-null rows; made on first use, because the first ``pa.array`` imports pandas."""
    nothing = pa.nulls(0, pa.large_string())
    return Grammar(
        vocabulary=nothing,
        rule_offsets=np.zeros(1, np.uint32),
        symbols=np.zeros(0, np.uint32),
        level_offsets=np.zeros(1, np.uint32),
        gap_vocabulary=nothing,
        predicted_gaps=np.zeros(0, np.uint32),
        tokenizer="words",
    )
