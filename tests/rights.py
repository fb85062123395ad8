"""What this process and its file system allow, tried out: tests that need more are skipped, and say why."""

from __future__ import annotations

import os
import stat
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest


def needs_to_give_files_away(folder: Path) -> None:
    """Skip where files cannot be given to other users: only root may, and not in every container."""
    path = _new(folder)
    path.touch()
    try:
        os.chown(path, 65534, 65534)
    except OSError as error:
        pytest.skip(f"this process may not give files to other users ({error.strerror})")
    finally:
        path.unlink()


def needs_modes_of_the_umask(folder: Path) -> None:
    """Skip where new files get other modes than the umask leaves: a default access list, or a mount with own modes."""
    before = os.umask(0)
    path = _new(folder)
    try:
        path.touch()
        got = stat.S_IMODE(path.stat().st_mode)
    finally:
        os.umask(before)
        path.unlink()
    if got != 0o666:
        pytest.skip(f"new files get mode {got:o} here where the umask leaves 666")


def needs_a_private_path(folder: Path) -> None:
    """Skip where other users can replace a folder on the way to this one: nothing below is trusted then."""
    for one in (folder.resolve(), *folder.resolve().parents):
        status = one.stat()
        open_to_others = status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX
        if open_to_others or status.st_uid not in (0, os.geteuid()):
            pytest.skip(f"other users can replace what is in {one}: set TMPDIR to a folder of your own")


def needs_closed_folders(folder: Path, before: Callable[[], None] | None = None) -> None:
    """Skip where a process, after ``before``, writes to ``folder`` (mode 555) all the same."""
    if subprocess.run(["test", "-w", folder], preexec_fn=before, check=False).returncode == 0:
        pytest.skip("this process may write to folders that are closed to it, and cannot give that right up")


def _new(folder: Path) -> Path:
    return folder / uuid.uuid4().hex
