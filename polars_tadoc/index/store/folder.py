"""A folder of plain files: a JSON header, NumPy arrays that are memory-mapped, Arrow tables.

The header lists each file with its size and checksum, and has its own checksum. This module does not interpret the
content of the files.
"""

from __future__ import annotations

import io
import json
import mmap
import os
import re
import reprlib
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from polars_tadoc.config import settings
from polars_tadoc.errors import InvalidIndexError, LimitExceededError, NotAFileError
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.arrow_memory import ARROW_ERRORS, frame_of, read_batches
from polars_tadoc.runtime.interrupts import check
from polars_tadoc.runtime.regular_file import arrow_file, open_regular, read_json_text
from polars_tadoc.storage.atomic_write import atomic_folder, naming_long_name
from polars_tadoc.untrusted import arrow_sizes, parquet_sizes
from polars_tadoc.untrusted.parquet_footer import open_parquet

Value = TypeVar("Value")

Verify = bool | Literal["all"]
"""When files are checked: at first use, arrays never, or all at once."""

HEADER = "header.json"
"""Written last; a folder without it is not a saved index."""

_FORMAT = "polars_tadoc index"
VERSION = 2
"""Version of files with a named analyzer, which earlier releases would overlook; others have version 1."""
_DTYPES = ("|u1", "<u2", "<u4", "<u8", "<i8")
_READ_BYTES = 1 << 20

_MEND = "copy the folder again from its source, or build the index again and save it"


class Writer:
    """Writes files into a folder; :meth:`finish` makes it complete.

    Parameters
    ----------
    folder
        An empty folder.

    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, dict[str, Any]] = {}

    def array(self, name: str, values: npt.NDArray[Any]) -> None:
        """Write a one-dimensional array as ``<name>.npy``."""
        values = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
        data = values.view(np.uint8).data
        start = _array_header(values.dtype, len(values))
        checksum = self._write(f"{name}.npy", memoryview(start), data)
        size = len(start) + values.nbytes
        self._files[f"{name}.npy"] = {
            "bytes": size,
            "crc32": checksum,
            "dtype": values.dtype.str,
            "length": len(values),
        }

    @contextmanager
    def open_array(self, name: str, dtype: npt.DTypeLike) -> Iterator[BinaryIO]:
        """Open a file for the numbers of an array of unknown length."""
        path, kind = self._folder / f"{name}.npy", np.dtype(dtype).newbyteorder("<")
        room = len(_array_header(kind, 0))
        with path.open("w+b") as file:
            file.write(bytes(room))
            yield file
            length = (file.tell() - room) // kind.itemsize
            file.seek(0)
            file.write(_array_header(kind, length))
        self._files[path.name] = {**_described(path), "dtype": kind.str, "length": length}

    def take(self, name: str) -> None:
        """List a file that another module wrote into the folder."""
        self._files[name] = _described(self._folder / name)

    def frame(self, name: str, values: pl.DataFrame) -> None:
        """Write columns of any type as ``<name>.arrow`` in Arrow's IPC format with zstd."""
        file = io.BytesIO()
        values.write_ipc(file, compression="zstd")
        self._bytes(f"{name}.arrow", file.getbuffer())

    def parquet(self, name: str, values: pl.DataFrame) -> None:
        """Write columns as ``<name>.parquet``."""
        file = io.BytesIO()
        values.write_parquet(file, compression="zstd")
        self._bytes(f"{name}.parquet", file.getbuffer())

    def strings(self, name: str, values: pa.LargeStringArray) -> None:
        """Write ascending strings as ``<name>.parquet``, front-coded.

        The 98,327 words of docs_tldr take 336 KB and load in 4 ms; as Arrow IPC with zstd they take 462 KB and 2 ms.
        """
        file = io.BytesIO()
        with strings_writer(file, name) as writer:
            writer.write_table(pa.table({name: values}))
        self._bytes(f"{name}.parquet", file.getbuffer())

    def path(self, name: str) -> Path:
        """Return the path for a file that :meth:`take` will list."""
        return self._folder / name

    def finish(self, contents: dict[str, Any]) -> None:
        """Write the header: ``contents``, the files, and a checksum of both."""
        header = {"format": _FORMAT, "format_version": 1, **contents, "files": self._files}
        (self._folder / HEADER).write_text(_header_text(header), encoding="utf-8")

    def _bytes(self, name: str, data: memoryview) -> None:
        self._files[name] = {"bytes": len(data), "crc32": self._write(name, data)}

    def _write(self, name: str, *parts: memoryview) -> int:
        """Write a file, and return its checksum; an interrupt ends it after the next 16 MB."""
        checksum = 0
        with (self._folder / name).open("wb") as file:
            for part in parts:
                for first in range(0, len(part), _AT_ONCE):
                    check()
                    piece = part[first : first + _AT_ONCE]
                    file.write(piece)
                    checksum = zlib.crc32(piece, checksum)
        return checksum


