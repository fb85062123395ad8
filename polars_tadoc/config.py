"""Process-wide defaults: engine, threads, cache budgets, limits."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, replace
from types import TracebackType
from typing import Any, Literal, get_args

EngineName = Literal["auto", "cpu", "gpu"]
DeviceMemory = Literal["auto", "device", "unified"]
ColumnType = Literal["text", "struct"]


MOST = 1 << 56
"""Largest limit or budget: sums that are held to it stay far from wrapping 64 bits."""


@dataclass(frozen=True)
class Settings:
    """The values in force; read one with :func:`settings`."""

    engine: EngineName = "auto"
    threads: int = 0
    """CPU threads; 0 is one for each core this process may use."""
    host_cache_bytes: int = 2 << 30
    """Budget of the LRU of decoded grammars in host memory, once more of the tables kept with their rules, and for an
    eighth of it again of payloads made for unpacked rows."""
    device_cache_bytes: int = 4 << 30
    """Budget of the LRU of grammars resident on the GPU."""
    expansion_limit: int = 1 << 31
    """Words that one rule, or the rows of one decompress or recompress call, may stand for; bytes: 16 times as many."""
    payload_limit_bytes: int = 4 << 30
    """Decoded size that one grammar payload may declare, and that the copies of grammars made by one pack may have."""
    device_memory: DeviceMemory = "auto"
    """Where arrays on a GPU are: in its own memory, or in memory that it shares with the host."""
    spill_folder: str | None = None
    """Where what does not fit in ``memory_limit`` is written; None: where the system has its temporary files."""

    column_type: ColumnType = "text"
    """Type of compressed columns that no other column gives a type to: ``tadoc.Text``, or the bare struct under it."""

    def __post_init__(self) -> None:
        named = {
            "engine": get_args(EngineName),
            "device_memory": get_args(DeviceMemory),
            "column_type": get_args(ColumnType),
        }
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in named:
                if value not in named[field.name]:
                    raise ValueError(f'{field.name}="{value}" is not one of {", ".join(named[field.name])}')
            elif field.name == "spill_folder":
                path = os.fspath(value) if isinstance(value, os.PathLike) else value
                if path is not None and (not isinstance(path, str) or not path or re.match(r"\w+://", path)):
                    raise ValueError(f"spill_folder={value!r} must be the path of a folder of this machine, or None")
                object.__setattr__(self, field.name, None if path is None else os.path.expanduser(path))
            elif not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
                raise ValueError(f"{field.name}={value!r} must be an integer from 0 to 2^56")
        if self.threads > 1024:
            raise ValueError(f"threads={self.threads} must be at most 1,024")


_current = Settings()
_lock = threading.Lock()


_checks: list[Callable[[], None]] = []


def check_each_call(check: Callable[[], None]) -> Callable[[], None]:
    """Let a check run whenever settings are asked for, which every call does; it raises where no call can run."""
    _checks.append(check)
    return check


def settings() -> Settings:
    """Return the settings in force; all calls ask for them.

    Raises
    ------
    ForkedProcessError
        No call can run in this process.

    """
    for check in _checks:
        check()
    return _current


_own = threading.local()


@contextmanager
def own_threads(count: int) -> Iterator[None]:
    """Keep parallel kernels that this thread calls on so many threads; on 1, they stay on this one."""
    before = own_count()
    _own.threads = count
    try:
        yield
    finally:
        _own.threads = before


def own_count() -> int:
    """Return what :func:`own_threads` said in this thread; 0 where it said nothing."""
    return int(getattr(_own, "threads", 0))


def one_thread() -> AbstractContextManager[None]:
    """Keep parallel kernels that this thread calls on this thread."""
    return own_threads(1)


def thread_count() -> int:
    """Return how many CPU threads a parallel kernel uses."""
    return (
        own_count()
        or _current.threads
        or len(os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1))
    )


def _require_known(options: Iterable[str]) -> None:
    known = {field.name for field in fields(Settings)}
    unknown = sorted(set(options) - known)
    if unknown:
        raise TypeError(f"Config has no option {unknown[0]!r}; there are {', '.join(sorted(known))}")


class Config:
    """Set defaults for the whole process, or until the end of a ``with`` block (for all threads alike).

    Parameters
    ----------
    **options
        ``engine`` ("auto", "cpu", "gpu"), ``threads`` (0: one per core), ``host_cache_bytes``,
        ``device_cache_bytes`` (budgets of the grammar caches; in host memory as much again for tables
        of rules), ``expansion_limit`` (words that one rule, or the rows of one decompress or recompress
        call, may stand for), ``payload_limit_bytes`` (decoded size one grammar may declare, and the copies of
        grammars that come again in one pack may have), ``device_memory`` (arrays on a GPU are in its own memory,
        "device", or in managed memory, which may be larger than the GPU's, "unified"; "auto": managed memory on a GPU
        that shares the host's, and else its own), ``spill_folder`` (the path of a folder, for what does not fit in
        ``memory_limit``; None: the system's folder for temporary files), ``column_type`` (what ``compress``,
        ``unpack`` and ``scan_packed`` return: "text", ``tadoc.Text``, or "struct", ``tadoc.STORAGE``, for tools that
        take no extension types).

    Examples
    --------
    >>> import polars_tadoc as tadoc
    >>> with tadoc.Config(engine="cpu", threads=1):
    ...     tadoc.Config.get("engine")
    'cpu'
    >>> tadoc.Config.get("engine")
    'auto'

    """

    def __init__(self, **options: Any) -> None:
        _require_known(options)
        replace(_current, **options)  # raises now, not on entry
        self._options = options
        self._before: list[dict[str, Any]] = []

    @staticmethod
    def set(**options: Any) -> None:
        """Change options for the whole process; the same names as the constructor's."""
        Config(**options).__enter__()

    @staticmethod
    def get(option: str) -> Any:
        """Return the value of an option."""
        _require_known([option])
        return getattr(_current, option)

    @staticmethod
    def reset() -> None:
        """Put every option back to its default."""
        global _current
        with _lock:
            _current = Settings()

    def __enter__(self) -> Config:
        global _current
        with _lock:
            self._before.append({name: getattr(_current, name) for name in self._options})
            _current = replace(_current, **self._options)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        global _current
        with _lock:
            _current = replace(_current, **self._before.pop())
