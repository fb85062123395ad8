"""Parses twigs from XPath: names, ``*`` and attributes, linked by ``/`` and ``//``, with predicates of such paths.

The grammar, in the notation of XPath 1.0; tokens may be separated by white space::

    Twig       ::= ('/' | '//') Path
    Path       ::= Element (('/' | '//') Element)* (('/' | '//') '@' QName)?  |  '@' QName
    Element    ::= (QName | '*') ('[' Predicate ']')*
    Predicate  ::= ('.' '/' | '.' '//')? Path  |  Comparison
    Comparison ::= ('.' '/' | '.' '//')? (Element ('/' | '//'))* ('@' QName | 'text' '(' ')') '=' Literal
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from polars_tadoc.errors import InvalidTwigError
from polars_tadoc.twig import unsupported_xpath
from polars_tadoc.twig.tokens import Token, positions_of, tokens_of
from polars_tadoc.twig.twig import NO_PARENT, NodeTest, Twig, canonical_twig
from polars_tadoc.twig.unsupported_xpath import Refusal

_ANY = NodeTest("any")


def parse(xpath: str, namespaces: Mapping[str, str], name: str | None = None) -> Twig:
    """Parse a twig.

    Parameters
    ----------
    xpath
        The query, of any length and depth.
    namespaces
        Namespace by prefix; as in XPath 1.0, a name without a prefix has no namespace.
    name
        Name of the query in messages.

    Returns
    -------
    Twig
        The twig; equivalent spellings give equal twigs.

    Raises
    ------
    InvalidTwigError
        The query is not XPath or uses unsupported XPath; the message has its name and the position.

    Examples
    --------
    >>> twig = parse("//article[author]/title", {})
    >>> sorted(test.local for test in twig.tests), twig.parents, twig.descendants
    (['article', 'author', 'title'], (-1, 0, 0), (True, False, False))
    >>> twig == parse("//article[title]/author", {})
    True

    """
    reader = _Reader(tokens_of(xpath), namespaces)
    try:
        return reader.read()
    except Refusal as refusal:
        position = positions_of(xpath)[refusal.token]
        raise InvalidTwigError.for_query(name, xpath, position, str(refusal)) from None


class _Reader:
    """Parses the tokens of one query; open predicates are on an explicit stack, so any depth works."""

    def __init__(self, tokens: list[Token], namespaces: Mapping[str, str]) -> None:
        self.tokens = tokens
        self.at = 0
        self.namespaces = namespaces
        self.tests: list[NodeTest] = []
        self.descendants: list[bool] = []
        self.parents: list[int] = []

    def read(self) -> Twig:
        """Parse the whole query."""
        if self.tokens[0][1] not in ("/", "//"):
            raise unsupported_xpath.at_query(self.tokens, 0)
        opened: list[tuple[int, int]] = []  # elements with open predicates, and the tokens of their brackets
        is_descendant = self.tokens[0][1] == "//"
        self.at = 1
        node = NO_PARENT
        while True:
            node = self.step(node, is_descendant, bool(opened))
            while (token := self.tokens[self.at][1]) == "]" and opened:
                node, _ = opened.pop()
                self.at += 1
            if self.tests[node].kind in ("element", "any") and token in ("/", "//", "["):
                self.at += 1
                if token == "[":
                    opened.append((node, self.at - 1))
                    is_descendant = self.predicate()
                else:
                    is_descendant = token == "//"
            elif any(self.tokens[self.at]):
                test = self.tests[node]
                is_attribute, is_compared = test.kind == "attribute", test.value is not None
                raise unsupported_xpath.after_step(self.tokens, self.at, bool(opened), is_compared, is_attribute)
            elif opened:
                raise unsupported_xpath.not_closed(opened[-1][1])
            else:
                return canonical_twig(self.tests, self.descendants, self.parents)

    def predicate(self) -> bool:
        """Parse the start of a predicate; return whether its first step is reached by ``//``."""
        name, other = self.tokens[self.at]
        if other == "." and self.tokens[self.at + 1][1] in ("/", "//"):
            self.at += 2
            return self.tokens[self.at - 1][1] == "//"
        if other in ("@", "*") or (name and not unsupported_xpath.has_own_meaning(self.tokens, self.at)):
            return False
        if name == "text" and self.tokens[self.at + 1][1] == "(":
            return False
        raise unsupported_xpath.at_predicate(self.tokens, self.at)

    def step(self, parent: int, is_descendant: bool, in_predicate: bool) -> int:
        """Parse a step; return its node."""
        name, other = self.tokens[self.at]
        if name == "text" and self.tokens[self.at + 1][1] == "(":
            test = self.text(in_predicate)
        elif name and not unsupported_xpath.has_own_meaning(self.tokens, self.at):
            test = NodeTest("element", *self.resolve(name))
        elif other == "*":
            test = _ANY
        elif other == "@":
            self.at += 1
            name, _ = self.tokens[self.at]
            if not name or unsupported_xpath.has_own_meaning(self.tokens, self.at):
                raise unsupported_xpath.at_attribute(self.tokens, self.at)
            test = NodeTest("attribute", *self.resolve(name))
            if in_predicate and self.tokens[self.at + 1][1] == "=":
                self.at += 2
                test = test._replace(value=self.value())
        else:
            raise unsupported_xpath.at_step(self.tokens, self.at)
        self.at += 1
        self.tests.append(test)
        self.descendants.append(is_descendant)
        self.parents.append(parent)
        return len(self.tests) - 1

    def text(self, in_predicate: bool) -> NodeTest:
        """Parse a comparison of ``text()`` except for its last token."""
        following = [other for _, other in self.tokens[self.at + 2 : self.at + 4]]
        if following != [")", "="] or not in_predicate:
            raise unsupported_xpath.text(self.tokens, self.at, in_predicate)
        self.at += 4
        return NodeTest("text", value=self.value())

    def value(self) -> str:
        """Return the value of the literal, which must be the next token."""
        literal = self.tokens[self.at][1]
        if len(literal) < 2 or literal[0] not in "\"'":
            raise unsupported_xpath.at_value(self.tokens, self.at)
        return literal[1:-1]

    def resolve(self, name: str) -> tuple[str, str]:
        """Return the namespace and the local part of a name."""
        prefix, colon, local = name.rpartition(":")
        if not colon:
            return "", local
        uri = self.namespaces.get(prefix)
        if uri is None:
            raise unsupported_xpath.prefix(self.at, prefix, _mend(prefix, self.namespaces))
        return uri, local


def _mend(prefix: str, namespaces: Mapping[str, str]) -> str:
    """Suggest how to declare a prefix."""
    if prefix == "xmlns":
        return "in XPath, namespace declarations are not attributes"
    near = get_close_matches(prefix, [known for known in namespaces if known != "xml"], n=3, cutoff=0.5)
    if near:
        return "did you mean " + " or ".join(f'"{one}"' for one in near) + "?"
    return f'declare it: namespaces={{"{prefix}": "http://…"}}'
