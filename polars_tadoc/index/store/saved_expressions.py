"""Serialises the ``normalize=`` expression in a form that cannot contain code, and deserialises it.

Polars' own serialised expressions can contain code in many places: pickled Python functions in nodes (``map_batches``,
``fold``, ``name.map``) and in types given by an expression (``pl.dtype_of``, in casts and in functions' parameters),
and names of libraries to load. Therefore content of a file is never passed to Polars' deserialiser. The file has a tree
of the operations in :mod:`polars_tadoc.index.store.saved_operations`; each is rebuilt by the call in that table.
Anything else raises, on saving and on loading.

A form is ``"element"`` (the word), or a list: the operation's name, its parameters by name, and the forms of its
inputs. Earlier releases saved Polars' JSON, which is translated with the same tables and then rebuilt.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import polars as pl
import pyarrow as pa

from polars_tadoc.errors import LimitExceededError
from polars_tadoc.index.store.growth import constant_cost, operation_limit
from polars_tadoc.index.store.saved_operations import (
    BINARY,
    CASTS,
    LONGEST_PAD,
    NAMES,
    OPERATIONS,
    Operation,
    dtype,
    is_bool,
    is_dtype,
    is_float,
    is_text,
    is_value,
    is_whole,
)
from polars_tadoc.runtime.arrow_memory import ARROW_ERRORS
from polars_tadoc.untrusted import arrow_sizes

Form = str | list[Any]

_DEEPEST = 200
"""Maximum nesting of operations."""

_LONGEST_SHOWN = 60
"""Characters of an unsupported item in messages."""


class CallsCodeError(ValueError):
    """An expression calls a Python function or a library, which files must not contain."""


def encode(expression: pl.Expr) -> Form:
    """Return an expression's form.

    Raises
    ------
    CallsCodeError
        It calls a Python function or a library.
    ValueError
        It contains another operation that is not supported; the message names it.

    Examples
    --------
    >>> import polars as pl
    >>> from polars_tadoc.index.store.saved_expressions import encode
    >>> encode(pl.element().str.to_lowercase().str.head(3))
    ['str.head', {}, ['str.to_lowercase', {}, 'element'], ['int', {'value': 3}]]

    """
    tree = _serialized(expression)
    try:
        form = _translated(tree)
    except ValueError:
        if _calls_code(tree):
            raise CallsCodeError("a Python function or a library") from None
        raise
    if _translated(_serialized(built(form))) != form:
        raise ValueError(f"{expression}, which Polars {pl.__version__} rebuilds as another expression")
    return form


def read(saved: Any) -> pl.Expr:
    """Make the expression of a form, or of the JSON of earlier releases.

    Raises
    ------
    ValueError
        It is neither, or this Polars does not support it.
    LimitExceededError
        Operations on its literals may take too much memory.

    Examples
    --------
    >>> from polars_tadoc.index.store.saved_expressions import read
    >>> import polars as pl
    >>> pl.Series(["Word"]).implode().list.eval(read(["str.head", {}, "element", ["int", {"value": 2}]])).to_list()
    [['Wo']]
    >>> read(["str.json_decode", {}, "element"])
    Traceback (most recent call last):
        ...
    ValueError: it has "str.json_decode", which is not an operation on words

    """
    try:
        try:
            form = saved if isinstance(saved, list) or saved == "element" else _translated(saved)
            expression = built(form)
        except ValueError as error:
            raise ValueError(f"it has {error}, which is not an operation on words") from None
        if _translated(_serialized(expression)) != form:
            raise ValueError("this Polars rebuilds it as another expression")
        if (size := constant_cost(form)) > (most := operation_limit()):
            raise LimitExceededError(
                f"its literals become up to {size:,.0f} bytes; the limit is {most:,}; if the index is trusted, raise "
                "it: tadoc.Config(payload_limit_bytes=…)"
            )
        _NO_WORDS.list.eval(expression)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, TypeError, OverflowError) as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return expression


_NO_WORDS = pl.Series([[]], dtype=pl.List(pl.String))


def _serialized(expression: pl.Expr) -> Any:
    try:
        return json.loads(expression.meta.serialize(format="json"))
    except RecursionError:
        raise ValueError("an expression that is nested too deeply") from None
    except Exception as error:  # a function's pickling may raise anything
        raise CallsCodeError(f"a Python function that cannot be pickled: {error}") from None


_CODE = {
    *("AnonymousFunction", "AnonymousAgg", "FfiPlugin", "Map"),
    *("FoldHorizontal", "ReduceHorizontal", "CumFoldHorizontal", "CumReduceHorizontal"),
}
"""Polars' names of nodes that call code, for messages only; refusals do not depend on them."""


