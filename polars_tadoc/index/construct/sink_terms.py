"""Writes ascending words to the file of a saved index in parts."""

from __future__ import annotations

import pyarrow as pa

from polars_tadoc.index.store.folder import Writer, strings_writer

ROWS = 1 << 20
"""Words per row group, PyArrow's default."""


class TermsWriter:
    """Writes the same file as :meth:`polars_tadoc.index.store.folder.Writer.strings`, for words that arrive in parts.

    Parameters
    ----------
    writer
        Writes the files of the index.
    name
        The array's name.

    """

    def __init__(self, writer: Writer, name: str) -> None:
        self._writer, self._name = writer, name
        self._file = strings_writer(writer.path(f"{name}.parquet"), name)
        self._held: list[pa.LargeStringArray] = []
        self._size = 0

    def append(self, words: pa.LargeStringArray) -> None:
        """Append words."""
        self._held.append(words)
        self._size += len(words)
        if self._size >= ROWS:
            held = pa.concat_arrays(self._held)
            whole = self._size // ROWS * ROWS
            self._write(held[:whole])
            self._held, self._size = [held[whole:]], self._size - whole

    def _write(self, words: pa.LargeStringArray) -> None:
        self._file.write_table(pa.table({self._name: words}), row_group_size=ROWS)

    def finish(self) -> None:
        """Complete the file."""
        self._write(pa.concat_arrays([pa.nulls(0, pa.large_string()), *self._held]))
        self._file.close()
        self._writer.take(f"{self._name}.parquet")
