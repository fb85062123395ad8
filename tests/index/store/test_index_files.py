"""Saved indices: round trips, and files that are damaged."""

from __future__ import annotations

import copy
import datetime
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.errors import InvalidIndexError
from polars_tadoc.index.store import folder as folder_module
from polars_tadoc.index.store.folder import HEADER
from tests.untrusted.test_hostile_files import put, reseal

CODECS = ["pfordelta", "rice"]
QUERIES = ["a", "b c", "a a b w3", "zz", "", "c zz", None]
DAYS = [datetime.date(2020, 1, 1), None, datetime.date(2021, 5, 5)]

WORDS = [f"w{number}" for number in range(60)]
TEXTS = [
    " ".join(["a"] * (row % 5) + WORDS[row % 7 :: 11] + ["b"] * (row % 3 == 0) + ["c" * (1 + row % 4)])
    for row in range(400)
]


def compressed(texts: list[str | None]) -> pl.Series:
    return pl.Series("text", texts, pl.String).tadoc.compress()


def make_index(codec: str = "pfordelta", **how: Any) -> tadoc.Index:
    """Three segments, the first two with deleted documents."""
    rows = len(TEXTS)
    ids = pl.Series([f"document {row}" for row in range(rows)])
    metadata = pl.DataFrame({"year": [row % 30 for row in range(rows)], "day": [DAYS[row % 3] for row in range(rows)]})
    column = compressed(list(TEXTS))
    index = None
    for start, stop in ((0, 250), (250, 370), (370, rows)):
        own = slice(start, stop)
        if index is None:
            index = tadoc.build_index(column[own], id=ids[own], metadata=metadata[own], codec=codec, **how)
        else:
            index = index.append(column[own], id=ids[own], metadata=metadata[own])
    assert index is not None
    index = index.delete(ids[[0, 5, 200, 300]])
    assert [segment.deleted is not None for segment in index.segments] == [True, True, False]
    return index


def results(index: tadoc.Index) -> list[pl.DataFrame]:
    return [
        index.search(QUERIES, 20),
        index.search(QUERIES, 20, mode="and", scoring="bm25+"),
        index.search(QUERIES, 500, filter=pl.col("year") > 10),
    ]


def assert_same(one: tadoc.Index, other: tadoc.Index) -> None:
    assert (one.documents, one.terms, one.postings) == (other.documents, other.terms, other.postings)
    for found, expected in zip(results(one), results(other), strict=True):
        assert found.equals(expected)
    assert one.ids.equals(other.ids)
    assert one.metadata is not None
    assert other.metadata is not None
    assert one.metadata.equals(other.metadata)
    assert one.metadata.schema == other.metadata.schema


@pytest.fixture(scope="module", params=CODECS)
def saved(request: pytest.FixtureRequest) -> Iterator[tuple[Path, tadoc.Index]]:
    index = make_index(request.param)
    with tempfile.TemporaryDirectory() as name:
        index.save(Path(name) / "index")
        yield Path(name) / "index", index


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("verify", [True, False, "all"])
def test_round_trip(saved: tuple[Path, tadoc.Index], verify: Any, mmap: bool) -> None:
    path, index = saved
    loaded = tadoc.load_index(path, verify=verify, mmap=mmap)
    assert_same(loaded, index)
    assert loaded.stored.text is not None
    assert index.stored.text is not None
    assert loaded.stored.text.tadoc.decompress().equals(index.stored.text.tadoc.decompress())


def test_a_loaded_index_changes(saved: tuple[Path, tadoc.Index], tmp_path: Path) -> None:
    path, index = saved
    more = {"id": pl.Series(["new"]), "metadata": pl.DataFrame({"year": [1], "day": [DAYS[0]]})}
    changed, expected = (
        one.append(compressed(["a zz"]), **more).delete(pl.col("year") == 3).compact()
        for one in (tadoc.load_index(path), index)
    )
    assert_same(changed, expected)
    changed.save(tmp_path / "index")
    assert_same(tadoc.load_index(str(tmp_path / "index")), expected)


