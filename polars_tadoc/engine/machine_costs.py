"""Factors of predicted costs on this machine: measured by ``tadoc.calibrate()``, then observed.

Shipped costs were fitted on one machine (:mod:`polars_tadoc.traversal.costs`, :mod:`polars_tadoc.index.query.costs`). A
calibration has a factor for each of them; it is JSON in a user's file, which is not trusted: its size, types, names and
ranges are checked, and a file with anything else is ignored with one warning. Observed times correct predictions within
a process.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import threading
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from pathlib import Path

from polars_tadoc.config import settings
from polars_tadoc.errors import CalibrationWarning
from polars_tadoc.runtime.cache_folder import cache_folder
from polars_tadoc.runtime.permissions import PRIVATE_FOLDER
from polars_tadoc.runtime.regular_file import open_regular
from polars_tadoc.storage.atomic_write import atomic_file, target

FORMAT = "polars_tadoc calibration 1"

MAX_BYTES = 1 << 16
"""Bytes of a file that are read."""

MAX_FACTOR = 1e4
"""Bound of factors; their inverse is bounded, too."""

NAME = re.compile(r"(cpu|gpu)( [a-z_]{1,40}){2}")
"""Names of factors: engine, family and strategy, or engine, "queries" and mode."""

KINDS = ("rows", "text", "words")
"""Units from which on "auto" takes a GPU: symbols of rows, characters that are compressed, words of a dictionary."""

MAX_UNITS = 1e18

LEAST = 0.002
"""Seconds of a prediction from which on an observed time corrects it."""

SHARE = 0.2
"""Weight of the last observation, on a logarithmic scale."""

MAX_CORRECTION = 8.0


@dataclass(frozen=True)
class MachineCosts:
    """A calibration; without one, nothing is multiplied."""

    processor: str = ""
    factors: Mapping[str, float] = field(default_factory=dict)
    """By name (``NAME``)."""
    overheads: Mapping[str, float] = field(default_factory=dict)
    """By engine: seconds of a batch of queries, whatever its size."""
    repays_at: Mapping[str, float] = field(default_factory=dict)
    """By kind (``KINDS``)."""

    def to_json(self) -> str:
        """Return the content of a file."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: bytes) -> MachineCosts:
        """Read the content of a file.

        Raises
        ------
        ValueError
            It is not a calibration; the message says why.

        """
        try:
            found = json.loads(text)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise ValueError(f'it is not "{FORMAT}"')
        if set(found) != {"format", "processor", "factors", "overheads", "repays_at"}:
            raise ValueError("it has other fields than a calibration")
        if not isinstance(found["processor"], str) or len(found["processor"]) > 200:
            raise ValueError("processor is not a short string")
        bounds = {"factors": (1 / MAX_FACTOR, MAX_FACTOR), "overheads": (0.0, 10.0), "repays_at": (1.0, MAX_UNITS)}
        for name, (least, most) in bounds.items():
            numbers = found[name]
            if not isinstance(numbers, dict):
                raise ValueError(f"{name} is not an object")
            for key, value in numbers.items():
                known = {"factors": NAME.fullmatch(key), "overheads": key in ("cpu", "gpu"), "repays_at": key in KINDS}
                if not known[name]:
                    raise ValueError(f"{name} has an unknown name")
                if type(value) not in (int, float) or not least <= value <= most:
                    raise ValueError(f"{name}: {key} is not a number from {least:g} to {most:g}")
        return cls(**{name: found[name] for name in found if name != "format"})


SHIPPED = MachineCosts()

_lock = threading.Lock()
_observed: dict[str, float] = {}
_seen: set[str] = set()
_warned: set[str] = set()


def calibration_file() -> Path:
    """Return the file of the calibration: ``Config(calibration_file=)``, or one in the user's cache folder."""
    named = settings().calibration_file
    if named is not None:
        return Path(named)
    return (cache_folder("polars_tadoc") or Path(__file__).parents[1]) / "calibration.json"


