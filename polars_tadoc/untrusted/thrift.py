"""Thrift's compact protocol, which encodes Parquet's metadata.

Format: Apache Thrift, ``thrift-compact-protocol.md``.
"""

from __future__ import annotations

from typing import Any

DEEPEST = 20
"""Maximum nesting of structures."""


class MalformedError(ValueError):
    """Metadata of a file or a page that no reader can decode."""


class List(list[Any]):
    """The elements of a list, and their declared type."""

    def __init__(self, kind: int) -> None:
        super().__init__()
        self.kind = kind


class Thrift:
    """Parses structures.

    Parameters
    ----------
    data
        The bytes; ``IndexError`` is raised if they end within a structure.

    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    def structure(self, at: int, depth: int) -> tuple[dict[int, Any], int]:
        """Parse a structure to integers, Booleans, bytes, lists and structures by field number; also return its end.

        Raises on anything that readers may interpret differently: duplicate fields, numbers out of range.
        """
        fields: dict[int, Any] = {}
        number = 0
        while True:
            head = self._data[at]
            at += 1
            if head == 0:
                return fields, at
            number += head >> 4
            if head < 16:
                number, at = self._whole(at)
            if number in fields or not 0 < number < 1 << 15:
                raise MalformedError("not a Thrift structure")
            kind = head & 15
            fields[number], at = (kind == 1, at) if kind in (1, 2) else self._value(kind, at, depth)

    def _value(self, kind: int, at: int, depth: int) -> tuple[Any, int]:
        if depth > DEEPEST:
            raise MalformedError("structures are nested too deeply")
        if kind in (1, 2, 3):
            return None, at + 1
        if kind in (4, 5, 6):
            return self._whole(at)
        if kind == 7:
            return None, at + 8
        if kind == 8:
            size, at = self._varint(at)
            return self._data[at : at + size], at + size
        if kind in (9, 10):
            return self._list(at, depth)
        if kind == 12:
            return self.structure(at, depth + 1)
        raise MalformedError("not a Thrift structure")

    def _list(self, at: int, depth: int) -> tuple[List, int]:
        head = self._data[at]
        size, at = (head >> 4, at + 1) if head < 0xF0 else self._varint(at + 1)
        found = List(head & 15)
        for _ in range(size):
            value, at = self._value(head & 15, at, depth + 1)
            self._data[at - 1]  # so that a list with more elements than bytes raises here
            found.append(value)
        return found, at

    def _whole(self, at: int) -> tuple[int, int]:
        number, at = self._varint(at)
        return (number >> 1) ^ -(number & 1), at

    def _varint(self, at: int) -> tuple[int, int]:
        number = 0
        for shift in range(0, 70, 7):
            byte = self._data[at]
            at += 1
            number |= (byte & 127) << shift
            if byte < 128:
                return number, at
        raise MalformedError("not a Thrift structure")
