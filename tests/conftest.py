from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, settings

import polars_tadoc as tadoc
from polars_tadoc.runtime.compiled import Kernel
from tests import ROOT
from tests.written_parameters import written_parameters

_COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("quick", max_examples=10, derandomize=True, database=None, **_COMMON)
settings.register_profile("ci", max_examples=15, derandomize=True, database=None, **_COMMON)
settings.register_profile("deep", max_examples=300, **_COMMON)  # chosen anew in each run
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

CORPORA = Path(os.environ.get("TADOC_CORPORA", ROOT.parent / "shared" / "corpora"))


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what reads a corpus as slow."""
    for item in items:
        if "corpus" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave modules and collected tests out of further garbage collections: tests call many of them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(params=tadoc.testing.engines())
def engine(request: pytest.FixtureRequest) -> str:
    """Each engine that can run here: one test body holds all of them to the same results."""
    return str(request.param)


@pytest.fixture(scope="session")
def corpus() -> Callable[[str], pl.DataFrame]:
    @lru_cache(maxsize=1)
    def load(name: str) -> pl.DataFrame:
        path = CORPORA / f"{name}.parquet"
        if not path.exists():
            pytest.skip(f"the corpus {name}.parquet is not there: set TADOC_CORPORA to its folder")
        return pl.read_parquet(path)

    return load


@pytest.fixture(autouse=True, scope="session")
def _kernels_write_to_no_readonly_array() -> Iterator[None]:
    """Kernels take readonly arrays as writable ones: each kernel that gets some must write to others only."""
    compile_for = Kernel._compile_for_args

    def checked(self: Kernel, *given: Any, **named: Any) -> Any:
        for place in written_parameters(self.py_func):
            arrays = given[place] if isinstance(given[place], tuple) else [given[place]]
            is_readonly = any(isinstance(one, np.ndarray) and not one.flags.writeable for one in arrays)
            assert not is_readonly, f"{self.py_func.__name__} writes to a readonly array, argument {place}"
        return compile_for(self, *given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Kernel, "_compile_for_args", checked)
        yield


@pytest.fixture(autouse=True)
def _defaults_after_each_test() -> Iterator[None]:
    yield
    tadoc.Config.reset()
