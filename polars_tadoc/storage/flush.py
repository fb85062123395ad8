"""Flushes files to the disk (fsync) without holding up an interrupt.

``os.fsync`` waits for the whole file and cannot be interrupted: where other processes keep the disk busy, that takes
seconds. So it runs in a thread of its own, in pieces where the system can: an interrupt is raised while a piece is on
its way, and the thread ends after that piece.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from pathlib import Path

from polars_tadoc.runtime.interrupts import check
from polars_tadoc.runtime.process.threads import NOTICED, Task
from polars_tadoc.runtime.regular_file import descriptor_of

PIECE = 16 << 20
"""Bytes that are on their way to the disk at once."""

_WHOLE = 7  # SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER
_FAILED = (errno.EIO, errno.ENOSPC, errno.EDQUOT)  # told once: fsync would not tell them again


def flush(path: Path) -> None:
    """Flush a file's bytes to the disk.

    Raises
    ------
    OSError
        The file does not exist or is not a regular one, or the disk is full or fails.

    """
    flushing = _Flushing(descriptor_of(path, follow=False))
    task = Task(flushing.run)
    try:
        task.start()
    except RuntimeError:  # when the interpreter ends, no thread can be had
        flushing.run()
        return
    try:
        while not task.wait(NOTICED):
            check()
        check()
    except BaseException:
        flushing.is_stopped = True
        raise
    task.result()


class _Flushing:
    """Flushes an open file, and closes it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.is_stopped = False

    def run(self) -> None:
        """Flush it, unless it is stopped meanwhile."""
        try:
            size = os.fstat(self._descriptor).st_size
            for first in range(0, size, PIECE):
                if self.is_stopped:
                    return
                if not _write_back(self._descriptor, first, PIECE):
                    break
            if not self.is_stopped:
                os.fsync(self._descriptor)
        finally:
            os.close(self._descriptor)


def _write_back(descriptor: int, first: int, size: int) -> bool:
    """Write a piece of a file to the disk, and wait for it; returns whether the system could."""
    if _SYNC is None:
        return False
    if _SYNC(descriptor, first, size, _WHOLE) == 0:
        return True
    if (number := ctypes.get_errno()) in _FAILED:
        raise OSError(number, os.strerror(number))
    return False


def _sync_file_range() -> ctypes._NamedFuncPointer | None:
    if not sys.platform.startswith("linux"):
        return None
    sync = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)
    if sync is not None:
        sync.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
        sync.restype = ctypes.c_int
    return sync


_SYNC = _sync_file_range()
