"""Makes lists of queries with syntax: their words, expanded and counted, joined by "any" or "all" for the engine."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from polars_tadoc.index.collection import Collection
from polars_tadoc.index.fields import term_in
from polars_tadoc.index.language import tree as syntax
from polars_tadoc.index.language.evaluate import (
    All,
    Evaluation,
    Except,
    Leaf,
    Mask,
    Resolved,
    Some,
    has_unscored,
    leaves,
    scored,
)
from polars_tadoc.index.query.analyzer import QueryWords
from polars_tadoc.index.query.conditions import Conditions, fields_at_leaves
from polars_tadoc.index.query.expand import alike, image_of, matching
from polars_tadoc.index.query.phrases import Unit, joined_lists, phrase_lists
from polars_tadoc.kernels.host.rows.query_words import UNKNOWN
from polars_tadoc.kernels.postings.coded import Lists
from polars_tadoc.kernels.postings.decode_cpu import decode_lists
from polars_tadoc.runtime.array_types import Bools, Float64, Int64, UInt32

BY_MODE, ANY, ALL = -1, 0, 1
"""How the lists of a query are joined: as the search's mode says, or in this way."""

MAX_SLOPPY = 64
"""Maximum words of a phrase with ``~``; longer phrases are exact."""

MAX_FACTOR = 1e6
"""Weights are multiplied by this at most."""


@dataclass(eq=False)
class Entries:
    """Queries with syntax as entries: words and phrases, by number, whose lists are joined by "any" or "all"."""

    units: list[Unit]
    """By number: a word or a phrase; one without words adds documents without a score."""
    frequencies: Int64
    """int64 by unit: number of documents that contain it."""
    numbers: list[Int64]
    """By segment, int64 by unit: number of its list, negative if the segment has none."""
    extra: list[Lists | None]
    """By segment: lists made for this batch."""
    joins: dict[int, int]
    """By query: ``ANY`` or ``ALL``."""
    owners: Int64
    items: Int64
    factors: Float64
    """``owners``, ``items``, ``factors``: by entry its query, ascending, its unit, and the factor of its weight. A
    query's entries are in the order of other queries': those with the fewest documents first, then by words, words
    before phrases."""


def entries_of(index: Collection, trees: dict[int, syntax.Node], mode: str, call: str) -> Entries:
    """Find the lists of trees, given by query, ascending."""
    resolver = Resolver(index, trees, mode)
    nodes = {query: resolver.resolve(tree) for query, tree in resolver.trees.items()}
    found = _Lists(index, list(resolver.units), resolver.conditions.masks, call)
    joins: dict[int, int] = {}
    rows: list[tuple[int, int, float]] = []
    for query, node in nodes.items():
        parts = [] if node is None else leaves(node)
        joins[query] = ALL if parts is not None and isinstance(node, All) else ANY
        own = found.cut(node) if node and parts is None else _sums((one.item, one.factor) for one in parts or ())
        rows += [(query, item, factor) for item, factor in own.items()]
    rows.sort(key=lambda row: (row[0], found.frequencies[row[1]], found.ranked(row[1])))
    owners, items, factors = (np.array(own) for own in zip(*rows, strict=True)) if rows else _NO_ROWS
    frequencies = np.array(found.frequencies, np.int64)
    return Entries(found.units, frequencies, *found.joined(), joins, owners, items, factors)


def _sums(parts: Iterable[tuple[Any, float]]) -> dict[Any, float]:
    found: dict[Any, float] = {}
    for key, factor in parts:
        found[key] = found.get(key, 0.0) + factor
    return found


