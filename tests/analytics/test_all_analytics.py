"""What holds for analytics alike: all calls agree, columns without words, limits, types, wrong arguments."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from tests import oracle
from tests.analytic_cases import (
    COLUMN,
    LABELS,
    NOTHING,
    STRATEGIES,
    Case,
    cases,
    least,
    same_by_every_call,
    strategies,
    tops,
)

ROW = pl.get_index_type()
FRAME = COLUMN.to_frame().with_columns(labels.head(len(COLUMN)).alias(name) for name, labels in LABELS.items())
SIZES = {"sequence_count": "n", "ranked_inverted_index": "n", "cooccurrence": "window"}
"""The option that says how long sequences are, or how near words."""
LABELLED = ("inverted_index", "term_vector", "ranked_inverted_index", "bm25_weights", "tfidf")
ARGUMENTS: dict[str, list[dict[str, Any]]] = {
    "sort": [{}, {"min_count": 2, "lowercase": True, "stopwords": ["the"]}],
    "inverted_index": [
        {},
        {"min_count": 2},
        {"id": "dates"},
        {"id": "dates", "lowercase": True, "stopwords": ["the"]},
    ],
    "term_vector": [
        {},
        {"top": 2, "min_count": 2},
        {"id": "strings", "top": 1},
        {"id": "strings", "lowercase": True},
    ],
    "ranked_inverted_index": [
        {},
        {"n": 2, "top": 1},
        {"id": "some null", "min_count": 2},
        {"id": "some null", "lowercase": True},
    ],
    "sequence_count": [{}, {"n": 2, "top": 3}, {"n": 1, "min_count": 2}, {"n": 4, "lowercase": True}],
    "cooccurrence": [{}, {"window": 1, "top": 3}, {"window": 2, "min_count": 2, "lowercase": True}],
    "bm25_weights": [
        {},
        {"top": 2, "scoring": "bm25l"},
        {"id": "strings", "top": 1},
        {"id": "strings", "lowercase": True},
    ],
    "tfidf": [{}, {"top": 2, "norm": "l1"}, {"id": "strings", "top": 1}, {"id": "strings", "lowercase": True}],
}


def schema(call: str, label: Any = ROW) -> dict[str, Any]:
    """The columns of a call's result."""
    words = {"word": pl.String()}
    return {
        "sort": {**words, "count": pl.UInt64()},
        "inverted_index": {**words, "documents": pl.List(label)},
        "term_vector": {"id": label, **words, "count": pl.UInt64()},
        "bm25_weights": {"id": label, **words, "weight": pl.Float64()},
        "tfidf": {"id": label, **words, "weight": pl.Float64()},
        "sequence_count": {"sequence": pl.List(pl.String), "count": pl.UInt64()},
        "cooccurrence": {**words, "other": pl.String(), "count": pl.UInt64()},
        "ranked_inverted_index": {
            "sequence": pl.List(pl.String),
            "documents": pl.List(pl.Struct({"id": label, "count": pl.UInt64})),
        },
    }[call]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("call", ARGUMENTS)
def test_all_calls_agree(engine: str, call: str, strategy: str) -> None:
    for arguments in ARGUMENTS[call]:
        frame = FRAME.select("text", *([arguments["id"]] if "id" in arguments else []))
        same_by_every_call(call, frame, {**arguments, "strategy": strategy, "engine": engine})


@pytest.mark.parametrize("call", ["sort", "inverted_index", "term_vector"])
@given(case=cases(normalised=True), strategy=strategies)
def test_normalised(engine: str, call: str, case: Case, strategy: str) -> None:
    got = getattr(case.column.tadoc, call)(strategy=strategy, engine=engine, **case.arguments)
    assert got.schema == schema(call)
    assert got.rows() == getattr(oracle, call)(case.documents)


@given(case=cases(normalised=True), top=tops, strategy=strategies)
def test_normalised_and_the_most(engine: str, case: Case, top: int | None, strategy: str) -> None:
    got = case.column.tadoc.term_vector(top=top, strategy=strategy, engine=engine, **case.arguments)
    assert got.rows() == oracle.term_vector(case.documents, top=top)


