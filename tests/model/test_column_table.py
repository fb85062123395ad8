"""The table "What Polars does not stop" of docs/column.md: each row, what it does and what to use instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from tests import ROOT

PAGE = ROOT / "docs" / "column.md"
TEXT = ["to be", "or not", "to be", "not to be"]
PLAIN = pl.DataFrame({"id": range(4), "text": TEXT})
A = pl.concat([PLAIN.head(2), PLAIN.tail(2)]).tadoc.compress("text", rows_per_grammar=2)
A_TEXT, BY_HASH = pl.col("text"), pl.col("text").tadoc.content_hash()
GRAMMAR = "TADOC"


def comparisons() -> None:
    first, third = A["text"].gather([0]), A["text"].gather([2])
    assert (first == third).to_list() == [False]
    assert not first.equals(third)
    assert A.select(A_TEXT.is_in(third.implode())).to_series().to_list() == [False, False, True, False]
    assert not A["text"].is_duplicated().any()
    assert tadoc.equals(first, third).to_list() == [True]
    assert A.filter(A_TEXT.tadoc.eq("to be"))["id"].to_list() == [0, 2]


def keys() -> None:
    assert A.group_by("text").len().height == 4
    assert A.unique("text").height == 4
    other = A.select(A_TEXT.gather([2]))
    assert A.join(other, on="text")["id"].to_list() == [2]
    assert A.select(pl.len().over("text")).to_series().to_list() == [1] * 4
    assert A["text"].n_unique() == A["text"].value_counts().height == A["text"].hash().n_unique() == 4
    assert A.group_by(BY_HASH).len().height == A.select(BY_HASH.n_unique()).item() == 3
    assert A.join(other, on=BY_HASH)["id"].to_list() == [0, 2]


def other_keys() -> None:
    assert len(A.partition_by("text")) == len(A.to_dummies("text").columns) - 1 == 4
    assert A["text"].mode().len() == A["text"].rle_id().n_unique() == 4
    assert A.select(A_TEXT.implode().list.unique().list.len()).item() == 4
    assert len(A.with_columns(key=BY_HASH).partition_by("key")) == 3
    assert A.tadoc.decompress("text")["text"].mode().to_list() == ["to be"]


def extremes() -> None:
    frame = A.with_columns(day=pl.lit(1))
    for call in ("min", "max", "sum", "arg_min", "arg_max"):
        extreme = getattr(A_TEXT, call)()
        assert frame.group_by("day").agg(extreme)["text"].null_count() == 1
        assert frame.select(extreme.over("day"))["text"].null_count() == A.height
        if not call.startswith("arg"):
            with pytest.raises(pl.exceptions.InvalidOperationError, match="not supported"):
                A.select(extreme)
    right = frame.group_by("day").agg(A_TEXT.tadoc.decompress().max())
    assert right["text"].to_list() == [max(TEXT)]


def orders() -> None:
    def texts(frame: pl.DataFrame) -> list[str]:
        return frame.tadoc.decompress("text")["text"].to_list()

    assert texts(A.sort("text")) != sorted(TEXT)
    assert A["text"].rank("ordinal").to_list() != PLAIN["text"].rank("ordinal").to_list()
    assert texts(A.top_k(2, by="text")) != texts(A.sort(A_TEXT.tadoc.decompress(), descending=True).head(2))
    assert texts(A.sort(A_TEXT.tadoc.decompress())) == sorted(TEXT)


def objects() -> None:
    values = [
        A.rows()[0][1],
        A.to_dicts()[0]["text"],
        A["text"].to_list()[0],
        A.to_pandas()["text"][0],
        A["text"].to_numpy()[0],
    ]
    assert all(GRAMMAR in str(value) for value in values)
    assert A.tadoc.decompress("text").rows() == PLAIN.rows()


def printing(capsys: pytest.CaptureFixture[str]) -> None:
    with pl.Config(fmt_str_lengths=1000):
        for shown in (str(A["text"]), A.glimpse(return_type="string"), A._repr_html_()):
            assert shown.count(GRAMMAR) >= 4
    print(A.tadoc.preview(), A["text"].tadoc.preview())
    printed = capsys.readouterr().out
    assert GRAMMAR not in printed
    assert printed.count("not to be") == 2


def json() -> None:
    for write in (A.write_json, A.write_ndjson):
        with pytest.raises(BaseException, match=r".") as raised:
            write()
        assert type(raised.value).__name__ == "PanicException"
        assert not isinstance(raised.value, Exception)
    assert '"text":"not to be"' in A.tadoc.decompress("text").write_json()


ROWS: dict[str, Callable[..., Any]] = {
    "`==` between two columns, `is_in` with a column, `equals`, `is_duplicated`": comparisons,
    "`group_by`, `unique`, `join`, `over`, `n_unique`, `value_counts` *by* the column, `hash`": keys,
    "`partition_by`, `mode`, `rle_id`, `to_dummies`, `list.unique`": other_keys,
    "`min`, `max`, `sum`, `arg_min`, `arg_max` in `group_by` or `over`, in memory": extremes,
    "`sort`, `rank`, `top_k` *by* the column": orders,
    "`rows()`, `to_dicts()`, `to_list()`, `to_pandas()`, `to_numpy()`": objects,
    "`print(series)`, `df.glimpse()`, `df._repr_html_()`": printing,
    "`write_json`, `write_ndjson`": json,
}


def test_every_row_is_held() -> None:
    table = PAGE.read_text().partition("## What Polars does not stop")[2]
    rows = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines() if line.startswith("| ")]
    assert rows[2:] == list(ROWS)


@pytest.mark.parametrize("row", ROWS)
def test_what_polars_does_not_stop(row: str, capsys: pytest.CaptureFixture[str]) -> None:
    if row.startswith("`print"):
        ROWS[row](capsys)
    else:
        ROWS[row]()


@pytest.mark.parametrize("rows", [0, 2, 10])
def test_previews(rows: int) -> None:
    for form in (A, tadoc.as_storage(A)):
        shown = form.tadoc.preview(rows, words=1)
        expected = [text.split()[0] for text in TEXT][:rows]
        assert shown.equals(pl.DataFrame({"id": range(4), "text": ["to", "or", "to", "not"]}).head(rows))
        assert form["text"].tadoc.preview(rows, 1).equals(pl.Series("text", expected, pl.String))
    assert PLAIN.tadoc.preview(1).equals(PLAIN.head(1))
    with pytest.raises(tadoc.errors.NotCompressedError, match='preview: column "text" is String'):
        PLAIN["text"].tadoc.preview()
    with pytest.raises(ValueError, match="rows=-1 must be at least 0"):
        A.tadoc.preview(-1)
