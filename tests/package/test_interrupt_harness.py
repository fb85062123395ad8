"""The harness of interrupts, bounded; ``python -m tests.interrupts --moments 50`` is the whole of it."""

from __future__ import annotations

import os
import random
import signal
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import polars_tadoc as tadoc
from tests import interrupts

SHORT = {
    "preview": "reads the first rows",
    "explain": "runs nothing",
    "parquet_info": "reads the ends of files",
    "of": "makes nothing",
    "is_packed": "a type",
    "is_tadoc": "a type",
    "as_text": "copies nothing",
    "as_storage": "copies nothing",
    "eq": "equals",
    "head": "extract",
    "contains_any": "count_phrase",
    "count_matches": "contains",
    "extract_all": "contains",
    "find": "contains",
    "contains_phrase": "count_phrase",
    "token_count": "reads lengths",
    "stop_words": "reads a list",
    "calibrate": "half a second of small calls",
}
"""Calls that the harness leaves out: why, or which of its calls does the same."""


def test_every_public_call_is_disturbed_or_said_to_be_short() -> None:
    source = Path(interrupts.__file__).read_text("utf-8")
    names = {name for name in tadoc.__all__ if name.islower() and callable(getattr(tadoc, name))}
    for kind in (pl.DataFrame, pl.LazyFrame, pl.Series, pl.Expr):
        names |= {name for name in dir(kind.tadoc) if not name.startswith("_")}
    missing = {name for name in names if f".{name}(" not in source} - SHORT.keys()
    assert missing == set()
    assert SHORT.keys() <= names


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_an_interrupt_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "sink_packed"
    random.seed(os.getpid())
    kind = interrupts.CALLS[name]
    monkeypatch.setitem(interrupts.CALLS, name, replace(kind, rows=4000))
    for bound in ("TOLD", "ENDED", "LEFT"):
        monkeypatch.setattr(interrupts, bound, 120.0)  # other tests run beside this one
    _, found = interrupts.run(name, 1, (signal.SIGINT, signal.SIGKILL))
    assert found.violations == []
    assert found.old + found.new == found.moments == 2
