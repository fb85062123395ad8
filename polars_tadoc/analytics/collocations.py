"""Pairs of words that occur together more often than by chance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Unpack

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.cleaning.laid_words import LaidWords, lay_out
from polars_tadoc.analytics.cleaning.options import ReadingOptions, reading_of
from polars_tadoc.analytics.word_count import word_count
from polars_tadoc.engine.progress import by_steps
from polars_tadoc.kernels.host.sequences import ordered_pairs as kernels
from polars_tadoc.kernels.host.sequences.hash_counts import BUCKETS, HashCounts
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.arrow_results import numbers
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.runtime.arguments import require_integer
from polars_tadoc.runtime.array_types import Float64, Int64, UInt32, UInt64
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.option_signature import Default, takes_options
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks
from polars_tadoc.traversal.options import MAX_WORDS, require_min_count, require_top

MEASURES = ("npmi", "pmi", "llr", "t")
SCHEMA = pl.Schema({"word": pl.String, "other": pl.String, "count": pl.UInt64, "score": pl.Float64})

LISTED = 1 << 22
"""Pairs that are listed at once, or those of one place if there are more."""


class CollocationsOptions(ReadingOptions, total=False):
    """Options of :func:`polars_tadoc.collocations`."""

    measure: Annotated[str, Default("npmi")]
    window: Annotated[int, Default(1)]
    min_count: Annotated[int, Default(5)]
    top: Annotated[int | None, Default(None)]


@dataclass(frozen=True)
class CollocationsRequest:
    """The checked arguments of a call."""

    name: ClassVar[str] = "collocations"
    measure: str
    window: int
    min_count: int
    top: int | None
    tokenizer: Tokenizer | None
    morphism: Morphism | None

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[CollocationsOptions]) -> CollocationsRequest:
        """Check the arguments; errors as for :func:`collocations`."""
        if options["measure"] not in MEASURES:
            raise ValueError(f"collocations: measure={options['measure']!r}: use one of {', '.join(MEASURES)}")
        return cls(
            options["measure"],
            require_integer("window", options["window"], 1, MAX_WORDS),
            require_min_count(options["min_count"], 0),
            require_top(options["top"]),
            *reading_of(options),
        )

    @ends_on_interrupt
    @by_steps
    def frame(self, column: pl.Series, id: pl.Series | None = None) -> pl.DataFrame:
        """Find the pairs of a column held in memory; there are no labels."""
        laid = lay_out(column, self.name, self.tokenizer, self.morphism)
        pairs, counts, firsts, seconds = _count_pairs(laid, self.window, self.min_count)
        total = float(firsts.sum())
        kept = counts >= self.min_count
        pairs, counts = pairs[kept], counts[kept]
        words, others = (pairs >> np.uint64(32)).astype(np.uint32), pairs.astype(np.uint32)
        score = _scores(self.measure, counts.astype(np.float64), firsts[words], seconds[others], total)
        found = pl.DataFrame(
            [
                laid.vocabulary.take(words).alias("word"),
                laid.vocabulary.take(others).alias("other"),
                numbers("count", counts.astype(np.uint64)),
                numbers("score", score),
            ]
        )
        return found.sort("score", "word", "other", descending=[True, False, False]).head(
            len(found) if self.top is None else self.top
        )


def _count_pairs(laid: LaidWords, window: int, min_count: int) -> tuple[UInt64, UInt64, Float64, Float64]:
    """Count ordered pairs of words.

    Returns
    -------
    (uint64, uint64, float64, float64) arrays
        By distinct pair: its two words and its count, at least ``min_count``; by word, in how many pairs it is the
        first and the second.

    """
    starts, words, size = laid.starts, laid.words, len(laid.vocabulary)
    chunks, none = weighted_chunks(starts), np.zeros(0, np.uint64)
    ends = np.zeros((len(chunks), 2, size), np.int64)
    map_parallel(lambda k: kernels.count_ends(starts, words, *chunks[k], window, *ends[k]), range(len(chunks)))
    firsts, seconds = ends.sum(axis=0)
    hashes, longest = HashCounts(int(firsts.sum())), int(laid.counts.max(initial=1))
    step = max(LISTED // max(min(window, longest), 1), 1)
    for block in range(0, len(words), step):
        _spread(hashes, words, block, min(block + step, len(words)), window)
    every = np.arange(size, dtype=np.uint32)
    counted, once = hashes.read(every, 2, 32, False, min_count, none, none)
    pairs = np.append(counted.keys, once)
    counts = np.append(counted.counts, np.ones(len(once), np.uint64))
    return pairs, counts, firsts.astype(np.float64), seconds.astype(np.float64)


def _spread(hashes: HashCounts, words: UInt32, first: int, stop: int, window: int) -> None:
    """Give the pairs of an interval of places to be counted."""
    parts = [(first + a, first + b) for a, b in even_chunks(stop - first, smallest=1 << 12)]
    sizes, none = np.zeros((len(parts), 1 << BUCKETS), np.int64), np.zeros(0, np.uint64)

    def spread(k: int, sizes: Int64, keys: UInt64) -> None:
        kernels.spread_pairs(words, *parts[k], window, sizes, keys)

    map_parallel(lambda k: spread(k, sizes[k], none), range(len(parts)))
    hashes.add(sizes, lambda keys, places: map_parallel(lambda k: spread(k, places[k], keys), range(len(parts))))


def _scores(measure: str, both: Float64, one: Float64, other: Float64, total: float) -> Float64:
    """Compute a measure of pairs.

    Parameters
    ----------
    measure
        One of :data:`MEASURES`.
    both
        float64 by pair: its count.
    one, other
        float64 by pair: pairs with the same first word, and with the same second one.
    total
        Number of pairs.

    """
    expected = one * other / total
    if measure == "t":
        score: Float64 = (both - expected) / np.sqrt(both)
    elif measure == "llr":
        observed = (both, one - both, other - both, total - one - other + both)
        chance = (expected, one - expected, other - expected, (total - one) * (total - other) / total)
        score = np.zeros(len(both))
        for seen, mean in zip(observed, chance, strict=True):
            score += 2 * np.where(seen > 0, seen * np.log(np.maximum(seen, 1) / np.where(seen > 0, mean, 1)), 0)
        score = np.maximum(score, 0)  # rounding
    else:
        score = np.log(both * total / (one * other))
        if measure == "npmi":
            surprise = -np.log(both / total)
            score = np.where(surprise > 0, score / np.where(surprise > 0, surprise, 1), 1)
    return score


@documented_by(word_count)
def collocations(column: pl.Series, **options: Unpack[CollocationsOptions]) -> pa.Table:
    """Score pairs of words by how much more often they occur together than by chance.

    A pair is two positions of a row, at most ``window`` words apart, in their order. Of ``N`` pairs, ``n`` have the
    words (x, y), ``a`` have x first, and ``b`` have y second; by chance there would be ``e = a * b / N``. Logarithms
    are natural:

    - "pmi": ``log(n / e)``, pointwise mutual information (K. Church and P. Hanks, *Word association norms, mutual
      information, and lexicography*, 1990; there in bits). High for rare pairs.
    - "npmi": pmi divided by ``-log(n / N)``, from -1 to 1, which is for words that occur only together (G. Bouma,
      *Normalized (pointwise) mutual information in collocation extraction*, 2009).
    - "llr": twice the log-likelihood ratio, ``2 * sum(o * log(o / c))`` over the four cells of the table of x or not
      against y or not, ``o`` pairs against ``c`` by chance (T. Dunning, *Accurate methods for the statistics of
      surprise and coincidence*, 1993). Also high for words that avoid each other.
    - "t": ``(n - e) / sqrt(n)`` (K. Church, W. Gale, P. Hanks and D. Hindle, *Using statistics in lexical analysis*,
      1991). High for frequent pairs.

    Runs on the CPU.

    Parameters
    ----------
    measure
        "npmi", "pmi", "llr" or "t".
    window
        Maximum distance between the two words: 1 takes only adjacent words.
    min_count
        Drop pairs with smaller counts; measures of rare pairs say little.
    top
        Maximum number of pairs.
    normalize
        Expression over ``pl.element()`` that maps each distinct word to a String; null or an empty string drops the
        word. Dropped words take up no space in a window.

    Returns
    -------
    pyarrow.Table
        ``word``, ``other: large_string``, ``count: uint64``, ``score: double``; by descending score, then word and
        other in code point order.

    Raises
    ------
    LimitExceededError
        The column has more than 4,294,967,294 words and rows.
    TypeError
        ``window``, ``min_count`` or ``top`` is not an integer, ``normalize`` not an expression, ``lowercase`` not a
        bool or ``stopwords`` not a list of strings.
    ValueError
        ``measure`` is unknown, ``window`` is below 1, ``min_count`` or ``top`` is negative, or ``normalize`` reads
        columns or does not give one String or null per word.

    Examples
    --------
    >>> text = pl.Series("text", ["New York is big", "is New York on", "is it on"])
    >>> tadoc.collocations(text, min_count=2).to_pylist()
    [{'word': 'New', 'other': 'York', 'count': 2, 'score': 1.0}]

    """
    found = CollocationsRequest.from_arguments(**options).frame(column)
    table: pa.Table = found.to_arrow(compat_level=pl.CompatLevel.oldest())
    return table
