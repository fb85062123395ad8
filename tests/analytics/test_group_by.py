"""Counts by group as expressions, against plain Python over each group's rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.analytics import info, inverted_index, ranked_inverted_index
from polars_tadoc.errors import NotCompressedError
from tests import handmade, oracle
from tests.analytic_cases import COLUMN, STRATEGIES, Case, cases, labels, least, strategies, tops, with_labels

WORDS = pl.List(pl.Struct({"word": pl.String, "count": pl.UInt64}))
SEQUENCES = pl.List(pl.Struct({"sequence": pl.List(pl.String), "count": pl.UInt64}))
PAIRS = pl.List(pl.Struct({"word": pl.String, "other": pl.String, "count": pl.UInt64}))
INDEX = pl.List(pl.Struct({"word": pl.String, "documents": pl.List(pl.get_index_type())}))
COUNTED = pl.Struct({"id": pl.get_index_type(), "count": pl.UInt64})
RANKED = pl.List(pl.Struct({"sequence": pl.List(pl.String), "documents": pl.List(COUNTED)}))
Oracle = Callable[..., list[Any]]
CALLS: dict[str, tuple[Oracle, Any]] = {
    "word_count": (oracle.word_count, WORDS),
    "sort": (oracle.sort, WORDS),
    "sequence_count": (oracle.sequence_count, SEQUENCES),
    "cooccurrence": (oracle.cooccurrence, PAIRS),
    "inverted_index": (oracle.inverted_index, INDEX),
    "ranked_inverted_index": (oracle.ranked_inverted_index, RANKED),
}
YEARS = [2001, 2003, 2001, None, 2002, 2003, None, 2001, 2002, 2001, 2004, 2003]


def expression(call: str, **arguments: Any) -> pl.Expr:
    made: pl.Expr = getattr(pl.col("text").tadoc, call)(**arguments)
    return made


def as_rows(counted: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(entry.values()) for entry in counted]


def grouped(case: Case) -> tuple[pl.DataFrame, dict[Any, list[list[str] | None]]]:
    """The case's rows in a frame with years, and the words by year in order of the years' appearance."""
    years = pl.Series("year", YEARS, pl.Int32).head(len(case.column))
    groups: dict[Any, list[list[str] | None]] = {}
    for year, words in zip(years, case.documents, strict=True):
        groups.setdefault(year, []).append(words)
    return pl.DataFrame([years, case.column]), groups


def arguments_of(call: str, n: int, top: int | None, min_count: int) -> dict[str, Any]:
    limits: dict[str, Any] = {"min_count": min_count}
    if call not in ("sort", "inverted_index"):
        limits["top"] = top
    if call in ("sequence_count", "ranked_inverted_index"):
        limits["n"] = n
    return {**limits, "window": n} if call == "cooccurrence" else limits


@pytest.mark.parametrize("call", CALLS)
@given(case=cases(), n=st.integers(1, 4), top=tops, min_count=least, strategy=strategies, lazy=st.booleans())
def test_group_by(
    engine: str, call: str, case: Case, n: int, top: int | None, min_count: int, strategy: str, lazy: bool
) -> None:
    count, dtype = CALLS[call]
    arguments = arguments_of(call, n, top, min_count)
    df, groups = grouped(case)
    plan = (
        df.lazy()
        .group_by("year", maintain_order=True)
        .agg(expression(call, **arguments, strategy=strategy, engine=engine))
    )
    assert plan.collect_schema() == {"year": pl.Int32, "text": dtype}
    got = plan.collect(engine="streaming" if lazy else "in-memory")
    assert got.schema == plan.collect_schema()
    assert got["year"].to_list() == list(groups)
    for counted, words in zip(got["text"].to_list(), groups.values(), strict=True):
        assert as_rows(counted) == count(words, **arguments)


@pytest.mark.parametrize("call", CALLS)
@given(case=cases(normalised=True))
def test_normalised(engine: str, call: str, case: Case) -> None:
    df, groups = grouped(case)
    got = df.group_by("year", maintain_order=True).agg(expression(call, engine=engine, **case.arguments))
    for counted, words in zip(got["text"].to_list(), groups.values(), strict=True):
        assert as_rows(counted) == CALLS[call][0](words)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("collect", ["in-memory", "streaming"])
def test_all_contexts(engine: str, call: str, collect: Any) -> None:
    """Each gives what the frame call gives for the same rows."""
    text = ["a b a", None, "b c", "", "a b", "c c c"]
    df = pl.DataFrame({"year": [1, 2, 1, 3, 2, 1], "day": range(6), "text": text})
    df = df.tadoc.compress("text", rows_per_grammar=4)
    counted, dtype = expression(call, engine=engine), CALLS[call][1]

    def expected(rows: pl.DataFrame) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = getattr(rows.tadoc, call)("text", engine=engine).to_dicts()
        return found

    lf = df.lazy()
    whole = lf.select(counted).collect(engine=collect)
    assert whole.schema == {"text": dtype}
    assert whole["text"].to_list() == [expected(df)]

    by_year = {year: expected(rows) for (year,), rows in df.group_by("year", maintain_order=True)}
    over = lf.select("year", counted=counted.over("year")).collect(engine=collect)
    assert over.schema["counted"] == dtype
    assert over["counted"].to_list() == [by_year[year] for year in df["year"]]

    rolling = lf.rolling("day", period="2i").agg(counted).collect(engine=collect)
    assert rolling["text"].to_list() == [expected(df.slice(max(0, day - 1), min(day + 1, 2))) for day in range(6)]

    filtered = lf.group_by("year", maintain_order=True).agg(
        getattr(pl.col("text").filter(pl.col("day") > 1).tadoc, call)(engine=engine), rows=pl.len()
    )
    later = df.filter(pl.col("day") > 1)
    got = filtered.collect(engine=collect)
    assert got["text"].to_list() == [expected(later.filter(pl.col("year") == year)) for year in (1, 2, 3)]
    assert got["rows"].to_list() == [3, 2, 1]

    flat = lf.group_by("year", maintain_order=True).agg(counted).explode("text", empty_as_null=False).unnest("text")
    entries = [(year, *entry.values()) for year, found in by_year.items() for entry in found]
    assert flat.collect(engine=collect).rows() == entries


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("collect", ["in-memory", "streaming"])
def test_no_rows(engine: str, call: str, collect: Any) -> None:
    lf = COLUMN.clear().to_frame().lazy().with_columns(year=pl.lit(1))
    counted, dtype = expression(call, engine=engine), CALLS[call][1]
    got = lf.group_by("year").agg(counted).collect(engine=collect)
    assert got.schema == {"year": pl.Int32, "text": dtype}
    assert got.is_empty()
    assert lf.select(counted).collect(engine=collect).to_dict(as_series=False) == {"text": [[]]}
    nulls = COLUMN.filter(COLUMN.is_null()).to_frame().lazy().select(counted).collect(engine=collect)
    assert nulls.to_dict(as_series=False) == {"text": [[]]}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_sequence_spans_two_rows_of_a_group(engine: str, strategy: str) -> None:
    df = pl.DataFrame({"g": [1, 1, 2], "text": ["a b", "c d", "b c"]}).tadoc.compress("text")
    arguments = {"strategy": strategy, "engine": engine}
    by_group = df.group_by("g", maintain_order=True)
    sequences = by_group.agg(expression("sequence_count", n=2, **arguments)).explode("text").unnest("text")
    assert sequences.rows() == [(1, ["a", "b"], 1), (1, ["c", "d"], 1), (2, ["b", "c"], 1)]
    pairs = by_group.agg(expression("cooccurrence", **arguments)).explode("text").unnest("text")
    assert pairs.rows() == [(1, "a", "b", 1), (1, "c", "d", 1), (2, "b", "c", 1)]


def test_limits_hold_for_a_group_over_several_grammars(engine: str) -> None:
    parts = [tadoc.compress(pl.Series("text", [text])) for text in ("a a b", "b b c", "c c a", "a b c")]
    df = pl.DataFrame([pl.concat(parts), pl.Series("g", [1, 1, 1, 2])])
    got = df.group_by("g", maintain_order=True).agg(expression("word_count", top=2, min_count=3, engine=engine))
    assert got.to_dicts() == [
        {"g": 1, "text": [{"word": "a", "count": 3}, {"word": "b", "count": 3}]},
        {"g": 2, "text": []},
    ]


def test_counts_beyond_32_bits(engine: str) -> None:
    grammar = handmade.grammar(["a", "b"], [[0, 1], *([k + 2, k + 2] for k in range(40))])
    with tadoc.Config(expansion_limit=1 << 42):
        column = handmade.column(grammar, [[42], [0, 42], [1]])
        df = pl.DataFrame([column, pl.Series("g", [1, 1, 2])])
        for call, (_, dtype) in CALLS.items():
            got = df.group_by("g", maintain_order=True).agg(expression(call, engine=engine))
            assert got.schema["text"] == dtype
            for counted, rows in zip(got["text"].to_list(), (df.head(2), df.tail(1)), strict=True):
                assert counted == getattr(rows.tadoc, call)("text", engine=engine).to_dicts()


def test_many_groups_of_many_rows(engine: str) -> None:
    rows = [f"w{k % 7} w{k % 11} the w{k % 3}" for k in range(3000)]
    df = pl.DataFrame({"g": [k * 7919 % 1009 for k in range(3000)], "text": rows}).tadoc.compress("text")
    for call in CALLS:
        got = df.group_by("g", maintain_order=True).agg(expression(call, engine=engine))
        for sample in (0, 500, 1008):
            group = df.filter(pl.col("g") == got["g"][sample])
            assert got["text"][sample].struct.unnest().equals(getattr(group.tadoc, call)("text", engine=engine))


@given(case=cases(), top=tops, min_count=least, strategy=strategies, streaming=st.booleans())
def test_term_vector_by_row(
    engine: str, case: Case, top: int | None, min_count: int, strategy: str, streaming: bool
) -> None:
    counted = expression("term_vector", top=top, min_count=min_count, strategy=strategy, engine=engine)
    got = case.column.to_frame().lazy().select(counted).collect(engine="streaming" if streaming else "in-memory")
    assert got.schema == {"text": WORDS}
    assert [row if row is None else as_rows(row) for row in got["text"].to_list()] == [
        None if words is None else oracle.word_count([words], top, min_count) for words in case.documents
    ]


@pytest.mark.parametrize(
    ("call", "arguments", "error", "message"),
    [
        ("word_count", {"top": -1}, ValueError, "top=-1 must be at least 0"),
        ("sequence_count", {"n": 0}, ValueError, "n=0 must be at least 1"),
        ("cooccurrence", {"window": 1.5}, TypeError, "window=1.5 must be an integer"),
        ("sort", {"strategy": "sideways"}, ValueError, "sideways"),
        ("term_vector", {"stopwords": "the"}, TypeError, r'\["the"\]'),
    ],
)
def test_wrong_arguments(call: str, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    """Reported when the expression is made, not when the plan runs."""
    with pytest.raises(error, match=message):
        expression(call, **arguments)


@pytest.mark.parametrize("call", [*CALLS, "term_vector"])
def test_not_compressed(call: str) -> None:
    df = pl.DataFrame({"g": [1], "text": [1]})
    with pytest.raises((NotCompressedError, pl.exceptions.ComputeError), match=f'{call}: column "text" is Int64'):
        df.group_by("g").agg(expression(call))


INDEXES = {
    "inverted_index": (inverted_index, oracle.inverted_index),
    "ranked_inverted_index": (ranked_inverted_index, oracle.ranked_inverted_index),
}


@pytest.mark.parametrize("call", INDEXES)
@given(
    case=cases(normalised=True),
    values=labels.filter(lambda values: values is not None),
    n=st.integers(1, 3),
    top=tops,
    min_count=least,
    streaming=st.booleans(),
    by_name=st.booleans(),
)
def test_labelled_indexes(
    engine: str,
    call: str,
    case: Case,
    values: pl.Series,
    n: int,
    top: int | None,
    min_count: int,
    streaming: bool,
    by_name: bool,
) -> None:
    frame, _, _ = with_labels(case, values)
    years = pl.Series("year", YEARS, pl.Int32).head(len(frame))
    groups: dict[Any, tuple[list[Any], list[Any]]] = {}
    for year, words, label in zip(years, case.documents, frame["label"].to_list(), strict=True):
        rows = groups.setdefault(year, ([], []))
        rows[0].append(words)
        rows[1].append(label)
    arguments = arguments_of(call, n, top, min_count)
    module, expected = INDEXES[call]
    id = "label" if by_name else pl.col("label").alias("text")
    lf = frame.with_columns(years).lazy().group_by("year", maintain_order=True)
    plan = lf.agg(expression(call, id=id, engine=engine, **case.arguments, **arguments))
    dtype = pl.List(pl.Struct(module.schema(frame.schema["label"])))
    assert plan.collect_schema() == {"year": pl.Int32, "text": dtype}
    got = plan.collect(engine="streaming" if streaming else "in-memory")
    assert got.schema["text"] == dtype
    assert got["year"].to_list() == list(groups)
    for found, (documents, named) in zip(got["text"].to_list(), groups.values(), strict=True):
        assert as_rows(found) == expected(documents, named, **arguments)


@pytest.mark.parametrize("collect", ["in-memory", "streaming"])
@pytest.mark.parametrize("call", INDEXES)
def test_labels_in_all_contexts(engine: str, call: str, collect: Any) -> None:
    df = pl.DataFrame({"year": [1, 2, 1, 2], "^d.*$": [7, 8, 9, 10], "text": ["a b", "b", None, "a a"]})
    df = df.tadoc.compress("text", rows_per_grammar=2)
    labelled = expression(call, id="^d.*$", engine=engine)

    def expected(rows: pl.DataFrame) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = getattr(rows.tadoc, call)("text", id="^d.*$", engine=engine).to_dicts()
        return found

    by_year = {year: expected(df.filter(pl.col("year") == year)) for year in (1, 2)}
    lf = df.lazy()
    assert lf.select(labelled).collect(engine=collect)["text"].to_list() == [expected(df)]
    over = lf.select(labelled.over("year")).collect(engine=collect)
    assert over["text"].to_list() == [by_year[year] for year in df["year"]]
    renamed = lf.group_by("year", maintain_order=True).agg(labelled.alias("index"), labelled.name.suffix("!"))
    got = renamed.collect(engine=collect)
    assert got.columns == ["year", "index", "text!"]
    assert got["index"].to_list() == got["text!"].to_list() == list(by_year.values())
    everywhere = lf.select(expression(call, id=pl.lit("x"), engine=engine)).collect(engine=collect)
    assert everywhere.schema["text"].inner.fields[1].dtype.inner in (
        pl.String,
        pl.Struct({"id": pl.String, "count": pl.UInt64}),
    )  # type: ignore[attr-defined]


@pytest.mark.parametrize("call", INDEXES)
def test_wrong_labels(call: str) -> None:
    with pytest.raises(TypeError, match=f"{call}: id is int, not an expression or a column's name"):
        expression(call, id=7)
    with pytest.raises(pl.exceptions.ColumnNotFoundError):
        COLUMN.to_frame().select(expression(call, id="nothing"))
    frame = COLUMN.to_frame().with_columns(id=pl.lit(1, pl.Int128))
    with pytest.raises((TypeError, pl.exceptions.ComputeError), match="Int128, which results cannot hold"):
        frame.select(expression(call, id="id"))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("collect", ["in-memory", "streaming"])
def test_within_other_expressions(engine: str, call: str, collect: Any) -> None:
    """In filters, branches and beside columns, by length and by what is found."""
    df = pl.DataFrame({"year": [1, 2, 1, 3], "text": ["a b a", None, "b c a", ""]}).tadoc.compress("text")
    counted = expression(call, engine=engine)
    lf = df.lazy()

    def entries(rows: pl.DataFrame) -> int:
        return int(getattr(rows.tadoc, call)("text", engine=engine).height)

    by_year = {year: entries(df.filter(pl.col("year") == year)) for year in (1, 2, 3)}
    sizes = [by_year[year] for year in df["year"]]
    beside = lf.with_columns(size=counted.list.len().over("year"), all=counted.list.len())
    assert beside.select("size", "all").collect(engine=collect).rows() == [(size, entries(df)) for size in sizes]
    kept = lf.filter(counted.list.len().over("year") > 0).select("year").collect(engine=collect)
    assert kept["year"].to_list() == [year for year, size in zip(df["year"], sizes, strict=True) if size]
    branch = pl.when(pl.len() > 1).then(counted).otherwise(None)
    got = lf.group_by("year", maintain_order=True).agg(branch.alias("found")).collect(engine=collect)
    assert got["found"].list.len().to_list() == [by_year[1], None, None]
    rest = getattr(pl.when(pl.col("year") == 1).then("text").tadoc, call)(engine=engine)
    assert lf.select(rest.list.len()).collect(engine=collect).item() == by_year[1]


@pytest.mark.parametrize("collect", ["in-memory", "streaming"])
def test_info(collect: Any) -> None:
    df = pl.DataFrame({"year": [1, 2, 1, 3, 2, 1], "text": ["a b a", None, "b c", "", "a b", "c c c"]})
    df = df.tadoc.compress("text", rows_per_grammar=4)
    described = pl.col("text").tadoc.info()  # type: ignore[attr-defined]
    lf = df.lazy()
    plan = lf.group_by("year", maintain_order=True).agg(described)
    assert plan.collect_schema() == {"year": pl.Int64, "text": pl.Struct(info.SCHEMA)}
    got = plan.collect(engine=collect)
    assert got.schema == plan.collect_schema()
    assert got["text"].to_list() == [df.filter(pl.col("year") == year).tadoc.info().to_dicts()[0] for year in (1, 2, 3)]
    assert lf.select(described).collect(engine=collect)["text"].to_list() == df.tadoc.info().to_dicts()
    over = lf.select(described.struct.field("rows").over("year")).collect(engine=collect)
    assert over.to_series().to_list() == [3, 2, 3, 1, 2, 3]
    assert df.clear().select(described)["text"].struct.field("rows").to_list() == [0]


@pytest.mark.parametrize("collect", ["in-memory", "streaming"])
def test_rows_within_other_expressions(engine: str, collect: Any) -> None:
    """What is counted for each row stays with it."""
    df = pl.DataFrame({"year": [1, 2, 1, 3], "text": ["a b a", None, "b c a", ""]}).tadoc.compress("text")
    rows = expression("term_vector", engine=engine)
    expected = [[("a", 2), ("b", 1)], None, [("a", 1), ("b", 1), ("c", 1)], []]
    lf = df.lazy()

    def as_tuples(series: pl.Series) -> list[Any]:
        return [row if row is None else as_rows(row) for row in series.to_list()]

    assert as_tuples(lf.with_columns(rows.alias("found")).collect(engine=collect)["found"]) == expected
    assert lf.filter(rows.list.len() > 2).select("year").collect(engine=collect)["year"].to_list() == [1]
    assert as_tuples(lf.select(rows.over("year")).collect(engine=collect)["text"]) == expected
    branch = pl.when(pl.col("year") == 1).then(rows).otherwise(None)
    assert as_tuples(lf.select(branch.alias("t")).collect(engine=collect)["t"]) == [
        expected[0],
        None,
        expected[2],
        None,
    ]
    grouped = lf.group_by("year", maintain_order=True).agg(rows).explode("text").collect(engine=collect)
    assert as_tuples(grouped["text"]) == [expected[0], expected[2], None, []]
