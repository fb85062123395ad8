"""The CUDA device: whether kernels can run on it, their compilation, its errors as messages."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from polars_tadoc.errors import BrokenCuPyWarning, DeviceMemoryError, EngineUnavailableError
from polars_tadoc.runtime.device_memory import allocating
from polars_tadoc.runtime.process.compiler_signals import keep_interrupts

_BROKEN = "CuPy is installed but cannot be used"

_OUT_OF_MEMORY = 2
"""Error number for exhausted memory, in CUDA's runtime and its driver."""


@cache
def device_problem() -> str | None:
    """Return why GPU kernels cannot run here, in one sentence with advice; None if they can."""
    try:
        return _device_problem()
    except Exception as error:  # a broken installation may raise anything
        return f"{_BROKEN} ({type(error).__name__}: {error}); install it again, or remove it"


def _device_problem() -> str | None:
    try:
        import cupy
    except ImportError as error:
        return f"CuPy cannot be imported ({error}): pip install 'polars-tadoc[gpu-cuda13]' (CUDA 12: [gpu-cuda12])"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"no CUDA device can be used: {error}"
    if count == 0:
        return "no CUDA device is visible: check nvidia-smi and CUDA_VISIBLE_DEVICES"
    try:
        device = cupy.cuda.Device()
        if int(device.compute_capability) < 70:
            return (
                f"the CUDA device has compute capability {device.compute_capability[:-1]}."
                f"{device.compute_capability[-1]}; 7.0 or newer is needed"
            )
        cupy.cuda.nvrtc.getVersion()
        keep_interrupts(cupy.cuda.compiler)
    except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as error:
        return f"the CUDA device cannot be used: {error}"
    except (RuntimeError, OSError, ImportError) as error:
        return f"CUDA's compiler NVRTC cannot be loaded ({error}): pip install 'cupy-cuda13x[ctk]' (CUDA 12: 12x)"
    return None


def can_run() -> bool:
    """Tell whether GPU kernels can run here, for "auto"; warns once of a broken CuPy."""
    problem = device_problem()
    if problem is not None and problem.startswith(_BROKEN):
        _warn_once(problem)
    return problem is None


@cache
def _warn_once(problem: str) -> None:
    warnings.warn(f'engine="auto" uses the CPU: {problem}', BrokenCuPyWarning, stacklevel=3)


@contextmanager
def device_errors(action: str) -> Iterator[None]:
    """Allocate as configured, and turn device errors into named errors.

    Raises
    ------
    DeviceMemoryError
        The device is out of memory.
    EngineUnavailableError
        The device failed otherwise.

    """
    try:
        import cupy
    except Exception:  # a broken installation may raise anything
        raise EngineUnavailableError(f'engine="gpu": {device_problem()}') from None
    try:
        with allocating():
            yield
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise _out_of_memory(action, error) from error
    except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as error:
        # memory for a kernel's stack or code, or pinned memory: no pool allocates it
        if error.status == _OUT_OF_MEMORY:
            raise _out_of_memory(action, error) from error
        raise EngineUnavailableError(f'engine="gpu": the device failed while {action}: {error}') from error
    except cupy.cuda.compiler.CompileException as error:
        raise EngineUnavailableError(f'engine="gpu": a kernel did not compile while {action}: {error}') from error


def _out_of_memory(action: str, error: Exception) -> DeviceMemoryError:
    return DeviceMemoryError(
        f'engine="gpu": the device is out of memory while {action} ({error}); use engine="cpu", fewer rows at '
        "a time, or a smaller tadoc.Config(device_cache_bytes=…)"
    )


_INCLUDE = re.compile(r'#include "(\w+/\w+\.cuh)"')
_KERNELS = Path(__file__).parent.parent / "kernels"


def source(name: str) -> str:
    """Return the text of one ``.cu`` file with its headers inserted, so that CuPy's cache sees every change."""
    return with_headers(next(_KERNELS.glob(f"*/{name}.cu")).read_text("utf-8"))


def with_headers(text: str) -> str:
    """Insert the families' headers, ``#include "family/name.cuh"``, into CUDA source."""
    while (found := _INCLUDE.search(text)) is not None:
        text = text.replace(found[0], (_KERNELS / found[1]).read_text("utf-8"), 1).replace(found[0], "")
    return text


@cache
def _module(family: str, defines: tuple[str, ...], cooperative: bool) -> Any:
    import cupy

    return cupy.RawModule(code=source(family), options=("-std=c++17", *defines), enable_cooperative_groups=cooperative)


@cache
def get_kernel(family: str, kernel: str, defines: tuple[str, ...] = (), cooperative: bool = False) -> Any:
    """Return a kernel; CuPy compiles it for the current device on the first launch there."""
    return _module(family, defines, cooperative).get_function(kernel)


def device_attribute(name: str) -> int:
    """Return an attribute of the current device; CuPy would query the driver for all of them each time."""
    import cupy

    return _attribute(cupy.cuda.runtime.getDevice(), name)


@cache
def _attribute(device: int, name: str) -> int:
    import cupy

    return int(cupy.cuda.Device(device).attributes[name])


@cache
def side_stream(device: int) -> Any:
    """Return a stream for copies beside kernels; it is kept: CuPy's pool has memory of its own for each stream."""
    import cupy

    with cupy.cuda.Device(device):
        return cupy.cuda.Stream(non_blocking=True)


