"""Loads and stores at raw addresses, for strings that Arrow keeps in several buffers.

The addresses come from Arrow arrays that the caller keeps alive; no bounds are checked.
"""

from __future__ import annotations

from typing import Any

import numba as nb
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from polars_tadoc.runtime.compiled import njit


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
store_u16 = _store(16, types.uint16)
store_u32 = _store(32, types.uint32)
store_u64 = _store(64, types.uint64)


def _prefetch(writes: int) -> Any:
    def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, arguments[0])
            _fetch(builder, builder.gep(view.data, [arguments[1]]), writes)
            return context.get_dummy_value()

        return types.void(array, types.int64), generate

    return intrinsic(prefetch)


def _fetch(builder: Any, place: Any, writes: int) -> None:
    i32 = ir.IntType(32)
    byte_pointer = ir.IntType(8).as_pointer()
    function = builder.module.declare_intrinsic(
        "llvm.prefetch", [byte_pointer], ir.FunctionType(ir.VoidType(), [byte_pointer, i32, i32, i32])
    )
    keep, data = i32(3), i32(1)
    builder.call(function, [builder.bitcast(place, byte_pointer), i32(writes), keep, data])


prefetch = _prefetch(0)
"""``prefetch(array, index)``: prefetch the cache line of ``array[index]``; any index is allowed."""

prefetch_to_write = _prefetch(1)
"""The same for a line that will be written."""


@intrinsic
def prefetch_address(typing_context: Any, address: Any) -> Any:
    """Prefetch the cache line at an address; any address is allowed."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _fetch(builder, builder.inttoptr(arguments[0], ir.IntType(8).as_pointer()), 0)
        return context.get_dummy_value()

    return types.void(types.uint64), generate


@njit(inline="always")
def equal_bytes(a: int, b: int, length: int) -> bool:
    """Compare ``length`` (at least 8) bytes at two addresses, eight at a time, the last eight overlapping."""
    i = nb.uint64(0)
    last = nb.uint64(length) - nb.uint64(8)
    while i < last:
        if load_u64(nb.uint64(a) + i) != load_u64(nb.uint64(b) + i):
            return False
        i += nb.uint64(8)
    return bool(load_u64(nb.uint64(a) + last) == load_u64(nb.uint64(b) + last))


@intrinsic
def trailing_zeros(typing_context: Any, value: Any) -> Any:
    """Count the zero bits below the lowest one bit; 64 for zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(0))

    return types.int64(types.uint64), generate


@intrinsic
def bit_length(typing_context: Any, value: Any) -> Any:
    """Count the bits up to the highest one bit; 0 for zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.sub(ir.IntType(64)(64), builder.ctlz(arguments[0], ir.IntType(1)(0)))

    return types.int64(types.uint64), generate


@intrinsic
def count_ones(typing_context: Any, value: Any) -> Any:
    """Count the one bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic
def byte_swapped(typing_context: Any, value: Any) -> Any:
    """Reverse the order of the eight bytes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bswap(arguments[0])

    return types.uint64(types.uint64), generate


_BLOCK = ir.VectorType(ir.IntType(8), 64)


def _load_block(builder: Any, address: Any) -> Any:
    value = builder.load(builder.inttoptr(address, _BLOCK.as_pointer()))
    value.align = 1
    return value


@intrinsic
def high_bits(typing_context: Any, address: Any) -> Any:
    """Of the 64 bytes at an address, bit i tells whether byte i is 0x80 or more."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = _load_block(builder, arguments[0])
        return builder.bitcast(builder.icmp_signed("<", block, _BLOCK(None)), ir.IntType(64))

    return types.uint64(types.uint64), generate


