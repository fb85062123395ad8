"""Takes a call apart by the functions that it goes through."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any


def by_stage(
    run: Callable[[], object],
    stages: Sequence[tuple[ModuleType | type, str]],
    wait: Callable[[], object] = lambda: None,
) -> dict[str, float]:
    """Seconds of each stage of one run, by ``module.function``, and of the rest and the whole.

    Each function is looked up in its module while the run lasts; ``wait`` is called after each, for work that goes on
    after a function returns.
    """
    taken: dict[str, float] = {}
    originals = [getattr(module, name) for module, name in stages]

    def timed(label: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def stage(*arguments: Any, **options: Any) -> Any:
            start = time.perf_counter()
            result = original(*arguments, **options)
            wait()
            taken[label] = taken.get(label, 0.0) + time.perf_counter() - start
            return result

        return stage

    try:
        for (module, name), original in zip(stages, originals, strict=True):
            setattr(module, name, timed(f"{module.__name__.rpartition('.')[2]}.{name}", original))
        start = time.perf_counter()
        run()
        whole = time.perf_counter() - start
    finally:
        for (module, name), original in zip(stages, originals, strict=True):
            setattr(module, name, original)
    return {**taken, "rest": whole - sum(taken.values()), "whole": whole}
