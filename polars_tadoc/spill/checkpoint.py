"""A folder from which a call goes on that was interrupted: runs of finished partitions, and which ones these are."""

from __future__ import annotations

import errno
import json
import os
import weakref
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path
from typing import Any

from polars_tadoc.errors import InvalidRecordsError
from polars_tadoc.replacing import lock, remove, replacing
from polars_tadoc.spill.folder import PREFIX, explained

MANIFEST = "manifest.json"
VERSION = 1
RUN = "run-"

MOST_PARTITIONS = 1 << 22
"""More are not believed: a few bytes could name so many that no memory holds their numbers."""

MOST_DIGITS = 18
"""Of a run's number."""

MEND = "make room there and make the same call again: it goes on behind the partitions that are finished"

MOST_PARTITIONS = 1 << 32
"""Rows are numbered in 32 bits, and partitions have some."""

SHOWN = 200
"""Characters of a value that a message shows."""


class Checkpoint:
    """What a call has found in the partitions that it finished, kept until the folder is deleted.

    Parameters
    ----------
    folder
        The folder; made if it is not there.
    question
        What is asked, of what: values that JSON has, by name. Lists of equal length are compared item by item.
    call
        What messages begin with.

    Raises
    ------
    ValueError
        The folder was made for another question, or holds something else.
    OSError
        Another call is using it, or it cannot be made.
    InvalidRecordsError
        Its files are damaged.

    """

    def __init__(self, folder: Path, question: Mapping[str, Any], call: str) -> None:
        self.path = folder.expanduser().resolve()
        self._call = call
        self._question: dict[str, Any] = json.loads(json.dumps(dict(question)))
        self._files: dict[str, dict[str, list[int]]] = {}
        """By finished run its files, with their sizes and checksums."""
        self.covered: frozenset[int] = frozenset()
        """Partitions whose records the runs hold."""
        with self.writing():
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = self._locked()
            self._unlock: Callable[[], object] = lambda: None
            if descriptor is not None:
                self._unlock = weakref.finalize(self, os.close, descriptor)
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
                return None  # there are no locks
            raise
        if descriptor is None:
            raise OSError(errno.EBUSY, f"{self._call}: another call is using the checkpoint {self.path}")
        return descriptor

    def _open(self) -> None:
        names = {one.name for one in self.path.iterdir()}
        if MANIFEST in names:
            self._read()
        elif foreign := sorted(name for name in names if not _is_own(name)):
            raise ValueError(
                f'{self._call}: {self.path} is no checkpoint: it holds "{foreign[0]}"; name a new or an empty folder'
            )
        else:
            self._write()
        for name in names:
            if name != MANIFEST and _is_own(name) and name.split(".")[0] not in self.runs:
                remove(self.path / name)  # what was being written when a call was interrupted

    @property
    def runs(self) -> list[str]:
        """Names of finished runs."""
        return list(self._files)

    def _read(self) -> None:
        path = self.path / MANIFEST
        try:
            said = json.loads(path.read_bytes())
            version, question, runs, covered = (said[name] for name in ("version", "question", "runs", "covered"))
            sound = version == VERSION and isinstance(question, dict) and _are_runs(runs)
            stretches = [range(int(first), int(last) + 1) for first, last in covered]
            sound = sound and sum(map(len, stretches)) <= MOST_PARTITIONS
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise self._damaged(path, "damaged") from error
        if not sound:
            raise self._damaged(path, "damaged, or of another version")
        self._require_same(question)
        for files in runs.values():
            for name, (size, checksum) in files.items():
                file = self.path / name
                if not file.is_file():
                    raise self._damaged(file, "gone")
                if file.stat().st_size != size or _checksum(file) != checksum:
                    raise self._damaged(file, "damaged")
        self._files, self.covered = runs, frozenset(chain.from_iterable(stretches))

    def _damaged(self, path: Path, how: str) -> InvalidRecordsError:
        return InvalidRecordsError(f"{self._call}: {path} is {how}; delete the checkpoint and begin anew")

    def _require_same(self, question: dict[str, Any]) -> None:
        for name in sorted(self._question.keys() | question.keys()):
            then, now = question.get(name), self._question.get(name)
            if then != now:
                then, now = _difference(then, now)
                raise ValueError(
                    f"{self._call}: the checkpoint {self.path} was made for another question: {name} was "
                    f"{_shown(then)} and is {_shown(now)}; name another folder, or delete this one"
                )

    def commit(self, runs: Iterable[str], covered: Iterable[int]) -> None:
        """Say which runs are finished, and which partitions they hold."""
        with self.writing():
            self._files = {run: self._files.get(run) or self._flushed(run) for run in runs}
            self.covered = frozenset(covered)
            self._write()

    def _flushed(self, run: str) -> dict[str, list[int]]:
        """Have the system write a run to the disk; returns sizes and checksums of its files."""
        found = {}
        for file in sorted(self.path.glob(f"{run}.*")):
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
            found[file.name] = [file.stat().st_size, _checksum(file)]
        return found

    def _write(self) -> None:
        said = {
            "version": VERSION,
            "question": self._question,
            "runs": self._files,
            "covered": _stretches(sorted(self.covered)),
        }
        with replacing(self.path / MANIFEST, self._call) as temporary:
            temporary.write_text(json.dumps(said))

    def writing(self) -> AbstractContextManager[None]:
        """Name the folder, and what to do, where the disk is full or the folder went away."""
        return explained(self.path, self._call, MEND)

    def close(self) -> None:
        """Let others use the folder."""
        self._unlock()


def _is_own(name: str) -> bool:
    return _is_run(name.split(".")[0]) or name.startswith((f".{MANIFEST}.", PREFIX))


def _is_run(name: object) -> bool:
    number = name[len(RUN) :] if isinstance(name, str) and name.startswith(RUN) else ""
    return number.isdecimal() and number.isascii() and len(number) <= MOST_DIGITS


def _are_runs(runs: Any) -> bool:
    """Tell whether what was read is runs, by name, and their files with two numbers each."""
    return all(
        _is_run(run)
        and all(name.startswith(f"{run}.") and "/" not in name and len(said) == 2 for name, said in files.items())
        for run, files in runs.items()
    )


def _difference(then: Any, now: Any) -> tuple[Any, Any]:
    """Return the first items in which lists differ."""
    while isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        then, now = next(pair for pair in zip(then, now, strict=True) if pair[0] != pair[1])
    return then, now


def _shown(value: Any) -> str:
    text = (
        f"{len(value):,} values"
        if isinstance(value, list) and len(value) > 8
        else json.dumps(value, ensure_ascii=False)
    )
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _stretches(numbers: list[int]) -> list[list[int]]:
    """Write rising numbers as stretches without gaps, first and last number."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] + 1 == number:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def _checksum(file: Path) -> int:
    checksum = 0
    with file.open("rb") as opened:
        while part := opened.read(1 << 20):
            checksum = zlib.crc32(part, checksum)
    return checksum
