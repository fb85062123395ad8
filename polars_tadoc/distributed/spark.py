"""The analytics on Spark: tasks count their rows, and a grouped merge combines their partial results.

Columns of text are tokenized in each call; :func:`compress` makes columns of cells from them, which are smaller and
tokenized already. Results are Spark DataFrames: nothing runs before an action, and their rows have no order, except
for :func:`sort` and with ``top``. Documents have no row numbers: per-document calls take ``id``, the column with
document ids. Every worker needs this package; ``pip install polars-tadoc[spark]`` installs Spark itself.

Examples
--------
>>> from polars_tadoc.distributed import spark as tadoc_spark
>>> df = session.createDataFrame([(1, "to be or not to be"), (2, "to do")], "id int, text string")
>>> [tuple(row) for row in tadoc_spark.word_count(df, "text", top=2).collect()]
[('to', 3), ('be', 2)]

"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from importlib import import_module
from typing import TYPE_CHECKING, Unpack

import polars as pl

from polars_tadoc.analytics.bm25_weights import BM25WeightsOptions, BM25WeightsRequest
from polars_tadoc.analytics.cleaning.drop_repeats import DropRepeatsRequest
from polars_tadoc.analytics.cleaning.near_duplicates import (
    DuplicateGroupsRequest,
    NearDuplicatesOptions,
    NearDuplicatesRequest,
)
from polars_tadoc.analytics.cleaning.options import DropRepeatsOnWorkers, OverlapOnWorkers, RepeatsOnWorkers
from polars_tadoc.analytics.cleaning.overlap import OverlapRequest
from polars_tadoc.analytics.cleaning.passage_set import PassageSet
from polars_tadoc.analytics.cleaning.repeats import RepeatsRequest
from polars_tadoc.analytics.cooccurrence import CooccurrenceOptions, CooccurrenceRequest
from polars_tadoc.analytics.inverted_index import InvertedIndexRequest
from polars_tadoc.analytics.ranked_inverted_index import RankedInvertedIndexRequest
from polars_tadoc.analytics.sequence_count import LengthsRequest, request_of
from polars_tadoc.analytics.sort import SortRequest
from polars_tadoc.analytics.term_vector import TermVectorRequest
from polars_tadoc.analytics.tfidf import TFIDFOptions, TFIDFRequest
from polars_tadoc.analytics.twig_filter import TwigFilterOptions, TwigFilterRequest
from polars_tadoc.analytics.word_count import WordCountRequest
from polars_tadoc.compress.compress import Compression, CompressOnSpark
from polars_tadoc.compress.compress import compress as compress_column
from polars_tadoc.distributed.binary_cells import unpack as unpack
from polars_tadoc.distributed.spark_plans import (
    best,
    by_document,
    column_type,
    merged,
    near,
    passages,
    plainly_named,
    threads,
    weighed,
)
from polars_tadoc.distributed.spark_tasks import Compressing
from polars_tadoc.runtime.documented import Call, documented_by
from polars_tadoc.traversal.options import CountOptions, LengthsOptions, RunOptions, TopOptions
from polars_tadoc.twig.twig_set import TwigSet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = [
    "bm25_weights",
    "compress",
    "cooccurrence",
    "drop_repeats",
    "duplicate_groups",
    "inverted_index",
    "near_duplicates",
    "overlap",
    "ranked_inverted_index",
    "repeats",
    "sequence_count",
    "sort",
    "term_vector",
    "tfidf",
    "twig_filter",
    "unpack",
    "word_count",
]

DF = "DataFrame of Spark."
COLUMN = "Name of a column of text, or of one made by :func:`compress`."
TOKENIZER = """For a column of text: "words" (the default), "whitespace", "xml", "code" or a compiled regex, as for
    :func:`compress`."""
ID = """Name of the column with document ids: strings, numbers, dates or times; beside a compressed column, an array
    of them. Two documents with the same id are two documents, in any order."""

PASSAGE_CALLS = {name: f"cleaning.{name}" for name in ("repeats", "drop_repeats", "overlap")} | (
    dict.fromkeys(["near_duplicates", "duplicate_groups"], "cleaning.near_duplicates")
)
"""Modules of the calls that clean a corpus."""


def _documented(call: Call) -> Call:
    """Document the parameters and errors of a call like those of the analytic of the same name."""
    module = PASSAGE_CALLS.get(call.__name__, call.__name__)
    analytic = getattr(import_module(f"polars_tadoc.analytics.{module}"), call.__name__)
    return documented_by(analytic, df=DF, column=COLUMN, id=ID, tokenizer=TOKENIZER)(call)


@documented_by(compress_column, df=DF, column=COLUMN)
def compress(df: DataFrame, column: str, **options: Unpack[CompressOnSpark]) -> DataFrame:
    """Compress a column of text, which other calls then accept instead of the text.

    Each task makes one row per 64 MB of its text, or per ``rows_per_grammar`` rows: its documents share a grammar, so
    few large partitions compress better than many small ones. Spark can store the result like any table; :func:`unpack`
    returns the rows in Polars.

    Returns
    -------
    pyspark.sql.DataFrame
        The column as ``binary``, each cell a file of packed rows (as written by ``df.tadoc.write_packed``); every
        other column as an array, with one value per document.

    Examples
    --------
    >>> from polars_tadoc.distributed import spark as tadoc_spark
    >>> df = session.createDataFrame([(1, "to be or not to be"), (2, "to do")], "id int, text string").coalesce(1)
    >>> compressed = tadoc_spark.compress(df, "text")
    >>> compressed.printSchema()
    root
     |-- id: array (nullable = true)
     |    |-- element: integer (containsNull = true)
     |-- text: binary (nullable = true)
    >>> [tuple(row) for row in tadoc_spark.word_count(compressed, "text", top=2).collect()]
    [('to', 3), ('be', 2)]

    """
    from pyspark.sql.types import ArrayType, BinaryType, StringType, StructField, StructType

    kind = column_type(df, column, "compress")
    if not isinstance(kind, StringType):
        raise TypeError(f'compress: column "{column}" is {kind.simpleString()}, not string; cast it first')
    how = Compression.from_arguments(**options)
    task, read = Compressing(how, df.columns.index(column), threads(df)), plainly_named(df)
    types = [BinaryType() if field.name == column else ArrayType(field.dataType) for field in df.schema]
    made = StructType([StructField(name, kind) for name, kind in zip(read.columns, types, strict=True)])
    return read.mapInArrow(lambda batches: task(batches), made).toDF(*df.columns)


@_documented
def word_count(df: DataFrame, column: str, **options: Unpack[TopOptions]) -> DataFrame:
    """Count words.

    Returns
    -------
    pyspark.sql.DataFrame
        ``word: string, count: bigint``; with ``top``, by descending count, then word in code point order.

    Examples
    --------
    >>> from polars_tadoc.distributed import spark as tadoc_spark
    >>> df = session.createDataFrame([("the cat saw the dog",), ("The dog ran",)], "text string")
    >>> [tuple(row) for row in tadoc_spark.word_count(df, "text", lowercase=True, top=2).collect()]
    [('the', 3), ('dog', 2)]

    """
    request = WordCountRequest.from_arguments(**options)
    return best(merged(df, request, column, None, "word string, count bigint"), request.top, "word")


@_documented
def sort(df: DataFrame, column: str, **options: Unpack[CountOptions]) -> DataFrame:
    """Count words, in code point order.

    Returns
    -------
    pyspark.sql.DataFrame
        ``word: string, count: bigint``, in the order of the words.

    Examples
    --------
    >>> from polars_tadoc.distributed import spark as tadoc_spark
    >>> df = session.createDataFrame([("to be or not to be",), ("to do",)], "text string")
    >>> [tuple(row) for row in tadoc_spark.sort(df, "text").collect()]
    [('be', 2), ('do', 1), ('not', 1), ('or', 1), ('to', 3)]

    """
    request = SortRequest.from_arguments(**options)
    return merged(df, request, column, None, "word string, count bigint").orderBy("word")


@_documented
def sequence_count(df: DataFrame, column: str, **options: Unpack[LengthsOptions]) -> DataFrame:
    """Count sequences of n words; each of several lengths by itself.

    Returns
    -------
    pyspark.sql.DataFrame
        ``sequence: array<string>, count: bigint``; with ``top``, by descending count, then word by word in code point
        order. With several lengths after a column ``n: bigint``.

    Examples
    --------
    >>> from polars_tadoc.distributed import spark as tadoc_spark
    >>> df = session.createDataFrame([("to be or not to be",)], "text string")
    >>> tadoc_spark.sequence_count(df, "text", n=2, top=1).collect()
    [Row(sequence=['to', 'be'], count=2)]

    """
    request, result = request_of(**options), "sequence array<string>, count bigint"
    if not isinstance(request, LengthsRequest):
        return best(merged(df, request, column, None, result), request.top, "sequence")
    parts = []
    for one in request.each:
        found = best(merged(df, one, column, None, result), one.top, "sequence")
        parts.append(found.selectExpr(f"CAST({one.n} AS BIGINT) AS n", "sequence", "count"))
    return reduce(lambda made, part: made.unionAll(part), parts)


@_documented
def cooccurrence(df: DataFrame, column: str, **options: Unpack[CooccurrenceOptions]) -> DataFrame:
    """Count pairs of words within a window.

    Returns
    -------
    pyspark.sql.DataFrame
        ``word: string, other: string, count: bigint``; with ``top``, by descending count, then in code point order.

    Examples
    --------
    >>> from polars_tadoc.distributed import spark as tadoc_spark
    >>> df = session.createDataFrame([("to be or not to be",)], "text string")
    >>> [tuple(row) for row in tadoc_spark.cooccurrence(df, "text", window=1, top=1).collect()]
    [('be', 'to', 2)]

    """
    request = CooccurrenceRequest.from_arguments(**options)
    pairs = merged(df, request, column, None, "word string, other string, count bigint")
    return best(pairs, request.top, "word", "other")


@_documented
def inverted_index(df: DataFrame, column: str, *, id: str, **options: Unpack[CountOptions]) -> DataFrame:
    """List the documents that contain each word.

    Returns
    -------
    pyspark.sql.DataFrame
        ``word: string, documents: array<id>``, documents in ascending order.

    Examples
    --------
    >>> from polars_tadoc.distributed import spark as tadoc_spark
    >>> df = session.createDataFrame([(1, "to be or not to be"), (2, "to do")], "id int, text string")
    >>> tadoc_spark.inverted_index(df, "text", id="id", min_count=2).collect()
    [Row(word='to', documents=[1, 2])]

    """
    request = InvertedIndexRequest.from_arguments(**options)
    return merged(df, request, column, id, "word string, documents array<{id}>")


@_documented
def ranked_inverted_index(df: DataFrame, column: str, *, id: str, **options: Unpack[RunOptions]) -> DataFrame:
    """List the documents that contain each sequence of n words, by descending count.

    Returns
    -------
    pyspark.sql.DataFrame
        ``sequence: array<string>, documents: array<struct<id, count: bigint>>``, documents by descending count, then in
        ascending order.

    Examples
    --------
    >>> from polars_tadoc.distributed import spark as tadoc_spark
    >>> df = session.createDataFrame([(1, "not to be"), (2, "to be or not to be")], "id int, text string")
    >>> tadoc_spark.ranked_inverted_index(df, "text", id="id", n=2, min_count=3).collect()
    [Row(sequence=['to', 'be'], documents=[Row(id=2, count=2), Row(id=1, count=1)])]

    """
    request = RankedInvertedIndexRequest.from_arguments(**options)
    result = "sequence array<string>, documents array<struct<id: {id}, count: bigint>>"
    return merged(df, request, column, id, result)


@_documented
def term_vector(df: DataFrame, column: str, *, id: str, **options: Unpack[TopOptions]) -> DataFrame:
    """Count each document's words, without a shuffle.

    Returns
    -------
    pyspark.sql.DataFrame
        ``id, word: string, count: bigint``.

    Examples
    --------
    >>> from polars_tadoc.distributed import spark as tadoc_spark
    >>> df = session.createDataFrame([(1, "to be or not to be")], "id int, text string")
    >>> [tuple(row) for row in tadoc_spark.term_vector(df, "text", id="id", top=2).collect()]
    [(1, 'be', 2), (1, 'to', 2)]

    """
    request = TermVectorRequest.from_arguments(**options)
    return by_document(df, request, column, id, "id {id}, word string, count bigint")


@_documented
def twig_filter(
    df: DataFrame, column: str, queries: Mapping[str, str] | TwigSet, *, id: str, **options: Unpack[TwigFilterOptions]
) -> DataFrame:
    """Find the XPath queries that each document matches, without a shuffle.

    Returns
    -------
    pyspark.sql.DataFrame
        ``id, query: string``: one row per match.

    Examples
    --------
    >>> from polars_tadoc.distributed import spark as tadoc_spark
    >>> df = session.createDataFrame([(1, "<a><b/><c/></a>"), (2, "<a><c x='1'/></a>")], "id int, xml string")
    >>> found = tadoc_spark.twig_filter(df, "xml", {"both": "/a[b]/c", "one": "//c[@x='1']"}, id="id")
    >>> sorted(tuple(row) for row in found.collect())
    [(1, 'both'), (2, 'one')]

    """
    request = TwigFilterRequest.of_frame(column, queries, **options)
    return by_document(df, request, column, id, "id {id}, query string")


@_documented
def bm25_weights(df: DataFrame, column: str, *, id: str, **options: Unpack[BM25WeightsOptions]) -> DataFrame:
    """Weigh each document's words by BM25.

    Reads documents once; their words are shuffled for counting document frequencies, and shuffled back.

    Returns
    -------
    pyspark.sql.DataFrame
        ``id, word: string, weight: double``.

    Examples
    --------
    >>> from polars_tadoc.distributed import spark as tadoc_spark
    >>> df = session.createDataFrame([(1, "to be or not to be"), (2, "to do")], "id int, text string")
    >>> weights = tadoc_spark.bm25_weights(df, "text", id="id", top=1, scoring="wakatsuki")
    >>> sorted((row.id, row.word, round(row.weight, 4)) for row in weights.collect())
    [(1, 'be', 0.6287), (2, 'do', 0.6591)]

    """
    request = BM25WeightsRequest.from_arguments(**options)
    return weighed(df, request, column, id)


@_documented
def tfidf(df: DataFrame, column: str, *, id: str, **options: Unpack[TFIDFOptions]) -> DataFrame:
    """Weigh each document's words by TF-IDF, with the stages of :func:`bm25_weights`.

    Returns
    -------
    pyspark.sql.DataFrame
        ``id, word: string, weight: double``.

    Examples
    --------
    >>> from polars_tadoc.distributed import spark as tadoc_spark
    >>> df = session.createDataFrame([(1, "to be or not to be"), (2, "to do")], "id int, text string")
    >>> weights = tadoc_spark.tfidf(df, "text", id="id", top=1, norm="l1")
    >>> sorted((row.id, row.word, round(row.weight, 4)) for row in weights.collect())
    [(1, 'be', 0.3688), (2, 'do', 0.5843)]

    """
    request = TFIDFRequest.from_arguments(**options)
    return weighed(df, request, column, id)


@_documented
def repeats(df: DataFrame, column: str, *, id: str, **options: Unpack[RepeatsOnWorkers]) -> DataFrame:
    """Find passages of at least ``length`` words that occur more than once, over all documents.

    Reads documents once; the words of all windows are shuffled, about three bytes for each byte of text that is not
    copied within a task, and documents pass through the shuffles. Documents are in ascending order of their ids.

    Returns
    -------
    pyspark.sql.DataFrame
        ``id, offset: bigint, length: bigint, copies: bigint, first: boolean``.

    Examples
    --------
    >>> from polars_tadoc.distributed import spark as tadoc_spark
    >>> df = session.createDataFrame([(1, "to be or not to be"), (2, "whether to be or not")], "id int, text string")
    >>> found = tadoc_spark.repeats(df, "text", id="id", length=3)
    >>> sorted(tuple(row) for row in found.collect())
    [(1, 0, 4, 2, True), (2, 1, 4, 2, False)]

    """
    request = RepeatsRequest.from_arguments(**options)
    result = "id {id}, offset bigint, length bigint, copies bigint, first boolean"
    return passages(df, request, column, id, result)


@_documented
def drop_repeats(df: DataFrame, column: str, *, id: str, **options: Unpack[DropRepeatsOnWorkers]) -> DataFrame:
    """Drop repeated passages, or whole documents that repeat others, with the stages of :func:`repeats`.

    The first occurrence is the one in the document of the least id.

    Returns
    -------
    pyspark.sql.DataFrame
        The columns of ``df``, in any order of rows; compressed columns stay compressed.

    Examples
    --------
    >>> from polars_tadoc.distributed import spark as tadoc_spark
    >>> df = session.createDataFrame([(1, "to be or not to be"), (2, "why to be or not")], "id int, text string")
    >>> sorted(tuple(row) for row in tadoc_spark.drop_repeats(df, "text", id="id", length=3).collect())
    [(1, 'to be or not to be'), (2, 'why ')]

    """
    return passages(df, DropRepeatsRequest.from_arguments(**options), column, id, None)


@_documented
def overlap(
    df: DataFrame,
    column: str,
    reference: pl.Series | PassageSet,
    *,
    id: str,
    **options: Unpack[OverlapOnWorkers],
) -> DataFrame:
    """Find passages of at least ``length`` words that occur in a reference, too, without a shuffle.

    Parameters
    ----------
    reference
        Series of Polars, such as the questions of a test set, or a :class:`polars_tadoc.PassageSet`; each task holds
        it.

    Returns
    -------
    pyspark.sql.DataFrame
        ``id, offset: bigint, length: bigint, reference: bigint, reference_offset: bigint``; ``reference`` is a row
        number.

    Examples
    --------
    >>> import polars as pl
    >>> from polars_tadoc.distributed import spark as tadoc_spark
    >>> df = session.createDataFrame([(1, "how many eggs are in a dozen"), (2, "eggs")], "id int, text string")
    >>> found = tadoc_spark.overlap(df, "text", pl.Series(["Say: how many eggs"]), id="id", length=3)
    >>> [tuple(row) for row in found.collect()]
    [(1, 0, 3, 0, 1)]

    """
    request = OverlapRequest.of(reference, None, options)
    result = "id {id}, offset bigint, length bigint, reference bigint, reference_offset bigint"
    return passages(df, request, column, id, result)


@_documented
def near_duplicates(df: DataFrame, column: str, *, id: str, **options: Unpack[NearDuplicatesOptions]) -> DataFrame:
    """Find pairs of documents whose sets of n-grams of words are similar, over all documents.

    Reads documents twice. Words are shuffled once, those of documents that may be similar once more; one task holds 16
    bytes for each document that shares a band with another. ``max_candidates`` is of each task that compares.

    Returns
    -------
    pyspark.sql.DataFrame
        ``id, other, similarity: double``; ``id`` is the lesser one.

    Examples
    --------
    >>> from polars_tadoc.distributed import spark as tadoc_spark
    >>> df = session.createDataFrame([(1, "to be or not"), (2, "to do"), (3, "to be or not be")], "id int, text string")
    >>> found = tadoc_spark.near_duplicates(df, "text", id="id", ngram=2, threshold=0.7)
    >>> [tuple(row) for row in found.collect()]
    [(1, 3, 0.75)]

    """
    request: NearDuplicatesRequest = NearDuplicatesRequest.from_arguments(**options)
    return near(df, request, column, id, "id {id}, other {id}, similarity double")


@_documented
def duplicate_groups(df: DataFrame, column: str, *, id: str, **options: Unpack[NearDuplicatesOptions]) -> DataFrame:
    """Group documents that are copies or near duplicates, with the stages of :func:`near_duplicates`.

    Returns
    -------
    pyspark.sql.DataFrame
        ``id, group, keep: boolean``, all documents; ``group`` is the least id of each.

    Examples
    --------
    >>> from polars_tadoc.distributed import spark as tadoc_spark
    >>> df = session.createDataFrame([(1, "to be or not"), (2, "to do"), (3, "To be or not")], "id int, text string")
    >>> groups = tadoc_spark.duplicate_groups(df, "text", id="id", lowercase=True)
    >>> sorted(tuple(row) for row in groups.collect())
    [(1, 1, True), (2, 2, True), (3, 1, False)]

    """
    request: DuplicateGroupsRequest = DuplicateGroupsRequest.from_arguments(**options)
    return near(df, request, column, id, "id {id}, group {id}, keep boolean")
