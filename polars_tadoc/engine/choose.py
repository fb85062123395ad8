"""Decides which engine runs a call, before any work starts. Nothing else asks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import ModuleType
from typing import Any, get_args

import polars as pl

from polars_tadoc.config import EngineName, settings
from polars_tadoc.engine import cpu, cuda
from polars_tadoc.errors import EngineUnavailableError
from polars_tadoc.kernels.tokenize.number_words_cpu import Choice, NumberedWords
from polars_tadoc.kernels.tokenize.number_words_cpu import number_words as number_on_host
from polars_tadoc.kernels.tokenize.number_words_cuda import number_words as number_on_device
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.runtime.cache import ByteLRU

GPU_REPAYS_AT = 1 << 20
"""Symbols from which "auto" takes a GPU: below, the transfer of the rows costs what the CPU's traversal does
(``benchmarks/gpu_end_to_end.py``)."""


@dataclass(frozen=True)
class Engine:
    """One family of kernels and the grammars that are resident with it."""

    kernels: ModuleType
    number_words: Callable[[pl.Series, Tokenizer, Choice], NumberedWords]
    """Cuts a String series into words where the kernels run; no kernel itself, as it needs a tokenizer."""
    resident: ByteLRU[Any] | None = None

    @property
    def name(self) -> str:
        """Name of the family: "cpu" or "gpu"."""
        return str(self.kernels.name)

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

    def keep(self, key: str, make: Callable[[], Any]) -> Any:
        """Return what is resident under a key, or make it so; host memory is nothing to be transferred to."""
        if self.resident is None:
            return make()
        placed = f"{self.place}:{key}"
        found = self.resident.get(placed)
        return self.resident.put(placed, make()) if found is None else found

    def peek(self, key: str) -> Any | None:
        """Return what is resident under a key, or None."""
        return None if self.resident is None else self.resident.get(f"{self.place}:{key}")

    def release(self) -> None:
        """Forget what is resident, on all devices, and give memory back that nothing takes: a call needs it."""
        if self.resident is not None:
            self.resident.clear()
            self.kernels.release_memory()

    def guarded(self, action: str) -> AbstractContextManager[None]:
        """Turn what a device reports within a ``with`` block into named errors."""
        return nullcontext() if self.resident is None else cuda.device_errors(action)


CPU = Engine(cpu, number_on_host)
GPU = Engine(cuda, number_on_device, ByteLRU(lambda: settings().device_cache_bytes, lambda value: int(value.nbytes)))


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
        problem = cuda.device_problem()
        if problem is not None:
            raise EngineUnavailableError(f'engine="gpu": {problem}')
    return asked


def choose(engine: str | None, symbols: int, repays_at: float = GPU_REPAYS_AT) -> Engine:
    """Choose the engine for work over so many symbols, or other things; errors as :func:`require_engine`'s."""
    asked = require_engine(engine)
    if asked == "auto":
        return GPU if symbols >= repays_at and cuda.can_run() else CPU
    return GPU if asked == "gpu" else CPU
