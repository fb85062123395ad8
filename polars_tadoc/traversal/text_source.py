"""A plain String column prepared for traversal: rows of word ids without rules, on the engine chosen for them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.engine.choose import Engine
from polars_tadoc.kernels.primitives.codes import DELETED, UNKNOWN
from polars_tadoc.kernels.tokenize.number_words_cpu import Choice, Known
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.runtime.array_types import UInt32, array_dataclass
from polars_tadoc.runtime.arrow_arrays import lent
from polars_tadoc.traversal.source import PreparedRows


class KnownWords(Protocol):
    """A dictionary."""

    @property
    def unknown(self) -> int:
        """Id of other words."""
        ...

    def __len__(self) -> int: ...

    def ids(self, words: pl.Series, *, engine: str | None = None) -> pl.Series:
        """Return the words' ids."""
        ...

    def on(self, engine: Engine) -> Any:
        """Return the dictionary's trie on an engine."""
        ...


@array_dataclass
class TextSource(PreparedRows):
    """Input of the kernels of weights for a String column: words in code point order, and no rules."""

    lengths: Any
    """uint64 by document, an array of the engine: number of words, including those outside of a dictionary."""

    @property
    def rank(self) -> None:
        """None: terminals are numbered in code point order."""


def prepare_text(
    text: pl.Series,
    tokenizer: Tokenizer,
    engine: Engine,
    morphism: Morphism | None = None,
    dictionary: KnownWords | None = None,
) -> TextSource:
    """Cut a String series into words and number them.

    Parameters
    ----------
    text
        String series; null rows are not documents.
    tokenizer
        The tokenizer.
    engine
        The engine to run on.
    morphism
        Normalisation: maps words to words or drops them.
    dictionary
        Words to keep, after the morphism; others only count in the documents' lengths.

    Raises
    ------
    ValueError
        A row is not UTF-8.
    EngineUnavailableError
        The device is out of memory or failed.

    """
    numbered = engine.kernels.number_words(text, tokenizer, _choice(engine, morphism, dictionary))
    rows = np.flatnonzero(text.is_not_null().to_numpy())
    offsets, lengths = numbered.offsets, numbered.lengths
    if len(rows) < len(text):  # a null row has no words: dropping its offset is enough
        load = engine.kernels.load_array
        offsets, lengths = offsets[load(np.append(rows, len(text)))], lengths[load(rows)]
    none = np.zeros(1, np.int64)
    rules = Rules(len(numbered.words), none, np.zeros(0, np.uint32), none, np.zeros(0, np.uint64))
    rules = rules.loaded(engine.kernels.load_array)
    return TextSource(engine, numbered.words, rules, offsets, numbered.ids, rows, lengths)


def _choice(engine: Engine, morphism: Morphism | None, dictionary: KnownWords | None) -> Choice:
    """Combine a morphism of words with a dictionary."""

    def choose(strings: pa.LargeStringArray) -> tuple[Vocabulary, UInt32 | None]:
        words = Vocabulary.ordered(strings)
        if morphism is None and dictionary is None:
            return words, None
        ids = np.arange(len(words), dtype=np.uint32)
        if morphism is not None:
            image = morphism.apply(words.series)
            words, ids = image.words, image.ids
        kept = np.ones(len(words), np.bool_)
        if dictionary is not None:
            kept = (dictionary.ids(words.series, engine=engine.name) != dictionary.unknown).to_numpy()
        numbers = np.full(len(words) + 1, UNKNOWN, np.uint32)
        numbers[-1] = DELETED
        by_rank = words.by_rank[kept[words.by_rank]]
        numbers[by_rank] = np.arange(len(by_rank), dtype=np.uint32)
        chosen = words.strings.take(lent(by_rank))
        return Vocabulary(chosen), numbers[np.minimum(ids, np.uint32(len(words)))]

    if dictionary is None or morphism is not None:
        return Choice(choose)
    return Choice(choose, lambda: Known(dictionary.on(engine), len(dictionary), Vocabulary))
