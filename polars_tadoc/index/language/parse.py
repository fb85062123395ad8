"""Reads a query as a tree: a tokenizer, then one function per level of precedence.

From loose to tight: parts side by side, ``OR``, ``AND``, then ``NOT``, ``+`` and ``-``, then ``NEAR``. What can't be
read as syntax is text; with ``strict`` it raises. Calls are nested at most ``MAX_DEPTH`` deep.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Final, NamedTuple
from unicodedata import category

from polars_tadoc.errors import QuerySyntaxError
from polars_tadoc.index.language.tree import (
    And,
    Boost,
    Field,
    Fuzzy,
    Modifier,
    Near,
    Node,
    Not,
    Or,
    Pattern,
    Phrase,
    Range,
    Sequence,
    Word,
)

MAX_DEPTH: Final = 30
"""Nested parentheses; deeper ones are text."""

MAX_PATTERN: Final = 100
"""Characters of a word with wildcards or ``~``; longer ones are text."""

SYNTAX: Final = (
    r'"|[~^]\d|\w~|(?:^|[\s(])[+\-][^\s+\-]|\w\*|\*\w|\w\?+\w|(?:^|\s)\?+\w|\b(?:AND|OR|NOT)\b|\bNEAR/\d|\w:[^\s]'
)
"""Finds every query that may have syntax, and few others; in Python and in Polars."""

OPERATORS: Final = ("AND", "OR", "NOT")
_ENDS: Final = r"(?=[\s)\"]|$)"
_BOUNDARY: Final = re.compile(r'[\s()"]')
_NUMBER: Final = r"\d{1,4}(?:\.\d{1,4})?"
_AFTER_PHRASE: Final = re.compile(rf"(?:~(\d{{1,4}}))?(?:\^({_NUMBER}))?{_ENDS}")
_AFTER_GROUP: Final = re.compile(rf"\^({_NUMBER}){_ENDS}")
_FACTOR: Final = re.compile(rf"(?s)(.+)\^({_NUMBER})")
_EDITS: Final = re.compile(r"(?s)(.*\w)~(\d?)(\.\d+)?")
_NEAR: Final = re.compile(r"NEAR/(\d{1,4})")
_FIELD: Final = re.compile(r'(\w[^\s:"()]*):(?=\S)')
_BETWEEN: Final = re.compile(rf"([\[{{])\s*([^\s\]}}]+)\s+TO\s+([^\s\]}}]+)\s*([\]}}]){_ENDS}")
_COMPARED: Final = re.compile(rf'([<>]=?)([^\s()"]+){_ENDS}')
_PIECES: Final = re.compile(r"[\w*?]+")
_GROUPING: Final = re.compile(r'[()"]')
_EMPTY: Final = re.compile(r'(?:""\s*)+(?="")')
"""Empty phrases before another one: they add nothing to it."""


def with_letters(text: str) -> str:
    """Replace combining marks, such as the vowel signs of Indic scripts, by letters: they are parts of words."""
    if text.isascii() or not any(map(combines, text)):
        return text
    return "".join("a" if combines(character) else character for character in text)


def combines(character: str) -> bool:
    """Tell whether a character is a combining mark."""
    return not character.isalnum() and category(character)[0] == "M"


class _Token(NamedTuple):
    kind: str
    """An operator, "(", ")", "+", "-", "field", or "part"."""
    start: int
    text: str
    node: Node | None = None
    number: float = 0.0
    """Of ``NEAR``: the distance; of ")": the factor of the group."""


def may_have_syntax(text: str) -> bool:
    """Tell whether a query may be more than words."""
    return _FINDS(with_letters(text)) is not None


def parse(text: str, fields: Collection[str] = (), strict: bool = False) -> Node:
    """Read a query.

    Parameters
    ----------
    text
        The query.
    fields
        Names before a colon that are fields.
    strict
        Whether text that looks like syntax and can't be read raises.

    Raises
    ------
    QuerySyntaxError
        With ``strict``: the query can't be read.

    Examples
    --------
    >>> from polars_tadoc.index.language.parse import parse
    >>> parse("disk OR full AND -memory")
    Or(nodes=(Word(text='disk'), And(nodes=(Word(text='full'), Not(node=Word(text='memory'))))))
    >>> parse('disk "full')
    Sequence(clauses=(('', Word(text='disk')), ('', Word(text='"full'))))

    """
    return _Parser(_Tokens(text, fields, strict).tokens, text, strict).query()


class _Tokens:
    """Cuts a query into tokens."""

    def __init__(self, text: str, fields: Collection[str], strict: bool) -> None:
        self.text, self.fields, self.strict = text, fields, strict
        self.tokens: list[_Token] = []
        self._quotes = self._pair_quotes()
        self._parens = self._pair_parentheses()
        at = 0
        while at < len(text):
            at = at + 1 if text[at].isspace() else self._take(at)
        if not strict and self._is_all_capitals():
            self.tokens = [
                one._replace(kind="part", node=Word(one.text)) if one.kind in OPERATORS else one for one in self.tokens
            ]

    def _odd(self, at: int, why: str) -> None:
        if self.strict:
            raise QuerySyntaxError.for_query(self.text, at, why)

    def _pair_quotes(self) -> dict[int, int]:
        """Return the end of each quoted part by its start."""
        places = [match.start() for match in re.finditer('"', self.text)]
        if len(places) % 2:
            self._odd(places[-1], "this quote is not closed")
        return dict(zip(places[::2], places[1::2], strict=False))

    def _pair_parentheses(self) -> set[int]:
        """Return the positions of parentheses that group."""
        text, opened, found, quoted = self.text, list[int](), set[int](), -1
        for match in _GROUPING.finditer(text):
            at = match.start()
            if at <= quoted:
                continue
            quoted = self._quotes.get(at, -1)
            if text[at] == "(":
                opened.append(at)
            elif text[at] == ")" and not opened:
                self._odd(at, "this parenthesis closes nothing")
            elif text[at] == ")":
                start, after = opened.pop(), text[at + 1 : at + 2]
                begins = start == 0 or text[start - 1].isspace() or text[start - 1] in "(+-:"
                if begins and len(opened) < MAX_DEPTH and (not after or after.isspace() or after in ")^"):
                    found |= {start, at}
        if opened:
            self._odd(opened[-1], "this parenthesis is not closed")
        return found

    def _take(self, at: int) -> int:
        """Add the token at a position; return the position after it."""
        text, before = self.text, self.tokens[-1] if self.tokens else None
        is_first = at == 0 or text[at - 1].isspace() or (before is not None and before.kind in ("(", "+", "-", "field"))
        if at in self._quotes:
            return self._take_phrase(at)
        if at in self._parens:
            found = _AFTER_GROUP.match(text, at + 1) if text[at] == ")" else None
            self.tokens.append(_Token(text[at], at, text[at], None, float(found[1]) if found else 1.0))
            return found.end() if found else at + 1
        after = text[at + 1 : at + 2]
        if is_first and text[at] in "+-" and after and not after.isspace() and after not in "+-)":
            self.tokens.append(_Token(text[at], at, text[at]))
            return at + 1
        if before is not None and before.kind == "field" and (stop := self._take_range(at)):
            return stop
        if is_first and (before is None or before.kind != "field") and (found := _FIELD.match(text, at)):
            if found[1] in self.fields:
                self.tokens.append(_Token("field", at, found[1]))
                return found.end()
            self._odd(at, f'there is no field "{found[1]}"; put the text in quotes if it is none')
        return self._take_word(at)

    def _take_phrase(self, at: int) -> int:
        if others := _EMPTY.match(self.text, at):
            return others.end()
        stop = self._quotes[at]
        found = _AFTER_PHRASE.match(self.text, stop + 1)
        node: Node = Phrase(self.text[at + 1 : stop], int(found[1] or 0) if found else 0)
        if found and found[2]:
            node = Boost(node, float(found[2]))
        end = found.end() if found else stop + 1
        self.tokens.append(_Token("part", at, self.text[at:end], node))
        return end

    def _take_range(self, at: int) -> int:
        """Add a range; return 0 if there is none."""
        if found := _BETWEEN.match(self.text, at):
            opens, low, high, closes = found.groups()
        elif found := _COMPARED.match(self.text, at):
            sign, bound = found.groups()
            opens, closes = "[" if sign == ">=" else "{", "]" if sign == "<=" else "}"
            low, high = (bound, "*") if sign[0] == ">" else ("*", bound)
        else:
            return 0
        bounds = ["" if bound == "*" else bound for bound in (low, high)]
        node = Range(bounds[0], bounds[1], opens == "[", closes == "]", found[0])
        self.tokens.append(_Token("part", at, found[0], node))
        return found.end()

    def _take_word(self, at: int) -> int:
        stop = at + 1
        while found := _BOUNDARY.search(self.text, stop):
            stop = found.start()
            if found[0].isspace() or stop in self._quotes or stop in self._parens:
                break
            stop += 1
        else:
            stop = len(self.text)
        word = self.text[at:stop]
        if word in OPERATORS:
            self.tokens.append(_Token(word, at, word))
        elif found := _NEAR.fullmatch(word):
            self.tokens.append(_Token("NEAR", at, word, None, float(found[1])))
        else:
            self.tokens.append(_Token("part", at, word, self._word(at, word)))
        return stop

    def _word(self, at: int, text: str) -> Node:
        """Read a word with its marks."""
        if found := _FACTOR.fullmatch(text):
            return Boost(self._word(at, found[1]), float(found[2])) if "^" not in found[1] else Word(text)
        if len(text) > MAX_PATTERN and set(text) & set("*?~"):
            self._odd(at, f"a word with wildcards or ~ has more than {MAX_PATTERN} characters")
            return Word(text)
        plain = with_letters(text)
        if found := _EDITS.fullmatch(plain):
            return Fuzzy(text[: found.end(1)], min(int(found[2]), 2) if found[2] and not found[3] else None)
        if "^" in text or "~" in text:
            self._odd(at, "a number is missing after ^ or ~, or it is too large")
        bare = text if self.strict else text.rstrip("?")
        if "*" not in bare and "?" not in bare:
            return Word(text)
        parts: list[Node] = []
        for found in _PIECES.finditer(plain, 0, len(bare)):
            piece = bare[found.start() : found.end()]
            if piece.strip("*?"):
                parts.append(Pattern(piece) if "*" in piece or "?" in piece else Word(piece))
            else:
                self._odd(at, "a wildcard has no word")
        return (And(tuple(parts)) if len(parts) > 1 else parts[0]) if parts else Word(text)

    def _is_all_capitals(self) -> bool:
        """Tell whether all words beside operators are written in capitals."""
        others = " ".join(one.text for one in self.tokens if one.kind not in (*OPERATORS, "NEAR"))
        return others.isupper()


class _Parser:
    """Makes a tree of tokens."""

    def __init__(self, tokens: list[_Token], text: str, strict: bool) -> None:
        self._tokens, self._text, self._strict = tokens, text, strict
        self._at = 0

    def query(self) -> Node:
        return self._sequence()

    def _kind(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._tokens[at].kind if at < len(self._tokens) else ")"

    def _begins(self, ahead: int) -> bool:
        """Tell whether an operand begins at a token."""
        return self._kind(ahead) not in ("AND", "OR", "NEAR", ")")

    def _odd(self, why: str) -> None:
        if self._strict:
            at = self._tokens[self._at].start if self._at < len(self._tokens) else len(self._text)
            raise QuerySyntaxError.for_query(self._text, at, why)

    def _sequence(self) -> Node:
        """Read parts side by side, up to a closing parenthesis or the end."""
        clauses: list[tuple[Modifier, Node]] = []
        while (kind := self._kind()) != ")":
            if kind == "part" and self._kind(1) in ("part", "(", ")"):  # no operator is near
                clauses.append(("", self._operand()))
            else:
                clauses.append(self._or())
        if not clauses and self._text:
            self._odd("there is nothing to search for")
        return clauses[0][1] if len(clauses) == 1 and clauses[0][0] == "" else Sequence(tuple(clauses))

    def _or(self) -> tuple[Modifier, Node]:
        return self._joined("OR", Or, self._and)

    def _and(self) -> tuple[Modifier, Node]:
        return self._joined("AND", And, self._modified)

    def _joined(
        self, word: str, made: Callable[[tuple[Node, ...]], Node], part: Callable[[], tuple[Modifier, Node]]
    ) -> tuple[Modifier, Node]:
        """Read parts that a word joins; a single one is itself."""
        nodes = [part()]
        while self._kind() == word and self._begins(1):
            self._at += 1
            nodes.append(part())
        return nodes[0] if len(nodes) == 1 else ("", made(tuple(map(_plain, nodes))))

    def _modified(self) -> tuple[Modifier, Node]:
        modifier: Modifier = ""
        while (kind := self._kind()) in ("+", "-") or (kind == "NOT" and self._begins(1)):
            is_excluded = (modifier == "-") != (kind != "+")
            modifier = "-" if is_excluded else "+" if kind == "+" or modifier == "+" else ""
            self._at += 1
        return modifier, self._near()

    def _near(self) -> Node:
        node, words, distance = self._operand(), list[str](), 0
        while self._kind() == "NEAR" and self._kind(1) == "part":
            other = self._tokens[self._at + 1].node
            if not isinstance(node, Word) or not isinstance(other, Word):
                self._odd("NEAR joins words only")
                break
            words.append(other.text)
            distance = max(distance, int(self._tokens[self._at].number))
            self._at += 2
        return Near((node.text, *words), distance) if words and isinstance(node, Word) else node

    def _operand(self) -> Node:
        """Read a part, a group or a field; an operator here is a word."""
        if self._at == len(self._tokens) or self._kind() == ")":
            return Word("")
        token = self._tokens[self._at]
        if token.kind in (*OPERATORS, "NEAR"):
            self._odd(f"{token.text} needs something on both sides" if token.kind != "NOT" else "NOT needs a part")
        self._at += 1
        if token.kind == "field":
            return Field(token.text, self._operand())
        if token.kind != "(":
            return token.node or Word(token.text)
        node = self._sequence()
        factor = self._tokens[self._at].number
        self._at += 1
        return node if factor == 1.0 else Boost(node, factor)


def _plain(clause: tuple[Modifier, Node]) -> Node:
    modifier, node = clause
    return Not(node) if modifier == "-" else node


_FINDS = re.compile(SYNTAX).search
