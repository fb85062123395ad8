"""The text of a segment's documents for counting phrases: rows of grammars, with words as the segment's terms."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_tadoc.compress.decompress import Allowance
from polars_tadoc.config import settings
from polars_tadoc.index.collection import Collection
from polars_tadoc.index.query.analyzer import Analyzer, QueryWords
from polars_tadoc.index.segment import Segment
from polars_tadoc.kernels.host.rows.flat_phrases import count_in_flat, flatten
from polars_tadoc.kernels.host.rows.near import count_near_in_rows
from polars_tadoc.kernels.host.rows.parts import LONGEST, count_parts_in_rows
from polars_tadoc.kernels.host.rows.phrases import LEFT_OUT, count_in_rows
from polars_tadoc.kernels.host.rows.word_map import map_roots, map_rules
from polars_tadoc.kernels.primitives.codes import DELETED
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.traverse.results_cpu import load_rules
from polars_tadoc.model.column import split
from polars_tadoc.model.corpus import Corpus, require_countable
from polars_tadoc.model.word_map import images_with_parts
from polars_tadoc.rows.matching import Target, forget_links
from polars_tadoc.rows.phrase_by_row import borders as borders_of
from polars_tadoc.rows.token_count import document_words
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.cached_property import cached_property
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

KEPT_SHARE = 8
"""An index caches decoded text for phrases up to the host's cache budget divided by this."""

FLAT_SHARE = 8
"""The same for the terms of all words, four bytes each, in which phrases are counted fastest."""

FEW_WORDS = 1 << 18
"""Up to this many words of candidates are read one by one; more are matched rule by rule."""

FEW_ROWS = 1 << 9
"""Minimum rows per thread."""

_keys = itertools.count()


class Spread(NamedTuple):
    """Words that need not be consecutive, as :func:`.phrases_reference.count_near` takes them."""

    places: Int64
    slop: int