def test_files_are_plain(saved: tuple[Path, tadoc.Index]) -> None:
    path, index = saved
    header = json.loads((path / HEADER).read_text())
    assert header["format_version"] == 1
    assert header["codec"] == index.codec
    assert {HEADER, *header["files"]} == {file.name for file in path.iterdir()}
    for name, known in header["files"].items():
        assert (path / name).stat().st_size == known["bytes"]
        assert zlib.crc32((path / name).read_bytes()) == known["crc32"]
        if name.endswith(".npy"):
            array = np.load(path / name)
            assert (array.dtype.str, array.shape) == (known["dtype"], (known["length"],))
    assert pl.read_ipc(path / "ids.arrow")["id"].equals(index.stored.ids)
    words = pl.read_parquet(path / "segment_0.terms.parquet").to_series()
    assert words.equals(index.segments[0].terms.series, check_names=False)
    assert list(path.parent.iterdir()) == [path]  # nothing temporary is left


@pytest.mark.parametrize("dump", [pickle.dumps, cloudpickle.dumps], ids=["pickle", "cloudpickle"])
def test_pickle(saved: tuple[Path, tadoc.Index], dump: Callable[[object], bytes]) -> None:
    path, index = saved
    for one in (index, tadoc.load_index(path)):
        one.search("a")
        back = pickle.loads(dump(one))
        assert_same(back, index)
        assert not back.segments[0].lengths.flags.writeable
        assert back.segments[0].key != one.segments[0].key
    assert_same(copy.deepcopy(index), index)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("texts", [[], [None], [""], ["a"], ["", None, "", "a"], ["x"] * 129])
def test_small_indices(texts: list[str | None], codec: str, tmp_path: Path) -> None:
    index = tadoc.build_index(compressed(texts), codec=codec)
    index.save(tmp_path / "index")
    for mmap in (True, False):
        loaded = tadoc.load_index(tmp_path / "index", mmap=mmap)
        assert (loaded.documents, loaded.terms) == (index.documents, index.terms)
        assert loaded.ids.equals(index.ids)
        assert loaded.search(["a x", ""], 200).equals(index.search(["a x", ""], 200))
        assert loaded.append(compressed(["a"])).ids[-1] == len(texts)


def test_numbers_of_rows_take_no_file(tmp_path: Path) -> None:
    index = tadoc.build_index(compressed(["a", "b", "c"]), store=False)
    index.save(tmp_path / "index")
    assert not list(tmp_path.glob("index/*.arrow"))
    index.delete(1).compact().save(tmp_path / "less")
    assert tadoc.load_index(tmp_path / "less").ids.to_list() == [0, 2]


VALUES: dict[str, pl.Series] = {
    "Int128": pl.Series([1, 2, -(2**100)], dtype=pl.Int128),
    "Float32": pl.Series([0.5, float("nan"), None], dtype=pl.Float32),
    "Boolean": pl.Series([True, False, None]),
    "String": pl.Series(["x", "", "日本"]),
    "Binary": pl.Series([b"x", b"", b"\xff"]),
    "Date": pl.Series(DAYS),
    "Datetime": pl.Series([datetime.datetime(2020, 1, day) for day in (1, 2, 3)]).dt.replace_time_zone("Asia/Tokyo"),
    "Duration": pl.Series([datetime.timedelta(1), None, datetime.timedelta(microseconds=1)]),
    "Time": pl.Series([datetime.time(1, 2, 3), None, datetime.time(0)]),
    "Enum": pl.Series(["y", "x", "y"], dtype=pl.Enum(["x", "y"])),
    "Categorical": pl.Series(["y", "x", None], dtype=pl.Categorical),
    "Decimal": pl.Series(["1.5", "2.5", None]).cast(pl.Decimal(20, 3)),
    "List": pl.Series([[1, 2], [], None]),
    "Array": pl.Series([[1, 2], [3, 4], None], dtype=pl.Array(pl.Int8, 2)),
    "Struct": pl.Series([{"a": 1, "b": ["x"]}, {"a": None, "b": []}, {"a": 2, "b": None}]),
    "Null": pl.Series([None, None, None]),
    "compressed": pl.Series(["a b", "c", None], dtype=pl.String).tadoc.compress(),
}


@pytest.mark.parametrize("name", VALUES)
def test_ids_and_metadata_of_many_types(name: str, tmp_path: Path) -> None:
    values = VALUES[name]
    metadata = pl.DataFrame({"": values, "b": values})
    tadoc.build_index(compressed(["a", "b", "a"]), id=values, metadata=metadata).save(tmp_path / "index")
    loaded = tadoc.load_index(tmp_path / "index")
    assert loaded.ids.dtype == values.dtype
    assert loaded.ids.equals(values, check_names=False)
    assert loaded.metadata is not None
    assert loaded.metadata.schema == metadata.schema
    assert loaded.metadata.equals(metadata)
    assert loaded.search("b")["id"].equals(values[1:2], check_names=False)


