"""Temporary folders for data that does not fit in memory; removed when the call ends."""

from __future__ import annotations

import os
import re
import secrets
import stat
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from polars_tadoc.config import settings
from polars_tadoc.runtime.permissions import PRIVATE_FOLDER
from polars_tadoc.runtime.regular_file import is_owned
from polars_tadoc.storage.atomic_write import lock, naming_full_disk, remove, unlock

PREFIX = "tadoc-spill-"
_NAME = re.compile(rf"{PREFIX}[0-9a-f]{{16}}")
"""Names of our folders; the pattern is strict because other folders may have the same prefix."""

SETTING = "tadoc.Config(spill_folder=…)"

MEND = f"free space there, or use another folder: {SETTING}; temporary data was removed"


def parent_folder() -> Path:
    """Return the folder in which spill folders are created."""
    return Path(os.path.abspath(settings().spill_folder or tempfile.gettempdir()))


class SpillFolder:
    """A folder for temporary files, created on first use and removed at the end, also after an error.

    It is locked while in use, so folders of killed processes can be recognised. The next call that may spill removes
    them, even if its own data fits in memory.

    Parameters
    ----------
    call
        Prefix of messages.
    parent
        Parent folder; None: ``tadoc.Config(spill_folder=…)``, or the system's folder for temporary files.

    """

    def __init__(self, call: str, parent: Path | None = None) -> None:
        self._call, self._parent = call, parent
        self._path: Path | None = None
        self._close: weakref.finalize[Any, Any] | None = None
        with suppress(OSError):  # no folder for temporary files can be written to
            remove_stale(parent or parent_folder())

    @property
    def path(self) -> Path:
        """The folder.

        Raises
        ------
        OSError
            It cannot be created.

        """
        if self._path is None:
            parent = self._parent or parent_folder()
            with self.writing():
                while self._path is None:
                    self._make(parent / f"{PREFIX}{secrets.token_hex(8)}")
        return self._path

    def _make(self, path: Path) -> None:
        path.mkdir(PRIVATE_FOLDER)
        try:
            descriptor = lock(path)
        except FileNotFoundError:  # another process removed it as stale before it was locked
            return
        except OSError:  # no locks on this file system: folders are never stale
            descriptor = None
        else:
            if descriptor is None:
                return
        # iterators that are never closed are finalised when the interpreter exits
        self._close = weakref.finalize(self, _remove, path, descriptor, os.getpid())
        if path.exists():
            self._path = path
        else:
            self.close()

    def writing(self) -> AbstractContextManager[None]:
        """Explain errors of a full disk (``DiskFullError``) or a missing folder, with the folder's name."""
        return explained(self._path or self._parent or parent_folder(), self._call, MEND, SETTING)

    def close(self) -> None:
        """Remove the folder and its content."""
        if self._close is not None and (kept := self._close.detach()):  # afterwards its exit handler does nothing
            _, function, arguments, _ = kept
            function(*arguments)
        self._path = None

    def __enter__(self) -> SpillFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _remove(path: Path, descriptor: int | None, owner: int) -> None:
    if owner == os.getpid():  # not in a forked process
        remove(path)
    if descriptor is not None:
        unlock(descriptor, owner)


def remove_stale(parent: Path) -> None:
    """Remove this user's spill folders whose owners were killed; folders that cannot be removed stay."""
    with suppress(OSError):
        with os.scandir(parent) as found:
            names = [one.name for one in found if _NAME.fullmatch(one.name)]
        for left in map(parent.joinpath, names):
            with suppress(OSError):
                status = left.lstat()
                if stat.S_ISDIR(status.st_mode) and is_owned(status) and (descriptor := lock(left)) is not None:
                    _remove(left, descriptor, os.getpid())


@contextmanager
def explained(folder: Path, call: str, mend: str, setting: str) -> Iterator[None]:
    """Explain errors of a folder that is missing or not a folder, and name the setting that changes it."""
    with naming_full_disk(folder, call, mend):
        try:
            yield
        except OSError as error:
            if folder.is_dir():
                raise
            if file := next((one for one in (folder, *folder.parents) if one.is_file()), None):
                raise NotADirectoryError(f"{call}: {file} is a file; use a folder: {setting}") from error
            raise FileNotFoundError(
                f"{call}: {folder} does not exist, or was removed; use another folder: {setting}"
            ) from error
