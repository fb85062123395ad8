"""Bars: one per call, on request only, from nothing to all rows."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.engine.progress import BlockProgress, bar_of

TEXTS = [f"a b c {number % 7}" for number in range(40)] + [None]
FRAME = pl.DataFrame({"text": TEXTS})
COLUMN = FRAME.tadoc.compress("text", rows_per_grammar=10)


def parts_of_a_file(folder: Path) -> pl.LazyFrame:
    COLUMN.tadoc.write_packed(folder / "texts.parquet")
    return tadoc.scan_packed(folder / "texts.parquet")


CALLS: dict[str, Callable[[Path], object]] = {
    "compress": lambda _: FRAME.tadoc.compress("text"),
    "compress ": lambda _: FRAME.lazy().tadoc.compress("text", rows_per_grammar=10).collect(),
    "recompress": lambda _: COLUMN.tadoc.recompress(),
    "word_count": lambda _: COLUMN.tadoc.word_count(),
    "word_count ": lambda _: FRAME.tadoc.word_count("text"),
    "cooccurrence": lambda _: COLUMN.tadoc.cooccurrence(),
    "sequence_count": lambda folder: parts_of_a_file(folder).tadoc.sequence_count(memory_limit="1GB").collect(),
    "tfidf": lambda folder: parts_of_a_file(folder).tadoc.tfidf(memory_limit="1GB").collect(),
    "to_csr": lambda _: tadoc.to_csr(COLUMN["text"]),
    "build_index": lambda _: COLUMN.tadoc.build_index("text"),
    "sink_index": lambda folder: parts_of_a_file(folder).tadoc.sink_index(folder / "index"),
}


@pytest.mark.parametrize("call", CALLS)
def test_one_bar_ends_with_all_rows(call: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = tmp_path / "again"
    again.mkdir()
    CALLS[call](tmp_path)
    assert "rows" not in capsys.readouterr().err
    with tadoc.Config(progress=True):
        CALLS[call](again)
    shown = capsys.readouterr().err
    assert set(re.findall(r"([a-z_]+): ", shown)) - {"round"} == {call.strip()}
    last = shown.rstrip().rpartition("\r")[2]
    assert re.search(r"41/41|41 rows", last), last


def test_an_argument_precedes_the_setting(capsys: pytest.CaptureFixture[str]) -> None:
    with tadoc.Config(progress=True):
        tadoc.compress(FRAME["text"], progress=False)
    assert capsys.readouterr().err == ""


class Counter:
    """A bar that adds."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def update(self, rows: int) -> None:
        self.rows.append(rows)

    def set_postfix_str(self, text: str) -> None:
        assert "round" in text

    def __enter__(self) -> Counter:
        return self

    def __exit__(self, *_: Any) -> None: ...


def test_rounds_advance_within_a_block() -> None:
    bar = Counter()
    block = BlockProgress(bar, 100)
    for number in range(20):
        block.round(number, 5)
    assert 50 < sum(bar.rows) < 100
    block.finish()
    assert sum(bar.rows) == 100


def test_threads_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        with bar_of(100, "outer", True) as bar:
            with bar_of(9, "inner", True) as inner:
                inner.update(9)  # shows nothing
            workers = [threading.Thread(target=bar.update, args=(7,)) for _ in range(8)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    shown = capsys.readouterr().err
    assert "inner" not in shown
    assert "56/100" in shown
    with bar_of(3, "next", True):
        pass
    assert "3/3" in capsys.readouterr().err


def test_the_setting_is_a_bool() -> None:
    with pytest.raises(ValueError, match="progress=1 must be True or False"):
        tadoc.Config(progress=1)
