"""Evaluates an analysed query on the documents of a segment, as sets of document numbers.

Engines search lists joined by "any" or "all". Any other query becomes one of the first kind: the list of each word is
cut down to the documents in which the parts of the query around the word match, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from polars_tadoc.runtime.array_types import Bools, UInt32

DENSE = 16
"""A set is looked up in another one by a bitmap unless it has this many times fewer documents."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A word, a phrase or words near each other, by number."""

    item: int
    factor: float


@dataclass(frozen=True, slots=True)
class Mask:
    """Documents chosen by their metadata; adds nothing to scores."""

    number: int


@dataclass(frozen=True, slots=True)
class Except:
    """Documents that don't match; adds nothing to scores."""

    node: Resolved


@dataclass(frozen=True, slots=True)
class All:
    """Documents that match all of ``required``, with the scores of ``optional`` parts where these match."""

    required: tuple[Resolved, ...]
    optional: tuple[Resolved, ...] = ()


@dataclass(frozen=True, slots=True)
class Some:
    """Documents that match any part."""

    nodes: tuple[Resolved, ...]


Resolved = Leaf | Mask | Except | All | Some


class Documents(NamedTuple):
    """A set of documents of a segment."""

    numbers: UInt32
    """uint32, ascending."""
    is_complement: bool = False
    """Whether the set has all documents but these."""


def leaves(node: Resolved) -> list[Leaf] | None:
    """Return the leaves of a query that any engine can search as it is: "any" or "all" of some; None for others."""
    parts = (node,) if isinstance(node, Leaf) else node.nodes if isinstance(node, Some) else ()
    if isinstance(node, All) and not node.optional:
        parts = node.required
    found = [part for part in parts if isinstance(part, Leaf)]
    return found if found and len(found) == len(parts) else None


def has_unscored(node: Resolved) -> bool:
    """Tell whether documents may match without any of the query's words."""
    if isinstance(node, All):
        return all(map(has_unscored, node.required))
    return any(map(has_unscored, node.nodes)) if isinstance(node, Some) else not isinstance(node, Leaf)


def scored(node: Resolved, within: tuple[int, ...] = ()) -> Iterator[tuple[Leaf, tuple[int, ...]]]:
    """Yield the leaves that add to scores, in order, each with a key of the parts that must match for it to count."""
    if isinstance(node, Leaf):
        yield node, within
    elif isinstance(node, Some):
        for part in node.nodes:
            yield from scored(part, within)
    elif isinstance(node, All):
        for part in (*node.required, *node.optional):
            yield from scored(part, (*within, id(node)))


class Evaluation:
    """A query evaluated on one segment.

    Parameters
    ----------
    size
        Number of documents of the segment.
    documents_of
        Returns the documents of an item, uint32, ascending.
    masks
        Documents of each mask.

    """

    def __init__(self, size: int, documents_of: Callable[[int], UInt32], masks: list[UInt32]) -> None:
        self._size, self._documents_of, self._masks = size, documents_of, masks
        self._found: dict[int, Documents] = {}
        self._inside: dict[tuple[int, ...], Bools | None] = {}

    def matches(self, node: Resolved) -> Documents:
        """Return the documents that match."""
        found = self._found.get(id(node))
        if found is None:
            found = self._found[id(node)] = self._match(node)
        return found

    def _match(self, node: Resolved) -> Documents:
        if isinstance(node, Leaf):
            return Documents(self._documents_of(node.item))
        if isinstance(node, Mask):
            return Documents(self._masks[node.number])
        if isinstance(node, Except):
            numbers, is_complement = self.matches(node.node)
            return Documents(numbers, not is_complement)
        parts = [self.matches(part) for part in (node.required if isinstance(node, All) else node.nodes)]
        if isinstance(node, Some):  # De Morgan
            parts = [Documents(own, not is_complement) for own, is_complement in parts]
        numbers, is_complement = self._intersect(parts)
        return Documents(numbers, is_complement != isinstance(node, Some))

    def _intersect(self, parts: list[Documents]) -> Documents:
        inside = sorted({id(own): own for own, is_complement in parts if not is_complement}.values(), key=len)
        outside = [*{id(own): own for own, is_complement in parts if is_complement}.values()]
        if not inside:
            return Documents(self._unite(outside), True)
        found = inside[0]
        for other in inside[1:]:
            found = found[self._is_in(found, other)]
        for other in outside:
            found = found[~self._is_in(found, other)]
        return Documents(found)

    def _unite(self, sets: list[UInt32]) -> UInt32:
        if len(sets) == 1:
            return sets[0]
        if DENSE * sum(map(len, sets)) < self._size:
            return np.unique(np.concatenate([_NONE, *sets]))
        marks = np.zeros(self._size, np.bool_)
        for own in sets:
            marks[own] = True
        return marks.nonzero()[0].astype(np.uint32)

    def _is_in(self, numbers: UInt32, others: UInt32) -> Bools:
        if not len(others):
            return np.zeros(len(numbers), np.bool_)
        if DENSE * len(numbers) < self._size:
            at = others.searchsorted(numbers)
            at[at == len(others)] = 0
            return np.equal(others[at], numbers)
        marks = np.zeros(self._size, np.bool_)
        marks[others] = True
        return marks[numbers]

    def numbers(self, found: Documents) -> UInt32:
        """Return the documents of a set, uint32, ascending."""
        if not found.is_complement:
            return found.numbers
        marks = np.ones(self._size, np.bool_)
        marks[found.numbers] = False
        return marks.nonzero()[0].astype(np.uint32)

    def counted(self, node: Resolved) -> Iterator[Bools | None]:
        """Yield for each of :func:`scored` which of its item's documents count; None for all."""
        yield from self._counted(node, [])

    def _counted(self, node: Resolved, around: list[Documents]) -> Iterator[Bools | None]:
        if isinstance(node, Leaf):
            key = node.item, *(id(numbers) for numbers, _ in around)  # a query may repeat a word many times
            if key not in self._inside:
                own, kept = self._documents_of(node.item), None
                for numbers, is_complement in around:
                    inside = self._is_in(own, numbers) != is_complement
                    kept = inside if kept is None else kept & inside
                self._inside[key] = kept
            yield self._inside[key]
        elif isinstance(node, Some):
            for part in node.nodes:
                yield from self._counted(part, around)
        elif isinstance(node, All):
            for part in (*node.required, *node.optional):
                yield from self._counted(part, [*around, self.matches(node)])


_NONE = np.zeros(0, np.uint32)