def test_python_objects_are_not_saved(tmp_path: Path) -> None:
    index = tadoc.build_index(compressed(["a"]), metadata=pl.DataFrame({"o": pl.Series([object()], dtype=pl.Object)}))
    with pytest.raises(TypeError, match=r'column "o" has type pl\.Object'):
        index.save(tmp_path / "index")
    assert not list(tmp_path.iterdir())


def test_metadata_without_columns(tmp_path: Path) -> None:
    index = tadoc.build_index(compressed([]), metadata=pl.DataFrame())
    index.save(tmp_path / "index")
    assert tadoc.load_index(tmp_path / "index").metadata is not None


# What is replaced


def test_saving_twice(tmp_path: Path) -> None:
    path = tmp_path / "index"
    first, second = tadoc.build_index(compressed(["a"])), tadoc.build_index(compressed(["b", "a"] * 300))
    first.save(path)
    loaded = tadoc.load_index(path)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        second.save(path)
    second.save(path, overwrite=True)
    assert loaded.search("a").equals(first.search("a"))  # still mapped
    assert tadoc.load_index(path).search("a b").equals(second.search("a b"))
    assert list(tmp_path.iterdir()) == [path]
    second.delete(0).save(path, overwrite=True)
    tadoc.load_index(path).compact().save(path, overwrite=True)  # over its own files
    assert tadoc.load_index(path).documents == 599


def test_what_is_no_index_is_not_replaced(tmp_path: Path) -> None:
    index = tadoc.build_index(compressed(["a"]))
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").write_text("mine")
    (tmp_path / "empty").mkdir()
    for name in ("file", "folder"):
        with pytest.raises(FileExistsError, match="is not a saved index, and is not replaced"):
            index.save(tmp_path / name, overwrite=True)
    index.save(tmp_path / "empty", overwrite=True)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        index.save(tmp_path / "missing" / "index")
    assert (tmp_path / "file").read_text() == (tmp_path / "folder" / "mine").read_text() == "mine"
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    index.delete(0).save(tmp_path / "link", overwrite=True)
    assert tadoc.load_index(tmp_path / "empty").documents == 0


@pytest.mark.parametrize("overwrite", [True, False])
def test_saving_fails(overwrite: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "index"
    if overwrite:
        tadoc.build_index(compressed(["a"])).save(path)

    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(folder_module.Writer, "finish", fail)
    with pytest.raises(OSError, match="no space"):
        tadoc.build_index(compressed(["b"])).save(path, overwrite=overwrite)
    assert list(tmp_path.iterdir()) == [path] * overwrite
    if overwrite:
        assert tadoc.load_index(path).search("a").height == 1


def test_saving_fails_at_the_very_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "index"
    tadoc.build_index(compressed(["a"])).save(path)
    replace = os.replace

    def fail_to_replace(source: Any, target: Any) -> None:
        if str(source).endswith(".tmp"):
            raise OSError("gone")
        replace(source, target)

    monkeypatch.setattr(folder_module.os, "replace", fail_to_replace)
    with pytest.raises(OSError, match="gone"):
        tadoc.build_index(compressed(["b"])).save(path, overwrite=True)
    assert tadoc.load_index(path).search("a").height == 1
    assert list(tmp_path.iterdir()) == [path]


# What cannot be loaded


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist"):
        tadoc.load_index(tmp_path / "missing")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidIndexError, match="is a file; an index is a folder"):
        tadoc.load_index(tmp_path / "file")
    with pytest.raises(InvalidIndexError, match=r"has no file header\.json"):
        tadoc.load_index(tmp_path)


HEADERS = {
    "empty": "",
    "no JSON": "{",
    "deep": "[" * 100_000,
    "another list": "[1]",
    "another format": '{"format": "something"}',
    "no checksum": '{"format": "polars_tadoc index", "format_version": 1}',
}


@pytest.mark.parametrize("name", HEADERS)
def test_damaged_headers(name: str, tmp_path: Path) -> None:
    (tmp_path / HEADER).write_text(HEADERS[name])
    with pytest.raises(InvalidIndexError, match=r"header\.json is damaged"):
        tadoc.load_index(tmp_path)


