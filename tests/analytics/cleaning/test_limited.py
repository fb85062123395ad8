"""Passages under a memory limit: the same as without one, whatever the limit and the blocks that are read."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.analytics.cleaning import hits, limited_near
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.records import Spill
from tests import passages_oracle
from tests.analytics.cleaning.test_near_duplicates import alike
from tests.analytics.cleaning.test_repeats import IMAGES, columns, documents_of

LIMITS = [30_000, 100_000, 10_000_000]
"""A few dozen words of distinct stretches fit the smallest."""


def plan_of(rows: list[str | None], form: str, folder: Path) -> pl.LazyFrame:
    """Plain text, several grammars, or a packed scan."""
    frame = pl.DataFrame({"key": range(len(rows)), "text": pl.Series(rows, dtype=pl.String)})
    if form == "text":
        return frame.lazy()
    packed = frame.tadoc.compress("text", rows_per_grammar=2)
    if form == "compressed":
        return packed.lazy()
    packed.tadoc.write_packed(folder / "packed.parquet")
    return tadoc.scan_packed(folder / "packed.parquet")


def texts(frame: pl.DataFrame) -> pl.DataFrame:
    return frame if frame.schema["text"] == pl.String else frame.tadoc.decompress("text")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("limited")


@given(
    columns(), st.integers(1, 7), st.integers(1, 3), st.sampled_from(list(IMAGES)), st.sampled_from(LIMITS), st.data()
)
def test_results_are_those_without_a_limit(
    folder: Path, rows: list[str | None], length: int, min_count: int, name: str, limit: int, data: st.DataObject
) -> None:
    arguments, image = IMAGES[name]
    documents = documents_of(rows, image)
    plan = plan_of(rows, data.draw(st.sampled_from(["text", "compressed", "packed"])), folder)
    asked: dict[str, Any] = {**arguments, "length": length, "memory_limit": limit}
    expected = passages_oracle.repeats(documents, length, min_count)
    found = plan.tadoc.repeats("text", id=data.draw(st.sampled_from([None, "key"])), min_count=min_count, **asked)
    got = found.collect()
    assert found.collect_schema() == got.schema
    assert got.rows() == expected
    options: dict[str, Any] = data.draw(st.sampled_from([{}, {"keep": "none"}, {"unit": "row", "share": 0.5}]))
    left = plan.tadoc.drop_repeats("text", **asked, **options).collect()
    without = plan.collect().tadoc.drop_repeats("text", length=length, **arguments, **options)
    assert left.schema == without.schema
    assert texts(left).equals(texts(without))
    reference = pl.Series(rows[::2], dtype=pl.String)
    shared = plan.tadoc.overlap("text", reference, **asked).collect()
    assert shared.rows() == passages_oracle.overlap(documents, documents[::2], length)


@pytest.mark.parametrize("call", ["repeats", "drop_repeats", "near_duplicates", "duplicate_groups"])
@pytest.mark.parametrize("form", ["compressed", "packed"])
def test_compressed_rows_keep_their_tokenizer(call: str, form: str, tmp_path: Path) -> None:
    asked = getattr(plan_of(["a b"] * 3, form, tmp_path).tadoc, call)
    asked("text", tokenizer="words", memory_limit=10_000_000).collect()
    with pytest.raises(Exception, match=f"{call}: tokenizer= is for String columns; grammar .* was cut by") as raised:
        asked("text", tokenizer="whitespace", memory_limit=10_000_000).collect()
    assert "TypeError" in repr(raised)


@given(alike(), st.integers(1, 4), st.sampled_from([0.3, 0.8]), st.sampled_from(list(IMAGES)), st.data())
def test_near_duplicates_are_those_without_a_limit(
    folder: Path, rows: list[str | None], ngram: int, threshold: float, name: str, data: st.DataObject
) -> None:
    """Several blocks, and components that are compared one by one or together."""
    batches = limited_near._Rows.batches

    def one_by_one(rows: limited_near._Rows) -> Iterator[Any]:
        for own in batches(rows):
            roots = rows._components()[own]
            yield from (own[roots == root] for root in sorted(set(roots)))

    options = {"ngram": ngram, "threshold": threshold, "permutations": 20, **IMAGES[name][0]}
    plan = plan_of(rows, data.draw(st.sampled_from(["text", "compressed", "packed"])), folder)
    labels = data.draw(st.sampled_from([None, "key"]))
    are_apart = data.draw(st.booleans())
    for call in ("near_duplicates", "duplicate_groups"):
        expected = getattr(plan.collect().tadoc, call)("text", id=labels, **options)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(limited_near._Rows, "batches", one_by_one if are_apart else batches)
            found = getattr(plan.tadoc, call)("text", id=labels, memory_limit="100MB", **options)
            assert found.collect_schema() == expected.schema
            assert found.collect().rows() == expected.rows()


def test_components_that_do_not_fit_are_said() -> None:
    head = " ".join(f"w{k}" for k in range(60))
    rows = pl.LazyFrame({"text": [f"{head} {number}" for number in range(300)]})
    with pytest.raises(LimitExceededError, match=r"duplicate_groups: 300 rows may be similar, .* memory_limit=900,000"):
        rows.tadoc.duplicate_groups("text", ngram=2, memory_limit=900_000).collect()
    found = rows.tadoc.duplicate_groups("text", ngram=2, memory_limit="100MB", max_candidates=300).collect()
    assert found["group"].unique().to_list() == [0]
    with pytest.raises(LimitExceededError, match="near_duplicates: signatures propose more than max_candidates=300 "):
        rows.tadoc.near_duplicates("text", ngram=2, memory_limit="100MB", max_candidates=300).collect()
    more = pl.concat([rows, rows.select(pl.col("text").str.replace_all("w", "v"))])
    found = more.tadoc.duplicate_groups("text", ngram=2, memory_limit=9_000_000).collect()  # one after the other
    assert found["group"].to_list() == [0] * 300 + [300] * 300
    with pytest.raises(LimitExceededError, match=r"near_duplicates: \d+ rows and more take 64 bytes each, more than"):
        rows.tadoc.near_duplicates("text", ngram=2, memory_limit=40_000).collect()


def mixed_rows() -> list[str]:
    """Copies, new text, periodic words, and one phrase among different words."""
    pick = random.Random(1)
    page = [f"w{pick.randrange(400)}" for _ in range(900)]
    rows = [" ".join(page[pick.randrange(400) : pick.randrange(400, 900)]) for _ in range(40)]
    rows += [" ".join(f"n{pick.randrange(30)}" for _ in range(300)) for _ in range(20)]
    rows += [" ".join(f"{pick.randrange(9)} one phrase {pick.randrange(9)}" for _ in range(200)), "a " * 300]
    pick.shuffle(rows)
    return rows


@pytest.mark.parametrize("length", [2, 9])
def test_ranges_that_do_not_fit_are_split(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between hashes, around one, and at last by the hashes of windows."""
    read: set[str] = set()
    split, around, windows = hits._split, hits._Cut.around, hits._Windows.__call__
    monkeypatch.setattr(hits, "_split", lambda *given: read.add("split") or split(*given))
    monkeypatch.setattr(hits._Cut, "around", lambda *given: read.add("around") or around(*given))
    monkeypatch.setattr(hits._Windows, "__call__", lambda *given: read.add("windows") or windows(*given))
    text = pl.Series("text", mixed_rows())
    limit = 80_000 if length == 2 else 60_000
    with tadoc.Config(threads=2):
        found = text.to_frame().lazy().tadoc.repeats("text", length=length, memory_limit=limit).collect()
    assert found.equals(text.tadoc.repeats(length=length))
    assert read & {"split", "around"}  # which of them depends on random hashes
    assert ("windows" in read) == (length == 2)