_AT_ONCE = 16 << 20


def strings_writer(file: Any, name: str) -> pq.ParquetWriter:
    """Return a writer of one-column string tables, as :meth:`Writer.strings` uses."""
    return pq.ParquetWriter(
        file,
        pa.schema({name: pa.large_string()}),
        compression="zstd",
        use_dictionary=False,
        column_encoding={name: "DELTA_BYTE_ARRAY"},
        write_statistics=False,
    )


class Reader:
    """Reads a folder of :class:`Writer`.

    Methods open a file and check its size; the function that they return reads and verifies it, so later damage and
    files that others put in its place do no harm. Tables are always verified; arrays only with ``verify``.

    Parameters
    ----------
    folder
        The folder.
    verify
        Read every array completely and compare its checksum.
    mapped
        Memory-map files instead of reading them: a folder that is replaced later stays readable.

    Raises
    ------
    FileNotFoundError
        The folder does not exist.
    InvalidIndexError
        It is not a folder, or has no header, or a header that is damaged or of another version.

    """

    def __init__(self, folder: Path, verify: Verify, mapped: bool) -> None:
        self._folder, self._verify, self._mapped = folder, bool(verify), mapped
        if not folder.exists():
            raise FileNotFoundError(f"load_index: {folder} does not exist")
        if not folder.is_dir():
            raise InvalidIndexError(f"load_index: {folder} is a file; an index is a folder; pass its path")
        self.header = self._read_header()

    def _read_header(self) -> dict[str, Any]:
        path = self._folder / HEADER
        try:
            text = read_json_text(path, "load_index").decode().replace("\r\n", "\n")  # Windows may change line ends
        except (FileNotFoundError, IsADirectoryError, NotAFileError):
            raise InvalidIndexError(
                f"load_index: {self._folder} has no file {HEADER}: it is not a saved index, or incomplete; {_MEND}"
            ) from None
        except UnicodeDecodeError:
            raise self.damaged(HEADER, "it is not text") from None
        try:
            header = json.loads(text)
        except (ValueError, RecursionError):
            raise self.damaged(HEADER, "it is not JSON") from None
        if not isinstance(header, dict) or header.get("format") != _FORMAT:
            raise self.damaged(HEADER, "it is not the header of an index")
        if header.get("format_version") not in range(1, VERSION + 1):
            raise InvalidIndexError(
                f"load_index: {path} has format version {reprlib.repr(header.get('format_version'))}, this "
                f"polars_tadoc reads versions up to {VERSION}: build the index again, or install the polars_tadoc that "
                "saved it"
            )
        header.pop("crc32", None)
        try:
            is_whole = text == _header_text(header)
        except RecursionError:  # writing JSON needs a deeper stack than reading it
            raise self.damaged(HEADER, "its JSON is nested too deeply") from None
        if not is_whole:
            raise self.damaged(HEADER, "checksum mismatch")
        return header

    def damaged(self, name: str, why: str) -> InvalidIndexError:
        """Make the error for a damaged file."""
        return InvalidIndexError(f"load_index: {self._folder / name} is damaged: {why}; {_MEND}")

    def nbytes(self, name: str) -> int:
        """Return the size of a file in bytes."""
        return int(self._known(name)["bytes"])

    def array(self, name: str, mapped: bool = False, verify: bool = False) -> Callable[[], npt.NDArray[Any]]:
        """Open an array of integers; the returned function reads it, read-only.

        Parameters
        ----------
        name
            Name passed to :meth:`Writer.array`.
        mapped
            Leave the numbers in the file, if the reader maps files. Numbers read into memory instead cannot change
            after its check.
        verify
            Compare the checksum even if the reader does not verify.

        Raises
        ------
        InvalidIndexError
            The file is missing, its size or type differs from the header, or, from the function, its checksum does
            not match.

        """
        name = f"{name}.npy"
        known = self._known(name)
        if known.get("dtype") not in _DTYPES:
            raise self.damaged(HEADER, f"{name} holds {known.get('dtype')}, not integers")
        dtype, length = np.dtype(known["dtype"]), int(known["length"])
        start = _array_header(dtype, length)
        read = self._map(name, start) if mapped and self._mapped else self._open(name)
        if known["bytes"] != len(start) + dtype.itemsize * length:
            raise self.damaged(name, "its type or length differs from the header")

        def numbers() -> npt.NDArray[Any]:
            data = read(verify or self._verify)
            if not isinstance(data, mmap.mmap) and not data.startswith(start):
                raise self.damaged(name, "its type or length differs from the header")
            values = np.frombuffer(data, dtype, length, len(start)) if length else np.zeros(0, dtype)
            values.flags.writeable = False
            return values

        return numbers

    def frame(self, name: str) -> Callable[[], pl.DataFrame]:
        """Open a file of :meth:`Writer.frame`; as :meth:`array`."""
        name = f"{name}.arrow"
        read = self._open(name)

        def frame() -> pl.DataFrame:
            data = read(True)
            with self._readable(name):
                size = arrow_sizes.decompressed_bytes(data)
            self._require_within_limit(name, size)
            with self._readable(name):
                try:
                    table = read_batches(data)
                except pa.ArrowNotImplementedError:  # 128-bit integers, which only Polars has
                    return pl.read_ipc(data)
                table.validate(full=True)
                return frame_of(table)

        return frame

    def parquet(self, name: str) -> Callable[[], LaterTable]:
        """Open a file of :meth:`Writer.parquet`; the returned function reads it but decodes only its footer.

        It raises as :meth:`array`.
        """
        name = f"{name}.parquet"
        read = self._open(name)

        def opened() -> LaterTable:
            data = read(True)
            with self._readable(name):
                file = open_parquet(pa.BufferReader(data))
                schema, rows = file.schema_arrow, int(file.metadata.num_rows)
                frame = frame_of(pa.Table.from_batches([], schema))
            self._require_unfoldable(name, data)

            def table() -> pl.DataFrame:
                with self._readable(name):
                    return frame_of(_parquet(data))

            return LaterTable(frame.schema, rows, table)

        return opened

    def strings(self, name: str) -> Callable[[], pa.LargeStringArray]:
        """Open a file of :meth:`Writer.strings`; as :meth:`array`, and raises for nulls or unsorted strings."""
        name = f"{name}.parquet"
        read = self._open(name)

        def strings() -> pa.LargeStringArray:
            data = read(True)
            self._require_unfoldable(name, data)
            with self._readable(name):
                table = _parquet(data)
            if table.num_columns != 1 or table.schema.types[0] not in (pa.string(), pa.large_string()):
                raise self.damaged(name, "it is not one column of strings")
            strings = table.column(0).cast(pa.large_string()).combine_chunks()
            if strings.null_count or not Vocabulary(strings).ascending.all():
                raise self.damaged(name, "its strings are not sorted")
            return strings

        return strings

    def _require_unfoldable(self, name: str, data: Any) -> None:
        with self._readable(name):
            size = parquet_sizes.decompressed_bytes_of_all(data, settings().payload_limit_bytes)
        self._require_within_limit(name, size)

    def _require_within_limit(self, name: str, size: int) -> None:
        limit = settings().payload_limit_bytes
        if size > limit:
            raise LimitExceededError(
                f"load_index: {self._folder / name} claims to decode to at least {size:,} bytes, the limit is "
                f"{limit:,}; if the data is trusted, raise it: tadoc.Config(payload_limit_bytes=…)"
            )

    @contextmanager
    def _readable(self, name: str) -> Iterator[None]:
        """Convert errors of Arrow and Polars to one that names the file."""
        try:
            yield
        except (*ARROW_ERRORS, pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError) as error:
            raise self.damaged(name, f"it is not a table ({error})") from None

    def _known(self, name: str) -> dict[str, Any]:
        with self.sound():
            files = field(self.header, "files", dict)
            if name not in files:
                raise ValueError(f"it does not list {name}")
            known = field(files, name, dict)
            for number in ("bytes", "crc32", *(("length",) if name.endswith(".npy") else ())):
                if field(known, number, int) < 0:
                    raise ValueError(f'"{number}" of {name} is negative')
        return known

    @contextmanager
    def sound(self) -> Iterator[None]:
        """Convert a ``ValueError`` about the header's content to an error that names the header."""
        try:
            yield
        except ValueError as error:
            raise self.damaged(HEADER, str(error)) from None

    def _open(self, name: str) -> Callable[[bool], bytes]:
        """Open a file; the returned function reads it into memory, and compares its checksum if asked to.

        The bytes that are checked are those that are returned: no process can change them in between.
        """
        known = self._known(name)
        with self._opening(name):
            file = arrow_file(self._folder / name)
        self._require_size(name, known, file.size())
        held = None if self._mapped else file.read_at(known["bytes"], 0)

        def read(verify: bool) -> bytes:
            data: bytes = file.read_at(known["bytes"], 0) if held is None else held
            self._require_size(name, known, len(data))  # it may have been cut off since
            if verify and _checksum(io.BytesIO(data)) != known["crc32"]:
                raise self.damaged(name, "checksum mismatch")
            return data

        return read

    def _map(self, name: str, start: bytes) -> Callable[[bool], mmap.mmap]:
        """Map a file that begins in a given way; the returned function checks its size, and once its checksum."""
        known = self._known(name)
        with self._opening(name), open_regular(self._folder / name) as file:
            self._require_size(name, known, os.fstat(file.fileno()).st_size)
            if file.read(len(start)) != start:  # not through the mapping: its pages count as memory of this process
                raise self.damaged(name, "its type or length differs from the header")
            made = mmap.mmap(file.fileno(), known["bytes"], access=mmap.ACCESS_READ)
        unchecked = True

        def checked(verify: bool) -> mmap.mmap:
            nonlocal unchecked
            self._require_size(name, known, made.size())  # reading what has been cut off would end the process
            if verify and unchecked:
                if _mapped_checksum(made) != known["crc32"]:
                    raise self.damaged(name, "checksum mismatch")
                unchecked = False
            return made

        return checked

    @contextmanager
    def _opening(self, name: str) -> Iterator[None]:
        """Convert errors of opening a file to one that names it."""
        try:
            yield
        except (FileNotFoundError, IsADirectoryError):
            raise InvalidIndexError(f"load_index: {self._folder / name} does not exist; {_MEND}") from None
        except NotAFileError as error:
            raise InvalidIndexError(f"load_index: {error}; {_MEND}") from None

    def _require_size(self, name: str, known: dict[str, Any], size: int) -> None:
        if size != known["bytes"] or not size:
            raise self.damaged(name, f"it has {size:,} bytes, not {known['bytes']:,}")


