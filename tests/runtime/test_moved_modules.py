"""Objects that were pickled before modules moved are read, and mean the same."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.runtime import moved_modules
from tests import ROOT

FOLDER = ROOT / "tests" / "data" / "moved_modules"
TEXT = ["the cat sat on the mat", None, "the dog sat on the cat", ""]


def kept(name: str) -> Any:
    return pickle.loads((FOLDER / f"{name}.pickle").read_bytes())


def test_columns() -> None:
    assert kept("series").dtype == tadoc.DTYPE
    assert kept("series").tadoc.decompress().to_list() == TEXT
    assert kept("frame")["id"].to_list() == [1, 2, 3, 4]
    assert kept("corpora").grammar.vocabulary_size == 6


def test_index() -> None:
    assert kept("index").search("dog")["id"].to_list() == [3]


def test_dictionary_and_twigs() -> None:
    assert kept("dictionary").words(pl.Series([0, 1, 2], dtype=pl.UInt32)).to_list() == ["cat", "dog", "the"]
    frame = pl.DataFrame({"text": ["<a><b/></a>", "<a/>"]})
    assert frame.tadoc.twig_filter("text", kept("twig_set")).height == 1
    assert frame.tadoc.compress("text", tokenizer="xml").select(kept("twig")).to_series().list.len().to_list() == [1, 0]


def test_weighting() -> None:
    assert kept("weighting") == [tadoc.BM25(k1=1.5), tadoc.TFIDF()]


def test_functions() -> None:
    assert pickle.loads(b"cpolars_tadoc.calibration\ncalibrate\n.") is tadoc.calibrate


def test_requests() -> None:
    texts = pl.Series("text", TEXT).tadoc.compress()  # type: ignore[attr-defined]
    requests = kept("requests")
    assert {type(request).__name__ for request in requests.values()} == set(moved_modules._REQUESTS.values()) - {
        "WeightsRequest"  # only its subclasses are made
    }
    frame = pl.DataFrame({"text": TEXT}).tadoc.compress("text")
    for name in ("word_count", "term_vector", "tfidf", "inverted_index", "sequence_count"):
        now = getattr(frame.tadoc, name)("text", lowercase=True, stopwords=["the"])
        assert requests[name].frame(texts).equals(now)
    assert requests["count_phrase"].run(texts).to_list() == [1, None, 1, 0]
    assert requests["bm25"].run(texts).equals(tadoc.bm25(texts, "cat", scoring="wakatsuki", k1=1.2))
    assert requests["equals"].run(texts, texts).to_list() == [True] * 4


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="Polars reads functions that this Python pickled")
@pytest.mark.parametrize("name", ["expressions", "bm25", "word_count"])
def test_expressions(name: str) -> None:
    text = pl.col("text").tadoc
    now = {
        "expressions": [text.token_count(), text.count_phrase("the cat"), text.content_hash(), text.head(2)],
        "bm25": [text.bm25("cat")],
        "word_count": [text.word_count()],
    }[name]
    before = kept(name) if name == "expressions" else [kept(name)]
    frame = pl.DataFrame({"text": TEXT}).tadoc.compress("text")
    for one, other in zip(before, now, strict=True):
        found, expected = frame.select(one), frame.select(other)
        if found.to_series().dtype == tadoc.DTYPE:
            found, expected = found.tadoc.decompress("text"), expected.tadoc.decompress("text")
        assert found.equals(expected)


EACH = """
import os, pathlib, pickle, sys
import numba, polars, pyarrow  # once, for all
for path in sys.argv[1:]:
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0, path
    else:
        assert not any(name.startswith("polars_tadoc") for name in sys.modules)
        import polars_tadoc
        pickle.loads(pathlib.Path(path).read_bytes())
        print(path, flush=True)
        os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_in_fresh_processes() -> None:
    paths = sorted(map(str, FOLDER.glob("*.pickle")))
    command = [sys.executable, "-W", "error", "-c", EACH, *paths]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines() == paths
