"""Upper bounds of the memory of a saved ``normalize=``'s values, computed before evaluation.

A bound depends on the bytes of the words and on the literals of the form. It is far too high for long chains of
operations that *might* lengthen words; then operations run one by one, and the bound is for one operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from polars_tadoc.config import settings

Form = Any
"""A form (:mod:`polars_tadoc.index.store.saved_expressions`): "element", or a list."""

SHARE = 16
"""Maximum share of ``Config(payload_limit_bytes=)`` for the output of one operation on a slice of words."""

MIN_BYTES = 1 << 20
"""Lower bound of that maximum, for low limits."""

VIEW_BYTES = 16
"""Bytes of a string in a column, in addition to its text."""

NUMBER_BYTES, NUMBER_LETTERS = 8, 64
"""Maximum bytes of a number, also as text."""

_MOST = 1e30
"""Bounds are capped here, so that products stay finite."""


@dataclass(frozen=True)
class Size:
    """Upper bound of the size of a value, for some words together."""

    bytes: float
    """Bytes of all strings and numbers."""
    items: float
    """Number of strings or numbers; elements of lists count one by one."""
    longest: float
    """Maximum bytes of an item."""
    most: float = 1
    """Maximum number of items of one word."""

    @property
    def cost(self) -> float:
        """Bytes in memory."""
        return self.bytes + VIEW_BYTES * self.items


NOTHING = Size(0, 0, 0, 0)


def size(total: float, items: float, longest: float, most: float = 1) -> Size:
    """Make a size, capped so that it stays finite."""
    return Size(min(total, _MOST), min(items, _MOST), min(longest, total, _MOST), min(most, items, _MOST))


def measured(values: pl.Series) -> Size:
    """Return the size of a column."""
    if isinstance(values.dtype, pl.List):
        inner = measured(values.explode(empty_as_null=False))
        longest_list: Any = values.list.len().max()
        return size(inner.bytes, inner.items, inner.longest, longest_list or 0)
    if isinstance(values.dtype, pl.Struct):
        return _sum([measured(field) for field in values.struct.unnest().get_columns()])
    if values.dtype not in (pl.String, pl.Binary):
        return size(NUMBER_BYTES * len(values), len(values), NUMBER_BYTES)
    lengths: Any = values.str.len_bytes() if values.dtype == pl.String else values.bin.size()
    return size(lengths.sum() or 0, len(values), lengths.max() or 0)


def _sum(sizes: Sequence[Size]) -> Size:
    return size(
        sum(one.bytes for one in sizes),
        sum(one.items for one in sizes),
        max((one.longest for one in sizes), default=0),
        max((one.most for one in sizes), default=0),
    )


def operation_limit() -> int:
    """Return the maximum output of one operation on a slice of words, a share of the limit for all images."""
    return max(settings().payload_limit_bytes // SHARE, MIN_BYTES)


def constant_cost(form: Form) -> float:
    """Return an upper bound of the values computed from a form's literals, without words."""
    if depends_on_word(form):
        return sum(constant_cost(part) for part in form[2:]) if isinstance(form, list) else 0.0
    reckoning = Reckoning(1)
    reckoning.of(form, NOTHING)
    return reckoning.cost


def depends_on_word(form: Form) -> bool:
    """Tell whether a form depends on the word; operations inside ``list.eval`` depend on its elements instead."""
    if isinstance(form, str):
        return True
    inner = form[2:3] if form[0] == "list.eval" else form[2:]
    return any(map(depends_on_word, inner))


class Reckoning:
    """Sums the outputs of a form's operations for some words.

    Parameters
    ----------
    rows
        Number of words; inside ``list.eval`` number of list elements.

    """

    def __init__(self, rows: float) -> None:
        self.rows = rows
        self.cost = 0.0
        """Total bytes of all operations' outputs."""

    def of(self, form: Form, element: Size) -> Size:
        """Return the size of a form's output for an ``element`` of a given size."""
        if form == "element":
            return element
        name, parameters, *inner = form
        if name in ("int", "float"):
            return size(NUMBER_BYTES * self.rows, self.rows, NUMBER_BYTES)
        if name == "lit":
            longest = _bytes(parameters["value"])
            return size(longest * self.rows, self.rows, longest)
        if name in ("list", "series"):
            lengths = [_bytes(value) for value in _flat(parameters["values"])]
            return size(sum(lengths) * self.rows, len(lengths) * self.rows, max(lengths, default=0), len(lengths))
        of = [self.of(part, element) for part in (inner[:1] if name == "list.eval" else inner)]
        return self.given(form, of)

    def given(self, form: Form, inputs: Sequence[Size]) -> Size:
        """Return the size of an operation's output for inputs; ``list.eval`` has only the lists as input."""
        name, parameters, *inner = form
        if name == "list.eval":
            (lists,) = inputs
            within = Reckoning(lists.items)
            each = within.of(inner[1], Size(lists.bytes, lists.items, lists.longest))
            self.cost += within.cost
            made = size(each.bytes, each.items, each.longest, lists.most * each.most)
        else:
            made = GROWTH[name](self.rows, parameters, inner, inputs)
        self.cost += made.cost
        return made


