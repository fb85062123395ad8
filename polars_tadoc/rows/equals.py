"""Compares texts row by row, whatever form each side has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_tadoc.compress.decompress import decompress
from polars_tadoc.model.blocks import cut_blocks
from polars_tadoc.model.text_type import is_tadoc, storage
from polars_tadoc.rows.content_hash import content_hash, require_text
from polars_tadoc.rows.numbers import common_rows
from polars_tadoc.rows.token_count import token_count
from polars_tadoc.runtime.arguments import require_bool
from polars_tadoc.runtime.arguments import require_text as require_utf8
from polars_tadoc.runtime.array_types import Bools, Int64
from polars_tadoc.runtime.documented import with_imports
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.plain_name import plain

WORDS_COMPARED = 1 << 22
"""Words, or bytes of a String column, decompressed at a time; at least one row."""


@with_imports
def equals(a: pl.Series, b: pl.Series, *, nulls_equal: bool = False) -> pl.Series:
    """Tell row by row whether two columns have the same text.

    Rows with different hashes (:func:`content_hash`) differ, and rows of one grammar with the same symbols and gaps are
    equal: neither are decompressed. The remaining rows are decompressed and compared, some at a time. So the answer is
    exact, also for texts constructed to have equal hashes.

    Parameters
    ----------
    a, b
        Compressed or String columns of equal length; one of them may have a single row, which is compared with all.
    nulls_equal
        Whether null equals null (and nothing else). By default the result is null if either side is.

    Returns
    -------
    Boolean series
        One value per row, named like ``a``.

    Raises
    ------
    NotCompressedError
        A series is neither a compressed column nor String.
    TypeError
        ``nulls_equal`` is not a bool.
    ValueError
        The series differ in length.
    InvalidGrammarError
        A payload or a row is damaged.
    LimitExceededError
        Rows to decompress have more words than ``Config(expansion_limit=)``.

    Examples
    --------
    >>> a = pl.Series("a", ["to be", "or not", None]).tadoc.compress()
    >>> b = pl.Series("b", ["to be", "or", None])
    >>> tadoc.equals(a, b).to_list(), tadoc.equals(a, b, nulls_equal=True).to_list()
    ([True, False, None], [True, False, True])

    """
    return EqualsRequest("equals", nulls_equal).run(a, b)


@dataclass(frozen=True)
class EqualsRequest:
    """The checked options of a comparison."""

    call: str
    nulls_equal: bool

    def __post_init__(self) -> None:
        require_bool("nulls_equal", self.nulls_equal, self.call)

    def with_any(self, a: pl.Series, b: str | pl.Series) -> pl.Series:
        """Compare with a text or a series; errors as for :func:`equals`, and ``TypeError`` for anything else."""
        return self.run(a, _literal(b, self.call) if isinstance(b, str) else self.required(b))

    def required(self, other: object) -> pl.Series:
        """Return a series; raise ``TypeError`` for anything else."""
        if not isinstance(other, pl.Series):
            raise TypeError(f"{self.call} compares with text, an expression or a Series, not {type(other).__name__}")
        return other

    def required_expression(self, other: object) -> pl.Expr:
        """Return an expression; raise ``TypeError`` for anything else."""
        if not isinstance(other, pl.Expr):
            self.required(other)
        return cast(pl.Expr, other)

    @ends_on_interrupt
    def run(self, a: pl.Series, b: pl.Series) -> pl.Series:
        """Compare two series; errors as for :func:`equals`."""
        require_text(a, self.call)
        require_text(b, self.call)
        rows = common_rows(self.call, a=len(a), b=len(b))
        name, a, b = a.name, plain(a), plain(b)
        equal = _equal(a, b, rows) if is_tadoc(a.dtype) or is_tadoc(b.dtype) else _spread(a == b, rows)
        if self.nulls_equal:
            both_null = _spread(a.is_null(), rows) & _spread(b.is_null(), rows)
            equal = equal.fill_null(value=False) | both_null
        return equal.alias(name)


@dataclass(frozen=True)
class WithLiteral:
    """A comparison with one text."""

    request: EqualsRequest
    text: str

    def run(self, column: pl.Series) -> pl.Series:
        """Compare each row with the text."""
        return self.request.run(column, _literal(self.text, self.request.call))


def _literal(text: str, call: str) -> pl.Series:
    require_utf8(text, f"{call}: other")
    return pl.Series("literal", [text], pl.String)


def _equal(a: pl.Series, b: pl.Series, rows: int) -> pl.Series:
    """Compare hashes and, if equal, contents; null if either side is."""
    equal = _spread(content_hash(a) == content_hash(b), rows)
    candidates = equal.arg_true().to_numpy()
    own_a, own_b = _gathered(a, candidates), _gathered(b, candidates)
    unproven = np.flatnonzero(~_same_rows(own_a, own_b))
    if len(unproven) == 0:
        return equal
    own_a, own_b, candidates = own_a.gather(unproven), own_b.gather(unproven), candidates[unproven]
    unequal = [
        candidates[start:stop][(_text(own_a[start:stop]) != _text(own_b[start:stop])).to_numpy()]
        for start, stop in cut_blocks(_weights(own_a, own_b), len(candidates), WORDS_COMPARED)
    ]
    wrong = np.concatenate(unequal)
    return equal.scatter(wrong, False) if len(wrong) else equal


def _same_rows(a: pl.Series, b: pl.Series) -> Bools:
    """Tell which rows have the same grammar, symbols and gaps, so that no text is needed."""
    if not (is_tadoc(a.dtype) and is_tadoc(b.dtype)):
        return np.zeros(len(a), np.bool_)
    left, right = storage(a).rechunk().struct.unnest(), storage(b).rechunk().struct.unnest()
    same = left["grammar"].to_physical() == right["grammar"].to_physical()
    for field in ("symbols", "gaps"):
        same &= left[field].eq_missing(right[field])
    return same.to_numpy()


def _weights(a: pl.Series, b: pl.Series) -> Int64:
    """Return the cost of comparing each row: the larger one of both sides."""
    return cast(Int64, np.maximum(_weight(a), _weight(b)))


def _weight(column: pl.Series) -> Int64:
    sizes: Any = column.str.len_bytes() if column.dtype == pl.String else token_count(column)
    return sizes.to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def _text(column: pl.Series) -> pl.Series:
    return column if column.dtype == pl.String else decompress(column)


def _gathered(column: pl.Series, rows: npt.NDArray[np.integer]) -> pl.Series:
    """Gather rows, or repeat a single one."""
    return column.gather(np.zeros(len(rows), np.uint32)) if len(column) == 1 else column.gather(rows)


def _spread(values: pl.Series, rows: int) -> pl.Series:
    return values if len(values) == rows else values.new_from_index(0, rows)
