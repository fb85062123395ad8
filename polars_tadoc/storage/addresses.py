"""Tells addresses (``s3://bucket/key``) from paths."""

from __future__ import annotations

import os
import re
from typing import NamedTuple
from urllib.request import url2pathname

from polars_tadoc.runtime.process.fork import require_threads

SCHEMES = {"s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https"}
"""Schemes of object stores."""


class Address(NamedTuple):
    """An address, split into store and path."""

    root: str
    """``s3://bucket``."""
    path: str
    """The path in the store, without slashes at its ends."""

    def __str__(self) -> str:
        return f"{self.root}/{self.path}"


def require_utf8(path: os.PathLike[str] | str, call: str) -> None:
    """Raise ``ValueError`` for a file name that is not UTF-8: Polars and PyArrow cannot open it."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise ValueError(f"{call}: the name {str(path)!r} is not UTF-8; rename the file or folder") from None


def local_or_address(value: str, call: str, name: str = "path") -> str | Address:
    """Return the address or the local path that a string means; ``file://`` gives a path.

    Raises
    ------
    ValueError
        The scheme is unknown, or the address has a bucket only, or is not UTF-8.

    """
    require_threads()
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?", value)
    if found is None or not (found[2] or found[1] == "file") or (os.name == "nt" and len(found[1]) == 1):
        return value
    require_utf8(value, call)
    scheme = found[1].lower()
    if scheme == "file":
        host, slash, path = value[found.end() :].partition("/") if found[2] else ("", "/", value[5:].lstrip("/"))
        if host not in ("", "localhost") or not slash:
            raise ValueError(f'{call}: {name}="{value}": not a local file; write file:///folder/file')
        return url2pathname(f"/{path}")
    if scheme not in SCHEMES:
        raise ValueError(
            f'{call}: {name}="{value}": unknown scheme; use a path, file://, s3://, gs://, az:// or https://'
        )
    bucket, _, path = value[found.end() :].partition("/")
    if not bucket:
        raise ValueError(f'{call}: {name}="{value}": the bucket is missing; write {scheme}://bucket/path')
    return Address(f"{scheme}://{bucket}", path.strip("/"))
