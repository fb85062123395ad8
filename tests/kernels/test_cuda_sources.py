from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.kernels.traverse import reference
from polars_tadoc.kernels.traverse.fuse_levels_cuda import fuse_levels
from polars_tadoc.runtime import device
from polars_tadoc.runtime.device import declared
from tests import ROOT
from tests.strategies import grammars


def in_fresh_python(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_launches_know_what_every_kernel_declares() -> None:
    for file in (ROOT / "polars_tadoc" / "kernels").rglob("*.cu"):
        kernels = declared(file.stem)
        assert len(kernels) == file.read_text().count("__global__"), file
        assert all(len(kinds) > 0 for kinds in kernels.values()), file
    assert declared("runs")["expand"] == (None, np.uint64, np.uint64, None)
    assert declared("prune")["prune"][8] is np.int64


def test_numbers_of_a_launch_take_the_types_that_the_kernel_declares() -> None:
    offsets, owners = object(), object()
    given = device._as_declared("runs", "expand", (offsets, 3, np.int64(4), owners))
    assert given == (offsets, 3, 4, owners)
    assert [type(given[1]), type(given[2])] == [np.uint64, np.uint64]
    with pytest.raises(TypeError, match=r"runs\.expand takes 4 arguments, not 3"):
        device._as_declared("runs", "expand", (offsets, 3, 4))
    with pytest.raises(OverflowError):
        device._as_declared("runs", "expand", (offsets, -1, 4, owners))


@pytest.mark.slow
@pytest.mark.parametrize("module", ["polars_tadoc", "polars_tadoc.engine.cuda"])
def test_importing_the_package_does_not_import_cupy(module: str) -> None:
    assert in_fresh_python(f"import sys, {module}; print('cupy' in sys.modules)") == "False"


@pytest.mark.slow
def test_without_cupy_the_mend_is_named() -> None:
    missing = "import sys; sys.modules['cupy'] = None\n"
    problem = in_fresh_python(missing + "from polars_tadoc.engine import cuda; print(cuda.device_problem())")
    assert problem.startswith("CuPy cannot be imported")
    assert "pip install 'polars-tadoc[gpu-cuda13]'" in problem
    assert "[gpu-cuda12]" in problem
    asked = in_fresh_python(
        missing + "import numpy\n"
        "from polars_tadoc.errors import EngineUnavailableError\n"
        "from polars_tadoc.engine import cuda\n"
        "try: cuda.load_symbols(numpy.zeros(3, numpy.uint32))\n"
        "except EngineUnavailableError as error: print(error)"
    )
    assert asked == f'engine="gpu": {problem}'


@given(grammars(), st.sampled_from([-1, 0, 1, 3, 10, 1 << 17]))
def test_fused_levels_give_the_same_counts(
    made: tuple[int, list[list[int]], list[int], list[list[int]]], growth: int
) -> None:
    vocabulary_size, bodies, level_offsets, rows = made
    rule_offsets = np.cumsum([0] + [len(body) for body in bodies]).astype(np.uint32)
    symbols = np.array([symbol for body in bodies for symbol in body], np.uint32)
    levels = np.array(level_offsets, np.uint32)
    roots = [symbol for row in rows for symbol in row]
    offsets, fused, steps = fuse_levels(vocabulary_size, rule_offsets, symbols, levels, growth)
    assert reference.top_down_weights(
        vocabulary_size, offsets.tolist(), fused.tolist(), roots
    ) == reference.top_down_weights(vocabulary_size, rule_offsets.tolist(), symbols.tolist(), roots)
    assert offsets.dtype == fused.dtype == steps.dtype == np.uint32
    # the steps cover the bodies in order, and a body names nothing of its own step
    assert steps[:, 0].tolist() == [0, *steps[:-1, 1].tolist()][: len(steps)]
    assert (steps[-1, 1] if len(steps) else 0) == len(fused) == offsets[-1]
    for begin, end in steps.tolist():
        first_rule = int(np.searchsorted(offsets, begin, side="right")) - 1
        assert max(fused[begin:end].tolist()) < vocabulary_size + first_rule
    if growth < 0:
        assert fused.tolist() == symbols.tolist()
    else:
        assert len(steps) <= len(level_offsets) - 1


def test_fusing_does_not_expand_exponentially() -> None:
    rules = 63  # the last one stands for 2^63 words
    offsets = np.arange(0, 2 * rules + 1, 2, dtype=np.uint32)
    symbols = np.repeat(np.arange(rules, dtype=np.uint32), 2)
    fused_offsets, fused, steps = fuse_levels(1, offsets, symbols, np.arange(rules + 1, dtype=np.uint32))
    assert 1 < len(steps) < 10
    assert len(fused) == fused_offsets[-1] <= 2 << 20
