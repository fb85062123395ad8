"""Converts queries to words as the column's text was: by its tokenizer, then the index's morphism."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
import polars as pl

from polars_tadoc.compress.compress import named_tokenizer, require_known
from polars_tadoc.index.segment import Segment, SoughtTerms, sought_terms
from polars_tadoc.kernels.host.rows.query_words import analyze_words, find_lists, number_words, word_keys
from polars_tadoc.kernels.tokenize import characters
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.analyzers import CJK
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.model.word_map import FEW, Morphism, lower_case_table
from polars_tadoc.rows.phrase_words import PhraseWords
from polars_tadoc.runtime.array_types import Int64, UInt8
from polars_tadoc.runtime.cached_property import cached_property

MANY = 64
"""From this number of words on, sorting them before the lookup pays."""


@dataclass(eq=False)  # frozen instances take three times as long to create
class QueryWords:
    """The words of a batch of queries, without words that the morphism drops."""

    offsets: Int64
    """int64, queries + 1: offsets of each query's words."""
    words: Int64
    """int64: number of each word among the distinct words."""
    data: UInt8
    spans: Int64
    """``data``, ``spans``: UTF-8 bytes of the distinct words, and the start and end of each."""

    @classmethod
    def of(cls, words: pl.Series) -> QueryWords:
        """Make one query per list of words."""
        data, ends = bytes_of(words)
        return cls.numbered(data, _spans(ends), np.arange(len(words) + 1))

    @classmethod
    def of_strings(cls, words: Sequence[str | None]) -> QueryWords:
        """Like :meth:`of` for a few strings; null is the same as empty."""
        encoded = [(word or "").encode() for word in words]
        ends = np.array([0, *accumulate(map(len, encoded))], np.int64)
        return cls.numbered(np.frombuffer(b"".join(encoded), np.uint8), _spans(ends), np.arange(len(words) + 1))

    @classmethod
    def numbered(cls, data: UInt8, spans: Int64, offsets: Int64) -> QueryWords:
        """Number the distinct words."""
        count = len(spans) // 2
        numbers, distinct = np.empty(count, np.int64), np.empty(2 * count, np.int64)
        slots = np.empty(1 << (2 * count + 1).bit_length(), np.int64)
        return cls(offsets, numbers, data, distinct[: 2 * number_words(data, spans, slots, numbers, distinct)])

    @property
    def distinct(self) -> int:
        """Number of distinct words."""
        return len(self.spans) // 2

    def strings(self) -> list[str]:
        """Return the distinct words."""
        data, spans = self.data.tobytes(), self.spans.tolist()
        return [data[start:stop].decode() for start, stop in zip(spans[::2], spans[1::2], strict=True)]

    def find(self, segment: Segment, totals: Int64) -> Int64:
        """Return the list number of each distinct word, int64, ``UNKNOWN`` if the segment does not have it.

        Adds the number of live documents with each word to ``totals``.
        """
        numbers = np.empty(self.distinct, np.int64)
        find_lists(self.data, self.spans, self._order, *segment.sought, segment.live_frequencies, numbers, totals)
        return numbers

    @cached_property
    def _order(self) -> Int64:
        """Order of the lookups: many words are sorted by their first bytes, which makes the lookup twice as fast."""
        if self.distinct < MANY:
            return np.arange(self.distinct)
        keys = np.empty(self.distinct, np.uint64)
        word_keys(self.data, self.spans, keys)
        return np.argsort(keys)


