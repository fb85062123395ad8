"""Code of the documentation without prompts runs, on files of the names that it gives; prompts are doctests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from tests import ROOT

DOCS = ROOT / "docs"
PAGES = {str(path.relative_to(DOCS).with_suffix("")): path for path in DOCS.rglob("*.md")} | {
    "README": ROOT / "README.md"
}
RUN_HERE = {"README": 2, "interchange": 3, "jobs/gpu": 1, "packed": 6}
"""Blocks of each page. Those of "distributed" start processes: see test_workers.py and test_spark.py."""


def code(page: str) -> list[str]:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGES[page].read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [block for block in blocks if not block.startswith(">>>")]


def run(blocks: list[str], names: dict[str, Any]) -> dict[str, Any]:
    for block in blocks:
        exec(compile(block, "documentation", "exec"), names)
    return names


def test_every_block_is_run() -> None:
    assert {page: len(blocks) for page in PAGES if (blocks := code(page))} == {**RUN_HERE, "distributed": 4}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_readme(folder: Path) -> None:
    (folder / "examples").symlink_to(ROOT / "examples")
    names = run(code("README"), {})
    assert names["df"]["text"].tadoc.decompress().equals(pl.read_parquet("examples/data/speeches.parquet")["text"])


def test_packed(folder: Path) -> None:
    blocks = code("packed")
    (folder / "logs").mkdir()
    pl.DataFrame({"text": ["to be", "to do"]}).write_parquet("logs/a.parquet")
    names = run(blocks[:3], {})
    (folder / "logs.tadoc.parquet").replace("logs/a.parquet")
    words_of_document = run(blocks[3:], names)["words_of_document"]
    assert words_of_document("texts.parquet", 0) == ["to", "be"]
    assert words_of_document("logs/a.parquet", 1) == ["to", "do"]
    assert names["lf"].tadoc.word_count("text").collect().rows() == [("to", 2), ("be", 1), ("do", 1)]


def test_interchange(folder: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    texts = ["connection was lost", "connection is there", None, "all is lost"] * 5
    df = pl.DataFrame({"level": ["error", "info"] * 10, "text": texts}).with_row_index("id")
    compressed = df.tadoc.compress("text", rows_per_grammar=7)
    compressed.write_parquet("logs.parquet")
    blocks = code("interchange")
    names: dict[str, Any] = {"pl": pl, "duckdb": duckdb, "connection": duckdb.connect()}
    run(["import polars_tadoc as tadoc", *blocks[:1]], names)
    errors = df.filter(level="error")
    assert names["chosen"].sort("id").tadoc.decompress("text").equals(errors)
    run(blocks[1:3], names)
    assert names["ids"]["id"].sort().equals(errors["id"])
    assert names["df"].sort("id").tadoc.decompress("text").equals(df.select("id", "text"))


def test_gpu(folder: Path) -> None:
    (folder / "examples").symlink_to(ROOT / "examples")
    blocks = code("jobs/gpu")
    if "gpu" not in tadoc.testing.engines():
        with pytest.raises(tadoc.errors.EngineUnavailableError, match="gpu-cuda13"):
            run(blocks, {})
        return
    run(blocks, {})
    text = pl.read_parquet("examples/data/speeches.parquet")["text"]
    expected = tadoc.of(text).sequence_count(n=3, lowercase=True, top=20, engine="cpu")
    assert pl.read_parquet("trigrams.parquet").equals(expected)


def test_stamps_of_logs() -> None:
    rows = re.findall(r"^\| `(.+)` \| `(r\".+\")` \| `(\..+)` \|$", PAGES["jobs/logs"].read_text("utf-8"), re.MULTILINE)
    assert len(rows) == 5
    for stamp, pattern, then in rows:
        lines = pl.Series([f"{stamp} [info] started", "  at main (app.py)", ""])
        lenient = then.replace('")', '", strict=False)')
        read = eval(f"lines.str.extract({pattern}){lenient}", {"lines": lines, "pl": pl})
        assert read.is_null().to_list() == [False, True, True], stamp
