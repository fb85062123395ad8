"""Applies the ``normalize=`` expression of a file within a memory limit.

Operations as harmless as ``str.replace_all`` make long words from short ones, and three nested ones can exhaust memory.
Therefore an upper bound of each operation's output is computed before it runs, from the bytes of its input and from its
literals. Words are processed in slices that are small enough according to the bounds. If the bounds are too large for
any slice, its operations run one by one, each bounded by the actual output of the ones before. A word for which one
operation may return more than a sixteenth of ``Config(payload_limit_bytes=)`` raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from polars_tadoc.config import settings
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.index.store import saved_expressions as expressions
from polars_tadoc.index.store.growth import (
    NOTHING,
    Form,
    Reckoning,
    constant_cost,
    depends_on_word,
    measured,
    operation_limit,
)
from polars_tadoc.runtime.array_types import array_dataclass

SLICE_WORDS, SLICE_BYTES = 1 << 16, 1 << 24
"""Maximum words, and bytes, of a slice whose operations run one by one."""

_SHOWN = 40
"""Characters of a word in messages."""


@array_dataclass
class Bounded:
    """An expression from a file, in both forms."""

    form: Form
    """The serialised form (:mod:`polars_tadoc.index.store.saved_expressions`)."""
    expression: pl.Expr
    """The Polars expression of the form."""

    def __call__(self, words: pl.Series) -> pl.Series:
        """Apply it to each word, as ``list.eval`` does, within the limit.

        Raises
        ------
        LimitExceededError
            An operation may return too much for one word, or the images together are too long.

        """
        limit = settings().payload_limit_bytes
        most = operation_limit()
        if _cost(self.form, words) <= most:
            return evaluated(words, self.expression)
        made: list[pl.Series] = []
        size = 0.0
        for some in _slices(words):
            for images in self._slice(some, most):
                size += measured(images).bytes
                if size > limit:
                    raise LimitExceededError(
                        f"normalize: the words become more than {limit:,} bytes; if the index is trusted, raise the "
                        "limit: tadoc.Config(payload_limit_bytes=…)"
                    )
                made.append(images)
        return pl.concat(made)

    def _slice(self, words: pl.Series, most: int) -> Iterator[pl.Series]:
        """Apply it to some words: all at once, operation by operation, or to each half of them."""
        if _cost(self.form, words) <= most:
            yield evaluated(words, self.expression)
            return
        try:
            images = _Steps(words, most).value(self.form)
        except _TooLargeError as error:
            if len(words) == 1:
                word = words.item()
                raise LimitExceededError(
                    f'normalize: "{error.operation}" may make {error.bytes:,.0f} bytes of the word {word[:_SHOWN]!r}, '
                    f"the limit is {most:,}; if the index is trusted, raise it: tadoc.Config(payload_limit_bytes=…)"
                ) from None
        else:
            yield images
            return
        half = len(words) // 2
        yield from self._slice(words.head(half), most)
        yield from self._slice(words.slice(half), most)


def evaluated(words: pl.Series, expression: pl.Expr) -> pl.Series:
    """Apply an expression over ``pl.element()`` to all words at once."""
    return words.implode().list.eval(expression).explode(empty_as_null=False)


def _slices(words: pl.Series) -> Iterator[pl.Series]:
    start, size = 0, 0
    for place, length in enumerate(words.str.len_bytes().fill_null(0).to_list()):
        if place > start and (place - start >= SLICE_WORDS or size + length > SLICE_BYTES):
            yield words.slice(start, place - start)
            start, size = place, 0
        size += length
    yield words.slice(start)


def _cost(form: Form, words: pl.Series) -> float:
    reckoning = Reckoning(len(words))
    reckoning.of(form, measured(words))
    return reckoning.cost


class _TooLargeError(Exception):
    def __init__(self, operation: str, size: float) -> None:
        self.operation, self.bytes = operation, size


@dataclass(frozen=True)
class _Steps:
    """Evaluates forms for some words, one operation at a time, from the values of the nested forms."""

    words: pl.Series
    most: int

    def value(self, form: Form) -> pl.Series:
        """Return a form's values."""
        values = self._value(form)
        return values if isinstance(values, pl.Series) else self._constant(form)

    def _constant(self, form: Form) -> pl.Series:
        """Return a value that does not depend on the word, as ``list.eval`` does."""
        return evaluated(self.words, expressions.built(form))

    def _value(self, form: Form) -> pl.Series | None:
        """Return a form's values; None if they do not depend on the word."""
        if form == "element":
            return self.words
        if not depends_on_word(form):
            self._require(form, constant_cost(form))
            return None
        name, parameters, *inner = form
        of_lists = inner[1:] if name == "list.eval" else []  # its operations refer to the lists' elements
        values = [self._value(part) for part in (inner[:1] if of_lists else inner)]
        reckoning = Reckoning(len(self.words))
        sizes = [
            reckoning.of(part, NOTHING) if one is None else measured(one)
            for one, part in zip(values, inner, strict=False)
        ]
        self._require(form, reckoning.given(form, sizes).cost + reckoning.cost)
        columns = [one.alias(str(place)) for place, one in enumerate(values) if one is not None]
        parts = [
            expressions.built(part) if one is None else pl.col(str(place))
            for place, (one, part) in enumerate(zip(values, inner, strict=False))
        ]
        expression = expressions.operation(name).build(*parts, *map(expressions.built, of_lists), **parameters)
        return pl.DataFrame(columns).select(expression.alias("value")).to_series()

    def _require(self, form: Form, size: float) -> None:
        if size > self.most:
            raise _TooLargeError(form[0], size)