class LaterTable(NamedTuple):
    """A table in a file that is open but not read."""

    schema: pl.Schema
    rows: int
    read: Callable[[], pl.DataFrame]
    """Reads the table; raises as :meth:`Reader.array`."""


def listed_sizes(header: bytes) -> dict[str, int]:
    """Return the files in a header with their sizes; empty if the header is damaged as :class:`Reader` defines it."""
    try:
        files = json.loads(header)["files"]
        known = {name: about["bytes"] for name, about in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    plain = all(re.fullmatch(r"[a-zA-Z0-9_][a-zA-Z0-9_.]{0,99}", name) for name in known)
    return known if plain and all(type(size) is int and size >= 0 for size in known.values()) else {}


def field(contents: Mapping[str, Any], name: str, kind: type[Value]) -> Value:
    """Return a header's field; raise ``ValueError`` unless it has the given type."""
    value = contents.get(name)
    if type(value) is not kind:
        raise ValueError(f'"{name}" is {reprlib.repr(value)}, not of type {kind.__name__}')
    return value


def _parquet(data: bytes) -> pa.Table:
    """Read a file, and validate its arrays."""
    file = open_parquet(pa.BufferReader(data))
    groups = range(file.num_row_groups)  # one by one: PyArrow cannot concatenate dictionaries inside structs
    none = pa.Table.from_batches([], file.schema_arrow)
    table = pa.concat_tables([none, *(file.read_row_group(group, use_threads=False) for group in groups)])
    table.validate(full=True)
    return table


@contextmanager
def new_folder(path: Path, overwrite: bool, call: str) -> Iterator[Path]:
    """Yield an empty folder beside ``path``, then rename it to ``path``; an error removes it.

    A killed process leaves only hidden folders beside ``path``: an incomplete one, and at one moment the replaced one.
    The next save to ``path`` removes the first and renames the second back.

    Raises
    ------
    FileExistsError
        The path exists: without ``overwrite`` anything, with it a folder that contains anything but the files of a
        saved index.
    FileNotFoundError
        The parent folder does not exist.
    DiskFullError
        The disk is full.

    """
    path = Path(os.path.realpath(path.expanduser()))
    with naming_long_name(path, call):
        _own_files(path, overwrite, call)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{call}: {path.parent} does not exist")
    with atomic_folder(path, call, lambda old: _own_files(old, overwrite, call)) as temporary:
        yield temporary


def _own_files(path: Path, overwrite: bool, call: str) -> list[Path]:
    """List the content of a folder, the header last.

    Raises
    ------
    FileExistsError
        It exists without ``overwrite``; with it, it contains files that are not listed in a saved index's header.

    """
    if not path.exists():
        return []
    if not overwrite:
        raise FileExistsError(f"{call}: {path} already exists; overwrite=True replaces a saved index")
    if not path.is_dir():
        raise FileExistsError(f"{call}: {path} is not a saved index, and is not replaced; choose another name")
    there = {one.name: one for one in path.iterdir()}
    if not there:
        return []
    listed = _files_of_index(path, call)
    # also for a damaged index: _MEND says "build the index again and save it"
    foreign = sorted(name for name, one in there.items() if name not in listed or not _is_file_or_link(one))
    if foreign:
        raise FileExistsError(
            f'{call}: {path} contains "{foreign[0]}", which is not a file of the saved index, and is not replaced; '
            "move it elsewhere, or choose another name"
        )
    return sorted(there.values(), key=lambda one: one.name == HEADER)


def _files_of_index(path: Path, call: str) -> set[str]:
    """Return the names of the header and of the files that it lists, whether or not they exist."""
    try:
        header = json.loads(read_json_text(path / HEADER, call))
    except (FileNotFoundError, IsADirectoryError, NotAFileError):
        why = f"it has no file {HEADER}"
    except (ValueError, RecursionError):
        why = f"its {HEADER} is not JSON"
    else:
        if isinstance(header, dict) and header.get("format") == _FORMAT:
            files = header.get("files")
            return {HEADER, *(files if isinstance(files, dict) else ())}
        why = f"its {HEADER} is not the header of an index"
    raise FileExistsError(f"{call}: {path} is not a saved index, and is not replaced: {why}; choose another name")


def _is_file_or_link(path: Path) -> bool:
    """Tell whether removing this removes only a file or a link; an index may consist of links."""
    return stat.S_IFMT(path.lstat().st_mode) in (stat.S_IFREG, stat.S_IFLNK)


def _array_header(dtype: np.dtype[Any], length: int) -> bytes:
    """Return the bytes before an array's numbers in a .npy file."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype.str, "fortran_order": False, "shape": (length,)})
    return file.getvalue()


def _described(path: Path) -> dict[str, Any]:
    """Return the size and checksum of a file."""
    with path.open("rb") as file:
        return {"bytes": os.fstat(file.fileno()).st_size, "crc32": _checksum(file)}


def _mapped_checksum(data: mmap.mmap) -> int:
    """Return a mapped file's checksum; its pages are let go of: they count as memory of this process."""
    advice: int | None = getattr(mmap, "MADV_DONTNEED", None)
    checksum, view = 0, memoryview(data)
    for first in range(0, len(view), _AT_ONCE):
        check()
        checksum = zlib.crc32(view[first : first + _AT_ONCE], checksum)
        if advice is not None:
            data.madvise(advice, first, min(_AT_ONCE, len(view) - first))
    return checksum


def _checksum(file: BinaryIO) -> int:
    checksum = 0
    while data := file.read(_READ_BYTES):
        checksum = zlib.crc32(data, checksum)
    return checksum


def _header_text(header: dict[str, Any]) -> str:
    """Return the header's text; the checksum comes first."""
    text = json.dumps(header, ensure_ascii=True)
    return json.dumps({"crc32": zlib.crc32(text.encode()), **header}, ensure_ascii=True, indent=1) + "\n"
