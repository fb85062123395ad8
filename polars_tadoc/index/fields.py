"""Fields of an index: several text columns, each with a weight (BM25F)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from fractions import Fraction
from math import lcm
from typing import Any, NamedTuple

import polars as pl

from polars_tadoc.errors import ColumnMissingError
from polars_tadoc.index.segment import Segment

MAX_FIELDS = 64
"""Maximum fields of an index."""

MARK = "\0"
"""Before the name of a field in terms that count the word in this field only."""


class Fields(NamedTuple):
    """The fields of an index."""

    names: tuple[str, ...]
    weights: tuple[int, ...]
    """Weights times ``scale``: each occurrence of a word counts so often."""
    scale: int

    @classmethod
    def of(cls, weights: Mapping[str, Any], call: str) -> Fields:
        """Check weights by name.

        Raises
        ------
        TypeError
            A name is not a string, or a weight not a number.
        ValueError
            There are no names or more than ``MAX_FIELDS``, or a weight is out of range or has more than three decimals.

        """
        if not 0 < len(weights) <= MAX_FIELDS:
            raise ValueError(f"{call}: there are {len(weights)} fields; give 1 to {MAX_FIELDS} columns with weights")
        exact = []
        for name, weight in weights.items():
            if not isinstance(name, str):
                raise TypeError(f"{call}: the name of a field is {type(name).__name__}, not a string")
            if isinstance(weight, bool) or not isinstance(weight, int | float):
                raise TypeError(f'{call}: the weight of field "{name}" is {type(weight).__name__}, not a number')
            if not 0.001 <= weight <= 1000 or round(float(weight), 3) != weight:
                raise ValueError(
                    f'{call}: the weight of field "{name}" is {weight}; weights are from 0.001 to 1000, with at most '
                    "three decimals"
                )
            exact.append(Fraction(round(1000 * weight), 1000))
        scale = lcm(*(own.denominator for own in exact))
        return cls(tuple(weights), tuple(int(scale * own) for own in exact), scale)

    def require_columns(self, frame: pl.DataFrame, call: str) -> None:
        """Raise ``ColumnMissingError`` if a frame lacks a field."""
        for name in self.names:
            if name not in frame.columns:
                raise ColumnMissingError.for_name(name, frame.columns, call)

    def described(self) -> list[dict[str, Any]]:
        """Return the fields as JSON values."""
        return [
            {"name": name, "weight": weight / self.scale} for name, weight in zip(self.names, self.weights, strict=True)
        ]

    @classmethod
    def read(cls, described: Any) -> Fields:
        """Parse :meth:`described`; raises ``ValueError`` if it is invalid."""
        if not isinstance(described, list) or not all(isinstance(own, dict) for own in described):
            raise ValueError("its fields are no list of names and weights")
        try:
            found = cls.of({own.get("name"): own.get("weight") for own in described}, "load_index")
        except TypeError as error:
            raise ValueError(str(error)) from None
        if len(found.names) != len(described):
            raise ValueError("two of its fields have one name")
        return found


def term_in(field: str, word: str) -> str:
    """Return the term of a word in a field; in any field if its name is empty."""
    return f"{MARK}{field}{MARK}{word}" if field else word


def first_word(segment: Segment) -> int:
    """Return the number of the first term that is not of one field."""
    offsets, data = segment.terms.offsets, segment.terms.data

    def first_byte(number: int) -> bytes:
        return data[offsets[number] : min(offsets[number + 1], offsets[number] + 1)].tobytes()

    return bisect_left(range(len(segment.terms)), b"\1", key=first_byte)
