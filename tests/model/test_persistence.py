"""Columns that leave the process: Parquet, IPC, pickle, Arrow; and damaged files."""

from __future__ import annotations

import copy
import io
import json
import pickle
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

import polars_tadoc as tadoc
from polars_tadoc.model.grammar_cache import grammars

ROWS = [*(f"line {i % 7} of {i % 3}:\tthe end,日本" for i in range(500)), None, "", "\r\n x\x00", "é" * 50]
PLAIN = pl.DataFrame({"text": ROWS}).with_row_index("id")


@pytest.fixture(params=[1 << 20, 100], ids=["one grammar", "many grammars"])
def frame(request: pytest.FixtureRequest) -> pl.DataFrame:
    return PLAIN.tadoc.compress("text", rows_per_grammar=request.param)


def through(frame: pl.DataFrame, how: str) -> pl.DataFrame:
    file = io.BytesIO()
    if how in ("pickle", "serialize"):
        frame = frame.rechunk()  # see test_pickle_of_chunks
    if how == "pickle":
        return pickle.loads(pickle.dumps(frame))  # type: ignore[no-any-return]
    if how == "deepcopy":
        return copy.deepcopy(frame)
    if how == "parquet":
        frame.write_parquet(file)
        return pl.read_parquet(file.getvalue())
    if how == "parquet, small row groups":
        frame.write_parquet(file, row_group_size=64)
        return pl.read_parquet(file.getvalue())
    if how == "ipc":
        frame.write_ipc(file)
        return pl.read_ipc(file.getvalue())
    if how == "ipc stream":
        frame.write_ipc_stream(file)
        return pl.read_ipc_stream(file.getvalue())
    assert how == "serialize"
    return pl.DataFrame.deserialize(io.BytesIO(frame.serialize()))


HOWS = ["pickle", "deepcopy", "parquet", "parquet, small row groups", "ipc", "ipc stream", "serialize"]


@pytest.mark.parametrize("how", HOWS)
def test_round_trip(frame: pl.DataFrame, how: str) -> None:
    back = through(frame, how)
    assert back.schema == frame.schema
    assert back.tadoc.decompress("text").equals(PLAIN)
    assert back.tadoc.word_count("text").equals(frame.tadoc.word_count("text"))
    both = pl.concat([back, frame])  # one mapping of categories serves both
    assert both["text"].ext.storage().struct.field("grammar").cast(pl.String).n_unique() <= 7
    assert both.tadoc.decompress("text").equals(pl.concat([PLAIN, PLAIN]))


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("rows", [[], [None], [None, None], [""]], ids=repr)
def test_round_trip_of_edges(how: str, rows: list[str | None]) -> None:
    plain = pl.DataFrame({"text": rows}, schema={"text": pl.String})
    back = through(plain.tadoc.compress("text"), how)
    assert back.schema == {"text": tadoc.DTYPE}
    assert back.tadoc.decompress("text").equals(plain)


def test_lossy_round_trip() -> None:
    lossy = PLAIN.tadoc.compress("text", lossless=False)
    for how in HOWS:
        assert through(lossy, how).tadoc.decompress().equals(lossy.tadoc.decompress())


PICKLE = """
import pickle
import polars as pl
import polars_tadoc as tadoc
frame = pl.DataFrame({"text": [f"row {i}" for i in range(500)]}).with_row_index("id")
frame = frame.with_columns(tadoc.compress(frame["text"], rows_per_grammar=400))
assert pickle.loads(pickle.dumps(frame)).tadoc.word_count(top=1).rows() == [("row", 500)]
"""


@pytest.mark.slow
def test_pickle_of_chunks() -> None:
    subprocess.run([sys.executable, "-c", PICKLE], check=True, timeout=60)


READER = """
import json, sys
import polars as pl
import polars_tadoc as tadoc
path = sys.argv[1]
frame = pl.read_parquet(path) if path.endswith("parquet") else pl.read_ipc(path)
counts = frame.filter(pl.col("id") % 2 == 0).tadoc.word_count("text")
json.dump([frame.tadoc.decompress("text")["text"].to_list(), counts.rows()], sys.stdout)
"""