def _calls_code(tree: Any) -> bool:
    if isinstance(tree, dict):
        return not _CODE.isdisjoint(tree) or any(map(_calls_code, tree.values()))
    return isinstance(tree, list) and any(map(_calls_code, tree))


def _translated(node: Any, depth: int = 0) -> Form:
    """Translate Polars' JSON; any key outside of the tables raises."""
    if node == "Element":
        return "element"
    if not isinstance(node, dict) or len(node) != 1:
        raise ValueError(_shown(node))
    if depth > _DEEPEST:
        raise ValueError(f"more than {_DEEPEST} nested operations")
    ((kind, parts),) = node.items()
    if kind == "Function":
        return _function(parts, depth)
    if kind == "Literal":
        return _literal(parts)
    if kind == "BinaryExpr":
        left, op, right = _parts(parts, "left", "op", "right")
        if not isinstance(op, str) or op not in BINARY:
            raise ValueError(_shown(op))
        return ["binary", {"op": op}, _translated(left, depth + 1), _translated(right, depth + 1)]
    if kind == "Ternary":
        return ["when", {}, *_all_translated(_parts(parts, "predicate", "truthy", "falsy"), depth)]
    if kind == "Cast":
        inner, to, options = _parts(parts, "expr", "dtype", "options")
        (name,) = _parts(to, "Literal")  # but not OfExpr, which contains an expression
        if not is_dtype(name) or not isinstance(options, str) or options not in CASTS:
            raise ValueError(f"a cast to {_shown(name)}")
        return ["cast", {"dtype": name, "options": options}, _translated(inner, depth + 1)]
    if kind == "Alias" and isinstance(parts, list) and len(parts) == 2 and is_text(parts[1]):
        return ["alias", {"name": parts[1]}, _translated(parts[0], depth + 1)]
    if kind == "Eval":
        return _eval(parts, depth)
    raise ValueError(_shown(kind))


def _all_translated(nodes: Iterable[Any], depth: int) -> list[Form]:
    return [_translated(node, depth + 1) for node in nodes]


def _function(parts: Any, depth: int) -> Form:
    inputs, function = _parts(parts, "input", "function")
    if not isinstance(inputs, list):
        raise ValueError(_shown(inputs))
    family, name, own = _named(function)
    if (family, name) == ("StringExpr", "Strptime"):
        return _strptime(inputs, own, depth)
    known = NAMES.get((family, name))
    if known is None:
        raise ValueError(_shown(f"{family}.{name}" if family else name))
    one = OPERATIONS[known]
    parameters = _parameters(known, one, own)
    _require_parameters(known, one, parameters)
    forms = _all_translated(inputs, depth)
    _require_inputs(known, one, forms)
    return [known, parameters, *forms]


def _named(function: Any) -> tuple[str, str, Any]:
    """Split Polars' JSON of a function into family, name and parameters."""
    family, own = "", function
    if isinstance(own, dict) and len(own) == 1:
        ((first, rest),) = own.items()
        if first in _FAMILIES:
            family, own = first, rest
        elif first not in _PLAIN:
            return first, "", rest
    if isinstance(own, str):
        return family, own, None
    if isinstance(own, dict) and len(own) == 1:
        ((name, values),) = own.items()
        return family, name, values
    raise ValueError(_shown(own))


_FAMILIES = {family for family, _ in NAMES if family}
_PLAIN = {name for family, name in NAMES if not family}


def _parameters(known: str, one: Operation, own: Any) -> dict[str, Any]:
    """Return a function's parameters by name, as in a form."""
    if not one.parameters:
        if own is not None:
            raise ValueError(_shown(own))
        return {}
    if known == "format":
        return {"parts": _format_parts(own)}
    if one.is_single:
        (name,) = one.parameters
        return {name: own}
    values = dict(zip(one.parameters, _parts(own, *one.parameters), strict=True))
    if known == "replace_strict" and values["return_dtype"] is not None:
        (values["return_dtype"],) = _parts(values["return_dtype"], "Literal")
    return values


def _format_parts(own: Any) -> list[str]:
    """Split the text of ``pl.format`` at its placeholders, whose positions are in bytes."""
    text, places = _parts(own, "format", "insertions")
    if not is_text(text) or not isinstance(places, list) or not all(map(is_whole, places)):
        raise ValueError(_shown(own))
    data = text.encode()
    bounds = [0, *places, len(data)]
    if bounds != sorted(bounds):
        raise ValueError(_shown(own))
    try:
        return [data[start:stop].decode() for start, stop in pairwise(bounds)]
    except UnicodeDecodeError:
        raise ValueError(_shown(own)) from None


