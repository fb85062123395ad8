"""Opens and creates files where other processes may have put a FIFO, a device, a socket or a link.

Opening a FIFO waits for a writer, and reading a device may never end. So files are opened without waiting, and only
regular ones are read.

Links are followed if the user names the file or its folder: an index may consist of links into a store of files. They
are not followed (``follow=False``) if this package chose the name: spilled runs, checkpoints, leftovers.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from polars_tadoc.config import settings
from polars_tadoc.errors import LimitExceededError, NotAFileError

JSON_SHARE = 16
"""Memory of parsed JSON as a multiple of its text, approximately."""

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
        The path is something else, or a link without ``follow``.
    IsADirectoryError, FileNotFoundError, PermissionError
        The path is a folder, does not exist, or cannot be read.

    """
    return os.fdopen(descriptor_of(path, follow=follow), "rb")


@contextmanager
def naming_file(path: Path, call: str, error: type[Exception], what: str) -> Iterator[None]:
    """Name the call and the file in errors of opening it.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    error
        The path is a folder, where ``what`` are one file, or something else that is not a file.

    """
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"{call}: file {path} does not exist") from None
    except IsADirectoryError:
        raise error(f"{call}: {path} is a folder; {what} one file") from None
    except NotAFileError as found:
        raise error(f"{call}: {found}") from None


def is_regular(path: Path) -> bool:
    """Tell a regular file, or a link to one, from a folder, without opening it.

    Raises
    ------
    NotAFileError
        The path is something else, or a link to itself.
    FileNotFoundError, PermissionError
        The path does not exist, or cannot be examined.

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
    _require_regular(path, os.stat(path, follow_symlinks=follow), folders)  # even opening a device may have effects
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
    """Read a whole JSON file.

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
    """Create an empty file that only this user can read, replacing a file or link; return a descriptor to write.

    Raises
    ------
    FileExistsError
        The path is something else.

    """
    with suppress(FileNotFoundError):
        if stat.S_IFMT(path.lstat().st_mode) in (stat.S_IFREG, stat.S_IFLNK):
            path.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _NOT_WAITING
    return os.open(path, flags, 0o600)


def private_arrow_file(path: Path) -> pa.NativeFile:
    """Create a file like :func:`create_private`, for PyArrow to write."""
    descriptor = create_private(path)
    try:
        return pa.OSFile(_name_of(descriptor, path), "wb")
    finally:
        os.close(descriptor)


def _name_of(descriptor: int, path: Path) -> str:
    """Return a path of an open file by which PyArrow opens the same file; only Linux has one."""
    name = f"/proc/self/fd/{descriptor}"
    with suppress(OSError):
        if os.path.samestat(os.stat(name), os.fstat(descriptor)):
            return name
    return str(path)


def is_owned(status: os.stat_result) -> bool:
    """Tell whether this user owns a file or folder; on Windows, which has no user ids, always true."""
    geteuid: Any = getattr(os, "geteuid", None)
    return geteuid is None or bool(status.st_uid == geteuid())
