"""Converts partial results to records, which are spilled, sent, split and merged independently of the analytic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic

from polars_tadoc.execute.aggregation import Part
from polars_tadoc.records.records import Layout, Records


@dataclass(frozen=True)
class Transport(ABC, Generic[Part]):
    """Converts partial results to records and back."""

    layout: Layout
    """Meaning of the records' columns."""

    @abstractmethod
    def records(self, part: Part) -> Records:
        """Convert a partial result, made without limits, to records."""

    @abstractmethod
    def part(self, records: Records) -> Part:
        """Convert records to a partial result; its word order may differ from the original's."""
