"""Decodes sixteen unary numbers at a time, with vector instructions that LLVM generates for any processor.

A number is that many zero bits, then a one bit. The positions of the one bits are prefix sums of the numbers, so the
numbers are their differences. Nothing here checks bounds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from polars_tadoc.kernels.primitives.simd import LANES, load, store, to_all

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_COMPRESSES = binding.llvm_version_info[0] >= 20
"""Whether LLVM moves chosen lanes to the front on any processor; Numba has such an LLVM since 0.62."""
_BYTES, _BITS = ir.VectorType(_I8, 64), ir.VectorType(ir.IntType(1), 64)


def _on_stack(numbers: int) -> Any:
    def reserve(typing_context: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            room = cgutils.alloca_once(builder, ir.ArrayType(_I32, numbers))
            room.align = 64
            return builder.ptrtoint(room, _I64)

        return types.uint64(), generate

    return intrinsic(reserve)


block_on_stack = _on_stack(128)
"""Return the address of stack memory for the uint32 of one block."""

ones_on_stack = _on_stack(128 + 64)
"""The same for the positions of a block's one bits, with room for a whole word's excess."""


@intrinsic
def store_ones(typing_context: Any, word: Any, before: Any, target: Any) -> Any:
    """Store ``before`` + k as uint32 for each set bit k of a word; always writes 64 numbers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, before, target = arguments
        if not _COMPRESSES:
            _store_one_by_one(builder, word, before, target)
            return context.get_dummy_value()
        compress = builder.module.declare_intrinsic(
            "llvm.experimental.vector.compress.v64i8", (), ir.FunctionType(_BYTES, [_BYTES, _BITS, _BYTES])
        )
        bits = ir.Constant(_BYTES, list(range(64)))
        places = builder.call(compress, [bits, builder.bitcast(word, _BITS), ir.Constant(_BYTES, None)])
        first = to_all(builder, before)
        for group in range(4):
            chosen = ir.Constant(LANES, [16 * group + k for k in range(16)])
            part = builder.shuffle_vector(places, ir.Constant(_BYTES, ir.Undefined), chosen)
            sums = builder.add(builder.zext(part, LANES), first)
            store(builder, sums, builder.add(target, _I64(64 * group)))
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint32, types.uint64), generate


def _store_one_by_one(builder: Any, word: Any, before: Any, target: Any) -> None:
    left = cgutils.alloca_once_value(builder, word)
    with cgutils.for_range(builder, _I64(64), intp=_I64) as loop:
        bits = builder.load(left)
        is_over = builder.icmp_unsigned("==", bits, _I64(0))
        place = builder.trunc(builder.cttz(bits, ir.Constant(ir.IntType(1), 0)), _I32)
        number = builder.add(builder.select(is_over, _I32(0), place), before)
        at = builder.add(target, builder.mul(loop.index, _I64(4)))
        builder.store(number, builder.inttoptr(at, _I32.as_pointer()))
        builder.store(builder.and_(bits, builder.sub(bits, _I64(1))), left)


@intrinsic
def add_high_parts(typing_context: Any, ones: Any, width: Any, groups: Any, target: Any) -> Any:
    """Add unary numbers, given as positions of one bits, above the lowest ``width`` bits of sixteen times ``groups``.

    ``groups`` is at least 1; positions count from the first bit. The width is at most 32.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        ones, width, groups, target = arguments
        # 32-bit numbers have no high part: any shift is correct
        shifts = to_all(builder, builder.and_(builder.trunc(width, _I32), _I32(31)))
        entry = builder.block
        loop, done = builder.append_basic_block("high"), builder.append_basic_block("highs")
        builder.branch(loop)
        builder.position_at_end(loop)
        group, before = builder.phi(_I64), builder.phi(LANES)
        group.add_incoming(_I64(0), entry)
        before.add_incoming(ir.Constant(LANES, [0xFFFFFFFF] * 16), entry)
        step = builder.mul(group, _I64(64))
        places = load(builder, builder.add(ones, step))
        last = builder.shuffle_vector(before, places, ir.Constant(LANES, list(range(15, 31))))
        zeros = builder.sub(builder.sub(places, last), ir.Constant(LANES, [1] * 16))
        to = builder.add(target, step)
        sums = builder.or_(load(builder, to), builder.shl(zeros, shifts))
        store(builder, sums, to)
        following = builder.add(group, _I64(1))
        group.add_incoming(following, loop)
        before.add_incoming(places, loop)
        builder.cbranch(builder.icmp_unsigned("<", following, groups), loop, done)
        builder.position_at_end(done)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.uint64, types.uint64), generate


@intrinsic
def increment(typing_context: Any, target: Any, groups: Any) -> Any:
    """Add 1 to sixteen times ``groups`` uint32 at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        target, groups = arguments
        with cgutils.for_range(builder, groups, intp=_I64) as loop:
            at = builder.add(target, builder.mul(loop.index, _I64(64)))
            store(builder, builder.add(load(builder, at), ir.Constant(LANES, [1] * 16)), at)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), generate
