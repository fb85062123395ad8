"""A pytest plugin that keeps the tests that run on a GPU, each array in an allocation of its own, and few examples.

Failures are printed at once: device time may end before the tests do.
"""

from __future__ import annotations

import os
import sys

import cupy
import pytest
from hypothesis import HealthCheck, settings

import polars_tadoc as tadoc

if "POOLED" not in os.environ:
    cupy.cuda.set_allocator(None)  # from a pool, a read beyond an array would end in another one, and not be seen
tadoc.testing.engines = lambda: ["gpu"]
settings.register_profile(
    "few",
    max_examples=int(os.environ.get("EXAMPLES", "5")),
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs on the CPU alone."""
    kept = [item for item in items if "engine" in getattr(item, "fixturenames", ()) or "gpu" in item.nodeid]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Print a failure as soon as it is known."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nFAILED {report.nodeid} ({report.when})\n{report.longreprtext[-3000:]}", file=sys.stderr, flush=True)
