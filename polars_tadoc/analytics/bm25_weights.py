"""BM25 weights: what each word adds to the score of each row that holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Unpack

import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.word_count import word_count
from polars_tadoc.engine.choose import EngineOption
from polars_tadoc.execute import weights
from polars_tadoc.execute.counting import TextOptions
from polars_tadoc.execute.weights import schema as schema
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.option_signature import takes_options
from polars_tadoc.scoring.bm25 import ScoringOptions
from polars_tadoc.scoring.weighting import BM25
from polars_tadoc.traversal.options import TopOption, WordOptions


class BM25WeightsOnWorkers(ScoringOptions, TopOption, TextOptions, WordOptions, total=False):
    """Options of :func:`bm25_weights` where workers settle the engine."""


class BM25WeightsOptions(BM25WeightsOnWorkers, EngineOption, total=False):
    """Options of :func:`bm25_weights`."""


@dataclass(frozen=True)
class BM25WeightsRequest(weights.WeightsRequest):
    """What is to be weighed, checked when it is made."""

    name: ClassVar[str] = "bm25_weights"

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[BM25WeightsOptions]) -> BM25WeightsRequest:
        """Check the arguments of :func:`bm25_weights`; errors as there."""
        weighting = BM25(scoring=options["scoring"], k1=options["k1"], b=options["b"], delta=options["delta"])
        return cls.weighing(weighting, options)


@documented_by(word_count)
def bm25_weights(column: pl.Series, *, id: pl.Series | None = None, **options: Unpack[BM25WeightsOptions]) -> pa.Table:
    """Weigh each row's words by BM25 (Wakatsuki et al., 2017, in parallel on a GPU, too).

    The weight of a word is what it adds to the row's score for a query of this word alone (:func:`bm25`,
    :class:`Index`), in float64. So a row's score for any query is the sum of its words' weights; with "bm25+" and
    "bm25l" words that the row does not hold add something, too. How many rows hold a word is counted over all of them,
    and lengths are counted in words that ``normalize`` and ``stopwords`` keep.

    Parameters
    ----------
    column
        Compressed column, or a String one, which is cut into words on the way; each row is a document.
    id
        What rows are called, one label for each; by default their numbers.
    scoring
        "robertson", "lucene", "atire", "bm25+" or "bm25l", as Kamphuis et al. (ECIR 2020) name them, or "wakatsuki":
        ``log((N + 0.5) / (df + 0.5)) * (k1 + 1) * tf / (k1 * ((1 - b) + b * L / Lave) + tf)`` for ``tf`` words in a
        row of ``L`` words (``Lave`` on average), and ``df`` rows of all ``N`` that hold the word.
    k1
        How slowly repetition saturates, from 0 to 1e9.
    b
        How much long rows are held back, from 0 to 1.
    delta
        For "bm25+" and "bm25l": what a word is worth in any row, from 0 to 1e9.
    top
        At most so many words of each row, the heaviest.
    dictionary
        Only words that it has (after ``normalize`` and lower-casing) are in the result; others count to the
        rows' lengths.
    tokenizer
        For a String column: "words" (the default), "whitespace", "xml" or a compiled regex, as for :func:`compress`. A
        compressed column was cut by its own.

    Returns
    -------
    pyarrow.Table
        ``id`` (the labels' type, or uint32), ``word: dictionary<large_string>``, ``weight: double``; rows in their
        order, each one's words in code point order, with ``top`` by weight falling, equal ones in code point order.
        Null rows have none, and are no documents.

    Raises
    ------
    NotCompressedError
        The series is neither a compressed column nor a String one.
    TypeError
        A constant is no number, ``top`` is no integer, ``dictionary`` no :class:`Dictionary`, ``normalize`` no
        expression, ``lowercase`` no bool or ``stopwords`` no list of strings; ``tokenizer`` is not the one that a
        compressed column was cut by; ``id`` is not what it should be, or of a type that results cannot hold.
    ValueError
        There is no such scoring, a constant is out of range, ``top`` is below 0, ``id`` has another length than the
        column, there is no such ``tokenizer``, ``strategy`` or ``engine``, or ``normalize`` reads columns or gives
        anything but one String or null for each word; a row of a String column is not UTF-8.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> column = pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress()
    >>> table = tadoc.bm25_weights(column, top=1, scoring="wakatsuki")
    >>> [(row["id"], row["word"], round(row["weight"], 4)) for row in table.to_pylist()]
    [(0, 'be', 0.6287), (1, 'do', 0.6591)]

    """
    return BM25WeightsRequest.from_arguments(**options).run(column, id).to_arrow()
