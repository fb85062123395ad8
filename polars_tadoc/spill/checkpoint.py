"""A folder from which a call goes on that was interrupted: runs of finished partitions, and which ones these are."""

from __future__ import annotations

import errno
import json
import os
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from polars_tadoc.errors import InvalidRecordsError
from polars_tadoc.replacing import lock, remove, replacing
from polars_tadoc.spill.folder import PREFIX, explained

MANIFEST = "manifest.json"
VERSION = 1
RUN = "run-"

MEND = "make room there and make the same call again: it goes on behind the partitions that are finished"

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
        Its manifest is damaged.

    """

    def __init__(self, folder: Path, question: Mapping[str, Any], call: str) -> None:
        self.path = folder.expanduser().resolve()
        self._call = call
        self._question: dict[str, Any] = json.loads(json.dumps(dict(question)))
        self.runs: list[str] = []
        """Names of finished runs."""
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

    def _read(self) -> None:
        path = self.path / MANIFEST
        try:
            said = json.loads(path.read_bytes())
            version, question, runs, covered = (said[name] for name in ("version", "question", "runs", "covered"))
            sound = version == VERSION and isinstance(question, dict) and all(map(_is_run, runs))
            self.covered = frozenset(n for first, last in covered for n in range(int(first), int(last) + 1))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InvalidRecordsError(f"{path} is damaged; delete the folder and begin anew") from error
        if not sound:
            raise InvalidRecordsError(f"{path} is damaged, or of another version; delete the folder and begin anew")
        self.runs = list(runs)
        self._require_same(question)

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
        self.runs, self.covered = list(runs), frozenset(covered)
        with self.writing():
            for file in self.path.glob(f"{RUN}*"):
                _flush(file)
            self._write()

    def _write(self) -> None:
        said = {
            "version": VERSION,
            "question": self._question,
            "runs": self.runs,
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
    return isinstance(name, str) and name.startswith(RUN) and name[len(RUN) :].isdecimal()


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


def _flush(file: Path) -> None:
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