@intrinsic
def range_bits(typing_context: Any, address: Any, firsts: Any, widths: Any) -> Any:
    """Of the 64 bytes at an address, bit i tells whether byte i is in one of four ranges.

    Byte k of ``firsts`` and ``widths`` is the first value and the size of range k. LLVM compiles it to vector
    instructions on any processor.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, firsts, widths = arguments
        block = _load_block(builder, address)
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), 64), None)

        def spread(packed: Any, k: int) -> Any:
            byte = builder.trunc(builder.lshr(packed, ir.IntType(32)(8 * k)), ir.IntType(8))
            single = builder.insert_element(ir.Constant(_BLOCK, ir.Undefined), byte, ir.IntType(32)(0))
            return builder.shuffle_vector(single, ir.Constant(_BLOCK, ir.Undefined), zeros)

        inside = None
        for k in range(4):
            one = builder.icmp_unsigned("<", builder.sub(block, spread(firsts, k)), spread(widths, k))
            inside = one if inside is None else builder.or_(inside, one)
        return builder.bitcast(inside, ir.IntType(64))

    return types.uint64(types.uint64, types.uint32, types.uint32), generate


@intrinsic
def equal_bits(typing_context: Any, array: Any, index: Any, byte: Any) -> Any:
    """Of the 64 bytes from ``array[index]`` on, bit i tells whether byte i equals ``byte``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.ptrtoint(builder.gep(view.data, [arguments[1]]), ir.IntType(64))
        undefined = ir.Constant(_BLOCK, ir.Undefined)
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), 64), None)
        single = builder.insert_element(undefined, arguments[2], ir.IntType(32)(0))
        equal = builder.icmp_unsigned(
            "==", _load_block(builder, address), builder.shuffle_vector(single, undefined, zeros)
        )
        return builder.bitcast(equal, ir.IntType(64))

    return types.uint64(array, types.uint64, types.uint8), generate


def _atomic(operation: str, ordering: str = "monotonic") -> Any:
    def update(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = context.make_array(signature.args[0])(context, builder, arguments[0])
            place = builder.gep(view.data, [arguments[1]])
            return builder.atomic_rmw(operation, place, arguments[2], ordering)

        return array.dtype(array, types.int64, array.dtype), generate

    return intrinsic(update)


atomic_add = _atomic("add")
"""``atomic_add(array, index, value)``: atomically add to an integer; returns the old value."""

atomic_min = _atomic("umin")
"""Atomic minimum, likewise."""

atomic_or = _atomic("or")
"""Atomic bitwise or, likewise."""

ordered_add = _atomic("add", "acq_rel")
"""As ``atomic_add``; a thread that sees the new value also sees what this one wrote before."""


@intrinsic
def ordered_load(typing_context: Any, array: Any, index: Any) -> Any:
    """Load an integer that other threads change, and see what they wrote before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(view.data, [arguments[1]])
        return builder.load_atomic(place, ordering="acquire", align=array.dtype.bitwidth // 8)

    return array.dtype(array, types.int64), generate


@intrinsic
def atomic_exchange_if(typing_context: Any, array: Any, index: Any, expected: Any, value: Any) -> Any:
    """Atomically replace an integer that equals ``expected``; returns the old value."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(view.data, [arguments[1]])
        pair = builder.cmpxchg(place, arguments[2], arguments[3], "acq_rel", "acquire")
        return builder.extract_value(pair, 0)

    return array.dtype(array, types.int64, array.dtype, array.dtype), generate


@intrinsic
def ordered_load_at(typing_context: Any, address: Any) -> Any:
    """Load 64 bits, aligned, that other threads change, and see what they wrote before."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.load_atomic(place, ordering="acquire", align=8)

    return types.uint64(types.uint64), generate


@intrinsic
def exchange_if_at(typing_context: Any, address: Any, expected: Any, value: Any) -> Any:
    """Atomically replace 64 bits, aligned, that equal ``expected``; returns the old ones."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.extract_value(builder.cmpxchg(place, arguments[1], arguments[2], "acq_rel", "acquire"), 0)

    return types.uint64(types.uint64, types.uint64, types.uint64), generate


@intrinsic
def atomic_add_at(typing_context: Any, address: Any, value: Any) -> Any:
    """Atomically add to 64 bits, aligned; returns the old ones."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", place, arguments[1], "monotonic")

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def move(typing_context: Any, array: Any, target: Any, source: Any, count: Any) -> Any:
    """Move ``count`` items within an array; the ranges may overlap."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        width = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
        to, start = (builder.gep(view.data, [arguments[k]]) for k in (1, 2))
        cgutils.raw_memmove(builder, to, start, arguments[3], width)
        return context.get_dummy_value()

    return types.void(array, types.int64, types.int64, types.int64), generate


@intrinsic
def copy_bytes(typing_context: Any, target: Any, source: Any, count: Any) -> Any:
    """Copy bytes from one address to another; the ranges must not overlap."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte_pointer = ir.IntType(8).as_pointer()
        to, start = (builder.inttoptr(argument, byte_pointer) for argument in arguments[:2])
        cgutils.raw_memcpy(builder, to, start, arguments[2], 1)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.uint64), generate
