"""Reads queries by their shape: ``+w "w" -w`` is parsed once, as a program, whatever its words are.

Most queries with syntax have few parts, so their shapes recur. A shape is the text between the words; the parser reads
it with placeholders for the words, so it has the parser's meaning.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from polars_tadoc.index.collection import Collection
from polars_tadoc.index.language.evaluate import All, Except, Leaf, Resolved, Some, leaves, scored
from polars_tadoc.index.language.parse import OPERATORS, parse, with_letters
from polars_tadoc.index.language.tree import And, Fuzzy, Node, Not, Or, Pattern, Phrase, Sequence, Word
from polars_tadoc.index.query.trees import ALL, ANY, BY_MODE, Resolver
from polars_tadoc.kernels.host.rows.query_shapes import A_PHRASE, A_WORD
from polars_tadoc.kernels.search import programs
from polars_tadoc.runtime.array_types import Int64

MAX_WORDS = 32
"""Queries of more words and phrases are parsed each."""

_SPLIT = re.compile(r'("[^"]*"|(?<![^\s()"+\-])(?!(?:AND|OR|NOT)(?![^\s()"]))[^\s()"*?~^+\-][^\s()"*?~^]*)').split
"""Cuts a query into words and phrases, and the text between them."""


class Shape(NamedTuple):
    """The meaning of a query, for any words."""

    join: int | None
    """How words are joined, if the query is no more: ``BY_MODE``, ``ANY`` or ``ALL``."""
    program: Int64
    """int64, as :mod:`polars_tadoc.kernels.search.programs` defines it."""
    bare: tuple[int, ...]
    """The words that must be letters, digits and ``_`` for the query to have this shape."""
    spells: bool
    """Whether words are looked up by their spelling."""
    phrases: int
    """Number of phrases."""
    ends: Int64
    """int64: 0 and the length of the program."""


def shape_of(text: str, fields: tuple[str, ...], requires: bool) -> tuple[list[str], Shape] | None:
    """Return the words and phrases of a query and its shape; None for queries that the parser must read.

    With ``requires``, words side by side are all required.
    """
    if "NEAR/" in text or "\n" in text or (fields and ":" in text):
        return None
    parts = _SPLIT(text)
    words = parts[1::2]
    if not words or len(words) > MAX_WORDS or (text.isupper() and any(map(str.isupper, words))):
        return None
    kinds = tuple([word[0] == '"' for word in words]) if '"' in text else ()
    shape = _shape(tuple(parts[::2]), kinds, requires)
    if shape is None:
        return None
    for place in shape.bare:
        if not with_letters(words[place]).replace("_", "a").isalnum():
            return None
    return words, shape


def outline_of(text: str, requires: bool) -> tuple[bytes, Int64]:
    """Return an ASCII text without its words, as :mod:`.query_shapes` writes it, and its program.

    The program is empty if the shape has none.
    """
    parts = _SPLIT(text)
    words = parts[1::2]
    kinds = tuple([word[0] == '"' for word in words])
    outline = [chr(A_PHRASE if kind else A_WORD) for kind in kinds]
    spelled = "".join(part + word for part, word in zip(parts[::2], [*outline, ""], strict=True)).encode()
    shape = _shape(tuple(parts[::2]), kinds if True in kinds else (), requires) if len(words) <= MAX_WORDS else None
    return spelled, _NO_PROGRAM if shape is None else shape.program


def with_split_words(index: Collection, text: str, shape: Shape) -> str | None:
    """Write words that are cut into several as ``(a AND b)``, which means the same; None if that can't be done."""
    analyzer, parts = index.analyzer, _SPLIT(text)
    if analyzer.morphism is not None and not analyzer.morphism.is_of_characters:
        return None
    words = parts[1::2]
    analyzed = analyzer.analyze(words)
    strings, numbers, offsets = analyzed.strings(), analyzed.words.tolist(), analyzed.offsets.tolist()
    for place, kind in enumerate(shape.program[4 : 4 + 2 * len(words) : 2].tolist()):
        own = [strings[number] for number in numbers[offsets[place] : offsets[place + 1]]]
        if kind == programs.WORD and len(own) > 1:
            if not all(map(str.isalnum, own)) or any(word in OPERATORS for word in own):
                return None
            parts[2 * place + 1] = f"({' AND '.join(own)})"
    made = "".join(parts)
    return None if made == text else made


