"""A loaded index takes no more memory than it needs: words, postings and text are decoded when they are asked for."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.errors import InvalidIndexError

TEXTS = [f"error {row} on node n{row % 17} after {row % 5} retries" for row in range(500)]
PHRASE = '"node n3"'


def build(texts: list[str]) -> tadoc.Index:
    return pl.DataFrame({"text": texts}).tadoc.compress("text").tadoc.build_index("text")


def is_read(index: tadoc.Index) -> bool:
    assert index.stored.stored_text is not None
    return index.stored.stored_text.is_read


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    build(TEXTS).save(tmp_path / "index")
    return tmp_path / "index"


READS: dict[str, tuple[bool, Callable[[tadoc.Index], object]]] = {
    "search": (False, lambda index: index.search(["error n3", "retries"], mode="and")),
    "explain": (False, lambda index: index.explain("node", 3)),
    "repr": (False, repr),
    "phrase": (True, lambda index: index.search(PHRASE)),
    "snippets": (True, lambda index: index.snippets(index.search("node"), "node")),
    "pickle": (True, pickle.dumps),
}


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("name", READS)
def test_only_what_needs_the_text_reads_it(saved: Path, name: str, mmap: bool) -> None:
    reads, call = READS[name]
    index = tadoc.load_index(saved, mmap=mmap)
    assert not is_read(index)
    call(index)
    assert is_read(index) == reads


def test_changes_of_a_loaded_index_do_not_read_its_text(saved: Path, tmp_path: Path) -> None:
    loaded, built = tadoc.load_index(saved), build(TEXTS)
    more = pl.Series("text", ["error 7 on node n3", "all is well"]).tadoc.compress()
    changed, expected = (one.append(more).delete([3, 20]).compact().append(more) for one in (loaded, built))
    assert not is_read(loaded)
    assert not is_read(changed)
    assert changed.search("node n3").equals(expected.search("node n3"))
    found = expected.search(PHRASE, 50)
    assert changed.search(PHRASE, 50).equals(found)
    assert changed.snippets(found, PHRASE).equals(expected.snippets(found, PHRASE))
    changed.save(tmp_path / "again")
    assert tadoc.load_index(tmp_path / "again").search(PHRASE, 50).equals(found)


def test_text_is_that_of_the_index_that_was_loaded(saved: Path) -> None:
    """Another index is saved over it before its text is asked for."""
    loaded = tadoc.load_index(saved)
    build(["nothing of that"]).save(saved, overwrite=True)
    assert loaded.search(PHRASE).equals(build(TEXTS).search(PHRASE))


@pytest.mark.parametrize("name", ["text.parquet", "segment_0.terms.parquet"])
def test_a_file_that_is_changed_in_place_is_found_when_it_is_read(saved: Path, name: str) -> None:
    loaded = tadoc.load_index(saved)
    with (saved / name).open("r+b") as file:
        file.seek(40)
        byte = file.read(1)[0]
        file.seek(40)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(InvalidIndexError, match=name.replace(".", r"\.")):
        loaded.search(PHRASE)
    with pytest.raises(InvalidIndexError, match=name.replace(".", r"\.")):
        tadoc.load_index(saved, verify="all")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("verify", [True, False, "all"])
def test_no_page_of_its_files_stays_in_memory(tmp_path: Path, verify: Any) -> None:
    """What checks have read of mapped files is let go of; the files can be read as before."""
    index = build([f"error {row} on node n{row % 1700}" for row in range(20_000)])
    index.save(tmp_path / "index")
    loaded = tadoc.load_index(tmp_path / "index", verify=verify)
    parts = re.split(r"^([0-9a-f]+-[0-9a-f]+ .*)$", Path("/proc/self/smaps").read_text(), flags=re.MULTILINE)
    mapped = {name: about for name, about in pairwise(parts) if str(tmp_path) in name}
    low = {"segment_0.gaps.low.npy", "segment_0.counts.low.npy"}
    assert {Path(name.split()[-1]).name for name in mapped} == low  # the others are read when they are needed
    assert [about.split("Rss:")[1].split()[0] for about in mapped.values()] == ["0"] * len(mapped)
    assert loaded.search("error n3").equals(index.search("error n3"))
    assert loaded.search('"node n3"').equals(index.search('"node n3"'))


MEASURE = """
import os, sys
import polars_tadoc as tadoc

def resident():
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("RssAnon:"))

options = {"verify": "all" if sys.argv[3] == "all" else True, "mmap": sys.argv[4] == "mapped"}
tadoc.load_index(sys.argv[1], **options)  # brings the code that loading runs into memory
size = sum(file.stat().st_size for file in os.scandir(sys.argv[2]))
before = resident()
index = tadoc.load_index(sys.argv[2], **options)
first = resident() - before
del index
before = resident()
index = tadoc.load_index(sys.argv[2], **options)
print((first - 2 * 2**20) / size, (resident() - before) / size)  # some code is only run by indexes of many words
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("source", ["logs", "manual"])
def test_a_loaded_index_takes_at_most_one_and_a_half_times_its_files(
    tmp_path: Path, corpus: Callable[[str], pl.DataFrame], source: str
) -> None:
    """Of resident memory, pages of the index's files are none (see above); those of libraries' code are not counted."""
    if source == "logs":
        text = pl.concat([corpus(name)["text"] for name in ("logs_elastic", "logs_loghub2k")])
        text = text.head(100_000)
    else:
        text = corpus("versioned_longhorn")["text"]
    build(["to be or not to be"]).save(tmp_path / "small")
    build(text.to_list()).save(tmp_path / "index")
    environment = {**os.environ, "PYTHONPATH": str(Path(tadoc.__file__).parent.parent)}
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "small"), str(tmp_path / "index")]
    found = {}
    for options in (
        ("all", "mapped"),
        ("all", "mapped"),
        ("all", "read"),
        ("first use", "mapped"),
        ("first use", "read"),
    ):
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=True, env=environment)
        found[options] = max(map(float, done.stdout.split()))  # the first may compile kernels, which takes memory
    assert max(found.values()) <= 1.5, found
