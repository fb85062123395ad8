"""Adjacent ideographs of a query as phrases, for indexes with ``analyzer="cjk"``."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from polars_tadoc.index.language.tree import And, Boost, Field, Node, Not, Or, Phrase, Sequence, Word
from polars_tadoc.kernels.tokenize.unicode_ranges import MARK, SINGLE


def joins_ideographs(text: str) -> bool:
    """Tell whether a text has adjacent ideographs (Han or kana)."""
    return not text.isascii() and run_of_ideographs().search(text) is not None


def ideographs_joined(node: Node, is_loose: bool = True) -> Node:
    """Make phrases of adjacent ideographs in the words of a tree.

    The other parts of such a word are words of their own. All must match where the word is an operand; in a word that
    ``is_loose`` they are joined as the search's mode says.

    Examples
    --------
    >>> from polars_tadoc.index.language.ideographs import ideographs_joined
    >>> from polars_tadoc.index.language.tree import Word
    >>> ideographs_joined(Word("明月 a"))
    Sequence(clauses=(('', Phrase(text='明月', slop=0)), ('', Word(text=' a'))))

    """
    if isinstance(node, Word):
        return _split(node, is_loose)
    if isinstance(node, Field):  # a value of the metadata stays whole
        inner = ideographs_joined(node.node, is_loose)
        return replace(node, node=inner) if isinstance(inner, Phrase) else node
    if isinstance(node, Boost):
        return replace(node, node=ideographs_joined(node.node, is_loose))
    if isinstance(node, Not):
        return replace(node, node=ideographs_joined(node.node, False))
    if isinstance(node, And | Or):
        return replace(node, nodes=tuple(ideographs_joined(part, False) for part in node.nodes))
    if isinstance(node, Sequence):
        return Sequence(tuple((own, ideographs_joined(part, own == "")) for own, part in node.clauses))
    return node


def _split(word: Word, is_loose: bool) -> Node:
    parts: list[Node] = []
    at = 0
    for found in run_of_ideographs().finditer(word.text):
        parts += [Word(word.text[at : found.start()])] * (found.start() > at) + [Phrase(found[0])]
        at = found.end()
    if not parts:
        return word
    parts += [Word(word.text[at:])] * (at < len(word.text))
    if len(parts) == 1:
        return parts[0]
    return Sequence(tuple(("", part) for part in parts)) if is_loose else And(tuple(parts))


@cache
def run_of_ideographs() -> re.Pattern[str]:
    """Return the pattern of two or more adjacent ideographs, in a form that Polars reads, too."""
    return re.compile(f"(?:[{_ranges(SINGLE)}][{_ranges(MARK)}]*){{2,}}")


def _ranges(written: str) -> str:
    parts = (item.partition("-") for item in written.split())
    return "".join(f"{chr(int(first, 16))}-{chr(int(last or first, 16))}" for first, _, last in parts)