def _strptime(inputs: list[Any], own: Any, depth: int) -> Form:
    """Translate ``str.to_date`` with a format; without one, Polars would guess it from the first word."""
    if not isinstance(own, list) or len(own) != 2 or len(inputs) != 2 or own[0] != {"Literal": "Date"}:
        raise ValueError("str.to_datetime" if isinstance(own, list) else _shown(own))
    form, *flags = _parts(own[1], "format", "strict", "exact", "cache")
    if inputs[1] != {"Literal": {"Scalar": {"String": "raise"}}}:
        raise ValueError(_shown(inputs[1]))
    parameters = dict(zip(_TO_DATE, [form, *flags], strict=True))
    _require_parameters("str.to_date", _TO_DATE_OPERATION, parameters)
    return ["str.to_date", parameters, _translated(inputs[0], depth + 1)]


_TO_DATE = {"format": is_text, "strict": is_bool, "exact": is_bool, "cache": is_bool}
_TO_DATE_OPERATION = Operation(
    ("StringExpr", "Strptime"), lambda word, **how: word.str.to_date(**how), (1, 1), _TO_DATE
)


def _eval(parts: Any, depth: int) -> Form:
    inner, evaluation, variant = _parts(parts, "expr", "evaluation", "variant")
    if variant != "List":
        raise ValueError(_shown(f"list.agg ({variant})"))
    of = _translated(inner, depth + 1)
    if evaluation == {"Function": {"input": ["Element"], "function": "Reverse"}}:
        return ["list.reverse", {}, of]
    for keeps_order in (True, False):
        if evaluation == {"Function": {"input": ["Element"], "function": {"Unique": keeps_order}}}:
            return ["list.unique", {"maintain_order": keeps_order}, of]
    return ["list.eval", {}, of, _translated(evaluation, depth + 1)]


def _literal(parts: Any) -> Form:
    if not isinstance(parts, dict) or len(parts) != 1:
        raise ValueError(_shown(parts))
    ((kind, value),) = parts.items()
    if kind == "Series":
        return ["series", _values(value)]
    if kind not in ("Scalar", "Dyn") or not isinstance(value, dict) or len(value) != 1:
        raise ValueError(f"a literal, {_shown(value)}")
    ((name, one),) = value.items()
    parameters: dict[str, Any] = {"value": one}
    if kind == "Dyn":
        own = {"Int": "int", "Float": "float"}.get(name)
    elif name == "List":
        own, parameters = "list", _values(one)
    elif name == "Null":
        own, parameters = "lit", {"dtype": one, "value": None}
    else:
        own, parameters = None if one is None else "lit", {"dtype": name, "value": one}
    if own is None or not _LITERALS[own](parameters):
        raise ValueError(f"a literal, {_shown(value)}")
    return [own, parameters]


def _values(stream: Any) -> dict[str, Any]:
    """Read a literal's list: one column of an Arrow IPC stream, as numbers."""
    try:
        data = bytes(stream)
        if arrow_sizes.stream_bytes(data) > len(data):
            raise ValueError("a compressed literal")
        with pa.ipc.open_stream(data) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (*ARROW_ERRORS, MemoryError, TypeError) as error:
        raise ValueError(f"a literal that is not a table ({error})") from None
    if table.num_columns != 1:
        raise ValueError("a literal of several columns")
    column = table.column(0)
    kind = column.type
    is_nested = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    name = _ARROW.get(kind.value_type if is_nested else kind)
    if name is None:
        raise ValueError(f"a literal of {column.type}")
    return {"dtype": {"List": name} if is_nested else name, "values": column.to_pylist()}


