"""Loads a saved index."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

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
    """Load what :meth:`polars_tadoc.Index.save` wrote.

    All files are checked, but little of them stays in memory: at most one and a half times their size, mostly less.
    Words and postings are decoded when they are first searched, and the stored text when a phrase or a snippet asks for
    it.

    Do not change the files of a loaded index in place: they are read while it is searched. Saving another one over it
    makes new files and does no harm.

    Parameters
    ----------
    path
        The folder, or its address in an object store (``s3://bucket/index``): its files are then copied to a folder of
        this machine (``Config(spill_folder=)``), none longer than the index's header says, and read from there into
        memory; the copy goes.
    verify
        Read every file through and compare its checksum. Without, that is left out for numbers of postings and
        lengths, which are only checked to fit together: where one is damaged, documents may be missed and scores may
        be wrong, and nothing worse happens. The checksum of the text is then compared when it is first read.
    mmap
        Leave the large arrays and the text in their files, mapped into memory: they are read when searches first need
        them, and processes that load the same index share them. Without, the files are read at once.
    normalize
        Needed only where the index was built with a ``normalize=`` that calls a Python function (``map_elements``,
        ``map_batches``), for functions are not saved: the same expression again.
    storage_options
        How an object store is reached, as for :func:`polars_tadoc.scan_packed`.
    credential_provider
        Likewise.

    Returns
    -------
    Index
        The index.

    Raises
    ------
    FileNotFoundError
        There is no such folder.
    InvalidIndexError
        It is no saved index, was saved in a format that this release does not read, or a file is missing or damaged.
        A file that was changed in place since, or text that is damaged in spite of a right checksum, is told when it
        is first read, under the same name.
    LimitExceededError
        A table claims to unfold into more than ``Config(payload_limit_bytes=)``; found before it is decoded.
    ValueError
        ``normalize`` is needed and missing, or given and not what the index was built with; or ``path`` is an address
        of an unknown kind.
    OSError
        An object store cannot be reached.
    TypeError
        ``path`` is no path, ``verify`` or ``mmap`` no bool, or ``normalize`` no expression.

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
        with small_arrow_memory():  # what checks decode can go back to the system then
            index = Index(*storage.read(place, verify, mmap, normalize))
    else:
        with downloaded_folder(place, HEADER, listed_sizes, "load_index", access) as folder:
            index = Index(*storage.read(folder, verify, False, normalize))
    give_back_memory()
    return index
