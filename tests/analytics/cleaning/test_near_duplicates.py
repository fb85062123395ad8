"""Near duplicates and their groups against their plain-Python definition."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.analytics.cleaning.distinct_rows import bands_of
from polars_tadoc.analytics.cleaning.signatures import Scheme
from polars_tadoc.errors import LimitExceededError
from tests import near_oracle
from tests.analytic_cases import COLUMN, LABELS
from tests.analytics.cleaning.test_minhash import definition
from tests.analytics.cleaning.test_repeats import IMAGES, columns, documents_of, forms


@st.composite
def alike(draw: st.DrawFn) -> list[str | None]:
    """Rows that differ in a few words, and others."""
    word = st.sampled_from("abcdefgh")
    base = draw(st.lists(word, min_size=1, max_size=20))
    rows: list[str | None] = []
    for _ in range(draw(st.integers(0, 8))):
        row = list(base)
        for at in draw(st.lists(st.integers(0, len(base) - 1), max_size=3)):
            row[at] = draw(word)
        rows.append(" ".join(row))
    return draw(st.permutations([*rows, *draw(columns())]))


@given(
    alike(),
    st.integers(1, 4),
    st.sampled_from([0.01, 0.3, 0.5, 0.8, 1.0]),
    st.sampled_from([1, 6, 20]),
    st.integers(0, 3),
    st.sampled_from(list(IMAGES)),
)
def test_pairs_and_groups(
    rows: list[str | None], ngram: int, threshold: float, permutations: int, seed: int, name: str
) -> None:
    arguments, image = IMAGES[name]
    words = [None if own is None else [word for word, _ in own] for own in documents_of(rows, image)]
    scheme = Scheme("double", permutations, ngram, seed)
    signatures = [definition(own or [], scheme) for own in words]
    bands, size = bands_of(threshold, permutations)

    def is_proposed(one: int, other: int) -> bool:
        edges = range(0, bands * size, size)
        return any(signatures[one][at : at + size] == signatures[other][at : at + size] for at in edges)

    expected = near_oracle.pairs(words, ngram, threshold, is_proposed)
    options: dict[str, Any] = {"ngram": ngram, "threshold": threshold, "permutations": permutations, "seed": seed}
    for column in forms(rows):
        found = column.tadoc.near_duplicates(**options, **arguments)
        assert found.rows() == expected
        assert found.schema == {"id": pl.UInt32, "other": pl.UInt32, "similarity": pl.Float64}
        groups = column.tadoc.duplicate_groups(**options, **arguments)
        assert groups.rows() == near_oracle.groups(len(rows), expected)
        assert groups.schema == {"id": pl.UInt32, "group": pl.UInt32, "keep": pl.Boolean}
    lazy = pl.DataFrame({"text": pl.Series(rows, dtype=pl.String)}).lazy()
    assert lazy.tadoc.near_duplicates("text", **options, **arguments).collect().equals(found)
    assert lazy.tadoc.duplicate_groups("text", **options, **arguments).collect().equals(groups)


def test_nearly_all_are_found() -> None:
    """Of pairs just above the threshold at least 95 %, of many rows, in several chunks, with room for few results."""
    pick = random.Random(5)
    rows, pairs = [], 0
    for number in range(1500):
        words = [f"w{number}x{k}" for k in range(40)]
        rows.append(" ".join(words))
        words[pick.randrange(37) + 1] = "other"  # 3 of 38 trigrams, and so of 41 in both: 35 / 41
        rows.append(" ".join(words))
        pairs += 1
    with pytest.MonkeyPatch.context() as patch, tadoc.Config(threads=3):
        patch.setattr("polars_tadoc.analytics.cleaning.near_duplicates.ROOM", 7)
        found = pl.Series(rows).tadoc.near_duplicates(ngram=3, threshold=0.85)
    assert (found["id"] + 1).equals(found["other"].alias("id"))
    assert found["similarity"].unique().to_list()[0] == 35 / 41
    assert found.height >= 0.95 * pairs


def test_many_rows_that_are_alike() -> None:
    """Groups take about a comparison each; too many pairs are refused, never dropped."""
    head = " ".join(f"w{k}" for k in range(60))
    rows = pl.Series([f"{head} {number}" for number in range(3000)])
    groups = rows.tadoc.duplicate_groups(ngram=2, max_candidates=30_000)
    assert groups["group"].unique().to_list() == [0]
    with pytest.raises(LimitExceededError, match=r"more than max_candidates=30,000 pairs: .* ask for duplicate_groups"):
        rows.tadoc.near_duplicates(ngram=2, max_candidates=30_000)
    assert rows.head(200).tadoc.near_duplicates(ngram=2).height == 200 * 199 // 2
    apart = pl.Series([f"{head} " + " ".join(f"{number}x{k}" for k in range(60)) for number in range(300)])
    with pytest.raises(LimitExceededError, match="duplicate_groups: signatures propose more than max_candidates=9"):
        apart.tadoc.duplicate_groups(ngram=1, threshold=0.4, max_candidates=9)


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("call", ["near_duplicates", "duplicate_groups"])
def test_labels(call: str, labels: str) -> None:
    ids = LABELS[labels]
    text = pl.Series("text", ["a b"] * 10)
    got = getattr(text.tadoc, call)(id=ids)
    frame = pl.DataFrame({"label": ids, "text": text})
    lazy = getattr(frame.lazy().tadoc, call)("text", id="label")
    assert lazy.collect_schema() == got.schema
    assert lazy.collect().equals(got)
    assert getattr(frame.tadoc, call)("text", id="label").equals(got)
    if call == "near_duplicates":
        assert got["other"].equals(ids[1:].alias("other"))
        assert got["id"].equals(ids.gather([0] * 9).alias("id"))
    else:
        assert got["id"].equals(ids.alias("id"))
        assert got["keep"].to_list() == [True] + [False] * 9


@pytest.mark.parametrize("call", ["near_duplicates", "duplicate_groups"])
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"threshold": 0}, ValueError, "threshold=0 must be above 0 and at most 1"),
        ({"threshold": 1.1}, ValueError, "threshold=1.1 must be above 0"),
        ({"threshold": "0.8"}, TypeError, "threshold='0.8' must be a number"),
        ({"ngram": 0}, ValueError, "ngram=0 must be at least 1"),
        ({"max_candidates": 1.5}, TypeError, "max_candidates=1.5 must be an integer"),
    ],
)
def test_arguments(call: str, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        getattr(COLUMN.tadoc, call)(**arguments)
