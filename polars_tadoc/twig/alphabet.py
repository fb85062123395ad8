"""Numbers for the names and values that a set of twigs asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from polars_tadoc.kernels.twigs import OTHER
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

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the version behind: in another process it may be another one's."""
        return Alphabet, (self.elements, self.attributes, self.attribute_values, self.texts, self.symbol_count)


class GrowingAlphabet:
    """An alphabet that changes; the symbols of what no twig asks for any more are given anew."""

    def __init__(self) -> None:
        self._now = Alphabet()
        self._keys: dict[int, tuple[dict[Any, int], Any]] = {}
        self._free: list[int] = []

    def add(self, test: NodeTest) -> int:
        """Return the symbol that passes a test, a new one where there is none; ``OTHER`` for any element."""
        if test.kind == "any":
            return OTHER
        table, key = self._place(test)
        symbol = table.get(key)
        if symbol is None:
            if self._free:
                symbol = self._free.pop()
            else:
                symbol = self._now.symbol_count
                self._now.symbol_count += 1
            table[key] = symbol
            self._keys[symbol] = table, key
        return symbol

    def remove(self, symbol: int) -> None:
        """Forget a symbol that no twig asks for any more."""
        table, key = self._keys.pop(symbol)
        del table[key]
        self._free.append(symbol)

    def is_element(self, symbol: int) -> bool:
        """Tell whether a symbol is one of elements."""
        return symbol == OTHER or self._keys[symbol][0] is self._now.elements

    @property
    def symbol_count(self) -> int:
        """No symbol is as high."""
        return self._now.symbol_count

    def copy(self) -> Alphabet:
        """Return the alphabet as it is now."""
        now = self._now
        return Alphabet(
            now.elements.copy(), now.attributes.copy(), now.attribute_values.copy(), now.texts.copy(), now.symbol_count
        )

    def _place(self, test: NodeTest) -> tuple[dict[Any, int], Any]:
        """Return the table that a test belongs to, and its key there."""
        if test.kind == "element":
            return self._now.elements, (test.uri, test.local)
        if test.kind == "text":
            return self._now.texts, test.value
        if test.value is None:
            return self._now.attributes, (test.uri, test.local)
        return self._now.attribute_values, (test.uri, test.local, test.value)
