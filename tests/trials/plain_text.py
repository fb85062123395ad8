"""Plain files, asked without compressing: counted, searched, indexed, in a new process, interrupted, asked again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc
from tests.trials.corpora import manuals

FILES = 4

IN_A_NEW_PROCESS = """
import json, sys
import polars as pl
import polars_tadoc as tadoc
index = tadoc.load_index(sys.argv[1])
counted = pl.scan_parquet(sys.argv[2]).tadoc.word_count("text", top=20).collect()
print(json.dumps([index.search("the", k=10)["id"].to_list(), counted.rows()]))
"""

UNTIL_INTERRUPTED = """
import sys
import polars as pl
import polars_tadoc as tadoc
tadoc.word_count(pl.Series(["a"]))
print("begun", flush=True)
while True:
    pl.scan_parquet(sys.argv[1]).tadoc.word_count("text", memory_limit="400MB").collect()
"""


def run(folder: Path, size: str) -> None:
    """Ask the files; counts are those of a Counter or of the compressed column."""
    pages = manuals(size).filter(~pl.col("text").str.contains(r"[\p{Han}\p{Hiragana}\p{Katakana}]"))
    for k in range(FILES):
        pages.gather_every(FILES, k).write_parquet(folder / f"pages{k}.parquet", row_group_size=100)
    scan = pl.scan_parquet(folder / "pages*.parquet")
    pages, packed = scan.collect(), scan.collect().tadoc.compress("text")

    version = pages["version"][0]
    asked = scan.filter(pl.col("version") == version).tadoc.word_count("text")
    cut = pages.filter(pl.col("version") == version)["text"].str.extract_all(r"\w+")
    words = Counter(word for row in cut.to_list() for word in row)
    assert dict(asked.collect().rows()) == dict(words)
    everything = packed.tadoc.word_count("text")
    for options in ({}, {"memory_limit": "400MB"}):
        assert scan.tadoc.word_count("text", **options).collect().equals(everything)
    for call in ("inverted_index", "term_vector", "sequence_count"):
        assert getattr(pages.tadoc, call)("text").equals(getattr(packed.tadoc, call)("text"))
    by_version = [
        df.group_by("version").agg(pl.col("text").tadoc.word_count(top=5)).sort("version") for df in (pages, packed)
    ]
    assert by_version[0].equals(by_version[1])

    phrase = everything["word"][0] + " " + everything["word"][1]
    rows = [
        pl.col("text").tadoc.count_phrase(phrase).alias("phrase"),
        pl.col("text").tadoc.token_count().alias("words"),
        pl.col("text").tadoc.head(5).alias("head"),
        pl.col("text").tadoc.bm25(phrase).alias("score"),
    ]
    assert pages.lazy().select(rows).collect(engine="streaming").equals(packed.select(rows))

    if size == "full":
        many = 78_000_000
        row = pl.DataFrame({"text": ["to be or not " * many]})
        assert row["text"].str.len_bytes().item() > 1_000_000_000
        assert row.tadoc.word_count("text")["count"].to_list() == [many] * 4
        del row

    index = pages.tadoc.build_index("text", id="page")
    index.save(folder / "index")
    expected = packed.tadoc.build_index("text", id="page").search("the", k=10)
    assert index.search("the", k=10).equals(expected)
    files = str(folder / "pages*.parquet")
    command = [sys.executable, "-c", IN_A_NEW_PROCESS, str(folder / "index"), files]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found, counted = json.loads(done.stdout)
    assert found == expected["id"].to_list()
    assert [tuple(row) for row in counted] == everything.head(20).rows()

    before = sorted(folder.rglob("*"))
    started = subprocess.Popen(
        [sys.executable, "-c", UNTIL_INTERRUPTED, files], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert started.stdout is not None
    assert started.stdout.readline() == "begun\n"
    time.sleep(0.5)  # into one of its counts
    started.send_signal(signal.SIGINT)
    _, told = started.communicate(timeout=60)
    assert "KeyboardInterrupt" in told
    assert sorted(folder.rglob("*")) == before
    assert scan.tadoc.word_count("text").collect().equals(everything)
    assert tadoc.load_index(folder / "index").search("the", k=10).equals(expected)
