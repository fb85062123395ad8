"""Numbers for the names and values that a set of twigs asks for."""

from __future__ import annotations

from itertools import count
from typing import Any

from polars_tadoc.kernels.twigs import OTHER
from polars_tadoc.twig.twig import Test

FIRST_SYMBOL = OTHER + 1
"""Below it are ``CLOSE`` and ``OTHER``."""

_versions = count(1)


class Alphabet:
    """The symbols of elements, attributes and texts; those of what no twig asks for any more are given anew.

    Attributes
    ----------
    elements, attributes
        Symbol by namespace ("" for none) and name.
    attribute_values
        Symbol by namespace, name and value.
    texts
        Symbol by text.
    symbol_count
        One more than the highest symbol so far.
    version
        Another one after each change; no two alphabets that differ have the same.

    """

    def __init__(self) -> None:
        self.elements: dict[tuple[str, str], int] = {}
        self.attributes: dict[tuple[str, str], int] = {}
        self.attribute_values: dict[tuple[str, str, str], int] = {}
        self.texts: dict[str, int] = {}
        self.symbol_count = FIRST_SYMBOL
        self.version = next(_versions)
        self._keys: dict[int, tuple[dict[Any, int], Any]] = {}
        self._free: list[int] = []

    def add(self, test: Test) -> int:
        """Return the symbol that passes a test, a new one where there is none; ``OTHER`` for any element."""
        if test.kind == "any":
            return OTHER
        table, key = self._key(test)
        symbol = table.get(key)
        if symbol is None:
            if self._free:
                symbol = self._free.pop()
            else:
                symbol = self.symbol_count
                self.symbol_count += 1
            table[key] = symbol
            self._keys[symbol] = table, key
            self.version = next(_versions)
        return symbol

    def remove(self, symbol: int) -> None:
        """Forget a symbol that no twig asks for any more; the next test that is new gets it."""
        table, key = self._keys.pop(symbol)
        del table[key]
        self._free.append(symbol)
        self.version = next(_versions)

    def is_element(self, symbol: int) -> bool:
        """Tell whether a symbol is one of elements."""
        return symbol == OTHER or self._keys[symbol][0] is self.elements

    def copy(self) -> Alphabet:
        """Return one that does not change with this one; it has the same version."""
        copied = Alphabet()
        copied.symbol_count, copied.version, copied._free = self.symbol_count, self.version, self._free.copy()
        for name in ("elements", "attributes", "attribute_values", "texts"):
            table: dict[Any, int] = getattr(self, name).copy()
            setattr(copied, name, table)
            copied._keys |= {symbol: (table, key) for key, symbol in table.items()}
        return copied

    def _key(self, test: Test) -> tuple[dict[Any, int], Any]:
        if test.kind == "element":
            return self.elements, (test.uri, test.local)
        if test.kind == "text":
            return self.texts, test.value
        if test.value is None:
            return self.attributes, (test.uri, test.local)
        return self.attribute_values, (test.uri, test.local, test.value)
