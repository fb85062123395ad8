"""Kernels take readonly and writable arrays in one form, and write to no readonly array."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import types
from numba.core.dispatcher import Dispatcher
from numba.extending import _Intrinsic

from polars_tadoc.runtime.compiled import compiled_for, njit
from polars_tadoc.runtime.machine_code import signatures
from tests.written_parameters import READING_INTRINSICS, WRITING_INTRINSICS, written_parameters


class Pair(NamedTuple):
    """Arrays that a kernel takes together."""

    first: Any
    second: Any


def readonly(array: Any) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view


@pytest.mark.parametrize("counted", [True, False])
def test_one_form_takes_both(counted: bool) -> None:
    @njit(nogil=True, _nrt=counted)
    def dot(pair: Pair, rest: tuple[Any, Any], by: int = 2) -> Any:
        return pair.first[1] * rest[0][2] * by + pair.second[0]

    numbers = np.arange(1, 9)
    both = numbers, readonly(numbers)
    expected = 2 * 3 * 2 + 1
    for first in both:
        for second in both:
            assert dot(Pair(first, second), (second, first)) == expected
    assert len(dot.overloads) == 1
    assert dot(Pair(readonly(numbers[::2]), numbers), both) == 3 * 3 * 2 + 1
    assert dot(Pair(numbers[::2], numbers), both[::-1]) == 3 * 3 * 2 + 1
    assert dot(Pair(readonly(numbers), numbers), both, 3) == 2 * 3 * 3 + 1
    assert len(dot.overloads) == 3  # any layout; an argument with a default


@njit
def scaled(value: int, is_negative: bool, by: int) -> int:
    return -value * by if is_negative else value * by


@njit
def scaled_by_constants(value: int) -> int:
    return scaled(value, True, 3) + scaled(5, False, by=value) + scaled(value, value > 2, 7)


def test_constants_share_one_form() -> None:
    scaled_by_constants._cache.disable()  # else the callee might not be looked at
    assert scaled_by_constants(2) == -6 + 10 + 14
    assert scaled_by_constants(3) == -9 + 15 - 21
    assert len(scaled.overloads) == 1
    assert compiled_for(types.Tuple([types.literal(4), types.literal(True)])) == types.Tuple(
        [types.int64, types.boolean]
    )


def test_what_is_not_an_array_stays() -> None:
    array = types.Array(types.uint8, 1, "A", readonly=True, aligned=False)
    pair = types.NamedTuple([array, types.int64], Pair)
    assert compiled_for(pair) == types.NamedTuple([array.copy(readonly=False), types.int64], Pair)
    for kind in (types.int64, types.Omitted(3), types.Tuple([]), array.copy(readonly=False)):
        assert compiled_for(kind) is kind or compiled_for(kind) == kind
    assert compiled_for(array).layout == "A"
    assert not compiled_for(array).aligned


def test_nothing_is_listed_twice() -> None:
    for name, kernel, form in signatures.specialisations():
        if isinstance(kernel, Dispatcher) and not signatures.is_inner(kernel):
            assert not any("readonly" in str(one) for one in form), name


@njit(nogil=True)
def fills(target: Any, value: int) -> None:
    target[:] = value


@njit(nogil=True)
def writes(pair: Any, first: Any, second: Any, third: Any, fourth: Any, fifth: Any) -> int:
    part, other = first[1:], pair.second
    for one in (second, second):
        one[0] += 1
    other[0] = part[0]
    fills(third.view(np.uint8), 1)
    return int(fourth[0] + fifth[fourth[0]])


def test_what_a_kernel_writes_to_is_found() -> None:
    assert written_parameters(writes.py_func) == {0, 2, 3}
    assert written_parameters(fills.py_func) == {0}


def test_every_kernel_is_read() -> None:
    found = {
        one.py_func: written_parameters(one.py_func)
        for kernels in signatures.kernels().values()
        for one in kernels
        if isinstance(one, Dispatcher)
    }
    assert len(found) > 400
    assert sum(map(bool, found.values())) > 200  # the others return what they find


def test_intrinsics_on_arrays_are_known() -> None:
    functions = {
        value._defn
        for module in signatures.modules()
        for value in vars(module).values()
        if isinstance(value, _Intrinsic)
    }
    arguments = {one.__name__: one.__code__.co_varnames[1 : one.__code__.co_argcount] for one in functions}
    on_arrays = {name for name, given in arguments.items() if {"array", "target", "source"} & set(given)}
    addresses = {"copy_bytes", "weigh", "unpack_block", "store_ones", "add_high_parts", "increment"}
    assert on_arrays == {*WRITING_INTRINSICS, *READING_INTRINSICS, *addresses}


def test_a_kernel_that_would_write_to_a_readonly_array_fails() -> None:
    with pytest.raises(AssertionError, match="fills writes to a readonly array, argument 0"):
        fills(readonly(np.zeros(3, np.uint8)), 1)
