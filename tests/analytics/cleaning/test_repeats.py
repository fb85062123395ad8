"""Repeated passages and shares of rows against their plain-Python definition."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.analytics.cleaning import windows
from polars_tadoc.analytics.cleaning.laid_words import lay_out
from polars_tadoc.analytics.cleaning.windows import ALL_BITS, find_windows
from polars_tadoc.engine.choose import CPU, GPU
from polars_tadoc.errors import DeviceMemoryError, DeviceMemoryWarning, LimitExceededError
from polars_tadoc.kernels.host.passages.windows import NONE
from polars_tadoc.kernels.tokenize import tokenize_cuda
from polars_tadoc.kernels.windows import reference, windows_cuda
from tests import handmade, oracle, passages_oracle, strategies
from tests.analytic_cases import COLUMN, LABELS
from tests.engine.test_device_batches import tight_engine

UNITS = ["a", "b", "a b", "the cat", "The", "b a b", "日本", "é,", "c.\n\n"]
IMAGES: dict[str, tuple[dict[str, Any], Any]] = {
    "as they are": ({}, lambda word: word),
    "lower case": ({"lowercase": True}, str.lower),
    "without a stop word": ({"stopwords": ["a"]}, lambda word: None if word == "a" else word),
    "first letters": ({"normalize": pl.element().str.head(1)}, lambda word: word[:1]),
}


@st.composite
def columns(draw: st.DrawFn) -> list[str | None]:
    """Rows that repeat themselves and one another."""
    row = st.lists(st.sampled_from(UNITS), max_size=30).map(" ".join)
    pool = draw(st.lists(st.one_of(row, st.none(), strategies.runs), min_size=1, max_size=5))
    return draw(st.lists(st.sampled_from(pool), max_size=9))


def forms(rows: list[str | None]) -> list[pl.Series]:
    """Plain text, one grammar, several grammars."""
    text = pl.Series("text", rows, dtype=pl.String)
    return [text, text.tadoc.compress(), text.tadoc.compress(rows_per_grammar=2)]


def documents_of(rows: list[str | None], image: Any = lambda word: word) -> list[passages_oracle.Document]:
    words = [None if row is None else own for row, own in zip(rows, oracle.tokenize(rows), strict=True)]
    return passages_oracle.normalised(words, image)


@given(columns(), st.integers(1, 6), st.sampled_from([ALL_BITS, 0b1111, 7 << 61, 0]))
def test_windows_equal_the_reference(rows: list[str | None], length: int, mask: int) -> None:
    """Also where few bits of fingerprints are used, so that different windows have equal ones."""
    for column in forms(rows):
        laid = lay_out(column, "test")
        found = find_windows(laid, length, mask)
        documents = [laid.words[a : b - 1].tolist() for a, b in zip(laid.starts[:-1], laid.starts[1:], strict=True)]
        firsts, counts = reference.windows(documents, length)
        for start, stop, first, count in zip(laid.starts[:-1], laid.starts[1:], firsts, counts, strict=True):
            own = found.first[start:stop]
            assert own.tolist() == first + [int(NONE)] * (stop - start - len(first))
            assert found.counts[own[: len(first)]].tolist() == count


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_windows_of_many_threads_and_passes(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Enough words for several chunks, buckets and passes, of texts that are mostly copies and mostly new."""
    monkeypatch.setattr("polars_tadoc.kernels.windows.windows_cpu.BUCKET", 1 << 9)
    monkeypatch.setattr("polars_tadoc.kernels.windows.windows_cpu.LEAST_PASS", 1 << 12)
    pick = random.Random(1)
    page = [f"w{pick.randrange(400)}" for _ in range(900)]
    rows = [" ".join(page[pick.randrange(400) : pick.randrange(400, 900)]) for _ in range(300)]
    rows += [" ".join(f"n{pick.randrange(30)}" for _ in range(500)) for _ in range(200)]
    pick.shuffle(rows)
    with tadoc.Config(threads=threads):
        laid = lay_out(pl.Series("text", rows), "test")
        found = find_windows(laid, 9)
    documents = [laid.words[a : b - 1].tolist() for a, b in zip(laid.starts[:-1], laid.starts[1:], strict=True)]
    firsts, counts = reference.windows(documents, 9)
    for start, first, count in zip(laid.starts[:-1], firsts, counts, strict=True):
        own = found.first[start : start + len(first)]
        assert own.tolist() == first
        assert found.counts[own].tolist() == count


@st.composite
def periodic_columns(draw: st.DrawFn) -> list[str | None]:
    """Rows that repeat few words many times, some of them broken off by another word."""
    rows: list[str | None] = []
    for _ in range(draw(st.integers(1, 6))):
        words = draw(st.lists(st.sampled_from("ab"), min_size=1, max_size=5))
        row = words * draw(st.integers(1, 12))
        if draw(st.booleans()):
            row[draw(st.integers(0, len(row) - 1))] = "c"
        rows.append(" ".join(row))
    return rows


