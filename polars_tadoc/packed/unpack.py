"""Unpacks packed rows into one row per document."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from functools import reduce
from operator import and_
from typing import Any

import polars as pl
import polars.selectors as cs
import pyarrow as pa

from polars_tadoc.config import MOST, settings
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError, NotPackedError
from polars_tadoc.model import payload
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.model.grammar_cache import grammars
from polars_tadoc.model.text_type import STORAGE, in_form, result_type
from polars_tadoc.packed.coded import VERSION as CODED_VERSION
from polars_tadoc.packed.files import SYMBOL_BYTES, RowGroup
from polars_tadoc.packed.partition import Partition, fields_at, partition_of
from polars_tadoc.packed.row_group_pruning import parts
from polars_tadoc.runtime.cache import ByteLRU
from polars_tadoc.runtime.cached_property import cached_property
from polars_tadoc.runtime.plain_name import plain
from polars_tadoc.runtime.process.narrow_reading import is_narrow
from polars_tadoc.runtime.process.prefetch import Making, made_ahead

payloads: ByteLRU[str] = ByteLRU(lambda: settings().host_cache_bytes // 8, len)
"""Payloads of packed grammars by content key: making one takes several times as long as hashing its arrays."""

Read = Callable[[list[str]], pl.DataFrame]
"""Reads some columns of the packed rows."""

Fault = Callable[[Any, Exception], None]
"""Called with a ``Read`` that raised one of ``FAULTS``, and the error."""

FAULTS = (InvalidGrammarError, LimitExceededError, OSError)
"""Errors of unreadable packed rows."""

TESTED_DOCUMENTS, TESTED_READS = 1 << 17, 64
"""Documents tested per call: a predicate with a long list prepares it again in each call."""

ROOM_AHEAD = 1 << 30
"""Bytes that row groups decoded ahead may take where no memory limit is given."""

_Numbered = tuple[int, dict[str, Any] | None]
"""A packed row's number and its fields; None if it is null."""

_Decoded = tuple[Partition | None, str | None]
"""A packed row and the payload of its grammar; None if it is null, and if no document uses it."""

_Tested = tuple[Read, list[tuple[pl.DataFrame, pl.Series]]]
"""A source; for each of its packed rows the early columns and which documents pass: empty if all do."""


def raised(_read: Read, error: Exception) -> None:
    """Raise the error of an unreadable place."""
    raise error


def unpacked_schema(schema: pl.Schema, column: str, call: str) -> pl.Schema:
    """Schema of the unpacked frame.

    Raises
    ------
    NotPackedError
        A column other than the packed one is not a list.

    """
    unpacked: dict[str, pl.DataType] = {}
    for name, dtype in schema.items():
        if name == column:
            unpacked[name] = result_type()
        elif isinstance(dtype, pl.List):
            unpacked[name] = dtype.inner  # type: ignore[assignment]
        else:
            raise NotPackedError(
                f'{call}: column "{name}" is {dtype}; columns beside a packed one must be lists, one value a document'
            )
    return pl.Schema(unpacked)