def _bytes(value: Any) -> int:
    return len(value.encode()) if isinstance(value, str) else NUMBER_BYTES


def _flat(values: Any) -> list[Any]:
    return [one for value in values for one in (value if isinstance(value, list) else [value])]


Growth = Callable[[float, dict[str, Any], list[Form], Sequence[Size]], Size]
"""Size of an operation's output, from the number of rows, its parameters, and the forms and sizes of its inputs."""


def _first(_rows: float, _parameters: Any, _forms: Any, inputs: Sequence[Size]) -> Size:
    return inputs[0]


def _numbers(rows: float, _parameters: Any, _forms: Any, inputs: Sequence[Size]) -> Size:
    items = max(rows, *(one.items for one in inputs), 0)
    return size(NUMBER_BYTES * items, items, NUMBER_BYTES, max(one.most for one in inputs))


def _times(factor: float, more: float = 0) -> Growth:
    return lambda _rows, _parameters, _forms, inputs: size(
        factor * inputs[0].bytes + more * inputs[0].items,
        inputs[0].items,
        factor * inputs[0].longest + more,
        inputs[0].most,
    )


def _one_of_all(_rows: float, _parameters: Any, _forms: Any, inputs: Sequence[Size]) -> Size:
    """Each value is one of the inputs', numbers possibly as text."""
    every = _sum(inputs)
    return size(every.bytes + NUMBER_LETTERS * every.items, every.items, max(every.longest, NUMBER_LETTERS), every.most)


def _joined(between: Callable[[dict[str, Any], int], int]) -> Growth:
    """Each value is the concatenation of the inputs', numbers as text, with some bytes between."""

    def growth(rows: float, parameters: dict[str, Any], _forms: Any, inputs: Sequence[Size]) -> Size:
        more = between(parameters, len(inputs))
        total = sum(one.bytes + NUMBER_LETTERS * one.items for one in inputs) + more * rows
        longest = sum(max(one.longest, NUMBER_LETTERS) for one in inputs) + more
        return size(total, max(rows, *(one.items for one in inputs)), longest, max(one.most for one in inputs))

    return growth


def _padded(letter_bytes: int) -> Growth:
    def growth(_rows: float, _parameters: Any, forms: list[Form], inputs: Sequence[Size]) -> Size:
        more: float = letter_bytes * forms[1][1]["value"]
        return _times(1, more)(0, {}, [], inputs)

    return growth


def _replaced(_rows: float, parameters: dict[str, Any], forms: list[Form], inputs: Sequence[Size]) -> Size:
    """Each match becomes the value; references to groups (two characters or more) become at most the match each."""
    word, _, value = inputs
    own = forms[2]
    has_groups = not parameters["literal"] and not (own[0] == "lit" and "$" not in str(own[1]["value"]))
    factor = 1 + (value.longest / 2 if has_groups else 0)
    most = float("inf") if parameters["n"] < 0 else parameters["n"]
    return size(
        word.bytes * factor + min(word.bytes + word.items, most * word.items) * value.longest,
        word.items,
        word.longest * factor + min(word.longest + 1, most) * value.longest,
        word.most,
    )


def _replaced_many(_rows: float, _parameters: Any, _forms: Any, inputs: Sequence[Size]) -> Size:
    word, _, value = inputs
    return size(
        word.bytes + (word.bytes + word.items) * value.longest,
        word.items,
        word.longest + (word.longest + 1) * value.longest,
        word.most,
    )


def _mapped(rows: float, _parameters: Any, _forms: Any, inputs: Sequence[Size]) -> Size:
    word, _, new, *default = inputs
    longest = max(new.longest, NUMBER_LETTERS)
    return _one_of_all(rows, {}, [], [word, size(longest * rows, rows, longest), *default])


