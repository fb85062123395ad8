"""Integer arguments of row-wise calls: one for all rows, or one by row."""

from __future__ import annotations

import operator

import numpy as np
import polars as pl

from polars_tadoc.runtime.array_types import Bools, Int64, UInt64, array_dataclass

MOST = (1 << 63) - 1
TO_THE_END = np.uint64((1 << 64) - 1)
_WIDE = (pl.UInt64, pl.Int128, pl.UInt128)


@array_dataclass
class Numbers:
    """The values of an argument."""

    values: Int64
    """int64: one for all rows, or one by row; clipped to 64 bits, 0 for null."""
    valid: Bools | None
    """Bool by value; None if none is null."""

    @classmethod
    def of(cls, given: object, argument: str, call: str) -> Numbers:
        """Convert an integer or a series of integers; raise ``TypeError`` for anything else."""
        if not isinstance(given, pl.Series):
            one = _integer(given, argument, call)
            return cls(np.array([min(max(one, -MOST - 1), MOST)], np.int64), None)
        if not given.dtype.is_integer() and given.dtype != pl.Null:
            raise TypeError(f"{call}: {argument} must be integers, not {given.dtype}; cast it first: .cast(pl.Int64)")
        if given.dtype in _WIDE:
            given = given.clip(-MOST - 1 if given.dtype == pl.Int128 else 0, MOST)
        values = given.cast(pl.Int64).fill_null(0).to_numpy()
        return cls(values, given.is_not_null().to_numpy() if given.null_count() else None)

    def at(self, rows: Int64) -> Int64:
        """Return the values of some rows; a single value applies to all."""
        return self.values if len(self.values) == 1 else self.values[rows]


def lengths_of(given: object, argument: str, call: str) -> UInt64:
    """Convert lengths, which must not be negative; null, and numbers beyond 63 bits, become ``TO_THE_END``.

    Raises
    ------
    TypeError
        The argument is neither an integer nor a series of integers.
    ValueError
        A length is negative.

    """
    numbers = Numbers.of(given, argument, call)
    if numbers.values.min(initial=0) < 0:
        raise ValueError(f"{call}: {argument} must not be negative; got {numbers.values.min()}")
    lengths = numbers.values.astype(np.uint64)
    if numbers.valid is not None:
        lengths[~numbers.valid] = TO_THE_END
    if not isinstance(given, pl.Series):
        return lengths if _integer(given, argument, call) <= MOST else np.full(1, TO_THE_END)
    if given.dtype in _WIDE:
        lengths[(given > MOST).fill_null(True).to_numpy()] = TO_THE_END
    return lengths


def _integer(given: object, argument: str, call: str) -> int:
    """Convert an integer, also NumPy's."""
    try:
        if not isinstance(given, bool | np.ndarray):
            return operator.index(given)  # type: ignore[arg-type]
    except TypeError:
        pass
    name = "None" if given is None else type(given).__name__
    raise TypeError(f"{call}: {argument} must be an integer or integers by row, not {name}")


def common_rows(call: str, **lengths: int) -> int:
    """Return the number of result rows for series of these lengths; those of length one are repeated.

    Raises
    ------
    ValueError
        The lengths differ otherwise.

    """
    long = {length for length in lengths.values() if length != 1}
    if len(long) > 1:
        rows = ", ".join(f"{name} has {length:,}" for name, length in lengths.items() if length != 1)
        raise ValueError(f"{call}: series must have as many rows as the column, or one; got {rows}")
    return long.pop() if long else 1