def test_another_version(tmp_path: Path) -> None:
    (tmp_path / HEADER).write_text('{"format": "polars_tadoc index", "format_version": 3}')
    with pytest.raises(InvalidIndexError, match="has format version 3, this polars_tadoc reads versions up to 2"):
        tadoc.load_index(tmp_path)


def damaged_copy(path: Path, to: Path) -> Path:
    return Path(shutil.copytree(path, to / "copy"))


@pytest.mark.parametrize("verify", [True, False])
def test_a_file_is_missing(saved: tuple[Path, tadoc.Index], verify: bool, tmp_path: Path) -> None:
    for file in sorted(saved[0].iterdir()):
        copied = damaged_copy(saved[0], tmp_path)
        (copied / file.name).unlink()
        with pytest.raises(InvalidIndexError, match=file.name.replace(".", r"\.")):
            tadoc.load_index(copied, verify=verify)
        shutil.rmtree(copied)


def test_a_file_is_a_folder(saved: tuple[Path, tadoc.Index], tmp_path: Path) -> None:
    for name in (HEADER, "segment_0.heads.npy"):
        copied = damaged_copy(saved[0], tmp_path)
        (copied / name).unlink()
        (copied / name).mkdir()
        with pytest.raises(InvalidIndexError, match=name.replace(".", r"\.")):
            tadoc.load_index(copied)
        shutil.rmtree(copied)


USES: dict[str, Callable[[tadoc.Index], object]] = {
    "segment_0.terms.parquet": lambda index: index.search("a"),
    "segment_0.heads.npy": lambda index: index.top("a"),
    "segment_0.gaps.low.npy": lambda index: index.top("a"),
    "segment_1.lengths.npy": lambda index: index.search("a"),
    "ids.arrow": lambda index: index.ids,
    "metadata.arrow": lambda index: index.search("a", filter=pl.col("year") > 10),
    "text.parquet": lambda index: index.search('"a a"'),
}
"""Calls that need a file."""


@pytest.mark.parametrize("name", USES)
def test_a_damaged_file_is_named_by_the_call_that_needs_it(
    saved: tuple[Path, tadoc.Index], tmp_path: Path, name: str
) -> None:
    copied = damaged_copy(saved[0], tmp_path)
    content = bytearray((copied / name).read_bytes())
    content[-1] ^= 4
    (copied / name).write_bytes(content)
    loaded = tadoc.load_index(copied)
    assert loaded.stored.labelled
    for _ in range(2):
        with pytest.raises(InvalidIndexError, match=f"load_index: .*{re.escape(name)} is damaged: .*copy"):
            USES[name](loaded)
    with pytest.raises(InvalidIndexError, match=re.escape(name)):
        tadoc.load_index(copied, verify="all")


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("name", USES)
def test_a_file_is_cut_off_or_replaced_before_its_first_use(
    saved: tuple[Path, tadoc.Index], tmp_path: Path, name: str, verify: bool
) -> None:
    """Reading a mapping beyond the end of its file would end the process."""
    copied = damaged_copy(saved[0], tmp_path)
    cut, held = tadoc.load_index(copied, verify=verify), tadoc.load_index(copied, verify=verify, mmap=False)
    os.truncate(copied / name, 3)
    with pytest.raises(InvalidIndexError, match=rf"load_index: .*{re.escape(name)} is damaged: it has 3 bytes, not .*"):
        USES[name](cut)
    assert_same(held, saved[1])
    shutil.copy(saved[0] / name, copied / name)
    opened = tadoc.load_index(copied, verify=verify)
    (tmp_path / "other").write_bytes(b"x" * (copied / name).stat().st_size)
    (tmp_path / "other").replace(copied / name)
    assert_same(opened, saved[1])


