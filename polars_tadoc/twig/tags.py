"""Parses start tags with Expat, many per call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pyexpat import ExpatError, ParserCreate
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from polars_tadoc.kernels.twigs.arrays import CLOSE, OTHER
from polars_tadoc.runtime.array_types import Bools, UInt32, array_dataclass
from polars_tadoc.twig.alphabet import Alphabet
from polars_tadoc.twig.prefixes import XML

_BATCH, _SMALL_BATCH = 512, 2
"""Tags per call of the parser; after a malformed tag, the rest is parsed by another call."""

_SEPARATOR = "\f"
"""Separator of namespace and name; XML does not allow this character."""

DECLARES = b"xmlns"
"""A tag without it declares no namespace."""

MAX_DECLARING = 1 << 14
"""Maximum bytes of a tag that declares namespaces; a longer one is left to the parser of documents, as each of its
names would come with its URI."""

_TRUE_HEAD, _SHORT_HEAD, _NO_HEAD = range(3)
"""The element around the tags declares the namespaces: real URIs, or short stand-ins."""

_ELSEWHERE = ""
"""Replaces names whose namespace is not declared around the tags; no name is empty."""


class Numbers(dict[Any, int]):
    """Maps keys to consecutive numbers; a new key gets the next one."""

    def __missing__(self, key: Any) -> int:
        number = self[key] = len(self)
        return number


@array_dataclass
class Tags:
    """The content of start tags."""

    sound: Bools
    """bool by tag: well-formed and all prefixes declared. All other arrays have one entry per sound tag or
    attribute."""
    elements: UInt32
    """uint32: number of the name."""
    declarations: dict[int, dict[str, str]]
    """Namespaces that a tag declares itself, by prefix ("" for the default namespace)."""
    attribute_tags: UInt32
    attribute_names: UInt32
    attribute_values: UInt32
    """``attribute_tags``, ``attribute_names``, ``attribute_values``: uint32 by attribute: place of its tag, number of
    its name, number of its name and value."""
    names: Numbers
    values: Numbers
    """``names``, ``values``: Numbers of names, and of (name, value) pairs. A name is its namespace's stand-in, a
    separator and the local name. Names in namespaces that only the tag declares share one number."""
    stand_ins: dict[str, str]
    """A short stand-in for each namespace: URIs may be long, and many names repeat them."""

    @property
    def nbytes(self) -> int:
        """Approximate memory in bytes."""
        strings = sum(map(len, self.names)) + sum(len(value) for _, value in self.values)
        return (
            12 * len(self.attribute_tags) + 8 * len(self.sound) + 150 * (len(self.names) + len(self.values)) + strings
        )

    def symbols_of_elements(self, alphabet: Alphabet) -> UInt32:
        """Return the symbol of each name as an element."""
        return _symbols(self.names, {self._name(*key): symbol for key, symbol in alphabet.elements.items()}, OTHER)

    def symbols_of_attributes(self, alphabet: Alphabet) -> UInt32:
        """Return the symbol of each name as an attribute, ``CLOSE`` if no twig uses it."""
        return _symbols(self.names, {self._name(*key): symbol for key, symbol in alphabet.attributes.items()}, CLOSE)

    def symbols_of_values(self, alphabet: Alphabet) -> UInt32:
        """Return the symbol of each (name, value) pair, ``CLOSE`` if no twig uses it."""
        asked = {
            (self._name(uri, local), value): symbol for (uri, local, value), symbol in alphabet.attribute_values.items()
        }
        return _symbols(self.values, asked, CLOSE)

    def _name(self, namespace: str, local: str) -> str | None:
        """Return a name as a key of ``names``; None if no name is in its namespace."""
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
    """Accumulates parsed tags."""

    sound: list[bool] = field(default_factory=list)
    elements: list[int] = field(default_factory=list)
    declarations: dict[int, dict[str, str]] = field(default_factory=dict)
    attributes: list[int] = field(default_factory=list)
    """Number of attributes of each sound tag."""
    attribute_names: list[int] = field(default_factory=list)
    attribute_values: list[int] = field(default_factory=list)
    names: Numbers = field(default_factory=Numbers)
    values: Numbers = field(default_factory=Numbers)


def parse_tags(tags: Sequence[bytes], namespaces: Mapping[str, str]) -> Tags:
    """Parse tags that end at the first ``>`` outside of quotes and have no ``<`` before it.

    Parameters
    ----------
    tags
        As in the document: ``<a b="c">`` or ``<a/>``.
    namespaces
        Those declared around them, by prefix ("" for the default namespace).

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
    """Give each namespace a short stand-in; ``xml:`` keeps its own, which Expat knows."""
    uris = {uri for uri in namespaces.values() if uri and uri != XML}
    return {XML: XML} | {uri: str(number) for number, uri in enumerate(sorted(uris))}


def _head(namespaces: Mapping[str, str]) -> bytes:
    declared = [f" {f'xmlns:{prefix}' if prefix else 'xmlns'}={quoteattr(uri)}" for prefix, uri in namespaces.items()]
    return f"<r{''.join(declared)}>".encode()


def _head_of(tag: bytes) -> int:
    """Return the enclosing element to parse a tag in: a namespace that the tag declares must appear as its real URI."""
    if DECLARES not in tag:
        return _SHORT_HEAD
    return _TRUE_HEAD if len(tag) <= MAX_DECLARING else _NO_HEAD


def _parse(batch: Sequence[bytes], head: bytes, stand_ins: Mapping[str, str] | None, read: _Read) -> int:
    """Parse tags up to the first malformed one; return how many precede it.

    Real URIs in names are replaced by their stand-ins.
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

    parser = ParserCreate("UTF-8", _SEPARATOR, None)  # the parser itself interns no names
    parser.ordered_attributes = True
    parser.StartElementHandler = start
    parser.StartNamespaceDeclHandler = declare
    closed = b"".join([tag if tag[-2:] == b"/>" else tag[:-1] + b"/>" for tag in batch])
    sound = len(batch)
    try:
        parser.Parse(head + closed + b"</r>", True)
    except ExpatError:
        sound = min(sound, max(len(elements), 1)) - 1  # the first element is the enclosing one
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
