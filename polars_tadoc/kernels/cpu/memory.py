"""Loads and stores at raw addresses, for strings that Arrow keeps in several buffers.

The addresses come from Arrow arrays that the caller keeps alive; nothing here checks bounds.
"""

from __future__ import annotations

from typing import Any

import numba as nb
from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _load(bits: int, numba_type: Any) -> Any:
    def load(typing_context: Any, address: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value = builder.load(builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer()))
            value.align = 1
            return value

        return numba_type(types.uint64), generate

    return intrinsic(load)


load_u8 = _load(8, types.uint8)
load_u16 = _load(16, types.uint16)
load_u32 = _load(32, types.uint32)
load_u64 = _load(64, types.uint64)


def _store(bits: int, numba_type: Any) -> Any:
    def store(typing_context: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            target = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            builder.store(arguments[1], target).align = 1
            return context.get_dummy_value()

        return types.void(types.uint64, numba_type), generate

    return intrinsic(store)


store_u8 = _store(8, types.uint8)
store_u64 = _store(64, types.uint64)


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of ``array[index]``; any index is harmless."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(view.data, [arguments[1]])
        i32 = ir.IntType(32)
        byte_pointer = ir.IntType(8).as_pointer()
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte_pointer], ir.FunctionType(ir.VoidType(), [byte_pointer, i32, i32, i32])
        )
        read, keep, data = i32(0), i32(3), i32(1)
        builder.call(function, [builder.bitcast(place, byte_pointer), read, keep, data])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


@nb.njit(nogil=True, cache=True, inline="always")
def equal_bytes(a: int, b: int, length: int) -> bool:
    """Compare ``length`` (at least 8) bytes at two addresses, eight at a time, the last eight overlapping."""
    i = nb.uint64(0)
    last = nb.uint64(length) - nb.uint64(8)
    while i < last:
        if load_u64(nb.uint64(a) + i) != load_u64(nb.uint64(b) + i):
            return False
        i += nb.uint64(8)
    return bool(load_u64(nb.uint64(a) + last) == load_u64(nb.uint64(b) + last))
