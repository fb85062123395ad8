"""Converts a trie to a dictionary file's arrays and numbers, and back (:mod:`polars_tadoc.dictionary.file`)."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from polars_tadoc.dictionary import file
from polars_tadoc.kernels.trie.arrays import DTYPES, Trie, problem
from polars_tadoc.runtime import __version__


def write(trie: Trie, path: Path) -> None:
    """Write a file; errors as for :meth:`polars_tadoc.Dictionary.save`."""
    file.write(path, *_parts(trie))


def read(path: Path, verify: bool) -> Trie:
    """Read a file of :func:`write`; errors as for :meth:`polars_tadoc.Dictionary.load`."""
    return _trie(*file.read(path, verify), str(path))


def to_bytes(trie: Trie) -> bytes:
    """Return the bytes of the file."""
    return b"".join(file.to_chunks(*_parts(trie)))


def from_bytes(data: bytes) -> Trie:
    """Read the bytes of :func:`to_bytes`."""
    name = "the pickle"
    return _trie(*file.parse(data, True, name), name)


def digest(trie: Trie) -> str:
    """Return the digest of the contents."""
    contents, arrays = _parts(trie)
    found = hashlib.blake2b(repr(sorted(contents["numbers"].items())).encode(), digest_size=16)
    for name, values in arrays.items():
        found.update(f"{name} {len(values)}".encode())
        found.update(np.ascontiguousarray(values).view(np.uint8).data)
    return found.hexdigest()


def _parts(trie: Trie) -> tuple[dict[str, Any], file.Arrays]:
    numbers = {name: value for name, value in trie._asdict().items() if name not in DTYPES}
    return {"polars_tadoc": __version__, "numbers": numbers}, {name: getattr(trie, name) for name in DTYPES}


def _trie(header: dict[str, Any], arrays: file.Arrays, name: str) -> Trie:
    try:
        parts: dict[str, Any] = {key: file.whole(value) for key, value in header["numbers"].items()}
        trie = Trie(**parts | {key: arrays[key] for key in DTYPES})
    except (KeyError, TypeError, AttributeError, ValueError):
        raise file.DICTIONARY.damaged(name, "parts of the trie are missing") from None
    why = problem(trie)
    if why is not None:
        raise file.DICTIONARY.damaged(name, why)
    return trie
