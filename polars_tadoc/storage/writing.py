"""Writes a file or a folder to where it is wanted: a path, an object store, an open file. It is there whole or not."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from polars_tadoc.config import settings
from polars_tadoc.errors import InvalidIndexError
from polars_tadoc.runtime.interrupts import check
from polars_tadoc.storage.addresses import Address
from polars_tadoc.storage.atomic_write import atomic_file, atomic_file_late, naming_full_disk, target
from polars_tadoc.storage.find import one_file
from polars_tadoc.storage.object_store import Access, Store

Place = Path | Address | BinaryIO
"""Where a file is written to."""

MAX_HEADER_BYTES = 1 << 26
"""Bytes of the header of a saved index."""


def writable_place(place: Any, call: str, access: Access, instead: str = "") -> Place:
    """Return where a file is to be written to; errors as for ``one_file``."""
    if hasattr(place, "write") and not isinstance(place, os.PathLike):
        opened: BinaryIO = place
        return opened
    return one_file(place, call, access, instead)


@contextmanager
def writing(place: Place, call: str, access: Access, *, late: bool = False) -> Iterator[Path]:
    """Give a file of this machine to write to, empty; in the end it is at its place.

    An object of a store is made when all of its parts are there: so is the last part of a multipart upload.

    Parameters
    ----------
    place
        What :func:`writable_place` returned.
    call
        What messages begin with.
    access
        How object stores are reached.
    late
        The file is made by a writer that may still make it when it was interrupted; it is not there before.

    Raises
    ------
    OSError
        The path is a folder, a device or in no folder; the store cannot be reached; the disk is full.

    """
    if isinstance(place, Path):
        with (atomic_file_late if late else atomic_file)(target(place, call), call) as temporary:
            yield temporary
        return
    store = Store(place.root, access, call) if isinstance(place, Address) else None
    if isinstance(place, Address) and not place.path:
        raise IsADirectoryError(f"{call}: {place} is a bucket; name an object in it")
    with scratch_folder(call) as folder:
        temporary = folder / "file"
        temporary.touch()
        yield temporary
        check()  # what was interrupted goes nowhere
        if store is not None and isinstance(place, Address):
            store.write(place.path, temporary)
        elif not isinstance(place, Address):
            with temporary.open("rb") as file:
                shutil.copyfileobj(file, place)


@contextmanager
def scratch_folder(call: str) -> Iterator[Path]:
    """Give a folder of this machine where what is spilled goes, too; in the end it goes."""
    parent = settings().spill_folder
    where = Path(parent or tempfile.gettempdir())
    mend = "nothing was written; make room there, or name another: Config(spill_folder=…)"
    with naming_full_disk(where, call, mend), tempfile.TemporaryDirectory(prefix="tadoc-upload-", dir=parent) as name:
        yield Path(name)


def require_no_folder(address: Address, last: str, overwrite: bool, call: str, access: Access) -> None:
    """Raise where an object store has a folder of that name; parameters and errors as for what uploads it."""
    if not address.path:
        raise FileExistsError(f"{call}: {address} is a bucket; name a folder in it")
    store = Store(address.root, access, call)
    if store.find(f"{address.path}/{last}") is None:
        if held := store.first_below(address.path):
            raise FileExistsError(
                f"{call}: {address} holds {held}, and no saved index; choose another name, or delete what a killed "
                "upload has left"
            )
        return
    if overwrite:
        raise ValueError(
            f"{call}: {address} holds a saved index, and an object store cannot replace several objects at once; "
            "save under another name and delete the old one"
        )
    raise FileExistsError(f"{call}: {address} is there already; choose another name")


def upload_folder(folder: Path, address: Address, last: str, overwrite: bool, call: str, access: Access) -> None:
    """Copy a folder's files to an object store, the one last that makes it complete.

    Raises
    ------
    FileExistsError
        There is something of that name.
    ValueError
        It is to be replaced, which no object store does as a whole.
    OSError
        The store cannot be reached; what was copied is removed again.

    """
    require_no_folder(address, last, overwrite, call, access)
    store = Store(address.root, access, call)
    prefix = f"{address.path}/"
    names = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    written: list[str] = []
    try:
        for name in [*(name for name in names if name != last), last]:
            check()
            written.append(prefix + name)
            store.write(written[-1], folder / name)
    except BaseException:
        with suppress(OSError):
            store.remove(written[::-1])
        raise


@contextmanager
def downloaded_folder(
    address: Address, header: str, sizes: Callable[[bytes], dict[str, int]], call: str, access: Access
) -> Iterator[Path]:
    """Give a copy of a saved index of an object store; in the end it goes.

    Parameters
    ----------
    address
        Its folder.
    header
        The file that lists the others.
    sizes
        Tells from the header's text the size of each file, so that no more is copied than it says.
    call, access
        As for :func:`writing`.

    Raises
    ------
    FileNotFoundError
        There is no such folder.
    InvalidIndexError
        It has no header, or files that are missing or of other sizes.

    """
    store = Store(address.root, access, call)
    found = store.find(f"{address.path}/{header}")
    if found is None:
        raise FileNotFoundError(f"{call}: {address} has no object {header}: it is no saved index, or part of one")
    if found.size > MAX_HEADER_BYTES:
        raise InvalidIndexError(f"{call}: {address}/{header} has {found.size:,} bytes, more than any header")
    text = store.read(found, 0, found.size)
    listed: dict[str, int] = sizes(text)
    with scratch_folder(call) as folder:
        (folder / header).write_bytes(text)
        for name, size in listed.items():
            met = store.find(f"{address.path}/{name}")
            if met is None or met.size != size:
                has = "is not there" if met is None else f"has {met.size:,} bytes, not {size:,}"
                raise InvalidIndexError(f"{call}: {address}/{name} {has}; copy the folder again, or save it again")
            with (folder / name).open("wb") as file:
                for start in range(0, size, 1 << 26):
                    file.write(store.read(met, start, min(start + (1 << 26), size)))
        yield folder
