"""How arguments reach a separately compiled search: their addresses and sizes in one block of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from polars_tadoc.kernels.postings.coded import BLOCK, Lists
from polars_tadoc.kernels.postings.decode_cpu import view_at
from polars_tadoc.kernels.search.accumulators_cpu import GROUP, WINDOW
from polars_tadoc.kernels.search.workspace_cpu import workspace_of
from polars_tadoc.runtime.array_types import UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.jit import inner

BLOCK_SIZE = 29
"""Numbers of the block."""


def _array_at(dtype: Any) -> Any:
    def array_at(typing_context: Any, address: Any, size: Any) -> Any:
        """Return an array of ``size`` numbers at an address."""
        array_type = types.Array(dtype, 1, "C")

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            made = context.make_array(array_type)(context, builder)
            step = context.get_constant(types.intp, dtype.bitwidth // 8)
            data = builder.inttoptr(arguments[0], made.data.type)
            populate_array(made, data=data, shape=[arguments[1]], strides=[step], itemsize=step, meminfo=None)
            return made._getvalue()

        return array_type(types.uint64, types.int64), generate

    return intrinsic(array_at)


def _packed_at(array_at: Any) -> Any:
    @njit(inline="always")
    def packed_at(addresses: UInt64, number: int) -> Any:
        """Return an array of :func:`packed`."""
        return array_at(addresses[2 * number], nb.int64(addresses[2 * number + 1]))

    return packed_at


_u8s, _u32s, _u64s, _i64s, _f32s = map(_array_at, (nb.uint8, nb.uint32, nb.uint64, nb.int64, nb.float32))
u8s, u16s, u32s, u64s, i64s, f32s, f64s = (
    _packed_at(_array_at(dtype))
    for dtype in (nb.uint8, nb.uint16, nb.uint32, nb.uint64, nb.int64, nb.float32, nb.float64)
)


def packed(arrays: Sequence[npt.NDArray[Any]], kinds: str, numbers: Sequence[int] = ()) -> UInt64:
    """Return addresses and sizes of arrays of some kinds (as NumPy's type codes), which their owner keeps alive.

    Numba takes 50 ns to unpack an array argument, and several times that if it isn't in a cache. ``numbers`` follow.
    """
    for array, kind in zip(arrays, kinds, strict=True):
        if array.dtype != np.dtype(kind) or array.ndim != 1 or not array.flags.c_contiguous:
            raise TypeError(f"kernels take {np.dtype(kind)} here, not {array.dtype} of {array.ndim} dimensions")
    pairs = [own for array in arrays for own in (array.ctypes.data, len(array))]
    return np.array([*pairs, *map(int, numbers)], np.uint64)


@inner
def arguments_at(block: int) -> Any:
    """Return the arguments that :func:`.search_cpu.run_search` wrote at an address; see there.

    Work space of the thread is a :class:`.workspace_cpu.Workspace`.
    """
    a = _u64s(block, BLOCK_SIZE)
    queries, width = nb.int64(a[25]), nb.int64(a[26])
    return (
        view_at(_u64s(a[0], nb.int64(a[17]))),
        nb.uint64(a[1]),
        _f32s(a[2], nb.int64(a[19])),
        _i64s(a[3], queries + 1),
        _u32s(a[4], nb.int64(a[20])),
        _f32s(a[5], nb.int64(a[20])),
        Lists(_i64s(a[6], nb.int64(a[21])), _u32s(a[7], nb.int64(a[22])), _u32s(a[8], nb.int64(a[22]))),
        _u32s(a[9], nb.int64(a[23])),
        nb.int64(a[27]),
        nb.int64(a[28]),
        workspace_of(
            _f32s(a[10], WINDOW + GROUP), _u8s(a[11], WINDOW // GROUP + 8), _u32s(a[12], 3 * WINDOW + 5 * BLOCK)
        ),
        _u64s(a[13], nb.int64(a[24])),
        _i64s(a[14], queries),
        _u32s(a[15], queries * width).reshape((queries, width)),
        _u32s(a[16], queries * width).reshape((queries, width)),
    )