def _split(_rows: float, _parameters: Any, _forms: Any, inputs: Sequence[Size]) -> Size:
    word = inputs[0]
    return size(word.bytes, word.bytes + 2 * word.items, word.longest, word.longest + 2)


def _split_exactly(_rows: float, parameters: dict[str, Any], _forms: Any, inputs: Sequence[Size]) -> Size:
    word = inputs[0]
    return size(word.bytes, word.items * (parameters["n"] + 1), word.longest)


def _extracted_many(_rows: float, _parameters: Any, _forms: Any, inputs: Sequence[Size]) -> Size:
    """Each pattern may match at each position; if matches may not overlap, there are fewer."""
    word, patterns = inputs
    longest = max(patterns.longest, NUMBER_BYTES)
    matches = (word.bytes + word.items) * patterns.most
    return size(matches * longest, matches, longest, (word.longest + 1) * patterns.most)


def _list_joined(rows: float, _parameters: Any, _forms: Any, inputs: Sequence[Size]) -> Size:
    lists, between = inputs
    return size(lists.bytes + lists.items * between.longest, rows, lists.most * (lists.longest + between.longest))


def _of_json(_rows: float, _parameters: Any, _forms: Any, inputs: Sequence[Size]) -> Size:
    """A path may match at all depths, and again inside of a match."""
    word = inputs[0]
    return size(8 * word.bytes * (word.longest + 1) + 64 * word.items, word.items, 8 * word.longest**2 + 64)


def _of_time(_rows: float, parameters: dict[str, Any], _forms: Any, inputs: Sequence[Size]) -> Size:
    longest = 64 + 32 * len(parameters["format"])
    return size(longest * inputs[0].items, inputs[0].items, longest, inputs[0].most)


def _all(growth: Growth, *names: str) -> dict[str, Growth]:
    return dict.fromkeys(names, growth)


GROWTH: dict[str, Growth] = {
    **_all(_first, "str.strip_chars", "str.strip_chars_start", "str.strip_chars_end", "str.strip_prefix"),
    **_all(_first, "str.strip_suffix", "str.slice", "str.head", "str.tail", "str.reverse", "str.extract"),
    **_all(_first, "list.max", "list.min", "list.drop_nulls", "list.slice", "list.get", "list.sort", "list.reverse"),
    **_all(_first, "list.unique", "struct.field", "alias"),
    **_all(_numbers, "str.len_chars", "str.len_bytes", "str.starts_with", "str.ends_with", "str.contains", "str.find"),
    **_all(_numbers, "str.count_matches", "str.contains_any", "str.to_integer", "str.to_date"),
    **_all(_numbers, "list.len", "list.count_matches", "list.contains"),
    **_all(_numbers, "not_", "is_null", "is_not_null", "is_nan", "is_not_nan", "is_in", "is_between"),
    **_all(_numbers, "all_horizontal", "any_horizontal", "dt.year", "dt.month", "dt.day"),
    **_all(_one_of_all, "when", "coalesce", "max_horizontal", "min_horizontal", "fill_null", "clip"),
    **_all(_first, "neg", "abs", "floor", "ceil"),
    **_all(_times(3), "str.to_lowercase", "str.to_uppercase", "str.to_titlecase"),  # "ΐ" becomes three characters
    **_all(_times(2, 4), "str.escape_regex", "str.encode.hex", "str.encode.base64"),
    "str.normalize": _times(12),  # U+FDFA, 3 bytes, becomes 18 characters in 33 bytes
    "cast": _times(1, NUMBER_LETTERS),
    "str.zfill": _padded(1),
    "str.pad_start": _padded(4),
    "str.pad_end": _padded(4),
    "str.replace": _replaced,
    "str.replace_many": _replaced_many,
    **_all(_mapped, "replace", "replace_strict"),
    **_all(_split, "str.split", "str.split_regex", "str.extract_all"),
    **_all(_split_exactly, "str.splitn", "str.split_exact"),
    **_all(_extracted_many, "str.extract_many", "str.find_many"),
    "list.join": _list_joined,
    "str.json_path_match": _of_json,
    "dt.to_string": _of_time,
    "concat_str": _joined(lambda parameters, inputs: inputs * len(parameters["delimiter"].encode())),
    "format": _joined(lambda parameters, _: sum(len(part.encode()) for part in parameters["parts"])),
    "binary": _joined(lambda _parameters, _inputs: 0),
}
"""By operation; ``list.eval`` is bounded by its inner operations."""
