"""MinHash signatures of rows: the least value that each permutation gives to an n-gram of the row.

- ``double``: an n-gram has one hash of 64 bits, of which the halves ``x`` and ``y`` give ``x + a[k] * y`` modulo 2^32
  for each permutation ``k`` (double hashing: A. Kirsch and M. Mitzenmacher, *Less hashing, same performance: building a
  better Bloom filter*, 2006). Values of two permutations are independent as those of two hash functions are.
- ``affine``: an n-gram's hash of 32 bits gives ``a[k] * x + b[k]`` modulo 2^64, then modulo 2^61 - 1, of which the low
  32 bits are taken, as in datasketch; or modulo 2^32.

Values of several n-grams are computed for a vector of permutations at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from polars_tadoc.kernels.host.near.sha1 import LANES as TEXTS
from polars_tadoc.kernels.host.near.sha1 import digests
from polars_tadoc.runtime.addresses import copy_bytes
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, polled_kernel

EMPTY = np.uint32(0xFFFFFFFF)
"""Every value of a row without words."""

TOGETHER = 8
"""N-grams whose values are computed in one loop over permutations."""

LANES = 16
"""Permutations of a vector."""

_LANE = ir.VectorType(ir.IntType(32), LANES)

_SPACE = 32
_PRIME = np.uint64((1 << 61) - 1)
_ONE = np.uint64(1)
_16, _13 = np.uint64(16), np.uint64(13)
_32, _33, _61 = np.uint64(32), np.uint64(33), np.uint64(61)
_LOW = np.uint64(0xFFFFFFFF)
_MIX_1, _MIX_2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_MIX_3, _MIX_4 = np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)


@inner
def mixed(x: np.uint64) -> Any:
    """Mix 64 bits: the last step of MurmurHash3 (A. Appleby)."""
    x = (x ^ (x >> _33)) * _MIX_1
    x = (x ^ (x >> _33)) * _MIX_2
    return x ^ (x >> _33)


@inner
def mixed_32(x: np.uint64) -> Any:
    """Mix 32 bits, likewise."""
    x = ((x ^ (x >> _16)) * _MIX_3) & _LOW
    x = ((x ^ (x >> _13)) * _MIX_4) & _LOW
    return x ^ (x >> _16)


@intrinsic
def take_least(typing_context: Any, factors: Any, hashes: Any, found: Any, steps: Any) -> Any:
    """Take the values of :data:`TOGETHER` n-grams into a signature, at addresses; ``steps`` times :data:`LANES`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        factors, hashes, found, steps = arguments
        word, undefined = ir.IntType(64), ir.Constant(_LANE, ir.Undefined)
        first = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)

        def spread(address: Any) -> Any:
            value = builder.load(builder.inttoptr(address, ir.IntType(32).as_pointer()))
            value.align = 4
            return builder.shuffle_vector(builder.insert_element(undefined, value, ir.IntType(32)(0)), undefined, first)

        halves = [spread(builder.add(hashes, word(4 * k))) for k in range(2 * TOGETHER)]
        with cgutils.for_range(builder, steps) as loop:
            offset = builder.mul(loop.index, word(4 * LANES))
            place = builder.inttoptr(builder.add(found, offset), _LANE.as_pointer())
            a = builder.load(builder.inttoptr(builder.add(factors, offset), _LANE.as_pointer()))
            least = builder.load(place)
            a.align = least.align = 4
            for x, y in zip(halves[::2], halves[1::2], strict=True):
                value = builder.add(x, builder.mul(a, y))
                least = builder.select(builder.icmp_unsigned("<", value, least), value, least)
            builder.store(least, place).align = 4
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.uint64, types.int64), generate


@polled_kernel
def sign_double(
    starts: Int64,
    words: UInt32,
    first: int,
    stop: int,
    ngram: int,
    hashes: UInt64,
    base: np.uint64,
    power: np.uint64,
    factors: UInt32,
    held: UInt64,
    least: UInt32,
    found: UInt32,
) -> None:
    """Sign rows by double hashing.

    Parameters
    ----------
    starts, words, first, stop
        As for :func:`.rows.hash_rows`.
    ngram
        Words of an n-gram; a row with fewer words is one n-gram.
    hashes
        uint64: hash of each word.
    base, power
        Base of the polynomial of an n-gram's words, modulo 2^64, and its power ``ngram``.
    factors
        uint32 by permutation, and more up to a multiple of :data:`LANES`.
    held, least
        uint64, :data:`TOGETHER`, and uint32, as many as factors: scratch. Halves of a number are read as if its lower
        one came first.
    found
        uint32, rows by permutations: the signatures, from ``first`` on.

    """
    began, steps = interrupts(), len(factors) // LANES
    places = (np.uint64(factors.ctypes.data), np.uint64(held.ctypes.data), np.uint64(least.ctypes.data))
    for row in range(first, stop):
        if interrupts() != began:
            return
        for k in range(len(least)):
            least[k] = EMPTY
        begin, end = starts[row], starts[row + 1] - 1
        size = min(ngram, end - begin)
        count = 0
        h = np.uint64(0)
        for i in range(begin, end):
            if i & 0xFFF == 0 and interrupts() != began:
                return
            h = h * base + hashes[words[i]]
            if i - begin >= ngram:
                h -= hashes[words[i - ngram]] * power
            if i - begin + 1 >= size:
                held[count] = mixed(h)
                count += 1
                if count == TOGETHER:
                    take_least(*places, steps)
                    count = 0
        if count:
            for k in range(count, TOGETHER):
                held[k] = held[0]
            take_least(*places, steps)
        for k in range(found.shape[1]):
            found[row - first, k] = least[k]


