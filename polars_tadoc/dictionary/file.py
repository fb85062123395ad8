"""A file of named arrays: the header is always checked, the arrays on request.

``TADOCDIC``, or the mark of another :class:`Form` · format version (4 bytes) · CRC-32 of everything before the arrays
except this number (4) · bytes before the arrays (8) · JSON header · spaces to a multiple of 64 bytes · the arrays, each
padded with zeros to a multiple of 64 bytes, so that they can be used from the mapping. The header lists each array's
name, dtype, length and CRC-32 (padding included); numbers are little-endian. This module does not know what the arrays
mean.
"""

from __future__ import annotations

import json
import mmap
import os
import reprlib
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.config import settings
from polars_tadoc.errors import InvalidDictionaryError, LimitExceededError, TadocError
from polars_tadoc.runtime.regular_file import naming_file, open_regular
from polars_tadoc.storage.atomic_write import atomic_file, target
from polars_tadoc.storage.writing import MAX_HEADER_BYTES

VERSION = 1
AT_ONCE = 16 << 20
"""Bytes that are checked or written at once."""

ALIGNMENT = 64
"""Bytes of a cache line: no number of an array spans two."""

_START = struct.Struct("<8sIIQ")
_DTYPES = ("|u1", "<u2", "<u4", "<u8", "<i8")

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Form:
    """The kind of a file."""

    magic: bytes
    """Its first eight bytes."""
    owner: str
    """The class whose ``save`` and ``load`` write and read it."""
    noun: str
    error: type[TadocError]
    """Raised for damaged files."""
    is_limited: bool = False
    """Whether ``Config(payload_limit_bytes=)`` holds for the arrays."""

    @property
    def mend(self) -> str:
        """Return advice for damaged files."""
        return f"copy it again from its source, or make the {self.noun} again and save it"

    def damaged(self, name: str, why: str) -> TadocError:
        """Make the error for a damaged file, with the reason."""
        return self.error(f"{self.owner}.load: {name} is damaged: {why}; {self.mend}")


DICTIONARY = Form(b"TADOCDIC", "Dictionary", "dictionary", InvalidDictionaryError)