class Documents:
    """A selection from packed rows: which columns of which documents.

    Parameters
    ----------
    schema
        Columns of the documents; the compressed one is ``tadoc.Text`` or the struct.
    column
        The packed column.
    names
        Columns to return, in order; None for all.
    predicate
        Condition on documents, among the first ``limit``.
    limit
        Maximum documents to read; None for all.
    room
        Maximum bytes of row groups that are decoded ahead, and the one that the caller has; None: ``ROOM_AHEAD``, or
        none ahead for a plan under a memory limit.
    shared
        Columns with one value per file. The part of the predicate on them alone is :attr:`file_condition`, by which the
        caller chooses files; it is None if there is a limit, because a limit counts documents that do not pass.

    """

    def __init__(
        self,
        schema: pl.Schema,
        column: str,
        names: list[str] | None = None,
        predicate: pl.Expr | None = None,
        limit: int | None = None,
        shared: frozenset[str] = frozenset(),
        room: int | None = None,
    ) -> None:
        self.schema, self.column, self.left = schema, column, limit
        self.room = (0 if is_narrow() else ROOM_AHEAD) if room is None else room
        self.names = list(schema) if names is None else names
        early: list[pl.Expr] = []
        late: list[pl.Expr] = []
        of_files: list[pl.Expr] = []
        for part in [] if predicate is None else parts(predicate, and_):
            looks_at = part.meta.root_names()
            if looks_at and limit is None and shared.issuperset(looks_at):
                of_files.append(part)
            else:
                (early if looks_at and column not in looks_at else late).append(part)
        self.file_condition = _all(of_files)
        self.early_condition, self.late_condition = _all(early), _all(late)
        self.early = _columns_of(schema, early)
        """Columns of conditions that do not read the compressed column."""
        wanted = {*self.names, *_columns_of(schema, late)}
        self.late = [name for name in schema if name in wanted and name not in self.early]
        if not self.early and not self.late:
            self.late = [column]  # one column is needed to count the documents

    @property
    def columns(self) -> list[str]:
        """Columns that are read at all."""
        return [*self.early, *self.late]

    @property
    def done(self) -> bool:
        """Whether the limit is reached."""
        return self.left == 0

    def frames(self, reads: Iterable[Read], fault: Fault = raised) -> Iterator[pl.DataFrame]:
        """Yield the documents of packed rows: a frame for each row of which a document may pass.

        Reads the early columns first, the others and the compressed column only if a document passes.

        Parameters
        ----------
        reads
            Sources of packed rows, in order.
        fault
            Called with each unreadable source and an error of ``FAULTS``; if it returns, reading continues.

        """
        with closing(self._read_ahead(self._tested(reads, fault))) as readings:
            for reading in readings:
                if self.done:
                    return
                read, found = reading.item
                if found and not any(passing.any() for _, passing in found):
                    self._take(sum(frame.height for frame, _ in found))
                    continue
                try:
                    packed = reading.result() if self.late else None
                except FAULTS as error:
                    fault(read, error)
                    continue
                for row in range(len(found) if packed is None else packed.height):
                    try:
                        frame = self._row(found[row] if found else None, packed, row)
                    except FAULTS as error:
                        fault(read, error)
                        continue
                    if frame is not None:
                        yield self._chosen(frame, found[row][1] if found else None)
                del packed

    def _read_ahead(self, tested: Iterable[_Tested]) -> Generator[Making[_Tested, _Rows], None, None]:
        """Yield sources with their late columns; row groups whose text is read are decoded side by side."""

        def size(one: _Tested) -> int | None:
            read, found = one
            is_needed = not found or any(passing.any() for _, passing in found)
            if is_needed and self.column in self.late and isinstance(read, RowGroup):
                return read.decoding_bytes
            return None

        def goes_on(waiting: list[_Tested]) -> bool:
            return self.left is None or sum(map(_most_documents, waiting)) < self.left

        may_stop = self.early_condition is not None or self.late_condition is not None
        return made_ahead(tested, self._read, size, self.room, is_eager=not may_stop, goes_on=goes_on)

    def _read(self, tested: _Tested) -> _Rows:
        """Read the late columns; a row group with text in a thread of its own, which must not wait for Polars."""
        read, found = tested
        if self.column not in self.late:
            frame = read(self.late)
            return _Rows(frame.height, lambda: frame)
        passing = [one.any() for _, one in found]
        if not isinstance(read, RowGroup):
            frame = read(self.late)
            rows = [row for row in range(frame.height) if not found or passing[row]]
            return _Rows(frame.height, lambda: frame, self._decoded_ahead(frame[self.column], rows))
        table = read.table(self.late)
        fields = read.fields(table)
        is_needed = passing or [True] * len(fields)
        made = [self._outcome((row, fields[row])) if passes else (None, None) for row, passes in enumerate(is_needed)]
        counts = [0 if one is None or one["valid"] is None else len(one["valid"]) for one in fields]
        others = [name for name in self.late if name != self.column]
        table = table.drop_columns(self.column)
        return _Rows(len(fields), lambda: read.lists(table, others, counts), made.__getitem__)

    def _decoded_ahead(self, packed: pl.Series, rows: list[int]) -> Callable[[int], _Decoded | Exception]:
        """Decode packed rows side by side; they must be asked for in order."""

        def goes_on(waiting: list[_Numbered]) -> bool:
            documents = sum(0 if one is None or one["valid"] is None else len(one["valid"]) for _, one in waiting)
            return self.left is None or documents < self.left

        numbered = ((row, fields_at(packed, row)) for row in rows)
        readings = made_ahead(numbered, self._outcome, _decoding_bytes, self.room, goes_on=goes_on)
        return lambda _: next(readings).result()

    def _outcome(self, numbered: _Numbered) -> _Decoded | Exception:
        """Decode a packed row; return errors, which are raised in its turn."""
        row, fields = numbered
        try:
            return self._decoded(fields, row)
        except FAULTS as error:
            return error

    def _decoded(self, fields: dict[str, Any] | None, row: int) -> _Decoded:
        """Decode a packed row and make the payload of its grammar; this must not wait for Polars."""
        made: list[str] = []
        is_needed = fields is not None and fields["valid"] is not None and fields["valid"].any()

        def encode(key: str, grammar: Grammar) -> None:
            if is_needed:
                made.append(_payload(key, grammar))

        partition = partition_of(fields, self.column, row, on_grammar=encode)
        return partition, made[0] if made else None

    def _row(self, found: tuple[pl.DataFrame, pl.Series] | None, packed: _Rows | None, row: int) -> pl.DataFrame | None:
        """Return a packed row's documents with all columns that were read; None if none passed early."""
        if found is not None and not found[1].any():
            self._take(found[0].height)
            return None
        if packed is None:
            return None if found is None else found[0]
        frame = self._documents(packed, row, self.late)
        return frame if found is None else _beside(found[0], frame)

    def _chosen(self, frame: pl.DataFrame, passing: pl.Series | None) -> pl.DataFrame:
        """Keep the documents that pass, and the selected columns."""
        taken = self._take(frame.height)
        frame = frame.head(taken)
        if passing is not None:
            frame = frame.filter(passing.head(taken))
        if self.late_condition is not None:
            frame = frame.filter(self.late_condition)
        return chosen(frame, self.names)

    def _tested(self, reads: Iterable[Read], fault: Fault) -> Iterator[_Tested]:
        """Yield each source with its packed rows' early columns and which documents pass; empty if all do."""
        if self.early_condition is None:
            yield from ((read, []) for read in reads)
            return
        for some in self._gathered(reads, fault):
            frames = [frame for _, found in some for frame in found]
            if frames:
                passing = pl.concat(frames).select(self.early_condition.alias("passes")).to_series()
            first = 0
            for read, found in some:
                rows = []
                for frame in found:
                    rows.append((frame, passing.slice(first, frame.height)))
                    first += frame.height
                yield read, rows

    def _gathered(self, reads: Iterable[Read], fault: Fault) -> Iterator[list[tuple[Read, list[pl.DataFrame]]]]:
        """Read early columns until a test pays off or the limit is reached."""
        some: list[tuple[Read, list[pl.DataFrame]]] = []
        documents = 0
        for read in reads:
            try:
                lists = read(self.early)
                rows = _Rows(lists.height, lambda lists=lists: lists)  # type: ignore[misc]
                some.append((read, [self._documents(rows, row, self.early) for row in range(lists.height)]))
            except FAULTS as error:
                fault(read, error)
                continue
            documents += sum(frame.height for frame in some[-1][1])
            enough = TESTED_DOCUMENTS if self.left is None else min(TESTED_DOCUMENTS, self.left)
            if documents >= enough or len(some) == TESTED_READS:
                yield some
                some, documents = [], 0
                if self.done:
                    return
        yield some

    def _take(self, count: int) -> int:
        """Count documents against the limit; return how many may be read."""
        if self.left is None:
            return count
        taken = min(count, self.left)
        self.left -= taken
        return taken

    def _documents(self, packed: _Rows, row: int, names: list[str]) -> pl.DataFrame:
        """Return some columns of a packed row's documents."""
        frame = pl.DataFrame()
        for name in names:
            if name == self.column:
                made = packed.decoded(row)
                if isinstance(made, Exception):
                    raise made
                values = self._compressed(*made)
            else:
                values = plain(packed.lists[name].slice(row, 1)).explode(empty_as_null=False, keep_nulls=False)
            frame = _beside(frame, values.alias(name).to_frame())
        return frame

    def _compressed(self, partition: Partition | None, encoded: str | None) -> pl.Series:
        """Return the compressed column of a packed row's documents."""
        empty = pl.Series(self.column, [], STORAGE)
        bare = empty if partition is None else rows_of(partition, encoded, self.column)
        return in_form(bare, self.schema[self.column])


