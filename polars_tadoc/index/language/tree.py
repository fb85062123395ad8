"""The syntax tree of a query, as typed: words are not analysed, and no index is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Word:
    """Text without syntax; a tokenizer may cut it into several words, or none."""

    text: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """A word with wildcards: ``*`` is any characters, ``?`` one."""

    text: str


@dataclass(frozen=True, slots=True)
class Fuzzy:
    """Words of a spelling like this one."""

    text: str
    edits: int | None
    """Characters inserted, deleted, replaced or swapped with their neighbour at most; None: by the word's length."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """Consecutive words; with ``slop``, words may be moved by that many positions in total."""

    text: str
    slop: int = 0


@dataclass(frozen=True, slots=True)
class Near:
    """Words in any order, of which no two are more than ``distance`` positions apart."""

    words: tuple[str, ...]
    distance: int


@dataclass(frozen=True, slots=True)
class Range:
    """Values of a field between two bounds; an empty bound is open."""

    low: str
    high: str
    takes_low: bool
    takes_high: bool
    text: str
    """As typed."""


@dataclass(frozen=True, slots=True)
class Field:
    """Part of a query that is about one field."""

    name: str
    node: Node


@dataclass(frozen=True, slots=True)
class Boost:
    """Part of a query whose score counts ``factor`` times."""

    node: Node
    factor: float


@dataclass(frozen=True, slots=True)
class Not:
    """Documents that don't match."""

    node: Node


@dataclass(frozen=True, slots=True)
class And:
    """Documents that match all parts."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Documents that match any part."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts side by side, each required ("+"), excluded ("-"), or joined by the mode of the search ("")."""

    clauses: tuple[tuple[Modifier, Node], ...]


Modifier = Literal["", "+", "-"]
Node = Word | Pattern | Fuzzy | Phrase | Near | Range | Field | Boost | Not | And | Or | Sequence
