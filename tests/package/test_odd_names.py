"""Names and numbers that Polars, Arrow or the system take for something else give the right result or a named error."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc

SURFACES: dict[str, dict[str, str]] = json.loads((Path(__file__).parents[1] / "surfaces.json").read_text("utf-8"))
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
    "drop_repeats": lambda df, name: df[name].tadoc.drop_repeats(length=2).tadoc.decompress(),
    "drop_repeats of text": lambda df, name: tadoc.drop_repeats(df.tadoc.decompress(name)[name], length=2),
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


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "eq": ("b c a b",),
    "extract": (1, 2),
    "count_phrase": ("a b",),
    "contains": ("a.b",),
    "count_matches": ("a b",),
    "find": ("b",),
    "extract_all": ("[ab]+",),
    "contains_phrase": ("a b",),
    "concordance": ("a b",),
    "positions": ("a b",),
    "contains_any": (["a b", "x"],),
    "bm25": ("c",),
    "twig_filter": ({"^x$": "/a"},),
    "overlap": (pl.Series("^a$", ["a b c " * 5]),),
    "overlap_share": (pl.Series("*", ["a b c " * 5]),),
    "overlaps": (pl.Series("*", ["a b c " * 5]),),
}
"""Of methods that need some."""
OF_FILES = {"write_packed", "write_parquet", "sink_packed", "sink_parquet", "sink_index", "append_to"}
METHODS = [
    (surface, method)
    for surface in ("DataFrame", "LazyFrame", "Series", "Expr")
    for method in SURFACES[surface]
    if method not in OF_FILES
]


def answered(surface: str, method: str, frame: pl.DataFrame, name: str, id: str) -> Any:
    """Call a method on the column, with labels where it takes them; columns of its name become "text"."""
    given: list[Any] = [*ARGUMENTS.get(method, ())]
    named: dict[str, Any] = {}
    if "id" in SURFACES[surface][method]:
        named["id"] = frame[id] if surface == "Series" else id
    if method == "unpack":
        frame = frame.tadoc.pack(name)
    if surface in ("DataFrame", "LazyFrame") and method != "preview":
        given.insert(0, name)
    target: Any = {
        "DataFrame": lambda: frame.tadoc,
        "LazyFrame": lambda: frame.lazy().tadoc,
        "Series": lambda: frame[name].tadoc,
        "Expr": lambda: pl.nth(0).tadoc,
    }[surface]()
    found: Any = getattr(target, method)(*given, **named)
    if surface == "Expr":
        found = frame.select(found)
    if isinstance(found, pl.LazyFrame):
        found = found.collect()
    if isinstance(found, pl.Series):
        found = found.to_frame()
    if isinstance(found, tadoc.Index):
        found = found.search("c")
    if isinstance(found, pl.DataFrame):
        found = found.rename({name: "text"} if name in found.columns else {}).rename(
            {id: "id"} if id in found.columns else {}
        )
        packed = [n for n in found.columns if tadoc.is_packed(found.schema[n])]
        found = found.tadoc.unpack(packed[0]) if packed else found
        for column in [n for n in found.columns if tadoc.is_tadoc(found.schema[n])]:
            found = found.tadoc.decompress(column)
        return found.columns, found.rows()
    matrix, words = found
    return matrix.toarray().tolist(), words.to_list()


@cache  # the answer under plain names is compared with several
def of_rows(surface: str, method: str, name: str, id: str) -> Any:
    rows = ["<a>b</a>", None, "<c/>"] if method == "twig_filter" else ROWS
    frame = pl.DataFrame({name: rows, id: ["x", "y", "z"]})
    if method != "compress":
        frame = frame.tadoc.compress(name, tokenizer="xml" if method == "twig_filter" else "words")
    return answered(surface, method, frame, name, id)


@pytest.mark.parametrize("name", ["^a$", "^.*$", "*"])
@pytest.mark.parametrize(("surface", "method"), METHODS)
def test_every_method_takes_patterns_for_names(surface: str, method: str, name: str) -> None:
    assert of_rows(surface, method, name, "^i.*$") == of_rows(surface, method, "text", "id")


@pytest.mark.parametrize("name", ["^a$", "^.*$"])
def test_they_are_in_files(name: str, tmp_path: Path) -> None:
    df = pl.DataFrame({name: ROWS}).tadoc.compress(name)
    df.tadoc.write_packed(tmp_path / "packed")
    assert tadoc.scan_packed(tmp_path / "packed").tadoc.decompress(name).collect()[name].to_list() == ROWS
    df.lazy().tadoc.sink_index(tmp_path / "index", column=name)
    assert tadoc.load_index(tmp_path / "index").search("c").height == 2


def test_a_packed_file_has_no_names_with_nul(tmp_path: Path) -> None:
    df = pl.DataFrame({"a\0b": ROWS}).tadoc.compress("a\0b")
    with pytest.raises(ValueError, match=r"write_packed: column name 'a\\x00b' has a NUL"):
        df.tadoc.write_packed(tmp_path / "packed")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a\0b", "\0"])
def test_parquet_files_and_indexes_have_names_with_nul(name: str, tmp_path: Path) -> None:
    other = f"{name}{name}"
    df = pl.DataFrame({name: ROWS, other: [1, 1, 2]}).tadoc.compress(name)
    df.lazy().tadoc.sink_parquet(tmp_path / "sunk")
    df.tadoc.write_parquet(tmp_path / "written")
    for path in (tmp_path / "sunk", tmp_path / "written"):
        for back in (pl.read_parquet(path), tadoc.scan_parquet(path).collect()):
            assert back.schema == df.schema
            assert back.tadoc.decompress(name).rows() == list(zip(ROWS, [1, 1, 2], strict=True))
    df.lazy().tadoc.sink_parquet(tmp_path / "parts", partition_by=other)
    back = tadoc.scan_parquet(tmp_path / "parts").tadoc.decompress(name).collect()
    assert sorted(back[name].to_list(), key=str) == sorted(ROWS, key=str)
    df.lazy().tadoc.sink_index(tmp_path / "index", column=name, id=other)
    assert tadoc.load_index(tmp_path / "index").search("c")["id"].to_list() == [2, 1]


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


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no folder in which nobody can make files")
def test_folders_without_room_for_files_are_named() -> None:
    """The errors do not name a temporary file."""
    df = pl.DataFrame({"text": ROWS}).tadoc.compress("text")
    calls: dict[str, Callable[[str], object]] = {
        "write_packed": df.tadoc.write_packed,
        "sink_parquet": df.lazy().tadoc.sink_parquet,
        "save": df.tadoc.build_index("text").save,
        "TwigSet.save": tadoc.TwigSet({"a": "/a"}).save,
        "PassageSet.save": tadoc.PassageSet(pl.Series(["a"])).save,
    }
    for name, call in calls.items():
        with pytest.raises(
            FileNotFoundError, match=rf"{name}: cannot write /proc/x \(.*\); choose another folder"
        ) as told:
            call("/proc/x")
        assert ".tmp" not in str(told.value)


def test_huge_numbers_are_numbers() -> None:
    df = pl.DataFrame({"text": ROWS}).tadoc.compress("text")
    assert df.tadoc.preview(rows=2**64).equals(df.tadoc.preview(rows=3))
    assert df["text"].tadoc.preview(rows=2**64).equals(df["text"].tadoc.preview(rows=3))
    with df.tadoc.build_index("text").serve(k=1, deadline=10**400, engine="cpu") as server:
        assert server.submit("c").result().height == 1
