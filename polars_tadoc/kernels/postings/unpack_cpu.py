"""Unpacks sixteen numbers at a time, with vector instructions that LLVM generates for any processor.

Sixteen contiguous numbers of one width start and end at whole bytes. For each width the bytes of each number are known,
so constant shuffles move them to their lanes (Lemire and Boytsov, Decoding billions of integers per second through
vectorization, 2015, use such constants, too). Nothing here checks bounds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from polars_tadoc.kernels.primitives.simd import LANES, load, store, to_all

UNPACKED = 16
"""Numbers unpacked together."""

UNPACK_READS = 64
"""Bytes from the source on that may be read, for any width."""

_BYTE, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_BYTES = ir.VectorType(_BYTE, 64)
_WIDEST_IN_32_BITS = 25
"""A number of this width, preceded by up to seven bits, fits in four bytes."""


def _spread(builder: Any, source: Any, width: int, first: int, count: int, lane_bytes: int) -> Any:
    """Move numbers ``first`` to ``first + count`` to lanes, shifted and masked."""
    lane = ir.VectorType(ir.IntType(8 * lane_bytes), count)
    none = 64  # the first byte of the second operand, which is all zero
    places, shifts = [], []
    for k in range(first, first + count):
        byte = k * width >> 3
        places += [byte + j if byte + j < 64 else none for j in range(lane_bytes)]
        shifts.append(k * width & 7)
    mask = ir.Constant(ir.VectorType(_I32, count * lane_bytes), places)
    lanes = builder.bitcast(builder.shuffle_vector(source, ir.Constant(_BYTES, None), mask), lane)
    lanes = builder.lshr(lanes, ir.Constant(lane, shifts))
    return builder.and_(lanes, ir.Constant(lane, [(1 << width) - 1] * count))


def _unpacked(builder: Any, source: Any, width: int) -> Any:
    if width == 0:
        return ir.Constant(LANES, None)
    if width <= _WIDEST_IN_32_BITS:
        return _spread(builder, source, width, 0, 16, 4)
    half = ir.VectorType(_I32, 8)
    low, high = (builder.trunc(_spread(builder, source, width, first, 8, 8), half) for first in (0, 8))
    return builder.shuffle_vector(low, high, ir.Constant(LANES, list(range(16))))


@intrinsic
def unpack_block(typing_context: Any, source: Any, width: Any, groups: Any, target: Any) -> Any:
    """Unpack ``groups`` times sixteen numbers of ``width`` bits, 0 to 32, from an address to uint32 at another.

    ``groups`` is at least 1; each group reads ``UNPACK_READS`` bytes. A width above 32 does nothing.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, width, groups, target = arguments
        done = builder.append_basic_block("unpacked")
        choice = builder.switch(width, done)
        entry = builder.block
        for bits in range(33):
            loop = builder.append_basic_block(f"unpack_{bits}")
            choice.add_case(_I64(bits), loop)
            with builder.goto_block(loop):
                group = builder.phi(_I64)
                group.add_incoming(_I64(0), entry)
                at = builder.add(source, builder.mul(group, _I64(2 * bits)))
                packed = load(builder, at, _BYTES)
                to = builder.add(target, builder.mul(group, _I64(64)))
                store(builder, _unpacked(builder, packed, bits), to)
                following = builder.add(group, _I64(1))
                group.add_incoming(following, loop)
                builder.cbranch(builder.icmp_unsigned("<", following, groups), loop, done)
        builder.position_at_end(done)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.uint64, types.uint64), generate


@intrinsic
def sum_gaps(typing_context: Any, address: Any, groups: Any, before: Any, last: Any) -> Any:
    """Convert ``groups`` times sixteen gaps at an address, each minus 1, to documents after ``before``.

    ``groups`` is at least 1. Documents are capped at ``last``; sums are modulo 2^32.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, groups, before, last = arguments
        most, first = to_all(builder, last), to_all(builder, before)
        entry = builder.block
        loop, done = builder.append_basic_block("sum"), builder.append_basic_block("summed")
        builder.branch(loop)
        builder.position_at_end(loop)
        group, sums_before = builder.phi(_I64), builder.phi(LANES)
        group.add_incoming(_I64(0), entry)
        sums_before.add_incoming(first, entry)
        at = builder.add(address, builder.mul(group, _I64(64)))
        sums = builder.add(load(builder, at), ir.Constant(LANES, [1] * 16))
        for step in (1, 2, 4, 8):
            moved = [16 + k - step if k >= step else k for k in range(16)]
            shifted = builder.shuffle_vector(ir.Constant(LANES, None), sums, ir.Constant(LANES, moved))
            sums = builder.add(sums, shifted)
        sums = builder.add(sums, sums_before)
        store(builder, builder.select(builder.icmp_unsigned("<", sums, most), sums, most), at)
        total = builder.shuffle_vector(sums, ir.Constant(LANES, ir.Undefined), ir.Constant(LANES, [15] * 16))
        following = builder.add(group, _I64(1))
        group.add_incoming(following, loop)
        sums_before.add_incoming(total, loop)
        builder.cbranch(builder.icmp_unsigned("<", following, groups), loop, done)
        builder.position_at_end(done)
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.uint32, types.uint32), generate
