"""Work space that calls keep for later ones."""

from __future__ import annotations

import gc
import mmap
import sys
import threading

import numpy as np
import pytest

from polars_tadoc import Config
from polars_tadoc.runtime.arrow_memory import drop_pages
from polars_tadoc.runtime.scratch import (
    HUGE,
    HUGE_PAGE,
    SHARE,
    SMALLEST,
    drop_scratch,
    kept_bytes,
    pages,
    scratch,
    scratch_zeros,
)


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    gc.collect()
    drop_scratch()


def test_memory_is_used_again_once_no_array_refers_to_it() -> None:
    one = scratch((1 << 10, 1 << 8), np.uint64)
    assert one.shape == (1 << 10, 1 << 8)
    assert one.dtype == np.uint64
    one[:] = 7
    address, part = one.ctypes.data, one.reshape(-1)[5:9]
    del one
    assert kept_bytes() == 0
    other = scratch(1 << 18, np.uint64)
    assert other.ctypes.data != address
    assert part.tolist() == [7, 7, 7, 7]
    del part
    assert kept_bytes() == 1 << 21
    again = scratch((1 << 19) - 3, np.uint32)
    assert again.ctypes.data == address
    assert again.shape == ((1 << 19) - 3,)
    assert kept_bytes() == 0


def test_zeros_are_zeros_in_used_memory() -> None:
    scratch(SMALLEST, np.uint8).fill(255)
    assert kept_bytes() == SMALLEST
    assert not scratch_zeros(SMALLEST // 8, np.uint64).any()


def test_small_arrays_are_numpys() -> None:
    del (small := [scratch(SMALLEST - 1, np.uint8), scratch(0, np.uint64), scratch((0, 4), np.uint64)])[:]
    assert small == []
    assert kept_bytes() == 0


def test_no_more_is_kept_than_the_budget() -> None:
    with Config(host_cache_bytes=SHARE * 3 * SMALLEST):
        many = [scratch(SMALLEST, np.uint8) for _ in range(8)]
        many.append(scratch(4 * SMALLEST, np.uint8))
        while many:
            many.pop()
            assert kept_bytes() <= 3 * SMALLEST
    assert kept_bytes() > 0
    drop_scratch()
    assert kept_bytes() == 0


def test_threads_never_share_memory() -> None:
    wrong: list[int] = []

    def use(number: int) -> None:
        for size in range(SMALLEST, SMALLEST + 40):
            own = scratch(size, np.uint8)
            own.fill(number)
            if (own != number).any():
                wrong.append(number)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_giving_memory_back_runs_no_python() -> None:
    """An interrupt in a finalizer is printed and dropped."""
    arrays, calls = [scratch(SMALLEST, np.uint8)], []
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    arrays.clear()
    sys.setprofile(None)
    assert calls == []
    assert kept_bytes() == SMALLEST


@pytest.mark.parametrize("size", [0, 1, SMALLEST, HUGE + 1])
def test_pages_are_zeros_that_can_be_written(size: int) -> None:
    made = pages(size)
    assert len(made) == size
    assert not made.any()
    made[:] = 7
    assert pages(size).max(initial=0) == 0
    assert made.sum(dtype=np.int64) == 7 * size


@pytest.mark.parametrize("size", [SMALLEST, HUGE - 1, HUGE, HUGE_PAGE - 8, HUGE_PAGE, 3 * HUGE_PAGE - 8])
@pytest.mark.parametrize("touched", [None, 0, 1, HUGE_PAGE])
def test_pages_have_the_size_that_was_asked_for(size: int, touched: int | None) -> None:
    made = pages(size, touched)
    assert made.shape == (size,)
    assert not made.any()
    made[:] = 1
    assert made.sum() == size


def test_dropped_pages_are_returned() -> None:
    made = pages(4 * HUGE_PAGE)
    made[:] = 1
    drop_pages(made[HUGE_PAGE + 5 : 3 * HUGE_PAGE - 5])
    assert made[: HUGE_PAGE + 5].all()
    assert made[3 * HUGE_PAGE - 5 :].all()
    drop_pages(made[7:9])
    assert made[7:9].all()
    if sys.platform == "linux":
        assert not made[HUGE_PAGE + mmap.PAGESIZE : 3 * HUGE_PAGE - mmap.PAGESIZE].any()