@pytest.mark.parametrize("call", SIZES)
@given(case=cases(normalised=True), size=st.integers(1, 4), strategy=strategies)
def test_normalised_sequences(engine: str, call: str, case: Case, size: int, strategy: str) -> None:
    own = {SIZES[call]: size}
    got = getattr(case.column.tadoc, call)(**own, strategy=strategy, engine=engine, **case.arguments)
    assert got.schema == schema(call)
    assert got.rows() == getattr(oracle, call)(case.documents, **own)


@pytest.mark.parametrize("call", ["sequence_count", "cooccurrence"])
@given(case=cases(), size=st.integers(1, 8), top=tops, min_count=least, strategy=strategies)
def test_sequences(
    engine: str, call: str, case: Case, size: int, top: int | None, min_count: int, strategy: str
) -> None:
    own = {SIZES[call]: size, "top": top, "min_count": min_count}
    got = getattr(case.column.tadoc, call)(**own, strategy=strategy, engine=engine)
    assert got.schema == schema(call)
    assert got.rows() == getattr(oracle, call)(case.documents, **own)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("call", ["term_vector", *SIZES])
def test_limits_beyond_64_bits(engine: str, call: str, strategy: str) -> None:
    def count(**limits: int) -> pl.DataFrame:
        return getattr(COLUMN.tadoc, call)(**limits, strategy=strategy, engine=engine)  # type: ignore[no-any-return]

    assert count(top=10**30).equals(count(min_count=-(10**30)))
    assert count(min_count=10**30).is_empty()


@pytest.mark.parametrize("n", [9, 20, 1000])
@pytest.mark.parametrize("words", [3, 400])
@pytest.mark.parametrize("call", ["sequence_count", "ranked_inverted_index"])
def test_long_sequences_of_two_grammars(engine: str, call: str, n: int, words: int) -> None:
    """Too long to be packed into one number when the grammars' sequences are joined; some are in both."""
    generator = random.Random(n)
    rows = [[f"w{generator.randrange(words)}" for _ in range(n + 30)] for _ in range(2)]
    rows += [[*rows[0][5:], "a"], rows[1][:-3]]
    column = tadoc.compress(pl.Series([" ".join(row) for row in rows]), rows_per_grammar=2)
    for limits in ({}, {"top": 7, "min_count": 2}, {"top": 1, "min_count": 2}):
        got = getattr(column.tadoc, call)(n=n, engine=engine, **limits)
        assert got.rows() == getattr(oracle, call)(rows, n=n, **limits)


def _nothing() -> list[Any]:
    """Calls, rows in which they find nothing, and labels: every pair of them, not all combinations."""
    more: dict[str, list[list[str | None]]] = {call: [["a b", "c d"]] for call in SIZES} | {
        "cooccurrence": [["a", "b"]]
    }
    made = []
    for call in ARGUMENTS:
        for turn, rows in enumerate([*NOTHING, *more.get(call, [])]):
            labels_ = list(LABELS)[-(turn + LABELLED.index(call)) % 3 :: 3] if call in LABELLED else []
            made += [pytest.param(call, rows, name, id=f"{call}-{rows}-{name}") for name in (None, *labels_)]
    return made


@pytest.mark.parametrize(("call", "rows", "id_"), _nothing())
def test_nothing_to_find(engine: str, call: str, rows: list[str | None], id_: str | None) -> None:
    text = pl.Series("text", rows, pl.String)
    arguments = [{}, {"lowercase": True}, {"stopwords": ["z"]}] + [{"top": 0}, {"top": 3}] * ("top" in _options(call))
    dtype, named = ROW, {}
    for column in (tadoc.compress(text), text):
        frame = column.to_frame()
        if id_:
            frame = frame.with_columns(LABELS[id_].head(len(frame)).alias("label"))
            dtype, named = LABELS[id_].dtype, {"id": "label"}
        for own in arguments:
            given_ = {**named, **own, "engine": engine}
            lazy = getattr(frame.lazy().tadoc, call)("text", **given_)
            for got in (getattr(frame.tadoc, call)("text", **given_), lazy.collect()):
                assert got.schema == schema(call, dtype)
                assert got.is_empty()


def _options(call: str) -> set[str]:
    return set(getattr(tadoc, call).__signature__.parameters)


def _categories(dtype: pl.DataType) -> pl.DataType:
    return {"String": pl.Categorical(), "List(String)": pl.List(pl.Categorical)}.get(str(dtype), dtype)