@pytest.mark.slow
def test_a_fresh_process_reads_the_files(frame: pl.DataFrame, tmp_path: Path) -> None:
    counts = frame.filter(pl.col("id") % 2 == 0).tadoc.word_count("text").rows()
    frame.write_parquet(tmp_path / "a.parquet", row_group_size=100)
    frame.write_ipc(tmp_path / "a.arrow")
    for name in ("a.parquet", "a.arrow"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", READER, str(tmp_path / name)], capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        text, words = json.loads(done.stdout)
        assert text == ROWS
        assert [tuple(row) for row in words] == counts


def test_parquet_scans_with_filters_and_slices(frame: pl.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    frame.write_parquet(path, row_group_size=50)
    lf = pl.scan_parquet(path)
    assert lf.slice(120, 30).tadoc.decompress("text").collect().equals(PLAIN.slice(120, 30))
    kept = pl.col("id").is_between(90, 310)
    assert lf.filter(kept).tadoc.decompress("text").collect().equals(PLAIN.filter(kept))
    assert lf.tail(7).tadoc.decompress("text").collect().equals(PLAIN.tail(7))


def test_several_files_of_one_scan(tmp_path: Path) -> None:
    for i in range(3):
        PLAIN.slice(i * 100, 100).tadoc.compress("text").write_parquet(tmp_path / f"{i}.parquet")
    lf = pl.scan_parquet(tmp_path / "*.parquet")
    assert lf.tadoc.decompress("text").collect().equals(PLAIN.head(300))
    assert lf.tadoc.word_count("text").collect().equals(PLAIN.head(300).tadoc.compress("text").tadoc.word_count("text"))


def test_a_file_holds_little_more_than_one_copy_of_a_grammar(tmp_path: Path) -> None:
    rows = [f"{i * 7919 % 4001} {i * 104729 % 3989} words" for i in range(4000)]
    frame = pl.DataFrame({"text": rows}).tadoc.compress("text")
    payload = frame["text"].ext.storage().struct.field("grammar").cast(pl.String)[0]
    frame.write_parquet(tmp_path / "one.parquet")
    frame.write_parquet(tmp_path / "many.parquet", row_group_size=500)
    one, many = ((tmp_path / f"{name}.parquet").stat().st_size for name in ("one", "many"))
    assert one < 2 * len(payload) + 40 * len(rows)
    assert many > one


def test_other_readers_see_plain_types(frame: pl.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    frame.write_parquet(path)
    schema = pq.read_schema(path)
    assert schema.field("text").type.num_fields == 3
    duckdb = pytest.importorskip("duckdb")
    found = duckdb.sql(f"select count(*), count(distinct text.grammar) from '{path}'").fetchall()
    assert found[0] == (len(ROWS), frame["text"].ext.storage().struct.field("grammar").drop_nulls().n_unique())


def test_arrow_there_and_back(frame: pl.DataFrame) -> None:
    back = pl.from_arrow(frame.to_arrow())
    assert isinstance(back, pl.DataFrame)
    assert back.schema == frame.schema
    assert back.tadoc.decompress("text").equals(PLAIN)


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9, 0.999])
def test_truncated_files_are_errors(frame: pl.DataFrame, kept: float, tmp_path: Path) -> None:
    frame.write_parquet(tmp_path / "a.parquet")
    data = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(data[: int(len(data) * kept)])
    with pytest.raises((pl.exceptions.PolarsError, OSError)):
        pl.read_parquet(tmp_path / "a.parquet").tadoc.decompress("text")


def test_flipped_bytes_of_a_file_are_errors_or_harmless(tmp_path: Path) -> None:
    frame = PLAIN.tadoc.compress("text")
    path = tmp_path / "a.parquet"
    frame.write_parquet(path, compression="uncompressed")
    data = path.read_bytes()
    payload = frame["text"].ext.storage().struct.field("grammar").cast(pl.String)[0].encode()
    at = data.index(payload)
    for place in range(at, at + len(payload), len(payload) // 25):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        grammars.clear()  # a digest already known is not decoded again
        with pytest.raises((tadoc.errors.TadocError, pl.exceptions.PolarsError)):
            pl.read_parquet(path).tadoc.decompress("text")
