"""Modules that are imported on first use: whole, also when an interrupt comes meanwhile."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from polars_tadoc.runtime.process.whole_import import import_whole

INTERRUPTED = """
import os, signal
class Dropped:
    def __del__(self):  # what an interrupt raises here is printed and dropped, as in a callback of Python's imports
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            pass
Dropped()
end = 1
"""


@pytest.fixture(autouse=True)
def _modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "tadoc_interrupted.py").write_text(INTERRUPTED)
    (tmp_path / "tadoc_outer.py").write_text(
        "from polars_tadoc.runtime.process.whole_import import import_whole\ninner = import_whole('tadoc_inner').end\n"
    )
    (tmp_path / "tadoc_inner.py").write_text("import tadoc_outer\nend = 2\n")
    before, handler = set(sys.modules), signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_an_interrupt_waits_for_the_end_of_an_import() -> None:
    with pytest.raises(KeyboardInterrupt):
        import_whole("tadoc_interrupted")
    assert sys.modules["tadoc_interrupted"].end == 1


def test_modules_that_import_each_other_do_not_wait() -> None:
    __import__("tadoc_outer")
    assert sys.modules["tadoc_outer"].inner == 2


FIRST_CALL = """
import os, signal, sys
import polars as pl
import polars_tadoc as tadoc

signal.signal(signal.SIGINT, signal.default_int_handler)
sent = []

def interrupt(event, arguments):
    if event == "import" and arguments[0] == "numba.core.errors" and not sent:
        sent.append(os.kill(os.getpid(), signal.SIGINT))

sys.addaudithook(interrupt)
try:
    pl.Series.tadoc
except KeyboardInterrupt:
    print("told")
print(pl.Series.tadoc.__name__, tadoc.compress.__name__, len(sent))
"""


@pytest.mark.slow
def test_a_first_call_that_was_interrupted_can_be_made_again() -> None:
    """Numba cannot be imported again once an interrupt has divided its import."""
    done = subprocess.run([sys.executable, "-c", FIRST_CALL], capture_output=True, text=True, check=False)
    assert (done.stdout.splitlines(), done.returncode) == (["told", "TadocSeries compress 1"], 0), done.stderr
