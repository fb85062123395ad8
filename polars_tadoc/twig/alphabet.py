"""Symbols (numbers) of the names and values that a set of twigs uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from weakref import ReferenceType, ref

from polars_tadoc.kernels.twigs.arrays import OTHER
from polars_tadoc.twig.name_table import Names, NameTable
from polars_tadoc.twig.twig import NodeTest

FIRST_SYMBOL = OTHER + 1
"""Lower numbers are ``CLOSE`` and ``OTHER``."""

_versions = count(1)


@dataclass(eq=False)
class Alphabet:
    """The symbols of elements, attributes and texts that twigs use."""

    elements: dict[tuple[str, str], int] = field(default_factory=dict)
    """By namespace ("" for none) and name."""
    attributes: dict[tuple[str, str], int] = field(default_factory=dict)
    """By namespace and name."""
    attribute_values: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """By namespace, name and value."""
    texts: dict[str, int] = field(default_factory=dict)
    symbol_count: int = FIRST_SYMBOL
    """Upper bound, exclusive, of the symbols."""
    version: int = field(default_factory=lambda: next(_versions), init=False)
    """Unique within a process: two different alphabets never share a version."""
    table: NameTable | None = None
    """The same names in a hash table for kernels."""

    def names(self) -> Names:
        """Return the hash table of names for kernels; cached."""
        if self.table is None:
            table = NameTable()
            for key, symbol in self.elements.items():
                table.put_element(key, symbol)
            for key, symbol in self.attributes.items():
                table.put_attribute(key, symbol)
            for value, symbol in self.attribute_values.items():
                table.put_value(value, symbol)
            for text, symbol in self.texts.items():
                table.put_text(text, symbol)
            self.table = table
        return self.table.names()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the version, which is unique only within its process."""
        return Alphabet, (self.elements, self.attributes, self.attribute_values, self.texts, self.symbol_count)


class GrowingAlphabet:
    """A mutable alphabet; symbols that no twig uses any more are reused.

    The alphabets that :meth:`now` returns share its tables. The first change after it copies tables that are in use.
    """

    def __init__(self) -> None:
        self._own = Alphabet()
        self._table = NameTable()
        self._keys: dict[int, NodeTest] = {}
        self._free: list[int] = []
        self._shared: ReferenceType[Alphabet] | None = None

    def add(self, test: NodeTest) -> int:
        """Return the symbol of a test, a new one if there is none; ``OTHER`` for any element."""
        if test.kind == "any":
            return OTHER
        table, key, _ = self._place(test)
        symbol = table.get(key)
        if symbol is None:
            self._part()
            if self._free:
                symbol = self._free.pop()
            else:
                symbol = self._own.symbol_count
                self._own.symbol_count += 1
            table, key, put = self._place(test)
            table[key] = symbol
            put(key, symbol)
            self._keys[symbol] = test
        return symbol

    def remove(self, symbol: int) -> None:
        """Free a symbol that no twig uses any more."""
        self._part()
        table, key, put = self._place(self._keys.pop(symbol))
        del table[key]
        put(key, 0)
        self._free.append(symbol)

    def is_element(self, symbol: int) -> bool:
        """Tell whether a symbol is the symbol of an element."""
        return symbol == OTHER or self._keys[symbol].kind == "element"

    @property
    def symbol_count(self) -> int:
        """Upper bound, exclusive, of the symbols."""
        return self._own.symbol_count

    def now(self) -> Alphabet:
        """Return the current alphabet as an immutable object."""
        found = None if self._shared is None else self._shared()
        if found is None:
            own = self._own
            found = Alphabet(own.elements, own.attributes, own.attribute_values, own.texts, own.symbol_count)
            found.table = self._table
            self._shared = ref(found)
        return found

    def _part(self) -> None:
        """Copy the tables if an alphabet in use shares them."""
        shared, self._shared = self._shared, None
        if shared is not None and shared() is not None:
            own = self._own
            own.elements, own.attributes = own.elements.copy(), own.attributes.copy()
            own.attribute_values, own.texts = own.attribute_values.copy(), own.texts.copy()
            self._table = self._table.copy()

    def _place(self, test: NodeTest) -> tuple[dict[Any, int], Any, Callable[[Any, int], None]]:
        """Return the table of a test's kind, its key there, and the function that updates the kernels' table."""
        own = self._own
        if test.kind == "element":
            return own.elements, (test.uri, test.local), self._table.put_element
        if test.kind == "text":
            return own.texts, test.value, self._table.put_text
        if test.value is None:
            return own.attributes, (test.uri, test.local), self._table.put_attribute
        return own.attribute_values, (test.uri, test.local, test.value), self._table.put_value
