"""The operations on words that an index can save: Polars' name, parameters, and the call that rebuilds each.

None of them takes code, names a library, or depends on other words than its input. A query is normalised separately, so
operations that depend on other words (``is_duplicated``, ``rank``, ``sort``) would not match the index.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

Check = Callable[[Any], bool]

LONGEST_PAD = 1 << 16
"""Maximum length of padding: a length takes few bytes in a file but determines the memory used."""


@dataclass(frozen=True)
class Operation:
    """One operation."""

    kind: tuple[str, str]
    """Family and name of the function in Polars' JSON; family "" for none."""
    build: Callable[..., pl.Expr]
    """Makes the expression from its inputs and its parameters by name."""
    inputs: tuple[int, int] = (1, 1)
    """Minimum and maximum number of inputs."""
    parameters: Mapping[str, Check] = field(default_factory=dict)
    """Check of each parameter's value."""
    is_single: bool = False
    """Polars writes the value of the only parameter without its name."""
    literal: int | None = None
    """Position of the input that must be a literal integer up to :data:`LONGEST_PAD`; None for none."""


def is_bool(value: Any) -> bool:
    """Tell whether a value is a JSON boolean."""
    return isinstance(value, bool)


def is_text(value: Any) -> bool:
    """Tell whether a value is a string that UTF-8 can encode."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def is_whole(value: Any) -> bool:
    """Tell whether a value is a 64-bit integer."""
    return type(value) is int and -(1 << 63) <= value < 1 << 63


def is_float(value: Any) -> bool:
    """Tell whether a value is a finite float."""
    return type(value) is float and math.isfinite(value)


def _up_to(most: int) -> Check:
    return lambda value: is_whole(value) and 0 <= value <= most


def _one_of(*names: str) -> Check:
    return lambda value: isinstance(value, str) and value in names


def _is_character(value: Any) -> bool:
    return is_text(value) and len(value) == 1


def _is_dtype_or_null(value: Any) -> bool:
    return value is None or is_dtype(value)


def _are_parts(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(map(is_text, value))


DTYPES: dict[str, pl.DataType] = {
    name: getattr(pl, name)()
    for name in (
        *("Boolean", "String", "Binary", "Null", "Date", "Float32", "Float64"),
        *("Int8", "Int16", "Int32", "Int64", "Int128", "UInt8", "UInt16", "UInt32", "UInt64"),
    )
}
"""Types that need no parameters, by Polars' names."""


def is_dtype(value: Any) -> bool:
    """Tell whether a value names a type of :data:`DTYPES`, or a list of one."""
    if isinstance(value, dict):
        return set(value) == {"List"} and isinstance(value["List"], str) and value["List"] in DTYPES
    return isinstance(value, str) and value in DTYPES


def dtype(value: Any) -> pl.DataType:
    """Return the type of a name that passes :func:`is_dtype`."""
    return pl.List(DTYPES[value["List"]]) if isinstance(value, dict) else DTYPES[value]


def is_value(value: Any, of: Any) -> bool:
    """Tell whether a value is null or a literal of a named type; literals have the types in :data:`VALUES`."""
    if isinstance(of, dict):
        return value is None or (isinstance(value, list) and all(is_value(one, of["List"]) for one in value))
    return of in VALUES and (value is None or VALUES[of](value))


def _of_bits(bits: int, *, signed: bool) -> Check:
    first, stop = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    return lambda value: type(value) is int and first <= value < stop


VALUES: dict[str, Check] = {
    "String": is_text,
    "Boolean": is_bool,
    "Float32": is_float,
    "Float64": is_float,
    "Null": lambda value: value is None,
    **{f"Int{bits}": _of_bits(bits, signed=True) for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": _of_bits(bits, signed=False) for bits in (8, 16, 32, 64)},
}
"""Checks of literals by type; null is always valid."""

BINARY: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtEq": operator.le,
    "Gt": operator.gt,
    "GtEq": operator.ge,
    "EqValidity": pl.Expr.eq_missing,
    "NotEqValidity": pl.Expr.ne_missing,
    "And": operator.and_,
    "Or": operator.or_,
    "Xor": operator.xor,
    "Plus": operator.add,
    "Minus": operator.sub,
    "Multiply": operator.mul,
    "TrueDivide": operator.truediv,
    "FloorDivide": operator.floordiv,
    "Modulus": operator.mod,
}
"""Operators between two expressions."""

CASTS: dict[str, dict[str, bool]] = {
    "Strict": {"strict": True},
    "NonStrict": {"strict": False},
    "Overflowing": {"wrap_numerical": True},
}
"""Polars' names of the kinds of casts, and the arguments that select them."""


def _call(name: str) -> Callable[..., pl.Expr]:
    """Make a function that calls a method of the first input with the others."""
    method = operator.attrgetter(name)

    def build(*inputs: pl.Expr, **parameters: Any) -> pl.Expr:
        made: pl.Expr = method(inputs[0])(*inputs[1:], **parameters)
        return made

    return build


