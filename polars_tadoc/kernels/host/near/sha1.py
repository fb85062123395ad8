"""SHA-1 (FIPS 180-4) of several short texts at once, one in each lane of vectors.

It is no promise of safety here: it is the hash that datasketch takes, and a well-mixed one of a vocabulary's words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from polars_tadoc.runtime.addresses import byte_swapped, load_u8, load_u64
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, polled_kernel

LANES = 8
"""Texts that are hashed at once."""

WORDS = 16
"""Words of 32 bits of a block."""

SCRATCH = (WORDS + 5) * LANES
"""Numbers that :func:`digests` takes as scratch: the lanes' blocks and states."""

_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0)
_CONSTANTS = (0x5A827999, 0x6ED9EBA1, 0x8F1BBCDC, 0xCA62C1D6)
_LANE = ir.VectorType(ir.IntType(32), LANES)
_32 = np.uint64(32)


@intrinsic
def _compress(typing_context: Any, address: Any) -> Any:
    """Replace the states after the blocks at an address by those after these blocks, for all lanes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        base = builder.inttoptr(arguments[0], _LANE.as_pointer())

        def constant(value: int) -> Any:
            return ir.Constant(_LANE, [value] * LANES)

        def place(k: int) -> Any:
            return builder.gep(base, [ir.IntType(64)(k)])

        def load(k: int) -> Any:
            value = builder.load(place(k))
            value.align = 4
            return value

        def rotated(value: Any, bits: int) -> Any:
            return builder.or_(builder.shl(value, constant(bits)), builder.lshr(value, constant(32 - bits)))

        words = [load(k) for k in range(WORDS)]
        a, b, c, d, e = before = [load(WORDS + k) for k in range(5)]
        for t in range(80):
            if t >= WORDS:
                mixed = builder.xor(builder.xor(words[t - 3], words[t - 8]), builder.xor(words[t - 14], words[t - 16]))
                words.append(rotated(mixed, 1))
            if t < 20:
                f = builder.xor(d, builder.and_(b, builder.xor(c, d)))
            elif 40 <= t < 60:
                f = builder.or_(builder.and_(b, c), builder.and_(d, builder.or_(b, c)))
            else:
                f = builder.xor(builder.xor(b, c), d)
            total = builder.add(builder.add(e, constant(_CONSTANTS[t // 20])), words[t])
            a, b, c, d, e = builder.add(builder.add(rotated(a, 5), f), total), a, rotated(b, 30), c, d
        for k, (old, new) in enumerate(zip(before, (a, b, c, d, e), strict=True)):
            builder.store(builder.add(old, new), place(WORDS + k)).align = 4
        return context.get_dummy_value()

    return types.void(types.uint64), generate


@inner
def digests(base: np.uint64, starts: Int64, lengths: Int64, count: int, scratch: UInt32, found: UInt64) -> None:
    """Hash some texts.

    Parameters
    ----------
    base
        Address.
    starts, lengths
        int64: place of each text after the address, and its bytes.
    count
        Number of texts, at most :data:`LANES`.
    scratch
        uint32, :data:`SCRATCH`.
    found
        uint64: the first eight bytes of each digest, as a number whose highest byte is the first.

    """
    blocks: Any = 0
    for k in range(count):
        blocks = max(blocks, (lengths[k] + 8) // 64 + 1)
    for k in range(5):
        for lane in range(LANES):
            scratch[(WORDS + k) * LANES + lane] = np.uint32(_START[k])
    for block in range(blocks):
        for lane in range(count):
            own = (lengths[lane] + 8) // 64 + 1
            if block < own:
                _load_block(base, starts[lane], lengths[lane], block, block == own - 1, lane, scratch)
        _compress(np.uint64(scratch.ctypes.data))
        for lane in range(count):
            if block == (lengths[lane] + 8) // 64:
                high = np.uint64(scratch[WORDS * LANES + lane])
                found[lane] = high << _32 | np.uint64(scratch[(WORDS + 1) * LANES + lane])


@inner
def _load_block(
    base: np.uint64, start: int, length: int, block: int, is_last: bool, lane: int, scratch: UInt32
) -> None:
    """Write a block of a padded text into a lane."""
    for k in range(8):
        at = 64 * block + 8 * k
        left = length - at
        value = np.uint64(0)
        if left >= 8:
            value = byte_swapped(load_u64(base + np.uint64(start + at)))
        elif left >= 0:
            for i in range(left):
                value |= np.uint64(load_u8(base + np.uint64(start + at + i))) << np.uint64(56 - 8 * i)
            value |= np.uint64(0x80) << np.uint64(56 - 8 * left)
        if is_last and k == 7:
            value = np.uint64(8 * length)
        scratch[2 * k * LANES + lane] = np.uint32(value >> _32)
        scratch[(2 * k + 1) * LANES + lane] = np.uint32(value)


@polled_kernel
def hash_words(
    offsets: Int64, data: UInt8, first: int, stop: int, starts: Int64, lengths: Int64, scratch: UInt32, found: UInt64
) -> None:
    """Hash words of a vocabulary.

    Parameters
    ----------
    offsets, data, first, stop
        As for :func:`.text_signatures.hash_texts`.
    starts, lengths, scratch
        int64 by lane, and uint32, :data:`SCRATCH`: scratch.
    found
        uint64, a multiple of :data:`LANES` that has room for all: first eight bytes of the digests, from ``first`` on.

    """
    base, began = np.uint64(data.ctypes.data), interrupts()
    for word in range(first, stop, LANES):
        if interrupts() != began:
            return
        count = min(LANES, stop - word)
        for lane in range(count):
            starts[lane], lengths[lane] = offsets[word + lane], offsets[word + lane + 1] - offsets[word + lane]
        digests(base, starts, lengths, count, scratch, found[word - first :])
