"""Payloads of grammars, and rows over them: sections edited under right digests, or the text itself."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from polars_tadoc.model import payload
from polars_tadoc.model.column import split
from tests import handmade
from tests.fuzz.columns import hold
from tests.fuzz.script import Script, edit_bytes, edit_numbers
from tests.fuzz.target import MAX_DECODED, Refused, Target, may_refuse

BYTES = ("tokenizer", "word_bytes", "gap_bytes")
NARROW = ("shared_words", "shared_gaps")
COUNTS = ("words", "word_bytes", "gaps", "gap_bytes", "tokenizer", "levels", "rules", "symbols")

TEXTS: dict[str, list[str | None]] = {
    "words": ["the cat sat on the mat, the cat sat"] * 3 + ["日本 x\ny", None, "the cat", ""],
    "whitespace": ["a b a b  a b\t", "a b a b", "é a b a", "a"],
    "xml": ["<a><b>x</b><b>x</b></a>", "<a x='1'><b>x, y</b></a>", "<a><b>x</b><b>x</b>"],
}
"""Texts of samples, by tokenizer."""


@cache
def samples() -> list[str]:
    """Payloads of small grammars."""
    columns = [tadoc.compress(pl.Series(rows), tokenizer=name) for name, rows in TEXTS.items()]
    dictionary = tadoc.Dictionary.from_words(pl.Series(["to", "or"]))
    columns.append(tadoc.compress(pl.Series(["to be", "be"]), dictionary=dictionary))
    columns.append(handmade.column(handmade.grammar([]), [[]]))
    return [column.ext.storage().struct.field("grammar").cast(pl.String).drop_nulls()[0] for column in columns]


def sections(number: int) -> dict[str, Any]:
    """A sample's sections, as ``handmade.stream`` takes them."""
    stream = np.frombuffer(b"".join(payload.pack(payload.decode(samples()[number]))), np.uint8)
    made: dict[str, Any] = {}
    for name, part in payload.sections(stream).items():
        if name in BYTES:
            made[name] = part.tobytes()
        else:
            made[name] = part.tolist() if name in NARROW else part.reshape(4, -1).T.copy().view("<u4")[:, 0].tolist()
    return made


def edited(script: Script) -> str:
    """Make the payload that a script asks for."""
    kind, number = script.number(5), script.number(len(samples()) - 1)
    changed = bytearray(samples()[number].encode())
    if kind == 0:
        while script.left > 8:
            edit_bytes(script, changed)
        return changed.decode(errors="replace")
    parts = sections(number)
    if kind == 1:
        stream = bytearray(handmade.stream(**parts))
        while script.left > 8:
            edit_bytes(script, stream)
        return handmade.seal(bytes(stream))
    counts: dict[str, int] = {}
    for _ in range(1 + script.number(3)):
        name = script.pick([*parts, "counts"])
        if name == "counts":
            counts[script.pick(COUNTS)] = script.any_number([len(values) for values in parts.values()], 64)
        elif name in BYTES:
            data = bytearray(parts[name])
            edit_bytes(script, data)
            parts[name] = bytes(data)
        else:
            edit_numbers(script, parts[name], 8 if name in NARROW else 32)
    size = script.any_number([MAX_DECODED], 64) if script.number(15) == 15 else None
    return handmade.seal(handmade.stream(**parts, counts=counts), size)


def check(data: bytes) -> bool:
    """Decode a payload, and use it under rows of any symbols and gaps."""
    script = Script(data)
    text = edited(script) if script.number(7) < 7 else script.take(1 << 10).decode(errors="replace")
    try:
        with may_refuse():
            grammar = payload.decode(text)
    except Refused:
        return False
    encoded = payload.encode(grammar)
    assert payload.encode(payload.decode(encoded)) == encoded
    known = grammar.vocabulary_size + grammar.rule_count
    rows: list[list[int] | None] = [[symbol] for symbol in range(min(known, 20))]
    rows += [[script.number(known) for _ in range(script.number(5))] for _ in range(script.number(3))]
    gaps = [None if script.number(3) == 3 else script.take(script.number(6)) for _ in rows]
    column = handmade.column(text, rows, gaps)
    try:
        with may_refuse():
            split(column)
    except Refused:
        assert max(symbol for row in rows for symbol in row) == known
        return False
    hold(column, script)
    return True


def seeds() -> list[bytes]:
    """Each sample as it is, and scripts of any choices."""
    chance = random.Random(0)
    sound = [bytes([0, 2, number, 0, 0]) for number in range(len(samples()))]
    return sound + [bytes([0]) + chance.randbytes(chance.choice([10, 30, 80])) for _ in range(40)]


TARGET = Target("payload", check, seeds())
