"""Process-wide defaults: engine, threads, cache budgets, limits."""

from __future__ import annotations

import difflib
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar, get_args

EngineName = Literal["auto", "cpu", "gpu"]
DeviceMemory = Literal["auto", "device", "unified"]
ColumnType = Literal["text", "struct"]
Given = TypeVar("Given")
Result = TypeVar("Result")


MOST = 1 << 56
"""Maximum value of a limit or budget: sums below it cannot exceed 64 bits."""


@dataclass(frozen=True)
class Settings:
    """The current values; read them with :func:`settings`."""

    engine: EngineName = "auto"
    threads: int = 0
    """CPU threads; 0: one per core that this process may use."""
    host_cache_bytes: int = 2 << 30
    """Budget of the LRU cache of decoded grammars in host memory; the tables of their rules, columns that calls have
    split, and grammars joined into one have a budget of the same size each, and payloads made for unpacked rows an
    eighth. Another eighth is freed work space that later calls use again."""
    device_cache_bytes: int = 4 << 30
    """Budget of the LRU cache of grammars, and of rows of columns that live, on the GPU."""
    expansion_limit: int = 1 << 31
    """Maximum words of one rule, or the rows of one decompress or recompress call; bytes: 16 times that. A 32nd of it
    where very few symbols store the rows."""
    payload_limit_bytes: int = 4 << 30
    """Maximum decoded size of one grammar payload, and of the copies of grammars made by one pack."""
    device_memory: DeviceMemory = "auto"
    """Memory for arrays on a GPU: its own, or memory that it shares with the host."""
    spill_folder: str | None = None
    """Folder for data that exceeds ``memory_limit``; None: the system's folder for temporary files."""

    calibration_file: str | None = None
    """File of the costs that ``tadoc.calibrate()`` measures; None: ``polars_tadoc/calibration.json`` in the user's
    cache folder."""

    column_type: ColumnType = "text"
    """Type of new compressed columns: ``tadoc.Text``, or the bare struct under it."""

    progress: bool = False
    """Whether calls show a progress bar on standard error."""

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
            elif field.name in ("spill_folder", "calibration_file"):
                path = os.fspath(value) if isinstance(value, os.PathLike) else value
                if path is not None and (not isinstance(path, str) or not path or re.match(r"\w+://", path)):
                    what = "folder" if field.name == "spill_folder" else "file"
                    raise ValueError(f"{field.name}={value!r} must be the path of a local {what}, or None")
                object.__setattr__(self, field.name, None if path is None else os.path.expanduser(path))
            elif field.name == "progress":
                if not isinstance(value, bool):
                    raise ValueError(f"progress={value!r} must be True or False")
            elif not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
                raise ValueError(f"{field.name}={value!r} must be an integer from 0 to 2^56")
        if self.threads > 1024:
            raise ValueError(f"threads={self.threads} must be at most 1,024")


_current = Settings()
_base: dict[str, Any] = {}
"""Options set by ``Config.set``."""
_layers: list[dict[str, Any]] = []
"""Options of the blocks that are entered, the latest last: each removes its own, in whatever order they end."""
_lock = threading.Lock()


def _apply() -> None:
    """Make the settings anew; requires the lock."""
    global _current
    _current = replace(Settings(), **{name: value for layer in (_base, *_layers) for name, value in layer.items()})


_checks: list[Callable[[], None]] = []


def check_each_call(check: Callable[[], None]) -> Callable[[], None]:
    """Run a check whenever settings are read, as every call does; it raises if no call can run."""
    _checks.append(check)
    return check