def test_what_does_not_fit_is_said() -> None:
    words = pl.LazyFrame({"text": [" ".join(f"word{k}" for k in range(5000))]})
    with pytest.raises(LimitExceededError, match=r"repeats: 5,000 distinct words take about .* memory_limit=200,000"):
        words.tadoc.repeats("text", memory_limit=200_000).collect()


def test_an_interrupted_call_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges that were finished before are not read again; a changed question is refused."""
    frame = pl.DataFrame({"text": mixed_rows()}).tadoc.compress("text", rows_per_grammar=9)
    frame.tadoc.write_packed(tmp_path / "packed.parquet")
    scan = tadoc.scan_packed(tmp_path / "packed.parquet")
    expected = scan.tadoc.repeats("text", length=9, memory_limit=200_000).collect()
    finished: list[int] = []
    finish = Spill.finish

    def finish_some(self: Spill, *parts: int) -> None:
        if len(finished) == 2:
            finished.append(-1)
            raise MemoryError("killed")
        finished.append(parts[0])
        finish(self, *parts)

    monkeypatch.setattr(Spill, "finish", finish_some)
    asked: dict[str, Any] = {"memory_limit": 200_000, "checkpoint": tmp_path / "checkpoint"}
    with pytest.raises(MemoryError, match="killed"):
        scan.tadoc.repeats("text", length=9, **asked).collect()
    assert scan.tadoc.repeats("text", length=9, **asked).collect().equals(expected)
    assert finished[0] == 0 < finished[1] < finished[3]
    count = len(finished)
    assert scan.tadoc.repeats("text", length=9, **asked).collect().equals(expected)
    assert len(finished) == count
    finished.clear()
    drop: dict[str, Any] = {"length": 9, "memory_limit": 200_000, "checkpoint": tmp_path / "other"}
    with pytest.raises(MemoryError, match="killed"):
        scan.tadoc.drop_repeats("text", **drop).collect()
    left = scan.tadoc.drop_repeats("text", **drop).collect()
    assert finished[0] == 0 < finished[1] < finished[3]
    assert texts(left).equals(texts(scan.tadoc.drop_repeats("text", length=9).collect()))
    with pytest.raises(ValueError, match="length was 9 and is 8"):
        scan.tadoc.repeats("text", length=8, **asked).collect()
    with pytest.raises(ValueError, match="min_count was 2 and is 3"):
        scan.tadoc.repeats("text", length=9, min_count=3, **asked).collect()
    with pytest.raises(ValueError, match="checkpoint= is for calls with memory_limit="):
        scan.tadoc.repeats("text", checkpoint=tmp_path)
    with pytest.raises(ValueError, match="checkpoint= requires a plan that only selects documents"):
        frame.lazy().tadoc.repeats("text", **asked)


def test_a_plan_that_changes_is_refused() -> None:
    sizes = itertools.count(9, -1)
    plan = pl.LazyFrame({"text": [""]}).map_batches(
        lambda _: pl.DataFrame({"text": ["a b c"] * next(sizes)}), schema={"text": pl.String}
    )
    with pytest.raises(ValueError, match="rows when it ran first, and another number when it ran again; write its"):
        plan.tadoc.drop_repeats("text", length=2, memory_limit="1MB").collect()


@pytest.mark.parametrize("call", ["repeats", "drop_repeats"])
def test_a_gpu_holds_the_column(call: str) -> None:
    plan = pl.LazyFrame({"text": ["a b"]}).tadoc
    with pytest.raises(ValueError, match=f'{call}: engine="gpu" holds the column in memory; leave out memory_limit'):
        getattr(plan, call)("text", engine="gpu", memory_limit="1GB")
