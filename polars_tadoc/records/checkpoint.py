"""A folder from which an interrupted call resumes: runs of finished partitions, and a manifest that lists them."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import weakref
import zlib
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from polars_tadoc.errors import InvalidRecordsError, NotAFileError
from polars_tadoc.records.interval_set import IntervalSet
from polars_tadoc.records.spill_folder import explained, remove_stale
from polars_tadoc.runtime.permissions import PRIVATE_FOLDER
from polars_tadoc.runtime.regular_file import open_regular, read_json_text
from polars_tadoc.storage.atomic_write import atomic_file, lock, remove, remove_abandoned, unlock
from polars_tadoc.storage.flush import flush

MANIFEST = "manifest.json"
VERSION = 1
RUN = "run-"

MAX_PARTITIONS = 1 << 22
"""Upper bound of partitions if their number is unknown."""

_RUN_NAME = rf"{RUN}(?:[0-9]{{6}}|[1-9][0-9]{{6,17}})"
_RUN = re.compile(_RUN_NAME)
_RUN_FILE = re.compile(rf"({_RUN_NAME})\.(?:keys|words|rows)\.parquet")
_STARTED_MANIFEST = re.compile(rf"\.{re.escape(MANIFEST)}\.[0-9a-f]{{8}}\.tmp")

MEND = "free space there and repeat the call: it resumes after the finished partitions"

SHOWN = 200
"""Maximum characters of a value in a message."""


class Checkpoint:
    """Results of a call for finished partitions, kept until the folder is deleted.

    Parameters
    ----------
    folder
        The folder; created if it does not exist.
    question
        What the call computes, on which input: JSON values by name. Lists of equal length are compared item by item.
    call
        Prefix of messages.
    partitions
        Maximum number of partitions.

    Raises
    ------
    ValueError
        The folder was made for another question, or contains other files.
    OSError
        Another call uses it, it cannot be created, or the path is a file.
    InvalidRecordsError
        Its files are damaged.

    """

    def __init__(self, folder: Path, question: Mapping[str, Any], call: str, partitions: int = MAX_PARTITIONS) -> None:
        self.path = folder.expanduser().resolve()
        self._call, self._partitions = call, partitions
        self._question: dict[str, Any] = json.loads(json.dumps(dict(question)))
        self._files: dict[str, dict[str, list[int]]] = {}
        """Files of each finished run, with sizes and checksums."""
        self.covered = IntervalSet()
        """Partitions whose records are in the runs."""
        with self.writing():
            if not self.path.is_dir():
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.mkdir(PRIVATE_FOLDER, exist_ok=True)
            descriptor = self._locked()
            self._unlock: weakref.finalize[Any, Any] | None = None
            if descriptor is not None:
                self._unlock = weakref.finalize(self, unlock, descriptor, os.getpid())
            try:
                self._open()
            except BaseException:
                self.close()
                raise

    def _locked(self) -> int | None:
        try:
            descriptor = lock(self.path)
        except OSError as error:
            if error.errno in (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS):
                return None  # the file system has no locks
            raise
        if descriptor is None:
            raise OSError(errno.EBUSY, f"{self._call}: another call is using the checkpoint {self.path}")
        return descriptor

    def _open(self) -> None:
        names = sorted(one.name for one in self.path.iterdir())
        if MANIFEST in names:
            self._read()
            self._remove_unfinished(names)
        elif foreign := [name for name in names if not self._is_started_manifest(name)]:
            raise ValueError(
                f'{self._call}: {self.path} is not a checkpoint: it has "{foreign[0]}"; name a new or an empty folder'
            )
        else:
            self._write()

    def _is_started_manifest(self, name: str) -> bool:
        """Tell whether the folder only has what a call killed before its first manifest leaves."""
        return bool(_STARTED_MANIFEST.fullmatch(name)) and _is_regular(self.path / name)

    def _remove_unfinished(self, names: Iterable[str]) -> None:
        """Remove unfinished files of an interrupted call; files locked by other processes stay."""
        unfinished = [name for name in names if (run := _run_of(name)) is not None and run not in self.runs]
        for name in unfinished:
            if not _is_regular(self.path / name):
                raise ValueError(
                    f'{self._call}: {self.path} contains "{name}", not a regular file, under a name that '
                    "checkpoints write; move it elsewhere, or use another folder"
                )
        for name in unfinished:
            remove(self.path / name)
        remove_abandoned(self.path / MANIFEST)
        remove_stale(self.path)

    @property
    def runs(self) -> list[str]:
        """Names of finished runs."""
        return list(self._files)

    def _read(self) -> None:
        path = self.path / MANIFEST
        text = self._manifest(path)
        try:
            said = json.loads(text)
            version, question, runs, covered = (said[name] for name in ("version", "question", "runs", "covered"))
            sound = version == VERSION and isinstance(question, dict) and _are_runs(runs)
            intervals = IntervalSet((first, last) for first, last in covered)
            sound = sound and all(type(number) is int for interval in intervals.intervals for number in interval)
            is_sealed = "crc32" in said
            is_whole = text == manifest_text(said).encode()
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise self._damaged(path, "damaged") from error
        if not sound:
            raise self._damaged(path, "damaged or has another format version")
        if not is_sealed:
            raise self._damaged(path, "damaged, or written by an older polars_tadoc, without a checksum")
        if is_whole:
            self._require_same(question)
        if any(first < 0 or last >= self._partitions for first, last in intervals.intervals):
            raise self._damaged(path, f"damaged: it names partitions beyond the {self._partitions:,} of the scan")
        if not is_whole:
            raise self._damaged(path, "damaged: checksum mismatch")
        for files in runs.values():
            for name, (size, checksum) in files.items():
                file = self.path / name
                try:
                    found = _described(file)
                except FileNotFoundError:
                    raise self._damaged(file, "gone") from None
                except (NotAFileError, IsADirectoryError):
                    raise self._damaged(file, "not a regular file") from None
                if found != [size, checksum]:
                    raise self._damaged(file, "damaged")
        self._files, self.covered = runs, intervals

    def _manifest(self, path: Path) -> bytes:
        try:
            return read_json_text(path, self._call, follow=False)
        except (NotAFileError, IsADirectoryError):
            raise self._damaged(path, "not a regular file") from None

    def _damaged(self, path: Path, how: str) -> InvalidRecordsError:
        return InvalidRecordsError(f"{self._call}: {path} is {how}; delete the checkpoint and start again")

    def _require_same(self, question: dict[str, Any]) -> None:
        for name in sorted(self._question.keys() | question.keys()):
            then, now = question.get(name), self._question.get(name)
            if then != now:
                if name == "files" and (told := _other_files(then, now)):
                    raise ValueError(
                        f"{self._call}: the checkpoint {self.path} was made for another question: of its files, "
                        f"{told}; use another folder, or delete this one"
                    )
                where, then, now = _difference(name, then, now)
                raise ValueError(
                    f"{self._call}: the checkpoint {self.path} was made for another question: {where} was "
                    f"{_shown(then)} and is {_shown(now)}; use another folder, or delete this one"
                )

    def commit(self, runs: Iterable[str], finished: Iterable[int] = ()) -> None:
        """Record finished runs, and the partitions that they cover in addition to earlier ones."""
        with self.writing():
            self._files = {run: self._files.get(run) or self._flushed(run) for run in runs}
            self.covered = self.covered.also(finished)
            self._write()

    def _flushed(self, run: str) -> dict[str, list[int]]:
        """Flush a run to disk (fsync); return sizes and checksums of its files."""
        found = {}
        for file in sorted(file for file in self.path.glob(f"{run}.*") if _run_of(file.name) == run):
            flush(file)
            found[file.name] = _described(file)
        return found

    def _write(self) -> None:
        said = {"version": VERSION, "question": self._question, "runs": self._files, "covered": self.covered.intervals}
        with atomic_file(self.path / MANIFEST, self._call, private=True) as temporary:
            temporary.write_text(manifest_text(said))

    def writing(self) -> AbstractContextManager[None]:
        """Explain errors of a full disk or a missing folder, with the folder's name."""
        return explained(self.path, self._call, MEND, "checkpoint=")

    def close(self) -> None:
        """Release the folder's lock."""
        if self._unlock is not None and (kept := self._unlock.detach()):
            _, function, arguments, _ = kept
            function(*arguments)


