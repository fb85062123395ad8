"""Compiles kernels, and decides where their machine code is kept between processes.

Numba keeps it beside the package or in the user's cache folder, and raises at the import of the package where neither
can be written to. Here it then goes to a temporary folder of the user's own, and where there is none, nowhere. What is
kept is a pickle: whoever can write to the folder can run code.
"""

from __future__ import annotations

import os
import pickle
import stat
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba as nb
from numba.core import caching
from numba.core.ccallback import CFunc

from polars_tadoc.errors import KernelCacheWarning
from polars_tadoc.permissions import PRIVATE_FOLDER
from polars_tadoc.regular_file import is_owned

FOLDER = "polars_tadoc-kernels"


def njit(**options: Any) -> Callable[[Any], Any]:
    """Compile a function when it is first called, as ``numba.njit`` does, and keep its machine code."""

    def decorate(function: Any) -> Any:
        dispatcher: Any = nb.njit(**options)(function)
        dispatcher._cache = _cache_of(function)
        return dispatcher

    return decorate


def callback(signature: Any, function: Callable[..., None]) -> Any:
    """Compile a function for a signature, as ``numba.cfunc`` does, and keep its machine code."""
    made: Any = CFunc(function, (signature.args, signature.return_type), locals={}, options={})
    made._cache = _cache_of(function)
    made.compile()
    return made


class _Locator(caching._SourceFileBackedLocatorMixin, caching._CacheLocator):  # type: ignore[misc]
    """Finds the machine code of a function in a temporary folder of this user's."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file, self._lineno = file, function.__code__.co_firstlineno
        self._folder = os.path.join(str(private_folder()), self.get_suitable_cache_subpath(file))

    def get_cache_path(self) -> str:
        return self._folder

    @classmethod
    def from_function(cls, function: Any, file: str) -> Any:
        found = None if private_folder() is None else super().from_function(function, file)
        if found is not None:
            _warn(f"is kept in {private_folder()}")
        return found


class _Implementation(caching.CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (*caching.CompileResultCacheImpl._locator_classes, _Locator)


class _KernelCache(caching.FunctionCache):  # type: ignore[misc]
    """Machine code of one function; a cache that cannot be read or written is done without."""

    _impl_class = _Implementation

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            return super().load_overload(signature, context)
        except (OSError, EOFError, pickle.UnpicklingError):  # cut short, as when the machine lost power
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        try:
            super().save_overload(signature, data)
        except OSError as error:
            self.disable()
            _warn(f"cannot be written to {self.cache_path} ({error.strerror})")


def _cache_of(function: Any) -> Any:
    try:
        return _KernelCache(function)
    except RuntimeError:  # no place was found
        _warn("is kept nowhere, and made again in each process, which takes up to a minute")
        return caching.NullCache()


@lru_cache(maxsize=1)
def private_folder() -> Path | None:
    """Return a temporary folder that nobody but this user can write to; None where there is none."""
    with suppress(OSError):
        parent = Path(tempfile.gettempdir()).resolve()
        folder = parent / f"{FOLDER}-{os.geteuid() if hasattr(os, 'geteuid') else 'user'}"
        if parent != Path.cwd() and all(_is_safe(one) for one in (parent, *parent.parents)):
            with suppress(FileExistsError):
                folder.mkdir(PRIVATE_FOLDER)
            status = folder.lstat()
            others = hasattr(os, "geteuid") and status.st_mode & 0o077
            if stat.S_ISDIR(status.st_mode) and is_owned(status) and not others:
                return folder
    return None


def _is_safe(folder: Path) -> bool:
    """Tell whether others can neither rename nor replace what this user has in a folder."""
    status = folder.stat()
    if not hasattr(os, "geteuid"):
        return True
    is_trusted = status.st_uid in (0, os.geteuid())
    return is_trusted and bool(not status.st_mode & 0o022 or status.st_mode & stat.S_ISVTX)


_warned: list[str] = []


def _warn(what: str) -> None:
    if not _warned:  # once for all functions
        _warned.append(what)
        warnings.warn(
            f"the machine code of polars_tadoc {what}: its folder and your cache folder cannot be written to; "
            "set NUMBA_CACHE_DIR to a folder that only you can write to",
            KernelCacheWarning,
            stacklevel=2,
        )
