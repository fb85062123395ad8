"""Expands ``**options: Unpack[SomeOptions]`` in a call's signature.

Options are declared once, in a ``TypedDict`` beside the analytic, with their types and defaults. Type checkers read the
``TypedDict``; ``inspect.signature``, ``help`` and the reference pages see each option as a parameter.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import wraps
from typing import Annotated as Annotated  # the example names it in types that are read here
from typing import Any, TypeVar, cast, get_type_hints

Call = TypeVar("Call", bound=Callable[..., Any])


@dataclass(frozen=True)
class Default:
    """The default of an option: ``min_count: Annotated[int, Default(1)]``."""

    value: Any


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
    TypeError: count() got an unexpected keyword argument 'topp'

    """
    function, signature = cast(Any, inspect.unwrap(call)), inspect.signature(call)
    *own, options = signature.parameters.values()
    declared = options.annotation
    if isinstance(declared, str):  # other annotations may use names that only type checkers import
        declared = eval(declared, function.__globals__)
    spelled = _parameters(declared.__args__[0])
    after = [one for one in own if one.name in last and one.kind is one.KEYWORD_ONLY]
    parameters = [*(one for one in own if one not in after), *spelled, *after]
    defaults = {one.name: one.default for one in spelled}
    taken = {one.name for one in parameters}

    @wraps(call)
    def checked(*arguments: Any, **named: Any) -> Any:
        if not named.keys() <= taken:
            unknown = next(name for name in named if name not in taken)
            raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {unknown!r}")
        return call(*arguments, **{**defaults, **named})

    written = {name: text for name, text in call.__annotations__.items() if name != options.name}
    checked.__annotations__ = {**declared.__args__[0].__annotations__, **written}
    # the reference pages show the wrapped function
    function.__signature__ = cast(Any, checked).__signature__ = signature.replace(parameters=parameters)
    return cast(Call, checked)


def _parameters(options: Any) -> list[inspect.Parameter]:
    """Make a parameter of each option, annotated with its type as text."""
    hints, made = get_type_hints(options, include_extras=True), []
    for name, declared in options.__annotations__.items():
        written = getattr(declared, "__forward_arg__", None)
        kind = hints[name].__origin__ if written is None else re.sub(r"^Annotated\[(.*), Default\(.*$", r"\1", written)
        default = hints[name].__metadata__[0].value
        made.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind))
    return made