def _replace(*inputs: pl.Expr, n: int, literal: bool) -> pl.Expr:
    word, pattern, value = inputs
    if n == -1:
        return word.str.replace_all(pattern, value, literal=literal)
    return word.str.replace(pattern, value, literal=literal, n=n)


def _format(*inputs: pl.Expr, parts: Sequence[str]) -> pl.Expr:
    return pl.format("{}".join(part.replace("{", "{{").replace("}", "}}") for part in parts), *inputs)


def _concat(*inputs: pl.Expr, delimiter: str, ignore_nulls: bool) -> pl.Expr:
    return pl.concat_str(inputs, separator=delimiter, ignore_nulls=ignore_nulls)


def _clip(*inputs: pl.Expr, has_min: bool, has_max: bool) -> pl.Expr:
    word, *bounds = inputs
    return word.clip(bounds[0] if has_min else None, bounds[-1] if has_max else None)


def _replace_strict(*inputs: pl.Expr, return_dtype: Any) -> pl.Expr:
    word, old, new, *default = inputs
    made = None if return_dtype is None else dtype(return_dtype)
    if default:
        return word.replace_strict(old, new, default=default[0], return_dtype=made)
    return word.replace_strict(old, new, return_dtype=made)


def _to_integer(*inputs: pl.Expr, dtype: str, strict: bool) -> pl.Expr:
    word, base = inputs
    made: Any = DTYPES[dtype]
    return word.str.to_integer(base=base, dtype=made, strict=strict)


_MANY: dict[str, Check] = {"ascii_case_insensitive": is_bool, "overlapping": is_bool, "leftmost": is_bool}
_STRICT: dict[str, Check] = {"literal": is_bool, "strict": is_bool}
_INTEGERS = tuple(name for name in VALUES if "Int" in name)


def _string(name: str, method: str, inputs: int = 1, **more: Any) -> dict[str, Operation]:
    return {f"str.{method}": Operation(("StringExpr", name), _call(f"str.{method}"), (inputs, inputs), **more)}


def _list(name: str, method: str, inputs: int = 1, **more: Any) -> dict[str, Operation]:
    return {f"list.{method}": Operation(("ListExpr", name), _call(f"list.{method}"), (inputs, inputs), **more)}


def _boolean(name: str, method: str, inputs: int = 1, **more: Any) -> dict[str, Operation]:
    return {method: Operation(("Boolean", name), _call(method), (inputs, inputs), **more)}


def _plain(name: str, method: str, inputs: int = 1, **more: Any) -> dict[str, Operation]:
    return {method: Operation(("", name), _call(method), (inputs, inputs), **more)}


def _of_all(family: str, name: str, call: Callable[..., pl.Expr]) -> Operation:
    return Operation((family, name), lambda *inputs: call(list(inputs)), (1, 1 << 16))