@cache
def copy_stream(device: int, lane: int) -> Any:
    """Return one of several streams for copies to the host beside kernels and :func:`side_stream`."""
    import cupy

    with cupy.cuda.Device(device):
        return cupy.cuda.Stream(non_blocking=True)


WORK_SHARE = 64
"""Part of the device's memory that the work space of a call may take, where little memory would mean batches."""


def device_memory() -> int:
    """Return the bytes of the current device's memory, or the limit of CuPy's pool if it is lower."""
    import cupy

    total = _total_memory(cupy.cuda.runtime.getDevice())
    return min(total, cupy.get_default_memory_pool().get_limit() or total)


@cache
def _total_memory(device: int) -> int:
    import cupy

    with cupy.cuda.Device(device):
        return int(cupy.cuda.runtime.memGetInfo()[1])


def work_space(least: int) -> int:
    """Return the bytes of a call's work space: at least ``least``, more on a device with much memory."""
    return max(least, device_memory() // WORK_SHARE)


def even_blocks(size: int) -> int:
    """Return the number of blocks of 1,024 threads for a pass over ``size`` items: at most two per multiprocessor."""
    multiprocessors = device_attribute("MultiProcessorCount")
    return max(1, min(-(-size // 1024), 2 * multiprocessors))


def launch(
    family: str, kernel: str, blocks: int, threads: int, *arguments: Any, defines: tuple[str, ...] = (), shared: int = 0
) -> None:
    """Launch a kernel, unless there are no blocks.

    Parameters
    ----------
    family, kernel
        The ``.cu`` file and the kernel's name in it.
    blocks, threads
        Blocks of the grid, and threads of a block.
    *arguments
        Arrays, None for a null pointer, structs, and numbers, which take the types that the kernel declares.
    defines
        Macros that the family is compiled with.
    shared
        Bytes of dynamic shared memory of a block.

    """
    if blocks:
        given = _as_declared(family, kernel, arguments)
        found = resident(family, kernel, defines, threads, shared)[0] if shared else get_kernel(family, kernel, defines)
        found((blocks,), (threads,), given, shared_mem=shared)


def launch_each(
    family: str, kernel: str, items: int, *arguments: Any, each: int = 1, defines: tuple[str, ...] = ()
) -> None:
    """Launch a kernel with one thread for ``each`` items, if there are any; the rest as for :func:`launch`."""
    launch(family, kernel, -(-items // (256 * each)), 256, *arguments, defines=defines)


def launch_resident(
    family: str,
    kernel: str,
    blocks: int | None,
    threads: int,
    *arguments: Any,
    defines: tuple[str, ...] = (),
    shared: int = 0,
    cooperative: bool = False,
) -> None:
    """Launch blocks of a kernel: at least one, at most as many as can be resident at once.

    Other parameters are those of :func:`launch`; ``blocks`` is None for all that can be resident. The blocks of a
    cooperative launch can wait for each other.
    """
    found, most = resident(family, kernel, defines, threads, shared, cooperative)
    blocks = most if blocks is None else max(1, min(blocks, most))
    found((blocks,), (threads,), _as_declared(family, kernel, arguments), shared_mem=shared)


def resident(
    family: str, kernel: str, defines: tuple[str, ...], threads: int, shared: int = 0, cooperative: bool = False
) -> tuple[Any, int]:
    """Return a kernel, and how many of its blocks can be resident on the current device."""
    import cupy

    return _resident(family, kernel, defines, threads, shared, cooperative, cupy.cuda.runtime.getDevice())


@lru_cache(maxsize=256)
def _resident(
    family: str, kernel: str, defines: tuple[str, ...], threads: int, shared: int, cooperative: bool, device: int
) -> tuple[Any, int]:
    import cupy

    found = get_kernel(family, kernel, defines, cooperative)
    if shared:  # even below 48 KiB: what a kernel declares itself comes on top
        found.max_dynamic_shared_size_bytes = max(found.max_dynamic_shared_size_bytes, shared)
    blocks = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(found.kernel.ptr, threads, shared)
    # few blocks meet sooner at a barrier
    return found, (min(blocks, 4) if cooperative else blocks) * device_attribute("MultiProcessorCount")


_NUMBERS = {"u32": np.uint32, "u64": np.uint64, "i64": np.int64}
_COMMENT = re.compile(r"//.*")


def _as_declared(family: str, kernel: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Give numbers the types that a kernel declares for them."""
    parameters, numbers = _numbers(family, kernel)
    if len(arguments) != parameters:
        raise TypeError(f"{family}.{kernel} takes {parameters} arguments, not {len(arguments)}")
    given = list(arguments)
    for place, kind in numbers:
        given[place] = kind(given[place])
    return tuple(given)


@cache
def _numbers(family: str, kernel: str) -> tuple[int, list[tuple[int, Callable[[Any], Any]]]]:
    """Return how many parameters a kernel has, and which of them are numbers of which type."""
    kinds = declared(family)[kernel]
    return len(kinds), [(place, kind) for place, kind in enumerate(kinds) if kind is not None]


@cache
def declared(family: str) -> dict[str, tuple[Callable[[Any], Any] | None, ...]]:
    """Return what turns a number into the type of each parameter, by kernel; None for pointers and structs."""
    text = _COMMENT.sub("", source(family))
    kernels = re.findall(r"__global__\s+void\s+(?:__launch_bounds__\(.*?\)\s*)?(\w+)\(([^)]*)\)", text, re.DOTALL)
    return {
        name: tuple(None if "*" in one else _NUMBERS.get(one.split()[-2]) for one in parameters.split(","))
        for name, parameters in kernels
    }