@dataclass(frozen=True, eq=False)
class Analyzer:
    """Converts text to words in the same way as the index did."""

    tokenizer: Tokenizer
    """The column's tokenizer."""
    morphism: Morphism | None = None
    """Morphism of the words at indexing; None for none."""

    @cached_property
    def joins_ideographs(self) -> bool:
        """Whether adjacent ideographs of a query are a phrase."""
        return self.morphism is not None and self.morphism.analyzer == CJK

    @classmethod
    def of(cls, corpora: Sequence[Corpus], morphism: Morphism | None, named: Tokenizer | None = None) -> Analyzer:
        """Return the analyzer of a column; one without texts gets the ``named`` tokenizer, or "words".

        Raises
        ------
        ValueError
            Its grammars were made by different tokenizers.
        InvalidGrammarError
            This release does not have a tokenizer of the grammars.

        """
        tokenizers = list(dict.fromkeys(named_tokenizer(corpus.grammar) for corpus in corpora))
        if len(tokenizers) > 1:
            names = ", ".join(f'"{tokenizer.name}"' for tokenizer in tokenizers)
            raise ValueError(
                f"build_index: the column's texts were cut by different tokenizers, {names}, and queries can be cut by "
                "only one: compress all of them with the same tokenizer"
            )
        for tokenizer in tokenizers:
            require_known(tokenizer, "build_index: the column")
        return cls(tokenizers[0] if tokenizers else named or Tokenizer("words"), morphism)

    def analyze(self, queries: str | list[str] | pl.Series) -> QueryWords:
        """Tokenize queries, and apply the morphism to each distinct word; a null query has no words."""
        if self.tokenizer.has_classes:
            words, is_mapped = self._cut(*bytes_of(queries))
        else:
            texts = queries.fill_null("") if isinstance(queries, pl.Series) else queries
            cut = PhraseWords.cut((texts,) if isinstance(texts, str) else tuple(texts), self.tokenizer)
            words, is_mapped = QueryWords.numbered(cut.data, cut.spans, cut.offsets), self.morphism is None
        if is_mapped or self.morphism is None:
            return words
        if words.distinct <= FEW:
            few = self.morphism.few_images(words.strings())
            mapped, deleted = QueryWords.of_strings(few), np.array([image is None for image in few], np.bool_)
        else:
            images = self.morphism.images(pl.Series("word", words.strings(), pl.String))
            mapped, deleted = QueryWords.of(images), images.is_null().to_numpy()
        gone = np.zeros(mapped.distinct, np.bool_)
        gone[mapped.words[deleted]] = True
        stays = ~gone[mapped.words][words.words]
        offsets = np.append(0, np.cumsum(stays))[words.offsets]
        return QueryWords(offsets, mapped.words[words.words][stays], mapped.data, mapped.spans)

    def cutting(self, is_ascii: bool) -> tuple[Any, ...]:
        """Return the arguments of :func:`analyze_words` for a tokenizer with character classes, and the morphism."""
        return self._cutting if is_ascii else self._cutting_any

    @cached_property
    def _cutting_any(self) -> tuple[Any, ...]:
        morphism = self.morphism
        if morphism is not None and morphism.analyzer is not None:  # it may fold other characters than ASCII
            return *self._cutting[:4], False, *self._cutting[5:]
        lowers = morphism is not None and morphism.lowercase
        return (*self._cutting[:-1], lower_case_table()) if lowers else self._cutting

    @cached_property
    def _cutting(self) -> tuple[Any, ...]:
        classes, morphism = characters.classes(self.tokenizer.name), self.morphism
        maps, lowers = morphism is None or morphism.is_of_characters, morphism is not None and morphism.lowercase
        stop = sought_strings(frozenset() if morphism is None else morphism.deleted)
        return classes.page_of, classes.pages, int(classes.firsts), int(classes.widths), maps, lowers, *stop, _ASCII

    def __reduce__(self) -> tuple[Any, ...]:
        return Analyzer, (self.tokenizer, self.morphism)

    def _cut(self, data: UInt8, ends: Int64) -> tuple[QueryWords, bool]:
        """Tokenize queries; also tell whether the morphism was applied, which rarely needs strings."""
        size = len(data)
        lowered, room, numbers = (
            np.empty(size, np.uint8),
            np.empty(6 * size + 10, np.int64),
            np.empty(3 * size, np.int64),
        )
        offsets = np.empty(len(ends), np.int64)
        words, spans = numbers[:size], numbers[size:]
        cutting = self.cutting(bool((data < 128).all()))
        count, distinct, is_mapped = analyze_words(data, ends, *cutting, lowered, room, words, offsets, spans)
        return QueryWords(offsets, words[:count], lowered, spans[: 2 * distinct]), is_mapped or self.morphism is None


@lru_cache(maxsize=16)
def sought_strings(strings: frozenset[str]) -> SoughtTerms:
    """Return strings, such as stop words, in the form for lookups."""
    return sought_terms(Vocabulary.copied(pl.Series(sorted(strings, key=str.encode), dtype=pl.String)))


def _spans(ends: Int64) -> Int64:
    """Return the start and end of each of consecutive strings."""
    spans = np.empty(2 * (len(ends) - 1), np.int64)
    spans[::2], spans[1::2] = ends[:-1], ends[1:]
    return spans


def bytes_of(strings: str | list[str] | pl.Series) -> tuple[UInt8, Int64]:
    """Return the UTF-8 bytes of concatenated strings and the start of each; null is the same as empty."""
    if isinstance(strings, str):
        encoded = strings.encode()
        return np.frombuffer(encoded, np.uint8) if encoded else _NO_BYTES, np.array([0, len(encoded)], np.int64)
    if isinstance(strings, list):
        parts = [string.encode() for string in strings]
        data = b"".join(parts)
        ends = np.array([0, *accumulate(map(len, parts))], np.int64)
        return np.frombuffer(data, np.uint8) if data else _NO_BYTES, ends
    filled = strings.fill_null("") if strings.null_count() else strings
    array: Any = filled.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    if not len(array):
        return _NO_BYTES, np.zeros(1, np.int64)
    _, ends, data = array.buffers()
    offsets = np.frombuffer(ends, np.int64, len(array) + 1, 8 * array.offset).copy()
    return np.frombuffer(data, np.uint8, offsets[-1]) if offsets[-1] else _NO_BYTES, offsets


_ASCII = np.zeros(0, np.uint32)
_NO_BYTES: UInt8 = np.zeros(0, np.uint8)
