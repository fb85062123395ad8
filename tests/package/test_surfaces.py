"""Signatures of public calls are those in ``surfaces.json``; ``python -m tests.package.test_surfaces`` writes the file.

A difference is a change of the interface that users see: write the file anew where it is meant, and say so in the
changelog.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.distributed import spark
from polars_tadoc.distributed.workers import Workers
from polars_tadoc.namespaces.dataframe import TadocFrame
from polars_tadoc.namespaces.expr import TadocExpr
from polars_tadoc.namespaces.lazyframe import TadocLazyFrame
from polars_tadoc.namespaces.series import TadocSeries
from tests import ROOT

FROZEN = ROOT / "tests" / "surfaces.json"


def methods(surface: type) -> dict[str, Callable[..., Any]]:
    """The public methods of a class and of the topics that it is made of."""
    members = [member for kind in surface.__mro__ for member in vars(kind).items()]
    return {name: call for name, call in members if inspect.isfunction(call) and name[0] != "_"}


def surfaces() -> dict[str, dict[str, Callable[..., Any]]]:
    functions = {name: getattr(tadoc, name) for name in tadoc.__all__}
    return {
        "functions": {name: call for name, call in functions.items() if inspect.isfunction(call)},
        "DataFrame": methods(TadocFrame),
        "LazyFrame": methods(TadocLazyFrame),
        "Series": methods(TadocSeries),
        "Expr": methods(TadocExpr),
        "Index": methods(tadoc.Index),
        "Workers": methods(Workers) | {"__init__": Workers.__init__},
        "Spark": {name: getattr(spark, name) for name in spark.__all__},
    }


def signature(call: Callable[..., Any]) -> list[list[str]]:
    """Kind, name, annotation and default of each parameter, and what is returned."""
    shown = inspect.signature(call)
    parameters = [
        [one.kind.name, one.name, str(one.annotation), "" if one.default is one.empty else repr(one.default)]
        for one in shown.parameters.values()
    ]
    return [*parameters, ["RETURN", "", str(shown.return_annotation), ""]]


def documented(call: Callable[..., Any]) -> dict[str, str]:
    """What help says of each parameter."""
    text = re.search(r"^Parameters\n-+\n(.*?)(?=\n\n\w+\n---|\Z)", inspect.getdoc(call) or "", re.MULTILINE | re.DOTALL)
    parts = re.split(r"^(\S.*)\n", text[1] if text else "", flags=re.MULTILINE)
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


@pytest.mark.parametrize("surface", surfaces())
def test_signatures_are_the_frozen_ones(surface: str) -> None:
    frozen, calls = json.loads(FROZEN.read_text())[surface], surfaces()[surface]
    assert list(calls) == list(frozen)
    for name, call in calls.items():
        assert signature(call) == frozen[name], f"{surface}: {name}"
        assert signature(inspect.unwrap(call)) == frozen[name], f"the reference page of {surface}: {name}"


@pytest.mark.parametrize("surface", surfaces())
def test_help_describes_each_option(surface: str) -> None:
    for name, call in surfaces()[surface].items():
        described = {one.strip(" *") for names in documented(call) for one in names.split(",")}
        options = [one.name for one in inspect.signature(call).parameters.values() if one.kind is one.KEYWORD_ONLY]
        assert name == "__init__" or set(options) <= described, f"{surface}: {name}"


@pytest.mark.parametrize("surface", [name for name in surfaces() if name not in ("functions", "Index")])
def test_help_says_of_options_what_the_function_says(surface: str) -> None:
    functions, compared = surfaces()["functions"], 0
    for name, call in surfaces()[surface].items():
        if name not in functions:
            continue
        of_function, own = documented(functions[name]), documented(call)
        for option in {"top", "min_count", "window", "normalize", "stopwords", "strategy", "engine"} & set(own):
            assert own[option] == of_function[option], f"{surface}: {name}({option}=)"
            compared += 1
    assert compared > 40


def returned(call: Callable[..., Any]) -> str:
    """What help says of the result."""
    text = re.search(r"^Returns\n-+\n(.*?)(?=\n\n\w+\n---|\Z)", inspect.getdoc(call) or "", re.MULTILINE | re.DOTALL)
    assert text, call
    return text[1].strip()


@pytest.mark.parametrize("name", ["word_count", "inverted_index", "tfidf", "twig_filter", "cooccurrence", "pack"])
def test_plans_return_what_frames_return(name: str) -> None:
    frame, plan = returned(getattr(TadocFrame, name)), returned(getattr(TadocLazyFrame, name))
    assert frame.startswith("DataFrame\n")
    assert plan == f"LazyFrame\n{frame.partition(chr(10))[2]}"


def test_help_names_no_parameter_that_a_call_lacks() -> None:
    for calls in surfaces().values():
        for name, call in calls.items():
            described = {one.strip(" *") for names in documented(call) for one in names.split(",")}
            assert name == "__init__" or described <= inspect.signature(call).parameters.keys(), name


@pytest.mark.parametrize("surface", surfaces())
def test_no_call_takes_what_its_signature_does_not_show(surface: str) -> None:
    for call in surfaces()[surface].values():
        parameters = inspect.signature(call).parameters.values()
        if any(one.kind is one.VAR_KEYWORD for one in parameters):
            continue
        needed = [None for one in parameters if one.default is one.empty and one.kind is not one.KEYWORD_ONLY]
        with pytest.raises(TypeError, match=r"topp"):
            call(*needed, topp=3)


@pytest.mark.parametrize("surface", surfaces())
def test_errors_for_unknown_options_suggest_the_closest(surface: str) -> None:
    compared = 0
    for call in surfaces()[surface].values():
        parameters = list(inspect.signature(call).parameters.values())
        names = [one.name for one in parameters if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD)]
        if any(one.kind is one.VAR_KEYWORD for one in parameters) or not set(names) - {"self"}:
            continue
        with pytest.raises(TypeError, match=rf"; did you mean (\w+= or )*{names[-1]}=( or \w+=)*\?$"):
            call(**{f"{names[-1]}{names[-1][-1]}": 3})
        compared += 1
    assert compared > 10


def test_errors_for_unknown_options_say_that_a_call_takes_none() -> None:
    with pytest.raises(TypeError, match=r"content_hash\(\) got an unexpected keyword argument 'seed'; it takes none$"):
        pl.col("text").tadoc.content_hash(seed=1)


def test_errors_for_unknown_options_list_all_if_none_is_close() -> None:
    with pytest.raises(
        TypeError, match=r"repeated_share\(\) got an unexpected keyword argument 'xyz'; it takes column, "
    ):
        tadoc.repeated_share(None, xyz=3)  # type: ignore[call-arg, arg-type]


def test_workers_take_no_engine() -> None:
    with pytest.raises(TypeError, match=r"^word_count\(\) got an unexpected keyword argument 'engine'"):
        Workers.word_count(None, "texts.parquet", engine="cpu")  # type: ignore[call-arg, arg-type]


def write() -> None:
    made = {surface: {name: signature(call) for name, call in calls.items()} for surface, calls in surfaces().items()}
    lines = [
        f" {json.dumps(surface)}: {{\n"
        + ",\n".join(
            f"  {json.dumps(name)}: [\n" + ",\n".join(f"   {json.dumps(one)}" for one in rows) + "]"
            for name, rows in calls.items()
        )
        + "}"
        for surface, calls in made.items()
    ]
    FROZEN.write_text("{\n" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    write()