OPERATIONS: dict[str, Operation] = {
    **_string("Lowercase", "to_lowercase"),
    **_string("Uppercase", "to_uppercase"),
    **_string("Titlecase", "to_titlecase"),
    **_string("StripChars", "strip_chars", 2),
    **_string("StripCharsStart", "strip_chars_start", 2),
    **_string("StripCharsEnd", "strip_chars_end", 2),
    **_string("StripPrefix", "strip_prefix", 2),
    **_string("StripSuffix", "strip_suffix", 2),
    **_string("Slice", "slice", 3),
    **_string("Head", "head", 2),
    **_string("Tail", "tail", 2),
    **_string("LenChars", "len_chars"),
    **_string("LenBytes", "len_bytes"),
    **_string("Reverse", "reverse"),
    **_string("StartsWith", "starts_with", 2),
    **_string("EndsWith", "ends_with", 2),
    **_string("EscapeRegex", "escape_regex"),
    **_string("ExtractAll", "extract_all", 2),
    **_string("ZFill", "zfill", 2, literal=1),
    **_string("JsonPathMatch", "json_path_match", 2),
    **_string("Normalize", "normalize", parameters={"form": _one_of("NFC", "NFKC", "NFD", "NFKD")}),
    **_string("Extract", "extract", 2, parameters={"group_index": _up_to(1 << 16)}, is_single=True),
    **_string("Contains", "contains", 2, parameters=_STRICT),
    **_string("Find", "find", 2, parameters=_STRICT),
    **_string("CountMatches", "count_matches", 2, parameters={"literal": is_bool}, is_single=True),
    **_string("PadStart", "pad_start", 2, parameters={"fill_char": _is_character}, literal=1),
    **_string("PadEnd", "pad_end", 2, parameters={"fill_char": _is_character}, literal=1),
    **_string("ContainsAny", "contains_any", 2, parameters={"ascii_case_insensitive": is_bool}),
    **_string("ExtractMany", "extract_many", 2, parameters=_MANY),
    **_string("FindMany", "find_many", 2, parameters=_MANY),
    **_string("ReplaceMany", "replace_many", 3, parameters={"ascii_case_insensitive": is_bool, "leftmost": is_bool}),
    "str.encode.hex": Operation(("StringExpr", "HexEncode"), lambda word: word.str.encode("hex")),
    "str.encode.base64": Operation(("StringExpr", "Base64Encode"), lambda word: word.str.encode("base64")),
    "str.replace": Operation(("StringExpr", "Replace"), _replace, (3, 3), {"n": is_whole, "literal": is_bool}),
    "str.split": Operation(
        ("StringExpr", "Split"),
        lambda word, by, inclusive: word.str.split(by, inclusive=inclusive),
        (2, 2),
        {"inclusive": is_bool},
        is_single=True,
    ),
    "str.split_regex": Operation(
        ("StringExpr", "SplitRegex"),
        lambda word, by, inclusive, strict: word.str.split(by, inclusive=inclusive, literal=False, strict=strict),
        (2, 2),
        {"inclusive": is_bool, "strict": is_bool},
    ),
    "str.splitn": Operation(
        ("StringExpr", "SplitN"), _call("str.splitn"), (2, 2), {"n": _up_to(1 << 10)}, is_single=True
    ),
    "str.split_exact": Operation(
        ("StringExpr", "SplitExact"), _call("str.split_exact"), (2, 2), {"n": _up_to(1 << 10), "inclusive": is_bool}
    ),
    "str.to_integer": Operation(
        ("StringExpr", "ToInteger"), _to_integer, (2, 2), {"dtype": _one_of(*_INTEGERS), "strict": is_bool}
    ),
    "concat_str": Operation(
        ("StringExpr", "ConcatHorizontal"), _concat, (1, 1 << 16), {"delimiter": is_text, "ignore_nulls": is_bool}
    ),
    "format": Operation(("StringExpr", "Format"), _format, (1, 1 << 16), {"parts": _are_parts}),
    **_list("Length", "len"),
    **_list("Max", "max"),
    **_list("Min", "min"),
    **_list("DropNulls", "drop_nulls"),
    **_list("Slice", "slice", 3),
    **_list("CountMatches", "count_matches", 2),
    **_list("Join", "join", 2, parameters={"ignore_nulls": is_bool}, is_single=True),
    **_list("Get", "get", 2, parameters={"null_on_oob": is_bool}, is_single=True),
    **_list("Contains", "contains", 2, parameters={"nulls_equal": is_bool}),
    "list.sort": Operation(
        ("ListExpr", "Sort"),
        lambda word, descending, nulls_last, **_: word.list.sort(descending=descending, nulls_last=nulls_last),
        (1, 1),
        {
            "descending": is_bool,
            "nulls_last": is_bool,
            "multithreaded": is_bool,
            "maintain_order": is_bool,
            "limit": lambda value: value is None,
        },
    ),
    **_boolean("Not", "not_"),
    **_boolean("IsNull", "is_null"),
    **_boolean("IsNotNull", "is_not_null"),
    **_boolean("IsNan", "is_nan"),
    **_boolean("IsNotNan", "is_not_nan"),
    **_boolean("IsIn", "is_in", 2, parameters={"nulls_equal": is_bool}),
    "is_between": Operation(
        ("Boolean", "IsBetween"),
        lambda word, low, high, closed: word.is_between(low, high, closed=closed.lower()),
        (3, 3),
        {"closed": _one_of("Both", "Left", "Right", "None")},
    ),
    "all_horizontal": _of_all("Boolean", "AllHorizontal", pl.all_horizontal),
    "any_horizontal": _of_all("Boolean", "AnyHorizontal", pl.any_horizontal),
    "max_horizontal": _of_all("", "MaxHorizontal", pl.max_horizontal),
    "min_horizontal": _of_all("", "MinHorizontal", pl.min_horizontal),
    "coalesce": _of_all("", "Coalesce", pl.coalesce),
    **_plain("Negate", "neg"),
    **_plain("Abs", "abs"),
    **_plain("Floor", "floor"),
    **_plain("Ceil", "ceil"),
    **_plain("FillNull", "fill_null", 2),
    **_plain("Replace", "replace", 3),
    "replace_strict": Operation(("", "ReplaceStrict"), _replace_strict, (3, 4), {"return_dtype": _is_dtype_or_null}),
    "clip": Operation(("", "Clip"), _clip, (2, 3), {"has_min": is_bool, "has_max": is_bool}),
    "struct.field": Operation(
        ("StructExpr", "FieldByName"),
        lambda word, name: word.struct.field(name),
        (1, 1),
        {"name": lambda value: is_text(value) and value[:1] not in ("^", "*", "")},
        is_single=True,
    ),
    "dt.year": Operation(("TemporalExpr", "Year"), _call("dt.year")),
    "dt.month": Operation(("TemporalExpr", "Month"), _call("dt.month")),
    "dt.day": Operation(("TemporalExpr", "Day"), _call("dt.day")),
    "dt.to_string": Operation(
        ("TemporalExpr", "ToString"), _call("dt.to_string"), (1, 1), {"format": is_text}, is_single=True
    ),
}
"""Operations by their name in files."""

NAMES: dict[tuple[str, str], str] = {one.kind: name for name, one in OPERATIONS.items()}
"""Name in files by Polars' family and name."""
