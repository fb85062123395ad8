"""Other tools read and give back what is compressed: pandas, DuckDB, PyArrow."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import polars_tadoc as tadoc
from tests.trials.corpora import documents


def run(folder: Path, size: str) -> None:
    """Pass a column through each tool; the text comes back, and metadata can be asked there."""
    docs = documents(size)
    compressed = docs.tadoc.compress("text")
    compressed.write_parquet(folder / "docs.parquet", row_group_size=250_000)

    database = duckdb.connect()
    asked = f"SELECT kind, count(*) AS n FROM '{folder / 'docs.parquet'}' GROUP BY kind ORDER BY kind"
    assert database.execute(asked).fetchall() == docs.group_by("kind").len().sort("kind").rows()
    few = database.execute(
        f"SELECT number, text FROM '{folder / 'docs.parquet'}' WHERE number % 97 = 0 LIMIT 5"
    ).fetchall()
    assert len(few) == 5

    table = pq.read_table(folder / "docs.parquet", columns=["number", "kind"])
    assert table.num_rows == docs.height
    frame = table.to_pandas()
    assert isinstance(frame, pd.DataFrame)
    chosen = frame[frame["number"] % 7 == 0]["number"]
    wanted = pl.read_parquet(folder / "docs.parquet").filter(pl.col("number").is_in(chosen.tolist()))
    assert wanted.tadoc.decompress("text").equals(docs.filter(pl.col("number") % 7 == 0))

    arrow = compressed.to_arrow()
    assert isinstance(arrow, pa.Table)
    back = pl.from_arrow(arrow)
    assert isinstance(back, pl.DataFrame)
    assert back.tadoc.decompress("text").equals(docs)
    compressed.write_ipc(folder / "docs.arrow", compression="zstd")
    assert pl.read_ipc(folder / "docs.arrow").tadoc.decompress("text").equals(docs)

    counted = pl.DataFrame(compressed.tadoc.word_count("text"))
    database.register("counted", counted.to_arrow())
    answer = database.execute("SELECT sum(count) FROM counted").fetchone()
    assert answer is not None
    assert int(answer[0]) == tadoc.info(compressed["text"])["words"][0]
    pandas = pd.DataFrame({"text": docs["text"].head(200).to_list()})
    again = pl.from_pandas(pandas).tadoc.compress("text")
    assert again.tadoc.decompress("text")["text"].to_list() == pandas["text"].tolist()
