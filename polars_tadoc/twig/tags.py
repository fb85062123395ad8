"""Start tags as a parser reads them, many at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pyexpat import ExpatError, ParserCreate
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from polars_tadoc.kernels.twigs.arrays import CLOSE, OTHER
from polars_tadoc.runtime.array_types import Bools, UInt32
from polars_tadoc.twig.alphabet import Alphabet
from polars_tadoc.twig.prefixes import XML

_BATCH, _SMALL_BATCH = 512, 2
"""Tags that are parsed together; fewer where some were not well-formed, as the rest is parsed again then."""

_SEPARATOR = "\f"
"""Stands between namespace and name: no document can hold it."""

DECLARES = b"xmlns"
"""In a tag without it no namespace is declared."""

MAX_DECLARING = 1 << 14
"""Bytes of a tag that declares namespaces; a longer one is left to a parser: each of its names comes with its URI."""

_TRUE_HEAD, _SHORT_HEAD, _NO_HEAD = range(3)
"""What declares the namespaces around tags: their true ones, or what stands for these."""

_ELSEWHERE = ""
"""Stands for names in namespaces that are not declared around the tags: no name is empty."""


class Numbers(dict[Any, int]):
    """Gives each new key the next number."""

    def __missing__(self, key: Any) -> int:
        number = self[key] = len(self)
        return number


@dataclass(frozen=True, eq=False)
class Tags:
    """What tags say that open elements."""

    sound: Bools
    """bool by tag: whether it is well-formed, its prefixes declared. The others are by place among the sound ones."""
    elements: UInt32
    """uint32: number of the name."""
    declarations: dict[int, dict[str, str]]
    """Namespaces that a tag declares itself, by prefix ("" for the default one)."""
    attribute_tags: UInt32
    attribute_names: UInt32
    attribute_values: UInt32
    """``attribute_tags``, ``attribute_names``, ``attribute_values``: uint32 by attribute: place of its tag, number of
    its name, number of its name and value."""
    names: Numbers
    values: Numbers
    """``names``, ``values``: The numbers of names, and of names and values. A name is what stands for its namespace and
    the local name in one string; all names in namespaces that are declared by a tag itself, and not around it, are
    one."""
    stand_ins: dict[str, str]
    """What stands for each namespace in names: it may be long, and many names be in it."""

    @property
    def nbytes(self) -> int:
        """Bytes that it holds, about."""
        strings = sum(map(len, self.names)) + sum(len(value) for _, value in self.values)
        return (
            12 * len(self.attribute_tags) + 8 * len(self.sound) + 150 * (len(self.names) + len(self.values)) + strings
        )

    def symbols_of_elements(self, alphabet: Alphabet) -> UInt32:
        """Symbol of each name as an element's."""
        return _symbols(self.names, {self._name(*key): symbol for key, symbol in alphabet.elements.items()}, OTHER)

    def symbols_of_attributes(self, alphabet: Alphabet) -> UInt32:
        """Symbol of each name as an attribute's, ``CLOSE`` where no twig asks for it."""
        return _symbols(self.names, {self._name(*key): symbol for key, symbol in alphabet.attributes.items()}, CLOSE)

    def symbols_of_values(self, alphabet: Alphabet) -> UInt32:
        """Symbol of each name and value, ``CLOSE`` where no twig asks for them."""
        asked = {
            (self._name(uri, local), value): symbol for (uri, local, value), symbol in alphabet.attribute_values.items()
        }
        return _symbols(self.values, asked, CLOSE)

    def _name(self, namespace: str, local: str) -> str | None:
        """Return a name as it is numbered, None if none is in its namespace."""
        if not namespace:
            return local
        known = self.stand_ins.get(namespace)
        return None if known is None else f"{known}{_SEPARATOR}{local}"


def _symbols(numbers: Numbers, asked: Mapping[Any, int], otherwise: int) -> UInt32:
    symbols = np.full(len(numbers), otherwise, np.uint32)
    for key, symbol in asked.items():
        if key in numbers:
            symbols[numbers[key]] = symbol
    return symbols


@dataclass
class _Read:
    """What is read so far."""

    sound: list[bool] = field(default_factory=list)
    elements: list[int] = field(default_factory=list)
    declarations: dict[int, dict[str, str]] = field(default_factory=dict)
    attributes: list[int] = field(default_factory=list)
    """How many each sound tag has."""
    attribute_names: list[int] = field(default_factory=list)
    attribute_values: list[int] = field(default_factory=list)
    names: Numbers = field(default_factory=Numbers)
    values: Numbers = field(default_factory=Numbers)


