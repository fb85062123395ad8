"""Writes the documents' data of an index to its files, window by window."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from polars_tadoc.execute.windows import Window
from polars_tadoc.index.store.folder import Writer
from polars_tadoc.model import payload
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.text_type import STORAGE, storage
from polars_tadoc.runtime.array_types import Int64
from polars_tadoc.runtime.arrow_arrays import lent, strings
from polars_tadoc.runtime.plain_name import plain

HELD_BYTES = 32 << 20
"""Rows of ids and metadata buffered in memory."""


class DocumentsWriter:
    """Writes ids, metadata and text.

    Parameters
    ----------
    id
        Name of the column of document ids; None: row numbers.
    metadata
        Names of the metadata columns; None: no metadata.
    store
        Whether the compressed text is written.
    schema
        Types of these columns.

    """

    def __init__(self, id: str | None, metadata: list[str] | None, store: bool, schema: pl.Schema) -> None:
        self._id, self._metadata, self._store = id, metadata, store
        dtype = pl.UInt32() if id is None else schema[id]
        self._schemas = {"ids": pl.Schema({"id": dtype})}
        if metadata is not None:
            self._schemas["metadata"] = pl.Schema({name: schema[name] for name in metadata})
        self._rows = self._documents = 0
        self._last = -1
        """Row of the last document."""
        for name, kind in [item for one in self._schemas.values() for item in one.items()]:
            if kind == pl.Object:
                raise TypeError(
                    f'sink_index: column "{name}" has type pl.Object, which files cannot hold; cast it, or '
                    "build the index without it"
                )

    def open(self, folder: Path, scratch: Path) -> None:
        """Start writing: text to the index folder, the rest to the scratch folder first."""
        self._folder = folder
        self._frames = {name: _Frames(scratch / name, schema) for name, schema in self._schemas.items()}
        self._text = _TextWriter(folder / "text.parquet") if self._store else None

    @property
    def stores_text(self) -> bool:
        """Whether the compressed text is written."""
        return self._store

    @property
    def columns(self) -> list[str]:
        """Names of the columns to read besides the text."""
        return list(dict.fromkeys([*([] if self._id is None else [self._id]), *(self._metadata or [])]))

    def add(self, window: Window, rows: Int64, texts: pl.Series | None = None) -> None:
        """Write the data of the documents in these rows of a window; ``texts``: theirs, if they have several each."""
        height, frame = window.height, window.frame
        kept = None if len(rows) == height else pl.Series("row", rows - window.first)
        if kept is not None and frame.width:
            frame = frame[kept]
        ids = pl.Series("id", rows.astype(np.uint32)) if self._id is None else frame[self._id].alias("id")
        self._frames["ids"].append(ids.to_frame())
        if self._metadata is not None:
            self._frames["metadata"].append(frame[self._metadata])
        if self._text is not None:
            if texts is not None:
                self._text.append(texts)
            elif window.column is None:
                for corpus in window.corpora:
                    self._text.append_corpus(corpus)
            else:
                column = plain(window.column)
                self._text.append(column if kept is None else column.gather(kept))
        self._rows += height
        self._documents += len(rows)
        if len(rows):
            self._last = int(rows[-1])

    def finish(self, writer: Writer) -> dict[str, Any]:
        """Complete the files; return the documents' part of the header."""
        numbered = self._id is None and self._last == self._documents - 1  # no null rows before the last document
        for name, frames in self._frames.items():
            if not (name == "ids" and numbered):
                frames.finish(self._folder / f"{name}.arrow")
                writer.take(f"{name}.arrow")
        if self._text is not None:
            self._text.finish()
            writer.take("text.parquet")
        return {
            "rows": self._rows,
            "labelled": self._id is not None,
            "numbered": numbered,
            "metadata": self._metadata is not None,
            "text": self._store,
        }


class _Frames:
    """Frames to concatenate, moved to files of a folder once they are large."""

    def __init__(self, folder: Path, schema: pl.Schema) -> None:
        self._folder = folder
        self._held = [schema.to_frame()]
        self._size = self._files = 0

    def append(self, frame: pl.DataFrame) -> None:
        """Append a frame."""
        self._held.append(frame)
        self._size += int(frame.estimated_size())
        if self._size > HELD_BYTES:
            self._folder.mkdir(exist_ok=True)
            pl.concat(self._held).write_ipc(self._part(self._files), compression="lz4")
            self._held, self._size, self._files = [frame.clear()], 0, self._files + 1

    def _part(self, number: int) -> Path:
        return self._folder / f"{number:06}.arrow"

    def finish(self, path: Path) -> None:
        """Write all frames as one file."""
        last = pl.concat(self._held, rechunk=True)
        if not self._files:
            last.write_ipc(path, compression="zstd")
            return
        last.write_ipc(self._part(self._files), compression="lz4")
        parts = [self._part(number) for number in range(self._files + 1)]
        pl.scan_ipc(parts).sink_ipc(path, compression="zstd", maintain_order=True)


class _TextWriter:
    """Writes rows of a compressed column to a Parquet file, one row group per grammar."""

    def __init__(self, path: Path) -> None:
        file = io.BytesIO()
        pl.Series("text", [], STORAGE).to_frame().write_parquet(file)
        self._schema = pq.read_schema(file)
        self._file = pq.ParquetWriter(path, self._schema, compression="zstd", write_statistics=False)

    def append(self, rows: pl.Series) -> None:
        """Write rows of a compressed column."""
        table = storage(rows).alias("text").to_frame().to_arrow(compat_level=pl.CompatLevel.oldest())
        self._write(table.column(0).combine_chunks())

    def append_corpus(self, corpus: Corpus) -> None:
        """Write the documents of a corpus; its grammar is serialised to a payload here."""
        count = corpus.document_count
        grammar = pa.DictionaryArray.from_arrays(
            lent(np.zeros(count, np.uint32)), strings([payload.encode(corpus.grammar)])
        )
        symbols = pa.LargeListArray.from_arrays(lent(corpus.root_offsets), lent(corpus.roots))
        gaps: Any = corpus.gaps.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
        self._write(pa.StructArray.from_arrays([grammar, symbols, gaps], ["grammar", "symbols", "gaps"]))

    def _write(self, rows: pa.StructArray) -> None:
        if len(rows):
            table = pa.table({"text": rows}).cast(self._schema)
            self._file.write_table(table, row_group_size=len(rows))

    def finish(self) -> None:
        """Complete the file."""
        self._file.close()