def test_a_reader_goes_on_while_others_append(saved: tuple[Path, tadoc.Index], tmp_path: Path) -> None:
    """A loaded index has read nothing yet, but opened its files: it is the index that was loaded."""
    path, index = damaged_copy(saved[0], tmp_path), saved[1]
    readers = [tadoc.load_index(path)]
    for round in range(3):
        more = compressed([f"a b new{round}"])
        new = {"id": pl.Series([f"new {round}"]), "metadata": pl.DataFrame({"year": [50], "day": [DAYS[0]]})}
        tadoc.load_index(path).append(more, **new).save(path, overwrite=True)  # type: ignore[arg-type]
        readers.append(tadoc.load_index(path))
    for round, reader in enumerate(readers):
        assert reader.documents == index.documents + round
        assert [reader.count(f"new{number}") for number in range(3)] == [int(number < round) for number in range(3)]
        assert reader.count('"a b"') == index.count('"a b"') + round
    assert_same(readers[0], index)


def test_files_are_swapped(tmp_path: Path) -> None:
    texts = [["a b c", "b c d", "a"], ["x y z", "y z w", "x"]]
    for name, own in zip(("one", "other"), texts, strict=True):
        tadoc.build_index(compressed([*own])).save(tmp_path / name)
    for file in sorted((tmp_path / "one").iterdir()):
        if file.read_bytes() == (tmp_path / "other" / file.name).read_bytes() or file.name == HEADER:
            continue
        copied = damaged_copy(tmp_path / "one", tmp_path)
        shutil.copy(tmp_path / "other" / file.name, copied / file.name)
        with pytest.raises(InvalidIndexError, match=file.name.replace(".", r"\.")):
            tadoc.load_index(copied, verify="all")
        with pytest.raises(InvalidIndexError, match=file.name.replace(".", r"\.")):
            tadoc.load_index(copied).search('"a b"')
        shutil.rmtree(copied)


@given(data=st.data())
def test_bits_flip(saved: tuple[Path, tadoc.Index], data: st.DataObject) -> None:
    """Any change is found where all files are verified, or by the first use of its file; else it does no harm."""
    path, original = saved
    name = data.draw(st.sampled_from(sorted(file.name for file in path.iterdir())))
    content = bytearray((path / name).read_bytes())
    how = data.draw(st.sampled_from(["flip", "flip", "flip", "truncate", "lengthen", "garbage"]))
    place = data.draw(st.integers(0, len(content) - 1))
    if how == "flip":
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    elif how == "truncate":
        del content[place:]
    elif how == "lengthen":
        content += data.draw(st.binary(min_size=1, max_size=100))
    else:
        garbage = data.draw(st.binary(min_size=1, max_size=64))
        if content[place : place + len(garbage)] == garbage[: len(content) - place]:
            garbage = bytes(byte ^ 1 for byte in garbage)
        content[place : place + len(garbage)] = garbage
    with tempfile.TemporaryDirectory() as to:
        copied = damaged_copy(path, Path(to))
        (copied / name).write_bytes(content)
        with pytest.raises(InvalidIndexError, match=r"load_index: .*copy"):
            tadoc.load_index(copied, verify="all", mmap=data.draw(st.booleans()))
        with suppress(InvalidIndexError):
            assert_same(tadoc.load_index(copied, mmap=data.draw(st.booleans())), original)
        try:
            index = tadoc.load_index(copied, verify=False, mmap=data.draw(st.booleans()))
            results(index)
        except InvalidIndexError:
            return
        results(index.delete("document 7"))
        index.append(compressed(["a"]), id=pl.Series(["new"]), metadata=pl.DataFrame({"year": [1], "day": [DAYS[0]]}))
        try:
            index.compact()
        except InvalidIndexError:
            return


# Analyzers


@pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
def test_the_analyzer_is_saved(tokenizer: str, tmp_path: Path) -> None:
    texts = pl.Series(["The cats' tail", "a DOG, the cat", "the"]).tadoc.compress(tokenizer=tokenizer)
    normalize = pl.element().str.to_lowercase().str.strip_suffix("s").replace({"tail": "end", "a": None})
    index = tadoc.build_index(texts, normalize=normalize, lowercase=True, stopwords=["the", "日本"])
    index.save(tmp_path / "index")
    loaded = tadoc.load_index(tmp_path / "index")
    queries = ["Cats the", "tail", "dog", "a end"]
    assert loaded.search(queries).equals(index.search(queries))
    assert loaded.analyzer.tokenizer == index.analyzer.tokenizer


