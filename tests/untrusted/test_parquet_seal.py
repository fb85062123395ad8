"""Packed files and runs: each byte of pages and footers is under a checksum."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

import polars_tadoc as tadoc
from polars_tadoc.errors import InvalidGrammarError
from polars_tadoc.untrusted import parquet_seal
from polars_tadoc.untrusted.thrift import MalformedError


def packed(path: Path) -> pl.DataFrame:
    text = pl.Series("text", [f"the cat {row} sat" for row in range(40)])
    df = pl.DataFrame({"text": text.tadoc.compress(rows_per_grammar=20), "year": [1900 + row for row in range(40)]})
    df.tadoc.write_packed(path)
    return df


def test_a_footer_has_its_digest(tmp_path: Path) -> None:
    df, path = packed(tmp_path / "a.parquet"), tmp_path / "a.parquet"
    digest = pq.read_metadata(path).metadata[parquet_seal.KEY.encode()]
    assert len(digest) == 32
    assert digest != b"0" * 32
    assert tadoc.scan_packed(path).select(pl.len()).collect().item() == 40
    assert pl.read_parquet(path).height == 2  # for other readers it is metadata
    sunk = tmp_path / "b.parquet"
    df.lazy().tadoc.sink_packed(sunk)
    assert parquet_seal.KEY.encode() in pq.read_metadata(sunk).metadata


def test_statistics_that_were_changed_are_found(tmp_path: Path) -> None:
    """Without the digest the row group is passed over, and its rows are missing without a word."""
    path = tmp_path / "a.parquet"
    packed(path)
    bound = (1920).to_bytes(8, "little")
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    at = data.index(bound, start)
    path.write_bytes(data[:at] + (1990).to_bytes(8, "little") + data[at + 8 :])
    with pytest.raises(InvalidGrammarError, match="the footer's checksum does not match"):
        tadoc.scan_packed(path).filter(pl.col("year") == 1925).collect()


def test_pages_that_were_changed_are_found(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    packed(path)
    data = path.read_bytes()
    file = pq.ParquetFile(io.BytesIO(data))
    found = 0
    for group in range(file.num_row_groups):
        chunks = [file.metadata.row_group(group).column(place) for place in range(file.metadata.num_columns)]
        for chunk in chunks:
            stop = chunk.data_page_offset + chunk.total_compressed_size
            changed = bytearray(data)
            changed[stop - 1] ^= 1  # the last byte of the chunk's last page
            path.write_bytes(changed)
            with pytest.raises(InvalidGrammarError, match="damaged"):
                tadoc.scan_packed(path).collect()
            found += 1
    assert found == 26


def test_files_of_other_writers_are_read(tmp_path: Path) -> None:
    df, path = packed(tmp_path / "a.parquet"), tmp_path / "b.parquet"
    df.tadoc.pack("text").write_parquet(path, row_group_size=1)
    assert parquet_seal.KEY.encode() not in (pq.read_metadata(path).metadata or {})
    assert tadoc.scan_packed(path).collect().height == 40


def test_footers() -> None:
    entry = parquet_seal._ENTRY
    parquet_seal.require_whole(b"no entry")
    with pytest.raises(MalformedError):
        parquet_seal.require_whole(b"a" + entry + b"0" * 32 + b"b")
    with pytest.raises(MalformedError):
        parquet_seal.require_whole(b"a" + entry)