@pytest.mark.parametrize("call", ["word_count", *ARGUMENTS])
def test_words_as_categories(engine: str, call: str) -> None:
    """The same words in the same order, of type ``Categorical``; in lazy plans, under a limit and of no rows too."""
    named = {"id": "dates"} if call in LABELLED else {}
    for column in (COLUMN, COLUMN.tadoc.decompress(), COLUMN.clear(), COLUMN.tadoc.decompress().clear()):
        frame = column.to_frame().with_columns(LABELS["dates"].head(len(column)).alias("dates"))
        strings = getattr(frame.tadoc, call)("text", engine=engine, **named)
        got = getattr(frame.tadoc, call)("text", words="categorical", engine=engine, **named)
        types = {name: dtype if name == "documents" else _categories(dtype) for name, dtype in strings.schema.items()}
        assert dict(got.schema) == types
        assert got.cast(strings.schema).equals(strings)
        for limit in (None, "2GB"):
            lazy = getattr(frame.lazy().tadoc, call)
            plan = lazy("text", words="categorical", engine=engine, memory_limit=limit, **named)
            assert plan.collect_schema() == got.schema
            assert plan.collect().equals(got)
    alone = {} if call not in LABELLED else {"id": LABELS["dates"].head(len(COLUMN))}
    assert getattr(COLUMN.tadoc, call)(words="categorical", engine=engine, **alone).schema == got.schema
    with pytest.raises(ValueError, match='words=\'enum\': use "string" or "categorical"'):
        getattr(COLUMN.tadoc, call)(words="enum")


@pytest.mark.parametrize("call", ["word_count", "term_vector", "sequence_count", "cooccurrence", "tfidf"])
def test_a_few_of_many_words_as_categories(engine: str, call: str) -> None:
    frame = pl.DataFrame({"text": [" ".join(f"w{number:02}" for number in range(90))]}).tadoc.compress("text")
    got = getattr(frame.tadoc, call)("text", top=2, words="categorical", engine=engine)
    strings = getattr(frame.tadoc, call)("text", top=2, engine=engine)
    assert len(got) == 2
    assert got.cast(strings.schema).equals(strings)
    assert [_categories(dtype) for dtype in strings.dtypes] == got.dtypes


_COUNT, _ROW = pa.uint64(), pa.uint32()
ARROW: dict[str, dict[str, Any]] = {
    "sort": {"word": "word", "count": _COUNT},
    "inverted_index": {"word": "word", "documents": pa.large_list(_ROW)},
    "term_vector": {"id": _ROW, "word": "word", "count": _COUNT},
    "bm25_weights": {"id": _ROW, "word": "word", "weight": pa.float64()},
    "tfidf": {"id": _ROW, "word": "word", "weight": pa.float64()},
    "sequence_count": {"sequence": "words", "count": _COUNT},
    "cooccurrence": {"word": "word", "other": "word", "count": _COUNT},
    "ranked_inverted_index": {
        "sequence": "words",
        "documents": pa.large_list(pa.struct({"id": _ROW, "count": _COUNT})),
    },
}
"""Arrow types of results; "word" is a dictionary of strings, "words" a list of these."""


def _short(kind: pa.DataType) -> Any:
    if pa.types.is_dictionary(kind) and kind.value_type == pa.large_string():
        return "word"
    return "words" if pa.types.is_large_list(kind) and _short(kind.value_type) == "word" else kind


def _given(call: str) -> list[dict[str, Any]]:
    named = [("top", 1), ("top", 0), ("min_count", 3), ("min_count", 99), (SIZES.get(call), 1)]
    return [{}, *({name: value} for name, value in named if name in _options(call))]


@pytest.mark.parametrize(("call", "arguments"), [(call, own) for call in ARROW for own in _given(call)], ids=repr)
def test_arrow_types(engine: str, call: str, arguments: dict[str, Any]) -> None:
    for column in (COLUMN, COLUMN.clear(), COLUMN.tadoc.decompress()):
        table = getattr(tadoc, call)(column, engine=engine, **arguments)
        table.validate(full=True)
        assert {field.name: _short(field.type) for field in table.schema} == ARROW[call]