class _OtherShapeError(Exception):
    """A query that has no program."""


class _Resolver(Resolver):
    """Numbers words and phrases in the order of the text."""

    def __init__(self, requires: bool) -> None:
        self._requires = requires
        self.kinds: dict[int, tuple[int, int]] = {}

    def resolve(self, node: Node, factor: float = 1.0, is_loose: bool = True, field: str = "") -> Resolved | None:
        if isinstance(node, And | Or | Not | Sequence):
            return super().resolve(node, factor, is_loose)
        if isinstance(node, Word):
            return self._made(node.text, programs.ANY_WORD if is_loose and not self._requires else programs.WORD)
        if isinstance(node, Phrase):
            return self._made(node.text, programs.PHRASE, node.slop)
        if isinstance(node, Fuzzy):
            return self._made(node.text, programs.FUZZY, -1 if node.edits is None else node.edits)
        if isinstance(node, Pattern) and node.text.endswith("*"):
            return self._made(node.text[:-1], programs.PREFIX)
        raise _OtherShapeError

    def _made(self, text: str, kind: int, argument: int = 0) -> Leaf:
        found = _STAND_IN.fullmatch(text)
        if not found:
            raise _OtherShapeError
        self.kinds[int(found[1])] = kind, argument
        return Leaf(int(found[1]), 1.0)


_STAND_IN = re.compile(r"w(\d+)")


@lru_cache(maxsize=1024)
def _shape(between: tuple[str, ...], kinds: tuple[bool, ...], requires: bool) -> Shape | None:
    quotes = [('"' if kind else "") for kind in kinds] or [""] * (len(between) - 1)
    stand_ins = [f"{quote}w{number}{quote}" for number, quote in enumerate(quotes)]
    tree = parse("".join(part + word for part, word in zip(between, [*stand_ins, ""], strict=True)))
    resolver = _Resolver(requires)
    try:
        node = resolver.resolve(tree)
        if node is None or sorted(resolver.kinds) != [*range(len(quotes))]:
            return None
        own = [resolver.kinds[number] for number in range(len(quotes))]
        program = _Compiler(own).program(node)
    except _OtherShapeError:
        return None
    bare = [number for number, (kind, _) in enumerate(own) if kind in (programs.PREFIX, programs.FUZZY)]
    phrases = sum(kind == programs.PHRASE for kind, _ in own)
    spells = any(kind == programs.FUZZY for kind, _ in own)
    return Shape(_join(tree), program, tuple(bare), spells, phrases, np.array([0, len(program)]))


def _join(tree: Node) -> int | None:
    """Return how the words of a query are joined if it is no more than words."""
    parts, join = joined(tree)
    return join if all(isinstance(part, Word) for part in parts) else None


def joined(tree: Node) -> tuple[tuple[Node, ...], int]:
    """Return the parts of a query that are joined in one way, and the way."""
    if isinstance(tree, Sequence):
        modifiers = {modifier for modifier, _ in tree.clauses}
        if modifiers <= {""} or modifiers == {"+"}:
            return tuple(part for _, part in tree.clauses), ALL if "+" in modifiers else BY_MODE
    if isinstance(tree, And | Or):
        return tree.nodes, ALL if isinstance(tree, And) else ANY
    return (tree,), BY_MODE


