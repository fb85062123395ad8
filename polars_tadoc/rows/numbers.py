"""Integer arguments of row-aligned calls: one for all rows, or one by row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

MOST = (1 << 63) - 1
_WIDE = (pl.UInt64, pl.Int128, pl.UInt128)


@dataclass(frozen=True, eq=False)
class Numbers:
    """An argument's values.

    Parameters
    ----------
    values
        int64: one for all rows, or one by row; the nearest there is to what 64 bits do not hold, 0 for null.
    valid
        Bool by value; None where none is null.

    """

    values: npt.NDArray[np.int64]
    valid: npt.NDArray[np.bool_] | None

    @classmethod
    def of(cls, given: object, argument: str, call: str) -> Numbers:
        """Take an integer or a series of integers; ``TypeError`` where it is neither."""
        if isinstance(given, int) and not isinstance(given, bool):
            return cls(np.array([min(max(given, -MOST - 1), MOST)], np.int64), None)
        if not isinstance(given, pl.Series):
            raise TypeError(f"{call}: {argument} must be an integer or integers by row, not {type(given).__name__}")
        if not given.dtype.is_integer() and given.dtype != pl.Null:
            raise TypeError(f"{call}: {argument} must be integers, not {given.dtype}; cast it first: .cast(pl.Int64)")
        if given.dtype in _WIDE:
            given = given.clip(-MOST - 1 if given.dtype == pl.Int128 else 0, MOST)
        values = given.cast(pl.Int64).fill_null(0).to_numpy()
        return cls(values, given.is_not_null().to_numpy() if given.null_count() else None)

    def at(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Values of some rows; the only one where there is but one."""
        return self.values if len(self.values) == 1 else self.values[rows]


def common_rows(call: str, *lengths: int) -> int:
    """Rows of a result made of columns of these lengths, of which those of one row count for all.

    Raises
    ------
    ValueError
        Others differ.

    """
    long = {length for length in lengths if length != 1}
    if len(long) > 1:
        raise ValueError(f"{call}: the column and its arguments have {' and '.join(map(str, sorted(long)))} rows")
    return long.pop() if long else 1
