"""Lists Parquet files of a source: paths, folders, patterns, addresses, open files, or a list of these."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import polars as pl

from polars_tadoc.errors import NotAFileError
from polars_tadoc.runtime.regular_file import is_regular, open_regular
from polars_tadoc.storage.addresses import Address, local_or_address, require_utf8
from polars_tadoc.storage.files import File, LocalFile, OpenFile, StoredFile
from polars_tadoc.storage.object_store import Access, ObjectInfo, Store, split_pattern

Source = str | os.PathLike[str] | BinaryIO | Iterable[str | os.PathLike[str] | BinaryIO]


@dataclass(frozen=True)
class Found:
    """A file, and where it was found."""

    file: File
    folders: tuple[str, ...]
    """Folder names that may be hive keys: those below the given folder, or else all in the file's path."""
    below: bool
    """Whether it was found in a given folder."""


def find(source: Source, call: str, access: Access | None = None) -> list[Found]:
    """List files; those of a folder or a pattern in the order of their names.

    Raises
    ------
    FileNotFoundError
        A source matches no file, or is a broken link.
    NotAFileError
        A source, or a ``*.parquet`` in a folder, is a FIFO, a device or a socket.
    TypeError, ValueError
        A source has another type, an address has an unknown scheme, or a name is not UTF-8.
    OSError
        An object store cannot be reached.

    """
    return _Finder(call, (access or Access()).require(call)).find(source)


def find_files(source: Source, call: str = "scan_packed") -> list[Path]:
    """List local files only; errors as for :func:`find`, and ``ValueError`` for addresses."""
    found = _Finder(call, None).find(source)
    paths = [one.file.path for one in found if isinstance(one.file, LocalFile)]
    if len(paths) < len(found):
        raise TypeError(f"{call}: an open file cannot be read here; give the path of a local file")
    return paths


class _Finder:
    def __init__(self, call: str, access: Access | None) -> None:
        self._call, self._access = call, access
        self._stores: dict[str, Store] = {}
        self._open = 0

    def find(self, source: Source) -> list[Found]:
        if isinstance(source, str | os.PathLike):
            found = self._named(os.fspath(source))
        elif hasattr(source, "read"):
            self._open += 1
            found = [Found(OpenFile(source, self._open, self._call), (), False)]
        elif isinstance(source, bytes | pl.DataFrame | pl.LazyFrame | pl.Series) or not isinstance(source, Iterable):
            raise TypeError(
                f"{self._call}: source is {type(source).__name__}; give a file's path, a folder, a glob pattern, an "
                "address (s3://…), an open file or a list of these"
            )
        else:
            found = [one for given in source for one in self.find(given)]
        if not found:
            raise FileNotFoundError(f"{self._call}: {source!s}: no Parquet file found")
        return found

    def _named(self, name: str) -> list[Found]:
        place = local_or_address(name, self._call, "source")
        if isinstance(place, Address):
            return self._stored(place)
        path = Path(place).expanduser()
        if path.is_dir():
            below = [file for file in _below(path, self._call) if _is_file(file, self._call)]
            return [self._local(file, file.relative_to(path).parts[:-1], True) for file in below]
        paths = [path] if os.path.lexists(path) else sorted(_matching(path, self._call))
        return [self._local(file, file.parts[:-1], False) for file in paths if _is_file(file, self._call)]

    def _local(self, path: Path, folders: tuple[str, ...], below: bool) -> Found:
        require_utf8(path, self._call)
        return Found(LocalFile(path), folders, below)

    def _stored(self, address: Address) -> list[Found]:
        if self._access is None:
            raise ValueError(
                f"{self._call}: {address} is an address; only local files can be read here, by their paths"
            )
        store = self._stores.get(address.root)
        if store is None:
            store = self._stores[address.root] = Store(address.root, self._access, self._call)
        folder, pattern = split_pattern(address)
        if pattern is None and folder and (met := store.find(folder)) is not None:
            return [_found(store, met, 0, False)]
        objects = store.below(folder)
        if pattern is not None:
            return [_found(store, met, 0, False) for met in objects if pattern.match(met.path)]
        start = len(folder.split("/")) if folder else 0
        found = [_found(store, met, start, True) for met in _not_ours(store, objects, start)]
        return [one for one in found if not any(part.startswith(".") for part in one.folders)]


def _found(store: Store, met: ObjectInfo, start: int, below: bool) -> Found:
    return Found(StoredFile(store, met.path, store.root), tuple(met.path.split("/")[start:-1]), below)


_MARKS = {"manifest.json": rb'\{"version": \d+, "question": ', "header.json": rb'.*"format": "polars_tadoc index"'}
"""Header names that identify checkpoints and saved indexes."""