class Resolver:
    """Analyses the words of trees and numbers what they search for."""

    def __init__(self, index: Collection, trees: dict[int, syntax.Node], mode: str) -> None:
        self._index, self._requires = index, mode == "and"
        self.conditions = Conditions(index.stored.metadata)
        self.trees = {query: fields_at_leaves(tree) for query, tree in trees.items()}
        self.units: dict[Unit, int] = {}
        self._replaced: dict[tuple[syntax.Pattern | syntax.Fuzzy, float, str], Resolved] = {}
        texts = list(dict.fromkeys(text for tree in self.trees.values() for text in self._texts(tree)))
        analyzed = index.analyzer.analyze(texts)
        strings, numbers, offsets = analyzed.strings(), analyzed.words.tolist(), analyzed.offsets.tolist()
        self._words = {
            text: tuple(strings[number] for number in numbers[first:stop])
            for text, (first, stop) in zip(texts, itertools.pairwise(offsets), strict=True)
        }

    def _texts(self, node: syntax.Node) -> list[str]:
        """Return the texts to analyse."""
        if isinstance(node, syntax.Near):
            return [*node.words]
        if isinstance(node, syntax.Field):
            if self._is_text(node.name):
                return self._texts(node.node)
            return [] if self.conditions.number(node.name, node.node) is not None else [_typed(node)]
        if isinstance(node, syntax.Boost | syntax.Not):
            return self._texts(node.node)
        if isinstance(node, syntax.And | syntax.Or):
            return [text for part in node.nodes for text in self._texts(part)]
        if isinstance(node, syntax.Sequence):
            return [text for _, part in node.clauses for text in self._texts(part)]
        return [] if isinstance(node, syntax.Pattern) else [node.text]

    def _is_text(self, name: str) -> bool:
        """Tell whether a field is one of the text columns."""
        return self._index.fields is not None and name in self._index.fields.names

    def resolve(
        self, node: syntax.Node, factor: float = 1.0, is_loose: bool = True, field: str = ""
    ) -> Resolved | None:
        """Analyse a part of a query; None if nothing is left of it.

        A part that ``is_loose`` is no operand: where it is cut into several words, these are joined as the mode says.
        Words are those of one ``field``, or of any.
        """
        if isinstance(node, syntax.Boost):
            return self.resolve(node.node, min(factor * node.factor, MAX_FACTOR), is_loose)
        if isinstance(node, syntax.Not):
            return _except(self.resolve(node.node, factor, False))
        if isinstance(node, syntax.And):
            return _all([self.resolve(part, factor, False) for part in node.nodes])
        if isinstance(node, syntax.Or):
            return _some([self.resolve(part, factor, False) for part in node.nodes])
        if isinstance(node, syntax.Sequence):
            return self._sequence(node, factor)
        if isinstance(node, syntax.Pattern):
            return self._expanded(node, node.text, factor, field)
        if isinstance(node, syntax.Field) and self._is_text(node.name):
            return self.resolve(node.node, factor, is_loose, node.name)
        if isinstance(node, syntax.Field):
            number = self.conditions.number(node.name, node.node)
            if number is not None:
                return Mask(number)
        if isinstance(node, syntax.Near):
            words = tuple(dict.fromkeys(word for text in node.words for word in self._words[text]))
            return self._leaf(Unit(words, node.distance, False, field), factor)
        words = self._words[_typed(node)]
        if isinstance(node, syntax.Phrase):
            return self._leaf(Unit(words, node.slop, field=field), factor)
        if isinstance(node, syntax.Fuzzy) and len(words) == 1:
            return self._expanded(node, words[0], factor, field)
        found = [self._leaf(Unit((word,), field=field), factor) for word in words]
        return _some(found) if is_loose and not self._requires else _all(found)

    def _leaf(self, unit: Unit, factor: float) -> Leaf | None:
        if not unit.words:
            return None
        if len(unit.words) == 1 or (unit.is_ordered and len(unit.words) > MAX_SLOPPY):
            unit = Unit(unit.words, field=unit.field)
        return Leaf(self.units.setdefault(unit, len(self.units)), factor)

    def _expanded(self, node: syntax.Pattern | syntax.Fuzzy, text: str, factor: float, field: str) -> Resolved:
        """Join the words that replace a pattern or a misspelled word; each is looked up once for a batch."""
        key, index = (node, factor, field), self._index
        if key not in self._replaced:
            if isinstance(node, syntax.Pattern):
                words = [word for word, _ in matching(index, image_of(index, text))]
            else:
                words = [word for word, _, _ in alike(index, text, node.edits)]
            self._replaced[key] = _some([self._leaf(Unit((word,), field=field), factor) for word in words]) or Some(())
        return self._replaced[key]

    def _sequence(self, node: syntax.Sequence, factor: float) -> Resolved | None:
        required: list[Resolved | None] = []
        optional: list[Resolved] = []
        excluded: list[Resolved | None] = []
        for modifier, part in node.clauses:
            found = self.resolve(part, factor, modifier == "")
            if found is None:
                continue
            if modifier == "-":
                excluded.append(Except(found))
            elif modifier or self._requires:
                required.append(found)
            else:
                optional.append(found)
        if not required and optional:
            required, optional = [_some(optional)], []
        return _all([*required, *excluded], optional)


def _typed(node: syntax.Node) -> str:
    """Return the text of a leaf as typed."""
    return f"{node.name}:{_typed(node.node)}" if isinstance(node, syntax.Field) else getattr(node, "text", "")


def _except(node: Resolved | None) -> Resolved | None:
    return None if node is None else Except(node)


def _some(nodes: Iterable[Resolved | None]) -> Resolved | None:
    given = [node for node in nodes if node is not None]
    parts: list[Resolved] = []
    for node in given:
        parts += node.nodes if isinstance(node, Some) else (node,)
    return parts[0] if len(parts) == 1 else Some(tuple(parts)) if given else None


def _all(nodes: Iterable[Resolved | None], optional: Iterable[Resolved] = ()) -> Resolved | None:
    parts: list[Resolved] = []
    rest = [*optional]
    for node in nodes:
        if isinstance(node, All):
            parts += node.required
            rest += node.optional
        elif node is not None:
            parts.append(node)
    return parts[0] if len(parts) == 1 and not rest else All(tuple(parts), tuple(rest)) if parts else None


