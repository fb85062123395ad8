"""What a plan asks of a packed scan, so that partitions can be read without making rows of them.

Where a plan does no more than choose columns and rows of one scan, Polars' optimizer hands all of it to the scan: the
columns, a predicate and a row limit. Whoever reads whole partitions can then do without Polars, and so without the
payload of each grammar that a compressed column holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from polars_tadoc.model.corpus import Corpus
from polars_tadoc.packed.files import PackedFile
from polars_tadoc.packed.partition import Partition, partition_at
from polars_tadoc.packed.scan import PackedScan, asking, scans
from polars_tadoc.packed.unpack import FAULTS, Documents, chosen
from polars_tadoc.runtime.io_source import source_of
from polars_tadoc.storage.files import File, LocalFile


@dataclass(frozen=True, eq=False)
class PackedQuestion:
    """Some documents of a packed scan.

    Parameters
    ----------
    scan
        The scan.
    predicate
        Condition on columns other than the compressed one.
    limit
        Only the first so many documents are looked at; None for all.

    """

    scan: PackedScan
    predicate: pl.Expr | None
    limit: int | None

    @property
    def key(self) -> tuple[int, bytes, int | None]:
        """Equal where the same is asked, while the scan is in use."""
        condition = b"" if self.predicate is None else self.predicate.meta.serialize()
        return id(self.scan), blake2b(condition).digest(), self.limit  # a condition may hold a list of any length

    @property
    def shown(self) -> str:
        """Files and predicate, for plans that are shown."""
        return self.scan.shown if self.predicate is None else f"{self.scan.shown}, where {self.predicate}"

    @property
    def asked(self) -> dict[str, Any]:
        """Which documents, as values that JSON has: a file that is written again is another one."""
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

    def corpora(self, others: list[str], cached: bool, gaps: bool = False) -> Iterator[tuple[pl.DataFrame, Corpus]]:
        """Give each packed row's documents that pass: other columns of them, null ones included, and their corpus.

        ``Corpus.rows`` number the rows of all those frames, one after another.

        Parameters
        ----------
        others
            Names of the other columns.
        cached
            Keep grammars for the next call.
        gaps
            Give what stood between words, too.

        """
        asked = _Numbered(self, others, cached, gaps)
        first = 0
        for frame in self.scan.frames(asked):
            if asked.partition is not None:
                corpus = asked.partition.corpus(first, frame[self.scan.column])
                asked.partition = None
                yield chosen(frame, others), corpus
                first += frame.height

    def grammar_sizes(self) -> Iterator[tuple[str, int, int]]:
        """Tell of each row group that may be read its place, symbols and bytes of words; only footers are read."""
        scan = self.scan
        asked = Documents(scan.schema, scan.column, [scan.column], self.predicate, self.limit)
        for row_group in scan.row_groups(asked):
            yield row_group.place, *row_group.file.grammar_sizes(row_group.group)


def _described(place: File) -> list[Any]:
    """Name a file, and say what tells it from another one of that name."""
    name = str(place.path.resolve()) if isinstance(place, LocalFile) else place.name
    try:
        described = place.described()
        with PackedFile(place) as file:
            counts = {"row groups": file.group_count, "packed rows": file.row_count}
            return [name, {**described, **counts}]
    except FAULTS:  # said when the plan runs
        return [name, "unreadable"]


def most_partitions(asked: dict[str, Any]) -> int:
    """Tell how many partitions there are at most, of what :attr:`PackedQuestion.asked` gave."""
    return sum(said["packed rows"] for _, said in asked["files"] if said != "unreadable")


class _Numbered(Documents):
    """Documents with their numbers in the packed row in place of the compressed column, and what holds them."""

    partition: Partition | None

    def __init__(self, question: PackedQuestion, others: list[str], cached: bool, gaps: bool) -> None:
        scan = question.scan
        names = [scan.column, *others]
        super().__init__(scan.schema, scan.column, names, question.predicate, question.limit, scan.shared)
        self.cached, self.gaps = cached, gaps

    def _compressed(self, packed: pl.Series, row: int) -> pl.Series:
        partition = partition_at(packed, row, self.cached)
        if partition is None:
            self.partition = None
            return pl.Series(packed.name, [], pl.Int64)
        if not self.gaps:
            nothing = pl.Series("gaps", [None], pl.Binary).new_from_index(0, partition.document_count)
            partition = replace(partition, gaps=nothing)
        self.partition = partition
        return pl.int_range(partition.document_count, eager=True)


def packed_question(plan: pl.LazyFrame) -> PackedQuestion | None:
    """Tell what a plan asks of a packed scan; None where it does more, or looks at the compressed column.

    The plan is optimized, and its scan asked, which then notes what it is asked for; nothing is read.
    """
    if not scans:
        return None
    with _noted() as found:
        try:
            collect: Any = plan.collect  # execution engines come in by an argument that its signature leaves out
            collect(engine="in-memory", post_opt_callback=_only_a_scan)
        except (PolarsError, OSError):  # said again when the plan runs
            return None
        except (TypeError, AttributeError):  # a Polars whose engines come in otherwise
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
    """Keep an optimized plan from running unless it is a packed scan, of which columns may be chosen."""
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