_ARROW: dict[pa.DataType, str] = {
    pa.string(): "String",
    pa.large_string(): "String",
    pa.string_view(): "String",
    pa.bool_(): "Boolean",
    pa.null(): "Null",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
    **{getattr(pa, f"{sign}int{bits}")(): f"{sign.upper()}Int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""Supported types of lists, by Arrow's types."""


def _is_literal(parameters: Any) -> bool:
    return (
        set(parameters) == {"dtype", "value"}
        and is_dtype(parameters["dtype"])
        and is_value(parameters["value"], parameters["dtype"])
    )


def _is_list(parameters: Any) -> bool:
    return (
        set(parameters) == {"dtype", "values"}
        and is_dtype(parameters["dtype"])
        and isinstance(parameters["values"], list)
        and all(is_value(value, parameters["dtype"]) for value in parameters["values"])
    )


_LITERALS: dict[str, Callable[[Any], bool]] = {
    "int": lambda parameters: set(parameters) == {"value"} and is_whole(parameters["value"]),
    "float": lambda parameters: set(parameters) == {"value"} and is_float(parameters["value"]),
    "lit": _is_literal,
    "list": _is_list,
    "series": _is_list,
}


def _parts(parts: Any, *names: str) -> Iterator[Any]:
    """Return the values if the names are exactly these."""
    if not isinstance(parts, dict) or set(parts) != set(names):
        raise ValueError(_shown(parts))
    return (parts[name] for name in names)


def _require_parameters(known: str, one: Operation, parameters: dict[str, Any]) -> None:
    if set(parameters) != set(one.parameters):
        raise ValueError(f"{known} with {_shown(sorted(parameters))}")
    for name, check in one.parameters.items():
        if not check(parameters[name]):
            raise ValueError(f"{known} with {name}={_shown(parameters[name])}")


def _require_inputs(known: str, one: Operation, forms: Sequence[Any]) -> None:
    least, most = one.inputs
    if not least <= len(forms) <= most:
        raise ValueError(f"{known} of {len(forms)} expressions")
    if one.literal is not None:
        length = forms[one.literal]
        is_number = isinstance(length, list) and length[:1] == ["int"] and _LITERALS["int"](length[1])
        if not is_number or not 0 <= length[1]["value"] <= LONGEST_PAD:
            raise ValueError(f"{known} to a length that is not a number up to {LONGEST_PAD:,}")


def built(form: Any, depth: int = 0) -> pl.Expr:
    """Make the expression of a form; its content is validated like Polars' JSON."""
    if form == "element":
        return pl.element()
    is_operation = isinstance(form, list) and len(form) >= 2 and isinstance(form[0], str) and isinstance(form[1], dict)
    if not is_operation or depth > _DEEPEST:
        raise ValueError(_shown(form))
    name, parameters, *inner = form
    if name in _LITERALS:
        return _built_literal(name, parameters, inner)
    one = operation(name)
    _require_parameters(name, one, parameters)
    _require_inputs(name, one, inner)
    return one.build(*[built(part, depth + 1) for part in inner], **parameters)


def _built_literal(name: str, parameters: Any, inner: Sequence[Any]) -> pl.Expr:
    if inner or not _LITERALS[name](parameters):
        raise ValueError(f"a literal, {_shown(parameters)}")
    if name in ("int", "float"):
        return pl.lit(parameters["value"])
    own = dtype(parameters["dtype"])
    if name == "lit":
        return pl.lit(parameters["value"], own)
    if name == "list":
        return pl.lit(parameters["values"], pl.List(own))
    return pl.lit(pl.Series("", parameters["values"], own))


def operation(name: str) -> Operation:
    """Return the operation with a name; raises ``ValueError`` if it is unknown."""
    one = _OWN.get(name) or OPERATIONS.get(name)
    if one is None:
        raise ValueError(_shown(name))
    return one


_OWN: dict[str, Operation] = {
    "binary": Operation(
        ("", ""),
        lambda left, right, op: BINARY[op](left, right),
        (2, 2),
        {"op": lambda value: isinstance(value, str) and value in BINARY},
    ),
    "when": Operation(("", ""), lambda predicate, one, other: pl.when(predicate).then(one).otherwise(other), (3, 3)),
    "cast": Operation(
        ("", ""),
        lambda word, options, **how: word.cast(dtype(how["dtype"]), **CASTS[options]),
        (1, 1),
        {"dtype": is_dtype, "options": lambda value: isinstance(value, str) and value in CASTS},
    ),
    "alias": Operation(("", ""), lambda word, name: word.alias(name), (1, 1), {"name": is_text}),
    "str.to_date": _TO_DATE_OPERATION,
    "list.reverse": Operation(("", ""), lambda words: words.list.reverse()),
    "list.unique": Operation(
        ("", ""),
        lambda words, maintain_order: words.list.unique(maintain_order=maintain_order),
        (1, 1),
        {"maintain_order": is_bool},
    ),
    "list.eval": Operation(("", ""), lambda words, each: words.list.eval(each), (2, 2)),
}
"""Operations that are not functions in Polars' JSON."""


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=repr)
    return f'"{text[:_LONGEST_SHOWN]}{"…" if len(text) > _LONGEST_SHOWN else ""}"'