class _Rows:
    """Packed rows that were read."""

    def __init__(
        self,
        height: int,
        lists: Callable[[], pl.DataFrame],
        decoded: Callable[[int], _Decoded | Exception] = lambda _: (None, None),
    ) -> None:
        self.height, self._lists = height, lists
        self.decoded: Callable[[int], _Decoded | Exception] = decoded
        """Returns a row of the packed column, or its error."""

    @cached_property
    def lists(self) -> pl.DataFrame:
        """The other columns."""
        return self._lists()


def unpack(packed: pl.DataFrame, column: str) -> pl.DataFrame:
    """Make one row per document; see ``df.tadoc.unpack``."""
    schema = unpacked_schema(packed.schema, column, "unpack")
    frames = Documents(schema, column).frames([lambda names: packed.select(cs.by_name(names, require_all=True))])
    return pl.concat([pl.DataFrame(schema=schema), *frames], rechunk=True)


def rows_of(partition: Partition, encoded: str | None, name: str) -> pl.Series:
    """Return a packed row's documents as the storage of a compressed column; does not copy symbols and gaps.

    ``encoded`` is the payload of its grammar; None if no document uses it.
    """
    count = partition.document_count
    if encoded is None:
        return pl.Series(name, [None], STORAGE).new_from_index(0, count) if count else pl.Series(name, [], STORAGE)
    grammar = pl.Series("grammar", [encoded], STORAGE.fields[0].dtype)
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
    grammars.put(payload.key(encoded), grammar)  # so that later calls on the rows need not decode it again
    return encoded


def chosen(frame: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Select columns; if there are none, keep the height of the frame, which Polars needs to count rows."""
    return frame.select(cs.by_name(names)) if names else pl.DataFrame(height=frame.height)


def _most_documents(tested: _Tested) -> int:
    """Return a bound of a source's documents."""
    read, found = tested
    if found:
        return sum(frame.height for frame, _ in found)
    return read.most_documents if isinstance(read, RowGroup) else MOST


def _decoding_bytes(numbered: _Numbered) -> int:
    """Return about the bytes that decoding a packed row takes."""
    _, fields = numbered
    if fields is None or any(fields[name] is None for name in ("symbols", "roots", "document_offsets", "vocabulary")):
        return 0
    symbols, ends = len(fields["symbols"]) + len(fields["roots"]), fields["document_offsets"]
    if fields["version"] == CODED_VERSION and len(ends):  # its streams are shorter than what they code
        symbols = ends[0] or 0
    return SYMBOL_BYTES * int(symbols) + int(fields["vocabulary"].estimated_size())


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
