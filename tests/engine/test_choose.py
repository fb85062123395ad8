"""Items whose work is a device's, and whose rest is the host's."""

from __future__ import annotations

import threading

import pytest

from polars_tadoc.engine.choose import CPU, Engine, map_on
from polars_tadoc.runtime.cache import ByteLRU


@pytest.mark.parametrize("resident", [None, ByteLRU(int, len)], ids=["threads", "device"])
def test_items_are_worked_on_and_finished_in_order(resident: ByteLRU[object] | None) -> None:
    engine = Engine(CPU.kernels, resident)
    made = map_on([engine] * 5, lambda item: item + 1, str, range(5))
    assert made == ["1", "2", "3", "4", "5"]


def test_the_host_finishes_an_item_while_the_device_works_on_the_next() -> None:
    begun = [threading.Event() for _ in range(3)]

    def work(item: int) -> int:
        begun[item].set()
        return item

    def finish(item: int) -> bool:
        return item == 2 or begun[item + 1].wait(20)

    assert map_on([Engine(CPU.kernels, ByteLRU(int, len))] * 3, work, finish, range(3)) == [True] * 3


def test_errors_of_the_device_are_raised() -> None:
    def work(item: int) -> int:
        if item:
            raise ValueError("row 1 is not UTF-8")
        return item

    with pytest.raises(ValueError, match="row 1"):
        map_on([Engine(CPU.kernels, ByteLRU(int, len))] * 3, work, str, range(3))
