"""What CuPy takes of a memory limit: counted before it is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.analytics.word_count import WordCountRequest
from polars_tadoc.engine import choose as engine
from polars_tadoc.engine import host_memory as engine_memory
from polars_tadoc.engine.host_memory import GPU_BYTES, share_out, telling_share
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.execute import plan
from tests import ROOT

ENOUGH = engine_memory.WORK_SHARE * GPU_BYTES

FAKE = "print('imported')\nraise ImportError('this is a fake')\n"

CALLS = """
import sys
import polars as pl
import polars_tadoc as tadoc
from polars_tadoc import engine
from polars_tadoc.execute.analytic import Analytic

Analytic.gpu_repays_at = 0
engine.choose.__defaults__ = (0,)
lf = pl.LazyFrame({"text": ["to be or not to be", "to do"]}).tadoc.compress("text")
lf.tadoc.sink_packed(sys.argv[1])
scan, limit = tadoc.scan_packed(sys.argv[1]), sys.argv[2]
for plan in (lf, scan):
    plan.tadoc.word_count("text", memory_limit=limit).collect()
    plan.tadoc.tfidf("text", memory_limit=limit).collect()
scan.tadoc.sink_index(sys.argv[1] + ".index", memory_limit=limit)
print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "said"), [("799MB", ["done"]), ("1GB", ["imported", "done"])])
def test_auto_imports_cupy_where_the_limit_leaves_room(limit: str, said: list[str], tmp_path: Path) -> None:
    (tmp_path / "cupy").mkdir()
    (tmp_path / "cupy" / "__init__.py").write_text(FAKE)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", CALLS, str(tmp_path / "rows.parquet"), limit],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(dict.fromkeys(done.stdout.split())) == said  # threads may try the import at once


@pytest.mark.parametrize("installed", [False, True])
def test_shares(installed: bool) -> None:
    with patch.object(engine_memory, "_is_installed", return_value=installed):
        auto = ("auto", ENOUGH - GPU_BYTES) if installed else ("cpu", ENOUGH)
        assert share_out("auto", ENOUGH, "call") == share_out(None, ENOUGH, "call") == auto
        assert share_out("auto", ENOUGH - 1, "call") == ("cpu", ENOUGH - 1)
        assert share_out("cpu", ENOUGH, "call") == ("cpu", ENOUGH)
        assert share_out("gpu", GPU_BYTES + 5, "call") == ("gpu", 5)
        with tadoc.Config(engine="cpu"):
            assert share_out(None, ENOUGH, "call") == ("cpu", ENOUGH)


def test_a_gpu_asked_for_by_name_is_refused() -> None:
    """When the call is made, before any row is read."""
    lf = pl.LazyFrame({"text": ["to be"]}).tadoc.compress("text")
    with patch.object(engine.cuda, "device_problem", return_value=None):
        for call in ("word_count", "cooccurrence", "tfidf", "sink_index"):
            target = ["nowhere"] if call == "sink_index" else []
            with pytest.raises(LimitExceededError, match=rf'{call}: engine="gpu": CuPy .* memory_limit=400,000,000'):
                getattr(lf.tadoc, call)(*target, engine="gpu", memory_limit=GPU_BYTES)


def test_refusals_tell_what_the_gpu_leaves() -> None:
    said = r'more \(memory_limit=9 leaves .* about 5 bytes; engine="cpu"'
    with pytest.raises(LimitExceededError, match=said), telling_share(9, 4):
        raise LimitExceededError("more")
    with pytest.raises(LimitExceededError, match=r"more$"), telling_share(9, 9):
        raise LimitExceededError("more")


@pytest.mark.parametrize(
    ("repays_at", "word_bytes", "expected"), [(50, 1, "auto"), (51, 1, "cpu"), (50, 1 << 40, "cpu")]
)
def test_footers_decide(repays_at: float, word_bytes: int, expected: str) -> None:
    """The limit is not shared with a GPU that repays on no partition, nor where one would not fit any more."""

    class Question:
        limit, scan = None, type("Scan", (), {"skips": False})

        def grammar_sizes(self) -> list[tuple[str, int, int]]:
            return [("a", 10, 1), ("b", 50, word_bytes)]

    asked = WordCountRequest.from_arguments()
    with (
        patch.object(engine_memory, "_is_installed", return_value=True),
        patch.object(WordCountRequest, "gpu_repays_at", repays_at),
    ):
        own, room = plan._shared_out(asked, ENOUGH, Question())  # type: ignore[arg-type]
    assert own.options.engine == expected
    assert room == (ENOUGH if expected == "cpu" else ENOUGH - GPU_BYTES)
