"""The words of phrases, by the column's tokenizer."""

from __future__ import annotations

import numpy as np
import polars as pl

from polars_tadoc.kernels.host.rows import phrase_words as kernels
from polars_tadoc.kernels.tokenize import characters
from polars_tadoc.kernels.tokenize.tokenize_cpu import BLOCK, SEPARATOR
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, array_dataclass


@array_dataclass
class PhraseWords:
    """The words of phrases."""

    data: UInt8
    """UTF-8 bytes of the words."""
    spans: Int64
    """int64: start and end of each word in ``data``, one pair after another."""
    offsets: Int64
    """int64, phrases + 1: position of each phrase's first word."""

    @classmethod
    def cut(cls, phrases: tuple[str, ...], tokenizer: Tokenizer) -> PhraseWords:
        """Cut phrases into words."""
        if not tokenizer.has_classes:
            tokens = tokenize(pl.Series("phrase", phrases, pl.String), tokenizer.of_queries, lossless=False)
            vocabulary = [word.encode() for word in tokens.vocabulary.to_pylist()]
            ends = np.flatnonzero(tokens.sequence == SEPARATOR)
            words = [vocabulary[word] for word in tokens.sequence.tolist() if word != SEPARATOR]
            stops = np.cumsum([0, *map(len, words)])
            data = np.frombuffer(b"".join(words), np.uint8)
            spans = np.stack([stops[:-1], stops[1:]], axis=1).reshape(-1)
            return cls(data, spans, np.append(0, ends - np.arange(len(ends))))
        encoded = [phrase.encode() for phrase in phrases]
        data = np.frombuffer(b"".join(encoded), np.uint8)
        spans, offsets = np.empty(2 * len(data), np.int64), np.empty(len(phrases) + 1, np.int64)
        count = kernels.cut_words(
            data,
            np.cumsum([0, *map(len, encoded)]),
            characters.classes(tokenizer.name),
            np.empty(BLOCK, np.uint8),
            spans,
            offsets,
        )
        return cls(data, spans[: 2 * count], offsets)

    @property
    def series(self) -> pl.Series:
        """The words as a String series."""
        data, spans = self.data.tobytes(), self.spans.tolist()
        words = [data[start:stop].decode() for start, stop in zip(spans[::2], spans[1::2], strict=True)]
        return pl.Series("word", words, pl.String)

    def find(self, vocabulary: Vocabulary) -> UInt32:
        """Return each word's id, ``UNKNOWN`` if the vocabulary lacks it."""
        ids = np.empty(len(self.spans) // 2, np.uint32)
        kernels.find_words(self.data, self.spans, vocabulary.offsets, vocabulary.data, vocabulary.by_rank, ids)
        return ids
