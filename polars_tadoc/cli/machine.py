"""``tadoc doctor``, ``calibrate`` and ``warmup``: this machine."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator
from dataclasses import fields
from importlib import metadata
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc
from polars_tadoc.cli.writing import Writing

DEFAULT = Writing()
PACKAGES = ["polars", "pyarrow", "numpy", "numba", "llvmlite", "tqdm", "cyclopts", "rich", "scipy", "scikit-learn"]
PACKAGES += ["altair", "obstore", "pyspark", "cupy-cuda12x", "cupy-cuda13x"]
VARIABLES = ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "TMPDIR", "POLARS_MAX_THREADS", "CUDA_VISIBLE_DEVICES", "CUDA_PATH"]


def doctor(*, writing: Writing = DEFAULT) -> int:
    """Show versions, the GPU, folders of caches and limits, and try a small job: what a bug report needs.

    The exit code is 2 if the job fails.

    Examples
    --------
    $ tadoc doctor

    $ tadoc doctor --shape ndjson > doctor.ndjson

    """
    rows = [*_versions(), *_hardware(), *_caches(), *_limits()]
    job, works = _small_job()
    schema = {"part": pl.String, "name": pl.String, "value": pl.String}
    writing.write(pl.DataFrame([*rows, ("job", "compress, count, decompress", job)], schema, orient="row"))
    return 0 if works else 2


def _versions() -> Iterator[tuple[str, str, str]]:
    yield "version", "polars_tadoc", tadoc.__version__
    yield "version", "Python", f"{platform.python_version()} ({sys.implementation.name})"
    yield "version", "system", platform.platform()
    for name in PACKAGES:
        try:
            yield "version", name, metadata.version(name)
        except metadata.PackageNotFoundError:
            yield "version", name, "not installed"


def _hardware() -> Iterator[tuple[str, str, str]]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield "machine", "processor", f"{platform.processor() or platform.machine()}, {usable} of {os.cpu_count()} cores"
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        pages, free = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_AVPHYS_PAGES")
        size = os.sysconf("SC_PAGE_SIZE")
        yield "machine", "memory", f"{pages * size / 1e9:.1f} GB, {free * size / 1e9:.1f} GB free"
    try:
        tadoc.word_count(pl.Series(["a"]), engine="gpu")
        yield "machine", "GPU", "works"
    except tadoc.errors.EngineUnavailableError as error:
        yield "machine", "GPU", str(error)


def _caches() -> Iterator[tuple[str, str, str]]:
    from polars_tadoc.runtime.machine_code import folders

    shipped = sorted(path.name for path in folders.SHIPPED.glob("*/")) if folders.SHIPPED.is_dir() else []
    yield "cache", "machine code in the package", ", ".join(shipped) or "none: kernels are compiled on first use"
    for folder in folders.readable():
        yield "cache", "machine code", f"{folder} ({sum(1 for _ in folder.glob('*/*')):,} files)"
    named = tadoc.Config.get("calibration_file")
    yield "cache", "calibration", "shipped costs, or the user's own" if named is None else named
    for name in VARIABLES:
        if name in os.environ:
            yield "cache", name, os.environ[name]


def _limits() -> Iterator[tuple[str, str, str]]:
    from polars_tadoc.config import Settings

    for field in fields(Settings):
        value = tadoc.Config.get(field.name)
        yield (
            "setting",
            field.name,
            str(value) if isinstance(value, bool) or not isinstance(value, int) else f"{value:,}",
        )


def _small_job() -> tuple[str, bool]:
    """Compress a column, count its words and restore it; return what happened, and whether all was right."""
    text = pl.Series("text", ["to be or not to be", "to do is to be", None] * 10)
    started = time.perf_counter()
    try:
        with tadoc.Config(progress=False):
            column = tadoc.compress(text)
            counted = tadoc.word_count(column, top=1).to_pylist() == [{"word": "to", "count": 40}]
            restored = tadoc.decompress(column).equals(text)
    except Exception as error:  # whatever is wrong here is the answer
        return f"fails: {type(error).__name__}: {error}", False
    right = counted and restored
    return f"{'right' if right else 'WRONG RESULT'}, {time.perf_counter() - started:.2f} s", right


def calibrate(*, writing: Writing = DEFAULT) -> None:
    """Measure this machine's costs, which choose strategies and engines; takes some seconds.

    Other programs should rest meanwhile.

    Examples
    --------
    $ tadoc calibrate

    """
    writing.write(tadoc.calibrate())


def warmup(*, processes: int | None = None, demo: bool = False) -> None:
    """Compile all kernels that are not compiled yet, so that no call waits for it.

    Parameters
    ----------
    processes
        Number of processes; by default one per core.
    demo
        Compile only the kernels that the demo runs.

    Examples
    --------
    $ tadoc warmup --processes 4

    """
    from polars_tadoc.runtime.machine_code.build import warm_up

    warm_up(processes or os.cpu_count() or 1, demo)


def version() -> str:
    """Return the package's version and place."""
    return f"polars_tadoc {tadoc.__version__} ({Path(tadoc.__file__).parent})"
