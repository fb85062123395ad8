"""Folders for what does not fit in memory, which go with the call that made them."""

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
from types import TracebackType
from typing import Any

from polars_tadoc.config import settings
from polars_tadoc.runtime.permissions import PRIVATE_FOLDER
from polars_tadoc.runtime.regular_file import is_owned
from polars_tadoc.storage.atomic_write import lock, naming_full_disk, remove, unlock

PREFIX = "tadoc-spill-"
_NAME = re.compile(rf"{PREFIX}[0-9a-f]{{16}}")
"""What a folder of ours is called; others may have one that begins alike."""

SETTING = "tadoc.Config(spill_folder=…)"

MEND = f"make room there, or name another folder: {SETTING}; what was written there is gone"


def parent_folder() -> Path:
    """Return the folder in which spill folders are made."""
    return Path(os.path.abspath(settings().spill_folder or tempfile.gettempdir()))


class SpillFolder:
    """A folder for temporary files, made when it is first asked for and removed in the end, also after an error.

    It is locked while it is in use. What a killed process has left is therefore known, and goes when the next such
    folder is made.

    Parameters
    ----------
    call
        What messages begin with.
    parent
        Where it is made; None: where ``tadoc.Config(spill_folder=…)`` says, or the system has its temporary files.

    """

    def __init__(self, call: str, parent: Path | None = None) -> None:
        self._call, self._parent = call, parent
        self._path: Path | None = None
        self._close: weakref.finalize[Any, Any] | None = None

    @property
    def path(self) -> Path:
        """The folder.

        Raises
        ------
        OSError
            It cannot be made there.

        """
        if self._path is None:
            parent = self._parent or parent_folder()
            with self.writing():
                remove_stale(parent)
                while self._path is None:
                    self._make(parent / f"{PREFIX}{secrets.token_hex(8)}")
        return self._path

    def _make(self, path: Path) -> None:
        path.mkdir(PRIVATE_FOLDER)
        try:
            descriptor = lock(path)
        except FileNotFoundError:  # another process took it for left behind before it was locked
            return
        except OSError:  # no locks there: nothing is taken for left behind
            descriptor = None
        else:
            if descriptor is None:
                return
        # iterators that nobody closes are dropped at last when the interpreter ends
        self._close = weakref.finalize(self, _remove, path, descriptor, os.getpid())
        if path.exists():
            self._path = path
        else:
            self.close()

    def writing(self) -> AbstractContextManager[None]:
        """Name the folder, and what to do, where the disk is full (``DiskFullError``) or the folder went away."""
        return explained(self._path or self._parent or parent_folder(), self._call, MEND, SETTING)

    def close(self) -> None:
        """Remove the folder and what it holds."""
        if self._close is not None and (kept := self._close.detach()):  # called, it does nothing after its own exit
            _, function, arguments, _ = kept
            function(*arguments)
        self._path = None

    def __enter__(self) -> SpillFolder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _remove(path: Path, descriptor: int | None, owner: int) -> None:
    if owner == os.getpid():  # and no forked process
        remove(path)
    if descriptor is not None:
        unlock(descriptor, owner)


def remove_stale(parent: Path) -> None:
    """Remove this user's spill folders in a folder whose owners were killed; what cannot be removed stays."""
    with suppress(OSError):
        for left in [one for one in parent.iterdir() if _NAME.fullmatch(one.name)]:
            with suppress(OSError):
                status = left.lstat()
                if stat.S_ISDIR(status.st_mode) and is_owned(status) and (descriptor := lock(left)) is not None:
                    _remove(left, descriptor, os.getpid())


@contextmanager
def explained(folder: Path, call: str, mend: str, setting: str) -> Iterator[None]:
    """Name a folder that is none, or went away while it was written or read, and the setting that names another."""
    with naming_full_disk(folder, call, mend):
        try:
            yield
        except OSError as error:
            if folder.is_dir():
                raise
            if file := next((one for one in (folder, *folder.parents) if one.is_file()), None):
                raise NotADirectoryError(f"{call}: {file} is a file; name a folder: {setting}") from error
            raise FileNotFoundError(
                f"{call}: there is no folder {folder}, or no longer; name another one: {setting}"
            ) from error
