"""More than the limit holds: a call is killed half way, and a new process goes on where it was."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc
from tests.trials.corpora import manuals

COUNT = """
import sys
import polars_tadoc as tadoc
lf = tadoc.scan_packed(sys.argv[1])
words = lf.tadoc.sequence_count("text", n=2, memory_limit=sys.argv[3], checkpoint=sys.argv[2])
words.tadoc.sink_parquet(sys.argv[4])
"""


def run(folder: Path, size: str) -> None:
    """Count pairs of words under a limit, through a kill; a Counter over the text gives the same."""
    pages = manuals(size)
    per_grammar = 500 if size == "full" else 6
    plan = pages.lazy().tadoc.compress("text", tokenizer="whitespace", rows_per_grammar=per_grammar)
    plan.tadoc.sink_packed(folder / "pages.parquet")
    limit = "300MB" if size == "full" else "20MB"
    arguments = [str(folder / "pages.parquet"), str(folder / "kept"), limit, str(folder / "pairs.parquet")]
    command = [sys.executable, "-c", COUNT, *arguments]
    started = subprocess.Popen(command)
    deadline = time.monotonic() + 120
    while started.poll() is None and time.monotonic() < deadline and not _finished(folder / "kept"):
        time.sleep(0.005)  # what is waited for is a file of another process
    started.kill()
    started.wait()
    assert not (folder / "pairs.parquet").exists() or started.returncode == 0
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    pairs = pl.read_parquet(folder / "pairs.parquet")

    counted: Counter[tuple[str, str]] = Counter()
    for text in pages["text"]:
        found = text.split()
        counted.update(itertools.pairwise(found))
    assert pairs.height == len(counted)
    assert pairs["count"].sum() == counted.total()
    top = pairs.sort("count", descending=True).head(1000)
    names = [name for name in pairs.columns if name != "count"]
    words = top.select(names).rows() if len(names) == 2 else [tuple(row) for row in top[names[0]].to_list()]
    assert [counted[(a, b)] for a, b in words] == top["count"].to_list()
    one = tadoc.scan_packed(folder / "pages.parquet").filter(pl.col("version") == pages["version"][0])
    frames = one.tadoc.word_count("text", memory_limit=limit).collect()
    plain = Counter(w for t in pages.filter(pl.col("version") == pages["version"][0])["text"] for w in t.split())
    assert dict(frames.rows()) == dict(plain)


def _finished(kept: Path) -> bool:
    """Tell whether a partition was finished: the checkpoint's folder holds more than its manifest."""
    return kept.is_dir() and sum(1 for one in kept.rglob("*") if one.is_file() and not one.name.startswith(".")) > 1
