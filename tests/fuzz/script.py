"""An input read as choices, and the edits that it asks for; once it is used up, every choice is the first one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

Option = TypeVar("Option")

MAX_COPIES = 300
"""Entries that an edit adds at most."""


class Script:
    """Choices, one after another."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def left(self) -> int:
        """Bytes that nothing has been chosen by."""
        return len(self._data) - self._at

    def take(self, count: int) -> bytes:
        """Take as many of the next bytes as there are."""
        taken = self._data[self._at : self._at + count]
        self._at += len(taken)
        return taken

    def number(self, most: int) -> int:
        """Choose a number from 0 to ``most``."""
        return int.from_bytes(self.take((most.bit_length() + 7) // 8), "little") % (most + 1)

    def pick(self, options: Sequence[Option]) -> Option:
        """Choose one of some."""
        return options[self.number(len(options) - 1)]

    def any_number(self, known: Sequence[int], bits: int) -> int:
        """Choose a number of so many bits that may do harm among numbers that are there."""
        kind = self.number(7)
        if kind == 0:
            return self.number(255)
        if kind == 1 and known:
            return self.pick(known)
        if kind == 2 and known:
            return (self.pick(known) + self.pick([1, -1, 2, -2, 64, -64, 128])) % (1 << bits)
        if kind == 3:
            return (len(known) + self.pick([0, 1, -1])) % (1 << bits)
        if kind == 4:
            return (max(known, default=0) + self.pick([0, 1])) % (1 << bits)
        if kind == 5:
            return ((1 << self.number(bits)) - self.pick([0, 1])) % (1 << bits)
        if kind == 6:
            return (1 << bits) - 1 - self.number(3)
        return int.from_bytes(self.take(bits // 8), "little")


def edit_numbers(script: Script, values: list[int], bits: int) -> None:
    """Change numbers in one way."""
    kind, at = script.number(8), script.number(max(len(values) - 1, 0))
    count = 1 + script.number(3) if kind < 7 else script.number(MAX_COPIES)
    if kind <= 2 and values:
        values[at] = script.any_number(values, bits)
    elif kind == 3:
        values[at:at] = [script.any_number(values, bits) for _ in range(count)]
    elif kind == 4:
        del values[at : at + count]
    elif kind == 5:
        values[at:at] = values[at : at + count]
    elif kind == 6 and values:
        other = script.number(len(values) - 1)
        values[at], values[other] = values[other], values[at]
    elif kind == 7:
        values[at:] = [script.any_number(values, bits)] * count
    elif values:
        values[:] = (values * MAX_COPIES)[:count]


def edit_bytes(script: Script, data: bytearray) -> None:
    """Change bytes in one way."""
    kind, at = script.number(7), script.number(max(len(data) - 1, 0))
    if kind == 0 and data:
        data[at] ^= 1 << script.number(7)
    elif kind == 1 and data:
        data[at] = script.number(255)
    elif kind == 2:
        del data[at : at + 1 + script.number(15)]
    elif kind == 3:
        data[at:at] = script.take(1 + script.number(15))
    elif kind == 4:
        width = script.pick([2, 4, 8])
        data[at : at + width] = script.any_number([len(data)], 8 * width).to_bytes(width, "little")
    elif kind == 5:
        stop = at + 1 + script.number(63)
        data[at:at] = data[at:stop]
    elif kind == 6:
        data[at : at + 8] = bytes([script.pick([0, 255])]) * 8
    else:
        del data[at:]


def edit_strings(script: Script, values: list[bytes]) -> None:
    """Change a list of strings in one way, or one of them; they need not be text afterwards."""
    kind, at = script.number(5), script.number(max(len(values) - 1, 0))
    if kind <= 1 and values:
        changed = bytearray(values[at])
        edit_bytes(script, changed)
        values[at] = bytes(changed)
    elif kind == 2:
        values.insert(at, script.take(script.number(8)))
    elif kind == 3:
        del values[at : at + 1 + script.number(3)]
    elif kind == 4 and values:
        values[at] = script.pick(values) * script.pick([1, 2, 40])
    elif values:
        values.insert(at, script.pick(values))


def edit_json(script: Script, tree: Any) -> Any:
    """Return JSON changed in one place; what is not changed is shared."""
    if isinstance(tree, dict) and tree and script.number(7):
        key = script.pick(list(tree))
        kind = script.number(9)
        if kind == 0:
            return {name: value for name, value in tree.items() if name != key}
        if kind == 1:
            return {**tree, script.take(4).decode("latin1"): tree[key]}
        if kind == 2:
            return {**tree, key: tree[script.pick(list(tree))]}
        return {**tree, key: edit_json(script, tree[key])}
    if isinstance(tree, list) and tree and script.number(7):
        at, kind = script.number(len(tree) - 1), script.number(7)
        if kind == 0:
            return [*tree[:at], *tree[at + 1 :]]
        if kind == 1:
            return [*tree[:at], tree[at], *tree[at:]]
        return [*tree[:at], edit_json(script, tree[at]), *tree[at + 1 :]]
    kind = script.number(9)
    if kind == 0 or (isinstance(tree, int) and kind < 7):
        known = [tree] if type(tree) is int else []
        return script.any_number(known, 64) - script.pick([0, 0, 1 << 63, 1 << 64])
    if isinstance(tree, str) and kind < 7:
        changed = bytearray(tree.encode())
        edit_bytes(script, changed)
        return changed.decode(errors="replace")
    return script.pick([None, True, False, 0, 1, -1, 0.5, "", "a", [], {}, [tree], {"a": tree}, 1e300, "9", 1 << 70])
