"""Addresses, ``s3://bucket/key``, told from paths."""

from __future__ import annotations

import os
import re
from typing import NamedTuple
from urllib.request import url2pathname

from polars_tadoc.runtime.fork import require_threads

SCHEMES = {"s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "http", "https"}
"""Those of object stores."""


class Address(NamedTuple):
    """An address, cut at the end of what names the store."""

    root: str
    """``s3://bucket``."""
    path: str
    """Behind it, without slashes at the ends."""

    def __str__(self) -> str:
        return f"{self.root}/{self.path}"


def local_or_address(value: str, call: str, name: str = "path") -> str | Address:
    """Return an address, or the path that a string is; ``file://`` is one.

    Raises
    ------
    ValueError
        It is an address of a kind that is not read, or names a bucket alone.

    """
    require_threads()
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):(//)?", value)
    if found is None or not (found[2] or found[1] == "file") or (os.name == "nt" and len(found[1]) == 1):
        return value
    scheme = found[1].lower()
    if scheme == "file":
        host, slash, path = value[found.end() :].partition("/") if found[2] else ("", "/", value[5:].lstrip("/"))
        if host not in ("", "localhost") or not slash:
            raise ValueError(f'{call}: {name}="{value}" is no file of this machine; write file:///folder/file')
        return url2pathname(f"/{path}")
    if scheme not in SCHEMES:
        raise ValueError(
            f'{call}: {name}="{value}" is an address that is not known; there are paths, file://, s3://, gs://, az:// '
            "and https://"
        )
    bucket, _, path = value[found.end() :].partition("/")
    if not bucket:
        raise ValueError(f'{call}: {name}="{value}" names no bucket; write {scheme}://bucket/path')
    return Address(f"{scheme}://{bucket}", path.strip("/"))
