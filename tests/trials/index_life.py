"""An index's whole life: built, saved, loaded in a new process, asked, appended to, deleted from, compacted."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import bm25s
import numpy as np
import polars as pl

import polars_tadoc as tadoc
from tests.trials.corpora import documents

QUERIES = ["error connection failed", "list all files", "how many apples are left", "supersonic flow", "the people"]

IN_A_NEW_PROCESS = """
import json, sys
import polars_tadoc as tadoc
index = tadoc.load_index(sys.argv[1])
found = index.search(json.loads(sys.argv[2]), k=10)
print(json.dumps(found.select("query", "id", "score").rows()))
"""


def words(texts: pl.Series) -> list[list[str]]:
    """Cut texts as the index does."""
    return texts.str.to_lowercase().str.extract_all(r"\w+").to_list()


def require_same_scores(index: tadoc.Index, texts: pl.Series) -> None:
    """Compare the best ten scores of each query with those of bm25s."""
    model = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
    model.index(words(texts), show_progress=False)
    for query in QUERIES:
        found = index.search(query, k=10)["score"].to_numpy()
        tokens = [word for word in words(pl.Series([query]))[0] if word in model.vocab_dict]
        wanted = np.sort(model.get_scores(tokens))[::-1][: len(found)] if tokens else np.zeros(0)
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def run(folder: Path, size: str) -> None:
    """Live through it; scores are those of bm25s, phrases those of a regular expression."""
    docs = documents(size).filter(~pl.col("text").str.contains(r"[\p{Han}\p{Hiragana}\p{Katakana}]"))
    begun = docs.height * 9 // 10
    first, rest = docs.head(begun), docs.slice(begun)
    compressed = first.tadoc.compress("text")
    index = compressed.tadoc.build_index("text", id="number", lowercase=True)
    index.save(folder / "index")
    require_same_scores(index, first["text"])

    command = [sys.executable, "-c", IN_A_NEW_PROCESS, str(folder / "index"), json.dumps(QUERIES)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    here = index.search(QUERIES, k=10).select("query", "id", "score").rows()
    assert [tuple(row) for row in json.loads(done.stdout)] == here

    loaded = tadoc.load_index(folder / "index")
    grown = rest.tadoc.compress("text").tadoc.append_to(loaded, "text", id="number")
    assert grown.documents == docs.height
    gone = docs["number"].gather_every(10)
    small = grown.delete(gone).compact()
    left = docs.filter(~pl.col("number").is_in(gone.implode()))
    assert small.documents == left.height
    require_same_scores(small, left["text"])

    small.save(folder / "index", overwrite=True)
    again = tadoc.load_index(folder / "index", mmap=False)
    found = again.search(QUERIES, k=5)
    shown = again.snippets(found, QUERIES)
    assert shown.height == found.height
    for query, snippet in shown.select("query", "snippet").rows():
        marked = re.findall(r"\*\*(.+?)\*\*", snippet)
        asked = QUERIES[query] if isinstance(query, int) else query
        assert marked
        assert {word.lower() for mark in marked for word in re.findall(r"\w+", mark)} <= set(asked.split())
    phrase = again.search('"' + " ".join(words(left["text"].head(1))[0][:2]) + '"', k=left.height)
    pair = r"(?i)\b" + r"\W+".join(words(left["text"].head(1))[0][:2]) + r"\b"
    assert set(phrase["id"]) == set(left.filter(pl.col("text").str.contains(pair))["number"])
