"""Word counts: how often each word occurs in the rows that are there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.column import require_tadoc, split
from polars_tadoc.corpus import Corpus
from polars_tadoc.engine import CPU, Engine, choose, require_engine
from polars_tadoc.morphism import Morphism
from polars_tadoc.vocabulary import Vocabulary

SCHEMA = pl.Schema({"word": pl.String, "count": pl.UInt64})

MOST_COUNT = (1 << 64) - 1


@dataclass(frozen=True, eq=False)
class WordCounts:
    """Counts by word id, resident with an engine."""

    words: Vocabulary
    counts: Any
    """uint64 by word id, an array of the engine."""
    engine: Engine


@dataclass(frozen=True, eq=False)
class Selection:
    """The words of a result, in its order; strings are made only in the form asked for."""

    words: Vocabulary
    ids: npt.NDArray[np.uint32]
    counts: npt.NDArray[np.uint64]

    def to_arrow(self) -> pa.Table:
        """Table with dictionary-encoded words; a short result has a dictionary of its own words only."""
        if 2 * len(self.ids) < len(self.words):
            own = pa.array(np.arange(len(self.ids), dtype=np.uint32))
            words = pa.DictionaryArray.from_arrays(own, self.words.strings.take(pa.array(self.ids)))
        else:
            words = pa.DictionaryArray.from_arrays(pa.array(self.ids), self.words.strings)
        return pa.table({"word": words, "count": pa.array(self.counts)})

    def to_frame(self) -> pl.DataFrame:
        """Frame with the schema ``SCHEMA``."""
        return pl.DataFrame([self.words.series.gather(self.ids), pl.Series("count", self.counts)])


@dataclass(frozen=True, eq=False)
class Request:
    """What is to be counted, checked when it is made."""

    top: int | None
    min_count: int
    morphism: Morphism | None
    engine: str | None

    @classmethod
    def from_arguments(
        cls,
        *,
        top: int | None,
        min_count: int,
        normalize: pl.Expr | None,
        lowercase: bool,
        stopwords: Iterable[str] | None,
        engine: str | None,
    ) -> Request:
        """Check the arguments of :func:`word_count`; errors as there."""
        require_engine(engine)
        for name, value in {"top": 0 if top is None else top, "min_count": min_count}.items():
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
                raise TypeError(f"{name}={value!r} must be an integer")
        if top is not None and top < 0:
            raise ValueError(f"top={top} must be at least 0")
        return cls(top, min_count, Morphism.from_arguments(normalize, lowercase, stopwords), engine)

    def run(self, column: pl.Series) -> Selection:
        """Count and select."""
        require_tadoc(column, "word_count")
        corpora = split(column)
        engine = choose(self.engine, sum(corpus.symbol_count for corpus in corpora))
        total = merge([partial(corpus, engine, self.morphism) for corpus in corpora])
        least = min(max(self.min_count, 1), MOST_COUNT)
        return Selection(total.words, *total.engine.kernels.select(total.counts, total.words, least, self.top))


def word_count(
    column: pl.Series,
    *,
    top: int | None = None,
    min_count: int = 1,
    normalize: pl.Expr | None = None,
    lowercase: bool = False,
    stopwords: Iterable[str] | None = None,
    engine: str | None = None,
) -> pa.Table:
    """Count words, without expanding any row (G-TADOC, Zhang et al., ICDE 2021, algorithm 1).

    Parameters
    ----------
    column
        Compressed column.
    top
        At most so many words.
    min_count
        Leave out words counted less often.
    normalize
        Expression over ``pl.element()`` that maps each distinct word to a String, or to null to leave it out;
        it runs over the vocabulary, once.
    lowercase
        Lower-case words (after ``normalize``), and the stop words with them.
    stopwords
        Words to leave out, compared after ``normalize`` and lower-casing.
    engine
        "auto", "cpu" or "gpu"; by default what ``tadoc.Config`` says.

    Returns
    -------
    pyarrow.Table
        ``word: dictionary<large_string>``, ``count: uint64``; by count falling, then word in code point order.

    Raises
    ------
    NotCompressedError
        The series is not a compressed column.
    InvalidGrammarError, LimitExceededError
        A payload or a row is damaged or too large.
    EngineUnavailableError
        ``engine="gpu"`` cannot run here.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> column = pl.Series("text", ["the cat saw the dog", "The dog ran"]).tadoc.compress()
    >>> tadoc.word_count(column, lowercase=True, top=2).to_pylist()
    [{'word': 'the', 'count': 3}, {'word': 'dog', 'count': 2}]

    """
    return (
        Request.from_arguments(
            top=top,
            min_count=min_count,
            normalize=normalize,
            lowercase=lowercase,
            stopwords=stopwords,
            engine=engine,
        )
        .run(column)
        .to_arrow()
    )


def partial(corpus: Corpus, engine: Engine, morphism: Morphism | None = None) -> WordCounts:
    """Count one corpus' words."""
    corpus.require_countable()
    kernels, grammar = engine.kernels, corpus.grammar
    counts = kernels.top_down_weights(engine.load(corpus.key, grammar), kernels.load_symbols(corpus.roots))
    if morphism is None:
        return WordCounts(grammar.words, counts, engine)
    image = morphism.apply(grammar.words.series)
    return WordCounts(image.words, kernels.map_counts(counts, image.ids, len(image.words)), engine)


def merge(partials: list[WordCounts]) -> WordCounts:
    """Add counts of several corpora; one alone stays where it is, more meet in host memory."""
    if len(partials) == 1:
        return partials[0]
    frames = [pl.DataFrame(schema=SCHEMA)]
    for part in partials:
        counts = part.engine.kernels.to_host(part.counts)
        frames.append(pl.DataFrame({"word": part.words.series, "count": counts}).filter(pl.col("count") > 0))
    merged = pl.concat(frames).group_by("word").agg(pl.col("count").sum())
    words: Any = merged["word"].to_arrow()
    return WordCounts(Vocabulary(words), merged["count"].to_numpy(), CPU)
