"""Charts: the data and scales of their specifications, by plain-Python definitions; each is valid Vega-Lite."""

from __future__ import annotations

import math
import sys
from collections import Counter
from datetime import date
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc

pytest.importorskip("altair")

TEXTS = ["war and peace", "war war", "the sea", "peace at sea"]
FRAME = pl.DataFrame({"year": [1, 1, 2, 3], "text": TEXTS}).tadoc.compress("text")


def specified(chart: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rows and encodings of a chart; Altair checks the specification by Vega-Lite's schema."""
    made = chart.to_dict()
    (rows,) = made["datasets"].values()
    return rows, made["encoding"]


def by_year() -> pl.DataFrame:
    return FRAME.group_by("year").agg(pl.col("text").tadoc.word_count()).explode("text").unnest("text")


def test_words_over_time() -> None:
    rows, encoding = specified(tadoc.plot.words_over_time(by_year(), "year", top=2))
    counts = Counter((year, word) for year, text in zip([1, 1, 2, 3], TEXTS, strict=True) for word in text.split())
    expected = {(year, word): counts[year, word] for word in ("war", "peace") for year in (1, 2, 3)}
    assert {(row["year"], row["word"]): row["count"] for row in rows} == expected
    assert encoding["x"]["type"] == "quantitative"
    assert encoding["color"]["sort"] == ["war", "peace"]
    dated = by_year().with_columns(day=pl.date(2000, 1, pl.col("year")))
    assert specified(tadoc.plot.words_over_time(dated, "day"))[1]["x"]["type"] == "temporal"
    assert dated["day"].min() == date(2000, 1, 1)


def test_phrase_trend() -> None:
    counted = pl.DataFrame({"a.b": ["x", "x", "y"], "kind[0]": ["k", "k", "l"], "n": [1, 2, 5]})
    rows, encoding = specified(tadoc.plot.phrase_trend(counted, "a.b", "kind[0]", "n"))
    assert [tuple(row.values()) for row in rows] == [("x", "k", 3), ("y", "l", 5)]
    assert encoding["x"]["field"] == r"a\.b"
    assert encoding["color"]["field"] == r"kind\[0\]"
    rows, encoding = specified(tadoc.plot.phrase_trend(counted, "a.b", value="n"))
    assert [tuple(row.values()) for row in rows] == [("x", 3), ("y", 5)]
    assert "color" not in encoding


def test_keyness() -> None:
    first, second = Counter(["tax", "tax", "tax", "war", "the"]), Counter(["war", "war", "sea", "the", "the"])
    frames = [pl.DataFrame({"word": list(one), "count": list(one.values())}) for one in (first, second)]
    rows, encoding = specified(tadoc.plot.keyness(*frames, ("spring", "autumn"), top=2))

    def keyness(word: str) -> float:
        a, b, sizes = first[word], second[word], (first.total(), second.total())
        expected = [(a + b) * size / sum(sizes) for size in sizes]
        found = 2 * sum(seen * math.log(seen / mean) for seen, mean in zip((a, b), expected, strict=True) if seen)
        return found if a / sizes[0] >= b / sizes[1] else -found

    words = sorted({*first, *second}, key=lambda word: (-keyness(word), word))
    chosen = [word for word in words if keyness(word) > 0][:2] + [word for word in words if keyness(word) < 0][-2:]
    assert [row["word"] for row in rows] == encoding["y"]["sort"] == chosen
    assert [row["keyness"] for row in rows] == pytest.approx([keyness(word) for word in chosen])
    assert {row["word"]: row["group"] for row in rows} | {"tax": "spring", "sea": "autumn"} == {
        row["word"]: row["group"] for row in rows
    }
    with pytest.raises(ValueError, match="a group has no words"):
        tadoc.plot.keyness(frames[0], frames[1].clear(), ("a", "b"))


def test_dispersion_and_zipf_draw_a_bounded_number_of_marks() -> None:
    found = FRAME["text"].tadoc.positions("war")  # type: ignore[attr-defined]
    assert [(row["id"], row["offset"]) for row in specified(tadoc.plot.dispersion(found))[0]] == [
        ("0", 0),
        ("1", 0),
        ("1", 1),
    ]
    many = pl.DataFrame({"id": [0] * 10_001, "offset": range(10_001)})
    assert 1_000 < len(specified(tadoc.plot.dispersion(many))[0]) <= 2_000
    assert len(specified(tadoc.plot.dispersion(many.with_columns(id="offset"), rows=3))[0]) == 3
    rows, encoding = specified(tadoc.plot.zipf(pl.DataFrame({"word": [f"w{i}" for i in range(9_000)], "count": 1})))
    assert [row["rank"] for row in (rows[0], rows[-1])] == [1, 9_000]
    assert len(rows) <= 500
    assert encoding["x"]["scale"] == {"type": "log"}


def test_rules() -> None:
    long = " ".join(f"w{number}" for number in range(20))
    column = pl.Series([long, long, long, "a b", "a b"]).tadoc.compress()  # type: ignore[attr-defined]
    rows, _ = specified(tadoc.plot.rules(column))
    assert rows[0] == {"text": " ".join(long.split()[:12]) + " … (20 words)", "uses": 3, "saved": 2 * len(long)}
    two = pl.concat([column, pl.Series([long, long]).tadoc.compress()])  # type: ignore[attr-defined]  # grammars
    rows, _ = specified(tadoc.plot.rules(two))
    assert [(row["uses"], row["saved"]) for row in rows] == [(5, 3 * len(long))]
    assert specified(tadoc.plot.rules(pl.Series(["a"]).tadoc.compress()))[0] == []  # type: ignore[attr-defined]
    with pytest.raises(tadoc.errors.NotCompressedError):
        tadoc.plot.rules(pl.Series(["a"]))


def test_explanation() -> None:
    index = tadoc.build_index(FRAME["text"])
    explained = index.explain("war sea peace", 0)
    rows, _ = specified(tadoc.plot.explanation(explained))
    expected = sorted(zip(explained["word"], explained["score"], strict=True), key=lambda row: -row[1])
    assert [(row["word"], row["score"]) for row in rows] == expected


def test_wrong_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    said = r'plot\.zipf takes the frame of word_count; the frame has no column "word"; it has year, text'
    with pytest.raises(ValueError, match=said):
        tadoc.plot.zipf(FRAME)
    with pytest.raises(TypeError, match=r"plot\.dispersion takes the frame of positions or concordance, not Series"):
        tadoc.plot.dispersion(FRAME["text"])  # type: ignore[arg-type]
    counts = pl.DataFrame({"word": ["a"], "count": [1]})
    with pytest.raises(ValueError, match=r"plot\.keyness: names='ab': give the names of both groups"):
        tadoc.plot.keyness(counts, counts, "ab")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(ImportError, match=r"plot\.zipf needs Altair: pip install 'polars-tadoc\[plot\]'"):
        tadoc.plot.zipf(FRAME)
