"""Messages for XPath that twigs do not support: names the construct and suggests a replacement if there is one."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from polars_tadoc.twig.tokens import Token

TWIGS_HAVE = "twigs are made of /, //, names, *, @name and predicates of these"

_NODE_TESTS = ("text", "node", "comment", "processing-instruction")

_AXES = {
    "child": 'write "/" and the name',
    "descendant": 'write "//" and the name',
    "attribute": 'write "@" and the name',
}
"""Replacements for axes that twigs write in another way."""

_EQUALS = 'compare an attribute or a text: [@name="value"], [name/text()="value"]'

_HINTS = {
    "{": 'give the namespace a prefix, namespaces={"p": "http://…"}, and write p:name',
    ",": "write a predicate for each, [a][b], or write two queries",
    **dict.fromkeys("“”„‟«»", "quotes around values are \" or '"),
    **dict.fromkeys("‘’‚‛`´", "quotes around values are \" or '"),
}
"""Hints for characters that users often mistype."""

_OPERATORS = {
    "and": ('the operator "and"', "write two predicates: [a][b]"),
    "or": ('the operator "or"', "write two queries"),
    "div": ('the operator "div"', TWIGS_HAVE),
    "mod": ('the operator "mod"', TWIGS_HAVE),
    "*": ("a multiplication", TWIGS_HAVE),
    "+": ("an addition", TWIGS_HAVE),
    "-": ("a subtraction", TWIGS_HAVE),
    "|": ("a union", "write one query per path"),
    "!=": ('the comparison "!="', 'the only one is "="'),
    "<": ('the comparison "<"', 'the only one is "="'),
    "<=": ('the comparison "<="', 'the only one is "="'),
    ">": ('the comparison ">"', 'the only one is "="'),
    ">=": ('the comparison ">="', 'the only one is "="'),
}
"""Operators."""


class Refusal(Exception):  # noqa: N818 - it never leaves the parser
    """An unsupported construct: its token, name, hint, and what is wrong with it."""

    def __init__(self, token: int, construct: str, hint: str = "", wrong: str = "cannot be used") -> None:
        super().__init__(f"{construct} {wrong}; {hint}" if hint else f"{construct} {wrong}")
        self.token = token


def has_own_meaning(tokens: Sequence[Token], at: int) -> bool:
    """Tell whether a name is a function, node test, axis or prefix instead of an element or attribute."""
    return tokens[at + 1][1] in ("(", "::", ":")


def at_query(tokens: Sequence[Token], at: int) -> Refusal:
    """Explain a query that does not begin with a slash."""
    name, other = tokens[at]
    if not name and not other:
        return Refusal(at, "an empty query", 'write a path, as "//article[author]/title"')
    if (name and not has_own_meaning(tokens, at)) or other in ("@", "*"):
        return Refusal(at, "a relative path", "begin the query with / for the document's top element or // for any")
    if other == "[":
        return Refusal(at, "a predicate without a step", "begin the query with //* for any element")
    return _unusable(tokens, at)


def at_step(tokens: Sequence[Token], at: int) -> Refusal:
    """Explain a token after a slash that is not a step."""
    slash, (name, other) = tokens[at - 1][1], tokens[at]
    if (not name and not other) or other == "]":
        if at == 1:
            return Refusal(at - 1, f'the path "{slash}" alone', "name an element after it")
        return Refusal(at - 1, f'a path that ends in "{slash}"', "name an element after it")
    if other in ("/", "//"):
        return Refusal(at, f'"{other}" after "{slash}"', "name an element between them, or write * for any")
    if other == "[":
        return Refusal(at, "a predicate without a step", "write * before it for any element")
    return _unusable(tokens, at)


def at_predicate(tokens: Sequence[Token], at: int) -> Refusal:
    """Explain the start of a predicate that is not a relative path."""
    other, following = tokens[at][1], tokens[at + 1][1] if at + 1 < len(tokens) else ""
    if not any(tokens[at]):
        return not_closed(at - 1)
    if other == "]":
        return Refusal(at - 1, "an empty predicate", "write a path in it: [author]")
    if other in ("/", "//"):
        return Refusal(at, "an absolute path in a predicate", f'begin it with a name or with ".{other}"')
    if _is_number(other) and following == "]":
        return Refusal(at, "a position test", TWIGS_HAVE)
    if _is_literal(other):
        if following == "=":
            return Refusal(at, "a comparison that begins with its value", 'write the value last: [@name="value"]')
        return Refusal(at, "a predicate of a literal", _EQUALS)
    if other == "." and following == "=":
        return Refusal(at, 'a comparison of "."', 'compare a text: [text()="value"]')
    if other == "-":
        return Refusal(at, "a negative number", TWIGS_HAVE)
    if other == "[":
        return Refusal(at, "a predicate without a step", "write * before it for any element")
    return _unusable(tokens, at)


def after_step(tokens: Sequence[Token], at: int, in_predicate: bool, is_compared: bool, is_attribute: bool) -> Refusal:
    """Explain a token after a step that neither continues nor ends the path."""
    name, other = tokens[at]
    if name in _OPERATORS or other in _OPERATORS:
        return Refusal(at, *_OPERATORS[name or other])
    if other == "]":
        return Refusal(at, 'a "]" that closes no predicate')
    if other == "=":
        if is_compared:
            return Refusal(at, "a comparison of a comparison", _EQUALS)
        if not in_predicate:
            return Refusal(at, "a comparison outside of a predicate", 'put it into one: [@name="value"]')
        return Refusal(at, "a comparison of an element", _EQUALS)
    if other in ("/", "//") and is_compared:
        return Refusal(at, "a step after a comparison")
    if other in ("/", "//") and is_attribute:
        return Refusal(at, "a step below an attribute", "attributes have nothing below them")
    if other == "[" and (is_attribute or is_compared):
        what = "a comparison" if is_compared else "an attribute"
        return Refusal(at, f"a predicate of {what}", 'close it, and write the next one after it: [@a][@b="value"]')
    if other == "@":
        return Refusal(at, 'an attribute without "/" before it', 'write "/@name", or "[@name]"')
    if other in (".", "..") or _is_number(other) or _is_literal(other):
        what = "a literal" if _is_literal(other) else "a number" if _is_number(other) else f'"{other}"'
        return Refusal(at, f"{what} after a step", 'steps are linked by "/" or "//"')
    if name and not has_own_meaning(tokens, at):
        return Refusal(at, f'the name "{_shortened(name)}" after a step', 'steps are linked by "/" or "//"')
    return _unusable(tokens, at)


def at_value(tokens: Sequence[Token], at: int) -> Refusal:
    """Explain the right side of a comparison that is not a literal."""
    name, other = tokens[at]
    if (not name and not other) or other == "]":
        return Refusal(at - 1, "a comparison without a value", 'write the value in quotes: [@name="value"]')
    if _is_number(other) or other == "-":
        return Refusal(at, "a comparison with a number", 'write it in quotes: [@year="1999"]')
    if (name and not has_own_meaning(tokens, at)) or other in ("@", "*", ".", "..", "/", "//"):
        return Refusal(at, "a comparison with a path", 'write the value in quotes: [@name="value"]')
    return _unusable(tokens, at)


def at_attribute(tokens: Sequence[Token], at: int) -> Refusal:
    """Explain a token after ``@`` that is not a name."""
    name, other = tokens[at]
    if other == "*":
        return Refusal(at - 1, "any attribute, @*", "name the attribute")
    if name and has_own_meaning(tokens, at):
        return _unusable(tokens, at)
    return Refusal(at - 1, 'an "@" without a name', "name the attribute")


def text(tokens: Sequence[Token], at: int, in_predicate: bool) -> Refusal:
    """Explain a ``text()`` that is not compared in a predicate."""
    if tokens[at + 2][1] != ")":
        return Refusal(at, "text() with an argument", 'write [text()="value"]')
    if not in_predicate:
        return Refusal(at, "text() outside of a predicate", 'put it into one, and compare it: [text()="value"]')
    return Refusal(at, "text() without a comparison", 'compare it: [text()="value"]')


def prefix(at: int, found: str, hint: str) -> Refusal:
    """Explain an undeclared prefix."""
    return Refusal(at, f'the prefix "{_shortened(found)}"', hint, "is not declared")


def not_closed(at: int) -> Refusal:
    """Explain a predicate that is not closed."""
    return Refusal(at, "a predicate that is not closed", 'write "]" at its end')


def _unusable(tokens: Sequence[Token], at: int) -> Refusal:
    """Name a token that no rule above explains."""
    name, other = tokens[at]
    if name:
        return _name(tokens, at, name)
    if not other:
        return Refusal(at, "the end of the query")
    if other in ('"', "'"):
        return Refusal(at, "a literal without its closing quote", f"write {other} at its end, too")
    if _is_literal(other):
        return Refusal(at, "a literal", TWIGS_HAVE)
    if _is_number(other):
        return Refusal(at, "a number", TWIGS_HAVE)
    if other[0] == "$" and len(other) > 1:
        return Refusal(at, f"the variable {_shortened(other)}", "write its value into the query")
    if other == ".":
        return Refusal(at, 'the step "."', 'it may only begin a predicate: "./a" or ".//a"')
    if other == "..":
        return Refusal(at, 'the step ".."', "write what the parent has as a predicate of it")
    if other == "(":
        return Refusal(at, "parentheses", TWIGS_HAVE)
    if other in _OPERATORS:
        return Refusal(at, f'a "{other}" without an operand')
    if other in _HINTS:
        return Refusal(at, f"the character {_character(other)}", _HINTS[other])
    if len(other) > 1 or other in "/[]@=*:)":
        return Refusal(at, f'a "{other}" that does not belong here')
    return Refusal(at, f"the character {_character(other)}")


def _name(tokens: Sequence[Token], at: int, name: str) -> Refusal:
    following = tokens[at + 1][1]
    shown = _shortened(name)
    if following == "(":
        what = "node test" if name in _NODE_TESTS else "function"
        return Refusal(at, f"the {what} {shown}()", TWIGS_HAVE)
    if following == "::":
        return Refusal(at, f"the axis {shown}", _AXES.get(name, TWIGS_HAVE))
    if following == ":":
        if tokens[at + 2][1] == "*":
            return Refusal(at, f"all names of a namespace, {shown}:*", "write a name, or * for any")
        return Refusal(at, f'the prefix "{shown}" without a name')
    return Refusal(at, f'the name "{shown}"')


def _is_literal(other: str) -> bool:
    return len(other) > 1 and other[0] in "\"'"


def _is_number(other: str) -> bool:
    return other[:1].isdigit() or (len(other) > 1 and other[0] == "." and other != "..")


def _character(character: str) -> str:
    """Show a character, with its code point if it could be misread."""
    number = f"U+{ord(character):04X}"
    if character.isascii() and character.isprintable():
        return f'"{character}"'
    name = unicodedata.name(character, "")
    return f"{number} ({name})" if name else number


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"
