"""Expands ``**options: Unpack[SomeOptions]`` in a call's signature.

Options are declared once, in a ``TypedDict`` beside the analytic, with their types and defaults. Type checkers read the
``TypedDict``; ``inspect.signature``, ``help`` and the reference pages see each option as a parameter.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Annotated as Annotated  # the example names it in types that are read here
from typing import Any, TypedDict, TypeVar, cast, get_type_hints

from polars_tadoc.config import showing
from polars_tadoc.errors import nearest

Call = TypeVar("Call", bound=Callable[..., Any])

PROGRESS = "progress"


@dataclass(frozen=True)
class Default:
    """The default of an option: ``min_count: Annotated[int, Default(1)]``."""

    value: Any
    lacking: tuple[str, ...] = ()
    """Calls that return these types lack the option."""


class ProgressOption(TypedDict, total=False):
    """Whether a bar is shown; :func:`takes_options` does so. Expressions and Spark run elsewhere."""

    progress: Annotated[bool | None, Default(None, ("pl.Expr", "DataFrame"))]


def takes_options(call: Call, last: Collection[str] = ()) -> Call:
    """Show the options in a call's signature, pass all of them on, and reject others.

    Parameters
    ----------
    call
        Its last parameter is ``**options: Unpack[SomeOptions]``.
    last
        Further keyword-only parameters of the call that follow the options; others precede them.

    Examples
    --------
    >>> from typing import Annotated, TypedDict, Unpack
    >>> class WordOptions(TypedDict, total=False):
    ...     top: Annotated[int | None, Default(None)]
    ...     min_count: Annotated[int, Default(1)]
    >>> @takes_options
    ... def count(column: str, **options: Unpack[WordOptions]) -> WordOptions:
    ...     return options
    >>> list(inspect.signature(count).parameters), count("text", top=2)
    (['column', 'top', 'min_count'], {'top': 2, 'min_count': 1})
    >>> count("text", topp=2)
    Traceback (most recent call last):
    TypeError: count() got an unexpected keyword argument 'topp'; did you mean top=?

    """
    function, signature = cast(Any, inspect.unwrap(call)), inspect.signature(call)
    *own, options = signature.parameters.values()
    declared = options.annotation
    if isinstance(declared, str):  # other annotations may use names that only type checkers import
        declared = eval(declared, function.__globals__)
    spelled = _parameters(declared.__args__[0], signature.return_annotation)
    after = [one for one in own if one.name in last and one.kind is one.KEYWORD_ONLY]
    parameters = [*(one for one in own if one not in after), *spelled, *after]
    defaults = {one.name: one.default for one in spelled if one.name != PROGRESS}
    taken = dict.fromkeys(one.name for one in parameters)

    @wraps(call)
    def checked(*arguments: Any, **named: Any) -> Any:
        if not named.keys() <= taken.keys():
            raise unknown_option(function, named, taken)
        if PROGRESS in named and named[PROGRESS] is not None:
            with showing(named.pop(PROGRESS)):
                return call(*arguments, **{**defaults, **named})
        named.pop(PROGRESS, None)
        return call(*arguments, **{**defaults, **named})

    written = {name: text for name, text in call.__annotations__.items() if name != options.name}
    hints = declared.__args__[0].__annotations__
    checked.__annotations__ = {**{one.name: hints[one.name] for one in spelled}, **written}
    # the reference pages show the wrapped function
    function.__signature__ = cast(Any, checked).__signature__ = signature.replace(parameters=parameters)
    setattr(checked, _NAMES, True)
    return cast(Call, checked)


_NAMES = "names_unknown_options"
"""Attribute of calls that suggest another name for an unknown option."""


def names_unknown_options(call: Call) -> Call:
    """Let the error for an unknown keyword argument suggest the closest name, for calls that list their parameters.

    Examples
    --------
    >>> @names_unknown_options
    ... def count(column: str, *, top: int = 1) -> int:
    ...     return top
    >>> count("text", topp=2)
    Traceback (most recent call last):
    TypeError: count() got an unexpected keyword argument 'topp'; did you mean top=?

    """
    if hasattr(call, _NAMES):
        return call

    @wraps(call)
    def named_call(*arguments: Any, **named: Any) -> Any:
        try:
            return call(*arguments, **named)
        except TypeError:
            known = inspect.signature(call).parameters
            if known.keys() >= named.keys() or any(one.kind is one.VAR_KEYWORD for one in known.values()):
                raise
            raise unknown_option(call, named, known) from None

    setattr(named_call, _NAMES, True)
    return cast(Call, named_call)


def unknown_option(call: Callable[..., Any], named: Iterable[str], known: Iterable[str]) -> TypeError:
    """Make the error for the first unknown keyword argument of a call: it suggests the closest names, or lists all."""
    names = [name for name in known if name not in ("self", "cls")]
    unknown = next(name for name in named if name not in names)
    near = nearest(unknown, names)
    close = " or ".join(f"{name}=" for name in near)
    hint = f"did you mean {close}?" if close else f"it takes {', '.join(names) or 'none'}"
    shown = call.__qualname__ if call.__name__ == "__init__" else call.__name__
    return TypeError(f"{shown}() got an unexpected keyword argument {unknown!r}; {hint}")


def takes_progress(call: Call) -> Call:
    """Let ``progress=``, a parameter that the call declares, show its bar, or hide it."""

    @wraps(call)
    def shown(*arguments: Any, progress: object = None, **named: Any) -> Any:
        with showing(progress):
            return call(*arguments, **named)

    return cast(Call, shown)


def _parameters(options: Any, returned: object) -> list[inspect.Parameter]:
    """Make a parameter of each option of a call that returns a type, annotated with its own type as text."""
    hints, made = get_type_hints(options, include_extras=True), []
    for name, declared in options.__annotations__.items():
        written = getattr(declared, "__forward_arg__", None)
        kind = hints[name].__origin__ if written is None else re.sub(r"^Annotated\[(.*), Default\(.*$", r"\1", written)
        default = hints[name].__metadata__[0]
        if returned not in default.lacking:
            made.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default.value, annotation=kind))
    return made
