"""A checksum of a Parquet file's footer, in the footer.

Parquet pages may have checksums; the footer has none, although it holds the positions of pages, their numbers of rows,
and the minima and maxima used for row-group pruning. So our writers add an entry to the footer's metadata, and write a
digest there when the file is complete: of all the footer's bytes, with zeros for the digest. Other readers ignore the
entry; files of other writers have none, and are read without this check.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import BinaryIO

import pyarrow.parquet as pq

from polars_tadoc.untrusted.thrift import MalformedError

KEY = "tadoc.footer"

_ZEROS = b"0" * 32
_ENTRY = b"\x18" + bytes([len(KEY)]) + KEY.encode() + b"\x18" + bytes([len(_ZEROS)])
"""The bytes before the digest: the two fields of a ``KeyValue`` in Thrift's compact protocol."""


def announce(writer: pq.ParquetWriter) -> None:
    """Reserve space for the digest in a file that is being written; :func:`seal` fills it."""
    writer.add_key_value_metadata({KEY: _ZEROS.decode()})


def seal(file: Path | BinaryIO) -> None:
    """Write the digest into a complete file."""
    if isinstance(file, Path):
        with open(file, "r+b", opener=_without_links) as opened:
            seal(opened)
        return
    end = file.seek(-8, 2)
    length = int.from_bytes(file.read(4), "little")
    start = file.seek(end - length)
    footer = file.read(length)
    at = footer.rindex(_ENTRY + _ZEROS) + len(_ENTRY)
    file.seek(start + at)
    file.write(_digest(footer))
    file.seek(0, 2)


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def require_whole(footer: bytes) -> None:
    """Compare a footer with its digest, if it has one.

    Raises
    ------
    MalformedError
        The digest differs.

    """
    at = footer.rfind(_ENTRY)
    if at < 0:
        return
    first, stop = at + len(_ENTRY), at + len(_ENTRY) + len(_ZEROS)
    if footer[first:stop] != _digest(footer[:first] + _ZEROS + footer[stop:]):
        raise MalformedError("the footer's checksum does not match")


def _digest(footer: bytes) -> bytes:
    return hashlib.blake2b(footer, digest_size=len(_ZEROS) // 2).hexdigest().encode()
