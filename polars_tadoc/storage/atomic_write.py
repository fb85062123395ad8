"""Writes a file or a folder beside the one that it replaces: readers see the old one or the new one, never a part.

It has the permissions of the one that it replaces, and nobody else may read it while it is written.

What is being written is locked. So what a killed process has left can be told from what another one still writes, and
goes when the same is written again.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from polars.exceptions import PolarsError

from polars_tadoc.errors import DiskFullError
from polars_tadoc.runtime.interrupts import check
from polars_tadoc.runtime.permissions import (
    PRIVATE_FILE,
    PRIVATE_FOLDER,
    make_private_folder,
    set_mode,
    take_over,
    take_over_files,
)
from polars_tadoc.runtime.regular_file import descriptor_of

try:
    import fcntl
except ImportError:  # Windows: a file that is open cannot be removed there, and stands for its own lock
    fcntl = None  # type: ignore[assignment]

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""What systems say where no more can be written: no space, no quota, no larger file."""


def target(path: Path, call: str) -> Path:
    """Return the file that a path means.

    Raises
    ------
    FileNotFoundError
        The folder that it should be made in is not there.
    IsADirectoryError, OSError
        It is a folder, or something else that no file can replace.

    """
    path = Path(os.path.realpath(path.expanduser()))
    if path.is_dir():
        raise IsADirectoryError(f"{call}: {path} is a folder; name a file in it")
    if path.exists() and not path.is_file():
        raise OSError(f"{call}: {path} is no ordinary file, and cannot be replaced by one")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{call}: there is no folder {path.parent}")
    return path


@contextmanager
def atomic_file(path: Path, call: str, private: bool = False) -> Iterator[Path]:
    """Give a temporary name beside the file's; it takes the file's name in the end, or goes on an error.

    An empty file has the temporary name already: write to that one.

    Parameters
    ----------
    path
        What :func:`target` returned.
    call
        What messages begin with.
    private
        Let only this user read a file that is new.

    Raises
    ------
    DiskFullError
        No more can be written there.
    FileNotFoundError
        The folder went away.

    """

    def make(temporary: Path) -> None:
        temporary.touch(PRIVATE_FILE if private or path.exists() else 0o666, exist_ok=False)

    with naming_place(path, call), beside(path, make) as temporary:
        yield temporary
        _flush(temporary)  # a disk may say only now that it is full; and a name must not come before its bytes
        with suppress(FileNotFoundError):
            take_over(path, temporary)
        check()  # what was interrupted takes nobody's name
        os.replace(temporary, path)


@contextmanager
def atomic_file_late(path: Path, call: str) -> Iterator[Path]:
    """Do as :func:`atomic_file` for a writer that may still make its file when it was interrupted.

    Polars' writers run in threads that go on for an instant after its call has ended. The name that is given is in a
    folder, and no file can be made there when that is gone.
    """
    with naming_place(path, call), beside(path, _make_private) as folder:
        temporary = folder / path.name
        yield temporary
        _flush(temporary)
        with suppress(FileNotFoundError):
            take_over(path, temporary)
        check()
        os.replace(temporary, path)


def _make_private(folder: Path) -> None:
    make_private_folder(folder)


@contextmanager
def atomic_folder(path: Path, call: str, require: Callable[[Path], None]) -> Iterator[Path]:
    """Give an empty folder beside another, or where there is none; parameters and errors as for :func:`atomic_file`.

    An interrupt raises whenever it comes: before the new folder takes the name, and the old one stays, or after that,
    and the new one is whole and the old one gone.

    Parameters
    ----------
    path, call
        As for :func:`atomic_file`.
    require
        Raises unless all that is at the path may go. It is asked at last, when the new folder is written.

    """
    mode = PRIVATE_FOLDER

    def make(temporary: Path) -> None:
        nonlocal mode
        mode = make_private_folder(temporary)

    with naming_place(path, call), beside(path, make, folder=True) as temporary:
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                _flush(file)
        check()
        require(path)
        if path.exists():
            take_over_files(path, temporary)
            take_over(path, temporary)
            _exchange(temporary, path)
        else:
            set_mode(temporary, mode)
            os.replace(temporary, path)