class _Compiler:
    """Makes the program of a query."""

    def __init__(self, kinds: list[tuple[int, int]]) -> None:
        self._kinds = kinds
        self._code: list[int] = []
        self._slots: dict[int, int] = {}
        self._depth = 0

    def program(self, node: Resolved) -> Int64:
        """Return the program of a whole query."""
        required = node.required if isinstance(node, All) else (node,)
        for part in required:
            if isinstance(node, All):
                self._take_all(part)
            self._add(part, True)
            self._emit(programs.NARROW)
        if isinstance(node, All):
            self._add_optional(node)
        parts = list(scored(node))
        parts.sort(key=lambda part: bool(part[1]))  # those that always count come first; sorting is stable
        root = id(node) if isinstance(node, All) else None
        entries = [(leaf.item, self._slot([key for key in keys if key != root])) for leaf, keys in parts]
        form = programs.TREE
        if leaves(node):
            form = programs.REQUIRES_ALL if isinstance(node, All) else programs.REQUIRES_ANY
        expands = any(kind in (programs.ANY_WORD, programs.PREFIX, programs.FUZZY) for kind, _ in self._kinds)
        if form == programs.REQUIRES_ALL and expands:
            form = programs.TREE
        head = [form, len(self._kinds), len(entries), len(self._code)]
        numbers = [*head, *(own for kind in self._kinds for own in kind), *(own for entry in entries for own in entry)]
        return np.array([*numbers, *self._code], np.int64)

    def _take_all(self, node: Resolved) -> None:
        """Allow a text that is cut into several words, which must all match."""
        if isinstance(node, Leaf) and self._kinds[node.item] == (programs.WORD, 0):
            self._kinds[node.item] = programs.ALL_WORDS, 0

    def _slot(self, keys: list[int]) -> int:
        """Return the slot of the innermost part; it was cut down to the outer ones."""
        return self._slots[keys[-1]] if keys else -1

    def _emit(self, operation: int, argument: int = 0) -> None:
        self._code.append(operation | argument << programs.ARGUMENT_BITS)
        if operation == programs.PUSH:
            self._depth += 1
        elif operation in (programs.AND, programs.OR, programs.POP, programs.NARROW):
            self._depth -= 1
        if self._depth > programs.MAX_DEPTH:
            raise _OtherShapeError

    def _add(self, node: Resolved, counts: bool) -> None:
        """Add the code that pushes the documents of a part; ``counts`` tells whether it may add to scores."""
        if isinstance(node, Leaf):
            self._emit(programs.PUSH, node.item)
        elif isinstance(node, Except):
            self._take_all(node.node)
            self._add(node.node, False)
            self._emit(programs.NOT)
        elif isinstance(node, Some):
            self._add_joined(node.nodes, programs.OR, counts)
        elif isinstance(node, All):
            first = len(self._slots)
            for part in node.required:
                self._take_all(part)
            self._add_joined(node.required, programs.AND, counts)
            if counts:
                self._add_optional(node)
                for slot in range(first, len(self._slots)):
                    self._emit(programs.MASK, slot)
                if len(self._slots) == programs.MAX_SLOTS:
                    raise _OtherShapeError
                self._slots[id(node)] = len(self._slots)
                self._emit(programs.SAVE, self._slots[id(node)])
        else:
            raise _OtherShapeError

    def _add_joined(self, nodes: tuple[Resolved, ...], operation: int, counts: bool) -> None:
        if not nodes:
            raise _OtherShapeError
        for place, part in enumerate(nodes):
            self._add(part, counts)
            if place:
                self._emit(operation)

    def _add_optional(self, node: All) -> None:
        """Evaluate optional parts of which something counts only where the rest of the part matches."""
        for part in node.optional:
            code, slots = len(self._code), len(self._slots)
            self._add(part, True)
            self._emit(programs.POP)
            if len(self._slots) == slots:
                del self._code[code:]


_NO_PROGRAM: Int64 = np.zeros(0, np.int64)
_any_word = _Compiler([(programs.ANY_WORD, 0)]).program(Leaf(0, 1.0))
ANY_WORDS: Final = Shape(None, _any_word, (), False, 0, np.array([0, len(_any_word)]))
"""The shape of a text that is one query of words, of which any may be found."""
