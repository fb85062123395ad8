"""Packed rows in a frame: unpacked, and asked for analytics where they stand."""

from __future__ import annotations

import random

from tests.fuzz import packed
from tests.fuzz.columns import hold
from tests.fuzz.script import Script
from tests.fuzz.target import Refused, Target, may_refuse


def check(data: bytes) -> bool:
    """Unpack packed rows, lazily or not, and hold the column that comes out."""
    script = Script(data)
    frame = packed.frame(packed.edited(script, are_texts=True))
    try:
        with may_refuse():
            is_lazy = script.number(1)
            unpacked = frame.lazy().tadoc.unpack("text").collect() if is_lazy else frame.tadoc.unpack("text")
    except Refused:
        return False
    hold(unpacked["text"], script)
    again = unpacked.tadoc.pack("text").tadoc.unpack("text")
    assert again.drop("text").equals(unpacked.drop("text"))
    return True


def seeds() -> list[bytes]:
    """The sample as it is, and scripts of any choices."""
    chance = random.Random(1)
    return [b"", *(chance.randbytes(chance.choice([8, 20, 60])) for _ in range(40))]


TARGET = Target("packed_rows", check, seeds())