@given(periodic_columns(), st.integers(1, 12), st.sampled_from([ALL_BITS, 0b1111, 7 << 61]))
def test_windows_of_periodic_rows(rows: list[str | None], length: int, mask: int) -> None:
    test_windows_equal_the_reference.hypothesis.inner_test(rows, length, mask)  # type: ignore[attr-defined]


@pytest.mark.parametrize("period", range(1, 6))
def test_periodic_rows_take_no_longer_with_longer_windows(period: int) -> None:
    """A window costs a few comparisons, not one for each of its words."""
    unit = ["a", "b", "c", "d", "e"][:period]
    length = 30_000
    begins = [" ".join((unit * length)[k : k + length]) for k in range(period)]  # first places of windows are in these
    row = " ".join(unit * (300_000 // period))
    laid = [lay_out(pl.Series("text", rows), "test") for rows in ([row], [*begins, row])]

    def seconds(length: int) -> float:
        start = time.process_time()
        for own in laid:
            find_windows(own, length)
        return time.process_time() - start

    seconds(10)
    short = min(seconds(10) for _ in range(3))
    assert seconds(length) < 10 * short + 0.5
    words = len(row.split())
    assert tadoc.repeats(pl.Series([row]), length=length).to_pylist()[0]["length"] == words


def test_colliding_windows_cannot_be_made() -> None:
    """A Thue-Morse word and its complement have equal fingerprints modulo 2^64, whatever the base and the two words."""
    word = [at.bit_count() & 1 for at in range(1024)]
    blocks = [" ".join("ab"[bit ^ own] for bit in word) for own in (0, 1)]
    pick = random.Random(1)
    row = " ".join(blocks[pick.randrange(2)] for _ in range(400))
    like = " ".join(pick.choice("ab") for _ in range(400 * 1024))
    length = 24 * 1024

    def seconds(text: str) -> float:
        column = pl.Series("text", [text])
        start = time.process_time()
        assert tadoc.repeats(column, length=length).num_rows == 0
        assert tadoc.overlap(column, column, length=length)["length"].to_pylist() == [400 * 1024]
        return time.process_time() - start

    seconds(like)
    assert seconds(row) < 10 * seconds(like) + 0.5


@given(columns(), st.integers(1, 6), st.integers(1, 4), st.sampled_from(list(IMAGES)))
def test_repeats(engine: str, rows: list[str | None], length: int, min_count: int, name: str) -> None:
    options, image = IMAGES[name]
    arguments = {**options, "engine": engine}
    expected = passages_oracle.repeats(documents_of(rows, image), length, min_count)
    for column in forms(rows):
        got = column.tadoc.repeats(length=length, min_count=min_count, **arguments)
        assert got.rows() == expected
        assert got.schema == {"id": pl.UInt32, "offset": pl.UInt32, "length": pl.UInt32} | {
            "copies": pl.UInt64,
            "first": pl.Boolean,
        }
    frame = pl.DataFrame({"text": pl.Series(rows, dtype=pl.String)})
    assert frame.lazy().tadoc.repeats("text", length=length, min_count=min_count, **arguments).collect().equals(got)


@pytest.mark.parametrize("limit", ["bytes", "windows"])
def test_more_than_a_device_numbers_is_left_to_the_cpu(
    engine: str, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limits of 2^31 bytes of text and 2^30 windows, lowered."""
    text, known = pl.Series("text", ["a b c d", None, "x a b c d"]), ["b c"]
    device: Any = GPU if engine == "gpu" else tight_engine(0)
    monkeypatch.setattr(windows_cuda, "MOST_WINDOWS", 3 if limit == "windows" else 100)
    monkeypatch.setattr(tokenize_cuda, "_MAX_BYTES", 10 if limit == "bytes" else 100)
    if engine == "cpu":  # the checks of the device, before it would begin
        name, check = {
            "bytes": ("number_words", lambda rows, *_: tokenize_cuda.text_rows(rows, "fewer rows at a time")),
            "windows": ("find_windows", windows_cuda.find_windows),
        }[limit]
        monkeypatch.setattr(windows_cuda, "device_errors", lambda _: nullcontext())
        monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(full=np.full, zeros=np.zeros))
        setattr(device.kernels, name, check)
        monkeypatch.setattr(GPU.kernels, "device_problem", lambda: None)
    monkeypatch.setattr(windows, "choose", lambda *_: device)
    calls: list[Callable[[str], Any]] = [
        lambda on: text.tadoc.repeats(length=2, engine=on).rows(),
        lambda on: text.tadoc.drop_repeats(length=2, engine=on).to_list(),
    ]
    if limit == "bytes":  # windows are looked up one by one in a reference
        calls += [lambda on: text.tadoc.overlap(pl.Series(known), length=2, engine=on).rows()]
        calls += [lambda on: text.tadoc.overlaps(pl.Series(known), length=2, engine=on).to_list()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "choose", lambda *_: CPU)
        expected = [call("cpu") for call in calls]
    said = {"bytes": "32-bit positions", "windows": "too many for one sort"}[limit]
    for call, result in zip(calls, expected, strict=True):
        with pytest.warns(DeviceMemoryWarning, match=f"{said}.* on the CPU"):
            assert call("auto") == result
        with pytest.raises(DeviceMemoryError, match=said):
            call("gpu")


@given(columns(), st.integers(1, 6), st.sampled_from(list(IMAGES)))
def test_shares(rows: list[str | None], length: int, name: str) -> None:
    arguments, image = IMAGES[name]
    documents = documents_of(rows, image)
    for column in forms(rows):
        repeated = column.tadoc.repeated_share(length=length, **arguments)
        assert repeated.to_list() == passages_oracle.repeated_share(documents, length)
        new = column.tadoc.novelty(length=length, **arguments)
        assert new.to_list() == passages_oracle.novelty(documents, length)
        assert (new.dtype, new.name) == (pl.Float64, "text")
        by_expression = column.to_frame().select(
            a=pl.col("text").tadoc.repeated_share(length=length, **arguments),
            b=pl.col("text").tadoc.novelty(length=length, **arguments),
        )
        assert by_expression.rows() == list(zip(repeated, new, strict=True))


@given(columns(), st.integers(1, 4))
def test_shares_of_groups(rows: list[str | None], length: int) -> None:
    keys = [place % 3 for place in range(len(rows))]
    for column in forms(rows):
        frame = pl.DataFrame({"key": pl.Series(keys, dtype=pl.Int64), "text": column})
        got = frame.select("key", share=pl.col("text").tadoc.novelty(length=length).over("key"))
        for key in set(keys):
            own = [row for row, of in zip(rows, keys, strict=True) if of == key]
            assert got.filter(pl.col("key") == key)["share"].to_list() == passages_oracle.novelty(
                documents_of(own), length
            )


def test_passages_are_what_extract_gives() -> None:
    text = pl.Series("text", ["one. two, three four", "a one;\ntwo three five", "two two three"])
    got = text.tadoc.repeats(length=2)
    assert got.select("id", "offset", "length").rows() == [(0, 0, 3), (1, 1, 3), (2, 1, 2)]
    passages = [
        tadoc.extract(text.gather([row]), offset, length).item() for row, offset, length, _, _ in got.iter_rows()
    ]
    assert passages == ["one. two, three", "one;\ntwo three", "two three"]


@pytest.mark.parametrize("labels", LABELS)
def test_labels(labels: str) -> None:
    ids = LABELS[labels]
    text = pl.Series("text", ["a b"] * 10)
    got = text.tadoc.repeats(id=ids, length=2)
    assert got["id"].equals(ids.alias("id"))
    frame = pl.DataFrame({"label": ids, "text": text})
    lazy = frame.lazy().tadoc.repeats("text", id="label", length=2)
    assert lazy.collect_schema() == got.schema
    assert lazy.collect().equals(got)
    assert frame.tadoc.repeats("text", id="label", length=2).equals(got)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"length": 0}, ValueError, "length=0 must be at least 1"),
        ({"length": "5"}, TypeError, "must be an integer"),
        ({"min_count": 1.5}, TypeError, "must be an integer"),
        ({"min_count": -1}, ValueError, "min_count=-1 must be at least 0"),
        ({"lowercase": 1}, TypeError, "lowercase=1"),
        ({"tokenizer": "nothing"}, ValueError, "tokenizer='nothing'"),
    ],
)
def test_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        COLUMN.tadoc.repeats(**arguments)


def test_rows_of_different_tokenizers_share_words() -> None:
    column = pl.concat(
        [pl.Series("text", ["a b c"]).tadoc.compress(tokenizer=name) for name in ("words", "whitespace")]
    )
    assert column.tadoc.repeats(length=3).rows() == [(0, 0, 3, 2, True), (1, 0, 3, 2, False)]


def test_too_many_words_are_refused() -> None:
    grammar = handmade.grammar(["a", "b"], [[0, 1], *([k + 2, k + 2] for k in range(40))])
    with tadoc.Config(expansion_limit=1 << 42):
        column = handmade.column(grammar, [[42, 42], [0]])
        with pytest.raises(LimitExceededError, match="more than 4,294,967,294 words and rows"):
            column.tadoc.repeats()
    column = handmade.column(handmade.grammar(["a", "b"], [[0, 1]]), [[2] * 6])
    with tadoc.Config(expansion_limit=11), pytest.raises(LimitExceededError, match=r"repeats: .*more than 11 words"):
        column.tadoc.repeats(length=2)
