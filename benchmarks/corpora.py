"""Finds the texts that benchmarks run on, and says on what machine."""

from __future__ import annotations

import argparse
import os
import platform
from pathlib import Path

import polars as pl

ROOT = Path(__file__).parent.parent
SHARED = Path(os.environ.get("TADOC_CORPORA", ROOT.parent / "shared" / "corpora"))
SAMPLES = ROOT / "examples" / "data"
STANDARD = ["logs_dmesg", "versioned_longhorn", "docs_peps", "prose_books"]


def arguments(description: str) -> argparse.ArgumentParser:
    """Parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "corpora",
        nargs="*",
        help="Parquet files with a column text, or names in the shared corpora folder (default: the standard four); "
        "joined by + they are read as one",
    )
    parser.add_argument("--repeat", type=int, default=7, help="rounds; each runs every contender once")
    return parser


def load(name: str) -> tuple[str, pl.Series]:
    """Return a corpus' short name and its texts in one chunk; corpora joined by ``+`` become one."""
    if "+" in name:
        parts = [load(part) for part in name.split("+")]
        return "+".join(part for part, _ in parts), pl.concat([text for _, text in parts]).rechunk()
    path = Path(name) if name.endswith(".parquet") else SHARED / f"{name}.parquet"
    return path.stem, pl.read_parquet(path, columns=["text"])["text"].rechunk()


def names(given: list[str], default: list[str] = STANDARD) -> list[str]:
    """Resolve what to run on: as given, else the default corpora, else the samples in the tree."""
    if given:
        return given
    if SHARED.is_dir():
        return default
    return sorted(str(path) for path in SAMPLES.glob("*.parquet"))


def machine() -> str:
    """One line about where this runs."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{model}, {cores} cores, Python {platform.python_version()}, Polars {pl.__version__}"
