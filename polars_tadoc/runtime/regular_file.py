"""Opens and creates files where others may have put something else: a FIFO, a device, a socket or a link.

Opening a FIFO waits for a writer, and reading a device may never end. So files are opened without waiting, and only
regular ones are read.

Links are followed where a user names the file or its folder: an index may consist of links into a store of files. They
are not followed (``follow=False``) where this package chose the name: spilled runs, checkpoints, left-over files.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from polars_tadoc.config import settings
from polars_tadoc.errors import LimitExceededError, NotAFileError

JSON_SHARE = 16
"""Text of JSON takes about so many times its size in memory once it is parsed."""

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a link",
}
_NOT_WAITING = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def open_regular(path: Path, *, follow: bool = True) -> BinaryIO:
    """Open a regular file for reading; never waits.

    Raises
    ------
    NotAFileError
        It is something else; without ``follow`` also where it is a link.
    IsADirectoryError, FileNotFoundError, PermissionError
        It is a folder, is not there, or may not be read.

    """
    return os.fdopen(descriptor_of(path, follow=follow), "rb")


def is_regular(path: Path) -> bool:
    """Tell a regular file, or a link to one, from a folder; it is not opened.

    Raises
    ------
    NotAFileError
        It is something else, or a link to itself.
    FileNotFoundError, PermissionError
        It is not there, or may not be looked at.

    """
    try:
        status = os.stat(path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotAFileError(f"{path} is a link that leads back to itself, not a regular file") from None
        raise
    _require_regular(path, status, folders=True)
    return stat.S_ISREG(status.st_mode)


def descriptor_of(path: Path, *, follow: bool = True, folders: bool = False) -> int:
    """Open a regular file, or with ``folders`` a folder, for reading and return its descriptor; errors as above."""
    _require_regular(path, os.stat(path, follow_symlinks=follow), folders)  # opening a device may already do something
    try:
        descriptor = os.open(path, os.O_RDONLY | _NOT_WAITING | (0 if follow else _NO_LINK))
    except OSError as error:
        if error.errno == errno.ENXIO or (error.errno == errno.ELOOP and not follow):
            raise NotAFileError(f"{path} is a link or a socket, not a regular file") from None
        raise
    try:
        _require_regular(path, os.fstat(descriptor), folders)  # another process may have replaced it
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _require_regular(path: Path, status: os.stat_result, folders: bool) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFDIR and not folders:
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    if kind not in (stat.S_IFREG, stat.S_IFDIR):
        raise NotAFileError(f"{path} is {_KINDS.get(kind, 'something else')}, not a regular file")


def read_json_text(path: Path, call: str, *, follow: bool = True) -> bytes:
    """Read a whole file that holds JSON.

    Raises
    ------
    LimitExceededError
        It is larger than a sixteenth of ``Config(payload_limit_bytes=)``.
    NotAFileError, OSError
        As for :func:`open_regular`.

    """
    limit = settings().payload_limit_bytes // JSON_SHARE
    with open_regular(path, follow=follow) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise LimitExceededError(
                f"{call}: {path} has {size:,} bytes, the limit for JSON is {limit:,}; if the file is trusted, raise "
                f"it: tadoc.Config(payload_limit_bytes={JSON_SHARE * size:_})"
            )
        return file.read(size)  # not to its end: it may grow


def arrow_file(path: Path, *, follow: bool = True) -> pa.NativeFile:
    """Open a regular file for PyArrow; errors as for :func:`open_regular`."""
    descriptor = descriptor_of(path, follow=follow)
    try:
        return pa.OSFile(_name_of(descriptor, path))
    finally:
        os.close(descriptor)


def create_private(path: Path) -> int:
    """Make an empty file that only this user may read, in place of a file or link; returns a descriptor to write.

    Raises
    ------
    FileExistsError
        Something else has the name.

    """
    with suppress(FileNotFoundError):
        if stat.S_IFMT(path.lstat().st_mode) in (stat.S_IFREG, stat.S_IFLNK):
            path.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _NOT_WAITING
    return os.open(path, flags, 0o600)


def private_arrow_file(path: Path) -> pa.NativeFile:
    """Make a file as :func:`create_private` does, for PyArrow to write."""
    descriptor = create_private(path)
    try:
        return pa.OSFile(_name_of(descriptor, path), "wb")
    finally:
        os.close(descriptor)


def _name_of(descriptor: int, path: Path) -> str:
    """Return a name of an open file, by which PyArrow opens that file and no other; Linux alone has one."""
    name = f"/proc/self/fd/{descriptor}"
    with suppress(OSError):
        if os.path.samestat(os.stat(name), os.fstat(descriptor)):
            return name
    return str(path)


def is_owned(status: os.stat_result) -> bool:
    """Tell whether a file or folder is this user's; on Windows, which has no such numbers, whether it is there."""
    geteuid: Any = getattr(os, "geteuid", None)
    return geteuid is None or bool(status.st_uid == geteuid())