@cache
def processor() -> str:
    """Name this machine's processor and the number of its cores: a calibration is for one processor."""
    name = platform.processor() or platform.machine()
    with suppress(OSError), open_regular(Path("/proc/cpuinfo")) as file:
        found = re.search(rb"model name\s*:\s*([^\n]{1,150})", file.read(1 << 14))
        name = found[1].decode(errors="replace") if found else name
    return f"{name[:150]}, {os.cpu_count()} cores"


def in_force() -> MachineCosts:
    """Return the calibration that holds for this process; ``SHIPPED`` without one."""
    return _read(calibration_file_name())[0]


def described() -> str:
    """Say which costs are in force."""
    with _lock:
        corrected = f"; {len(_observed)} corrected by observed times" if _observed else ""
    return _read(calibration_file_name())[1] + corrected


def calibration_file_name() -> str:
    """Return :func:`calibration_file` as a string; it is asked for often."""
    named = settings().calibration_file
    return _default_name() if named is None else named


@cache
def _default_name() -> str:
    return str(calibration_file())


@lru_cache(maxsize=8)
def _read(name: str) -> tuple[MachineCosts, str]:
    path = Path(name)
    try:
        with open_regular(path) as file:
            text = file.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
        found = MachineCosts.from_json(text)
    except (FileNotFoundError, NotADirectoryError):
        return SHIPPED, "shipped costs (tadoc.calibrate() measures this machine)"
    except (OSError, ValueError) as error:
        if name not in _warned:
            _warned.add(name)
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            warnings.warn(
                f"the calibration in {path} is ignored: {reason}; delete the file, or call tadoc.calibrate() again",
                CalibrationWarning,
                stacklevel=2,
            )
        return SHIPPED, "shipped costs (the calibration file is broken)"
    if found.processor != processor():
        return SHIPPED, "shipped costs (the calibration is of another processor)"
    return found, f"costs measured on this machine by tadoc.calibrate() ({path})"


def save(measured: MachineCosts) -> Path:
    """Write a calibration to the file, and let it hold from now on; observed times are forgotten.

    Raises
    ------
    OSError
        The file cannot be written.

    """
    path = calibration_file()
    path.parent.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
    with atomic_file(target(path, "calibrate"), "calibrate") as temporary:
        temporary.write_text(measured.to_json(), "utf-8")
    forget()
    return path


def forget() -> None:
    """Forget files and observed times."""
    _read.cache_clear()
    with _lock:
        _observed.clear()
        _seen.clear()
        _warned.clear()


def factor(name: str) -> float:
    """Return what a shipped prediction is multiplied by.

    A name without observations takes the mean correction of its engine's others: a busy machine slows all of them.
    """
    measured = in_force().factors.get(name, 1.0)
    if not _observed:
        return measured
    with _lock:
        own = _observed.get(name)
        if own is None:
            peers = [value for other, value in _observed.items() if other[:3] == name[:3]]
            own = sum(peers) / len(peers) if peers else 0.0
    return measured * math.exp(own)


def overhead(engine: str, shipped: float) -> float:
    """Return the seconds of a batch of queries on an engine, whatever its size."""
    return in_force().overheads.get(engine, shipped)


def repays_at(kind: str, shipped: float) -> float:
    """Return from how many units on "auto" takes a GPU; a call that never takes one never does."""
    return shipped if math.isinf(shipped) else in_force().repays_at.get(kind, shipped)


def observe(name: str, predicted: float, taken: float) -> None:
    """Correct further predictions by the seconds of a call; the first call of a name, which may compile, is not used.

    Parameters
    ----------
    name
        Name of the factor.
    predicted, taken
        Seconds, as :func:`factor` made the prediction, and as it came.

    """
    if predicted < LEAST or taken <= 0:
        return
    with _lock:
        if name not in _seen:
            _seen.add(name)
            return
    before = math.log(factor(name) / in_force().factors.get(name, 1.0))
    most = math.log(MAX_CORRECTION)
    own = before + SHARE * min(max(math.log(taken / predicted), -most), most)
    with _lock:
        _observed[name] = min(max(own, -most), most)
