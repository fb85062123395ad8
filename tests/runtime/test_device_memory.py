"""Where device arrays are allocated, and what is said where there is no room, with a CuPy that is made up."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import polars_tadoc as tadoc
from polars_tadoc.errors import DeviceMemoryError, EngineUnavailableError
from polars_tadoc.runtime import device_memory as memory
from polars_tadoc.runtime.device import device_errors


class OutOfMemoryError(MemoryError):
    """As ``cupy.cuda.memory.OutOfMemoryError``."""


class CudaError(RuntimeError):
    """As ``cupy.cuda.runtime.CUDARuntimeError``."""

    def __init__(self, status: int) -> None:
        super().__init__(f"error {status}")
        self.status = status


class Pool:
    """As ``cupy.cuda.MemoryPool``."""

    def __init__(self, source: str) -> None:
        self.source, self.freed = source, 0

    def malloc(self, size: int) -> str:
        return self.source

    def free_all_blocks(self) -> None:
        self.freed += 1


class FakeCupy(ModuleType):
    """As much of CuPy as memory is about; devices have the attributes given."""

    def __init__(self, **attributes: int) -> None:
        super().__init__("cupy")
        self.default, self.managed = Pool("device"), Pool("managed")
        self.allocator = self.default.malloc

        class DriverError(CudaError):
            pass

        class CompileError(Exception):
            pass

        self.cuda: Any = SimpleNamespace(
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            runtime=SimpleNamespace(CUDARuntimeError=CudaError, getDevice=lambda: 0),
            driver=SimpleNamespace(CUDADriverError=DriverError),
            compiler=SimpleNamespace(CompileException=CompileError),
            Device=lambda device: SimpleNamespace(attributes=attributes),
            MemoryPool=lambda source: self.managed,
            malloc_managed=None,
            get_allocator=lambda: self.allocator,
            using_allocator=self.using,
        )

    def get_default_memory_pool(self) -> Pool:
        return self.default

    @contextmanager
    def using(self, allocator: Any) -> Iterator[None]:
        before, self.allocator = self.allocator, allocator
        try:
            yield
        finally:
            self.allocator = before


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def made(*, integrated: int = 0, host_tables: int = 0) -> FakeCupy:
        cupy = FakeCupy(Integrated=integrated, PageableMemoryAccessUsesHostPageTables=host_tables)
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        return cupy

    caches = (memory.shares_host_memory, memory._managed)
    for cache in caches:
        cache.cache_clear()
    yield made
    for cache in caches:
        cache.cache_clear()


def test_arrays_are_in_the_devices_own_memory(make: Any) -> None:
    cupy = make()
    with device_errors("trying"):
        assert cupy.allocator(1) == "device"
    with tadoc.Config(device_memory="unified"), device_errors("trying"):
        assert cupy.allocator(1) == "managed"
        with device_errors("trying"):
            assert cupy.allocator(1) == "managed"
    assert cupy.allocator(1) == "device"


@pytest.mark.parametrize("how", [{"integrated": 1}, {"host_tables": 1}])
def test_a_device_that_shares_the_hosts_memory(make: Any, how: dict[str, int]) -> None:
    cupy = make(**how)
    with device_errors("trying"), device_errors("within"):
        assert cupy.allocator(1) == "managed"
    with tadoc.Config(device_memory="device"), device_errors("trying"):
        assert cupy.allocator(1) == "device"
    own = Pool("the caller's")
    cupy.allocator = own.malloc
    with device_errors("trying"):
        assert cupy.allocator(1) == "the caller's"
    with tadoc.Config(device_memory="unified"), device_errors("trying"):
        assert cupy.allocator(1) == "managed"


def test_memory_of_both_kinds_is_given_back(make: Any) -> None:
    cupy = make()
    memory.release_memory()
    assert (cupy.default.freed, cupy.managed.freed) == (1, 1)


def fail(error: Exception) -> None:
    with device_errors("counting words"):
        raise error


def test_errors_of_the_device(make: Any) -> None:
    cupy = make()
    for error in (OutOfMemoryError("allocating 9 bytes"), CudaError(2), cupy.cuda.driver.CUDADriverError(2)):
        with pytest.raises(DeviceMemoryError, match=r'engine="gpu": the device is out of memory while counting words'):
            fail(error)
    for error in (CudaError(700), cupy.cuda.driver.CUDADriverError(700)):
        with pytest.raises(EngineUnavailableError, match="the device failed while counting words: error 700") as caught:
            fail(error)
        assert not isinstance(caught.value, DeviceMemoryError)
    with pytest.raises(EngineUnavailableError, match="a kernel did not compile"):
        fail(cupy.cuda.compiler.CompileException("no"))
