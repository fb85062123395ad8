"""Arithmetic modulo the Mersenne prime 2^61 - 1, and sums of bytes times powers, sixteen bytes at a time.

Reduction is a mask, a shift and a sum (Carter and Wegman, *Universal classes of hash functions*, 1979; Ahle, Knudsen
and Thorup, *The power of hashing with Mersenne primes*, 2020). Intermediate values are below 2^61 + 8 and congruent to
the exact ones; only final values are reduced below the prime.
"""

from __future__ import annotations

from typing import Any

import numba as nb
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from polars_tadoc.kernels.primitives.keyed_hash import high_product
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.jit import kernel

PRIME = (1 << 61) - 1
LIMBS = 4
"""Signed 16-bit limbs of a power, the lowest first."""
LANES = 16
"""Bytes per step of :func:`dot`."""

_61 = 61
_P = nb.uint64(PRIME)


@njit(inline="always")
def times(a: int, b: int) -> Any:
    """Return the product of two values below 2^62; the result is below 2^61 + 8."""
    low = nb.uint64(a) * nb.uint64(b)
    high = high_product(nb.uint64(a), nb.uint64(b))
    total = (low & _P) + ((high << nb.uint64(3)) | (low >> nb.uint64(61)))
    return (total & _P) + (total >> nb.uint64(61))


@njit(inline="always")
def plus(a: int, b: int) -> Any:
    """Return the sum of two values below 2^63; the result is below 2^61 + 8."""
    total = nb.uint64(a) + nb.uint64(b)
    return (total & _P) + (total >> nb.uint64(61))


@njit(inline="always")
def shifted(b: int) -> Any:
    """Return a factor of :func:`times_plus`: ``b`` times 8, so that the upper word of a product is its bits from 61."""
    return reduced(b) << nb.uint64(3)


@njit(inline="always")
def times_plus(a: int, b: int, c: int) -> Any:
    """Return ``a * b + c`` for ``b`` as :func:`shifted` gives it; ``a``, ``c`` and the result are below 2^61 + 8."""
    low = nb.uint64(a) * nb.uint64(b)
    high = high_product(nb.uint64(a), nb.uint64(b))
    return plus(high + (low >> nb.uint64(3)), c)


@njit(inline="always")
def reduced(a: int) -> Any:
    """Reduce a value below 2^62 to below the prime."""
    value = (nb.uint64(a) & _P) + (nb.uint64(a) >> nb.uint64(61))
    return value - _P if value >= _P else value


@kernel
def power(base: int, exponent: int) -> Any:
    """Return a power of the base, by squaring."""
    result = nb.uint64(1)
    square = nb.uint64(base)
    left = nb.uint64(exponent)
    while left:
        if left & nb.uint64(1):
            result = times(result, square)
        square = times(square, square)
        left >>= nb.uint64(1)
    return result


@njit(inline="always")
def from_limbs(a: int, b: int, c: int, d: int) -> Any:
    """Return the value of four signed limbs below 2^31 in magnitude; the result is below 2^61 + 8."""
    low = a + (b << nb.int64(16))
    high = c + (d << nb.int64(16))
    # high * 2^32; its bits from 2^61 on are reduced
    total = low + (high >> nb.int64(29)) + ((high & nb.int64((1 << 29) - 1)) << nb.int64(32)) + nb.int64(PRIME)
    value = nb.uint64(total)
    return (value & _P) + (value >> nb.uint64(61))


_BYTES = ir.VectorType(ir.IntType(8), LANES)
_SHORTS = ir.VectorType(ir.IntType(16), LANES)
_INTS = ir.VectorType(ir.IntType(32), LANES)
_SUMS = ir.VectorType(ir.IntType(32), LANES // 2)
_I64 = ir.IntType(64)


def _load(builder: Any, address: Any, kind: Any) -> Any:
    value = builder.load(builder.inttoptr(address, kind.as_pointer()))
    value.align = 1
    return value


def _shuffle(builder: Any, vector: Any, places: Any) -> Any:
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), [ir.IntType(32)(place) for place in places])
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)


def _pair_sums(builder: Any, digits: Any, limbs: Any) -> Any:
    """Sum adjacent products of 16 digits and limbs: one ``pmaddwd`` if the processor has it."""
    products = builder.mul(builder.sext(digits, _INTS), builder.sext(limbs, _INTS))
    return builder.add(_shuffle(builder, products, range(0, LANES, 2)), _shuffle(builder, products, range(1, LANES, 2)))


@intrinsic
def dot(typing_context: Any, low: Any, high: Any, address: Any, steps: Any, powers: Any, stride: Any) -> Any:
    """Sum bytes times limbs of powers, for each of two bases' four limbs.

    The bytes are the sixteen of ``low`` and ``high``, then ``16 * steps`` from ``address``; ``powers`` is the address
    of the first byte's limb, and the base's next limb (and then the next base) is ``stride`` bytes further. For at most
    256 bytes, sums fit in 31 bits.
    """
    count = 2 * LIMBS

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        low, high, address, steps, powers, stride = arguments
        wide = ir.IntType(128)
        head = builder.or_(builder.zext(low, wide), builder.shl(builder.zext(high, wide), wide(64)))

        def sums(digits: Any, place: Any) -> list[Any]:
            found = []
            for _ in range(count):
                found.append(_pair_sums(builder, digits, _load(builder, place, _SHORTS)))
                place = builder.add(place, stride)
            return found

        first = sums(builder.zext(builder.bitcast(head, _BYTES), _SHORTS), powers)
        before = builder.block
        loop = builder.append_basic_block("bytes")
        body = builder.append_basic_block("sixteen")
        after = builder.append_basic_block("sums")
        builder.branch(loop)
        builder.position_at_end(loop)
        step = builder.phi(_I64)
        step.add_incoming(_I64(0), before)
        totals = [builder.phi(_SUMS) for _ in range(count)]
        for total, value in zip(totals, first, strict=True):
            total.add_incoming(value, before)
        builder.cbranch(builder.icmp_signed("<", step, steps), body, after)
        builder.position_at_end(body)
        offset = builder.mul(step, _I64(LANES))
        digits = builder.zext(_load(builder, builder.add(address, offset), _BYTES), _SHORTS)
        place = builder.add(powers, builder.mul(builder.add(step, _I64(1)), _I64(2 * LANES)))
        for total, value in zip(totals, sums(digits, place), strict=True):
            total.add_incoming(builder.add(total, value), builder.block)
        step.add_incoming(builder.add(step, _I64(1)), builder.block)
        builder.branch(loop)
        builder.position_at_end(after)
        results = []
        for total in totals:
            width = LANES // 2
            vector = total
            while width > 1:
                width //= 2
                vector = builder.add(
                    _shuffle(builder, vector, range(width)), _shuffle(builder, vector, range(width, 2 * width))
                )
            results.append(builder.sext(builder.extract_element(vector, ir.IntType(32)(0)), _I64))
        return context.make_tuple(builder, signature.return_type, results)

    return (
        types.UniTuple(types.int64, count)(
            types.uint64, types.uint64, types.uint64, types.int64, types.uint64, types.uint64
        ),
        generate,
    )
