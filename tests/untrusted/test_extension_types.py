"""Arrow's extension types in files: none is made by code that came with the file."""

from __future__ import annotations

import io
import os
import pickle
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import polars_tadoc as tadoc
from polars_tadoc.errors import TadocError
from tests.fuzz.expressions import Planted, was_run
from tests.untrusted.test_hostile_files import replace_file, save

NAMES = (
    "arrow.py_extension_type",  # PyArrow made these by unpickling, before its version 14.0.1
    "POLARS_EXTENSION_TYPE",  # Polars had Python objects in these, by their address
    "polars_tadoc.text",
    "polars.object",
)
PAYLOADS = (pickle.dumps(Planted()), f"{os.getpid()};1".encode())


def with_type(table: pa.Table, name: str, payload: bytes) -> pa.Table:
    """Say of each column, and of fields within, that it is of an extension type; and plant in pandas' metadata."""
    planted = {b"ARROW:extension:name": name.encode(), b"ARROW:extension:metadata": payload}
    fields = [_planted(field, planted).with_metadata(planted) for field in table.schema]
    schema = pa.schema(fields, {b"pandas": payload, b"PANDAS_ATTRS": payload})
    return pa.Table.from_arrays(table.columns, schema=schema)


def _planted(field: pa.Field, planted: dict[bytes, bytes]) -> pa.Field:
    if not pa.types.is_struct(field.type):
        return field
    inner = [one.with_metadata(planted) for one in field.type]
    return pa.field(field.name, pa.struct(inner))


@pytest.mark.parametrize("payload", PAYLOADS, ids=["pickle", "address"])
@pytest.mark.parametrize("name", NAMES)
def test_types_of_an_index(name: str, payload: bytes, tmp_path: Path) -> None:
    path = save(tmp_path / "index")
    for file in ("ids.arrow", "metadata.arrow"):
        table = with_type(pa.ipc.open_file(pa.py_buffer((path / file).read_bytes())).read_all(), name, payload)
        sink = io.BytesIO()
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        replace_file(path, file, sink.getvalue())
    for file in ("text.parquet", "segment_0.terms.parquet"):
        table = with_type(pq.read_table(path / file), name, payload)
        sink = io.BytesIO()
        pq.write_table(table, sink)
        replace_file(path, file, sink.getvalue())
    try:
        index = tadoc.load_index(path)
        repr(index.search("a"))
        repr(index.compact().stored)
    except TadocError:
        pass
    assert not was_run()


@pytest.mark.parametrize("payload", PAYLOADS, ids=["pickle", "address"])
@pytest.mark.parametrize("name", NAMES)
def test_types_of_packed_files(name: str, payload: bytes, tmp_path: Path) -> None:
    df = pl.DataFrame({"text": pl.Series(["a b", "b"]).tadoc.compress(), "year": [1, 2]})
    df.tadoc.write_packed(tmp_path / "a.parquet")
    table = with_type(pq.read_table(tmp_path / "a.parquet"), name, payload)
    pq.write_table(table, tmp_path / "a.parquet")
    try:
        lf = tadoc.scan_packed(tmp_path / "a.parquet")
        repr(lf.collect())
        repr(lf.tadoc.word_count("text").collect())
    except (TadocError, pl.exceptions.PolarsError, TypeError):
        pass
    assert not was_run()
