"""Files to read: local, in an object store, or open."""

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
"""Bytes read from an object's end when it is opened: covers most footers in one request."""

AHEAD_BYTES = 1 << 16
"""Minimum bytes per request where nothing was prefetched."""

GAP_BYTES = 1 << 16
"""Ranges with at most this many bytes between them are read in one request, which is faster than two."""


HEADER_BYTES = 1 << 10
"""Bytes read for a page header without a known length; they may extend beyond the last page's end."""


class File(ABC):
    """A file to read; several readers may use it at once."""

    name: str
    """Its name in messages."""

    @abstractmethod
    def open(self) -> tuple[pa.NativeFile, Ranges | None]:
        """Open it; raises ``OSError`` on failure.

        Returns
        -------
        pyarrow.NativeFile
            The file.
        Ranges or None
            The same, if prefetching ranges pays off; otherwise None.

        """

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """Return JSON values that change when the file is rewritten; ``OSError`` if it cannot be read."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class LocalFile(File):
    """A local file."""

    path: Path

    @property
    def name(self) -> str:  # type: ignore[override]
        """Its path."""
        return str(self.path)

    def open(self) -> tuple[pa.NativeFile, Ranges | None]:
        """Open it."""
        return arrow_file(self.path), None

    def described(self) -> dict[str, Any]:
        """Return its size and modification time."""
        status = self.path.stat()
        return {"bytes": status.st_size, "written (ns)": status.st_mtime_ns}


@dataclass(frozen=True)
class StoredFile(File):
    """An object in a store."""

    store: Store = field(compare=False)
    path: str
    root: str

    @property
    def name(self) -> str:  # type: ignore[override]
        """Its address."""
        return self.store.address(self.path)

    def open(self) -> tuple[pa.NativeFile, Ranges | None]:
        """Read its end, and open it."""
        met, tail = self.store.tail(self.path, TAIL_BYTES)
        ranges = Ranges(self.store, met, tail)
        return pa.PythonFile(ranges, mode="r"), ranges

    def described(self) -> dict[str, Any]:
        """Return its size and entity tag."""
        met = self.store.find(self.path)
        if met is None:
            raise FileNotFoundError(f"object {self.name} does not exist")
        return {"bytes": met.size, "tag": met.tag}


class OpenFile(File):
    """An open file of the caller, or bytes in memory; read from its beginning.

    Parameters
    ----------
    file
        An object with ``read`` and ``seek`` that gives bytes.
    place
        Its number in the list of sources.

    Raises
    ------
    TypeError
        It gives text, or is not seekable.

    """

    def __init__(self, file: Any, place: int, call: str) -> None:
        self._file, self._call = file, call
        self._lock = threading.Lock()
        own = getattr(file, "name", None)
        self.name = own if isinstance(own, str) else f"<{type(file).__name__} {place}>"
        if isinstance(file, io.TextIOBase):
            raise TypeError(f'{call}: {self.name} gives text; open it in binary mode: open(path, "rb")')
        if not (hasattr(file, "seek") and hasattr(file, "tell") and getattr(file, "seekable", lambda: True)()):
            raise TypeError(f"{call}: {self.name} is not seekable; read it into io.BytesIO first")

    @property
    def opened(self) -> Any:
        """The caller's object."""
        return self._file

    def open(self) -> tuple[pa.NativeFile, Ranges | None]:
        """Open it with a position of its own."""
        return pa.PythonFile(_Shared(self._file, self._lock, self.name), mode="r"), None

    @cached_property
    def _size(self) -> int:
        with self._lock:
            return int(self._file.seek(0, os.SEEK_END) or self._file.tell())

    def described(self) -> dict[str, Any]:
        """Return its size and identity."""
        return {"bytes": self._size, "object": id(self._file)}


class _Seeking(io.RawIOBase):
    """A file with a position of its own; several readers may share the bytes."""

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
    """An open file of the caller."""

    def __init__(self, file: Any, lock: threading.Lock, name: str) -> None:
        self._file, self._lock, self._name = file, lock, name
        with self._reading():
            size = int(file.seek(0, os.SEEK_END) or file.tell())
        super().__init__(size)

    def _reading(self) -> threading.Lock:
        if getattr(self._file, "closed", False):
            raise OSError(f"{self._name} was closed; keep it open until the plan has run")
        return self._lock

    def _between(self, start: int, stop: int) -> bytes:
        with self._reading():
            self._file.seek(start)
            data = bytes(self._file.read(stop - start))
            while len(data) < stop - start and (more := self._file.read(stop - start - len(data))):
                data += more
            return data


class Ranges(_Seeking):
    """An object in a store, read by ranges.

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
        """Prefetch ranges of bytes; drops the previous ones.

        Parameters
        ----------
        ranges
            First byte and stop of each range.

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
    """Return first byte and stop of a column chunk, given its footer entry."""
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
        start = min(start, chunk.dictionary_page_offset)
    return start, start + chunk.total_compressed_size
