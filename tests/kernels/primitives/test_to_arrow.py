"""Arrays of an engine in host memory and in Arrow's: the same values, copied only where they must be."""

from __future__ import annotations

import numpy as np
import pytest

from polars_tadoc.engine.choose import choose
from polars_tadoc.kernels.primitives import load_cuda
from polars_tadoc.kernels.primitives.lists import gather_lists
from polars_tadoc.model.arrow_results import to_arrow
from polars_tadoc.runtime.arrow_memory import allocate, view

SHAPES = [(0,), (1,), (3, 0), (2, 3), ((1 << 18) + 1,), (1 << 20, 3)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [np.uint32, np.uint64, np.int64, np.float64])
def test_arrays_come_back_as_they_were_loaded(
    engine: str, shape: tuple[int, ...], dtype: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = choose(engine, 0).kernels
    array = np.random.default_rng(0).integers(0, 1 << 31, shape).astype(dtype)
    for staged in (1 << 62, 0):
        monkeypatch.setattr(load_cuda, "STAGED", staged)
        back = kernels.to_host(kernels.load_array(array))
        assert back.shape == shape
        assert back.dtype == dtype
        assert np.array_equal(back, array)
    flat = array.reshape(-1)
    (arrow,) = kernels.to_arrow([kernels.load_array(flat)])
    assert np.array_equal(arrow.to_numpy(zero_copy_only=False), flat)


@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
def test_what_is_in_arrows_memory_is_not_copied(dtype: type) -> None:
    array = allocate(12, dtype)[1]
    array[:] = np.arange(12)
    for given in (array, array.reshape(4, 3).reshape(-1), view(to_arrow(array))):
        made = to_arrow(given)
        assert made.buffers()[1].address == array.ctypes.data
        assert made.to_pylist() == list(range(12))


def test_what_is_elsewhere_is_copied() -> None:
    array = allocate(12, np.uint32)[1]
    array[:] = np.arange(12)
    cases = [
        array[:6],
        array[6:],
        array[::2],
        array[::-1],
        array.view(np.int32),
        array.reshape(3, 4)[:, 1],
        np.arange(4),
    ]
    for given in cases:
        made = to_arrow(given)
        assert made.to_pylist() == given.tolist()
        assert not np.shares_memory(view(made), given)


def test_lists_are_gathered_by_several_threads() -> None:
    random = np.random.default_rng(1)
    sizes = random.integers(0, 40, 20_000)
    sizes[7] = 100_000
    offsets = np.append(0, np.cumsum(sizes))
    values = random.integers(0, 1 << 30, int(offsets[-1])).astype(np.uint32)
    order = random.permutation(len(sizes))[:15_000]
    order = np.append(order, [7, 7, 0])
    taken, gathered = gather_lists(offsets, values, order)
    expected = [values[offsets[k] : offsets[k + 1]] for k in order]
    assert taken.tolist() == [0, *np.cumsum(sizes[order]).tolist()]
    assert np.array_equal(gathered, np.concatenate(expected))
