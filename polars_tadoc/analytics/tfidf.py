"""TF-IDF weights of the words of each row."""

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
    """What is to be weighed, checked when it is made."""

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
    r"""Weigh each row's words by TF-IDF, as scikit-learn's ``TfidfTransformer`` does.

    The weight of a word is its count in the row times ``ln((1 + N) / (1 + df)) + 1``, for ``df`` rows of all ``N`` that
    hold it, and the weights of a row are scaled to one length. They are those of ``TfidfVectorizer`` with
    ``lowercase=False`` where it cuts text into the same words: its ``token_pattern`` should mean runs of word
    characters, Han and kana characters are words one by one here, and what Polars' ``\w`` takes is not always what
    Python's does (combining marks are in it, the half of "1½" is not). Null rows are no documents here. Rows are
    weighed by how many of their own column hold a word: weigh those of training and of test together, and split the
    result. :func:`to_csr` with ``weights=TFIDF()`` gives it as a matrix.

    Parameters
    ----------
    use_idf
        Multiply counts by the logarithm; without, they stay as they are.
    smooth_idf
        Add 1 to ``N`` and ``df``, as if one more row held every word.
    sublinear_tf
        Take ``1 + ln(tf)`` for a count ``tf``.
    norm
        What the weights of a row are scaled to: "l2", a sum of squares of 1; "l1", a sum of 1; None, as they are.
    dictionary
        Only words that it has (after ``normalize`` and lower-casing) are in the result; others are as if they were
        not there.

    Returns
    -------
    pyarrow.Table
        ``id`` (the labels' type, or uint32), ``word: dictionary<large_string>``, ``weight: double``; rows in their
        order, each one's words in code point order, with ``top`` by weight falling, equal ones in code point order.
        Null rows have none, and are no documents.

    Raises
    ------
    TypeError
        ``use_idf``, ``smooth_idf`` or ``sublinear_tf`` is no bool, ``top`` is no integer, ``dictionary`` no
        :class:`Dictionary`, ``normalize`` no expression, ``lowercase`` no bool or ``stopwords`` no list of strings;
        ``tokenizer`` is not the one that a compressed column was cut by; ``id`` is not what it should be, or of a type
        that results cannot hold.
    ValueError
        There is no such ``norm``, ``top`` is below 0, ``id`` has another length than the
        column, there is no such ``tokenizer``, ``strategy`` or ``engine``, or ``normalize`` reads columns or gives
        anything but one String or null for each word; a row of a String column is not UTF-8.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> column = pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress()
    >>> table = tadoc.tfidf(column, top=1, norm="l1")
    >>> [(row["id"], row["word"], round(row["weight"], 4)) for row in table.to_pylist()]
    [(0, 'be', 0.3688), (1, 'do', 0.5843)]

    """
    return TFIDFRequest.from_arguments(**options).run(column, id).to_arrow()
