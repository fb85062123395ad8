"""Old and new Parquet files in one scan: the forms of their columns, Polars' options, what reaches the files."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from tests import ROOT

OLD = ROOT / "tests" / "data" / "struct_columns" / "text.parquet"
"""Written by the last release before ``tadoc.Text``."""
TEXT = ["to be, or not to be", None, "", "to do is to be", "do be do be do", "Unicode: héé 日本"]
IDS = pl.read_parquet(OLD, columns=["id"])["id"]
NEW_TEXT = ["new", None, "to be"]
NEW = pl.DataFrame({"id": IDS.head(3) + 100, "text": NEW_TEXT}).tadoc.compress("text")
ALL_TEXT = [*TEXT, *TEXT, *NEW_TEXT, *TEXT]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a1", "a2", "c"):
        shutil.copy(OLD, tmp_path / f"{name}.parquet")
    NEW.write_parquet(tmp_path / "b[1].parquet")  # a name is no pattern
    return tmp_path


SOURCES: dict[str, Any] = {
    "a folder": lambda folder: folder,
    "a folder's name": str,
    "a glob pattern": lambda folder: f"{folder}/*.parquet",
    "a list": lambda folder: sorted(folder.iterdir()),
    "open files": lambda folder: [io.BytesIO(path.read_bytes()) for path in sorted(folder.iterdir())],
}


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("name", SOURCES)
def test_old_and_new_files_together(name: str, engine: Any, folder: Path) -> None:
    lf = tadoc.scan_parquet(SOURCES[name](folder))
    assert lf.collect_schema() == {"id": IDS.dtype, "text": tadoc.DTYPE}
    got = lf.collect(engine=engine)
    assert got.schema["text"] == tadoc.DTYPE
    plain = got.tadoc.decompress("text")
    assert plain["text"].to_list() == ALL_TEXT
    assert plain["id"].to_list() == [*IDS, *IDS, *NEW["id"], *IDS]
    chosen = lf.filter(pl.col("id") >= 100).select("text").collect(engine=engine)
    assert chosen.tadoc.decompress()["text"].to_list() == NEW_TEXT
    counts = lf.tadoc.word_count("text").collect(engine=engine)
    assert counts.equals(pl.DataFrame({"text": ALL_TEXT}).tadoc.compress("text").tadoc.word_count("text"))


def scans(plan: str) -> list[str]:
    return re.findall(r"Parquet SCAN \[.*", plan)


def test_predicates_and_projections_reach_the_files(folder: Path) -> None:
    lf = tadoc.scan_parquet(folder)
    plan = lf.filter(pl.col("id") >= 100).select("id").explain()
    assert len(scans(plan)) == plan.count("SELECTION: ") == plan.count("PROJECT 1/2 COLUMNS") == 3
    assert "FILTER" not in plan
    assert plan.count("a1.parquet") == plan.count("a2.parquet") == 1
    plan = lf.select("id").filter(pl.col("id") >= 100).tail(2).explain()
    assert plan.count("SELECTION: ") == 3


@pytest.mark.parametrize("pattern", ["a*.parquet", "b*.parquet"])
def test_one_form_is_one_scan(pattern: str, folder: Path) -> None:
    lf = tadoc.scan_parquet(folder / pattern)
    assert len(scans(lf.explain())) == 1
    assert lf.collect_schema()["text"] == tadoc.DTYPE
    assert lf.collect().tadoc.decompress("text").height == {"a": 12, "b": 3}[pattern[0]]


def test_files_without_a_compressed_column(tmp_path: Path) -> None:
    frame = pl.DataFrame({"a": [1, 2]})
    frame.write_parquet(tmp_path / "a.parquet")
    assert tadoc.scan_parquet(tmp_path).collect().equals(frame)


def test_grammars_that_became_strings(folder: Path) -> None:
    old = pl.read_parquet(OLD)
    grammar, rest = (
        pl.col("text").struct.field("grammar").cast(pl.String),
        pl.col("text").struct.field("symbols", "gaps"),
    )
    old.with_columns(pl.struct(grammar, rest).alias("text")).write_parquet(folder / "d.parquet")
    got = tadoc.scan_parquet(folder).collect()
    assert got.tadoc.decompress("text")["text"].to_list() == [*ALL_TEXT, *TEXT]


def test_options_count_over_all_files(folder: Path) -> None:
    got = tadoc.scan_parquet(folder, n_rows=13, row_index_name="row", row_index_offset=7, include_file_paths="file")
    assert got.collect_schema().names()[0] == "row"
    rows = got.collect()
    assert rows["row"].to_list() == list(range(7, 20))
    assert [Path(path).name for path in rows["file"].unique(maintain_order=True)] == [
        "a1.parquet",
        "a2.parquet",
        "b[1].parquet",
    ]
    assert tadoc.scan_parquet(folder, n_rows=0).collect().is_empty()
    one = tadoc.scan_parquet(OLD, n_rows=2, row_index_name="row").collect()
    assert one["row"].to_list() == [0, 1]


@pytest.mark.parametrize("form", [tadoc.DTYPE, tadoc.STORAGE])
def test_a_schema_names_either_form(form: pl.DataType, folder: Path) -> None:
    lf = tadoc.scan_parquet(folder, schema={"id": IDS.dtype, "text": form})
    assert lf.collect().tadoc.decompress("text")["text"].to_list() == ALL_TEXT


def test_other_columns_are_held_to_those_of_the_first_file(folder: Path) -> None:
    NEW.select("text", pl.lit(1).alias("more")).write_parquet(folder / "d.parquet")
    with pytest.raises(pl.exceptions.PolarsError, match=r"more|id"):
        tadoc.scan_parquet(folder).collect()
    got = tadoc.scan_parquet(folder, missing_columns="insert", extra_columns="ignore").collect()
    assert got.schema == {"id": IDS.dtype, "text": tadoc.DTYPE}
    assert got.tail(3)["id"].to_list() == [None] * 3
    assert got.tadoc.decompress("text")["text"].to_list() == [*ALL_TEXT, *NEW_TEXT]


def test_folders_give_columns(tmp_path: Path) -> None:
    root = tmp_path / "above=1" / "texts"
    for day, frame in ((1, pl.read_parquet(OLD)), (2, NEW)):
        (root / f"day={day}").mkdir(parents=True)
        frame.write_parquet(root / f"day={day}" / "a.parquet")
    lf = tadoc.scan_parquet(root)
    assert lf.collect_schema() == {"id": IDS.dtype, "text": tadoc.DTYPE, "day": pl.Int64}
    assert lf.filter(pl.col("day") == 2).collect().tadoc.decompress("text")["text"].to_list() == NEW_TEXT
    assert "day" not in tadoc.scan_parquet(root, hive_partitioning=False).collect_schema()


def test_what_cannot_be_scanned(tmp_path: Path) -> None:
    for source in (tmp_path, tmp_path / "a.parquet", f"{tmp_path}/*.parquet", []):
        with pytest.raises(FileNotFoundError, match=r"scan_parquet: .*: no Parquet file found"):
            tadoc.scan_parquet(source)
    with pytest.raises(TypeError, match=r"scan_parquet: source is .*; give a file's path"):
        tadoc.scan_parquet(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="scan_parquet: glob is not supported"):
        tadoc.scan_parquet(OLD, glob=True)


@pytest.mark.parametrize("level", [5, 11])
def test_rows_in_brotli(level: int, tmp_path: Path) -> None:
    lines = pl.DataFrame({"text": (ROOT / "examples/data/logs/auth.log").read_text().splitlines()})
    df = lines.with_row_index("line").tadoc.compress("text", rows_per_grammar=300)
    df.write_parquet(tmp_path / "zstd.parquet", compression_level=9, row_group_size=300)
    path, options = tmp_path / "brotli.parquet", {"compression": "brotli", "compression_level": level}
    df.lazy().tadoc.sink_parquet(path, row_group_size=300, **options)
    assert path.stat().st_size < 0.97 * (tmp_path / "zstd.parquet").stat().st_size
    assert tadoc.scan_parquet(path).collect().equals(df)
    info = tadoc.parquet_info(path).to_dicts()[0]
    assert (info["rows"], info["row_groups"], info["grammars"], info["copies"]) == (860, 3, 3, 3)
    expected = lines.tadoc.word_count("text")
    assert pl.scan_parquet(path).tadoc.word_count("text").collect().equals(expected)
    assert pl.scan_parquet(path).tadoc.word_count("text", memory_limit="1GB").collect().equals(expected)
    df.with_columns(key=pl.col("line") % 2).tadoc.write_parquet(tmp_path / "out", partition_by="key", **options)
    assert pl.read_parquet(tmp_path / "out").sort("line").drop("key").tadoc.decompress().drop("line").equals(lines)


@pytest.mark.parametrize(("name", "most"), [("logs_elastic", 1.5), ("logs_loghub2k", 1.5), ("multi_react", 1.3)])
def test_rows_in_brotli_beside_a_small_packed_file(
    name: str, most: float, tmp_path: Path, corpus: Callable[[str], pl.DataFrame]
) -> None:
    df = corpus(name).select("text").tadoc.compress("text")
    df.write_parquet(tmp_path / "rows.parquet", compression="brotli", compression_level=5)
    df.tadoc.write_packed(tmp_path / "small.parquet", effort="small")
    rows, small = ((tmp_path / f"{kind}.parquet").stat().st_size for kind in ("rows", "small"))
    assert rows <= most * small