def test_python_functions_are_not_saved(tmp_path: Path) -> None:
    normalize = pl.element().map_elements(lambda word: word[:3], return_dtype=pl.String)
    index = tadoc.build_index(compressed(["singing", "sings"]), normalize=normalize)
    index.save(tmp_path / "index")
    assert "function" not in (tmp_path / "index" / HEADER).read_text()
    with pytest.raises(ValueError, match=r"load_index\(path, normalize=…\)"):
        tadoc.load_index(tmp_path / "index")
    loaded = tadoc.load_index(tmp_path / "index", normalize=normalize)
    assert loaded.search("single").equals(index.search("single"))


def test_normalize_is_not_needed(tmp_path: Path) -> None:
    tadoc.build_index(compressed(["a"]), lowercase=True).save(tmp_path / "index")
    with pytest.raises(ValueError, match="built without normalize="):
        tadoc.load_index(tmp_path / "index", normalize=pl.element())


def test_another_normalize_is_refused(tmp_path: Path) -> None:
    normalize = pl.element().str.to_lowercase().replace(pl.Series(["tail"]), pl.Series(["end"]))
    index = tadoc.build_index(compressed(["Tail", "END"]), normalize=normalize)
    index.save(tmp_path / "index")
    loaded = tadoc.load_index(tmp_path / "index", normalize=normalize)
    assert loaded.search("TAIL").equals(index.search("TAIL"))
    python = pl.element().map_elements(str.lower, return_dtype=pl.String)
    for wrong in (pl.element(), pl.element().str.to_lowercase(), python):
        with pytest.raises(ValueError, match="differs from the index's own"):
            tadoc.load_index(tmp_path / "index", normalize=wrong)


def test_a_normalize_that_cannot_be_read_is_given(tmp_path: Path) -> None:
    normalize = pl.element().str.to_lowercase()
    index = tadoc.build_index(compressed(["A", "b"]), normalize=normalize)
    index.save(tmp_path / "index")
    reseal(tmp_path / "index", put("analyzer/morphism/normalize/0", "str.to_an_operation_of_later_releases"))
    with pytest.raises(InvalidIndexError, match="which is not an operation on words"):
        tadoc.load_index(tmp_path / "index")
    assert tadoc.load_index(tmp_path / "index", normalize=normalize).search("a").equals(index.search("a"))


@pytest.mark.parametrize("wrong", [{"verify": "no"}, {"mmap": "x"}, {"normalize": "lower"}])
def test_wrong_options(wrong: dict[str, Any], tmp_path: Path) -> None:
    index = tadoc.build_index(compressed(["a"]))
    index.save(tmp_path / "index")
    with pytest.raises(TypeError, match=f"load_index: {next(iter(wrong))}"):
        tadoc.load_index(tmp_path / "index", **wrong)
    with pytest.raises(TypeError, match="save: overwrite='yes' must be True or False"):
        index.save(tmp_path / "index", overwrite="yes")  # type: ignore[arg-type]


# Several threads and processes


def test_threads(saved: tuple[Path, tadoc.Index]) -> None:
    path, index = saved
    expected = results(index)
    loaded = tadoc.load_index(path)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: results(loaded), range(16)):
            assert all(one.equals(other) for one, other in zip(found, expected, strict=True))


SEARCH = """
import sys
import polars_tadoc as tadoc
index = tadoc.load_index(sys.argv[1])
print(index.search(["a", "b c"], 5).hash_rows(1).to_list())
"""


@pytest.mark.slow
def test_other_processes(saved: tuple[Path, tadoc.Index]) -> None:
    path, _ = saved
    index = tadoc.load_index(path)
    expected = index.search(["a", "b c"], 5).hash_rows(1).to_list()
    done = subprocess.run(
        [sys.executable, "-c", SEARCH, str(path)], check=True, capture_output=True, text=True, timeout=120
    )
    assert json.loads(done.stdout) == expected


def test_a_folder_that_is_replaced_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = pl.DataFrame({"text": ["a a b"] * 30}).tadoc.build_index("text")
    new = pl.DataFrame({"text": ["b c"] * 500}).tadoc.build_index("text")
    path, read = tmp_path / "index", folder_module.Reader._read_header

    def replaced(self: folder_module.Reader) -> Any:
        found = read(self)
        monkeypatch.setattr(folder_module.Reader, "_read_header", read)
        new.save(path, overwrite=True)
        return found

    for verify in (True, False):
        old.save(path, overwrite=True)
        monkeypatch.setattr(folder_module.Reader, "_read_header", replaced)
        assert tadoc.load_index(path, verify=verify).count("c") == 500
