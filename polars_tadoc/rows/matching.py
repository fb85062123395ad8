"""Finds phrases in rules and documents: each rule is matched once, rules without a word of a phrase are not read."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from polars_tadoc.config import settings
from polars_tadoc.kernels.host.rows import phrases as kernels
from polars_tadoc.kernels.host.rows.phrase_words import UNKNOWN
from polars_tadoc.kernels.primitives.arrays import read_only
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.rows.automaton import build_automaton
from polars_tadoc.runtime.cache import ByteLRU
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]

FEW_ROWS = 4
"""Rows are searched for touched symbols first where less than one in so many has one."""

SAMPLE = 1 << 10
"""Symbols that this is estimated from."""

CHUNK = 1 << 17
"""Symbols that are worth another thread where each must be matched."""

SKIPPED = 1 << 20
"""Symbols that are where most are skipped."""


class _Space(NamedTuple):
    """Work space of one call: memory that is new each time would take longer to come by than to use."""

    classes: UInt32
    """All zero between calls."""
    matches: kernels.Matches
    """None touched between calls."""

    @classmethod
    def of(cls, rules: Rules) -> _Space:
        size = rules.terminals + rules.rule_count
        matches = kernels.Matches(np.zeros(size, np.uint8), np.empty(size, np.uint32), np.empty(size, np.uint64))
        return cls(np.zeros(rules.terminals, np.uint32), matches)


class Links(NamedTuple):
    """Rules with the way back from symbols to the rules that name them."""

    text: kernels.Text
    owners: kernels.Owners
    spare: deque[_Space]
    """One at most: a call takes it away while it runs, and calls at the same time make their own."""

    @classmethod
    def of(cls, rules: Rules, key: str | None) -> Links:
        """Link rules; those of a grammar (by its key) are kept for the next call."""
        found = None if key is None else _links.get(key)
        if found is not None:
            return found
        size = rules.terminals + rules.rule_count
        first_words = np.empty(size, np.uint32)
        text = kernels.Text(
            rules.terminals, read_only(rules.rule_offsets).view(np.uint64), read_only(rules.symbols), first_words
        )
        kernels.find_first_words(text)
        owners = kernels.Owners(np.zeros(size + 2, np.uint32), np.empty(len(rules.symbols), np.uint32))
        kernels.find_owners(text, owners)
        made = cls(text, owners, deque([_Space.of(rules)], maxlen=1))
        return made if key is None else _links.put(key, made)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it holds between calls."""
        arrays = (
            *self.text[1:],
            *self.owners,
            *(own for space in self.spare for own in (space.classes, *space.matches)),
        )
        return sum(array.nbytes for array in arrays)


_links: ByteLRU[Links] = ByteLRU(lambda: settings().host_cache_bytes // 4, lambda links: links.nbytes)
"""Links of grammars that phrases were looked for in."""


def forget_links(key: str) -> None:
    """Drop the links of rules that nothing will be looked for in any more."""
    _links.discard(key)


@dataclass(frozen=True, eq=False)
class Target:
    """Rules and documents that phrases are looked for in.

    Parameters
    ----------
    rules, root_offsets, roots
        As kernels take them.
    key
        Names the rules among those kept; None where they are made for one call.
    stands
        uint32: some terminals, and what phrases call each; None where they call all by their ids.

    """

    rules: Rules
    root_offsets: Int64
    roots: UInt32
    key: str | None
    stands: tuple[UInt32, UInt32] | None

    def count(self, words: UInt32, offsets: Int64, once: bool, found: UInt64) -> None:
        """Count matches by document (or tell whether there is one), of phrases given as words under offsets.

        A phrase without a word, or with one that the rules do not have, matches nothing.
        """
        ids, classes = words.tolist(), dict[int, int]()  # of few words nearly always
        cut = [ids[first:stop] for first, stop in pairwise(offsets.tolist())]
        known = [own for own in cut if own and UNKNOWN not in own]
        phrases = [[classes.setdefault(word, len(classes) + 1) for word in own] for own in known]
        if not phrases:
            return
        links = Links.of(self.rules, self.key)
        try:
            space = links.spare.pop()
        except IndexError:  # another call runs
            space = _Space.of(self.rules)
        terminals = self._classify(np.array(list(classes), np.uint32), space.classes)
        automaton = build_automaton(phrases, space.classes, len(classes) + 1)
        if len(terminals):
            self._match(links, automaton, terminals, space.matches, once, found)
        space.classes[terminals] = 0
        space.matches.touched[:] = 0
        links.spare.append(space)

    def _classify(self, words: UInt32, classes: UInt32) -> UInt32:
        """Set each terminal's class, the word's place from 1 on; return the terminals that words stand for."""
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
        """Match the rules that hold the words, then the documents that hold such rules."""
        levels, rules = len(self.rules.level_offsets), self.rules.rule_count
        stack = np.empty(2 * levels, np.uint64)
        pending, read = _bits(rules, False), _bits(rules, False)
        kernels.match_rules(links.text, automaton, read_only(words), links.owners, once, pending, read, stack, matches)
        dense = self._share(matches.touched) * len(self.roots) * FEW_ROWS > len(found)
        roots = read_only(self.roots)

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

    def _share(self, touched: npt.NDArray[np.uint8]) -> float:
        """Estimate which share of the documents' symbols is touched."""
        sample = touched[self.roots[:: max(1, len(self.roots) // SAMPLE)]]
        return np.count_nonzero(sample) / max(1, len(sample))


def _bits(count: int, value: bool) -> UInt64:
    """Return ``count`` bits, 64 in each number."""
    bits = np.zeros(-(-count // 64), np.uint64)
    if value:
        bits[:] = ~np.uint64(0)
        bits[count // 64 :] = (1 << count % 64) - 1
    return bits