class _Lists:
    """The lists of units in each segment, and those that are cut down for a query."""

    def __init__(self, index: Collection, units: list[Unit], masks: list[Bools], call: str) -> None:
        self.units, self._index = units, index
        spellings = [
            [term_in(unit.field if len(unit.words) == 1 else "", word) for word in unit.words] for unit in units
        ]
        strings = list(dict.fromkeys(term for own in spellings for term in own))
        number_of = {word: number for number, word in enumerate(strings)}
        words, totals = QueryWords.of_strings(strings), np.zeros(len(strings), np.int64)
        known = [words.find(segment, totals) for segment in index.segments]
        for own in known:
            own[totals == 0] = UNKNOWN  # all its documents are deleted
        spelled = [np.array([number_of[term] for term in own], np.int64) for own in spellings]
        phrases = [place for place, unit in enumerate(units) if len(unit.words) > 1]
        self._made: list[list[tuple[UInt32, UInt32]]] = [[] for _ in known]
        if phrases:
            terms = [[own[spelled[place]] for place in phrases] for own in known]
            for made, lists in zip(
                self._made, phrase_lists(index, [units[p] for p in phrases], terms, call), strict=True
            ):
                parts = itertools.pairwise(lists.offsets.tolist())
                made += [(lists.documents[first:stop], lists.counts[first:stop]) for first, stop in parts]
        place_of = {unit: number for number, unit in enumerate(phrases)}
        self._numbers: list[list[int]] = []
        for segment, own, made in zip(index.segments, known, self._made, strict=True):
            first = len(segment.postings.frequencies)
            self._numbers.append([
                int(own[spelled[place][0]]) if place not in place_of
                else first + place_of[place] if len(made[place_of[place]][0]) else UNKNOWN
                for place in range(len(units))
            ])  # fmt: skip
        self.frequencies = [
            sum(len(made[place_of[place]][0]) for made in self._made)
            if place in place_of
            else int(totals[spelled[place][0]])
            for place in range(len(units))
        ]
        starts = itertools.accumulate((segment.size for segment in index.segments), initial=0)
        self._masks = [
            [mask[start : start + segment.size].nonzero()[0].astype(np.uint32) for mask in masks]
            for start, segment in zip(starts, index.segments, strict=False)
        ]
        self._decoded: list[dict[int, tuple[UInt32, UInt32]]] = [{} for _ in index.segments]

    def _list(self, segment: int, item: int) -> tuple[UInt32, UInt32]:
        """Return the live documents of a unit, and its counts there."""
        decoded, number = self._decoded[segment], self._numbers[segment][item]
        if item not in decoded:
            own = self._index.segments[segment]
            first = len(own.postings.frequencies)
            if number < 0:
                decoded[item] = _NO_NUMBERS, _NO_NUMBERS
            elif number >= first:
                decoded[item] = self._made[segment][number - first]
            else:
                _, documents, counts = decode_lists(own.postings, np.array([number], np.uint32))
                kept = slice(None) if own.live is None else own.live[documents]
                decoded[item] = documents[kept], counts[kept]
        return decoded[item]

    def _documents(self, segment: int, item: int) -> UInt32:
        return self._list(segment, item)[0]

    def cut(self, node: Resolved) -> dict[int, float]:
        """Make the lists of a query: return their factors."""
        parts = list(scored(node))
        factors = _sums(((leaf.item, key), leaf.factor) for leaf, key in parts)
        first, rest = len(self.units), has_unscored(node)
        whole = [item for item, key in factors if not key]
        cut: list[tuple[int, Any]] = [key for key in factors if key[1]]
        self.units += [self.units[item] for item, _ in cut] + [Unit(())] * rest
        self.frequencies += [self.frequencies[item] for item, _ in cut] + [0] * rest
        for number, segment in enumerate(self._index.segments):
            evaluation = Evaluation(segment.size, partial(self._documents, number), self._masks[number])
            kept: dict[Any, Any] = {}
            for (leaf, key), own in zip(parts, evaluation.counted(node), strict=True):
                kept[leaf.item, key] = own
            lists = []
            for key in cut:
                documents, counts = self._list(number, key[0])
                lists.append((documents[kept[key]], counts[kept[key]]))
            if rest:
                found = evaluation.numbers(evaluation.matches(node))
                found = found if segment.live is None else found[segment.live[found]]
                lists.append((found, np.ones(len(found), np.uint32)))
            own_lists = len(segment.postings.frequencies) + len(self._made[number])
            self._numbers[number] += [own_lists + at if len(own[0]) else UNKNOWN for at, own in enumerate(lists)]
            self._made[number] += lists
        made = {first + at: factors[key] for at, key in enumerate(cut)} | ({first + len(cut): 0.0} if rest else {})
        return {item: factors[item, ()] for item in whole} | made

    def ranked(self, item: int) -> tuple[Any, ...]:
        """Return a key by which units of equally many documents are ordered."""
        unit = self.units[item]
        return len(unit.words) > 1, *unit, item

    def joined(self) -> tuple[list[Int64], list[Lists | None]]:
        """Return the numbers of lists by segment, and the lists that were made."""
        return (
            [np.array(own, np.int64) for own in self._numbers],
            [joined_lists(made) if made else None for made in self._made],
        )


_NO_NUMBERS: UInt32 = np.zeros(0, np.uint32)
_NO_ROWS = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
