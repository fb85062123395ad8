"""Accumulators of the scores of a window of documents, and the best of them.

An accumulator of -0.0 is untouched: scores are not negative, and 0.0 + -0.0 is 0.0. So the bits of accumulators, as
integers, tell which were touched, and compare as the scores do. Accumulators form groups, with a byte per group that
tells whether it was touched (Ding et al., WWW 2009, section 6, use a tree of maxima; marks are cheaper to maintain, and
64 comparisons are a few vector instructions).
"""

from __future__ import annotations

from typing import Any

import numba as nb
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from polars_tadoc.kernels.primitives.simd import load, store, to_all
from polars_tadoc.runtime.addresses import count_ones, load_u64, trailing_zeros
from polars_tadoc.runtime.array_types import Int32, UInt8, UInt32, UInt64
from polars_tadoc.runtime.jit import inner

WINDOW = 1 << 16
"""Documents per window; the accumulators take a quarter of a core's L2 cache."""

GROUP = 64

_0, _1, _3, _4, _6, _8 = (nb.uint64(i) for i in (0, 1, 3, 4, 6, 8))
_32, _GROUP, _LOWEST_32 = nb.uint64(32), nb.uint64(GROUP), nb.uint64(0xFFFFFFFF)
_GROUP_BYTES = nb.uint64(4 * GROUP)
_UNTOUCHED = -(1 << 31)

_I32, _I64, _FLOAT = ir.IntType(32), ir.IntType(64), ir.FloatType()
_GROUP_LANES, _FLOATS = ir.VectorType(_I32, GROUP), ir.VectorType(_FLOAT, 16)


@intrinsic
def weigh(typing_context: Any, documents: Any, counts: Any, groups: Any, norms: Any, weight: Any, target: Any) -> Any:
    """Write the contributions of postings to scores: ``weight * (count / (count + norm))``.

    ``documents``, ``counts``, ``norms`` (by document) and ``target`` are addresses; sixteen times ``groups`` postings
    are read, including those after the last one, which must be valid documents.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        documents, counts, groups, norms, weight, target = arguments
        weights = to_all(builder, weight, _FLOATS)
        norm_at = builder.inttoptr(norms, _FLOAT.as_pointer())
        with cgutils.for_range(builder, groups, intp=_I64) as loop:
            step = builder.mul(loop.index, _I64(64))
            numbers = load(builder, builder.add(documents, step))
            gathered = ir.Constant(_FLOATS, ir.Undefined)
            for lane in range(16):
                document = builder.zext(builder.extract_element(numbers, _I32(lane)), _I64)
                gathered = builder.insert_element(gathered, builder.load(builder.gep(norm_at, [document])), _I32(lane))
            held = builder.uitofp(load(builder, builder.add(counts, step)), _FLOATS)
            added = builder.fmul(weights, builder.fdiv(held, builder.fadd(held, gathered)))
            store(builder, added, builder.add(target, step))
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64, types.uint64, types.uint64, types.float32, types.uint64), generate


@intrinsic
def as_bits(typing_context: Any, number: Any) -> Any:
    """Return the bits of a float32 as int32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], _I32)

    return types.int32(types.float32), generate


@intrinsic
def as_float(typing_context: Any, bits: Any) -> Any:
    """Return the float32 with the bits of an int32."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], _FLOAT)

    return types.float32(types.int32), generate


@intrinsic
def _at_least(typing_context: Any, address: Any, least: Any) -> Any:
    """Return a bit mask of the 64 int32 at an address that are at least ``least``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers = load(builder, arguments[0], _GROUP_LANES)
        return builder.bitcast(builder.icmp_signed(">=", numbers, to_all(builder, arguments[1], _GROUP_LANES)), _I64)

    return types.uint64(types.uint64, types.int32), generate


@intrinsic
def _reset(typing_context: Any, address: Any) -> Any:
    """Reset the 64 accumulators at an address to untouched."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        store(builder, ir.Constant(_GROUP_LANES, [1 << 31] * GROUP), arguments[0])
        return context.get_dummy_value()

    return types.void(types.uint64), generate


@inner
def push(heap: UInt64, size: int, key: int) -> Any:
    """Push a key on a heap of the largest keys, whose first one is the smallest; return the heap's new size."""
    room = nb.uint64(len(heap))
    if size < room:
        at = size
        while at > 0:
            parent = (at - _1) >> _1
            if heap[parent] <= key:
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = key
        return size + _1
    if key > heap[_0]:
        _sift(heap, size, key)
    return size


