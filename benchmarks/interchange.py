"""Memory that a compressed column takes on its way to other libraries: ``python -m benchmarks.interchange``.

Each call runs in a process of its own; printed is by how much that grows at most (resident memory, every millisecond),
after the column was read from a Parquet file; the library that is imported counts, too. A call that raises has its
error instead. DuckDB and pandas are left out where they are not installed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.compress import PeakMemory


def with_duckdb(*statements: str) -> pl.DataFrame | None:
    """Run statements; the last one's rows."""
    import duckdb

    connection = duckdb.connect()
    for statement in statements[:-1]:
        connection.execute(statement)
    result: Any = connection.sql(statements[-1])
    return None if result is None else pl.DataFrame(result.to_arrow_table())


def read_by_pandas(path: str, **options: Any) -> object:
    import pandas

    return pandas.read_parquet(path, **options)


CALLS: dict[str, tuple[str | None, Callable[[pl.DataFrame, str], object]]] = {
    "to_arrow": (None, lambda df, path: df.to_arrow()),
    "to_pandas, Arrow types": ("pandas", lambda df, path: df.to_pandas(use_pyarrow_extension_array=True)),
    "pandas.read_parquet, Arrow types": ("pandas", lambda df, path: read_by_pandas(path, dtype_backend="pyarrow")),
    "DuckDB, an enum": (
        "duckdb",
        lambda df, path: with_duckdb(
            f"create type grammar as enum (select distinct text.grammar from '{path}')",
            "select struct_pack(grammar := text.grammar::grammar, symbols := text.symbols, gaps := text.gaps) as text "
            f"from '{path}'",
        ),
    ),
    "decompress, then rows": (None, lambda df, path: df.tadoc.decompress("text").rows()),
    "rows": (None, lambda df, path: df.rows()),
    "to_pandas": ("pandas", lambda df, path: df.to_pandas()),
    "pandas.read_parquet": ("pandas", lambda df, path: read_by_pandas(path)),
    "cast to String": (None, lambda df, path: df.select(pl.col("text").cast(pl.String))),
    "sort by it": (None, lambda df, path: df.sort("text")),
    "n_unique": (None, lambda df, path: df["text"].n_unique()),
    "group_by it": (None, lambda df, path: df.group_by("text").len()),
    "DuckDB, its rows": ("duckdb", lambda df, path: with_duckdb(f"select text from '{path}'")),
    "DuckDB, create table": ("duckdb", lambda df, path: with_duckdb(f"create table t as select text from '{path}'")),
}


def grown(path: str, name: str) -> int:
    """Run one call; bytes by which this process grew at most."""
    df = pl.read_parquet(path)
    with PeakMemory() as memory:
        CALLS[name][1](df, path)
    return memory.most - memory.before


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--rows", type=int, default=1000, help="at most so many rows: strings are copied for each")
    args = parser.parse_args()
    print(f"machine: {corpora.machine()}")
    for given in args.corpora or ["docs_peps"]:
        name, text = corpora.load(given)
        column = tadoc.compress(text.head(args.rows))
        size = column.ext.storage().struct.field("grammar").unique().cast(pl.String).str.len_bytes().sum()
        print(f"\n{name}: {len(column)} rows, {text.head(args.rows).str.len_bytes().sum() / 1e6:.1f} MB, ", end="")
        print(f"grammar {size / 1e6:.2f} MB")
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "column.parquet")
            column.to_frame("text").write_parquet(path)
            for call, (needed, _) in CALLS.items():
                if needed is None or find_spec(needed):
                    code = f"from benchmarks.interchange import grown; print(grown({path!r}, {call!r}))"
                    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
                    said = f"{int(done.stdout.split()[-1]) / 1e6:8.0f} MB" if done.returncode == 0 else ""
                    errors = [line for line in done.stderr.splitlines() if "Error: " in line]
                    print(f"{call:34}{said or errors[-1]}", flush=True)


if __name__ == "__main__":
    main()
