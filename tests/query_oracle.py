"""What a query means, in plain Python: a tree evaluated on the words of each document."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from polars_tadoc.index.language import tree as t
from polars_tadoc.kernels.host.rows.phrases_reference import count_near
from tests.bm25_oracle import idf, part

Unit = tuple[tuple[str, ...], tuple[int, ...], int]
"""Words, their places, and the slop."""
Meaning = tuple[bool, "Counter[Unit]"] | None
"""Whether a document matches, and what counts how often; None for a part without words."""


def distance(one: str, other: str) -> int:
    """Insertions, deletions, replacements and swaps of neighbours."""
    rows = [list(range(len(other) + 1))]
    for i, a in enumerate(one, 1):
        rows.append([i])
        for j, b in enumerate(other, 1):
            least = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                least = min(least, rows[i - 2][j - 2] + 1)
            rows[i].append(least)
    return rows[-1][-1]


class Oracle:
    """Documents as words, with values of fields, and queries as trees."""

    def __init__(
        self,
        documents: Sequence[Sequence[str]],
        mode: str,
        cut: Callable[[str], list[str]],
        fields: Sequence[dict[str, int]] = (),
        scoring: str = "lucene",
    ) -> None:
        self.documents, self.mode, self.cut, self.fields, self.scoring = documents, mode, cut, fields, scoring
        self.vocabulary = sorted({word for words in documents for word in words})

    def counts(self, unit: Unit) -> list[int]:
        return count_near(self.documents, *unit)

    def scores(self, node: t.Node) -> dict[int, float]:
        """Score each document that matches; documents of which the sum is 0 match, too."""
        average = sum(map(len, self.documents)) / max(len(self.documents), 1)
        found = {}
        for number, words in enumerate(self.documents):
            meaning = self.meaning(node, number)
            if meaning is not None and meaning[0]:
                total = 0.0
                for unit, factor in meaning[1].items():
                    counts = self.counts(unit)
                    if own := counts[number]:
                        weight = idf(self.scoring, len(counts), sum(count > 0 for count in counts))
                        total += factor * weight * part(self.scoring, own, len(words), average, 1.5, 0.75, 0.5)
                found[number] = total
        return found

    def unit(self, words: Sequence[str], number: int, places: Sequence[int] | None = None, slop: int = 0) -> Meaning:
        if not words:
            return None
        unit = tuple(words), tuple(range(len(words)) if places is None else places), slop if len(words) > 1 else 0
        return self.counts(unit)[number] > 0, Counter({unit: 1})

    def any(self, words: Sequence[str], number: int) -> Meaning:
        return self.join([self.unit([word], number) for word in words], any) or (False, Counter())

    def join(self, parts: Sequence[Meaning], how: Callable[[list[bool]], bool]) -> Meaning:
        own = [one for one in parts if one is not None]
        if not own:
            return None
        matches = how([one[0] for one in own])
        counted: Counter[Unit] = Counter()
        for one in own:
            if matches and one[0]:
                counted.update(one[1])
        return matches, counted

    def field(self, name: str, node: t.Node, number: int) -> Meaning:
        value = self.fields[number][name]
        if isinstance(node, t.Range):
            low, high = (int(bound) if bound else None for bound in (node.low, node.high))
            is_above = low is None or value > low or (node.takes_low and value == low)
            return is_above and (high is None or value < high or (node.takes_high and value == high)), Counter()
        return str(value) == node.text, Counter()  # type: ignore[union-attr]

    def meaning(self, node: t.Node, number: int, is_loose: bool = True) -> Meaning:
        match node:
            case t.Word(text):
                parts = [self.unit([word], number) for word in self.cut(text)]
                return self.join(parts, any if is_loose and self.mode == "or" else all)
            case t.Phrase(text, slop):
                return self.unit(self.cut(text), number, None, slop)
            case t.Near(texts, slop):
                words = list(dict.fromkeys(word for text in texts for word in self.cut(text)))
                return self.unit(words, number, [0] * len(words), slop)
            case t.Pattern(text):
                pattern = re.sub(r"[*?]", lambda own: {"*": ".*", "?": "."}[own[0]], text)  # words have no marks
                return self.any([word for word in self.vocabulary if re.fullmatch(pattern, word)], number)
            case t.Fuzzy(text, edits):
                (word,) = self.cut(text)
                most = (0 if len(word) < 3 else 1 if len(word) < 6 else 2) if edits is None else edits
                return self.any([other for other in self.vocabulary if distance(word, other) <= most], number)
            case t.Field(name, inner):
                return self.field(name, inner, number)
            case t.Boost(inner, factor):
                own = self.meaning(inner, number, is_loose)
                if own is None:
                    return None
                counted: Counter[Any] = Counter({unit: factor * count for unit, count in own[1].items()})
                return own[0], counted
            case t.Not(inner):
                own = self.meaning(inner, number, False)
                return None if own is None else (not own[0], Counter())
            case t.And(nodes):
                return self.join([self.meaning(one, number, False) for one in nodes], all)
            case t.Or(nodes):
                return self.join([self.meaning(one, number, False) for one in nodes], any)
            case t.Sequence(clauses):
                return self.sequence(clauses, number)
        raise AssertionError(node)

    def sequence(self, clauses: Sequence[tuple[str, t.Node]], number: int) -> Meaning:
        found = [(modifier, self.meaning(one, number, modifier == "")) for modifier, one in clauses]
        excluded = [(not own[0], Counter[Unit]()) for modifier, own in found if modifier == "-" and own is not None]
        plain = [own for modifier, own in found if modifier == "" and own is not None]
        required = [own for modifier, own in found if modifier == "+" and own is not None]
        if self.mode == "and":
            required, plain = required + plain, []
        if not required and plain:
            required, plain = [self.join(plain, any)], []  # type: ignore[list-item]
        own = self.join([*required, *excluded], all)
        if own is None or not own[0]:
            return None if own is None and not plain else own
        optional = self.join(plain, lambda _: True)
        return True, own[1] + (optional[1] if optional else Counter())