def require_empty(path: Path, call: str) -> None:
    """Refuse to replace anything but an empty folder."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"{call}: {path} is there already; name a folder that is not, or an empty one")


def _exchange(temporary: Path, path: Path) -> None:
    """Put a folder in the place of another one, which goes."""
    old = temporary.with_suffix(".old")
    descriptor = None
    with suppress(OSError):
        descriptor = lock(path)
    try:
        os.replace(path, old)
        try:
            os.replace(temporary, path)
        except BaseException:
            os.replace(old, path)
            raise
        set_mode(old, PRIVATE_FOLDER)  # a folder that may not be written to cannot be emptied either
        remove(old)
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def naming_place(path: Path, call: str) -> Iterator[None]:
    """Say of errors while a file or folder is written where they come from; as for :func:`atomic_file`."""
    mend = f"{path} is as it was before; make room there, or write elsewhere"
    try:
        with naming_full_disk(path.parent, call, mend):
            yield
    except OSError as error:
        if isinstance(error, DiskFullError) or path.parent.is_dir():
            raise
        raise FileNotFoundError(f"{call}: the folder {path.parent} went away while {path.name} was written") from error


@contextmanager
def naming_full_disk(folder: Path, call: str, mend: str) -> Iterator[None]:
    """Turn what NumPy, PyArrow and Polars raise on a full disk into an error that names the folder.

    Parameters
    ----------
    folder
        Where it is written.
    call
        What the message begins with.
    mend
        What it ends with: how things stand, and what to do.

    Raises
    ------
    DiskFullError
        No more can be written there.

    """
    try:
        yield
    except DiskFullError:
        raise
    except (OSError, PolarsError) as error:
        number = _number(error)
        if number not in FULL:
            raise
        why = f"{call}: no more can be written in {folder} ({os.strerror(number)}): {mend}"
        raise DiskFullError(number, why) from error


def _number(error: Exception) -> int:
    """Return the system's number of an error; Polars has it in its message alone."""
    said = re.search(r"\(os error (\d+)\)", str(error))
    number = getattr(error, "errno", None) or (said and said[1])
    return int(number or 0)


@contextmanager
def beside(path: Path, make: Callable[[Path], None], folder: bool = False) -> Iterator[Path]:
    """Make a temporary file or folder beside a path, lock it, and remove it in the end if it still has its name.

    What killed processes have left of the same path is removed first.

    Parameters
    ----------
    path
        What it is to become.
    make
        Makes it; raises where it is there already.
    folder
        Whether it is a folder.

    """
    remove_abandoned(path, folder)
    temporary, descriptor = _make_locked(path, make)
    try:
        yield temporary
    finally:
        remove(temporary)
        if descriptor is not None:
            os.close(descriptor)


def _make_locked(path: Path, make: Callable[[Path], None]) -> tuple[Path, int | None]:
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        make(temporary)  # a folder that may not be written to is found out at once
        try:
            descriptor = lock(temporary)
        except FileNotFoundError:  # another process took it for left behind before it was locked
            continue
        except OSError:  # there are no locks on this file system: nothing is taken for left behind
            return temporary, None
        if descriptor is not None and temporary.exists():
            return temporary, descriptor
        if descriptor is not None:
            os.close(descriptor)


def lock(path: Path) -> int | None:
    """Lock a file or a folder until the returned descriptor is closed, or the process ends, killed or not.

    Returns
    -------
    int or None
        The descriptor; None where another has locked it.

    Raises
    ------
    OSError
        It is not there, is something else, may not be read, or is where there are no locks.

    """
    if fcntl is None:
        raise OSError(errno.ENOTSUP, "this system has no such locks")
    descriptor = descriptor_of(path, follow=False, folders=True)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def unlock(descriptor: int, owner: int) -> None:
    """Give a lock back, if this is the process that has taken it, and not one that was forked from it."""
    if fcntl is not None and owner == os.getpid():
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # of which forked processes have a descriptor, too
    os.close(descriptor)


def remove_abandoned(path: Path, folder: bool = False) -> None:
    """Remove what killed processes have left beside a path that they were writing, whatever cannot be removed stays.

    Where one was killed just when a new folder was to take the old one's place, the old one gets its name back. Links,
    FIFOs and other things that this package does not make stay.
    """
    form = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.{'(tmp|old)' if folder else 'tmp'}")
    with suppress(OSError):
        for left in [one for one in path.parent.iterdir() if form.fullmatch(one.name)]:
            with suppress(OSError):
                if left.is_dir() or not folder:  # of a folder, no file is left
                    _remove_unless_locked(left, path)


def _remove_unless_locked(left: Path, path: Path) -> None:
    descriptor = lock(left)
    if descriptor is None:
        return
    try:
        if left.suffix == ".old" and not path.exists():
            os.replace(left, path)
        else:
            remove(left)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there; what cannot be removed stays."""
    if path.is_dir() and not path.is_symlink():
        for _ in range(3):  # a thread that is ending may have made one more file meanwhile
            shutil.rmtree(path, ignore_errors=True)
            if not path.exists():
                break
    else:
        with suppress(OSError):
            path.unlink()


def _flush(path: Path) -> None:
    """Have the system write a file's bytes to the disk."""
    descriptor = descriptor_of(path, follow=False)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