@inner
def _sift(heap: UInt64, size: int, key: int) -> None:
    """Replace the first key of a heap."""
    at = _0
    while True:
        child = at + at + _1
        if child >= size:
            break
        if child + _1 < size and heap[child + _1] < heap[child]:
            child += _1
        if heap[child] >= key:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = key


@inner
def write_best(heap: UInt64, size: int, documents: UInt32, scores: UInt32) -> None:
    """Empty a heap into a query's results, best first; ``scores`` are bits."""
    while size > 0:
        size -= _1
        documents[size] = nb.uint32(_LOWEST_32 - (heap[_0] & _LOWEST_32))
        scores[size] = nb.uint32(heap[_0] >> _32)
        _sift(heap, size, heap[size])


@inner
def key_of(bits: int, document: int) -> Any:
    """Return the sort key of a result: by score, given as bits, then by document, with smaller ones higher."""
    return nb.uint64(bits) << _32 | (_LOWEST_32 - nb.uint64(document))


@inner
def is_allowed(allowed: UInt32, document: int) -> Any:
    """Tell whether a document's bit is set; without bits all are allowed."""
    word = nb.uint64(document) >> nb.uint64(5)
    return len(allowed) == 0 or (allowed[word] >> nb.uint32(document & nb.uint64(31))) & nb.uint32(1) != 0


@inner
def push_touched(
    accumulators: Int32, marks: UInt8, first: int, allowed: UInt32, heap: UInt64, size: int, reset: bool
) -> Any:
    """Push the window's documents on a heap, and optionally reset the accumulators.

    Parameters
    ----------
    accumulators
        int32: the scores' bits.
    marks
        uint8 by group: 1 if it was touched.
    first
        The window's first document.
    allowed
        uint32 bits by document; empty if all are allowed.
    heap, size
        The heap, and its size.
    reset
        Whether to reset.

    Returns
    -------
    uint64
        The heap's new size.

    """
    base, marks_at = nb.uint64(accumulators.ctypes.data), nb.uint64(marks.ctypes.data)
    room = nb.uint64(len(heap))
    least = nb.int32(heap[_0] >> _32) if size == room else nb.int32(0)
    for eight in range(nb.uint64(len(marks)) >> _3):
        if load_u64(marks_at + eight * _8) == 0:
            continue
        for group in range(eight * _8, eight * _8 + _8):
            if marks[group] == 0:
                continue
            address = base + group * _GROUP_BYTES
            bits = _at_least(address, least)
            while bits != 0:
                place = group * _GROUP + nb.uint64(trailing_zeros(bits))
                bits &= bits - _1
                document = first + place
                if accumulators[place] >= least and is_allowed(allowed, document):
                    size = push(heap, size, key_of(nb.uint32(accumulators[place]), document))
                    if size == room:
                        least = nb.int32(heap[_0] >> _32)
            if reset:
                _reset(address)
                marks[group] = 0
    return size


@inner
def count_touched(accumulators: Int32, marks: UInt8, least: int) -> Any:
    """Count the window's documents whose scores, as bits, are at least ``least``."""
    base, marks_at = nb.uint64(accumulators.ctypes.data), nb.uint64(marks.ctypes.data)
    count = _0
    for eight in range(nb.uint64(len(marks)) >> _3):
        if load_u64(marks_at + eight * _8) != 0:
            for group in range(eight * _8, eight * _8 + _8):
                count += nb.uint64(count_ones(_at_least(base + group * _GROUP_BYTES, nb.int32(least))))
    return count


@inner
def take_touched(
    accumulators: Int32, marks: UInt8, first: int, allowed: UInt32, least: int, documents: UInt32, scores: Int32
) -> Any:
    """List the window's documents whose scores, as bits, are at least ``least``; reset all accumulators.

    Returns
    -------
    uint64
        Number of documents written to ``documents`` and ``scores``.

    """
    base, marks_at = nb.uint64(accumulators.ctypes.data), nb.uint64(marks.ctypes.data)
    count = _0
    for eight in range(nb.uint64(len(marks)) >> _3):
        if load_u64(marks_at + eight * _8) == 0:
            continue
        for group in range(eight * _8, eight * _8 + _8):
            if marks[group] == 0:
                continue
            address = base + group * _GROUP_BYTES
            bits = _at_least(address, nb.int32(least))
            while bits != 0:
                place = group * _GROUP + nb.uint64(trailing_zeros(bits))
                bits &= bits - _1
                if is_allowed(allowed, first + place):
                    documents[count] = nb.uint32(first + place)
                    scores[count] = accumulators[place]
                    count += _1
            _reset(address)
            marks[group] = 0
    return count
