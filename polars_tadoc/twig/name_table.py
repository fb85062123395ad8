"""A mutable hash table, for kernels, of the names and values that twigs use."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from polars_tadoc.kernels.host.xml.xml_names import (
    ATTRIBUTES,
    ELEMENTS,
    ENTRY,
    TEXTS,
    VALUES,
    count_names,
    move_names,
    put_names,
)
from polars_tadoc.runtime.array_types import UInt8, UInt64
from polars_tadoc.twig.expat import SEPARATOR


class Names(NamedTuple):
    """A snapshot of the table; valid while its alphabet is in use."""

    table: UInt64
    keys: tuple[UInt8, ...]
    """Bytes of the keys that the table refers to."""
    has_attributes: bool
    most_text: int
    """Bytes of the longest text."""
    longest: int
    """Bytes of the longest key of any kind."""


class _Attribute:
    """Symbols of an attribute and its values."""

    __slots__ = ("number", "symbol", "values")

    def __init__(self) -> None:
        self.symbol = 0
        self.number = 0
        """Number that is part of the keys of its values; 0 if no value has a symbol."""
        self.values = 0


class NameTable:
    """A growable hash table of names; changes are queued and applied when the table is read.

    If new keys do not fit, the table is rebuilt without the deleted ones.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._table = np.zeros(ENTRY, np.uint64)
        self._entries = 0  # including deleted ones
        self._keys: tuple[UInt8, ...] = (np.zeros(0, np.uint8),)
        self._used = 0  # bytes used in the last array of keys
        self._waiting: dict[tuple[int, str], int] = {}
        self._attributes: dict[tuple[str, str], _Attribute] = {}
        self._has_attributes = False
        self._most_number = 0
        self._free_numbers: list[int] = []
        self._most_text = self._longest = 0

    def put_element(self, key: tuple[str, str], symbol: int) -> None:
        """Set the symbol of an element, by namespace and name; 0 deletes it."""
        self._put(ELEMENTS, _joined(*key), symbol)

    def put_text(self, text: str, symbol: int) -> None:
        """Set the symbol of a text; 0 deletes it."""
        self._put(TEXTS, text, symbol)

    def put_attribute(self, key: tuple[str, str], symbol: int) -> None:
        """Set the symbol of an attribute, by namespace and name; 0 deletes it."""
        attribute = self._attributes.setdefault(key, _Attribute())
        attribute.symbol = symbol
        self._put_attribute(key, attribute)

    def put_value(self, key: tuple[str, str, str], symbol: int) -> None:
        """Set the symbol of an attribute's value, by namespace, name and value; 0 deletes it."""
        name, value = key[:2], key[2]
        attribute = self._attributes.setdefault(name, _Attribute())
        if not attribute.values:
            if self._free_numbers:
                attribute.number = self._free_numbers.pop()
            else:
                attribute.number = self._most_number = self._most_number + 1
            self._put_attribute(name, attribute)
        self._put(VALUES + attribute.number, value, symbol)
        attribute.values += 1 if symbol else -1
        if not attribute.values:
            self._free_numbers.append(attribute.number)
            attribute.number = 0
            self._put_attribute(name, attribute)

    def names(self) -> Names:
        """Apply queued changes and return the table."""
        with self._lock:
            if self._waiting:
                self._write()
            return Names(self._table, self._keys, self._has_attributes, self._most_text, self._longest)

    def copy(self) -> NameTable:
        """Return a table that may change while this one is read; this one must not change any more."""
        with self._lock:
            other = NameTable()
            other._table, other._entries = self._table.copy(), self._entries
            other._keys = (*self._keys, other._keys[0])  # never written again
            other._waiting = self._waiting.copy()
            other._attributes, other._has_attributes = self._attributes, self._has_attributes  # only read by changes
            other._most_number, other._free_numbers = self._most_number, self._free_numbers
            other._most_text, other._longest = self._most_text, self._longest
            return other

    def _put_attribute(self, key: tuple[str, str], attribute: _Attribute) -> None:
        self._put(ATTRIBUTES, _joined(*key), attribute.symbol | attribute.number << 32)
        if not attribute.symbol and not attribute.number:
            del self._attributes[key]
        self._has_attributes = bool(self._attributes)

    def _put(self, scope: int, text: str, meaning: int) -> None:
        if "\0" not in text:  # XML does not allow NUL, and keys end with it
            self._waiting[scope, text] = meaning

    def _write(self) -> None:
        texts = [text.encode("utf-8", "surrogatepass") for _, text in self._waiting]
        scopes = np.fromiter((scope for scope, _ in self._waiting), np.uint64, len(texts))
        meanings = np.fromiter(self._waiting.values(), np.uint64, len(texts))
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        data = np.frombuffer(b"\0".join([*texts, b""]), np.uint8)
        starts = np.cumsum(lengths + 1) - lengths - 1
        self._most_text = max(self._most_text, int(lengths[scopes == TEXTS].max(initial=0)))
        self._longest = max(self._longest, int(lengths.max(initial=0)))
        self._make_room(len(texts), len(data))
        addresses = np.uint64(data.ctypes.data) + starts.astype(np.uint64)
        new, self._used = put_names(addresses, scopes, meanings, self._table, self._keys[-1], self._used)
        self._entries += new
        self._waiting = {}

    def _make_room(self, count: int, size: int) -> None:
        """Make room for ``count`` more keys of ``size`` bytes in all."""
        if 2 * ENTRY * (self._entries + count) >= len(self._table):
            self._entries, kept = count_names(self._table)
            table = np.zeros(ENTRY << (4 * (self._entries + count)).bit_length(), np.uint64)
            keys = np.empty(2 * (kept + size), np.uint8)
            self._used = move_names(self._table, table, keys)
            self._table, self._keys = table, (keys,)
        elif self._used + size > len(self._keys[-1]):
            self._keys = (*self._keys, np.empty(max(2 * size, self._used), np.uint8))
            self._used = 0


def _joined(uri: str, local: str) -> str:
    return f"{uri}{SEPARATOR}{local}" if uri else local
