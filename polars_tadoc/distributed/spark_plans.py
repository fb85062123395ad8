"""Plans of calls on Spark: which tasks run over which columns, and how their rows are grouped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from polars_tadoc.analytics.cleaning.overlap import OverlapRequest
from polars_tadoc.analytics.cleaning.sent_near import NearRequest
from polars_tadoc.distributed.passage_tasks import PassageRequest
from polars_tadoc.distributed.spark_near import NEAR, AskedNear
from polars_tadoc.distributed.spark_passages import PASSAGES, AskedPassages
from polars_tadoc.distributed.spark_tasks import FOUND, TERMS, Asked, Rows
from polars_tadoc.errors import ColumnMissingError
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.kernels.host.passages.stretches import draw_grams
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.traversal.text_corpus import WORDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType


SHARDS = 200
"""Number of merging tasks if ``spark.sql.shuffle.partitions`` is not a number; Spark's own default."""


def merged(df: DataFrame, request: Analytic[Any, Any], column: str, id: str | None, result: str) -> DataFrame:
    """Run an analytic that merges over all tasks; ``{id}`` in the result's columns is the labels' type."""
    asked, rows, schema = _asked(df, request, column, id, result)
    found = rows.mapInArrow(lambda batches: asked.find(batches), _spark_schema(FOUND))
    return found.groupBy("shard").applyInArrow(lambda table: asked.merge(table), schema)


def by_document(df: DataFrame, request: Analytic[Any, Any], column: str, id: str, result: str) -> DataFrame:
    """Run an analytic that needs one document at a time."""
    asked, rows, schema = _asked(df, request, column, id, result)
    return rows.mapInArrow(lambda batches: asked.answer(batches), schema)


def weighed(df: DataFrame, request: Analytic[Any, Any], column: str, id: str) -> DataFrame:
    """Run an analytic that weighs words: count document frequencies, then weigh the documents' words."""
    asked, rows, schema = _asked(df, request, column, id, "id {id}, word string, weight double")
    terms = _spark_schema(TERMS)
    found = rows.mapInArrow(lambda batches: asked.find_terms(batches), terms)
    counted = found.groupBy("shard").applyInArrow(lambda table: asked.count_documents(table), terms)
    return counted.groupBy("part").applyInArrow(lambda table: asked.weigh(table), schema)


def best(made: DataFrame, top: int | None, *keys: str) -> DataFrame:
    """Return the first rows over the first rows of all shards."""
    if top is None:
        return made
    return made.orderBy(made["count"].desc(), *keys).limit(top)


def _asked(
    df: DataFrame, request: Analytic[Any, Any], column: str, id: str | None, result: str
) -> tuple[Asked, DataFrame, StructType]:
    """Check the columns; return the call, the columns that tasks read, and those of the result."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    packed, label = _checked(df, request.name, column, id, request.options.tokenizer)
    schema = cast("StructType", StructType.fromDDL(result.format(id=label)))
    names = list(dict.fromkeys([column] if id is None else [column, id]))
    rows = Rows(column, id, packed, request.options.tokenizer or WORDS)
    asked = Asked(request, rows, _shards(df), to_arrow_schema(schema), threads(df))
    return asked, _selected(df, names), schema


def passages(df: DataFrame, request: PassageRequest, column: str, id: str, result: str | None) -> DataFrame:
    """Run a call about passages; ``result`` None: the columns are those of the frame."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructField, StructType

    tokenizer = None if isinstance(request, OverlapRequest) else request.tokenizer
    packed, label = _checked(df, request.name, column, id, tokenizer)
    schema = df.schema if result is None else cast("StructType", StructType.fromDDL(result.format(id=label)))
    names = df.columns if result is None else list(dict.fromkeys([column, id]))
    grams = None if isinstance(request, OverlapRequest) else draw_grams(request.length)
    plain = schema
    if result is None:
        plain = StructType([StructField(f"c{place}", one.dataType) for place, one in enumerate(schema)])
    asked = AskedPassages(
        request,
        column,
        names.index(column),
        names.index(id),
        packed,
        grams,
        _shards(df),
        to_arrow_schema(plain),
        threads(df),
    )
    rows = _selected(df, names)
    if grams is None:
        return rows.mapInArrow(lambda batches: asked.match(batches), plain).toDF(*schema.names)
    sent = _spark_schema(PASSAGES)
    found = rows.mapInArrow(lambda batches: asked.find(batches), sent)
    compared = found.groupBy("shard").applyInArrow(lambda table: asked.compare(table), sent)
    return compared.groupBy("part").applyInArrow(lambda table: asked.finish(table), plain).toDF(*schema.names)


