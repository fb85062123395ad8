"""Which documents hold each word, against dicts in plain Python."""

from __future__ import annotations

import re

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given

import polars_tadoc as tadoc
from polars_tadoc.errors import ColumnMissingError, NotCompressedError
from tests import handmade, oracle
from tests.analytic_cases import COLUMN, LABELS, STRATEGIES, Case, cases, labels, least, strategies, with_labels

ROW = pl.get_index_type()
SCHEMA = {"word": pl.String, "documents": pl.List(ROW)}


@given(case=cases(), id_=labels, min_count=least, strategy=strategies)
def test_inverted_index(engine: str, case: Case, id_: pl.Series | None, min_count: int, strategy: str) -> None:
    frame, named, values = with_labels(case, id_)
    got = frame.tadoc.inverted_index("text", **named, min_count=min_count, strategy=strategy, engine=engine)
    assert got.schema == {**SCHEMA, "documents": pl.List(ROW if id_ is None else id_.dtype)}
    assert got.rows() == oracle.inverted_index(case.documents, values, min_count)


def test_null_rows_count_as_rows(engine: str) -> None:
    column = tadoc.compress(pl.Series([None, "a", None, "a b"]), rows_per_grammar=1)
    assert column.tadoc.inverted_index(engine=engine).rows() == [("a", [1, 3]), ("b", [3])]
    assert column.filter([False, True, True, True]).tadoc.inverted_index(engine=engine).rows() == [
        ("a", [0, 2]),
        ("b", [2]),
    ]


def test_documents_stand_in_row_order_across_grammars(engine: str) -> None:
    mixed = pl.concat([tadoc.compress(pl.Series([text])) for text in ("a b", "a", "c a", "b")])[[3, 1, 0, 2, 0]]
    got = mixed.tadoc.inverted_index(engine=engine).rows()
    assert got == [("a", [1, 2, 3, 4]), ("b", [0, 2, 4]), ("c", [3])]


def test_equal_labels_are_not_merged(engine: str) -> None:
    frame = pl.DataFrame({"day": [5, 5], "text": ["a", "a"]}).tadoc.compress("text")
    assert frame.tadoc.inverted_index("text", id="day", engine=engine).rows() == [("a", [5, 5])]


def test_many_documents_of_one_symbol(engine: str) -> None:
    """The same rule in every row: each row is listed, whatever the block size."""
    column = handmade.column(handmade.grammar(["a", "b"], [[0, 1]]), [[2]] * 1025 + [[1]])
    for strategy in STRATEGIES:
        got = column.tadoc.inverted_index(strategy=strategy, engine=engine).rows()
        assert got == [("a", list(range(1025))), ("b", list(range(1026)))]


def test_arrow_type_of_labels(engine: str) -> None:
    for column in (COLUMN, COLUMN.clear()):
        table = tadoc.inverted_index(column, id=LABELS["dates"].head(len(column)), engine=engine)
        assert table.schema.field("documents").type == pa.large_list(pa.date32())


@pytest.mark.parametrize("call", ["inverted_index", "term_vector", "ranked_inverted_index"])
def test_wrong_columns(call: str) -> None:
    df = COLUMN.to_frame().with_columns(year=pl.lit(1))
    for frame in (df, df.lazy()):
        with pytest.raises(ColumnMissingError, match=rf'{call}: there is no column "yaer"; did you mean "year"\?'):
            getattr(frame.tadoc, call)("text", id="yaer")
        with pytest.raises(TypeError, match=f"{call}.*id"):
            getattr(frame.tadoc, call)("text", id=LABELS["dates"])
        with pytest.raises(NotCompressedError, match=f'{call}: column "year" is Int32'):
            getattr(frame.tadoc, call)("year", id="year")


@pytest.mark.parametrize("call", ["inverted_index", "term_vector", "ranked_inverted_index"])
@pytest.mark.parametrize(
    ("dtype", "mend"),
    [
        (pl.Int128(), "cast it to String first"),
        (pl.UInt128(), "cast it to String first"),
        (pl.List(pl.Int128), r"cast it to List\(String\) first"),
        (pl.Array(pl.Int128, 2), r"cast it to Array\(String, shape=\(2,\)\) first"),
        (pl.Struct({"a": pl.UInt128, "b": pl.String}), r"cast it to Struct\({'a': String, 'b': String}\) first"),
        (pl.Array(pl.Int64, 0), r"cast it to List\(Int64\) first"),
        (pl.Object(), r'make strings of it first: pl.Series\("key", \[str\(value\) for value in df\["key"\]\]\)'),
    ],
    ids=repr,
)
def test_labels_that_results_cannot_hold(call: str, dtype: pl.DataType, mend: str) -> None:
    df = COLUMN.to_frame().with_columns(pl.Series("key", [None] * len(COLUMN), dtype))
    message = rf'^{call}: id is column "key" of type {re.escape(str(dtype))}, which results cannot hold; .*{mend}$'
    for run in (
        lambda: getattr(tadoc, call)(COLUMN, id=df["key"]),
        lambda: getattr(df["text"].tadoc, call)(id=df["key"]),
        lambda: getattr(df.tadoc, call)("text", id="key"),
        lambda: getattr(df.lazy().tadoc, call)("text", id="key"),
    ):
        with pytest.raises(TypeError, match=message):
            run()


@pytest.mark.parametrize(
    "key",
    [
        pl.Series([2**100] * 5, dtype=pl.Int128).cast(pl.String),
        pl.Series([[2**100], None, [], [1], [2]], dtype=pl.List(pl.Int128)).cast(pl.List(pl.String)),
        pl.Series([[]] * 5, dtype=pl.Array(pl.Int64, 0)).cast(pl.List(pl.Int64)),
        pl.Series([str(value) for value in pl.Series([object()] * 5, dtype=pl.Object)]),
    ],
    ids=lambda key: str(key.dtype),
)
def test_labels_mended(key: pl.Series) -> None:
    index = COLUMN.to_frame().with_columns(key.alias("key")).tadoc.inverted_index("text", id="key")
    assert index["word"][0] == "a"
    assert index["documents"][0].to_list() == key.tail(1).to_list()


@pytest.mark.parametrize("call", ["inverted_index", "term_vector", "ranked_inverted_index"])
def test_labels_of_another_length(call: str) -> None:
    for count, rows, said in (
        (1, 5, "1 label for 5 rows"),
        (5, 1, "5 labels for 1 row"),
        (0, 2, "0 labels for 2 rows"),
    ):
        with pytest.raises(ValueError, match=f"^{call}: id has {said}$"):
            getattr(tadoc, call)(COLUMN.head(rows), id=pl.Series(range(count)))
