"""Files of sorted, packed keys with their counts, in small groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from polars_tadoc.errors import InvalidRecordsError, NotAFileError
from polars_tadoc.kernels.host.records.packed_keys import KeyForm
from polars_tadoc.records.packed_records import Sorted
from polars_tadoc.runtime.array_types import UInt64
from polars_tadoc.runtime.arrow_memory import ARROW_ERRORS, lent, not_of_the_file, view
from polars_tadoc.runtime.regular_file import arrow_file, private_arrow_file
from polars_tadoc.untrusted.parquet_footer import open_parquet
from polars_tadoc.untrusted.parquet_seal import announce, seal

GROUP = 1 << 16
"""Maximum records of a group: large enough that opening a group is cheap."""

FORM = b"tadoc.bits"
COUNT = "count"


class SealedWriter:
    """Writes a Parquet file without compression; seals it if no error ends its context.

    Parameters
    ----------
    path
        The file.
    schema
        Its columns.
    encodings
        Encoding by column.
    statistics
        Columns with statistics.

    """

    def __init__(self, path: Path, schema: pa.Schema, encodings: dict[str, str], statistics: list[str]) -> None:
        self._schema, self._path, self._file = schema, path, private_arrow_file(path)
        self._writer = pq.ParquetWriter(
            self._file,
            schema,
            compression="none",
            use_dictionary=False,
            write_statistics=statistics or False,
            column_encoding=encodings,
            write_page_checksum=True,
        )
        announce(self._writer)

    def _flush(self) -> None:
        """Write what waits."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if kind is None:
                self._flush()
        finally:
            with self._file:
                self._writer.close()
        if kind is None:
            seal(self._path)


class KeysWriter(SealedWriter):
    """Writes a file of keys and counts.

    Keys of a group are close to each other, and so are counts. Their differences take 4 bytes per record of trigrams,
    and are written and read faster than with a general compressor (``benchmarks.spill``).

    Parameters
    ----------
    path
        The file.
    form
        Packing of keys.
    counted
        Whether the keys have counts.
    group
        Records per group.

    """

    def __init__(self, path: Path, form: KeyForm, counted: bool, group: int = GROUP) -> None:
        self._group = group
        names = [f"k{limb}" for limb in range(form.limbs)] + [COUNT] * counted
        schema = pa.schema([(name, pa.int64()) for name in names], {FORM: ",".join(map(str, form.bits)).encode()})
        super().__init__(path, schema, dict.fromkeys(names, "DELTA_BINARY_PACKED"), ["k0"])

    def write(self, keys: UInt64, counts: UInt64 | None) -> None:
        """Append keys and counts."""
        arrays = [*keys, *([] if counts is None else [counts])]
        columns = [lent(np.ascontiguousarray(array).view(np.int64)) for array in arrays]
        if keys.shape[1]:
            self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema), row_group_size=self._group)


class KeysFile:
    """Reads a file of keys and counts, group by group.

    Parameters
    ----------
    path
        The file.
    columns
        Numbers per key.
    counted
        Whether keys have counts.

    Raises
    ------
    InvalidRecordsError
        It is damaged or another kind of file.

    """

    def __init__(self, path: Path, columns: int, counted: bool) -> None:
        self.path = path
        with checked(path):
            self._file = open_parquet(arrow_file(path, follow=False))
        schema, metadata = self._file.schema_arrow, self._file.metadata
        said = (schema.metadata or {}).get(FORM, b"").split(b",")
        if len(said) != columns or not all(one.isdigit() and len(one) < 3 and 1 <= int(one) <= 32 for one in said):
            raise InvalidRecordsError(f"{path} does not have keys of {columns} numbers")
        self.form = KeyForm(tuple(int(one) for one in said))
        self.counted = counted
        names = [f"k{limb}" for limb in range(self.form.limbs)] + [COUNT] * counted
        if schema.names != names or any(kind != pa.int64() for kind in schema.types):
            raise InvalidRecordsError(f"{path} does not have the columns {', '.join(names)}")
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        self.sizes = [group.num_rows for group in groups]
        with checked(path):
            least = np.array([group.column(0).statistics.min for group in groups], np.int64)
        self.least: UInt64 = least.astype(np.uint64)  # below 2**63, so signed order is the same
        """Lowest first limb of each group."""
        if any(not 0 < size <= GROUP for size in self.sizes):
            raise InvalidRecordsError(f"the groups of {path} do not have 1 to {GROUP:,} records")

    def __len__(self) -> int:
        return sum(self.sizes)

    def read(self, group: int) -> Sorted:
        """Read a group; raises as the class does."""
        with checked(self.path):
            table = self._file.read_row_group(group, use_threads=False)
            arrays = [view(column.combine_chunks()).view(np.uint64) for column in table.columns]
        if any(len(array) != self.sizes[group] for array in arrays):
            raise InvalidRecordsError(f"{self.path}, group {group}: the columns differ in length")
        keys = arrays[: self.form.limbs]
        return keys[0][None, :] if len(keys) == 1 else np.stack(keys), arrays[-1] if self.counted else None

    def close(self) -> None:
        """Close the file."""
        self._file.close(force=True)


@contextmanager
def checked(path: Path) -> Iterator[None]:
    """Add a file's name to errors; raises ``InvalidRecordsError``, or ``FileNotFoundError`` if it does not exist."""
    try:
        yield
    except (*ARROW_ERRORS, ValueError, TypeError, AttributeError, OverflowError) as error:
        if not_of_the_file(error) and not isinstance(error, (NotAFileError, IsADirectoryError)):
            raise
        raise InvalidRecordsError(f"{path} is damaged: {error}") from error
