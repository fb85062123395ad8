"""Decides which engine runs a call, before any work starts. Nothing else asks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict, get_args

from polars_tadoc.config import EngineName, settings
from polars_tadoc.engine import cpu, cuda
from polars_tadoc.engine.kernels import Kernels
from polars_tadoc.errors import EngineUnavailableError
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.runtime.cache import ByteLRU
from polars_tadoc.runtime.option_signature import Default

GPU_REPAYS_AT = 1 << 20
"""Symbols from which "auto" takes a GPU: below, the transfer of the rows costs what the CPU's traversal does
(``benchmarks/gpu_end_to_end.py``)."""


@dataclass(frozen=True)
class Engine:
    """One family of kernels and the grammars that are resident with it."""

    kernels: Kernels
    resident: ByteLRU[Any] | None = None

    @property
    def name(self) -> str:
        """Name of the family: "cpu" or "gpu"."""
        return self.kernels.name

    @property
    def place(self) -> str:
        """Where arrays are resident that a call makes now: the family, with a GPU's current device."""
        return self.name if self.resident is None else f"{self.name}:{self.kernels.current_device()}"

    def load(self, key: str, grammar: Grammar) -> Any:
        """Return the grammar where the kernels for word counts can use it; the second call transfers nothing."""
        return self.keep(key, lambda: self.kernels.load_grammar(grammar))

    def load_rules(self, key: str, grammar: Grammar) -> Rules:
        """Return the grammar's rules where all other kernels can use them; the second call transfers nothing."""
        rules: Rules = self.keep(f"{key}:rules", lambda: self.kernels.load_rules(grammar))
        return rules

    @property
    def uses_cpu_threads(self) -> bool:
        """Whether all CPU threads work on what the engine is given; if not, one thread at a time gives it work."""
        return self.resident is None

    def keep(
        self,
        key: str | Callable[[], str],
        make: Callable[[], Any],
        on_host: Callable[[Callable[[], Any]], Any] | None = None,
    ) -> Any:
        """Return what is resident under a key, or make it so; host memory is nothing to be transferred to.

        Parameters
        ----------
        key
            Names it, or makes the name, which is called only where the engine keeps something.
        make
            Makes it.
        on_host
            Called with ``make`` where the kernels read host memory, to keep what it makes; by default nothing does.

        """
        if self.resident is None:
            return make() if on_host is None else on_host(make)
        placed = f"{self.place}:{key if isinstance(key, str) else key()}"
        found = self.resident.get(placed)
        return self.resident.put(placed, make()) if found is None else found

    def peek(self, key: str, on_host: Any | None = None) -> Any | None:
        """Return what is resident under a key, or None; ``on_host`` where the kernels read host memory."""
        return on_host if self.resident is None else self.resident.get(f"{self.place}:{key}")

    def release(self) -> None:
        """Forget what is resident, on all devices, and give memory back that nothing takes: a call needs it."""
        if self.resident is not None:
            self.resident.clear()
        self.kernels.release_memory()

    def guarded(self, action: str) -> AbstractContextManager[None]:
        """Turn what a device reports within a ``with`` block into named errors."""
        return self.kernels.device_errors(action)


CPU = Engine(cpu)
GPU = Engine(cuda, ByteLRU(lambda: settings().device_cache_bytes, lambda value: int(value.nbytes)))


class EngineOption(TypedDict, total=False):
    """Where it is computed."""

    engine: Annotated[str | None, Default(None)]


def require_engine(engine: str | None) -> str:
    """Resolve ``engine=`` and the configured default, and check that it can run.

    Raises
    ------
    EngineUnavailableError
        "gpu" was asked for and cannot run; the message says what is missing. It never falls back silently.
    ValueError
        There is no such engine.

    """
    asked = settings().engine if engine is None else engine
    if asked not in get_args(EngineName):
        raise ValueError(f'engine={asked!r}: use "auto", "cpu" or "gpu"')
    if asked == "gpu":
        problem = GPU.kernels.device_problem()
        if problem is not None:
            raise EngineUnavailableError(f'engine="gpu": {problem}')
    return asked


def choose(engine: str | None, symbols: int, repays_at: float = GPU_REPAYS_AT) -> Engine:
    """Choose the engine for work over so many symbols, or other things; errors as :func:`require_engine`'s."""
    asked = require_engine(engine)
    if asked == "auto":
        return GPU if symbols >= repays_at and GPU.kernels.can_run() else CPU
    return engines_for(asked)[0]


def engines_for(asked: str) -> tuple[Engine, ...]:
    """List the engines that a checked ``engine=`` stands for, the CPU first; not all need be able to run."""
    return {"auto": (CPU, GPU), "cpu": (CPU,), "gpu": (GPU,)}[asked]


def runnable(asked: str) -> tuple[Engine, ...]:
    """List the engines that a checked ``engine=`` stands for and that can run here, the CPU first."""
    return tuple(engine for engine in engines_for(asked) if engine.kernels.can_run())


def finishing_engine(engine: str | None, merged: Engine) -> Engine:
    """Return the engine that finishes what was merged on one: a GPU that was asked for by name, else the same."""
    return GPU if require_engine(engine) == "gpu" else merged


def release_all() -> None:
    """Forget what is resident on every engine."""
    for engine in engines_for("auto"):
        engine.release()
