"""The file of one compiled specialisation: a checksum, then a pickle; whoever may write it can run code."""

from __future__ import annotations

import hashlib
import os
import pickle
import uuid
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from numba.core.serialize import dumps

FORMAT = b"TADOC\x00\x00\x01"
SUFFIX = ".kernel"


class Entry(NamedTuple):
    """A specialisation: where its function is, what it takes and returns, and Numba's reduced form of the code."""

    module: str
    qualname: str
    is_callback: bool
    signature: Any
    code: Any


def read(path: Path) -> Entry | None:
    """Return the entry of a file; None where there is none, or one that is damaged or of another version."""
    try:
        data = path.read_bytes()
        digest, body = data[len(FORMAT) : len(FORMAT) + 32], data[len(FORMAT) + 32 :]
        if not data.startswith(FORMAT) or hashlib.sha256(body).digest() != digest:
            return None
        return Entry(*pickle.loads(zlib.decompress(body)))
    except Exception:  # a pickle of another version fails in many ways, and the kernel can always be compiled
        return None


def write(path: Path, entry: Entry) -> None:
    """Write the file of an entry, at once for whoever reads it.

    Raises
    ------
    OSError
        It cannot be written.

    """
    body = zlib.compress(dumps(tuple(entry)), 6)
    made = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}.tmp")
    try:
        made.write_bytes(FORMAT + hashlib.sha256(body).digest() + body)
        os.replace(made, path)
    except BaseException:
        with suppress(OSError):
            made.unlink()
        raise