def parse_tags(tags: Sequence[bytes], namespaces: Mapping[str, str]) -> Tags:
    """Parse tags that end where they look: at the first ``>`` outside of quotes, no ``<`` before it.

    Parameters
    ----------
    tags
        Each as written: ``<a b="c">`` or ``<a/>``.
    namespaces
        Those declared around them, by prefix ("" for the default one).

    """
    stand_ins = _stand_ins(namespaces)
    heads = _head(namespaces), _head({prefix: stand_ins.get(uri, "") for prefix, uri in namespaces.items()})
    read = _Read()
    size = _BATCH
    while len(read.sound) < len(tags):
        own, alike = next(groupby(tags[len(read.sound) : len(read.sound) + size], _head_of))
        batch = list(alike)
        if own == _NO_HEAD:
            read.sound += [False] * len(batch)
            continue
        sound = _parse(batch, heads[own], stand_ins if own == _TRUE_HEAD else None, read)
        read.sound += [True] * sound
        size = min(2 * size, _BATCH)
        if sound < len(batch):
            read.sound.append(False)
            size = _SMALL_BATCH
    return Tags(
        np.array(read.sound, np.bool_),
        np.array(read.elements, np.uint32),
        read.declarations,
        np.repeat(np.arange(len(read.elements), dtype=np.uint32), read.attributes),
        np.array(read.attribute_names, np.uint32),
        np.array(read.attribute_values, np.uint32),
        read.names,
        read.values,
        stand_ins,
    )


def _stand_ins(namespaces: Mapping[str, str]) -> dict[str, str]:
    """Give each namespace a short string; that of ``xml:`` is known to Expat, and stays."""
    uris = {uri for uri in namespaces.values() if uri and uri != XML}
    return {XML: XML} | {uri: str(number) for number, uri in enumerate(sorted(uris))}


def _head(namespaces: Mapping[str, str]) -> bytes:
    declared = [f" {f'xmlns:{prefix}' if prefix else 'xmlns'}={quoteattr(uri)}" for prefix, uri in namespaces.items()]
    return f"<r{''.join(declared)}>".encode()


def _head_of(tag: bytes) -> int:
    """Tell within which head a tag may be parsed: a namespace that it declares must be the true one."""
    if DECLARES not in tag:
        return _SHORT_HEAD
    return _TRUE_HEAD if len(tag) <= MAX_DECLARING else _NO_HEAD


def _parse(batch: Sequence[bytes], head: bytes, stand_ins: Mapping[str, str] | None, read: _Read) -> int:
    """Parse tags up to the first that is not well-formed; returns how many are before it.

    Where names come with true namespaces, these are replaced by what stands for them.
    """
    elements: list[str] = []
    attributes: list[int] = []
    written: list[str] = []
    declarations: dict[int, dict[str, str]] = {}

    given = stand_ins or {}

    def short(name: str) -> str:
        namespace, separator, local = name.rpartition(_SEPARATOR)
        if not separator:
            return name
        known = given.get(namespace)
        return _ELSEWHERE if known is None else f"{known}{_SEPARATOR}{local}"

    def start(name: str, names_and_values: list[str]) -> None:
        if stand_ins is not None:
            name = short(name)
            names_and_values[::2] = map(short, names_and_values[::2])
        elements.append(name)
        attributes.append(len(names_and_values) // 2)
        written.extend(names_and_values)

    def declare(prefix: str | None, uri: str | None) -> None:
        declarations.setdefault(len(elements), {})[prefix or ""] = uri or ""

    parser = ParserCreate("UTF-8", _SEPARATOR, None)  # which keeps no names itself
    parser.ordered_attributes = True
    parser.StartElementHandler = start
    parser.StartNamespaceDeclHandler = declare
    closed = b"".join([tag if tag[-2:] == b"/>" else tag[:-1] + b"/>" for tag in batch])
    sound = len(batch)
    try:
        parser.Parse(head + closed + b"</r>", True)
    except ExpatError:
        sound = min(sound, max(len(elements), 1)) - 1  # the first element is the one around them
    del elements[sound + 1 :], attributes[sound + 1 :]
    del written[2 * sum(attributes) :]
    before = len(read.elements) - 1
    names, values = read.names, read.values
    read.elements += [names[name] for name in elements[1:]]
    read.declarations |= {before + tag: own for tag, own in declarations.items() if 0 < tag <= sound}
    read.attributes += attributes[1:]
    read.attribute_names += [names[name] for name in written[::2]]
    read.attribute_values += [values[both] for both in zip(written[::2], written[1::2], strict=True)]
    return sound
