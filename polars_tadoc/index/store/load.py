"""Loads a saved index."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from polars_tadoc.errors import InvalidIndexError
from polars_tadoc.index.index import Index
from polars_tadoc.index.store import storage
from polars_tadoc.index.store.folder import HEADER, listed_sizes
from polars_tadoc.runtime.arguments import require_bool
from polars_tadoc.runtime.free_memory import give_back_memory, small_arrow_memory
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.storage.find import one_file
from polars_tadoc.storage.object_store import Access
from polars_tadoc.storage.writing import downloaded_folder


@ends_on_interrupt
def load_index(
    path: str | os.PathLike[str],
    *,
    verify: bool = True,
    mmap: bool = True,
    normalize: pl.Expr | None = None,
    storage_options: Mapping[str, Any] | None = None,
    credential_provider: Any = "auto",
) -> Index:
    """Load an index that :meth:`polars_tadoc.Index.save` wrote.

    All files are checked, but little of their content stays in memory: at most one and a half times their size, usually
    less. Words and postings are decoded by the first search, and the stored text by the first phrase or snippet.

    Do not modify the files of a loaded index in place: searches read them. Saving another index to the same path is
    safe, because it creates new files.

    Parameters
    ----------
    path
        The folder, or its address in an object store (``s3://bucket/index``). Files from an object store are copied to
        a temporary folder (``Config(spill_folder=)``), limited to the sizes in the index's header, and read into
        memory.
    verify
        Read every file completely and compare its checksum. Otherwise arrays of postings and lengths are not compared;
        they are only checked to fit together. If one is damaged, documents may be missed and scores may be wrong;
        memory is never accessed out of bounds. The checksum of the text is then compared when it is first read.
    mmap
        Memory-map the large arrays and the text: they are read when a search first needs them, and processes that load
        the same index share them. Otherwise the files are read at once.
    normalize
        Only if the index was built with a ``normalize=`` that calls a Python function (``map_elements``,
        ``map_batches``): functions are not saved, so pass the same expression again.
    storage_options
        Options of the object store, as for :func:`polars_tadoc.scan_packed`.
    credential_provider
        As for :func:`polars_tadoc.scan_packed`.

    Returns
    -------
    Index
        The index.

    Raises
    ------
    FileNotFoundError
        The folder does not exist.
    ModuleNotFoundError
        The index was built with the analyzer of a language, and PyStemmer is not installed. (Another version of it than
        the index's only warns.)
    InvalidIndexError
        It is not a saved index, has a format version that this release does not read, or a file is missing or damaged.
        A file modified in place later, or text that is damaged despite a correct checksum, raises the same error when
        it is first read.
    LimitExceededError
        A table would decompress to more than ``Config(payload_limit_bytes=)``; raised before decoding.
    ValueError
        ``normalize`` is required and missing, or differs from the index's; or ``path`` is an address of an unknown
        kind.
    OSError
        The object store cannot be reached.
    TypeError
        ``path`` is not a path, ``verify`` or ``mmap`` not a bool, or ``normalize`` not an expression.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> import tempfile
    >>> index = tadoc.build_index(pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index.save(f"{folder}/index")
    ...     tadoc.load_index(f"{folder}/index").search("do").get_column("id").to_list()
    [1]

    """
    require_bool("verify", verify, "load_index")
    require_bool("mmap", mmap, "load_index")
    if normalize is not None and not isinstance(normalize, pl.Expr):
        raise TypeError(f"load_index: normalize is {type(normalize).__name__}, not a Polars expression")
    access = Access(storage_options, credential_provider)
    place = one_file(path, "load_index", access)
    if isinstance(place, Path):
        with small_arrow_memory():  # so that memory of the checks is returned to the system
            index = _read_one(place, verify, mmap, normalize)
    else:
        with downloaded_folder(place, HEADER, listed_sizes, "load_index", access) as folder:
            index = Index(*storage.read(folder, verify, False, normalize))
    give_back_memory()
    return index


_TRIES = 10
"""How often a folder is read that others replace meanwhile."""


def _read_one(place: Path, verify: bool, mmap: bool, normalize: pl.Expr | None) -> Index:
    """Read a folder; again, if ``save`` has given its name to another one meanwhile: then files of both were read."""
    for attempt in range(_TRIES):
        before = _identity(place)
        try:
            index = Index(*storage.read(place, verify, mmap, normalize))
        except (InvalidIndexError, FileNotFoundError):
            if _identity(place) == before or attempt + 1 == _TRIES:
                raise
            continue
        if _identity(place) == before:
            return index
    raise InvalidIndexError(f"load_index: {place} was replaced {_TRIES} times while it was read; load it again")


def _identity(place: Path) -> tuple[int, ...] | None:
    try:
        status = place.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns  # numbers of inodes are used again
