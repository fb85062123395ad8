"""A CuPy that cannot be imported or used, by whatever error: "auto" takes the CPU, "gpu" names the cause."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.engine import choose as engine
from polars_tadoc.errors import BrokenCuPyWarning, EngineUnavailableError
from polars_tadoc.runtime import device

FAULTS = {
    "raise RuntimeError('no driver for it')": "RuntimeError: no driver for it",
    "raise OSError('libcuda.so.1: cannot open shared object file')": r"OSError: libcuda\.so\.1: cannot open",
    "raise SystemError('initialization failed')": "SystemError: initialization failed",
    "": "AttributeError: .*'cuda'",
    "class cuda:\n class runtime:\n  CUDARuntimeError = ValueError\n  getDeviceCount = {}.popitem": "KeyError",
}


@pytest.fixture(params=FAULTS)
def cause(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "cupy.py").write_text(request.param)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    device.device_problem.cache_clear()
    device._warn_once.cache_clear()
    yield FAULTS[request.param]
    sys.modules.pop("cupy", None)
    device.device_problem.cache_clear()
    device._warn_once.cache_clear()


def test_auto_takes_the_cpu(cause: str) -> None:
    text = pl.Series("text", ["to be or not to be "] * 60_000)
    with pytest.warns(BrokenCuPyWarning, match=rf"uses the CPU: CuPy .* cannot be used \({cause}") as told:
        column = text.tadoc.compress(method="batch_repair", engine="auto")
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        assert engine.choose("auto", 1 << 30) is engine.CPU
        assert tadoc.word_count(column, engine="auto").to_pydict()["word"] == ["be", "to", "not", "or"]


def test_gpu_names_the_cause(cause: str) -> None:
    column = pl.Series("text", ["to be"]).tadoc.compress(engine="cpu")
    for call in (
        lambda: tadoc.word_count(column, engine="gpu"),
        lambda: pl.Series("text", ["to be"]).tadoc.compress(method="batch_repair", engine="gpu"),
    ):
        with pytest.raises(EngineUnavailableError, match=rf'^engine="gpu": CuPy .* cannot be used \({cause}'):
            call()
    if "cupy" not in sys.modules:
        with pytest.raises(EngineUnavailableError, match=cause), device.device_errors("counting"):
            pytest.fail("it can be used")


def test_workers_name_the_cause(cause: str) -> None:
    with pytest.raises(EngineUnavailableError, match=rf"gpus='all': 0 GPUs are visible: CuPy .* \({cause}"):
        tadoc.distributed.Workers(gpus="all")


def test_small_work_does_not_look(cause: str) -> None:
    assert cause
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tadoc.word_count(pl.Series("text", ["to be"]).tadoc.compress()).num_rows == 2
