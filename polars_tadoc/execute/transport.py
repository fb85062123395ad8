"""How partial results travel: as records, which are spilled, sent, split and merged without knowing the analytic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic

from polars_tadoc.execute.aggregation import Part
from polars_tadoc.records.records import Layout, Records


@dataclass(frozen=True)
class Transport(ABC, Generic[Part]):
    """Turns partial results into records and back."""

    layout: Layout
    """What the numbers of records mean."""

    @abstractmethod
    def records(self, part: Part) -> Records:
        """Write a partial result, from which no limit left anything out, as records."""

    @abstractmethod
    def part(self, records: Records) -> Part:
        """Read a partial result; the order of words may be another than in the one that was written."""
