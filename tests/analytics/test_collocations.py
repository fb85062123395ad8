"""Scores of pairs against their definitions in plain Python."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.analytics.collocations import MEASURES
from tests.analytic_cases import COLUMN
from tests.analytics.cleaning.test_repeats import IMAGES, columns, documents_of, forms


def score(measure: str, n: int, a: int, b: int, total: int) -> float:
    expected = a * b / total
    if measure == "t":
        return (n - expected) / math.sqrt(n)
    if measure == "llr":
        table = [(n, expected), (a - n, a - expected), (b - n, b - expected)]
        table.append((total - a - b + n, (total - a) * (total - b) / total))
        return 2 * sum(seen * math.log(seen / mean) for seen, mean in table if seen)
    pmi = math.log(n / expected)
    return pmi if measure == "pmi" else (1.0 if n == total else pmi / -math.log(n / total))


@given(
    columns(),
    st.sampled_from([1, 2, 3, 10**9]),
    st.integers(1, 3),
    st.sampled_from(MEASURES),
    st.sampled_from([1, 7, 1 << 23]),
    st.sampled_from(list(IMAGES)),
)
def test_scores(rows: list[str | None], window: int, min_count: int, measure: str, listed: int, name: str) -> None:
    arguments, image = IMAGES[name]
    pairs: Counter[tuple[str, str]] = Counter()
    for document in documents_of(rows, image):
        words = [word for word, _ in document or []]
        pairs.update((one, other) for at, one in enumerate(words) for other in words[at + 1 : at + 1 + window])
    firsts, seconds = Counter[str](), Counter[str]()
    for (one, other), count in pairs.items():
        firsts[one] += count
        seconds[other] += count
    expected = {
        pair: (count, score(measure, count, firsts[pair[0]], seconds[pair[1]], pairs.total()))
        for pair, count in pairs.items()
        if count >= min_count
    }
    options: dict[str, Any] = {"measure": measure, "window": window, "min_count": min_count, **arguments}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polars_tadoc.analytics.collocations.LISTED", listed)
        for column in forms(rows):
            got = column.tadoc.collocations(**options)
            assert got.schema == {"word": pl.String, "other": pl.String, "count": pl.UInt64, "score": pl.Float64}
            found = {(one, other): (count, value) for one, other, count, value in got.rows()}
            assert len(found) == got.height == len(expected)
            for pair, (count, value) in expected.items():
                assert found[pair][0] == count
                assert found[pair][1] == pytest.approx(value, rel=1e-9, abs=1e-9)
            keys = [(-value, one, other) for one, other, _, value in got.rows()]
            assert keys == sorted(keys)
            assert column.tadoc.collocations(top=2, **options).equals(got.head(2))
    lazy = pl.DataFrame({"text": pl.Series(rows, dtype=pl.String)}).lazy().tadoc.collocations("text", **options)
    assert lazy.collect_schema() == got.schema
    assert lazy.collect().equals(got)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"measure": "chi"}, ValueError, "collocations: measure='chi': use one of npmi, pmi, llr, t"),
        ({"window": 0}, ValueError, "window=0 must be at least 1"),
        ({"min_count": 1.5}, TypeError, "must be an integer"),
        ({"min_count": -1}, ValueError, "min_count=-1 must be at least 0"),
        ({"top": -1}, ValueError, "top=-1"),
    ],
)
def test_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tadoc.collocations(COLUMN, **arguments)
