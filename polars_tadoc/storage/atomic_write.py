"""Atomic writes of files and folders: readers see the old one or the new one, never a part.

A new file is written beside the old one and then renamed. It gets the old one's permissions, and only its owner can
read it while it is written.

A temporary file is locked while it is written. So leftovers of killed processes can be told from files that another
process still writes; the next write to the same path removes them.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from polars.exceptions import PolarsError

from polars_tadoc.errors import DiskFullError, KeptFilesWarning, TadocError, warn_caller
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
from polars_tadoc.storage.exchange import exchange
from polars_tadoc.storage.flush import flush

try:
    import fcntl
except ImportError:  # Windows: an open file cannot be removed, which serves as its lock
    fcntl = None  # type: ignore[assignment]

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Error numbers for a full disk: no space, quota exceeded, file too large."""

LONGEST = 255 - len("..01234567.tmp")
"""Bytes of a name beside which a temporary file has room, where names may have 255."""

_PATIENCE = 10.0
"""Seconds to wait for the lock of a replaced folder."""

_MAX_LOST = 8
"""New temporary files in a row that other writers may remove."""

OwnFiles = Callable[[Path], Sequence[Path]]
"""Lists everything in a folder, files before their folders; raises if anything in it must not be deleted."""


def target(path: Path, call: str) -> Path:
    """Return the file to write for a path: links are followed.

    Raises
    ------
    FileNotFoundError
        The folder to write to does not exist.
    IsADirectoryError, OSError
        The path is a folder, or something else that a file cannot replace.

    """
    path = Path(os.path.realpath(path.expanduser()))
    with naming_long_name(path, call):
        is_folder = path.is_dir()
    if is_folder:
        raise IsADirectoryError(f"{call}: {path} is a folder; give the path of a file in it")
    if path.exists() and not path.is_file():
        raise OSError(f"{call}: {path} is not a regular file, so a file cannot replace it; choose another path")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{call}: folder {path.parent} does not exist; create it first")
    return path


