"""Looks up a kernel's machine code for Numba by the kernel's content, and caches what Numba compiles.

Look-ups use the package first (shipped with wheels), then the user's folders. Code for a level runs on any processor of
that level; code compiled here is for this very processor, because Numba compiles for others only by a setting of the
whole process.
"""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from collections.abc import Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite.binding as llvm
from numba.core import caching, compiler, sigutils
from numba.core.errors import NumbaWarning
from numba.core.runtime import _nrt_python

from polars_tadoc.runtime.machine_code import entries, folders, targets
from polars_tadoc.runtime.machine_code.content import UnknownContentError, content_of, sources_of
from polars_tadoc.runtime.machine_code.entries import Entry
from polars_tadoc.runtime.permissions import PRIVATE_FOLDER


class KernelCache(caching._Cache):  # type: ignore[misc]
    """The cache of one function; unreadable and unwritable folders are skipped."""

    def __init__(self, function: FunctionType, *, is_callback: bool = False) -> None:
        self._function, self._is_callback, self._is_enabled = function, is_callback, True
        sources_of(function.__module__)  # read now, while the files are those that Python imports

    @property
    def cache_path(self) -> str:
        """The folder of new machine code."""
        return str(folders.writable() or "")

    def enable(self) -> None:
        """Look up and cache code, as initially."""
        self._is_enabled = True

    def disable(self) -> None:
        """Neither look up nor cache code."""
        self._is_enabled = False

    def flush(self) -> None:
        """Do nothing: a key identifies one content, so entries are never out of date."""

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the cached code of a signature; None if there is none."""
        _name_runtime()
        described = context.codegen().magic_tuple()
        if not self._is_enabled or (key := self._key(signature)) is None:
            return None
        for path in self._places(key, described):
            entry = entries.read(path)
            if entry is None or not self._is_for(entry, signature):
                continue
            try:
                found = compiler.CompileResult._rebuild(context, *entry.code)
            except Exception:  # another Numba's, in spite of its version
                continue
            if not path.is_relative_to(folders.SHIPPED):
                folders.touch(path)
            return found
        _announce()
        return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Cache the code of a signature."""
        if not self._is_enabled or (key := self._key(signature)) is None or not _can_be_kept(data):
            return
        folder = folders.writable()
        if folder is None:
            return
        target, _ = _targets(data.codegen.magic_tuple())
        path = folder / target / self._file(key, target)
        entry = Entry(*self._identity, sigutils.normalize_signature(signature), entries.reduced(data))
        try:
            path.parent.mkdir(PRIVATE_FOLDER, exist_ok=True)
            entries.write(path, entry)
        except OSError as error:
            self.disable()
            folders.warn(f"cannot be written to {folder} ({error.strerror})")

    def _places(self, key: str, described: tuple[str, str, str]) -> Iterator[Path]:
        exact, levels = _targets(described)
        for level in levels:
            name = self._file(key, level)
            if name in _shipped(level):
                yield folders.SHIPPED / level / name
        for folder in folders.readable():
            for target in dict.fromkeys((exact, *levels)):
                yield folder / target / self._file(key, target)

    def _file(self, key: str, target: str) -> str:
        digest = hashlib.sha256(f"{key} {target}".encode()).hexdigest()[:32]
        name = "".join(letter if letter.isalnum() or letter == "_" else "-" for letter in self._function.__qualname__)
        return f"{name[:60]}-{digest}{entries.SUFFIX}"

    def _key(self, signature: Any) -> str | None:
        """Return the key of one specialisation; None if it cannot be cached."""
        return self._key_of(sigutils.normalize_signature(signature))

    def _key_of(self, signature: tuple[tuple[Any, ...], Any]) -> str | None:
        text = repr(signature)
        if self._content is None or " at 0x" in text:  # a function as an argument
            return None
        return f"{self._content} {_compiler()} {self._is_callback} {text}"

    @cached_property
    def _content(self) -> str | None:
        try:
            return content_of(self._function)
        except UnknownContentError:
            return None

    def is_current(self, path: Path, entry: Entry) -> bool:
        """Tell whether a file is the entry of this function's current content."""
        key = self._key_of(entry.signature)
        return key is not None and path.name == self._file(key, path.parent.name)

    @property
    def _identity(self) -> tuple[str, str, bool]:
        return self._function.__module__, self._function.__qualname__, self._is_callback

    def _is_for(self, entry: Entry, signature: Any) -> bool:
        """Tell whether an entry has the expected types: different types may have equal names."""
        given, returned = sigutils.normalize_signature(signature)
        own = (entry.module, entry.qualname, entry.is_callback)
        return own == self._identity and entry.signature == (tuple(given), returned)


def _can_be_kept(compiled: Any) -> bool:
    dynamic = compiled.library.has_dynamic_globals
    if dynamic or any(not lifted.can_cache for lifted in compiled.lifted):
        reason = "dynamic globals (addresses, large global arrays)" if dynamic else "lifted code"
        name = compiled.fndesc.qualname
        warnings.warn(f"the machine code of {name} cannot be cached: it uses {reason}", NumbaWarning, stacklevel=2)
        return False
    return True


_compiler = lru_cache(maxsize=1)(targets.compiler)
_targets = lru_cache(maxsize=4)(targets.targets_of)


@lru_cache(maxsize=4)
def _shipped(level: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folders.SHIPPED / level))
    except OSError:
        return frozenset()


COMPILING = "polars_tadoc: compiling kernels, once: about 12 s (`python -m polars_tadoc warmup` compiles all)\n"
_announced: list[bool] = []


def _announce() -> None:
    """Print once per process why the call takes long."""
    if not _announced and sys.stderr is not None:
        _announced.append(True)
        sys.stderr.write(COMPILING)


@lru_cache(maxsize=1)
def _name_runtime() -> None:
    """Make Numba's runtime known to machine code, as ``rtsys.initialize`` does.

    That also compiles functions that cached code contains, and ``context.refresh`` imports what compiling needs: 0.5 s
    and 50 MB in each process. If code is to be compiled, Numba does both.
    """
    for name, address in _nrt_python.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)
