"""Packed rows become rows again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from operator import and_

import polars as pl
import polars.selectors as cs
import pyarrow as pa

from polars_tadoc import payload
from polars_tadoc.cache import ByteLRU, grammars
from polars_tadoc.column import DTYPE
from polars_tadoc.config import settings
from polars_tadoc.errors import InvalidGrammarError, NotPackedError
from polars_tadoc.grammar import Grammar
from polars_tadoc.packed.partition import Partition, partition_at
from polars_tadoc.packed.skip import conjuncts

payloads: ByteLRU[str] = ByteLRU(lambda: settings().host_cache_bytes // 8, len)
"""Payloads of packed grammars by content key: making one takes several times as long as hashing its arrays."""

Read = Callable[[list[str]], pl.DataFrame]
"""Gives some columns of the packed rows."""


def unpacked_schema(schema: pl.Schema, column: str, call: str) -> pl.Schema:
    """Columns of the unpacked frame.

    Raises
    ------
    NotPackedError
        A column other than the packed one is no list.

    """
    unpacked: dict[str, pl.DataType] = {}
    for name, dtype in schema.items():
        if name == column:
            unpacked[name] = DTYPE
        elif isinstance(dtype, pl.List):
            unpacked[name] = dtype.inner  # type: ignore[assignment]
        else:
            raise NotPackedError(
                f'{call}: column "{name}" is {dtype}; beside a packed column there are lists, one value a document'
            )
    return pl.Schema(unpacked)


class Documents:
    """What is asked of packed rows: which columns of which documents.

    Parameters
    ----------
    schema
        Columns of the documents; the compressed one is of type ``DTYPE``.
    column
        The packed column.
    names
        Columns to give, in their order; None for all.
    predicate
        Which documents to give, of the first ``limit``.
    limit
        Documents to look at; None for all.

    """

    def __init__(
        self,
        schema: pl.Schema,
        column: str,
        names: list[str] | None = None,
        predicate: pl.Expr | None = None,
        limit: int | None = None,
    ) -> None:
        self.schema, self.column, self.left = schema, column, limit
        self.names = list(schema) if names is None else names
        conditions = [] if predicate is None else list(conjuncts(predicate))
        early = [part for part in conditions if part.meta.root_names() and column not in part.meta.root_names()]
        late = [part for part in conditions if not any(part is other for other in early)]
        self.early_condition, self.late_condition = _all(early), _all(late)
        self.early = _columns_of(schema, early)
        """Columns that conditions read which do not look at the compressed column."""
        wanted = {*self.names, *_columns_of(schema, late)}
        self.late = [name for name in schema if name in wanted and name not in self.early]
        if not self.early and not self.late:
            self.late = [column]  # something has to say how many documents there are

    @property
    def columns(self) -> list[str]:
        """Columns that are read at all."""
        return [*self.early, *self.late]

    @property
    def done(self) -> bool:
        """Whether no more documents are to be looked at."""
        return self.left == 0

    def frames(self, read: Read) -> Iterator[pl.DataFrame]:
        """Give the documents of some packed rows: a frame for each row of which a document may have passed.

        The early columns are read first, the others and the compressed column only where a document passes.
        """
        found: list[pl.DataFrame] = []
        passing: list[pl.Series] = []
        if self.early_condition is not None:
            lists = read(self.early)
            found = [self._documents(lists, row) for row in range(lists.height)]
            passing = [frame.select(self.early_condition.alias("passes")).to_series() for frame in found]
            if not any(mask.any() for mask in passing):
                self._take(sum(frame.height for frame in found))
                return
        packed = read(self.late) if self.late else None
        for row in range(len(found) if packed is None else packed.height):
            if found and not passing[row].any():
                self._take(found[row].height)
                continue
            frame = self._documents(packed, row) if packed is not None else pl.DataFrame()
            if found:
                frame = _beside(found[row], frame) if packed is not None else found[row]
            taken = self._take(frame.height)
            frame = frame.head(taken)
            if found:
                frame = frame.filter(passing[row].head(taken))
            if self.late_condition is not None:
                frame = frame.filter(self.late_condition)
            yield chosen(frame, self.names)

    def _take(self, count: int) -> int:
        """Count documents that are looked at; returns how many of them may be."""
        if self.left is None:
            return count
        taken = min(count, self.left)
        self.left -= taken
        return taken

    def _documents(self, packed: pl.DataFrame, row: int) -> pl.DataFrame:
        """Give a packed row's documents, with the columns that were read."""
        frame = pl.DataFrame()
        for series in packed.get_columns():
            if series.name == self.column:
                values = self._compressed(series, row)
            else:
                one = series.slice(row, 1).alias("values")  # Polars takes some names for patterns
                values = one.explode(empty_as_null=False, keep_nulls=False)
            frame = _beside(frame, values.alias(series.name).to_frame())
        return frame

    def _compressed(self, packed: pl.Series, row: int) -> pl.Series:
        """Give the compressed column of a packed row's documents."""
        partition = partition_at(packed, row)
        return pl.Series(packed.name, [], DTYPE) if partition is None else rows_of(partition, packed.name)


def unpack(packed: pl.DataFrame, column: str) -> pl.DataFrame:
    """Make a row of each document again; see ``df.tadoc.unpack``."""
    schema = unpacked_schema(packed.schema, column, "unpack")
    frames = Documents(schema, column).frames(lambda names: packed.select(cs.by_name(names, require_all=True)))
    return pl.concat([pl.DataFrame(schema=schema), *frames], rechunk=True)


def rows_of(partition: Partition, name: str) -> pl.Series:
    """Give a packed row's documents as rows of a compressed column; symbols and gaps are not copied."""
    count = partition.document_count
    if not partition.valid.any():
        return pl.Series(name, [None], DTYPE).new_from_index(0, count) if count else pl.Series(name, [], DTYPE)
    grammar = pl.Series("grammar", [_payload(partition.key, partition.grammar)], DTYPE.fields[0].dtype)
    lists = pa.LargeListArray.from_arrays(partition.offsets.to_arrow(), partition.roots.to_arrow())
    symbols = pl.Series("symbols", lists)
    column = pl.DataFrame([grammar.new_from_index(0, count), symbols, partition.gaps.alias("gaps")]).to_struct("text")
    if partition.valid.all():
        return column.alias(name)
    rows = pl.DataFrame([column, partition.valid.alias("valid")])
    return rows.select(pl.when("valid").then("text")).to_series().alias(name)


def _payload(key: str, grammar: Grammar) -> str:
    known = payloads.get(key)
    if known is not None:
        return known
    encoded = payloads.put(key, payload.encode(grammar))
    grammars.put(payload.key(encoded), grammar)  # so that no call on the rows decodes it again
    return encoded


def chosen(frame: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Choose columns; where there are none, the frame still has its rows, which Polars asks for to count them."""
    return frame.select(cs.by_name(names)) if names else pl.DataFrame(height=frame.height)


def _all(conditions: list[pl.Expr]) -> pl.Expr | None:
    return reduce(and_, conditions) if conditions else None


def _columns_of(schema: pl.Schema, conditions: list[pl.Expr]) -> list[str]:
    names = {name for condition in conditions for name in condition.meta.root_names()}
    return [name for name in schema if name in names]


def _beside(left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame:
    if left.width and left.height != right.height:
        raise InvalidGrammarError(
            f'packed row: column "{left.columns[0]}" has {left.height:,} documents, "{right.columns[0]}" '
            f"has {right.height:,}"
        )
    return left.hstack(right) if left.width else right