def to_chunks(
    contents: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], form: Form = DICTIONARY
) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a file, piece by piece.

    Parameters
    ----------
    contents
        Other contents of the header, as JSON values.
    arrays
        One-dimensional integer arrays.
    form
        The kind of the file.

    """
    known: list[dict[str, Any]] = []
    chunks: list[bytes | memoryview] = []
    for name, values in arrays.items():
        values = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
        data, padding = values.view(np.uint8).data, bytes(-values.nbytes % ALIGNMENT)
        checksum = zlib.crc32(padding, _crc32(data))
        known.append({"name": name, "dtype": values.dtype.str, "length": len(values), "crc32": checksum})
        chunks += [*_pieces(data), padding]
    header = json.dumps({**contents, "arrays": known}).encode()
    header += b" " * (-(_START.size + len(header)) % ALIGNMENT)
    size = _START.size + len(header)
    if size > MAX_HEADER_BYTES:
        raise LimitExceededError(
            f"{form.owner}.save: the header would have {size:,} bytes, the most is {MAX_HEADER_BYTES:,}"
        )
    yield _START.pack(form.magic, VERSION, _checksum(VERSION, size, header), size)
    yield header
    yield from chunks


def write(
    path: Path, contents: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]], form: Form = DICTIONARY
) -> None:
    """Write a file atomically. Errors as for ``atomic_write.target``."""
    call = f"{form.owner}.save"
    with atomic_file(target(path, call), call) as temporary, temporary.open("wb") as file:
        file.writelines(to_chunks(contents, arrays, form))


def read(path: Path, verify: bool, form: Form = DICTIONARY) -> tuple[dict[str, Any], Arrays]:
    """Map a file into memory; otherwise as :func:`parse`.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    InvalidDictionaryError, or the error of the form
        As for :func:`parse`, or it is a folder, a FIFO, a device or a socket.

    """
    with naming_file(path, f"{form.owner}.load", form.error, f"a {form.noun} is"), open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        data: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    return parse(data, verify, str(path), form)


def parse(data: Any, verify: bool, name: str, form: Form = DICTIONARY) -> tuple[dict[str, Any], Arrays]:
    """Return the arrays in the bytes of a file, without a copy, read-only.

    Parameters
    ----------
    data
        The bytes, or an object with a buffer of them.
    verify
        Whether to read every array and compare its checksum.
    name
        Name of the file in messages.
    form
        The kind of the file.

    Returns
    -------
    (dict, dict of arrays)
        The header, and the arrays by name.

    Raises
    ------
    InvalidDictionaryError, or the error of the form
        The data is not such a file, has another version, or is damaged.
    LimitExceededError
        The form is limited, and the file larger than ``Config(payload_limit_bytes=)``; raised before arrays are read.

    """
    call, noun = f"{form.owner}.load", form.noun
    if data[: len(form.magic)] != form.magic:
        raise form.error(f"{call}: {name} is not a saved {noun}, or its first bytes are damaged; {form.mend}")
    if len(data) < _START.size:
        raise form.damaged(name, f"it has {len(data):,} bytes, too few for a {noun}")
    _, version, checksum, size = _START.unpack(data[: _START.size])
    if version != VERSION:
        raise form.error(
            f"{call}: {name} has format version {version}, this polars_tadoc reads version {VERSION}; make the {noun} "
            "again, or install the polars_tadoc that saved it"
        )
    if size > MAX_HEADER_BYTES:
        raise form.damaged(name, f"its header has {size:,} bytes, the most is {MAX_HEADER_BYTES:,}")
    text = data[_START.size : size]
    if _checksum(version, size, text) != checksum:
        raise form.damaged(name, "the header's checksum does not match")
    try:
        header = json.loads(text)
        known = [(str(one["name"]), str(one["dtype"]), whole(one["length"]), one["crc32"]) for one in header["arrays"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise form.damaged(name, "its header does not list its arrays") from None
    if any(dtype not in _DTYPES or length < 0 for _, dtype, length, _ in known) or size % ALIGNMENT:
        raise form.damaged(name, "its header lists an invalid array")
    sizes = [np.dtype(dtype).itemsize * length for _, dtype, length, _ in known]
    edges = list(pairwise(accumulate((own + -own % ALIGNMENT for own in sizes), initial=size)))
    end = edges[-1][1] if edges else size
    if len(data) != end:
        raise form.damaged(name, f"it has {len(data):,} bytes, not {end:,}")
    limit = settings().payload_limit_bytes
    if form.is_limited and end > limit:
        raise LimitExceededError(
            f"{call}: {name} has {end:,} bytes, the limit is {limit:,}; if the file is trusted, raise it: "
            f"tadoc.Config(payload_limit_bytes={end:_})"
        )
    arrays = {}
    view = memoryview(data)
    for (array, dtype, length, crc32), (start, stop) in zip(known, edges, strict=True):
        if verify and _crc32(view[start:stop]) != crc32:
            raise form.damaged(name, f"the checksum of array {array} does not match")
        values = np.frombuffer(data, dtype, length, start) if length else np.zeros(0, dtype)
        values.flags.writeable = False
        arrays[array] = values
    return header, arrays


def _pieces(data: memoryview) -> Iterator[memoryview]:
    """Cut bytes: an interrupt of what writes or reads them waits for one piece."""
    return (data[first : first + AT_ONCE] for first in range(0, len(data), AT_ONCE))


def _crc32(data: memoryview) -> int:
    checksum = 0
    for piece in _pieces(data):
        checksum = zlib.crc32(piece, checksum)
    return checksum


def whole(number: object) -> int:
    """Return a header's number; raise ``TypeError`` unless it is an integer."""
    if type(number) is not int:
        raise TypeError(f"{reprlib.repr(number)} is not an integer")
    return number


def _checksum(version: int, size: int, header: bytes) -> int:
    return zlib.crc32(header, zlib.crc32(struct.pack("<IQ", version, size)))
