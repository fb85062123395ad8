"""Hashes with this process's random numbers, by multiplications whose halves are combined.

As in wyhash (Wang Yi) and foldhash: keys that collide cannot be made without the random numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.secret import first_secret, second_secret

_K = np.uint64(0xC2B2AE3D27D4EB4F)


@intrinsic
def high_product(typing_context: Any, a: Any, b: Any) -> Any:
    """Return the upper 64 bits of the product of two 64-bit numbers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(arguments[0], wide), builder.zext(arguments[1], wide))
        return builder.trunc(builder.lshr(product, wide(64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


@njit(inline="always")
def folded(a: int, b: int) -> Any:
    """Return the exclusive or of both halves of the product of two 64-bit numbers."""
    return np.uint64(a) * np.uint64(b) ^ high_product(np.uint64(a), np.uint64(b))


@njit(inline="always")
def keyed(first: int, second: int, size: int) -> Any:
    """Hash two numbers of 64 bits and a size."""
    return folded(np.uint64(first) ^ first_secret(), (np.uint64(size) * _K) ^ np.uint64(second) ^ second_secret())


@njit(inline="always")
def keyed_more(hashed: int, number: int) -> Any:
    """Hash one more number."""
    return folded(np.uint64(hashed) ^ np.uint64(number), second_secret())
