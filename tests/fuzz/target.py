"""What a fuzz target is, and what all of them hold the package to."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc
from polars_tadoc.errors import TadocError

MAX_WORDS = 1 << 14
MAX_DECODED = 1 << 22
"""Limits that targets set: an input whose answer would take longer than fuzzing has must be refused by name."""


@dataclass(frozen=True)
class Target:
    """One form of input.

    Parameters
    ----------
    name
        As it is called on the command line; also that of its corpus.
    check
        Takes an input, and tells whether the package accepted it; any error or crash is a finding.
    seeds
        Inputs to start from.
    tokens
        What stands in such inputs, for the fuzzer to put in.
    most_bytes
        Longest input.

    """

    name: str
    check: Callable[[bytes], bool]
    seeds: Iterable[bytes]
    tokens: Sequence[str] = ()
    most_bytes: int = 1 << 10

    def run(self, data: bytes) -> bool:
        """Check an input within the limits; warnings are errors. Returns whether it was accepted."""
        limits = {"expansion_limit": MAX_WORDS, "payload_limit_bytes": MAX_DECODED, "host_cache_bytes": MAX_DECODED}
        with tadoc.Config(engine="cpu", threads=1, **limits), warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                return self.check(data[: self.most_bytes])
            except pl.exceptions.PanicException as error:  # of Rust code: no Exception
                raise AssertionError(f"Polars panicked: {error}") from error


class Refused(Exception):  # noqa: N818 - it never leaves a target
    """The package refused the input by one of its own errors."""


@contextmanager
def may_refuse() -> Iterator[None]:
    """Turn the package's own errors into ``Refused``."""
    try:
        yield
    except TadocError as error:
        raise Refused from error


@cache
def folder() -> Path:
    """A folder for files of inputs, in memory where there is room for them; it goes with the process."""
    memory = Path("/dev/shm")
    made = tempfile.TemporaryDirectory(prefix="tadoc-fuzz-", dir=memory if memory.is_dir() else None)
    _kept.append(made)
    return Path(made.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []
