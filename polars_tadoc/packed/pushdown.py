"""Pushdown of a plan into a packed scan, so that partitions can be read without making rows.

If a plan only selects columns and rows of one scan, Polars' optimizer pushes all of it down to the scan: columns, a
predicate and a row limit. Code that reads whole partitions then needs neither Polars nor the payload of each grammar
that a compressed column would hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from polars_tadoc.model.corpus import Corpus
from polars_tadoc.packed.files import PackedFile
from polars_tadoc.packed.partition import Partition, partition_of
from polars_tadoc.packed.scan import PackedScan, asking, scans
from polars_tadoc.packed.unpack import FAULTS, ROOM_AHEAD, Documents, chosen
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.io_source import source_of
from polars_tadoc.storage.files import File, LocalFile


@array_dataclass
class PackedQuestion:
    """A selection of documents of a packed scan: a pushed-down predicate and limit."""

    scan: PackedScan
    """The scan."""
    predicate: pl.Expr | None
    """Condition on columns other than the compressed one."""
    limit: int | None
    """Read only the first ``limit`` documents; None for all."""

    @property
    def key(self) -> tuple[int, bytes, int | None]:
        """Equal for equal selections, while the scan is in use."""
        condition = b"" if self.predicate is None else self.predicate.meta.serialize()
        return id(self.scan), blake2b(condition).digest(), self.limit  # a condition may hold a list of any length

    @property
    def shown(self) -> str:
        """Files and predicate, for plans that are shown."""
        return self.scan.shown if self.predicate is None else f"{self.scan.shown}, where {self.predicate}"

    @property
    def asked(self) -> dict[str, Any]:
        """The selection as JSON values; a rewritten file gives other values."""
        condition = None
        if self.predicate is not None:
            condition = f"{self.predicate} {blake2b(self.predicate.meta.serialize(), digest_size=16).hexdigest()}"
        return {
            "column": self.scan.column,
            "predicate": condition,
            "limit": self.limit,
            "files": [_described(file) for file in self.scan.files],
            **({"folders": self.scan.folders} if self.scan.shared else {}),
        }

    def corpora(
        self, others: list[str], cached: bool, gaps: bool = False, ahead: int = ROOM_AHEAD
    ) -> Iterator[tuple[pl.DataFrame, Corpus]]:
        """Yield for each packed row the selected documents' other columns, null documents included, and their corpus.

        ``Corpus.rows`` numbers the rows of all these frames consecutively.

        Parameters
        ----------
        others
            Names of the other columns.
        cached
            Whether to keep grammars for the next call.
        gaps
            Whether to read the separators between words, too.
        ahead
            Maximum bytes of row groups that are decoded ahead.

        """
        asked = _Numbered(self, others, cached, gaps, ahead)
        first = 0
        for frame in self.scan.frames(asked):
            if asked.partition is not None:
                corpus = asked.partition.corpus(first, frame[self.scan.column])
                asked.partition = None
                yield chosen(frame, others), corpus
                first += frame.height

    def grammar_sizes(self) -> Iterator[tuple[str, int, int]]:
        """Yield place, symbols and bytes of words of each row group that may be read; reads only footers."""
        scan = self.scan
        asked = Documents(scan.schema, scan.column, [scan.column], self.predicate, self.limit)
        for row_group in scan.row_groups(asked):
            yield row_group.place, *row_group.file.grammar_sizes(row_group.group)


def _described(place: File) -> list[Any]:
    """Identify a file by its name and by what changes when it is rewritten."""
    name = str(place.path.resolve()) if isinstance(place, LocalFile) else place.name
    try:
        described = place.described()
        with PackedFile(place) as file:
            counts = {"row groups": file.group_count, "packed rows": file.row_count}
            return [name, {**described, **counts}]
    except FAULTS:  # reported when the plan runs
        return [name, "unreadable"]


def most_partitions(asked: dict[str, Any]) -> int:
    """Return the maximum number of partitions, given the value of :attr:`PackedQuestion.asked`."""
    return sum(said["packed rows"] for _, said in asked["files"] if said != "unreadable")


class _Numbered(Documents):
    """Documents with their numbers in the packed row instead of the compressed column, and their partition."""

    partition: Partition | None

    def __init__(self, question: PackedQuestion, others: list[str], cached: bool, gaps: bool, ahead: int) -> None:
        scan = question.scan
        names = [scan.column, *others]
        super().__init__(scan.schema, scan.column, names, question.predicate, question.limit, scan.shared, ahead)
        self.cached, self.gaps = cached, gaps

    def _decoded(self, fields: dict[str, Any] | None, row: int) -> tuple[Partition | None, None]:
        return partition_of(fields, self.column, row, self.cached, gaps=self.gaps), None

    def _compressed(self, partition: Partition | None, encoded: str | None) -> pl.Series:
        if partition is None:
            self.partition = None
            return pl.Series(self.column, [], pl.Int64)
        self.partition = partition
        return pl.int_range(partition.document_count, eager=True)


def packed_question(plan: pl.LazyFrame) -> PackedQuestion | None:
    """Return a plan's selection of a packed scan; None if the plan does more, or reads the compressed column.

    Optimizes the plan and calls its scan, which records the pushdown; reads no data.
    """
    if not scans:
        return None
    with _noted() as found:
        try:
            collect: Any = plan.collect  # the argument for execution engines is missing from its signature
            collect(engine="in-memory", post_opt_callback=_only_a_scan)
        except (PolarsError, OSError):  # reported when the plan runs
            return None
        except (TypeError, AttributeError):  # a Polars version that passes engines differently
            return None
    if len(found) != 1:
        return None
    scan, predicate, limit = found[0]
    looks = Documents(scan.schema, scan.column, predicate=predicate).late_condition is not None
    return None if looks else PackedQuestion(scan, predicate, limit)


@contextmanager
def _noted() -> Iterator[list[tuple[PackedScan, pl.Expr | None, int | None]]]:
    asking.noted = []
    try:
        yield asking.noted
    finally:
        asking.noted = None


def _only_a_scan(nodes: Any, *_: object) -> None:
    """Keep an optimized plan from running unless it is a packed scan with, at most, a choice of columns."""
    top, node = nodes.get_node(), nodes.view_current_node()
    if type(node).__name__ == "SimpleProjection":
        nodes.set_node(node.input)
        node = nodes.view_current_node()
        nodes.set_node(top)
    is_scan = type(node).__name__ == "PythonScan"
    if not is_scan or not isinstance(source_of(node.options[0]), PackedScan):
        nodes.set_udf(_nothing)


def _nothing(*_: object) -> pl.DataFrame:
    return pl.DataFrame()