def _below(folder: Path, call: str) -> list[Path]:
    """List the Parquet files in a folder and below, without those of checkpoints, saved indexes and hidden folders.

    Links to folders are followed, as in Polars, except links to a parent folder, whose files are listed already.

    Raises
    ------
    NotAFileError
        A link outside the folder leads to a parent of it.
    OSError
        A folder cannot be listed.

    """
    found = []
    for place, files in _folders(folder, call, passed_over=_is_ours):
        found += [place / one for one in files if one.endswith(".parquet") and not one.startswith(".")]
    return sorted(found)


def _folders(
    folder: Path, call: str, passed_over: Callable[[Path, list[str]], bool] | None = None
) -> Iterator[tuple[Path, list[str]]]:
    """Yield a folder and those below with the names of their files; each folder of a link cycle once."""
    within: dict[str, tuple[Path, ...]] = {
        str(folder): (folder.resolve(),)
    }  # real paths of each folder and its parents
    for name, folders, files in os.walk(folder, onerror=_raise, followlinks=True):
        place, reals = Path(name), within.pop(name)
        if passed_over is not None and place != folder and passed_over(place, files):
            folders.clear()
            continue
        followed = []
        for one in folders:
            real = (place / one).resolve() if (place / one).is_symlink() else reals[-1] / one
            if one.startswith(".") or real in reals:
                continue
            if reals[0].is_relative_to(real):
                raise NotAFileError(
                    f"{call}: {place / one} is a link to {real}, which contains {folder}: a link cycle; "
                    "remove the link, or list the files one by one"
                )
            within[os.path.join(name, one)] = (*reals, real)
            followed.append(one)
        folders[:] = followed
        yield place, files


def _is_ours(folder: Path, files: list[str]) -> bool:
    """Tell whether a folder is a checkpoint or a saved index."""
    return any(one in _MARKS and _begins(folder / one, _MARKS[one]) for one in files)


def _matching(pattern: Path, call: str) -> set[Path]:
    """List the matches of a pattern; ``**`` does not follow link cycles, unlike :func:`glob.glob`."""
    if "**" not in pattern.parts:
        return {Path(one) for one in glob.glob(str(pattern))}
    place = pattern.parts.index("**")
    rest = pattern.parts[place + 1 :] or ("*",)
    found: set[Path] = set()
    for start in glob.glob(str(Path(*pattern.parts[:place]))):  # "." if the pattern starts there
        if os.path.isdir(start):
            for folder, _ in _folders(Path(start), call):
                found |= _matching(Path(glob.escape(str(folder)), *rest), call)
    return found


def _raise(error: OSError) -> NoReturn:
    raise error


def _is_file(path: Path, call: str) -> bool:
    """Tell a file from a folder.

    Raises
    ------
    FileNotFoundError
        It is a broken link.
    NotAFileError
        It is a FIFO, a device, a socket or a link to itself.

    """
    try:
        return is_regular(path)
    except FileNotFoundError:
        what = f"is a link to {os.readlink(path)}, which does not exist" if path.is_symlink() else "no longer exists"
        raise FileNotFoundError(f"{call}: {path} {what}") from None
    except NotAFileError as error:
        raise NotAFileError(f"{call}: {error}") from None


def _begins(file: Path, pattern: bytes) -> bool:
    try:
        with open_regular(file) as opened:
            return re.match(pattern, opened.read(200), re.DOTALL) is not None
    except OSError:
        return False


def _not_ours(store: Store, objects: list[ObjectInfo], start: int) -> list[ObjectInfo]:
    """Leave checkpoints and saved indexes out of a store's listing."""
    ours = []
    for met in objects:
        *folders, name = met.path.split("/")
        known = name in _MARKS and len(folders) > start
        if known and re.match(_MARKS[name], store.read(met, 0, min(met.size, 200)), re.DOTALL):
            ours.append("/".join(folders) + "/")
    shown = [met for met in objects if met.path.endswith(".parquet") and not met.path.split("/")[-1].startswith(".")]
    return [met for met in shown if not met.path.startswith(tuple(ours))]


def one_file(place: Any, call: str, access: Access, instead: str = "") -> Path | Address:
    """Return the path or address of one file or folder to write or read.

    Raises
    ------
    TypeError, ValueError
        The argument is neither.

    """
    access.require(call)
    text = os.fspath(place) if isinstance(place, os.PathLike) else place
    if not isinstance(text, str):
        raise TypeError(f"{call}: path is {type(place).__name__}, not a path: a str or an os.PathLike{instead}")
    found = local_or_address(text, call)
    return found if isinstance(found, Address) else Path(os.path.expanduser(found))
