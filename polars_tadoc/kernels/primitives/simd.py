"""Vectors in LLVM IR, for intrinsics on sixteen or more numbers at a time."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

_I32 = ir.IntType(32)

LANES = ir.VectorType(_I32, 16)
"""Sixteen 32-bit numbers."""


def load(builder: Any, address: Any, vector: Any = LANES) -> Any:
    """Load a vector from any address."""
    value = builder.load(builder.inttoptr(address, vector.as_pointer()))
    value.align = 1
    return value


def store(builder: Any, value: Any, address: Any) -> None:
    """Store a vector at any address."""
    builder.store(value, builder.inttoptr(address, value.type.as_pointer())).align = 1


def to_all(builder: Any, value: Any, vector: Any = LANES) -> Any:
    """Return a vector with a value in each lane."""
    undefined = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(undefined, value, _I32(0))
    return builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(_I32, vector.count), None))
