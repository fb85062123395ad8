"""Files of JSON that is nested to any depth: an error of this package, wherever Python's stack ends."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.dictionary import file as dictionary
from polars_tadoc.errors import InvalidDictionaryError, InvalidIndexError, InvalidRecordsError, InvalidTwigSetError
from polars_tadoc.index.store.folder import HEADER, _header_text
from polars_tadoc.records import Checkpoint
from polars_tadoc.records.checkpoint import MANIFEST, manifest_text
from tests.storage.test_only_own_files import compressed

pytestmark = pytest.mark.slow

DEPTH = 250
"""How deep the JSON is nested. To write it takes time with the square of that."""

ROOM = range(DEPTH - 30, DEPTH + 60)
"""Frames that are left to the reader: at the least of these it cannot parse the JSON, at the most of them it can do all
that it does with the values.
"""


FORMS = pytest.mark.parametrize("form", ["lists", "objects"])


def nested(form: str) -> Any:
    """Make lists or objects in one another."""
    value: Any = 1
    for _ in range(DEPTH):
        value = [value] if form == "lists" else {"a": value}
    return value


@contextmanager
def frames_left(count: int) -> Iterator[None]:
    """Let Python's stack end so many frames below the caller of the caller."""
    limit, depth, frame = sys.getrecursionlimit(), 0, inspect.currentframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(depth + count)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def refused(path: Path, said: str | bytes, read: Callable[[], object], *errors: type[Exception]) -> None:
    """Read a file wherever the stack ends: it is refused by one of some errors."""
    path.write_bytes(said.encode() if isinstance(said, str) else said)
    for room in ROOM:
        try:
            with frames_left(room):
                read()
        except errors as error:
            raised = str(error)
        else:
            raised = ""
        assert 0 < len(raised) < 2000, room


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("indexes") / "index"
    compressed().tadoc.build_index("text").save(path)
    return path


@FORMS
@pytest.mark.parametrize("where", [None, "format", "format_version", "crc32", "files", "documents", "codec", "x"])
def test_the_header_of_an_index(index: Path, where: str | None, form: str) -> None:
    header = json.loads((index / HEADER).read_text())

    def text(value: Any) -> str:
        return json.dumps(value if where is None else {**header, where: value})

    refused(index / HEADER, text(nested(form)), lambda: tadoc.load_index(index), InvalidIndexError)
    (index / HEADER).write_text(json.dumps(header, indent=1) + "\n")
    assert tadoc.load_index(index).documents == 2


@FORMS
@pytest.mark.parametrize("where", ["format_version", "files", "documents", "segments", "analyzer", "segment", "arrays"])
def test_the_header_of_an_index_under_its_checksum(index: Path, where: str, form: str) -> None:
    whole = (index / HEADER).read_text()
    header = json.loads(whole)
    del header["crc32"]

    def text(value: Any) -> str:
        if where in ("segment", "arrays"):
            value = [value] if where == "segment" else [{**header["segments"][0], "arrays": [value]}]
        return _header_text({**header, where if where in header else "segments": value})

    try:
        refused(index / HEADER, text(nested(form)), lambda: tadoc.load_index(index), InvalidIndexError)
    finally:
        (index / HEADER).write_text(whole)


@FORMS
@pytest.mark.parametrize("where", [None, "version", "question", "call", "runs", "covered", "x"])
@pytest.mark.parametrize("sealed", [True, False])
def test_the_manifest_of_a_checkpoint(tmp_path: Path, where: str | None, form: str, sealed: bool) -> None:
    def open_it() -> None:
        Checkpoint(tmp_path, {"call": "word_count", "files": [["a", 1]]}, "word_count").close()

    open_it()
    said = json.loads((tmp_path / MANIFEST).read_text())
    if where == "x" and sealed:
        pytest.skip("what is not asked for is left alone")

    def text(value: Any) -> str:
        if where == "call":
            value = {"call": value, "files": [["a", 1]]}
        changed = value if where is None else {**said, "question" if where == "call" else where: value}
        return manifest_text(changed) if sealed and where is not None else json.dumps(changed)

    refused(tmp_path / MANIFEST, text(nested(form)), open_it, InvalidRecordsError, ValueError)


@FORMS
@pytest.mark.parametrize("where", [None, "format", "version", "queries", "query", "namespaces"])
def test_a_set_of_twigs(tmp_path: Path, where: str | None, form: str) -> None:
    path = tmp_path / "twigs.json"
    tadoc.TwigSet({"a": "//a"}).save(path)
    said = json.loads(path.read_text())

    def text(value: Any) -> str:
        value = {"b": value} if where == "query" else value
        return json.dumps(value if where is None else {**said, "queries" if where == "query" else where: value})

    refused(path, text(nested(form)), lambda: tadoc.TwigSet.load(path), InvalidTwigSetError)


@FORMS
@pytest.mark.parametrize("where", [None, "arrays", "numbers", "tokenizer", "name", "dtype", "length", "crc32"])
def test_a_dictionary(tmp_path: Path, where: str | None, form: str) -> None:
    path = tmp_path / "words"
    tadoc.Dictionary.from_words(pl.Series(["to", "be"])).save(path)
    said, arrays = dictionary.read(path, verify=False)

    def text(value: Any) -> bytes:
        known = value if where in (None, "arrays") else [{**said["arrays"][0], where: value}]
        header = {**said, "arrays": known} if where not in said else {**said, where: value}
        start, own, *rest = dictionary.to_chunks({}, arrays)
        own = json.dumps(value if where is None else header).encode()
        own += b" " * (-(len(start) + len(own)) % dictionary.ALIGNMENT)
        size = len(start) + len(own)
        checksum = dictionary._checksum(dictionary.VERSION, size, own)
        start = dictionary._START.pack(dictionary.DICTIONARY.magic, dictionary.VERSION, checksum, size)
        return b"".join([start, own, *rest])

    refused(path, text(nested(form)), lambda: tadoc.Dictionary.load(path, verify=True), InvalidDictionaryError)
