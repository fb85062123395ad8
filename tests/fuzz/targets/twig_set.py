"""Files of saved twigs: the JSON itself, or edited within."""

from __future__ import annotations

import json
import random

import polars as pl

import polars_tadoc as tadoc
from tests.fuzz.script import Script, edit_bytes, edit_json
from tests.fuzz.target import Refused, Target, folder, may_refuse
from tests.fuzz.targets.xpath import DOCUMENTS

SAMPLE = {
    "format": "polars_tadoc twigs",
    "version": 1,
    "namespaces": {"p": "urn:one", "é": "urn:two/"},
    "queries": {"titled": "//article/title", "p": "//p:a[@x='1']", "": "//*", "text": "//a[text()='\u00e9']"},
}

TOKENS = (
    *('"format"', '"polars_tadoc twigs"', '"version": 1', '"namespaces": {', '"queries": {', '"a": "//a"', "//a", "{}"),
    *(
        "\\u0000",
        "\\ud800",
        "null",
        "1e999",
        "NaN",
        "[",
        "{",
        '"xml": "http://www.w3.org/XML/1998/namespace"',
        "\ufeff",
    ),
)


def edited(script: Script) -> bytes:
    """Make the file that a script asks for."""
    tree = SAMPLE
    for _ in range(script.number(3)):
        tree = edit_json(script, tree)
    data = bytearray(json.dumps(tree, ensure_ascii=bool(script.number(1))), "utf-8", "surrogatepass")
    for _ in range(script.number(2)):
        edit_bytes(script, data)
    return bytes(data)


def check(data: bytes) -> bool:
    """Load twigs, use them, and save them again."""
    path = folder() / "twigs.json"
    path.write_bytes(data if data.startswith(b"{") else edited(Script(data)))
    try:
        with may_refuse():
            twigs = tadoc.TwigSet.load(path)
    except Refused:
        return False
    repr(twigs)
    tadoc.twig_filter(pl.Series("xml", DOCUMENTS), twigs)
    twigs.save(path)
    again = tadoc.TwigSet.load(path)
    assert again == twigs
    assert dict(again) == dict(twigs)
    assert again.namespaces == twigs.namespaces
    return True


def seeds() -> list[bytes]:
    """The sample as it is, and scripts of any choices."""
    chance = random.Random(6)
    sound = [json.dumps(SAMPLE).encode(), json.dumps({**SAMPLE, "queries": {}}).encode()]
    return sound + [chance.randbytes(chance.choice([8, 20, 60])) for _ in range(40)]


TARGET = Target("twig_set", check, seeds(), TOKENS)