@dataclass(frozen=True, eq=False)
class _Part:
    """Documents of one grammar."""

    corpus: Corpus
    """The documents."""
    terms: Int64
    """int64 by word id: the segment's term of the word, or ``LEFT_OUT``."""
    pairs: tuple[Int64, Int64] | None
    """Word ids, and a term of each: of the word itself and of its parts; None if words have no parts."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.corpus.grammar.nbytes + self.corpus.roots.nbytes + self.terms.nbytes

    @cached_property
    def words(self) -> UInt64:
        """uint64 by document: number of words, also those without a term."""
        return document_words(self.corpus)

    def count(self, rows: Int64, phrase: Int64, spread: Spread | None) -> UInt64:
        """Count a phrase in some of the documents.

        Raises
        ------
        LimitExceededError
            The documents must be read word by word, and have more words than ``Config(expansion_limit=)``.

        """
        counts = np.empty(len(rows), np.uint64)
        by_parts = self.pairs is not None and spread is None and len(phrase) <= LONGEST
        words = int(self.words[rows].sum())
        if words > FEW_WORDS and spread is None and not by_parts:
            return self._match(rows, phrase)
        Allowance("search", [self.corpus]).take(words, 0)
        rules, corpus = load_rules(self.corpus.grammar), self.corpus
        given = rules.terminals, rules.rule_offsets, rules.symbols, len(rules.level_offsets), self.terms
        borders = borders_of(phrase.tolist())
        masks = self._masks(phrase) if by_parts else _NO_MASKS

        def count(chunk: tuple[int, int]) -> None:
            own = corpus.root_offsets, corpus.roots, rows[slice(*chunk)], phrase
            if by_parts:
                count_parts_in_rows(*given[:4], masks, len(phrase), *own[:3], counts[slice(*chunk)])
            elif spread is None:
                count_in_rows(*given, *own, borders, counts[slice(*chunk)])
            else:
                count_near_in_rows(*given, *own, *spread, counts[slice(*chunk)])

        map_parallel(count, even_chunks(len(rows), FEW_ROWS))
        return counts

    def _masks(self, phrase: Int64) -> UInt64:
        """Return by word id a bit for each place of a phrase where the word may be."""
        assert self.pairs is not None
        masks = np.zeros(len(self.terms), np.uint64)
        masks[self.terms == LEFT_OUT] = np.uint64(1 << 63)
        words, terms = self.pairs
        for place, term in enumerate(phrase.tolist()):
            masks[words[terms == term]] |= np.uint64(1 << place)
        return masks

    def count_terms(self, starts: Int64) -> None:
        """Write the number of terms of each document."""
        if (self.terms == LEFT_OUT).any():
            self.flatten(starts, _NO_TERMS)
        else:
            starts[self.corpus.rows] = self.words

    def flatten(self, starts: Int64, words: UInt32) -> None:
        """Write the terms of the words of all documents, or without room their numbers."""
        rules, corpus = load_rules(self.corpus.grammar), self.corpus
        given, documents = (
            (rules.terminals, rules.rule_offsets, rules.symbols, self.terms),
            np.asarray(corpus.rows, np.int64),
        )

        def write(chunk: tuple[int, int]) -> None:
            first, stop = chunk
            room = np.empty((2, len(rules.level_offsets) + 1), np.int64)
            own = corpus.root_offsets[first : stop + 1], corpus.roots, documents[first:stop]
            flatten(*given, *own, *room, starts, words)

        map_parallel(write, even_chunks(len(documents), FEW_ROWS, 4))

    def _match(self, rows: Int64, phrase: Int64) -> UInt64:
        """Match all rules and documents, each rule once."""
        rules, corpus, terms, key = load_rules(self.corpus.grammar), self.corpus, self.terms, self.corpus.key
        root_offsets, roots = corpus.root_offsets, corpus.roots
        left_out = bool((terms == LEFT_OUT).any())
        if left_out:
            image = np.where(terms == LEFT_OUT, DELETED, np.arange(len(terms))).astype(np.uint32)
            rules, plain = map_rules(rules, image, len(image)), rules
            root_offsets, roots = map_roots(plain, root_offsets, roots, image, rules)
            key = f"phrases:{next(_keys)}"
        distinct, names = np.unique(phrase, return_inverse=True)
        words = np.flatnonzero(np.isin(terms, distinct))
        called = words.astype(np.uint32), np.searchsorted(distinct, terms[words]).astype(np.uint32)
        found = np.zeros(corpus.document_count, np.uint64)
        try:
            target = Target(rules, root_offsets, roots, key, called)
            target.count(names.astype(np.uint32), np.array([0, len(phrase)], np.int64), False, found)
        finally:
            if left_out:
                forget_links(key)
        return found[rows]


@dataclass(frozen=True, eq=False)
class SegmentText:
    """Documents of a segment, by grammar."""

    parts: list[_Part]
    """The grammars."""
    owners: Int64
    rows: Int64
    """``owners``, ``rows``: int64 by document: its part, and its row there."""
    documents: Int64 | None
    """int64, ascending: numbers of these documents in the segment; None for all."""
    is_flat: bool = False
    """Whether phrases are counted in the terms of all words; otherwise in the rules."""

    @classmethod
    def of(cls, segment: Segment, text: pl.Series, analyzer: Analyzer, documents: Int64 | None) -> SegmentText:
        """Take the text of some documents, or of all; with several texts of each, these are numbered, not they."""
        corpora = split(text)
        require_countable(corpora)
        owners, rows = np.zeros((2, len(text)), np.int64)
        for number, corpus in enumerate(corpora):
            owners[corpus.rows], rows[corpus.rows] = number, np.arange(len(corpus.rows))
        parts = [
            _Part(corpus, _terms(corpus, segment, analyzer), _pairs(corpus, segment, analyzer)) for corpus in corpora
        ]
        return cls(parts, owners, rows, documents)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        own = sum(part.nbytes for part in self.parts) + self.owners.nbytes + self.rows.nbytes
        return own + self.flat_bytes * self.is_flat

    @property
    def flat_bytes(self) -> int:
        """Maximum bytes of the flat text; from the text, not from the index, whose files may contradict it."""
        return 4 * sum(int(part.words.sum()) for part in self.parts) + self.owners.nbytes

    @cached_property
    def flat(self) -> tuple[Int64, UInt32]:
        """Where the words of each document begin, int64, documents + 1, and their terms, uint32."""
        starts = np.zeros(len(self.rows) + 1, np.int64)
        for part in self.parts:
            part.count_terms(starts)
        starts = running_sum(starts[:-1])
        words = np.empty(int(starts[-1]), np.uint32)
        for part in self.parts:
            part.flatten(starts, words)
        return starts, words

    def count(self, documents: Int64, phrase: Int64, spread: Spread | None = None) -> UInt64:
        """Count a phrase, or words near each other, given as terms, in some documents, ascending."""
        if self.is_flat:
            return self._count_in_flat(documents, phrase, spread)
        places = documents if self.documents is None else self.documents.searchsorted(documents)
        rows = self.rows[places]
        if len(self.parts) == 1:
            return self.parts[0].count(rows, phrase, spread)
        counts, owners = np.zeros(len(rows), np.uint64), self.owners[places]
        for number in np.unique(owners).tolist():
            own = owners == number
            counts[own] = self.parts[number].count(rows[own], phrase, spread)
        return counts

    def _count_in_flat(self, documents: Int64, phrase: Int64, spread: Spread | None) -> UInt64:
        starts, words = self.flat
        counts, own = np.empty(len(documents), np.uint64), phrase.astype(np.uint32)
        is_ordered = spread is None or bool(spread.places[-1])
        how = spread is None, is_ordered, 0 if spread is None else spread.slop

        def count(chunk: tuple[int, int]) -> None:
            size = 0 if spread is None else len(own)
            room = np.empty(size**2, np.bool_), np.empty(size, np.int64)
            count_in_flat(starts, words, documents[slice(*chunk)], own, *how, *room, counts[slice(*chunk)])

        map_parallel(count, even_chunks(len(documents), FEW_ROWS))
        return counts


def segment_text(index: Collection, number: int, documents: Int64) -> SegmentText:
    """Return the text of some documents of a segment; if small enough, the text of all of them, cached.

    Raises
    ------
    InvalidGrammarError
        A row is damaged.

    """
    segment, text = index.segments[number], index.stored.text
    assert text is not None
    budget = settings().host_cache_bytes // KEPT_SHARE
    texts = 1 if index.fields is None else len(index.fields.names)
    kept, start = index.texts.get(number), texts * sum(other.size for other in index.segments[:number])
    if kept is None and number not in index.texts and text.estimated_size() <= budget:
        kept = SegmentText.of(segment, text.slice(start, texts * segment.size), index.analyzer, None)
        held = sum(other.nbytes for other in index.texts.values() if other)
        kept = kept if held + kept.nbytes <= budget else None
        fits = kept is not None and texts == 1 and all(part.pairs is None for part in kept.parts)
        if kept and fits and held + kept.nbytes + kept.flat_bytes <= settings().host_cache_bytes // FLAT_SHARE:
            kept = replace(kept, is_flat=True)
        index.texts[number] = kept
    return kept or SegmentText.of(segment, text.gather(documents + start), index.analyzer, documents)


def flat_text(index: Collection, number: int) -> tuple[Int64, UInt32] | None:
    """Return the terms of all words of a segment's documents: where each begins, and the terms; cached.

    None if the index has no text, or it is too large.
    """
    if index.stored.stored_text is None:
        return None
    text = segment_text(index, number, _NO_DOCUMENTS)
    return text.flat if text.is_flat else None


def _terms(corpus: Corpus, segment: Segment, analyzer: Analyzer) -> Int64:
    """Return the term of each word of a grammar after the index's morphism."""
    words = corpus.grammar.words.series
    images = words if analyzer.morphism is None else analyzer.morphism.images(words)
    named = QueryWords.of(images)
    terms = named.find(segment, np.zeros(named.distinct, np.int64))[named.words]
    terms[images.is_null().to_numpy()] = LEFT_OUT
    return terms


def _pairs(corpus: Corpus, segment: Segment, analyzer: Analyzer) -> tuple[Int64, Int64] | None:
    if not analyzer.tokenizer.has_parts:
        return None
    pairs = images_with_parts(corpus.grammar.words.series, analyzer.morphism)
    named = QueryWords.of(pairs["image"])
    return pairs["word"].to_numpy(), named.find(segment, np.zeros(named.distinct, np.int64))[named.words]


_NO_MASKS: UInt64 = np.zeros(0, np.uint64)
_NO_TERMS: UInt32 = np.zeros(0, np.uint32)
_NO_DOCUMENTS = np.zeros(0, np.int64)