@inner
def _take_prime(a: UInt64, b: UInt64, x: np.uint64, found: UInt32) -> None:
    for k in range(len(found)):
        value = x * a[k] + b[k]
        value = (value & _PRIME) + (value >> _61)
        value += (value + _ONE) >> _61  # modulo the prime, but for bits above the low ones
        found[k] = min(found[k], np.uint32(value))


@inner
def _take_affine(a: UInt64, b: UInt64, x: np.uint64, found: UInt32) -> None:
    for k in range(len(found)):
        found[k] = min(found[k], np.uint32(x * a[k] + b[k]))


@polled_kernel
def sign_affine(
    starts: Int64,
    words: UInt32,
    first: int,
    stop: int,
    ngram: int,
    offsets: Int64,
    data: UInt8,
    is_prime: bool,
    a: UInt64,
    b: UInt64,
    joined: UInt8,
    ends: Int64,
    lanes: Int64,
    scratch: UInt32,
    hashes: UInt64,
    found: UInt32,
) -> None:
    """Sign rows as datasketch does: an n-gram is its words' bytes with one space between, hashed by SHA-1.

    Parameters
    ----------
    starts, words, first, stop, ngram, found
        As for :func:`sign_double`.
    offsets, data
        int64, words + 1, and uint8: the bytes of each word.
    is_prime
        Whether values are taken modulo 2^61 - 1, or of mixed hashes modulo 2^32.
    a, b
        uint64 by permutation.
    joined, ends
        uint8 and int64: scratch, room for the bytes of the longest row's words and one more for each, and for its words
        and one more.
    lanes, scratch, hashes
        int64, twice ``LANES``, uint32, ``SCRATCH``, and uint64, ``LANES`` (:mod:`.sha1`): scratch.

    """
    base, source, began = np.uint64(joined.ctypes.data), np.uint64(data.ctypes.data), interrupts()
    begins, lengths = lanes[:TEXTS], lanes[TEXTS:]
    for row in range(first, stop):
        if interrupts() != began:
            return
        own = found[row - first]
        for k in range(len(own)):
            own[k] = EMPTY
        begin, count = starts[row], starts[row + 1] - 1 - starts[row]
        at: Any = 0
        ends[0] = 0
        for i in range(count):
            if i & 0xFFF == 0 and interrupts() != began:
                return
            word = np.int64(words[begin + i])
            size = offsets[word + 1] - offsets[word]
            copy_bytes(base + np.uint64(at), source + np.uint64(offsets[word]), np.uint64(size))
            joined[at + size] = _SPACE
            at += size + 1
            ends[i + 1] = at
        size = min(ngram, count)
        ngrams = count - size + 1 if count else 0
        for i in range(0, ngrams, TEXTS):
            if interrupts() != began:
                return
            here = min(TEXTS, ngrams - i)
            for lane in range(here):
                begins[lane] = ends[i + lane]
                lengths[lane] = ends[i + lane + size] - 1 - ends[i + lane]
            digests(base, begins, lengths, here, scratch, hashes)
            for lane in range(here):
                high = hashes[lane] >> _32
                # datasketch reads the first four bytes as a number whose lowest byte is the first
                x = (high >> np.uint64(24)) | ((high >> np.uint64(8)) & np.uint64(0xFF00))
                x |= ((high & np.uint64(0xFF00)) << np.uint64(8)) | ((high & np.uint64(0xFF)) << np.uint64(24))
                if is_prime:
                    _take_prime(a, b, x, own)
                else:
                    _take_affine(a, b, mixed_32(x), own)


@polled_kernel
def longest_joined(starts: Int64, words: UInt32, first: int, stop: int, offsets: Int64) -> Any:
    """Return the most bytes of a row's words, with one more for each."""
    most: Any = 0
    began = interrupts()
    for row in range(first, stop):
        if interrupts() != began:
            return most
        total: Any = 0
        for i in range(starts[row], starts[row + 1] - 1):
            word = np.int64(words[i])
            total += offsets[word + 1] - offsets[word] + 1
        most = max(most, total)
    return most
