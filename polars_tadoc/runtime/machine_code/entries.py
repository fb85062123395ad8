"""The file of one compiled specialisation: a checksum, then a pickle; anyone who can write it can run code."""

from __future__ import annotations

import hashlib
import os
import pickle
import uuid
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from numba.core.serialize import dumps

FORMAT = b"TADOC\x00\x00\x01"
SUFFIX = ".kernel"


class Entry(NamedTuple):
    """A specialisation: place of its function, its types, and Numba's reduced form of the code."""

    module: str
    qualname: str
    is_callback: bool
    signature: Any
    code: Any


def reduced(compiled: Any) -> Any:
    """Return Numba's reduced form without the listing of types, which is for reading and contains local paths."""
    return tuple("" if isinstance(one, str) else one for one in compiled._reduce())


def unlinked(entry: Entry) -> Entry:
    """Return an entry without the LLVM code for linking callers: half of it, for functions that no kernel calls.

    Numba takes the names of the machine code's definitions from that code, so they stay.
    """
    (name, kind, (machine_code, linked)), *rest = entry.code
    module = llvm.parse_bitcode(linked)
    functions = [f'define void @"{one.name}"() {{ ret void }}' for one in module.functions if not one.is_declaration]
    defined = (one for one in module.global_variables if not one.is_declaration and not one.name.startswith(".const"))
    values = [f'@"{one.name}" = global i8 0' for one in defined]
    described = [f'target triple = "{module.triple}"', f'target datalayout = "{module.data_layout}"']
    names = llvm.parse_assembly("\n".join((*described, *functions, *values))).as_bitcode()
    return entry._replace(code=((name, kind, (machine_code, names)), *rest))


def read(path: Path) -> Entry | None:
    """Return the entry of a file; None if it is missing, damaged or of another version."""
    try:
        data = path.read_bytes()
        digest, body = data[len(FORMAT) : len(FORMAT) + 32], data[len(FORMAT) + 32 :]
        if not data.startswith(FORMAT) or hashlib.sha256(body).digest() != digest:
            return None
        return Entry(*pickle.loads(zlib.decompress(body)))
    except Exception:  # a pickle of another version fails in many ways, and the kernel can always be compiled
        return None


def write(path: Path, entry: Entry) -> None:
    """Write the file of an entry atomically.

    Raises
    ------
    OSError
        The file cannot be written.

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
