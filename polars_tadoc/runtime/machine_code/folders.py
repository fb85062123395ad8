"""The folders of machine code: the package's own, and the user's, to which only trusted users can write.

An entry is a pickle: anyone who can write to the folder can run code.
"""

from __future__ import annotations

import os
import stat
import tempfile
import time
import warnings
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from numba import config

from polars_tadoc.errors import KernelCacheWarning
from polars_tadoc.runtime.cache_folder import cache_folder
from polars_tadoc.runtime.machine_code.entries import SUFFIX
from polars_tadoc.runtime.permissions import PRIVATE_FOLDER
from polars_tadoc.runtime.regular_file import is_owned

NAME = "polars_tadoc-kernels"
SHIPPED = Path(__file__).parents[1] / "_compiled"
"""Part of the wheel, read only; anyone who can write here can write the package."""
_BESIDE = SHIPPED.parent / "__pycache__" / NAME
_DAYS = 24 * 60 * 60
_KEPT = 30 * _DAYS
"""Seconds after which unread entries are deleted."""


def candidates() -> list[Path]:
    """Return the user's folders, the preferred one first; they may not exist."""
    cache = cache_folder(NAME)
    return [_BESIDE] if cache is None else [cache, _BESIDE]


def _named() -> Path | None:
    """Return the folder in ``NUMBA_CACHE_DIR``; None if it is unset or others can write to it."""
    if not config.CACHE_DIR:
        return None
    folder = Path(config.CACHE_DIR) / NAME
    with suppress(OSError):
        folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
    if _is_trusted(folder):
        return folder
    if not _refused:
        _refused.append(folder)
        warnings.warn(
            f"NUMBA_CACHE_DIR={config.CACHE_DIR} is not used for the machine code of polars_tadoc: it must be a folder "
            "that you can write to, and others can neither write to nor replace",
            KernelCacheWarning,
            stacklevel=2,
        )
    return None


_refused: list[Path] = []


@lru_cache(maxsize=1)
def readable() -> tuple[Path, ...]:
    """Return the user's existing folders to which others cannot write."""
    named = _named()
    if named:
        return (named,)
    found = [folder for folder in candidates() if _is_trusted(folder)]
    temporary = private_folder(make=False)
    return (*found, *([temporary] if temporary else []))


@lru_cache(maxsize=1)
def writable() -> Path | None:
    """Return the folder for new code; warns if it is temporary or there is none."""
    named = _named()
    for folder in ([named] if named else []) + candidates():
        with suppress(OSError):
            folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
            if _is_trusted(folder):
                tempfile.TemporaryFile(dir=folder).close()
                _delete_old(folder)
                return folder
    temporary = private_folder()
    warn(
        "is not cached, and compiled again in each process, which takes up to a minute"
        if temporary is None
        else f"is kept in {temporary}"
    )
    return temporary


def _is_trusted(folder: Path) -> bool:
    """Tell whether a folder is this user's or root's, and others can neither write to it nor replace it."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode) or not hasattr(os, "geteuid"):
        return stat.S_ISDIR(status.st_mode)
    is_own = (is_owned(status) or status.st_uid == 0) and not status.st_mode & 0o022
    return is_own and all(map(_is_safe_parent, Path(os.path.realpath(folder)).parents))


@lru_cache(maxsize=2)
def private_folder(make: bool = True) -> Path | None:
    """Return a temporary folder to which only this user can write, created if necessary; None if that fails."""
    with suppress(OSError):
        parent = Path(tempfile.gettempdir()).resolve()
        folder = parent / f"{NAME}-{os.geteuid() if hasattr(os, 'geteuid') else 'user'}"
        if parent != Path.cwd() and all(_is_safe(one) for one in (parent, *parent.parents)):
            if make:
                with suppress(FileExistsError):
                    folder.mkdir(PRIVATE_FOLDER)
            status = folder.lstat()
            others = hasattr(os, "geteuid") and status.st_mode & 0o077
            if stat.S_ISDIR(status.st_mode) and is_owned(status) and not others:
                return folder
    return None


def _is_safe(folder: Path) -> bool:
    """Tell whether others can neither rename nor replace this user's files in a folder."""
    status = folder.stat()
    if not hasattr(os, "geteuid"):
        return True
    is_trusted = status.st_uid in (0, os.geteuid())
    return is_trusted and bool(not status.st_mode & 0o022 or status.st_mode & stat.S_ISVTX)


def _is_safe_parent(folder: Path) -> bool:
    """Tell the same of a folder above; the user's own group may write to it, as it may where homes are made so."""
    status = folder.stat()
    others = 0o002 if status.st_gid == os.getegid() else 0o022
    is_trusted = status.st_uid in (0, os.geteuid())
    return is_trusted and bool(not status.st_mode & others or status.st_mode & stat.S_ISVTX)


def touch(path: Path) -> None:
    """Mark an entry as used, at most once a day."""
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > _DAYS:
            os.utime(path)


def _delete_old(folder: Path) -> None:
    """Delete entries that were not read for a month: keys of content change with each edit and version."""
    now = time.time()
    for path in (*folder.glob(f"*/*{SUFFIX}"), *folder.glob("*/*.tmp")):
        with suppress(OSError):
            if now - path.stat().st_mtime > _KEPT:
                path.unlink()


_warned: list[str] = []


def warn(what: str) -> None:
    """Warn about the folders, once per process."""
    if not _warned:
        _warned.append(what)
        warnings.warn(
            f"the machine code of polars_tadoc {what}: its folder and your cache folder cannot be written to; "
            "set NUMBA_CACHE_DIR to a folder that only you can write to",
            KernelCacheWarning,
            stacklevel=2,
        )
