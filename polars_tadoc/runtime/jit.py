"""Compiles kernels that allocate nothing, and calls between separately compiled functions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from polars_tadoc.runtime.compiled import callback, njit
from polars_tadoc.runtime.interrupts import polled

kernel = njit(_nrt=False)
"""Compiles a function that allocates nothing: without reference counts of arrays, in a third of the time."""

inner = njit(_nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)
"""The same for functions that only kernels call: they compile faster."""


def polled_kernel(function: Callable[..., Any]) -> polled:
    """Compile a kernel that returns early on an interrupt, for :class:`~polars_tadoc.runtime.interrupts.polled`."""
    return polled(kernel(function))


def polled_njit(function: Callable[..., Any]) -> polled:
    """Compile a function that may allocate and returns early on an interrupt, likewise."""
    return polled(njit(function))


_compiled: dict[Callable[..., None], Any] = {}  # the code lives as long as its owner
_lock = threading.Lock()


def address_of(function: Callable[..., None], arguments: int) -> np.uint64:
    """Compile a function of ``arguments`` uint64 separately and return its address, for kernels to :func:`call`.

    Numba optimises a callee again in each kernel that calls it; functions with many callers are compiled once like
    this.
    """
    with _lock:  # two threads must not compile it twice: one result would be freed
        if function not in _compiled:
            _compiled[function] = callback(types.void(*[types.uint64] * arguments), function)
        return np.uint64(_compiled[function].address)


@intrinsic
def call(typing_context: Any, address: Any, *arguments: Any) -> Any:
    """Call the function at an address with uint64 arguments."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address, *given = [builder.extract_value(values[1], k - 1) if k else values[0] for k in range(1 + len(own))]
        function = ir.FunctionType(ir.VoidType(), [ir.IntType(64)] * len(given)).as_pointer()
        builder.call(builder.inttoptr(address, function), given)
        return context.get_dummy_value()

    own = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], types.BaseTuple) else arguments
    return types.void(types.uint64, types.StarArgTuple.from_types(own)), generate
