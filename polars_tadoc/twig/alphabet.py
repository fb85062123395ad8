"""Numbers for the names and values that a set of twigs asks for."""

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
"""Below it are ``CLOSE`` and ``OTHER``."""

_versions = count(1)


@dataclass(eq=False)
class Alphabet:
    """The symbols of elements, attributes and texts that twigs ask for."""

    elements: dict[tuple[str, str], int] = field(default_factory=dict)
    """By namespace ("" for none) and name."""
    attributes: dict[tuple[str, str], int] = field(default_factory=dict)
    """By namespace and name."""
    attribute_values: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """By namespace, name and value."""
    texts: dict[str, int] = field(default_factory=dict)
    symbol_count: int = FIRST_SYMBOL
    """No symbol is as high."""
    version: int = field(default_factory=lambda: next(_versions), init=False)
    """In a process, no two alphabets that differ have the same."""
    table: NameTable | None = None
    """The same names, to be looked up by kernels."""

    def names(self) -> Names:
        """Return the names as kernels look them up; kept."""
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
        """Leave the version behind: in another process it may be another one's."""
        return Alphabet, (self.elements, self.attributes, self.attribute_values, self.texts, self.symbol_count)


class GrowingAlphabet:
    """An alphabet that changes; the symbols of what no twig asks for any more are given anew.

    What :meth:`now` returns shares its tables with this one. They are copied by the first change that finds it in use.
    """

    def __init__(self) -> None:
        self._own = Alphabet()
        self._table = NameTable()
        self._keys: dict[int, NodeTest] = {}
        self._free: list[int] = []
        self._shared: ReferenceType[Alphabet] | None = None

    def add(self, test: NodeTest) -> int:
        """Return the symbol that passes a test, a new one where there is none; ``OTHER`` for any element."""
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
        """Forget a symbol that no twig asks for any more."""
        self._part()
        table, key, put = self._place(self._keys.pop(symbol))
        del table[key]
        put(key, 0)
        self._free.append(symbol)

    def is_element(self, symbol: int) -> bool:
        """Tell whether a symbol is one of elements."""
        return symbol == OTHER or self._keys[symbol].kind == "element"

    @property
    def symbol_count(self) -> int:
        """No symbol is as high."""
        return self._own.symbol_count

    def now(self) -> Alphabet:
        """Return the alphabet as it is now; it does not change any more."""
        found = None if self._shared is None else self._shared()
        if found is None:
            own = self._own
            found = Alphabet(own.elements, own.attributes, own.attribute_values, own.texts, own.symbol_count)
            found.table = self._table
            self._shared = ref(found)
        return found

    def _part(self) -> None:
        """Copy what is shared with an alphabet that is still in use."""
        shared, self._shared = self._shared, None
        if shared is not None and shared() is not None:
            own = self._own
            own.elements, own.attributes = own.elements.copy(), own.attributes.copy()
            own.attribute_values, own.texts = own.attribute_values.copy(), own.texts.copy()
            self._table = self._table.copy()

    def _place(self, test: NodeTest) -> tuple[dict[Any, int], Any, Callable[[Any, int], None]]:
        """Return the table that a test belongs to, its key there, and what tells the kernels' table."""
        own = self._own
        if test.kind == "element":
            return own.elements, (test.uri, test.local), self._table.put_element
        if test.kind == "text":
            return own.texts, test.value, self._table.put_text
        if test.value is None:
            return own.attributes, (test.uri, test.local), self._table.put_attribute
        return own.attribute_values, (test.uri, test.local, test.value), self._table.put_value
