"""Decides which engine runs a call, before any work starts. No other module decides."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict, TypeVar, get_args

from polars_tadoc.config import EngineName, settings
from polars_tadoc.engine import cpu, cuda
from polars_tadoc.engine.kernels import Kernels
from polars_tadoc.engine.machine_costs import repays_at
from polars_tadoc.errors import EngineUnavailableError
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.runtime.cache import ByteLRU
from polars_tadoc.runtime.option_signature import Default
from polars_tadoc.runtime.parallel import map_apart
from polars_tadoc.runtime.process.prefetch import read_ahead

Item = TypeVar("Item")
Made = TypeVar("Made")
Result = TypeVar("Result")

GPU_REPAYS_AT = 1 << 20
"""Symbols from which "auto" uses a GPU: with fewer, transferring the rows takes as long as a traversal on the CPU
(``benchmarks/gpu_end_to_end.py``)."""


@dataclass(frozen=True)
class Engine:
    """One family of kernels and the grammars resident in its memory."""

    kernels: Kernels
    resident: ByteLRU[Any] | None = None

    @property
    def name(self) -> str:
        """Name of the family: "cpu" or "gpu"."""
        return self.kernels.name

    @property
    def place(self) -> str:
        """Where new arrays of a call are resident: the family, and a GPU's current device."""
        return self.name if self.resident is None else f"{self.name}:{self.kernels.current_device()}"

    def __reduce__(self) -> Any:
        return _named, (self.name,)

    def load(self, key: str | None, grammar: Grammar) -> Any:
        """Return the grammar, resident for word-count kernels; transferred only once."""
        return self.keep(key, lambda: self.kernels.load_grammar(grammar))

    def load_rules(self, key: str | None, grammar: Grammar) -> Rules:
        """Return the grammar's rules, resident for all other kernels; transferred only once."""
        rules: Rules = self.keep(key and f"{key}:rules", lambda: self.kernels.load_rules(grammar))
        return rules

    @property
    def budget(self) -> int:
        """Byte budget of the cache that the engine reads."""
        return settings().host_cache_bytes if self.resident is None else settings().device_cache_bytes

    @property
    def keeps_rows(self) -> bool:
        """Whether rows stay in the engine's own memory between calls."""
        return self.resident is not None

    def threads(self, of: int) -> int:
        """Return how many of some CPU threads a call uses; with one, threads take turns to give the engine work."""
        return of if self.resident is None else 1

    def host_cache(self, cache: dict[Any, Any]) -> dict[Any, Any]:
        """Return a cache of arrays that kernels read; an empty one if the engine caches its arrays itself."""
        return cache if self.resident is None else {}

    def keep(
        self,
        key: str | Callable[[], str] | None,
        make: Callable[[], Any],
        on_host: Callable[[Callable[[], Any]], Any] | None = None,
        owner: object = None,
    ) -> Any:
        """Return the resident object of a key, or make it; on the CPU there is no transfer to save.

        Parameters
        ----------
        key
            The key, or a function that returns it, called only if the engine caches; None: the object is not cached.
        make
            Makes the object.
        on_host
            Called with ``make`` if the kernels read host memory, to cache the object; by default it is not cached.
        owner
            The resident object is dropped with this one.

        """
        if self.resident is None:
            return make() if on_host is None else on_host(make)
        if key is None:
            return make()
        placed = f"{self.place}:{key if isinstance(key, str) else key()}"
        found = self.resident.get(placed)
        if found is None:
            found = self.resident.put(placed, make())
            if owner is not None and self.resident.get(placed) is not None:
                weakref.finalize(owner, self.resident.discard, placed).atexit = False
        return found

    def peek(self, key: str, on_host: Any | None = None) -> Any | None:
        """Return the resident object of a key, or None; ``on_host`` if the kernels read host memory."""
        return on_host if self.resident is None else self.resident.get(f"{self.place}:{key}")

    def release(self) -> None:
        """Drop resident objects on all devices and return unused memory, because a call needs it."""
        if self.resident is not None:
            self.resident.clear()
        self.kernels.release_memory()

    def guarded(self, action: str) -> AbstractContextManager[None]:
        """Turn device errors within a ``with`` block into named errors."""
        return self.kernels.device_errors(action)


CPU = Engine(cpu)
GPU = Engine(cuda, ByteLRU(lambda: settings().device_cache_bytes, lambda value: int(value.nbytes)))


def _named(name: str) -> Engine:
    """Return an engine of this process, for unpickling."""
    return engines_for(name)[0]


class EngineOption(TypedDict, total=False):
    """The ``engine=`` option."""

    engine: Annotated[str | None, Default(None)]


def require_engine(engine: str | None) -> str:
    """Resolve ``engine=`` and the configured default, and check that it can run.

    Raises
    ------
    EngineUnavailableError
        "gpu" was asked for and cannot run; the message says what is missing. There is no silent fallback.
    ValueError
        The name of the engine is unknown.

    """
    asked = settings().engine if engine is None else engine
    if asked not in get_args(EngineName):
        raise ValueError(f'engine={asked!r}: use "auto", "cpu" or "gpu"')
    if asked == "gpu":
        problem = GPU.kernels.device_problem()
        if problem is not None:
            raise EngineUnavailableError(f'engine="gpu": {problem}')
    return asked


def choose(engine: str | None, symbols: int, shipped: float = GPU_REPAYS_AT, kind: str = "rows") -> Engine:
    """Choose the engine for a number of symbols, or of other units of a kind; errors as for :func:`require_engine`.

    ``shipped`` is the number from which a GPU is worth it on a machine that was not calibrated.
    """
    asked = require_engine(engine)
    if asked == "auto":
        return GPU if symbols >= repays_at(kind, shipped) and GPU.kernels.can_run() else CPU
    return engines_for(asked)[0]


def engines_for(asked: str) -> tuple[Engine, ...]:
    """List the engines that a checked ``engine=`` allows, the CPU first; some may be unable to run."""
    return {"auto": (CPU, GPU), "cpu": (CPU,), "gpu": (GPU,)}[asked]


def runnable(asked: str) -> tuple[Engine, ...]:
    """List the engines that a checked ``engine=`` allows and that can run here, the CPU first."""
    return tuple(engine for engine in engines_for(asked) if engine.kernels.can_run())


def finishing_engine(engine: str | None, merged: Engine) -> Engine:
    """Return the engine that finishes results merged on another: a GPU if asked for by name, otherwise the same."""
    return GPU if require_engine(engine) == "gpu" else merged


def map_on(
    engines: Sequence[Engine],
    work: Callable[[Item], Made],
    finish: Callable[[Made], Result],
    items: Sequence[Item],
) -> list[Result]:
    """Apply a function that uses some engines to each item, and one that uses the host to what it makes.

    Items run side by side if all engines use CPU threads; else the host finishes an item while the device works on the
    next one.
    """
    if all(engine.resident is None for engine in engines):
        return map_apart(lambda item: finish(work(item)), items)
    made: Any = read_ahead(map(work, items))
    with closing(made):  # at once: an error's traceback would keep it, and its threads
        return [finish(one) for one in made]


def release_all() -> None:
    """Drop resident objects on every engine."""
    for engine in engines_for("auto"):
        engine.release()