def settings() -> Settings:
    """Return the current settings; every call reads them.

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
    """Limit parallel kernels called by this thread to ``count`` threads; with 1, they run on this one."""
    before = own_count()
    _own.threads = count
    try:
        yield
    finally:
        _own.threads = before


def own_count() -> int:
    """Return the limit of :func:`own_threads` in this thread; 0 if there is none."""
    return int(getattr(_own, "threads", 0))


@contextmanager
def showing(progress: object) -> Iterator[None]:
    """Show bars of calls by this thread, or none, whatever ``Config(progress=)`` says; None: as before.

    Raises
    ------
    TypeError
        The value is neither a bool nor None.

    """
    if progress is not None and not isinstance(progress, bool):
        raise TypeError(f"progress={progress!r} must be True or False")
    before = asked_progress()
    _own.progress = before if progress is None else progress
    try:
        yield
    finally:
        _own.progress = before


def asked_progress() -> bool | None:
    """Return what :func:`showing` says in this thread; plans keep it from when they are made until they run."""
    return getattr(_own, "progress", None)


def shows_progress() -> bool:
    """Tell whether a call by this thread shows a bar."""
    asked, default = asked_progress(), settings().progress
    return default if asked is None else asked


def as_asked(function: Callable[[Given], Result]) -> Callable[[Given], Result]:
    """Return a function for a plan, which shows a bar if this thread's call asks for it now.

    It refuses ``return_dtype=``, which Polars tries first: before the bar is shown, not within it.
    """
    asked = asked_progress()

    def call(given: Given) -> Result:
        with showing(asked):
            return function(given)

    return call


def one_thread() -> AbstractContextManager[None]:
    """Run parallel kernels called by this thread on this thread."""
    return own_threads(1)


def thread_count() -> int:
    """Return the number of CPU threads of a parallel kernel."""
    return own_count() or all_threads()


def all_threads() -> int:
    """Return the number of CPU threads of calls without a limit of their own."""
    own = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return _current.threads or len(own)


def _require_known(options: Iterable[str]) -> None:
    known = {field.name for field in fields(Settings)}
    unknown = sorted(set(options) - known)
    if unknown:
        near = "".join(f"did you mean {name}? " for name in difflib.get_close_matches(unknown[0], sorted(known), n=1))
        raise TypeError(f"Config has no option {unknown[0]!r}; {near}options are {', '.join(sorted(known))}")


def _require_folder(path: str | None) -> None:
    if path is not None and not os.path.isdir(path):
        problem = "is a file; " if os.path.exists(path) else "does not exist; create it, or "
        error = NotADirectoryError if os.path.exists(path) else FileNotFoundError
        raise error(f'Config: spill_folder="{path}" {problem}give the path of an existing folder')


class Config:
    """Set defaults for the whole process, or until the end of a ``with`` block (in all threads).

    Parameters
    ----------
    **options
        - ``engine``: "auto", "cpu" or "gpu".
        - ``threads``: CPU threads; 0: one per core.
        - ``host_cache_bytes`` and ``device_cache_bytes``: budgets of the grammar caches; on a GPU, rows of columns that
          calls have read are part of it. In host memory, tables of rules have another budget of that
          size, and so do such columns; an eighth more is work space that calls have freed, for later ones.
        - ``expansion_limit``: maximum words that one rule, or the rows of one decompress or recompress call, expand to.
        - ``payload_limit_bytes``: maximum decoded size of one grammar, and of repeated copies of grammars in one pack.
        - ``device_memory``: memory for arrays on a GPU: "device", its own; "unified", managed memory, which may be
          larger than the GPU's; "auto", managed memory on a GPU that shares the host's, otherwise its own.
        - ``spill_folder``: path of a folder for data that exceeds ``memory_limit``; None: the system's folder for
          temporary files.
        - ``calibration_file``: path of the file in which :func:`polars_tadoc.calibrate` keeps this machine's costs;
          None: one in the user's cache folder.
        - ``column_type``: type of columns that ``compress``, ``unpack`` and ``scan_packed`` return: "text",
          ``tadoc.Text``, or "struct", ``tadoc.STORAGE``, for tools without extension types.
        - ``progress``: whether calls that may take seconds show a bar (tqdm) on standard error: done rows, rate, time
          left. Their own ``progress=`` precedes it.

    Raises
    ------
    TypeError
        An option is unknown.
    ValueError
        A value is out of range.
    FileNotFoundError, NotADirectoryError
        ``spill_folder`` is not an existing folder.

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
        checked = replace(_current, **options)  # raises now, not on entry
        if "spill_folder" in options:
            _require_folder(checked.spill_folder)
        self._options = options
        self._entered: list[dict[str, Any]] = []

    @staticmethod
    def set(**options: Any) -> None:
        """Change options for the whole process.

        Parameters
        ----------
        **options
            Options of the constructor, by name.

        Raises
        ------
        TypeError, ValueError, OSError
            As the constructor.

        Examples
        --------
        >>> import polars_tadoc as tadoc
        >>> tadoc.Config.set(threads=1)
        >>> tadoc.Config.get("threads")
        1
        >>> tadoc.Config.reset()

        """
        made = Config(**options)
        with _lock:
            _base.update(made._options)
            for layer in _layers:  # this holds at once, and after the blocks
                for name in made._options:
                    layer.pop(name, None)
            _apply()

    @staticmethod
    def get(option: str) -> Any:
        """Return the value of an option.

        Parameters
        ----------
        option
            Its name.

        Returns
        -------
        int, str or None
            The current value.

        Raises
        ------
        TypeError
            The option is unknown.

        Examples
        --------
        >>> import polars_tadoc as tadoc
        >>> tadoc.Config.get("expansion_limit")
        2147483648

        """
        _require_known([option])
        return getattr(_current, option)

    @staticmethod
    def reset() -> None:
        """Reset every option to its default.

        Examples
        --------
        >>> import polars_tadoc as tadoc
        >>> tadoc.Config.set(engine="cpu")
        >>> tadoc.Config.reset()
        >>> tadoc.Config.get("engine")
        'auto'

        """
        with _lock:
            _base.clear()
            _layers.clear()
            _apply()

    def __enter__(self) -> Config:
        with _lock:
            self._entered.append(dict(self._options))
            _layers.append(self._entered[-1])
            _apply()
        return self

    def __exit__(self, *_: object) -> None:
        with _lock:
            own = self._entered.pop()
            _layers[:] = [layer for layer in _layers if layer is not own]
            _apply()
