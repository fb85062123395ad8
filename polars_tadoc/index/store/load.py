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
from polars_tadoc.index.store.folder import HEADER, Verify, listed_sizes
from polars_tadoc.runtime.arguments import require_bool
from polars_tadoc.runtime.documented import with_imports
from polars_tadoc.runtime.free_memory import give_back_memory, small_arrow_memory
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.storage.find import one_file
from polars_tadoc.storage.object_store import Access
from polars_tadoc.storage.writing import downloaded_folder


@with_imports
@ends_on_interrupt
def load_index(
    path: str | os.PathLike[str],
    *,
    verify: Verify = True,
    mmap: bool = True,
    normalize: pl.Expr | None = None,
    storage_options: Mapping[str, Any] | None = None,
    credential_provider: Any = "auto",
) -> Index:
    """Load an index that :meth:`polars_tadoc.Index.save` wrote.

    Files are opened now: their number, sizes and the header are checked. What they hold is read and checked when it is
    first needed: words, postings and lengths by the first search, ids by the first result, metadata by the first
    filter or query with syntax, the stored text by the first phrase or snippet. So an index opens in milliseconds.

    A loaded index goes on to read the files that it has opened when another process saves a longer one to the same
    path: load it again to see that one.

    Do not modify the files of a loaded index in place: searches read the mapped ones. Saving another index to the same
    path is safe, because it creates new files.

    Parameters
    ----------
    path
        The folder, or its address in an object store (``s3://bucket/index``). Files from an object store are copied to
        a temporary folder (``Config(spill_folder=)``), limited to the sizes in the index's header, and read into
        memory.
    verify
        True: each file is read completely and its checksum compared when it is first needed. "all": all files now.
        False: arrays of postings and lengths are not compared; they are only checked to fit together. If one is
        damaged, documents may be missed and scores may be wrong; memory is never accessed out of bounds.
    mmap
        Leave files on disk until they are needed, and map the bits of postings, so that processes that load the same
        index share them. Otherwise all files are read into memory now: later changes in place have no effect.
    normalize
        Only if the index was built with a ``normalize=`` that calls a Python function (``map_elements``,
        ``map_batches``): functions are not saved, so pass the same expression again.

    Returns
    -------
    Index
        The saved index.

    Raises
    ------
    FileNotFoundError
        The folder does not exist.
    ModuleNotFoundError
        The index was built with the analyzer of a language, and PyStemmer is not installed. (Another version of it than
        the index's only warns.)
    InvalidIndexError
        It is not a saved index, has a format version that this release does not read, or a file is missing or has
        another size. A damaged file raises the same error, from the call that first needs it or, with ``verify="all"``,
        from this one.
    LimitExceededError
        A table would decompress to more than ``Config(payload_limit_bytes=)``; raised before decoding, likewise.
    ValueError
        ``normalize`` is required and missing, or differs from the index's; or ``path`` is an address of an unknown
        kind.
    OSError
        The object store cannot be reached.
    TypeError
        ``path`` is not a path, ``verify`` not a bool or "all", ``mmap`` not a bool, or ``normalize`` not an expression.

    Examples
    --------
    >>> index = tadoc.build_index(pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index.save(f"{folder}/index")
    ...     tadoc.load_index(f"{folder}/index").search("do").get_column("id").to_list()
    [1]

    """
    if verify != "all":
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


def _read_one(place: Path, verify: Verify, mmap: bool, normalize: pl.Expr | None) -> Index:
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
