"""Gives a new file or folder the owner, group and permissions of the one that it replaces, and never more.

While it is written, a file is private (0600, a folder 0700).
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import Any

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700

_ACCESS_LIST = "system.posix_acl_access"

_MODE = 0o7777
_OTHERS, _GROUP = 0o007, 0o070


def take_over(old: Path, new: Path) -> None:
    """Copy owner, group and permissions of a file or folder to its replacement.

    The owner and the group are copied if this user may do so. If the group differs, it gets only the permissions of
    others.
    """
    status = old.stat()
    _give(new, status.st_uid, status.st_gid)
    made = new.stat()
    mode = stat.S_IMODE(status.st_mode)
    if made.st_uid != status.st_uid or made.st_gid != status.st_gid:
        mode &= ~(stat.S_ISUID | stat.S_ISGID)
    entries = _access_list(old)
    if made.st_gid != status.st_gid or entries is not None:
        mode = mode & ~_GROUP | (mode & _OTHERS) << 3  # with an access list, these bits are the maximum of its entries
    if entries is None or made.st_gid != status.st_gid:
        _remove_access_list(new)  # one inherited from its folder
        _set(new, mode)
    else:
        _set(new, mode)
        with suppress(OSError):
            _xattr("setxattr")(new, _ACCESS_LIST, entries)


def take_over_files(old: Path, new: Path) -> None:
    """Copy permissions to a folder's files: from files of the same names in another, else those common to all of them.

    Does nothing if the other folder has no files.
    """
    known = {file.name: file for file in old.iterdir() if file.is_file()}
    common = reduce(lambda mode, file: mode & file.stat().st_mode, known.values(), _MODE)
    for file in new.iterdir():
        if file.name in known:
            take_over(known[file.name], file)
        elif known:
            _set(file, stat.S_IMODE(file.stat().st_mode) & (common | (0o111 if file.is_dir() else 0)))


def make_private_folder(path: Path) -> int:
    """Make a folder for this user only, and return the mode that it would have had.

    Raises
    ------
    FileExistsError
        The path exists.

    """
    path.mkdir()
    mode = stat.S_IMODE(path.stat().st_mode)  # from the umask, which cannot be read safely, and the folder's own rules
    path.chmod(mode & ~(_GROUP | _OTHERS))
    return mode


def set_mode(path: Path, mode: int) -> None:
    """Set a mode, if the file system supports it."""
    _set(path, mode)


def _set(path: Path, mode: int) -> None:
    with suppress(OSError):  # it stays private if that fails
        path.chmod(mode)


def _give(path: Path, owner: int, group: int) -> None:
    chown: Any = getattr(os, "chown", None)
    if chown is not None:
        for user in (owner, -1):
            with suppress(OSError):
                chown(path, user, group)
                return


def _xattr(name: str) -> Any:
    """Return a function of ``os`` that exists on Linux only."""
    found = getattr(os, name, None)
    if found is None:
        raise OSError(f"this system has no {name}")
    return found


def _access_list(path: Path) -> bytes | None:
    try:
        return bytes(_xattr("getxattr")(path, _ACCESS_LIST))
    except OSError:
        return None


def _remove_access_list(path: Path) -> None:
    with suppress(OSError):
        _xattr("removexattr")(path, _ACCESS_LIST)
