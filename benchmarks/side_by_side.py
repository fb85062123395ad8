"""Times contenders in turn, so that a machine whose speed drifts treats them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

Contenders = dict[str, Callable[[], object]]

clock: Callable[[], float] = time.perf_counter
"""Clock of all times; ``time.process_time``, the processor time of all threads, if other processes take the cores."""


SETTLED = 0.3
"""Seconds before each processor time: threads of the contender before free its memory, which counts, too."""


def times(contenders: Contenders, repeat: int, warm_up: int = 1) -> dict[str, list[float]]:
    """Seconds of each run, contenders in turn (A B C A B C …), after the warm-up rounds."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for round_ in range(repeat + warm_up):
        for name, run in contenders.items():
            if clock is time.process_time:
                time.sleep(SETTLED)
            start = clock()
            run()
            if round_ >= warm_up:
                taken[name].append(clock() - start)
    return taken


def ratio(taken: dict[str, list[float]], slow: str, fast: str) -> float:
    """Median over rounds of how many times faster one contender was than another in the same round."""
    return statistics.median(a / b for a, b in zip(taken[slow], taken[fast], strict=True))


def median_ms(taken: dict[str, list[float]], name: str) -> float:
    """Median milliseconds of a contender."""
    return 1e3 * statistics.median(taken[name])
