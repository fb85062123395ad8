"""Exchanges the names of two files or folders in one step, so that neither name is without one for an instant."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names of one file system; returns whether the system could.

    Linux alone has it, on most of its file systems. Elsewhere, and on any error, nothing is changed.
    """
    if _RENAME is None:
        return False
    return not _RENAME(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)


def _renameat2() -> ctypes._NamedFuncPointer | None:
    if not sys.platform.startswith("linux"):
        return None
    rename = getattr(ctypes.CDLL(None), "renameat2", None)  # glibc has it from 2.28 on
    if rename is not None:
        rename.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
        rename.restype = ctypes.c_int
    return rename


_RENAME = _renameat2()