def near(df: DataFrame, request: NearRequest, column: str, id: str, result: str) -> DataFrame:
    """Run a call about near duplicates."""
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    packed, label = _checked(df, request.name, column, id, request.tokenizer)
    schema, sent = cast("StructType", StructType.fromDDL(result.format(id=label))), _spark_schema(NEAR)
    names = list(dict.fromkeys([column, id]))
    place = names.index(id)
    asked = AskedNear(request, column, 0, place, packed, _shards(df), to_arrow_schema(schema), threads(df))
    rows = _selected(df, names)
    signed = rows.mapInArrow(lambda batches: asked.sign(batches), sent)
    joined = signed.groupBy("shard").applyInArrow(lambda table: asked.join(table), sent)
    given = joined.groupBy("shard").applyInArrow(lambda table: asked.assign(table), sent)
    given = given.union(rows.mapInArrow(lambda batches: asked.send(batches), sent))
    routed = given.groupBy("shard").applyInArrow(lambda table: asked.route(table), sent)
    return routed.groupBy("shard").applyInArrow(lambda table: asked.compare(table), schema)


def _checked(
    df: DataFrame, call: str, column: str, id: str | None, tokenizer: Tokenizer | None
) -> tuple[bool, str | None]:
    """Check the columns of a call; return whether the column has cells, and the type of the labels."""
    from pyspark.sql.types import BinaryType, StringType

    kind = column_type(df, column, call)
    packed = isinstance(kind, BinaryType)
    if not packed and not isinstance(kind, StringType):
        raise TypeError(
            f'{call}: column "{column}" is {kind.simpleString()}, not string or cells made by spark.compress; cast it'
        )
    if packed and tokenizer is not None:
        raise TypeError(f'{call}: tokenizer= is for columns of text; column "{column}" is tokenized already; remove it')
    if id is None:
        return packed, None
    label = column_type(df, id, call)
    if packed:
        label = _element(label, id, call)
    _require_label(label, id, call)
    return packed, label.simpleString()


def _shards(df: DataFrame) -> int:
    """Return the number of merging tasks."""
    shards = str(df.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    return int(shards) if shards.isdigit() else SHARDS


def column_type(df: DataFrame, name: object, call: str) -> DataType:
    """Return a column's type; errors list the existing columns."""
    if not hasattr(df, "mapInArrow"):
        raise TypeError(f"{call} takes a Spark DataFrame, not {type(df).__name__}")
    if not isinstance(name, str):
        raise TypeError(f"{call}: column name is {type(name).__name__}, not a string")
    if name not in df.columns:
        raise ColumnMissingError.for_name(name, df.columns, call)
    return df.schema[name].dataType


def _element(array: DataType, name: str, call: str) -> DataType:
    from pyspark.sql.types import ArrayType

    if not isinstance(array, ArrayType):
        raise TypeError(
            f'{call}: id is column "{name}" of type {array.simpleString()}; beside a compressed column it must be an '
            "array with one value per document, as made by spark.compress"
        )
    return array.elementType


def _require_label(label: DataType, name: str, call: str) -> None:
    from pyspark.sql.types import BooleanType, DateType, NumericType, StringType, TimestampNTZType, TimestampType

    if not isinstance(label, BooleanType | DateType | NumericType | StringType | TimestampNTZType | TimestampType):
        raise TypeError(
            f'{call}: id is column "{name}" of type {label.simpleString()}; ids must be strings, numbers, '
            "dates or times: cast it"
        )


def plainly_named(df: DataFrame) -> DataFrame:
    """Rename columns to their positions: Spark does not map columns with dots in their names."""
    return df.toDF(*(f"c{place}" for place in range(len(df.columns))))


def threads(df: DataFrame) -> int:
    """Return the cores per task."""
    return int(df.sparkSession.conf.get("spark.task.cpus", "1") or 1)


def _selected(df: DataFrame, names: list[str]) -> DataFrame:
    """Select columns, named by their positions."""
    return plainly_named(df).select(*(f"c{df.columns.index(name)}" for name in names))


def _spark_schema(schema: Any) -> StructType:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)
