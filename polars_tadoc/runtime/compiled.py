"""Compiles kernels: all kernels pass through here to Numba, so that all machine code is cached in the same way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba as nb
from numba.core.ccallback import CFunc

from polars_tadoc.runtime.machine_code.cache import KernelCache


def njit(**options: Any) -> Callable[[Any], Any]:
    """Compile a function on its first call, like ``numba.njit``, and cache its machine code."""

    def decorate(function: Any) -> Any:
        dispatcher: Any = nb.njit(**options)(function)
        dispatcher._cache = KernelCache(function)
        return dispatcher

    return decorate


def callback(signature: Any, function: Callable[..., None]) -> Any:
    """Compile a function for a signature, like ``numba.cfunc``, and cache its machine code."""
    made: Any = CFunc(function, (signature.args, signature.return_type), locals={}, options={})
    made._cache = KernelCache(function, is_callback=True)  # type: ignore[arg-type]
    made.compile()
    return made
