"""Files to be read, wherever they are: on this machine, in an object store, or open."""

from __future__ import annotations

import io
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from polars_tadoc.runtime.regular_file import arrow_file
from polars_tadoc.storage.object_store import ObjectInfo, Store

TAIL_BYTES = 1 << 16
"""Bytes at an object's end that are read when it is opened: most footers are shorter, and one request is enough."""

AHEAD_BYTES = 1 << 16
"""Bytes that are read of an object at least, where nobody said before what will be wanted."""

GAP_BYTES = 1 << 16
"""Bytes between two ranges that are read along, for one request takes longer."""


HEADER_BYTES = 1 << 10
"""Bytes that are read at once where a page's header begins, which may go beyond the last page's end."""


class File(ABC):
    """A file to be read, by several at once."""

    name: str
    """What messages call it."""

    @abstractmethod
    def open(self) -> tuple[pa.NativeFile, Ranges | None]:
        """Open it; ``OSError`` where that cannot be.

        Returns
        -------
        pyarrow.NativeFile
            The file.
        Ranges or None
            The same, of which ranges may be fetched before they are read; None where that saves nothing.

        """

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """Tell it from another file of that name, in values that JSON has; ``OSError`` where it cannot be read."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class LocalFile(File):
    """A file of this machine."""

    path: Path

    @property
    def name(self) -> str:  # type: ignore[override]
        """Its path."""
        return str(self.path)

    def open(self) -> tuple[pa.NativeFile, Ranges | None]:
        """Open it."""
        return arrow_file(self.path), None

    def described(self) -> dict[str, Any]:
        """Tell its size and when it was written."""
        status = self.path.stat()
        return {"bytes": status.st_size, "written (ns)": status.st_mtime_ns}


@dataclass(frozen=True)
class StoredFile(File):
    """An object of a store."""

    store: Store = field(compare=False)
    path: str
    root: str

    @property
    def name(self) -> str:  # type: ignore[override]
        """Its address."""
        return self.store.address(self.path)

    def open(self) -> tuple[pa.NativeFile, Ranges | None]:
        """Read its end."""
        met, tail = self.store.tail(self.path, TAIL_BYTES)
        ranges = Ranges(self.store, met, tail)
        return pa.PythonFile(ranges, mode="r"), ranges

    def described(self) -> dict[str, Any]:
        """Tell its size and tag."""
        met = self.store.find(self.path)
        if met is None:
            raise FileNotFoundError(f"there is no object {self.name}")
        return {"bytes": met.size, "tag": met.tag}


class OpenFile(File):
    """A file that the caller has opened, or bytes in memory; it is read from its beginning.

    Parameters
    ----------
    file
        What has ``read`` and ``seek``, and gives bytes.
    place
        Its number among the files that were given.

    Raises
    ------
    TypeError
        It gives text, or cannot go back.

    """

    def __init__(self, file: Any, place: int, call: str) -> None:
        self._file, self._call = file, call
        self._lock = threading.Lock()
        own = getattr(file, "name", None)
        self.name = own if isinstance(own, str) else f"<{type(file).__name__} {place}>"
        if isinstance(file, io.TextIOBase):
            raise TypeError(f'{call}: {self.name} gives text; open it as open(path, "rb")')
        if not (hasattr(file, "seek") and hasattr(file, "tell") and getattr(file, "seekable", lambda: True)()):
            raise TypeError(f"{call}: {self.name} cannot be read from any place; read it into io.BytesIO first")

    @property
    def opened(self) -> Any:
        """What the caller gave."""
        return self._file

    def open(self) -> tuple[pa.NativeFile, Ranges | None]:
        """Look at it from a place of one's own."""
        return pa.PythonFile(_Shared(self._file, self._lock, self.name), mode="r"), None

    @cached_property
    def _size(self) -> int:
        with self._lock:
            return int(self._file.seek(0, os.SEEK_END) or self._file.tell())

    def described(self) -> dict[str, Any]:
        """Tell its size; what is in memory is known for as long as it is."""
        return {"bytes": self._size, "object": id(self._file)}


class _Seeking(io.RawIOBase):
    """A file that is read from its own place, however many read the same bytes."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size, self._place = size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        return self._size

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
        self._place = start + offset
        return self._place

    def read(self, count: int | None = -1) -> bytes:
        stop = self._size if count is None or count < 0 else min(self._place + count, self._size)
        start = min(self._place, stop)
        data = self._between(start, stop) if start < stop else b""
        self._place = start + len(data)
        return data

    def _between(self, start: int, stop: int) -> bytes:
        raise NotImplementedError


class _Shared(_Seeking):
    """An open file of the caller's."""

    def __init__(self, file: Any, lock: threading.Lock, name: str) -> None:
        self._file, self._lock, self._name = file, lock, name
        with self._reading():
            size = int(file.seek(0, os.SEEK_END) or file.tell())
        super().__init__(size)

    def _reading(self) -> threading.Lock:
        if getattr(self._file, "closed", False):
            raise OSError(f"{self._name} was closed; leave it open until the plan has run")
        return self._lock

    def _between(self, start: int, stop: int) -> bytes:
        with self._reading():
            self._file.seek(start)
            return bytes(self._file.read(stop - start))


class Ranges(_Seeking):
    """An object of a store, of which ranges are read.

    Parameters
    ----------
    store, met
        The object.
    tail
        Its last bytes.

    """

    def __init__(self, store: Store, met: ObjectInfo, tail: bytes) -> None:
        super().__init__(met.size)
        self._store, self._object_info = store, met
        self._tail = (met.size - len(tail), tail)
        self._blocks: list[tuple[int, bytes]] = []

    def fetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Read ranges of bytes that will be wanted; those that were fetched before go.

        Parameters
        ----------
        ranges
            First byte and stop of each.

        """
        wanted = sorted((max(start, 0), min(stop + HEADER_BYTES, self._size)) for start, stop in ranges)
        joined: list[list[int]] = []
        for start, stop in wanted:
            if stop <= start or start >= self._tail[0]:
                continue
            if joined and start - joined[-1][1] <= GAP_BYTES:
                joined[-1][1] = max(joined[-1][1], stop)
            else:
                joined.append([start, stop])
        self._blocks = []
        self._blocks = [(start, self._store.read(self._object_info, start, stop)) for start, stop in joined]

    def _between(self, start: int, stop: int) -> bytes:
        for first, data in (self._tail, *self._blocks):
            if first <= start and stop <= first + len(data):
                return data[start - first : stop - first]
        end = min(max(stop, start + AHEAD_BYTES), self._size)
        block = (start, self._store.read(self._object_info, start, end))
        self._blocks = [*self._blocks[-7:], block]
        return block[1][: stop - start]


def chunk_range(chunk: Any) -> tuple[int, int]:
    """Return first byte and stop of one column of a row group, of what a footer says of it."""
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
        start = min(start, chunk.dictionary_page_offset)
    return start, start + chunk.total_compressed_size
