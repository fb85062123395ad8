"""Plans whose rows stream through a call read few row groups ahead; Polars' settings come back."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.runtime.process import narrow_reading as module
from polars_tadoc.runtime.process.narrow_reading import NARROW, narrow_reading


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NARROW:
        monkeypatch.delenv(name, raising=False)


def settings() -> dict[str, str | None]:
    return {name: os.environ.get(name) for name in NARROW}


def test_settings_hold_within_and_come_back(tmp_path: Path) -> None:
    plan, none = pl.LazyFrame({"text": ["a b"]}), dict.fromkeys(NARROW)
    with narrow_reading(plan):
        assert settings() == NARROW
        with narrow_reading(plan):
            assert settings() == NARROW
        assert settings() == NARROW
    assert settings() == none
    with pytest.raises(ZeroDivisionError), narrow_reading(plan):
        raise ZeroDivisionError
    assert settings() == none
    pl.DataFrame({"text": ["a b"]}).write_parquet(tmp_path / "text.parquet")
    scan = pl.scan_parquet(tmp_path / "text.parquet")
    assert tadoc.word_count(scan.collect()["text"]).num_rows == 2
    assert scan.tadoc.word_count("text", memory_limit="1GB").collect().height == 2
    assert settings() == none


def test_settings_of_the_program_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARS_MAX_CONCURRENT_SCANS", "7")
    with narrow_reading(pl.LazyFrame({"text": ["a"]})):
        assert settings() == NARROW | {"POLARS_MAX_CONCURRENT_SCANS": "7"}
    assert os.environ["POLARS_MAX_CONCURRENT_SCANS"] == "7"


def test_what_the_program_sets_meanwhile_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    with narrow_reading(pl.LazyFrame({"text": ["a"]})):
        monkeypatch.setenv("POLARS_ROW_GROUP_PREFETCH_SIZE", "9")
    assert settings() == dict.fromkeys(NARROW) | {"POLARS_ROW_GROUP_PREFETCH_SIZE": "9"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_no_queries() -> None:
    """The thread that would put the settings back, or give the lock back, is not in the child."""
    plan = pl.LazyFrame({"text": ["a"]})
    with narrow_reading(plan), module._lock:
        child = os.fork()
        if child == 0:
            left = settings() != dict.fromkeys(NARROW) or module._lock.locked()
            os._exit(left)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert settings() == dict.fromkeys(NARROW)


def test_plans_over_object_stores_read_ahead() -> None:
    with narrow_reading(pl.scan_parquet("s3://bucket/*.parquet", schema={"text": pl.String})):
        assert settings() == dict.fromkeys(NARROW)


@pytest.mark.slow
def test_memory_of_large_row_groups_does_not_follow_the_threads(tmp_path: Path) -> None:
    """24 files with one row group of 40 MB each, and 16 threads, took 900 MB without the settings."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(COUNT), str(tmp_path)],
        env=os.environ | {"POLARS_MAX_THREADS": "16"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 300, done.stdout


COUNT = """
    import sys
    from pathlib import Path
    import polars as pl
    import polars_tadoc as tadoc

    def status(field):
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(field)) // 1000

    path = Path(sys.argv[1]) / "text.parquet"
    words = [f"word{number % 5000}" for number in range(20_000)]
    frame = pl.DataFrame({"text": [" ".join(words[at % 97 :]) for at in range(250)]})
    frame.write_parquet(path)
    pl.scan_parquet(path).tadoc.word_count("text", memory_limit="1GB").collect()
    del frame
    Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    found = pl.scan_parquet([path] * 24).tadoc.word_count("text", memory_limit="1GB").collect()
    print(status("VmHWM") - before)
"""
