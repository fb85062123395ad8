"""A saved ``normalize=``: what Polars writes of any expression, or a form, with code planted in it, or edited."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

from polars_tadoc.index.store import saved_expressions as expressions
from tests.fuzz.expressions import apply, every, places, planted, plants, was_run
from tests.fuzz.script import Script, edit_json
from tests.fuzz.target import Target


@cache
def samples() -> list[Any]:
    """What Polars writes of each of its calls, and the forms of those that are saved."""
    trees = list(every().values())
    return [*_forms(trees), *trees]


def _forms(trees: list[Any]) -> list[Any]:
    forms = []
    for tree in trees:
        try:
            forms.append(expressions.encode(expressions.read(tree)))
        except ValueError:
            continue
    return forms


def edited(script: Script) -> Any:
    """Make the JSON that a script asks for."""
    tree = samples()[script.number(len(samples()) - 1)]
    for _ in range(script.number(3)):
        kind = script.number(3)
        if kind == 0:
            tree = edit_json(script, tree)
            continue
        ways = list(places(tree))
        way = script.pick(ways)
        if kind == 1:
            tree = planted(tree, way, plants()[script.pick(list(plants()))])
        elif kind == 2:
            tree = planted(tree, way, plants()["node"], beside=script.pick(["dtype", "OfExpr", "function", "Literal"]))
        else:
            other = samples()[script.number(len(samples()) - 1)]
            for step in script.pick(list(places(other))):
                other = other[step]
            tree = planted(tree, way, other)
    return tree


def check(data: bytes) -> bool:
    """Read it; what is accepted is saved again as it is, and no code was called."""
    tree = edited(Script(data))
    try:
        tree = json.loads(json.dumps(tree))
        expression = expressions.read(tree)
    except (ValueError, RecursionError):
        assert not was_run(), tree
        return False
    form = expressions.encode(expression)
    assert expressions.encode(expressions.read(form)) == form
    assert isinstance(tree, dict) or tree == "Element" or form == tree
    apply(expression)
    assert not was_run(), tree
    return True


def seeds() -> list[bytes]:
    """Samples as they are, and scripts of any choices."""
    chance = random.Random(9)
    sound = [number.to_bytes(2, "little") for number in range(0, len(samples()), 5)]
    return sound + [chance.randbytes(chance.choice([8, 20, 60])) for _ in range(100)]


TARGET = Target("normalize", check, seeds())
