"""Text without its repeats, against the plain-Python definition."""

from __future__ import annotations

import re
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from tests import passages_oracle
from tests.analytic_cases import COLUMN
from tests.analytics.cleaning.test_repeats import IMAGES, columns, documents_of, forms


def text_of(column: pl.Series) -> list[str | None]:
    return (column if column.dtype == pl.String else tadoc.decompress(column)).to_list()


def without_repeats(rows: list[str | None], length: int, keep: str, image: Any) -> list[str | None]:
    """The rows by the definition: words in code, separators between them from a regex."""
    documents = documents_of(rows, image)
    whole = documents_of(rows)
    texts: list[str | None] = []
    marks_of = passages_oracle.droppable(documents, length, keep)
    for row, own, document, marks in zip(rows, whole, documents, marks_of, strict=True):
        if row is None or own is None or document is None or marks is None:
            texts.append(None)
            continue
        dropped = [False] * len(own)
        for start, stop in passages_oracle.stretches(marks):
            first, last = document[start][1], document[stop - 1][1]
            dropped[first : last + 1] = [True] * (last + 1 - first)
        words = [word for word, _ in own]
        if not words:
            texts.append(row)
            continue
        at, pieces = 0, []
        for word in words:
            start = row.index(word, at)
            pieces += [row[at:start], word]
            at = start + len(word)
        texts.append(passages_oracle.cut([*pieces, row[at:]], dropped))
    return texts


@given(columns(), st.integers(1, 6), st.sampled_from(["first", "none"]), st.sampled_from(list(IMAGES)))
def test_passages(engine: str, rows: list[str | None], length: int, keep: str, name: str) -> None:
    options, image = IMAGES[name]
    arguments = {**options, "engine": engine}
    expected = without_repeats(rows, length, keep, image)
    for column in forms(rows):
        got = column.tadoc.drop_repeats(length=length, keep=keep, **arguments)
        assert (got.dtype, got.name) == (column.dtype, "text")
        assert text_of(got) == expected
        frame = column.to_frame()
        assert text_of(frame.tadoc.drop_repeats("text", length=length, keep=keep, **arguments)["text"]) == expected


@given(columns(), st.integers(1, 6), st.sampled_from(["first", "none"]), st.sampled_from([0.01, 0.5, 0.9, 1.0]))
def test_rows(engine: str, rows: list[str | None], length: int, keep: str, share: float) -> None:
    marks = passages_oracle.droppable(documents_of(rows), length, keep)
    kept = [not own or sum(own) / len(own) < share for own in marks]
    expected = [place for place, own in enumerate(kept) if own]
    for column in forms(rows):
        got = column.tadoc.drop_repeats(length=length, keep=keep, unit="row", share=share, engine=engine)
        assert got.dtype == column.dtype
        assert text_of(got) == [rows[place] for place in expected]
        frame = pl.DataFrame({"row": range(len(rows)), "text": column}, schema_overrides={"row": pl.Int64})
        options = {"length": length, "keep": keep, "unit": "row", "share": share, "engine": engine}
        assert frame.tadoc.drop_repeats("text", **options)["row"].to_list() == expected
        assert frame.lazy().tadoc.drop_repeats("text", **options).collect()["row"].to_list() == expected


@pytest.mark.parametrize("unit", ["passage", "row"])
def test_steps_after_it_in_a_plan_do_not_go_before_it(unit: str) -> None:
    frame = pl.DataFrame({"row": [0, 1, 2], "text": ["a b c", "a b c d", "a b c"]})
    for frame_of_a_form in (frame, frame.tadoc.compress("text")):
        expected = frame_of_a_form.tadoc.drop_repeats("text", length=3, unit=unit)
        lazy = frame_of_a_form.lazy().tadoc.drop_repeats("text", length=3, unit=unit)
        for step in (
            lambda f: f.filter(pl.col("row") > 0),
            lambda f: f.slice(1, 1),
            lambda f: f.tail(1),
            lambda f: f.select("row"),
            lambda f: f.sort("row", descending=True).head(1),
        ):
            assert step(lazy).collect().equals(step(expected))
            assert step(lazy).collect(engine="streaming").equals(step(expected))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (" ", "\n", "x\ny"),
        ("\n", " ", "x\ny"),
        ("\n\n", "\n", "x\n\ny"),
        (". ", ", ", "x. y"),
        ("\r\n", " - \r\n\r\n", "x - \r\n\r\ny"),
    ],
)
def test_the_separator_with_more_line_breaks_stays(before: str, after: str, expected: str) -> None:
    text = pl.Series("text", ["one two", f"x{before}one two{after}y"])
    for column in (text, text.tadoc.compress()):
        assert text_of(column.tadoc.drop_repeats(length=2))[1] == expected


@pytest.mark.parametrize("text", [" (one two). ", "\n(one two)", "(one two)\n\n"])
def test_nothing_stays_but_a_separator(text: str) -> None:
    column = pl.Series("text", ["one two", text])
    before, after = text.split("one two")
    expected = after if after.count("\n") > before.count("\n") else before
    assert text_of(column.tadoc.drop_repeats(length=2)) == ["one two", expected]


def test_categories_and_enums() -> None:
    rows = pl.Series("text", ["a b c", "a b c d"])
    got = rows.cast(pl.Categorical).tadoc.drop_repeats(length=3)
    assert (got.dtype, got.cast(pl.String).to_list()) == (pl.Categorical, ["a b c", "d"])
    enum = rows.cast(pl.Enum(["a b c", "a b c d"]))
    with pytest.raises(TypeError, match=r'column "text" is an Enum.*cast it to pl\.String'):
        enum.tadoc.drop_repeats(length=3)
    assert enum.tadoc.drop_repeats(length=3, unit="row", share=0.7).to_list() == ["a b c"]


def test_words_joined_by_spaces_that_are_cut_differently() -> None:
    column = pl.Series("text", ["a-b", "c", "a-b"]).tadoc.compress(tokenizer=re.compile("a b|[abc]"), lossless=False)
    assert column.tadoc.token_count().to_list() == [2, 1, 2]
    assert text_of(column) == ["a b", "c", "a b"]
    with pytest.raises(ValueError, match=r'row 2 was compressed with lossless=False.*use unit="row"'):
        column.tadoc.drop_repeats(length=2)
    assert text_of(column.tadoc.drop_repeats(length=2, unit="row")) == ["a b", "c"]


def test_columns_without_separators_stay_so() -> None:
    column = pl.Series("text", ["a, b. c", "a b c; d"]).tadoc.compress(lossless=False)
    assert text_of(column.tadoc.drop_repeats(length=3)) == ["a b c", "d"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"keep": "last"}, ValueError, "keep='last'"),
        ({"unit": "word"}, ValueError, "unit='word'"),
        ({"unit": "row", "share": 0}, ValueError, "share=0 must be above 0"),
        ({"unit": "row", "share": 1.1}, ValueError, "share=1.1 must be above 0"),
        ({"unit": "row", "share": "all"}, TypeError, "share='all' must be a number"),
        ({"share": 0.5}, ValueError, 'share=0.5 is for whole rows; add unit="row"'),
        ({"length": 0}, ValueError, "length=0 must be at least 1"),
    ],
)
def test_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        COLUMN.tadoc.drop_repeats(**arguments)
