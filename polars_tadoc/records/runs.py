"""Files of sorted, packed keys with their counts, in small groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from polars_tadoc.errors import InvalidRecordsError
from polars_tadoc.kernels.host.records.packed_keys import KeyForm
from polars_tadoc.records.packed_records import Sorted
from polars_tadoc.runtime.array_types import UInt64
from polars_tadoc.runtime.arrow_memory import ARROW_ERRORS, lent
from polars_tadoc.runtime.regular_file import arrow_file, private_arrow_file
from polars_tadoc.untrusted.parquet_footer import open_parquet
from polars_tadoc.untrusted.parquet_seal import announce, seal

GROUP = 1 << 16
"""Most records of a group: enough of them that opening a group is cheap."""

FORM = b"tadoc.bits"
COUNT = "count"


class KeysWriter:
    """Writes a file of keys and counts.

    Keys of a group differ little, and so do counts: their differences take 4 bytes a record of trigrams, written and
    read sooner than a general compressor does it (``benchmarks.spill``).

    Parameters
    ----------
    path
        The file.
    form
        How keys are packed.
    counted
        Whether they have counts.
    group
        Records of each group.

    """

    def __init__(self, path: Path, form: KeyForm, counted: bool, group: int = GROUP) -> None:
        self._group = group
        self._names = [f"k{limb}" for limb in range(form.limbs)] + [COUNT] * counted
        metadata = {FORM: ",".join(map(str, form.bits)).encode()}
        self._schema = pa.schema([(name, pa.int64()) for name in self._names], metadata)
        self._path, self._file = path, private_arrow_file(path)
        self._writer = pq.ParquetWriter(
            self._file,
            self._schema,
            compression="none",
            use_dictionary=False,
            write_statistics=["k0"],
            column_encoding=dict.fromkeys(self._names, "DELTA_BINARY_PACKED"),
            write_page_checksum=True,
        )
        announce(self._writer)

    def write(self, keys: UInt64, counts: UInt64 | None) -> None:
        """Write some more."""
        arrays = [*keys, *([] if counts is None else [counts])]
        columns = [lent(np.ascontiguousarray(array).view(np.int64)) for array in arrays]
        if keys.shape[1]:
            self._writer.write_table(pa.Table.from_arrays(columns, schema=self._schema), row_group_size=self._group)

    def __enter__(self) -> KeysWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._file:
            self._writer.close()
        if kind is None:
            seal(self._path)


class KeysFile:
    """Reads a file of keys and counts, group by group.

    Parameters
    ----------
    path
        The file.
    columns
        Numbers that each key has.
    counted
        Whether keys have counts.

    Raises
    ------
    InvalidRecordsError
        It is damaged, or no such file.

    """

    def __init__(self, path: Path, columns: int, counted: bool) -> None:
        self.path = path
        with checked(path):
            self._file = open_parquet(arrow_file(path, follow=False))
        schema, metadata = self._file.schema_arrow, self._file.metadata
        said = (schema.metadata or {}).get(FORM, b"").split(b",")
        if len(said) != columns or not all(one.isdigit() and len(one) < 3 and 1 <= int(one) <= 32 for one in said):
            raise InvalidRecordsError(f"{path} has no keys of {columns} numbers")
        self.form = KeyForm(tuple(int(one) for one in said))
        self.counted = counted
        names = [f"k{limb}" for limb in range(self.form.limbs)] + [COUNT] * counted
        if schema.names != names or any(kind != pa.int64() for kind in schema.types):
            raise InvalidRecordsError(f"{path} does not have the columns {', '.join(names)}")
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        self.sizes = [group.num_rows for group in groups]
        with checked(path):
            least = np.array([group.column(0).statistics.min for group in groups], np.int64)
        self.least: UInt64 = least.astype(np.uint64)  # numbers of 63 bits: signed ones are in the same order
        """The least first limb of each group."""
        if any(not 0 < size <= GROUP for size in self.sizes):
            raise InvalidRecordsError(f"the groups of {path} are not of 1 to {GROUP:,} records")

    def __len__(self) -> int:
        return sum(self.sizes)

    def read(self, group: int) -> Sorted:
        """Read a group; errors as for the class."""
        with checked(self.path):
            table = self._file.read_row_group(group, use_threads=False)
            arrays = [column.combine_chunks().to_numpy().view(np.uint64) for column in table.columns]
        if any(len(array) != self.sizes[group] for array in arrays):
            raise InvalidRecordsError(f"{self.path}, group {group}: the columns are not of one length")
        keys = arrays[: self.form.limbs]
        return keys[0][None, :] if len(keys) == 1 else np.stack(keys), arrays[-1] if self.counted else None

    def close(self) -> None:
        """Close the file."""
        self._file.close(force=True)


@contextmanager
def checked(path: Path) -> Iterator[None]:
    """Name a damaged file; raises ``InvalidRecordsError``, and ``FileNotFoundError`` where it is not there."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (*ARROW_ERRORS, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidRecordsError(f"{path} is damaged: {error}") from error
