"""Names and numbers that Polars, Arrow or the system take for something else give the right result or a named error."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc

ROWS = ["a b c a b", None, "b c a b"]
NAMES = ["^a$", "^.*$", "a\0b", "\0", ""]

CALLS: dict[str, Callable[[pl.DataFrame, str], Any]] = {
    "decompress": lambda df, name: df.tadoc.decompress(name)[name].to_list(),
    "like": lambda df, name: df.tadoc.decompress(name).tadoc.compress(name, like=df[name])[name].tadoc.decompress(),
    "word_count": lambda df, name: df.tadoc.word_count(name),
    "word_count of text": lambda df, name: df.tadoc.decompress(name).tadoc.word_count(name),
    "lazy": lambda df, name: df.lazy().tadoc.sequence_count(name, n=2).collect(),
    "memory_limit": lambda df, name: df.lazy().tadoc.word_count(name, memory_limit="300MB").collect(),
    "index": lambda df, name: df.tadoc.build_index(name).search("c"),
    "content_hash": lambda df, name: tadoc.content_hash(df[name]),
    "equals": lambda df, name: tadoc.equals(df[name], df.tadoc.decompress(name)[name]),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", NAMES)
def test_names_of_columns_are_only_names(name: str, call: str) -> None:
    def answer(name: str) -> Any:
        found = CALLS[call](pl.DataFrame({name: ROWS}).tadoc.compress(name), name)
        if isinstance(found, pl.Series):
            assert found.name == name
            return found.to_list()
        return found.rows() if isinstance(found, pl.DataFrame) else found

    assert answer(name) == answer("text")


@pytest.mark.parametrize("name", ["^a$", "^.*$"])
def test_they_are_in_files(name: str, tmp_path: Path) -> None:
    df = pl.DataFrame({name: ROWS}).tadoc.compress(name)
    df.tadoc.write_packed(tmp_path / "packed")
    assert tadoc.scan_packed(tmp_path / "packed").tadoc.decompress(name).collect()[name].to_list() == ROWS
    df.lazy().tadoc.sink_index(tmp_path / "index", column=name)
    assert tadoc.load_index(tmp_path / "index").search("c").height == 2


def test_a_file_has_no_names_with_nul(tmp_path: Path) -> None:
    df = pl.DataFrame({"a\0b": ROWS}).tadoc.compress("a\0b")
    with pytest.raises(ValueError, match=r"write_packed: column name 'a\\x00b' has a NUL"):
        df.tadoc.write_packed(tmp_path / "packed")
    assert list(tmp_path.iterdir()) == []


def test_names_of_twigs_are_only_names() -> None:
    df = pl.DataFrame({"^x$": ["<a><b/></a>", "<c/>"]}).tadoc.compress("^x$", tokenizer="xml")
    queries = {"": "/a", "\0": "/a/b", "^x$": "//c"}
    found = df.select(pl.nth(0).tadoc.twig_filter(queries, as_struct=True).alias("found"))["found"]
    assert found.to_list() == [
        {"": True, "\0": True, "^x$": False},
        {"": False, "\0": False, "^x$": True},
    ]
    assert df.tadoc.twig_filter("^x$", queries).rows() == [(0, ""), (0, "\0"), (1, "^x$")]


@pytest.mark.parametrize("length", [242, 255, 300])
def test_long_names_of_targets_are_named(length: int, tmp_path: Path) -> None:
    df = pl.DataFrame({"text": ROWS}).tadoc.compress("text")
    path = tmp_path / ("b" * length)
    calls: dict[str, Callable[[], object]] = {
        "write_packed": lambda: df.tadoc.write_packed(path),
        "sink_parquet": lambda: df.lazy().tadoc.sink_parquet(path),
        "save": lambda: df.tadoc.build_index("text").save(path),
        "TwigSet.save": lambda: tadoc.TwigSet({"a": "/a"}).save(path),
    }
    for name, call in calls.items():
        with pytest.raises(OSError, match=f"{name}: a name of {length} bytes is too long") as told:
            call()
        assert told.value.errno == errno.ENAMETOOLONG
    assert list(tmp_path.iterdir()) == []
    df.tadoc.write_packed(tmp_path / ("b" * 241))


def test_huge_numbers_are_numbers() -> None:
    df = pl.DataFrame({"text": ROWS}).tadoc.compress("text")
    assert df.tadoc.preview(rows=2**64).equals(df.tadoc.preview(rows=3))
    assert df["text"].tadoc.preview(rows=2**64).equals(df["text"].tadoc.preview(rows=3))
    with df.tadoc.build_index("text").serve(k=1, deadline=10**400, engine="cpu") as server:
        assert server.submit("c").result().height == 1
