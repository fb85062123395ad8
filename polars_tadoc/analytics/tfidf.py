"""TF-IDF weights of each row's words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, TypedDict, Unpack

import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.bm25_weights import bm25_weights
from polars_tadoc.engine.choose import EngineOption
from polars_tadoc.execute import weights
from polars_tadoc.execute.counting import TextOptions
from polars_tadoc.execute.weights import schema as schema
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.option_signature import Default, takes_options
from polars_tadoc.scoring.weighting import TFIDF
from polars_tadoc.traversal.options import TopOption, WordOptions


class IDFOptions(TypedDict, total=False):
    """How words are weighed."""

    use_idf: Annotated[bool, Default(True)]
    smooth_idf: Annotated[bool, Default(True)]
    sublinear_tf: Annotated[bool, Default(False)]
    norm: Annotated[str | None, Default("l2")]


class TFIDFOnWorkers(IDFOptions, TopOption, TextOptions, WordOptions, total=False):
    """Options of :func:`tfidf` where workers settle the engine."""


class TFIDFOptions(TFIDFOnWorkers, EngineOption, total=False):
    """Options of :func:`tfidf`."""


@dataclass(frozen=True)
class TFIDFRequest(weights.WeightsRequest):
    """The checked arguments of a call."""

    name: ClassVar[str] = "tfidf"

    @classmethod
    @takes_options
    def from_arguments(cls, **options: Unpack[TFIDFOptions]) -> TFIDFRequest:
        """Check the arguments of :func:`tfidf`; errors as there."""
        weighting = TFIDF(
            use_idf=options["use_idf"],
            smooth_idf=options["smooth_idf"],
            sublinear_tf=options["sublinear_tf"],
            norm=options["norm"],
        )
        return cls.weighing(weighting, options)


@documented_by(bm25_weights)
def tfidf(column: pl.Series, *, id: pl.Series | None = None, **options: Unpack[TFIDFOptions]) -> pa.Table:
    r"""Weigh each row's words by TF-IDF, like scikit-learn's ``TfidfTransformer``.

    The weight of a word is its count in the row times ``ln((1 + N) / (1 + df)) + 1``, if ``df`` of all ``N`` rows
    contain it; then the weights of each row are scaled to norm 1. Null rows are not documents. The weights equal those
    of ``TfidfVectorizer`` with ``lowercase=False`` if both tokenize alike: its ``token_pattern`` must match runs of
    word characters; here, each Han or kana character is a word, and Polars' ``\w`` differs from Python's (it includes
    combining marks, but not "½"). Document frequencies are counted within the column: weigh training and
    test rows together, then split the result. :func:`to_csr` with ``weights=TFIDF()`` returns a matrix.

    Parameters
    ----------
    use_idf
        Whether to multiply counts by the logarithm.
    smooth_idf
        Whether to add 1 to ``N`` and ``df``, as if one more row contained every word.
    sublinear_tf
        Whether to replace a count ``tf`` by ``1 + ln(tf)``.
    norm
        Norm to which the weights of a row are scaled: "l2", a sum of squares of 1; "l1", a sum of 1; None: not scaled.
    dictionary
        Return only words of this dictionary (compared after ``normalize`` and lower-casing); other words are ignored.

    Raises
    ------
    TypeError
        ``use_idf``, ``smooth_idf`` or ``sublinear_tf`` is not a bool, ``top`` not an integer, ``dictionary`` not a
        :class:`Dictionary`, ``normalize`` not an expression, ``lowercase`` not a bool or ``stopwords`` not a list of
        strings; ``tokenizer`` is not that of the compressed column; ``id`` is not a series, or of a type that results
        cannot hold.
    ValueError
        ``norm``, ``tokenizer``, ``strategy`` or ``engine`` is unknown, ``top`` is negative, ``id`` has another length
        than the column, or ``normalize`` reads columns or does not give one String or null per word; a row of a String
        column is not UTF-8.

    Examples
    --------
    >>> column = pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress()
    >>> table = tadoc.tfidf(column, top=1, norm="l1")
    >>> [(row["id"], row["word"], round(row["weight"], 4)) for row in table.to_pylist()]
    [(0, 'be', 0.3688), (1, 'do', 0.5843)]

    """
    return TFIDFRequest.from_arguments(**options).run(column, id).to_arrow()
