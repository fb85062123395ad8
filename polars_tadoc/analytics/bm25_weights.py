"""BM25 weights: each word's contribution to the score of each row that contains it."""

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
    """The checked arguments of a call."""

    name: ClassVar[str] = "bm25_weights"

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[BM25WeightsOptions]) -> BM25WeightsRequest:
        """Check the arguments of :func:`bm25_weights`; errors as there."""
        weighting = BM25(scoring=options["scoring"], k1=options["k1"], b=options["b"], delta=options["delta"])
        return cls.weighing(weighting, options)


@documented_by(word_count)
def bm25_weights(column: pl.Series, *, id: pl.Series | None = None, **options: Unpack[BM25WeightsOptions]) -> pa.Table:
    """Weigh each row's words by BM25 (in parallel on a GPU as in Wakatsuki et al., 2017).

    The weight of a word is the row's score for a query of this word alone (:func:`bm25`, :class:`Index`), in float64.
    So a row's score for any query is the sum of its words' weights; with "bm25+" and "bm25l", words that the row lacks
    add something, too. Document frequencies are counted over all rows, and lengths in words that ``normalize`` and
    ``stopwords`` keep.

    Parameters
    ----------
    column
        Compressed column, or a String one, which is tokenized first; each row is a document.
    id
        Labels of the rows, one for each; default: row numbers.
    scoring
        "robertson", "lucene", "atire", "bm25+" or "bm25l", named as in Kamphuis et al. (ECIR 2020), or "wakatsuki":
        ``log((N + 0.5) / (df + 0.5)) * (k1 + 1) * tf / (k1 * ((1 - b) + b * L / Lave) + tf)`` for a word that occurs
        ``tf`` times in a row of ``L`` words (``Lave`` on average), and in ``df`` of all ``N`` rows.
    k1
        How slowly repetitions saturate, from 0 to 1e9.
    b
        How strongly long rows are penalised, from 0 to 1.
    delta
        For "bm25+" and "bm25l": a word's minimum weight in rows that contain it, from 0 to 1e9.
    top
        Maximum words per row, the heaviest.
    dictionary
        Return only words of this dictionary (compared after ``normalize`` and lower-casing); other words count to the
        rows' lengths.
    tokenizer
        For a String column: "words" (the default), "whitespace", "xml", "code" or a compiled regex, as for
        :func:`compress`. A compressed column has its own tokenizer.

    Returns
    -------
    pyarrow.Table
        ``id`` (the labels' type, or uint32), ``word: dictionary<large_string>``, ``weight: double``; in row order, each
        row's words in code point order, or with ``top`` by descending weight, ties in code point order. Null rows give
        no result rows, and are not documents.

    Raises
    ------
    NotCompressedError
        The series is neither a compressed column nor a String one.
    TypeError
        A constant is not a number, ``top`` not an integer, ``dictionary`` not a :class:`Dictionary`, ``normalize`` not
        an expression, ``lowercase`` not a bool or ``stopwords`` not a list of strings; ``tokenizer`` is not that of the
        compressed column; ``id`` is not a series, or of a type that results cannot hold.
    ValueError
        The scoring, ``tokenizer``, ``strategy`` or ``engine`` is unknown, a constant is out of range, ``top`` is
        negative, ``id`` has another length than the column, or ``normalize`` reads columns or does not give one String
        or null per word; a row of a String column is not UTF-8.

    Examples
    --------
    >>> column = pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress()
    >>> table = tadoc.bm25_weights(column, top=1, scoring="wakatsuki")
    >>> [(row["id"], row["word"], round(row["weight"], 4)) for row in table.to_pylist()]
    [(0, 'be', 0.6287), (1, 'do', 0.6591)]

    """
    return BM25WeightsRequest.from_arguments(**options).run(column, id).to_arrow()
