"""Words that every match of a literal must hold: only rows with their sequence are read, and only around the rarest."""

from __future__ import annotations

from itertools import islice, product

import numpy as np

from polars_tadoc.compress.compress import named_tokenizer
from polars_tadoc.kernels.host.patterns.exact_rows import find_in_words
from polars_tadoc.kernels.host.patterns.windows import find_partial_words
from polars_tadoc.kernels.host.rows.phrase_words import UNKNOWN
from polars_tadoc.kernels.tokenize.tokenizer import BUILT_IN
from polars_tadoc.kernels.traverse.results_cpu import load_rules
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.rows.matching import Links, Target
from polars_tadoc.rows.phrase_words import PhraseWords
from polars_tadoc.runtime.array_types import UInt8, UInt32, UInt64, array_dataclass

RARE = 64
"""A word in fewer rules than this is looked for alone."""

FREQUENT = 2000
"""A single word in more rules than this is no help."""

MAX_ALIKE = 64
"""Maximum alternative words of a place; a place with more is not searched first."""

MAX_PHRASES = 64
"""Maximum sequences of classes of words; with more, rows are only searched for the rarest word."""


@array_dataclass
class LiteralWords:
    """The words of a literal, by place: the ids of the words of the text that may be there."""

    places: tuple[UInt32, ...]

    @classmethod
    def of(cls, literal: str, grammar: Grammar, apart: bool = False) -> LiteralWords | None:
        """Cut a literal into words.

        Words inside a literal are words of the text, too; the first and the last may be parts of words, unless a
        separator is beside them. None if the literal has no word, or is inside one and words may touch (not
        ``apart``), or if words depend on the text around them.
        """
        tokenizer = named_tokenizer(grammar)
        if tokenizer.name not in BUILT_IN or not tokenizer.has_classes:
            return None
        cut = PhraseWords.cut((literal,), tokenizer)
        size, spans = len(literal.encode()), cut.spans.reshape(-1, 2).tolist()
        if not spans:
            return None
        if spans == [[0, size]]:
            return cls((_words_with(cut.data[:size], grammar),)) if apart else None
        ids, words = cut.find(grammar.words), grammar.words
        places = [ids[place : place + 1] for place in range(len(spans))]
        if any(
            own[0] == UNKNOWN and start > 0 and stop < size for own, (start, stop) in zip(places, spans, strict=True)
        ):
            return cls((ids[:0],))
        for place, (start, stop) in enumerate(spans):
            if start == 0 or stop == size:
                found = np.empty(grammar.vocabulary_size, np.uint32)
                part = cut.data[start:stop]
                number = find_partial_words(words.offsets, words.data.ctypes.data, part, start == 0, found)
                places[place] = found[:number]
        return cls(tuple(places))

    @property
    def is_nowhere(self) -> bool:
        """Whether the text lacks a word."""
        return any(len(own) == 0 for own in self.places)

    def rarest(self, links: Links) -> tuple[int, int]:
        """Return the place whose words are in the fewest rules, and the number of those rules."""
        offsets = links.owners.offsets
        rules = [int((offsets[own + 1] - offsets[own]).sum()) for own in self.places]
        place = int(np.argmin(rules))
        return place, rules[place]

    def rows(self, corpus: Corpus, place: int) -> UInt64 | None:
        """Tell by document whether words around a place follow each other, whatever separates them; None if unknown."""
        places = [own for own in self.places[max(0, place - 1) : place + 2] if len(own) <= MAX_ALIKE]
        if len(places) < 2 or len(self.places[place]) > MAX_ALIKE:  # the places that remain must be adjacent
            return None
        terminals, where = np.unique(np.concatenate(places), return_inverse=True)
        masks = np.zeros(len(terminals), np.uint64)
        bits = np.repeat(np.uint64(1) << np.arange(len(places), dtype=np.uint64), [len(own) for own in places])
        np.bitwise_or.at(masks, where, bits)
        classes, names = np.unique(masks, return_inverse=True)
        choices = [[k for k, mask in enumerate(classes.tolist()) if mask >> place & 1] for place in range(len(places))]
        phrases = list(islice(product(*choices), MAX_PHRASES + 1))
        if len(phrases) > MAX_PHRASES:
            return None
        found = np.zeros(corpus.document_count, np.uint64)
        stands = terminals, names.reshape(-1).astype(np.uint32)
        target = Target(load_rules(corpus.grammar), corpus.root_offsets, corpus.roots, corpus.cache_key, stands)
        offsets = np.arange(len(phrases) + 1) * len(places)
        target.count(np.array(phrases, np.uint32).reshape(-1), offsets, True, found)
        return found


def _words_with(part: UInt8, grammar: Grammar) -> UInt32:
    """Return the words that contain some bytes."""
    words = grammar.words
    found = np.empty(grammar.vocabulary_size, np.uint32)
    number = find_in_words(words.data, int(words.offsets[-1]), words.offsets, part, found)
    return found[:number]
