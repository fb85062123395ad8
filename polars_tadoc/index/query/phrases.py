"""Phrases of queries: parts in double quotes, whose words stand one after another in a document.

A phrase is searched for as if it were a word of its own. Its list is made when it is asked for: documents that hold all
of its words are found in the postings, and only their rows are looked at, in the grammar.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_tadoc.index.collection import Collection
from polars_tadoc.index.query.analyzer import Analyzer, QueryWords
from polars_tadoc.index.segment import Segment
from polars_tadoc.kernels.host.rows.query_words import UNKNOWN
from polars_tadoc.kernels.host.rows.word_map import map_roots, map_rules
from polars_tadoc.kernels.postings.coded import Lists
from polars_tadoc.kernels.postings.decode_cpu import decode_lists
from polars_tadoc.kernels.primitives.codes import DELETED
from polars_tadoc.kernels.traverse.results_cpu import load_rules
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.model.column import split
from polars_tadoc.model.corpus import Corpus, require_countable
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.rows.matching import Target, forget_links
from polars_tadoc.rows.term_counts import Terms
from polars_tadoc.runtime.parallel import map_apart

Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]

SHOWN = 80
"""Characters of a query that messages show."""

_keys = itertools.count()


@dataclass(frozen=True, eq=False)
class Phrases:
    """Phrases of a batch of queries.

    Parameters
    ----------
    texts
        What is left of the queries without them. A phrase of one word is that word and stands here.
    owners, items
        int64 by place where a phrase stands: the query, ascending, and the phrase's number.
    words
        The distinct phrases, ascending, as words under the index's morphism, two or more.

    """

    texts: str | pl.Series
    owners: Int64
    items: Int64
    words: list[tuple[str, ...]]


def take_phrases(given: str | pl.Series, analyzer: Analyzer, call: str) -> Phrases:
    """Take the parts in double quotes out of queries; messages name the call.

    A phrase of which the index's analyzer leaves nothing is left out, as its words are.

    Raises
    ------
    ValueError
        A quote is not closed.

    """
    texts = [given] if isinstance(given, str) else given.to_list()
    parts = [(query, *part) for query, text in enumerate(texts) for part in _cut(query, text or "", call)]
    quoted = [(query, part) for query, part, is_phrase in parts if is_phrase]
    analyzed = analyzer.analyze(_texts([part for _, part in quoted]))
    strings, numbers = analyzed.strings(), analyzed.words.tolist()
    cut = [
        tuple(strings[number] for number in numbers[first:stop])
        for first, stop in itertools.pairwise(analyzed.offsets.tolist())
    ]
    words = sorted({phrase for phrase in cut if len(phrase) > 1})
    number_of = {phrase: number for number, phrase in enumerate(words)}
    stands = [(query, number_of[own]) for (query, _), own in zip(quoted, cut, strict=True) if own in number_of]
    left: list[list[str]] = [[] for _ in range(len(texts))]
    for query, part, is_phrase in parts:
        if not is_phrase:
            left[query].append(part)
    for (query, part), own in zip(quoted, cut, strict=True):
        if len(own) == 1:
            left[query].append(part)
    places = np.array(stands, np.int64).reshape(-1, 2)
    return Phrases(_texts(list(map(" ".join, left))), places[:, 0], places[:, 1], words)


def _texts(strings: list[str]) -> str | pl.Series:
    return strings[0] if len(strings) == 1 else pl.Series("query", strings, pl.String)


def _cut(query: int, text: str, call: str) -> list[tuple[str, bool]]:
    """Cut a query at its quotes; every other part is a phrase."""
    parts = text.split('"')
    if len(parts) % 2 == 0:
        shown = text if len(text) <= SHOWN else f"…{parts[-1][:SHOWN]}"
        raise ValueError(
            f"{call}: query {query} opens a double quote and does not close it: {shown!r}; close it, or leave it out"
        )
    return [(part, number % 2 == 1) for number, part in enumerate(parts)]


def phrase_lists(index: Collection, phrases: Sequence[tuple[str, ...]], call: str) -> list[Lists]:
    """Find the documents that hold each phrase, and how often.

    Parameters
    ----------
    index
        The index.
    phrases
        Words of each, under the index's morphism.
    call
        The call's name, for messages.

    Returns
    -------
    list of Lists
        By segment: the documents of each phrase that are not deleted.

    Raises
    ------
    ValueError
        The index does not have the text.
    InvalidGrammarError
        A row is damaged.

    """
    text = index.stored.text if phrases else None
    if text is None and phrases:
        raise ValueError(
            f"{call}: the phrase {' '.join(phrases[0])[:SHOWN]!r} is to be checked in the text, which this index does "
            "not have: build it with store=True"
        )
    starts = np.cumsum([0, *(segment.size for segment in index.segments)]).tolist()
    return [
        _in_segment(segment, text.slice(start, segment.size), index.analyzer.morphism, phrases)
        if text is not None
        else Lists(np.zeros(1, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.uint32))
        for segment, start in zip(index.segments, starts, strict=False)
    ]


def _in_segment(
    segment: Segment, text: pl.Series, morphism: Morphism | None, phrases: Sequence[tuple[str, ...]]
) -> Lists:
    candidates = _candidates(segment, phrases)
    documents = np.unique(np.concatenate([np.zeros(0, np.int64), *candidates]))
    counts = [np.zeros(len(own), np.uint64) for own in candidates]
    words = list(dict.fromkeys(word for phrase in phrases for word in phrase))
    number_of = {word: number for number, word in enumerate(words)}
    numbers = [np.array([number_of[word] for word in phrase], np.uint32) for phrase in phrases]
    corpora = split(text.gather(documents)) if len(documents) else []
    require_countable(corpora)
    for corpus in corpora:
        with _Rows(corpus, Terms.of(corpus, words, morphism)) as rows:

            def count(phrase: int, rows: _Rows = rows, stands: Int64 = documents[corpus.rows]) -> None:
                places = np.searchsorted(stands, candidates[phrase])
                places[places == len(stands)] = 0
                here = np.flatnonzero(stands[places] == candidates[phrase])
                if len(here):
                    counts[phrase][here] = rows.count(places[here], numbers[phrase])

            map_apart(count, range(len(phrases)))
    held = [np.flatnonzero(own) for own in counts]
    found = [own[there].astype(np.uint32) for own, there in zip(candidates, held, strict=True)]
    sums = [np.minimum(own[there], 0xFFFFFFFF).astype(np.uint32) for own, there in zip(counts, held, strict=True)]
    none = np.zeros(0, np.uint32)
    return Lists(
        np.cumsum([0, *map(len, found)], dtype=np.int64), np.concatenate([none, *found]), np.concatenate([none, *sums])
    )


def _candidates(segment: Segment, phrases: Sequence[tuple[str, ...]]) -> list[Int64]:
    """Documents that hold all words of each phrase, ascending; none that is deleted."""
    words = sorted({word for phrase in phrases for word in phrase})
    places = QueryWords.of(pl.Series("word", words, pl.String)).find(segment, np.zeros(len(words), np.int64))
    known = places != UNKNOWN
    offsets, documents, _ = decode_lists(segment.postings, places[known].astype(np.uint32))
    number = np.cumsum(known) - 1
    lists = {word: documents[offsets[number[i]] : offsets[number[i] + 1]] for i, word in enumerate(words) if known[i]}

    def find(phrase: tuple[str, ...]) -> Int64:
        own = sorted((lists.get(word, documents[:0]) for word in set(phrase)), key=len)
        found = own[0]
        for other in own[1:]:
            if not len(found):
                break
            at = np.searchsorted(other, found)
            at[at == len(other)] = 0
            found = found[other[at] == found]
        return (found if segment.live is None else found[segment.live[found]]).astype(np.int64)

    return [find(phrase) for phrase in phrases]


class _Rows:
    """Rows of one grammar in which phrases are counted.

    Parameters
    ----------
    corpus
        The rows.
    terms
        The words of all phrases.

    """

    def __init__(self, corpus: Corpus, terms: Terms) -> None:
        plain = load_rules(corpus.grammar)
        self.rules: Rules = plain
        self.root_offsets, self.roots = corpus.root_offsets, corpus.roots
        self.key = corpus.key
        self.temporary = terms.kept is not None
        if terms.kept is not None:
            image = np.where(terms.kept, np.arange(len(terms.kept)), DELETED).astype(np.uint32)
            self.rules = map_rules(plain, image, len(image))
            self.root_offsets, self.roots = map_roots(plain, self.root_offsets, self.roots, image, self.rules)
            self.key = f"phrases:{next(_keys)}"
        order = np.argsort(terms.terms, kind="stable")
        self.words = terms.words[order]
        self.word_offsets = np.searchsorted(terms.terms[order], np.arange(terms.count + 1))

    def __enter__(self) -> _Rows:
        return self

    def __exit__(self, *_: object) -> None:
        if self.temporary:
            forget_links(self.key)

    def count(self, documents: Int64, phrase: UInt32) -> UInt64:
        """Count a phrase, given as numbers of terms, in some documents."""
        distinct = np.unique(phrase)
        slices = [slice(self.word_offsets[term], self.word_offsets[term + 1]) for term in distinct]
        words = np.concatenate([self.words[own] for own in slices])
        names = np.repeat(distinct, [own.stop - own.start for own in slices])
        most = 2 * len(documents) >= len(self.root_offsets) - 1  # to look at all is sooner done than to gather most
        offsets, roots = (self.root_offsets, self.roots) if most else self._gather(documents)
        found = np.zeros(len(offsets) - 1, np.uint64)
        target = Target(self.rules, offsets, roots, self.key, (words, names))
        target.count(phrase, np.array([0, len(phrase)], np.int64), False, found)
        return found[documents] if most else found

    def _gather(self, documents: Int64) -> tuple[Int64, UInt32]:
        """Symbols of some documents."""
        firsts = self.root_offsets[documents]
        sizes = self.root_offsets[documents + 1] - firsts
        offsets = np.append(0, np.cumsum(sizes))
        return offsets, self.roots[np.arange(offsets[-1]) + np.repeat(firsts - offsets[:-1], sizes)]
