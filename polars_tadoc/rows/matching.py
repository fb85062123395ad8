"""Matches phrases in rules and documents: each rule once; rules without a word of a phrase are not read."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from polars_tadoc.config import settings
from polars_tadoc.kernels.host.rows import phrases as kernels
from polars_tadoc.kernels.host.rows.phrase_words import UNKNOWN
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.cache import ByteLRU
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

FEW_ROWS = 4
"""Rows are first searched for touched symbols if less than one in this many has one."""

SAMPLE = 1 << 10
"""Sample size of this estimate, in symbols."""

CHUNK = 1 << 17
"""Minimum symbols per thread if each must be matched."""

SKIPPED = 1 << 20
"""Minimum symbols per thread if most are skipped."""


class _Space(NamedTuple):
    """Reusable buffers: allocating them per call would take longer than using them."""

    classes: UInt32
    """All zero between calls."""
    matches: kernels.Matches
    """All untouched between calls."""

    @classmethod
    def of(cls, rules: Rules) -> _Space:
        size = rules.terminals + rules.rule_count
        matches = kernels.Matches(np.zeros(size, np.uint8), np.empty(size, np.uint32), np.empty(size, np.uint64))
        return cls(np.zeros(rules.terminals, np.uint32), matches)


class Links(NamedTuple):
    """Rules with links from each symbol to the rules that contain it."""

    text: kernels.Text
    owners: kernels.Owners
    spare: deque[_Space]
    """At most one: a running call takes it, and concurrent calls make their own."""

    @classmethod
    def of(cls, rules: Rules, key: str | None) -> Links:
        """Link rules; links of a grammar (by its key) are cached."""
        found = None if key is None else _links.get(key)
        if found is not None:
            return found
        size = rules.terminals + rules.rule_count
        first_words = np.empty(size, np.uint32)
        text = kernels.Text(rules.terminals, rules.rule_offsets.view(np.uint64), rules.symbols, first_words)
        kernels.find_first_words(text)
        owners = kernels.Owners(np.zeros(size + 2, np.uint32), np.empty(len(rules.symbols), np.uint32))
        kernels.find_owners(text, owners)
        made = cls(text, owners, deque([_Space.of(rules)], maxlen=1))
        return made if key is None else _links.put(key, made)

    @property
    def nbytes(self) -> int:
        """Bytes of memory between calls."""
        arrays = (
            *self.text[1:],
            *self.owners,
            *(own for space in self.spare for own in (space.classes, *space.matches)),
        )
        return sum(array.nbytes for array in arrays)


_links: ByteLRU[Links] = ByteLRU(lambda: settings().host_cache_bytes // 4, lambda links: links.nbytes)
"""Cache of links, by grammar."""


def forget_links(key: str) -> None:
    """Drop the links of rules that are not searched any more."""
    _links.discard(key)


@array_dataclass
class Target:
    """Rules and documents in which phrases are matched."""

    rules: Rules
    root_offsets: Int64
    roots: UInt32
    """``rules``, ``root_offsets``, ``roots``: Arrays of the rules, as kernels take them."""
    key: str | None
    """Cache key of the rules; None if they are made for one call."""
    stands: tuple[UInt32, UInt32] | None
    """uint32: some terminals, and the ids by which phrases know them; None if ids are equal."""

    def count(self, words: UInt32, offsets: Int64, once: bool, found: UInt64) -> None:
        """Count matches by document, or tell whether there is one, of phrases given as words and offsets.

        A phrase without a word, or with a word that the rules lack, matches nothing.
        """
        ids, classes = words.tolist(), dict[int, int]()  # almost always few words
        cut = [ids[first:stop] for first, stop in pairwise(offsets.tolist())]
        known = [own for own in cut if own and UNKNOWN not in own]
        phrases = [[classes.setdefault(word, len(classes) + 1) for word in own] for own in known]
        if not phrases:
            return
        links = Links.of(self.rules, self.key)
        try:
            space = links.spare.pop()
        except IndexError:  # another call uses it
            space = _Space.of(self.rules)
        terminals = self._classify(np.array(list(classes), np.uint32), space.classes)
        automaton = build_automaton(phrases, space.classes, len(classes) + 1)
        if len(terminals):
            self._match(links, automaton, terminals, space.matches, once, found)
        space.classes[terminals] = 0
        space.matches.touched[:] = 0
        links.spare.append(space)

    def _classify(self, words: UInt32, classes: UInt32) -> UInt32:
        """Set each terminal's class, the word's position from 1 on; return the words' terminals."""
        places = np.arange(1, len(words) + 1, dtype=np.uint32)
        if self.stands is None:
            classes[words] = places
            return words
        terminals, names = self.stands
        place_of = np.zeros(int(max(names.max(initial=0), words.max(initial=0))) + 1, np.uint32)
        place_of[words] = places
        classes[terminals] = place_of[names]
        return terminals

    def _match(
        self,
        links: Links,
        automaton: kernels.Automaton,
        words: UInt32,
        matches: kernels.Matches,
        once: bool,
        found: UInt64,
    ) -> None:
        """Match the rules that contain the words, then the documents that contain such rules."""
        levels, rules = len(self.rules.level_offsets), self.rules.rule_count
        stack = np.empty(2 * levels, np.uint64)
        pending, read = _bits(rules, False), _bits(rules, False)
        kernels.match_rules(links.text, automaton, words, links.owners, once, pending, read, stack, matches)
        dense = self._share(matches.touched) * len(self.roots) * FEW_ROWS > len(found)
        roots = self.roots

        def match(rows: tuple[int, int]) -> None:
            first, stop = rows
            offsets = self.root_offsets[first : stop + 1].view(np.uint64)
            pending, stack = _bits(stop - first, dense), np.empty(2 * levels, np.uint64)
            if not dense:
                kernels.find_rows(matches.touched, offsets, roots, pending)
            kernels.match_rows(links.text, automaton, matches, offsets, roots, once, pending, stack, found[first:stop])

        smallest = CHUNK if dense and not once else SKIPPED
        chunks = [(0, len(found))] if len(roots) < 2 * smallest else weighted_chunks(self.root_offsets, smallest)
        map_parallel(match, chunks)

    def _share(self, touched: UInt8) -> float:
        """Estimate the share of touched symbols in documents."""
        sample = touched[self.roots[:: max(1, len(self.roots) // SAMPLE)]]
        return np.count_nonzero(sample) / max(1, len(sample))


def _bits(count: int, value: bool) -> UInt64:
    """Return a bitmap of ``count`` bits, 64 per number."""
    bits = np.zeros(-(-count // 64), np.uint64)
    if value:
        bits[:] = ~np.uint64(0)
        bits[count // 64 :] = (1 << count % 64) - 1
    return bits


def build_automaton(phrases: Iterable[Sequence[int]], classes: UInt32, class_count: int) -> kernels.Automaton:
    """Build the automaton of phrases of word classes (Aho and Corasick, CACM 1975).

    Parameters
    ----------
    phrases
        Classes of each phrase's words, from 1 on; no phrase is empty.
    classes
        uint32 by word: its class, 0 for words in no phrase.
    class_count
        Number of classes, including class 0.

    """
    children, depths, ends = _trie(phrases)
    fails, onward = [0] * len(children), [0] * len(children)
    order = list(children[0].values())
    for state in order:  # breadth first: shorter states are done
        fail = fails[state]
        ends[state] |= ends[fail]
        onward[state] = state if children[state] else onward[fail]
        for word, child in children[state].items():
            link = fail
            while link and word not in children[link]:
                link = fails[link]
            fails[child] = children[link].get(word, 0)
            order.append(child)
    from_start = np.zeros(class_count, np.uint32)
    for word, child in children[0].items():
        from_start[word] = child
    edges = [[], *(sorted(own.items()) for own in children[1:])]
    offsets = np.cumsum([0, *map(len, edges)]).astype(np.uint32)
    flat = np.array([edge for own in edges for edge in own], np.uint32).reshape(-1, 2)
    return kernels.Automaton(
        classes,
        from_start,
        offsets,
        np.ascontiguousarray(flat[:, 0]),
        np.ascontiguousarray(flat[:, 1]),
        np.array(fails, np.uint32),
        np.array(onward, np.uint32),
        np.array(depths, np.uint32),
        np.array(ends, np.uint8),
    )


def _trie(phrases: Iterable[Sequence[int]]) -> tuple[list[dict[int, int]], list[int], list[bool]]:
    """Return children by class, depth, and whether a phrase ends there, by state."""
    children: list[dict[int, int]] = [{}]
    depths, ends = [0], [False]
    for phrase in phrases:
        state = 0
        for word in phrase:
            if word not in children[state]:
                children[state][word] = len(children)
                children.append({})
                depths.append(depths[state] + 1)
                ends.append(False)
            state = children[state][word]
        ends[state] = True
    return children, depths, ends
