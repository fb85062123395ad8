"""Reads regular expressions of Rust's ``regex`` crate, which Polars uses, as far as an automaton can hold them.

Sets of characters are not read here: Polars says which characters of a column they have, so that their meaning is its
own (nested classes, Unicode properties, case).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

MAX_NODES = 3000
"""Maximum nodes of an automaton; repetitions are copied."""

WORD, NOT_WORD, TEXT_START, TEXT_END, LINE_START, LINE_END = "bBAz^$"
"""Assertions."""

_REPEAT = re.compile(r"\{(\d{1,4})(,(\d{1,4})?)?\}")
_ESCAPE = re.compile(r"\\(?:[pP](?:\{[^{}]*\}|\w)|x(?:\{[0-9A-Fa-f]+\}|[0-9A-Fa-f]{2})|[dDwWsSnrtfva]|[!-/:-@\[-`{-~])")
_GROUP = re.compile(r"\((?:\?(?:P?<\w+>|(?P<flags>[ims]*(?:-[ims]+)?)(?P<ends>[:)])))?")
_POSIX = re.compile(r"\[:\^?[a-z]+:\]")
_PLAIN = re.compile(
    r"(?:\(\?[im]\))?"
    r"(?:[^\\+*?()|\[\]{}]"
    r"|\\[dDwWsSbB.\[\](){}|+*?^$/\"-]|\[\^?(?:0-9|a-f|a-z|A-F|A-Z|[\w .,:/]|\\[dws\"\].])+\]"
    r"|\((?!\?)|[)|+*?]|(?<![)}])\{\d\})*"
)
MAX_PLAIN = 48
"""Maximum length of a pattern that is known to be valid: longer ones may be too large for Polars."""


class Unsupported(Exception):  # noqa: N818 (no error: Polars takes the pattern)
    """The pattern has something that the automaton lacks."""


@dataclass
class Nodes:
    """A nondeterministic automaton (Thompson, CACM 1968): node 0 is the match, numbers ascend."""

    sets: list[str | None] = field(default_factory=lambda: [None])
    """By node: the set of characters that it reads, as a pattern; None if it reads none."""
    assertions: list[str | None] = field(default_factory=lambda: [None])
    """By node: the assertion that must hold to pass it, if any."""
    onward: list[list[int]] = field(default_factory=lambda: [[]])
    """By node: the next nodes, preferred ones first."""
    start: int = 0

    def add(self, onward: list[int], reads: str | None = None, assertion: str | None = None) -> int:
        """Add a node; return its number."""
        if len(self.sets) >= MAX_NODES:
            raise Unsupported
        self.sets.append(reads)
        self.assertions.append(assertion)
        self.onward.append(onward)
        return len(self.sets) - 1


@dataclass(frozen=True)
class _Set:
    pattern: str


@dataclass(frozen=True)
class _Assertion:
    kind: str


@dataclass(frozen=True)
class _Repeat:
    inside: object
    least: int
    most: int | None
    is_lazy: bool


@dataclass(frozen=True)
class _Sequence:
    parts: tuple[object, ...]


@dataclass(frozen=True)
class _Choice:
    parts: tuple[object, ...]


def is_plain(pattern: str) -> bool:
    """Whether a pattern has only signs that are valid anywhere, so that Polars can read it if it can be read here."""
    return len(pattern) <= MAX_PLAIN and _PLAIN.fullmatch(pattern) is not None


@lru_cache(maxsize=64)
def read_pattern(pattern: str) -> Nodes:
    """Read a valid pattern; the nodes are not to be changed.

    Raises
    ------
    Unsupported
        The pattern has something that is not read here, or too many nodes.

    """
    reader = _Reader(pattern)
    tree = reader.choice(frozenset())
    if reader.at < len(pattern):
        raise Unsupported
    nodes = Nodes()
    try:
        nodes.start = _build(tree, 0, nodes)
    except RecursionError:
        raise Unsupported from None
    return nodes


class _Reader:
    def __init__(self, pattern: str) -> None:
        self.pattern, self.at, self.depth = pattern, 0, 0

    def choice(self, flags: frozenset[str]) -> object:
        """Read alternatives, up to the end or a closing parenthesis."""
        self.depth += 1
        if self.depth > 50:
            raise Unsupported
        parts: list[object] = []
        own: list[object] = []
        while self.at < len(self.pattern):
            sign = self.pattern[self.at]
            if sign == ")":
                break
            if sign == "|":
                self.at += 1
                parts.append(_Sequence(tuple(own)))
                own = []
            elif sign == "(":
                found = _GROUP.match(self.pattern, self.at)
                if found is None or (self.pattern.startswith("(?", self.at) and found.end() == self.at + 1):
                    raise Unsupported
                self.at = found.end()
                given = found["flags"]
                inner = flags
                if given is not None:
                    on, _, off = given.partition("-")
                    inner = (flags | set(on)) - set(off)
                if found["ends"] == ")":
                    flags = inner  # for the rest of this group
                    continue
                inside = self.choice(inner)
                if self.at >= len(self.pattern):
                    raise Unsupported
                self.at += 1
                own.append(self._repeated(inside))
            else:
                own.append(self._repeated(self._atom(sign, flags)))
        self.depth -= 1
        parts.append(_Sequence(tuple(own)))
        return _Choice(tuple(parts)) if len(parts) > 1 else parts[0]

    def _repeated(self, inside: object) -> object:
        while self.at < len(self.pattern) and self.pattern[self.at] in "*+?{":
            sign = self.pattern[self.at]
            most: int | None
            if sign == "{":
                found = _REPEAT.match(self.pattern, self.at)
                if found is None:
                    raise Unsupported
                least = int(found[1])
                most = least if found[2] is None else None if found[3] is None else int(found[3])
                self.at = found.end()
            else:
                least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
                self.at += 1
            is_lazy = self.pattern.startswith("?", self.at)
            self.at += is_lazy
            inside = _Repeat(inside, least, most, is_lazy)
        return inside

    def _atom(self, sign: str, flags: frozenset[str]) -> object:
        start = self.at
        if sign in "*+?{":
            raise Unsupported
        if sign in "^$":
            self.at += 1
            if "m" in flags:
                return _Assertion(LINE_START if sign == "^" else LINE_END)
            return _Assertion(TEXT_START if sign == "^" else TEXT_END)
        if sign == "\\":
            following = self.pattern[start + 1 : start + 3]
            if following[:1] in (WORD, NOT_WORD, TEXT_START, TEXT_END):
                if following == "b{":
                    raise Unsupported
                self.at += 2
                return _Assertion(following[0])
            found = _ESCAPE.match(self.pattern, start)
            if found is None or found[0] in (r"\<", r"\>"):
                raise Unsupported
            self.at = found.end()
        elif sign == "[":
            self._skip_class()
        else:
            self.at += 1
        set_flags = "".join(sorted(flags & {"i", "s"}))
        own = self.pattern[start : self.at]
        return _Set(f"(?{set_flags}:{own})" if set_flags else own)

    def _skip_class(self) -> None:
        """Move behind a class; classes inside it other than ``[:alpha:]`` and its kind are unsupported."""
        self.at += 1
        if self.pattern.startswith("^", self.at):
            self.at += 1
        while self.pattern.startswith("-", self.at):
            self.at += 1
        if self.pattern.startswith("]", self.at):
            self.at += 1
        while True:
            sign = self.pattern[self.at : self.at + 1]
            if sign == "[":
                found = _POSIX.match(self.pattern, self.at)
                if found is None:
                    raise Unsupported
                self.at = found.end()
                continue
            self.at += 2 if sign == "\\" else 1
            if sign == "]":
                return
            if sign == "":
                raise Unsupported


def _build(tree: object, onward: int, nodes: Nodes) -> int:
    """Add the nodes of a part that continues at a node; return its first node."""
    if isinstance(tree, _Set):
        return nodes.add([onward], reads=tree.pattern)
    if isinstance(tree, _Assertion):
        return nodes.add([onward], assertion=tree.kind)
    if isinstance(tree, _Sequence):
        for part in reversed(tree.parts):
            onward = _build(part, onward, nodes)
        return onward
    if isinstance(tree, _Choice):
        return nodes.add([_build(part, onward, nodes) for part in tree.parts])
    assert isinstance(tree, _Repeat)
    if tree.most is None:
        loop = nodes.add([])
        again = _build(tree.inside, loop, nodes)
        nodes.onward[loop] = [onward, again] if tree.is_lazy else [again, onward]
        if _may_be_empty(tree.inside):
            raise Unsupported
        onward = loop
    else:
        end = onward
        for _ in range(tree.most - tree.least):
            inside = _build(tree.inside, onward, nodes)
            onward = nodes.add([end, inside] if tree.is_lazy else [inside, end])
    for _ in range(tree.least):
        onward = _build(tree.inside, onward, nodes)
    return onward


def _may_be_empty(tree: object) -> bool:
    if isinstance(tree, _Set):
        return False
    if isinstance(tree, _Sequence):
        return all(_may_be_empty(part) for part in tree.parts)
    if isinstance(tree, _Choice):
        return any(_may_be_empty(part) for part in tree.parts)
    return not isinstance(tree, _Repeat) or tree.least == 0 or _may_be_empty(tree.inside)