WRONG: dict[str, list[tuple[dict[str, Any], type[Exception], str]]] = {
    "sort": [
        ({"min_count": 1.5}, TypeError, "min_count=1.5 must be an integer"),
        ({"min_count": True}, TypeError, "min_count=True must be an integer"),
        ({"strategy": None}, ValueError, "strategy"),
        ({"engine": "tpu"}, ValueError, "tpu"),
        ({"stopwords": "the"}, TypeError, r'\["the"\]'),
    ],
    "inverted_index": [({"min_count": 2.5}, TypeError, "min_count=2.5 must be an integer")],
    "term_vector": [({"top": 1.5}, TypeError, "top=1.5 must be an integer")],
    "ranked_inverted_index": [],
    "sequence_count": [
        ({"n": 0}, ValueError, "n=0 must be at least 1"),
        ({"n": -3}, ValueError, "n=-3 must be at least 1"),
        ({"n": 10**30}, ValueError, "must be at most 4294967295"),
        ({"n": 2.5}, TypeError, "n=2.5 must be an integer"),
        ({"n": True}, TypeError, "n=True must be an integer"),
        ({"n": None}, TypeError, "n=None must be an integer"),
        ({"min_count": "2"}, TypeError, "min_count='2' must be an integer"),
    ],
    "cooccurrence": [
        ({"window": 0}, ValueError, "window=0 must be at least 1"),
        ({"window": 2.5}, TypeError, "window=2.5 must be an integer"),
        ({"window": True}, TypeError, "window=True must be an integer"),
    ],
    "bm25_weights": [
        ({"top": 1.5}, TypeError, "top=1.5 must be an integer"),
        ({"scoring": "bm25"}, ValueError, "scoring='bm25': use one of"),
        ({"k1": -0.5}, ValueError, "BM25: k1=-0.5 must be from 0"),
        ({"lowercase": "yes"}, TypeError, "lowercase='yes' must be True or False"),
        ({"stopwords": "the"}, TypeError, r"stopwords=.the. is one string; .*: \[.the.\], or the name .*.english."),
        ({"b": "half"}, TypeError, "b='half' must be a number"),
        ({"tokenizer": "nonsense"}, ValueError, "tokenizer='nonsense'"),
        ({"dictionary": ["the"]}, TypeError, "bm25_weights: dictionary= takes a tadoc.Dictionary, not list; make one"),
    ],
    "tfidf": [
        ({"norm": "max"}, ValueError, 'norm=\'max\': use "l1", "l2" or None'),
        ({"use_idf": "yes"}, TypeError, "use_idf='yes' must be True or False"),
        ({"tokenizer": "nonsense"}, ValueError, "tokenizer='nonsense'"),
        ({"dictionary": "words"}, TypeError, "tfidf: dictionary= takes a tadoc.Dictionary, not str; make one"),
    ],
}
WRONG["ranked_inverted_index"] += WRONG["sequence_count"]
for _call, _wrong in WRONG.items():
    _wrong.append(({"strategy": "sideways"}, ValueError, "sideways"))
    if "top" in _options(_call):
        _wrong.append(({"top": -1}, ValueError, "top=-1 must be at least 0"))
    if _call in LABELLED:
        _wrong += [
            ({"id": pl.Series([1, 2])}, ValueError, r"2.*5|5.*2"),
            ({"id": [1, 2, 3, 4, 5]}, TypeError, "id"),
            ({"id": "name"}, TypeError, "id"),
        ]


@pytest.mark.parametrize(
    ("call", "arguments", "error", "message"),
    [
        pytest.param(call, *wrong, id=f"{call}-{'-'.join(wrong[0])}-{k}")
        for call in WRONG
        for k, wrong in enumerate(WRONG[call])
    ],
)
@pytest.mark.parametrize("column", [COLUMN, COLUMN.tadoc.decompress()], ids=["compressed", "text"])
def test_wrong_arguments(
    column: pl.Series, call: str, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    runs = [lambda: getattr(tadoc, call)(column, **arguments), lambda: getattr(column.tadoc, call)(**arguments)]
    if "id" not in arguments:  # frames take the name of a column
        runs.append(lambda: getattr(column.to_frame().lazy().tadoc, call)("text", **arguments))
    for run in runs:
        with pytest.raises(error, match=message):
            run()
