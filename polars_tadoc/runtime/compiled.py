"""Compiles kernels: all kernels pass through here to Numba, so that all machine code is cached in the same way."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba as nb
from numba.core.ccallback import CFunc

from polars_tadoc.runtime.machine_code.cache import KernelCache


def njit(function: Any = None, **options: Any) -> Any:
    """Compile a function on its first call, like ``numba.njit(nogil=True)``, and cache its machine code."""
    if function is None:
        return partial(njit, **options)
    dispatcher: Any = nb.njit(**{"nogil": True, **options})(function)
    dispatcher._cache = KernelCache(function)
    return dispatcher


def callback(signature: Any, function: Callable[..., None]) -> Any:
    """Compile a function for a signature, like ``numba.cfunc``, and cache its machine code."""
    made: Any = CFunc(function, (signature.args, signature.return_type), locals={}, options={})
    made._cache = KernelCache(function, is_callback=True)  # type: ignore[arg-type]
    made.compile()
    return made