@contextmanager
def atomic_file(path: Path, call: str, private: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside the file's; on success it is renamed to the file, on an error it is removed.

    The temporary file exists already and is empty: write to it.

    ``path`` comes from :func:`target`. Only the owner can read a new file if it is ``private``. Messages start with
    ``call``.

    Raises
    ------
    DiskFullError
        The disk is full.
    FileNotFoundError
        The folder was removed.

    """

    def make(temporary: Path) -> None:
        temporary.touch(PRIVATE_FILE if private or path.exists() else 0o666, exist_ok=False)

    with naming_place(path, call), beside(path, make) as temporary:
        yield temporary
        flush(temporary)  # a full disk may be reported only now; bytes must reach the disk before the rename
        with suppress(FileNotFoundError):
            take_over(path, temporary)
        check()  # an interrupted write is not renamed
        os.replace(temporary, path)


@contextmanager
def atomic_file_late(path: Path, call: str) -> Iterator[Path]:
    """Do as :func:`atomic_file` for a writer that may still create its file after an interrupt.

    Polars' writers run in threads that continue for an instant after the call has ended. The yielded path is in a
    temporary folder; once that is removed, no file can be created there.
    """
    with naming_place(path, call), beside(path, _make_private) as folder:
        temporary = folder / path.name
        yield temporary
        flush(temporary)
        with suppress(FileNotFoundError):
            take_over(path, temporary)
        check()
        os.replace(temporary, path)


def _make_private(folder: Path) -> None:
    make_private_folder(folder)


@contextmanager
def atomic_folder(path: Path, call: str, own: OwnFiles) -> Iterator[Path]:
    """Yield an empty temporary folder that replaces another one, or becomes a new one, on success.

    Parameters and errors as for :func:`atomic_file`. An interrupt always raises: if it arrives before the rename, the
    old folder stays; if after, the new one is complete and the old one is removed.

    Parameters
    ----------
    path, call
        As for :func:`atomic_file`.
    own
        Lists what may be removed from the folder at the path, and raises if it contains anything else. Called when the
        new folder is complete, and again when the old one has lost its name: if it raises then, the old folder gets
        its name back. Only listed files are deleted.

    Warns
    -----
    KeptFilesWarning
        Another process added files to the old folder even after that; the message says where they are.

    """
    mode = PRIVATE_FOLDER

    def make(temporary: Path) -> None:
        nonlocal mode
        mode = make_private_folder(temporary)

    with naming_place(path, call), beside(path, make, own) as temporary:
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                flush(file)
        check()
        for last in (False, False, False, True):
            try:
                own(path)
                if path.exists():
                    take_over_files(path, temporary)
                    take_over(path, temporary)
                else:
                    set_mode(temporary, mode)
                break
            except FileNotFoundError:  # another writer replaced the folder meanwhile
                if last:
                    raise
        kept = _take_place(temporary, path, own)
    if kept is not None:
        warn_caller(
            f"{call}: {path} was replaced; files that others added to the old folder meanwhile are kept in {kept}",
            KeptFilesWarning,
        )


def require_empty(path: Path, call: str) -> Sequence[Path]:
    """Raise unless the path is free or an empty folder."""
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"{call}: {path} already exists; give a new folder or an empty one")
    return ()


def _take_place(temporary: Path, path: Path, own: OwnFiles) -> Path | None:
    """Give a folder its name, and remove the one that has it; returns where other processes' files were kept."""
    with suppress(OSError):
        os.replace(temporary, path)  # if there is none, or an empty one
        return None
    old = temporary.with_suffix(".old")
    descriptor = None
    with suppress(OSError):
        descriptor = lock(path)
    try:
        _swap(temporary, path, old)
        if descriptor is not None and not _is_open(old, descriptor):  # another writer's folder took the name first
            os.close(descriptor)  # before waiting: that writer may wait for it
            descriptor = None
        if descriptor is None:
            try:
                descriptor = _lock_replaced(old)
            except (FileNotFoundError, TimeoutError):
                return None  # another writer has removed it as a leftover, or will
        try:
            listed = own(old)
        except Exception:
            _swap_back(temporary, path, old)
            own(path)  # raises the same with the folder's own name
            raise
        return _discard(old, path, listed)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _is_open(path: Path, descriptor: int) -> bool:
    """Tell whether a descriptor is that of the folder with a name."""
    with suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    return False


def _lock_replaced(old: Path) -> int | None:
    """Lock a folder that has lost its name, so that no other writer takes it for a leftover.

    A lock of its own writer ends soon. If another one lasts, its holder is removing the folder.

    Returns
    -------
    int or None
        The descriptor; None if the file system has no locks, and so no leftovers.

    Raises
    ------
    FileNotFoundError
        The folder is gone.
    TimeoutError
        The lock lasts.

    """
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        try:
            descriptor = lock(old)
        except FileNotFoundError:
            raise
        except OSError:
            return None
        if descriptor is not None and old.exists():
            return descriptor
        if descriptor is not None:
            os.close(descriptor)
        time.sleep(0.001)
    raise TimeoutError(f"{old} is locked")


def _swap(temporary: Path, path: Path, old: Path) -> None:
    """Give the new folder the path's name, and the old one a name under which only listed files are deleted.

    The path always has a folder, except for an instant if the system cannot exchange two names.
    """
    os.replace(temporary, old)
    if exchange(old, path):
        return
    os.replace(old, temporary)
    os.replace(path, old)
    try:
        os.replace(temporary, path)
    except BaseException:
        os.replace(old, path)
        raise


def _swap_back(temporary: Path, path: Path, old: Path) -> None:
    if exchange(old, path):
        os.replace(old, temporary)
        return
    os.replace(path, temporary)
    try:
        os.replace(old, path)
    except BaseException:
        os.replace(temporary, path)
        raise


def _discard(old: Path, path: Path, listed: Sequence[Path]) -> Path | None:
    """Delete listed files of a replaced folder; if others remain, rename it, so that nothing deletes them."""
    mode = stat.S_IMODE(old.stat().st_mode)
    folders = {one for one in listed if one.is_dir() and not one.is_symlink()}
    for one in (old, *folders):  # a folder without write permission cannot be emptied either
        set_mode(one, stat.S_IMODE(one.stat().st_mode) | PRIVATE_FOLDER)
    for one in listed:
        with suppress(OSError):
            (one.rmdir if one in folders else one.unlink)()
    with suppress(OSError):
        old.rmdir()
    if not old.exists():
        return None
    set_mode(old, mode)
    kept = path.with_name(f"{path.name}.kept.{secrets.token_hex(4)}")
    os.replace(old, kept)
    return kept


@contextmanager
def naming_place(path: Path, call: str) -> Iterator[None]:
    """Name the path in errors raised while a file or folder is written; errors as for :func:`atomic_file`."""
    mend = f"{path} is unchanged; free some space, or write elsewhere"
    try:
        with naming_full_disk(path.parent, call, mend), naming_long_name(path, call):
            yield
    except OSError as error:
        if isinstance(error, DiskFullError):
            raise
        if not path.parent.is_dir():
            raise FileNotFoundError(
                f"{call}: folder {path.parent} was removed while {path.name} was written"
            ) from error
        if error.errno is None or not _is_temporary(error.filename, path):
            raise
        raise OSError(
            error.errno, f"{call}: cannot write {path} ({os.strerror(error.errno)}); choose another folder"
        ) from error


def _is_temporary(name: object, path: Path) -> bool:
    """Tell whether a name is one that :func:`beside` gives."""
    return isinstance(name, str) and Path(name).name.startswith(f".{path.name}.")


@contextmanager
def naming_long_name(path: Path, call: str) -> Iterator[None]:
    """Say in the system's error about a long name how long it may be."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        why = f"{call}: a name of {len(os.fsencode(path.name))} bytes is too long: {path} is written under a longer one"
        raise OSError(error.errno, f"{why} first; most systems allow {LONGEST}") from error


@contextmanager
def naming_full_disk(folder: Path, call: str, mend: str) -> Iterator[None]:
    """Turn errors of NumPy, PyArrow and Polars about a full disk into an error that names the folder.

    Parameters
    ----------
    folder
        The folder that is written to.
    call
        Start of the message.
    mend
        End of the message: the state after the error, and what to do.

    Raises
    ------
    DiskFullError
        The disk is full.

    """
    try:
        yield
    except DiskFullError:
        raise
    except (OSError, PolarsError) as error:
        number = _number(error)
        if number not in FULL:
            raise
        why = f"{call}: cannot write to {folder} ({os.strerror(number)}): {mend}"
        raise DiskFullError(number, why) from error


def _number(error: Exception) -> int:
    """Return the system's number of an error; Polars gives it in the message only."""
    said = re.search(r"\(os error (\d+)\)", str(error))
    number = getattr(error, "errno", None) or (said and said[1])
    return int(number or 0)


@contextmanager
def beside(path: Path, make: Callable[[Path], None], own: OwnFiles | None = None) -> Iterator[Path]:
    """Make a temporary file or folder beside a path and lock it; on exit, remove it unless it was renamed.

    Removes leftovers of killed processes for the same path first.

    Parameters
    ----------
    path
        The path that it will get.
    make
        Creates it; raises if it exists.
    own
        For a folder: as for :func:`atomic_folder`.

    """
    remove_abandoned(path, own)
    temporary, descriptor = _make_locked(path, make)
    try:
        yield temporary
    finally:
        remove(temporary)
        if descriptor is not None:
            os.close(descriptor)


def _make_locked(path: Path, make: Callable[[Path], None]) -> tuple[Path, int | None]:
    lost = 0
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            make(temporary)  # fails at once if the folder is not writable
        except FileNotFoundError:  # another writer removed it as a leftover before it was locked
            lost += 1
            if lost == _MAX_LOST:
                raise  # no file can be made in this folder, as in /proc, or it is gone
            continue
        try:
            descriptor = lock(temporary)
        except FileNotFoundError:  # likewise
            continue
        except OSError:  # this file system has no locks: nothing is treated as a leftover
            return temporary, None
        if descriptor is not None and temporary.exists():
            return temporary, descriptor
        if descriptor is not None:
            os.close(descriptor)


def lock(path: Path) -> int | None:
    """Lock a file or a folder until the returned descriptor is closed or the process ends, killed or not.

    Returns
    -------
    int or None
        The descriptor; None if another process holds the lock.

    Raises
    ------
    OSError
        The path does not exist, is something else, is unreadable, or its file system has no locks.

    """
    if fcntl is None:
        raise OSError(errno.ENOTSUP, "this system has no file locks")
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
    """Release a lock, if this is the process that took it, and not a fork of it."""
    if fcntl is not None and owner == os.getpid():
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # forked processes have descriptors of the same lock
    os.close(descriptor)


def remove_abandoned(path: Path, own: OwnFiles | None = None) -> None:
    """Remove leftovers of killed processes beside a path; keeps what cannot be removed.

    If a process was killed between removing the old folder and renaming the new one, the old one gets its name back.
    Links, FIFOs and other things that this package does not create are kept.

    Parameters
    ----------
    path
        The path that they were writing.
    own
        For a folder: lists the files of an old one that are deleted, as for :func:`atomic_folder`.

    """
    form = re.compile(rf"\.{re.escape(path.name)}\.[0-9a-f]{{8}}\.{'tmp' if own is None else '(tmp|old)'}")
    with suppress(OSError):
        for left in [one for one in path.parent.iterdir() if form.fullmatch(one.name)]:
            with suppress(OSError, TadocError):
                if left.is_dir() or own is None:  # for a folder, files are not leftovers
                    _remove_unless_locked(left, path, own)


def _remove_unless_locked(left: Path, path: Path, own: OwnFiles | None) -> None:
    descriptor = lock(left)
    if descriptor is None:
        return
    try:
        if left.suffix == ".tmp" or own is None:
            remove(left)
        elif path.exists():
            _discard(left, path, own(left))
        else:
            os.replace(left, path)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file or a folder, if it exists; keeps what cannot be removed."""
    if path.is_dir() and not path.is_symlink():
        for _ in range(3):  # an ending thread may have created one more file meanwhile
            shutil.rmtree(path, ignore_errors=True)
            if not path.exists():
                break
    else:
        with suppress(OSError):
            path.unlink()
