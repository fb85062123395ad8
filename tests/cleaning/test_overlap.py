"""Matches with a reference, against the plain-Python definition."""

from __future__ import annotations

import re
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from tests import passages_oracle
from tests.analytic_cases import COLUMN, LABELS
from tests.cleaning.test_repeats import IMAGES, columns, documents_of, forms

KNOWN = tadoc.PassageSet(pl.Series(["a"]))


@given(columns(), columns(), st.booleans(), st.integers(1, 6), st.sampled_from(list(IMAGES)))
def test_overlap(rows: list[str | None], others: list[str | None], itself: bool, length: int, name: str) -> None:
    arguments, image = IMAGES[name]
    others = others + rows[:3] if itself else others
    documents, references = documents_of(rows, image), documents_of(others, image)
    expected = passages_oracle.overlap(documents, references, length)
    shares = passages_oracle.overlap_share(documents, references, length)
    found = [None if share is None and row is None else bool(share) for share, row in zip(shares, rows, strict=True)]
    for reference in forms(others):
        known = tadoc.PassageSet(reference, length=length, **arguments)
        assert (known.rows, known.length) == (len(others), length)
        for column in forms(rows)[:2]:
            got = column.tadoc.overlap(reference, length=length, **arguments)
            assert got.rows() == expected
            assert column.tadoc.overlap(known).equals(got)
            assert column.tadoc.overlap_share(known).to_list() == shares
            assert column.tadoc.overlaps(known).to_list() == found
            frame = column.to_frame()
            assert frame.tadoc.overlap("text", reference, length=length, **arguments).equals(got)
            lazy = frame.lazy().tadoc.overlap("text", known)
            assert lazy.collect().equals(got)
            assert lazy.collect_schema() == got.schema
            by_expression = frame.select(
                a=pl.col("text").tadoc.overlap_share(reference, length=length, **arguments),
                b=pl.col("text").tadoc.overlaps(known),
            )
            assert by_expression.rows() == list(zip(shares, found, strict=True))


@pytest.mark.parametrize("threads", [1, 3])
def test_many_occurrences_that_go_on_differently(threads: int) -> None:
    """A notice that is in many rows of the reference, each time between other words."""
    notice = "we use cookies to make this page work"
    others = [f"{'x ' * (k % 7)}b{k} {notice} a{k} {notice} c{k % 3}" for k in range(60)]
    rows = [f"b{k} {notice} a{j} {notice} c{j % 2}" for k in range(0, 60, 7) for j in range(0, 60, 11)] * 3
    expected = passages_oracle.overlap(documents_of(rows), documents_of(others), 4)
    with tadoc.Config(threads=threads):
        assert pl.Series("text", rows).tadoc.overlap(pl.Series(others), length=4).rows() == expected


@pytest.mark.parametrize("labels", LABELS)
def test_labels(labels: str) -> None:
    ids = LABELS[labels]
    text = pl.Series("text", [f"a b {k}" for k in range(10)])
    got = text.tadoc.overlap(text, id=ids, reference_id=ids, length=3)
    assert got["id"].equals(ids.alias("id"))
    assert got["reference"].equals(ids.alias("reference"))
    frame = pl.DataFrame({"label": ids, "text": text})
    assert frame.tadoc.overlap("text", text, id="label", reference_id=ids, length=3).equals(got)
    lazy = frame.lazy().tadoc.overlap("text", text, id="label", reference_id=ids, length=3)
    assert lazy.collect_schema() == got.schema
    assert lazy.collect().equals(got)


def test_a_column_cut_otherwise_is_refused() -> None:
    known = tadoc.PassageSet(pl.Series(["a b c"]), length=2, tokenizer="whitespace")
    column = pl.Series("text", ["x, a b"])
    assert column.tadoc.overlaps(known).to_list() == [True]  # plain text is cut as the reference
    same = tadoc.PassageSet(pl.Series(["x, a b"]).tadoc.compress(tokenizer="whitespace"), length=3)
    assert column.tadoc.overlap(same)["length"].to_list() == [3]
    message = 'column "text" was cut by "words", the reference by "whitespace"'
    for call in ("overlap", "overlaps", "overlap_share"):
        with pytest.raises(TypeError, match=rf"{call}: .*({message})"):
            getattr(column.tadoc.compress().tadoc, call)(known)
    other = pl.Series("text", ["a b"]).tadoc.compress(tokenizer=re.compile("[ab]"))
    with pytest.raises(TypeError, match=r'overlap: column "text" was cut by "regex:\[ab\]", the reference by "words"'):
        other.tadoc.overlap(pl.Series(["a b c"]), length=2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"reference": ["a"]}, TypeError, "reference is list, not a Series of texts or a PassageSet"),
        ({"reference": pl.Series(["a"]), "length": 0}, ValueError, "length=0 must be at least 1"),
        ({"reference": pl.Series(["a"]), "reference_id": ["x"]}, TypeError, "reference_id is list"),
        ({"reference": pl.Series(["a"]), "reference_id": pl.Series([1, 2])}, ValueError, "2 labels for the 1 rows"),
        ({"reference": KNOWN, "length": 3}, ValueError, "length= is for a Series"),
        ({"reference": KNOWN, "lowercase": True}, ValueError, "lowercase= is for a Series"),
    ],
)
def test_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        COLUMN.tadoc.overlap(**arguments)