def manifest_text(said: Mapping[str, Any]) -> str:
    """Return a manifest as JSON, with a checksum of its other content.

    Reading compares the text byte by byte: any other byte is damage, even if the JSON is equivalent.
    """
    text = json.dumps({name: value for name, value in said.items() if name != "crc32"})
    return f'{text[:-1]}, "crc32": {zlib.crc32(text.encode())}}}'


def _is_regular(path: Path) -> bool:
    """Tell whether a regular file exists, not a link."""
    return stat.S_ISREG(path.lstat().st_mode)


def _run_of(name: str) -> str | None:
    """Return the run that a file name belongs to; None for other names."""
    found = _RUN_FILE.fullmatch(name)
    return found and found[1]


def _are_runs(runs: Any) -> bool:
    """Tell whether a parsed value maps run names to files with two numbers each."""
    return all(
        _RUN.fullmatch(run)
        and all(
            _run_of(name) == run and [type(number) for number in said] == [int, int] for name, said in files.items()
        )
        for run, files in runs.items()
    )


def _other_files(then: Any, now: Any) -> str:
    """Describe the files that are in only one of two lists, by path; empty if the lists are equal."""
    try:
        before, after = ([path for path, said in files if said is not None] for files in (then, now))
        known, still = set(before), set(after)
    except (TypeError, ValueError):
        return ""
    told = []
    for how, own, others in (("is new", after, known), ("is gone", before, still)):
        if other := [path for path in own if path not in others]:
            more = f", and {len(other) - 1:,} more" if len(other) > 1 else ""
            told.append(f"{other[0]} {how}{more}")
    return "; ".join(told)


def _difference(where: str, then: Any, now: Any) -> tuple[str, Any, Any]:
    """Return the first differing items and where they are; pairs start with their name."""
    while True:
        if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
            if len(then) == 2 and then[0] == now[0] and (isinstance(then[1], dict) or isinstance(now[1], dict)):
                where = f"{where}, {_shown(then[0])},"
            then, now = next(pair for pair in zip(then, now, strict=True) if pair[0] != pair[1])
        elif isinstance(then, dict) and isinstance(now, dict) and then.keys() == now.keys():
            name = next(name for name in then if then[name] != now[name])
            where, then, now = f"{where} {name}", then[name], now[name]
        else:
            return where, then, now


def _shown(value: Any) -> str:
    text = (
        f"{len(value):,} values"
        if isinstance(value, list) and len(value) > 8
        else json.dumps(value, ensure_ascii=False)
    )
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _described(file: Path) -> list[int]:
    """Return the size and checksum of a file."""
    size = checksum = 0
    with open_regular(file, follow=False) as opened:
        while part := opened.read(1 << 20):
            size, checksum = size + len(part), zlib.crc32(part, checksum)
    return [size, checksum]
