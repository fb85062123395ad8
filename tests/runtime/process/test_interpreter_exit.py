"""The interpreter's end: soon after Ctrl-C, and without a loss of what files held back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import atexit, gc, os, signal, sys

@atexit.register  # before the package's own: it runs after that
def say():
    print(gc.get_freeze_count(), flush=True)

import polars_tadoc as tadoc
tadoc.compress  # imports Numba, whose objects are most

class Log:
    def __init__(self, path):
        self.itself, self.file = self, open(path, "w")

log = Log(sys.argv[1])
log.file.write("kept")

def work():
    own = Log(sys.argv[1] + "-own")
    own.file.write("kept")
    if sys.argv[2] == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            pass

signal.signal(signal.SIGINT, signal.default_int_handler)
work()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
@pytest.mark.parametrize("how", ["interrupt", "end"])
def test_after_an_interrupt_nobody_looks_for_garbage_and_files_are_whole(how: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    ended = subprocess.run([sys.executable, "-c", PROGRAM, str(log), how], capture_output=True, text=True, check=False)
    assert log.read_text() == "kept"
    if how == "interrupt":
        assert ended.returncode == -signal.SIGINT
        assert ended.stderr.strip().splitlines()[-1] == "KeyboardInterrupt"
        assert Path(f"{log}-own").read_text() == "kept"  # at an ordinary end, Python itself may lose it
        assert int(ended.stdout) > 50_000
    else:
        assert (ended.returncode, ended.stderr) == (0, "")
        assert int(ended.stdout) < 10_000  # Python 3.12 freezes some hundred objects itself
