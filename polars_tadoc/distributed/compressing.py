"""Compresses text files into packed files, one per split."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from polars_tadoc.compress.compress import Compression
from polars_tadoc.distributed.compute_lock import computing
from polars_tadoc.distributed.file_splits import Files, Piece
from polars_tadoc.packed.pack import pack_stream, packed_schema
from polars_tadoc.packed.write import write_packed


def file_name(number: int) -> str:
    """Return the name of a split's file; up to 10 million names sort in the order of splits."""
    return f"part-{number:07d}.parquet"


def compress_piece(folder: Path, number: int, files: Files, piece: Piece, arguments: dict[str, Any]) -> None:
    """Compress one split and write its file atomically."""
    how = replace(Compression.from_arguments(**arguments), cached=False)
    rows = files.read(piece)
    with computing:
        column = how.run(rows[files.column])
    compressed = rows.with_columns(column)
    schema = packed_schema(compressed.schema, files.column)
    write_packed(
        pack_stream([compressed], files.column, passing=True), schema, files.column, folder / file_name(number)
    )
