"""Logs compressed with each effort: saved, asked in a new process, appended to, written over and interrupted."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from zlib import crc32

import polars as pl

import polars_tadoc as tadoc
from tests.trials.corpora import log_lines

EFFORTS = ("default", "fast", "small", "auto")
PATTERNS = [r"\b(\d{1,3}\.){3}\d{1,3}\b", r"[Ff]ail(ed|ure)", r"id[=:] ?\d+"]
LITERALS = ["error", "HTTP/1.1"]
QUERY = "failed password root"

IN_A_NEW_PROCESS = f"""
import json, sys
from zlib import crc32
import polars as pl, polars_tadoc as tadoc
text = pl.col("text").tadoc
asked = [text.count_matches(one).sum() for one in {PATTERNS!r}]
asked += [text.contains(one, literal=True).sum() for one in {LITERALS!r}]
for path in sys.argv[1:]:
    lf = (tadoc.scan_packed if ".packed." in path else pl.scan_parquet)(path)
    found = lf.collect().tadoc.build_index("text", id="line", lowercase=True).search({QUERY!r}, k=10)
    print(json.dumps({{
        "text": crc32("\\n".join(lf.tadoc.decompress("text").collect()["text"]).encode()),
        "patterns": lf.select(pl.concat_list(asked).alias("n")).collect()["n"].item().to_list(),
        "lines": found["id"].to_list(),
        "words": lf.tadoc.word_count("text", top=5).collect().rows(),
    }}))
"""

WRITES_OVER = """
import sys
import polars as pl, polars_tadoc as tadoc
rows = pl.read_parquet(sys.argv[1])
print("begun", flush=True)
while True:
    plan = rows.lazy().tadoc.compress("text", effort="small", rows_per_grammar=1 << 20)
    plan.tadoc.sink_packed(sys.argv[2], effort="small")
"""


def asked_in_a_new_process(paths: list[Path]) -> list[dict[str, Any]]:
    """Ask files of either form."""
    command = [sys.executable, "-c", IN_A_NEW_PROCESS, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def expected_of(lines: pl.DataFrame) -> dict[str, Any]:
    """What plain Polars and plain text answer."""
    text = pl.col("text")
    asked = [text.str.count_matches(one).sum() for one in PATTERNS]
    asked += [text.str.contains(one, literal=True).sum() for one in LITERALS]
    index = lines.tadoc.build_index("text", id="line", lowercase=True)
    return {
        "text": crc32("\n".join(lines["text"]).encode()),
        "patterns": lines.select(pl.concat_list(asked).alias("n"))["n"].item().to_list(),
        "lines": index.search(QUERY, k=10)["id"].to_list(),
        "words": [list(row) for row in lines.tadoc.word_count("text", top=5).rows()],
    }


def run(folder: Path, size: str) -> None:
    """Keep all but the last day with each effort; then add that day."""
    lines = log_lines(size).select("line", "system", "text")
    begun = lines.height * 59 // 60
    first, last = lines.head(begun), lines.slice(begun)
    expected: dict[Path, dict[str, Any]] = {}
    before, after = expected_of(first), expected_of(lines)
    assert min(before["patterns"][:2]) > 0
    for effort in EFFORTS:
        column = first.tadoc.compress("text", effort=effort)
        info = column.tadoc.info("text").row(0, named=True)
        assert info["words_only"] == (info["grammars"] if effort == "fast" else 0)  # rules pay for logs
        packed, rows, grown = (folder / f"{effort}.{kind}.parquet" for kind in ("packed", "rows", "packed.grown"))
        column.tadoc.write_packed(packed, effort="small")
        column.write_parquet(rows, compression="brotli", compression_level=5, row_group_size=250_000)
        if effort != "fast" and size == "full":
            assert tadoc.parquet_info(rows)["bytes"].item() <= 1.5 * packed.stat().st_size
        read = tadoc.scan_packed(packed).collect()
        new = tadoc.compress(last["text"], like=read["text"], effort=effort)
        pl.concat([read, last.with_columns(text=new)]).tadoc.write_packed(grown, effort="small")
        assert tadoc.scan_packed(grown).tadoc.decompress("text").collect().select(lines.columns).equals(lines)
        expected |= {packed: before, rows: before, grown: after}
    assert asked_in_a_new_process([*expected]) == [*expected.values()]

    target = folder / "small.packed.grown.parquet"
    kept = {path: path.read_bytes() for path in sorted(folder.rglob("*"))}
    lines.write_parquet(folder / "lines.parquet")
    for moment in (0.1, 0.9):
        command = [sys.executable, "-c", WRITES_OVER, str(folder / "lines.parquet"), str(target)]
        started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert started.stdout is not None
        assert started.stdout.readline() == "begun\n"
        time.sleep(moment)
        started.send_signal(signal.SIGINT)
        _, told = started.communicate(timeout=60)
        assert "KeyboardInterrupt" in told
        assert sorted(folder.rglob("*")) == sorted([*kept, folder / "lines.parquet"])
        written = tadoc.scan_packed(target).tadoc.decompress("text").collect().select(lines.columns)
        assert written.equals(lines)  # the old file or a whole new one
    others = {path: data for path, data in kept.items() if path != target}
    assert {path: path.read_bytes() for path in others} == others
