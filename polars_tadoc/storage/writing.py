"""Atomic writes to a path, an object store or an open file."""

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
from polars_tadoc.storage.addresses import Address, require_utf8
from polars_tadoc.storage.atomic_write import atomic_file, atomic_file_late, naming_full_disk, target
from polars_tadoc.storage.find import one_file
from polars_tadoc.storage.object_store import Access, Store

Place = Path | Address | BinaryIO
"""A place to write a file to."""

MAX_HEADER_BYTES = 1 << 26
"""Maximum bytes of the header of a saved index."""


def writable_place(place: Any, call: str, access: Access, instead: str = "") -> Place:
    """Return the place to write a file to; errors as for ``one_file``."""
    if hasattr(place, "write") and not isinstance(place, os.PathLike):
        opened: BinaryIO = place
        return opened
    found = one_file(place, call, access, instead)
    require_utf8(str(found), call)
    return found


@contextmanager
def writing(place: Place, call: str, access: Access, *, late: bool = False) -> Iterator[Path]:
    """Yield an empty local file to write to; on success it is moved to its place.

    An object appears when all of its parts are uploaded; the last part of a multipart upload completes it.

    Parameters
    ----------
    place
        The value of :func:`writable_place`.
    call
        Start of messages.
    access
        Access to object stores.
    late
        For writers that may still create the file after an interrupt; the file does not exist before.

    Raises
    ------
    OSError
        The path is a folder or a device, or its folder does not exist; the store cannot be reached; the disk is full.

    """
    if isinstance(place, Path):
        with (atomic_file_late if late else atomic_file)(target(place, call), call) as temporary:
            yield temporary
        return
    store = Store(place.root, access, call) if isinstance(place, Address) else None
    if isinstance(place, Address) and not place.path:
        raise IsADirectoryError(f"{call}: {place} is a bucket; give the address of an object in it")
    with scratch_folder(call) as folder:
        temporary = folder / "file"
        temporary.touch()
        yield temporary
        check()  # an interrupted write is not moved
        if store is not None and isinstance(place, Address):
            store.write(place.path, temporary)
        elif not isinstance(place, Address):
            with temporary.open("rb") as file:
                shutil.copyfileobj(file, place)


@contextmanager
def scratch_folder(call: str) -> Iterator[Path]:
    """Yield a temporary folder in the spill folder; removed on exit."""
    parent = settings().spill_folder
    where = Path(parent or tempfile.gettempdir())
    mend = "nothing was written; free some space, or choose another folder: Config(spill_folder=…)"
    with naming_full_disk(where, call, mend), tempfile.TemporaryDirectory(prefix="tadoc-upload-", dir=parent) as name:
        yield Path(name)


def require_no_folder(address: Address, last: str, overwrite: bool, call: str, access: Access) -> None:
    """Raise if an object store has a folder of that name; parameters and errors as for :func:`upload_folder`."""
    if not address.path:
        raise FileExistsError(f"{call}: {address} is a bucket; give the address of a folder in it")
    store = Store(address.root, access, call)
    if store.find(f"{address.path}/{last}") is None:
        if held := store.first_below(address.path):
            raise FileExistsError(
                f"{call}: {address} contains {held}, which is not a saved index; choose another name, or delete "
                "leftovers of a killed upload"
            )
        return
    if overwrite:
        raise ValueError(
            f"{call}: {address} is a saved index, and an object store cannot replace several objects at once; "
            "save under another name, then delete the old one"
        )
    raise FileExistsError(f"{call}: {address} already exists; choose another name")


def upload_folder(folder: Path, address: Address, last: str, overwrite: bool, call: str, access: Access) -> None:
    """Upload a folder's files to an object store, and last the one that completes it.

    Raises
    ------
    FileExistsError
        An object of that name exists.
    ValueError
        ``overwrite`` is true: object stores cannot replace a folder atomically.
    OSError
        The store cannot be reached; uploaded files are removed again.

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
    """Yield a local copy of a saved index in an object store; removed on exit.

    ``header`` is the file that lists the others, ``sizes`` reads from it the size of each.

    Raises
    ------
    FileNotFoundError
        The folder does not exist.
    InvalidIndexError
        It has no header, or files are missing or have other sizes.

    """
    store = Store(address.root, access, call)
    found = store.find(f"{address.path}/{header}")
    if found is None:
        raise FileNotFoundError(f"{call}: {address} has no object {header}: not a saved index, or an incomplete one")
    if found.size > MAX_HEADER_BYTES:
        raise InvalidIndexError(f"{call}: {address}/{header} has {found.size:,} bytes, too many for a header")
    text = store.read(found, 0, found.size)
    listed: dict[str, int] = sizes(text)
    with scratch_folder(call) as folder:
        (folder / header).write_bytes(text)
        for name, size in listed.items():
            met = store.find(f"{address.path}/{name}")
            if met is None or met.size != size:
                has = "is missing" if met is None else f"has {met.size:,} bytes, not {size:,}"
                raise InvalidIndexError(f"{call}: {address}/{name} {has}; copy the folder again, or save it again")
            with (folder / name).open("wb") as file:
                for start in range(0, size, 1 << 26):
                    file.write(store.read(met, start, min(start + (1 << 26), size)))
        yield folder
