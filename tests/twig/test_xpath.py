"""Twigs are read as XPath 1.0 says; what they do not have is refused by name and place."""

from __future__ import annotations

import re
from random import Random

import lxml.etree
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.errors import InvalidTwigError
from polars_tadoc.twig.twig import NO_PARENT, Twig
from polars_tadoc.twig.xpath import parse

NAMESPACES = {"p": "urn:p", "long": "urn:long", "xml": "http://www.w3.org/XML/1998/namespace"}


def shown(twig: Twig) -> str:
    """Write a twig with all children as predicates, ordered: equal twigs have equal texts."""
    parts = [""] * len(twig)
    children: list[list[str]] = [[] for _ in twig.tests]
    for node in range(len(twig) - 1, -1, -1):
        kind, uri, local, value = twig.tests[node]
        name = {"any": "*", "text": "text()"}.get(kind, f"{{{uri}}}{local}" if uri else local)
        compared = "" if value is None else f"={value!r}"
        below = "".join(f"[{child}]" for child in sorted(children[node]))
        mark = "@" if kind == "attribute" else ""
        parts[node] = f"{'//' if twig.descendants[node] else '/'}{mark}{name}{compared}{below}"
        if twig.parents[node] != NO_PARENT:
            children[twig.parents[node]].append(parts[node])
    return parts[0]


def test_names_are_those_of_xml_of_today() -> None:
    """The fifth edition's: libxml2 still has the fourth's in XPath."""
    assert shown(parse("/a/\U00010000b", {})) == "/a[/\U00010000b]"


def shuffled(twig: Twig, random: Random) -> str:
    """Write a twig as XPath with its children in any order, and some of them twice."""
    prefixes = {uri: prefix for prefix, uri in NAMESPACES.items()}
    below: list[list[str]] = [[] for _ in twig.tests]
    for node in range(len(twig) - 1, -1, -1):
        kind, uri, local, value = twig.tests[node]
        name = {"any": "*", "text": "text()"}.get(kind, f"{prefixes[uri]}:{local}" if uri else local)
        quote = '"' if "'" in (value or "") else "'"
        compared = "" if value is None else f"={quote}{value}{quote}"
        random.shuffle(below[node])
        predicates = "".join(f"[{one}]" for one in below[node] + below[node][: random.randrange(2)])
        step = ("@" if kind == "attribute" else "") + name + compared + predicates
        if not node:
            return ("//" if twig.descendants[0] else "/") + step
        below[twig.parents[node]].append((".//" if twig.descendants[node] else "./") + step)
    raise AssertionError("a twig has a root")


@pytest.mark.parametrize(
    ("xpath", "expected"),
    [
        ("/a", "/a"),
        ("//a", "//a"),
        ("//*", "//*"),
        ("/@a", "/@a"),
        ("//@a", "//@a"),
        ("/a/b//c", "/a[/b[//c]]"),
        ("/a[b]", "/a[/b]"),
        ("/a[./b]", "/a[/b]"),
        ("/a[.//b]", "/a[//b]"),
        ("/a[b]/c", "/a[/b][/c]"),
        ("/a[c]/b", "/a[/b][/c]"),
        ("/a[b][b]/b", "/a[/b]"),
        ("/a[b][.//b]", "/a[//b][/b]"),
        ("/a[b[c][d]][b[d][c]]", "/a[/b[/c][/d]]"),
        ("//a[b/c[d]//e]/f", "//a[/b[/c[//e][/d]]][/f]"),
        ("/*[*]/*", "/*[/*]"),
        ("/p:a/xml:b", "/{urn:p}a[/{http://www.w3.org/XML/1998/namespace}b]"),
        ("//a/@x", "//a[/@x]"),
        ("//a//@p:x", "//a[//@{urn:p}x]"),
        ("//a[@x='v']", "//a[/@x='v']"),
        ('//a[@x="v"]', "//a[/@x='v']"),
        ("//a[b//@x='v']", "//a[/b[//@x='v']]"),
        ("//a[.//@x='']", "//a[//@x='']"),
        ("//a[text()='v']", "//a[/text()='v']"),
        ("//a[.//text()='v']", "//a[//text()='v']"),
        ("//a[b/text()='v'][@x]", "//a[/@x][/b[/text()='v']]"),
        ("""//a[text()='"']""", "//a[/text()='\"']"),
        ("//a[text()='&amp; [ ] = //']", "//a[/text()='&amp; [ ] = //']"),
        (" / a\t[\n@ x\r= 'v' ] // b ", "/a[//b][/@x='v']"),
        ("//a[ text ( ) = 'v' ]", "//a[/text()='v']"),
        ("//and/or[div]/mod", "//and[/or[/div][/mod]]"),
        ("//text/node/count[position]", "//text[/node[/count[/position]]]"),
        ("//a-b/c.d/_e/f1", "//a-b[/c.d[/_e[/f1]]]"),
        ("//été/名前[@größe='大']", "//été[/名前[/@größe='大']]"),
        ("//a·b", "//a·b"),
    ],
)
def test_twigs_are_read(xpath: str, expected: str) -> None:
    assert shown(parse(xpath, NAMESPACES)) == expected
    lxml.etree.XPath(xpath, namespaces=NAMESPACES)


@pytest.mark.parametrize(
    ("xpath", "construct", "position"),
    [
        ("", "an empty query", 1),
        ("  ", "an empty query", 3),
        ("/", 'the path "/" alone', 1),
        ("//", 'the path "//" alone', 1),
        ("a/b", "a relative path", 1),
        ("@a", "a relative path", 1),
        ("*", "a relative path", 1),
        ("./a", 'the step "."', 1),
        ("../a", 'the step ".."', 1),
        ("[a]", "a predicate without a step", 1),
        ("(//a)[1]", "parentheses", 1),
        ("'a'", "a literal", 1),
        ("12", "a number", 1),
        ("$a/b", "the variable $a", 1),
        ("id('a')/b", "the function id()", 1),
        ("not(//a)", "the function not()", 1),
        ("child::a", "the axis child", 1),
        ("-//a", 'a "-" without an operand', 1),
        ("/a/", 'a path that ends in "/"', 3),
        ("/a//", 'a path that ends in "//"', 3),
        ("/a[b/]", 'a path that ends in "/"', 5),
        ("///a", '"/" after "//"', 3),
        ("/ /a", '"/" after "/"', 3),
        ("/a/[b]", "a predicate without a step", 4),
        ("/a/./b", 'the step "."', 4),
        ("/a/../b", 'the step ".."', 4),
        ("/a/.", 'the step "."', 4),
        ("/a/text()", "text() outside of a predicate", 4),
        ("//text()='v'", "text() outside of a predicate", 3),
        ("/a/node()", "the node test node()", 4),
        ("/a/comment()", "the node test comment()", 4),
        ("/a/processing-instruction('x')", "the node test processing-instruction()", 4),
        ("/a/b()", "the function b()", 4),
        ("/a/following-sibling::b", "the axis following-sibling", 4),
        ("/a/descendant :: b", "the axis descendant", 4),
        ("/descendant-or-self::node()/a", "the axis descendant-or-self", 2),
        ("/a/attribute::b", "the axis attribute", 4),
        ("/a/@*", "any attribute, @*", 4),
        ("/a/@", 'an "@" without a name', 4),
        ("/a/@node()", "the node test node()", 5),
        ("/a/p:*", "all names of a namespace, p:*", 4),
        ("/a/@p:*", "all names of a namespace, p:*", 5),
        ("/a/p:", 'the prefix "p" without a name', 4),
        ("/a/:b", 'a ":" that does not belong here', 4),
        ("/a/p :b", 'the prefix "p" without a name', 4),
        ("/q:a", 'the prefix "q" is not declared', 2),
        ("/a[@q:b]", 'the prefix "q" is not declared', 5),
        ("/a/1", "a number", 4),
        ("/a/'b'", "a literal", 4),
        ("/a/$b", "the variable $b", 4),
        ("/a|/b", "a union", 3),
        ("/a = 'v'", "a comparison outside of a predicate", 4),
        ("/a/@b='v'", "a comparison outside of a predicate", 6),
        ("/a and /b", 'the operator "and"', 4),
        ("/a + 1", "an addition", 4),
        ("/a * 2", "a multiplication", 4),
        ("/a b", 'the name "b" after a step', 4),
        ("/a 'b'", "a literal after a step", 4),
        ("/a 1", "a number after a step", 4),
        ("/a ..", '".." after a step', 4),
        ("/a@b", 'an attribute without "/" before it', 3),
        ("/a]", 'a "]" that closes no predicate', 3),
        ("/a)", 'a ")" that does not belong here', 3),
        ("/a,b", 'the character ","', 3),
        ("/a/@b/c", "a step below an attribute", 6),
        ("/a/@b//c", "a step below an attribute", 6),
        ("/a/@b[c]", "a predicate of an attribute", 6),
        ("/a[", "a predicate that is not closed", 3),
        ("/a[b", "a predicate that is not closed", 3),
        ("/a[b[c]", "a predicate that is not closed", 3),
        ("/a[]", "an empty predicate", 3),
        ("/a[1]", "a position test", 4),
        ("/a[ 1.5 ]", "a position test", 5),
        ("/a[.5]", "a position test", 4),
        ("/a[-1]", "a negative number", 4),
        ("/a[last()]", "the function last()", 4),
        ("/a[position()=1]", "the function position()", 4),
        ("/a[1=position()]", "a number", 4),
        ("/a[count(b)>1]", "the function count()", 4),
        ("/a[not(b)]", "the function not()", 4),
        ("/a[contains(b,'c')]", "the function contains()", 4),
        ("/a[p:f()]", "the function p:f()", 4),
        ("/a[/b]", "an absolute path in a predicate", 4),
        ("/a[//b]", "an absolute path in a predicate", 4),
        ("/a[.]", 'the step "."', 4),
        ("/a[..]", 'the step ".."', 4),
        ("/a[../b]", 'the step ".."', 4),
        ("/a[.='v']", 'a comparison of "."', 4),
        ("/a['v']", "a predicate of a literal", 4),
        ("/a['v'=@b]", "a comparison that begins with its value", 4),
        ("/a[$b]", "the variable $b", 4),
        ("/a[$p:b]", "the variable $p:b", 4),
        ("/a[(b)]", "parentheses", 4),
        ("/a[[b]]", "a predicate without a step", 4),
        ("/a[@*]", "any attribute, @*", 4),
        ("/a[text()]", "text() without a comparison", 4),
        ("/a[text('b')]", "text() with an argument", 4),
        ("/a[b/text()]", "text() without a comparison", 6),
        ("/a[node()]", "the node test node()", 4),
        ("/a[ancestor::b]", "the axis ancestor", 4),
        ("/a[b and c]", 'the operator "and"', 6),
        ("/a[b or c]", 'the operator "or"', 6),
        ("/a[b div c]", 'the operator "div"', 6),
        ("/a[b mod c]", 'the operator "mod"', 6),
        ("/a[b|c]", "a union", 5),
        ("/a[b='v']", "a comparison of an element", 5),
        ("/a[*='v']", "a comparison of an element", 5),
        ("/a[@b!='v']", 'the comparison "!="', 6),
        ("/a[@b<'v']", 'the comparison "<"', 6),
        ("/a[@b>='v']", 'the comparison ">="', 6),
        ("/a[@b - 1]", "a subtraction", 7),
        ("/a[@b=1]", "a comparison with a number", 7),
        ("/a[@b=-1]", "a comparison with a number", 7),
        ("/a[@b=c]", "a comparison with a path", 7),
        ("/a[@b=@c]", "a comparison with a path", 7),
        ("/a[@b=$c]", "the variable $c", 7),
        ("/a[@b=concat('c','d')]", "the function concat()", 7),
        ("/a[@b=]", "a comparison without a value", 6),
        ("/a[@b='v']='w'", "a comparison outside of a predicate", 11),
        ("/a[@b='v'='w']", "a comparison of a comparison", 10),
        ("/a[@b='v' and c]", 'the operator "and"', 11),
        ("/a[@b='v'/c]", "a step after a comparison", 10),
        ("/a[text()='v'/c]", "a step after a comparison", 14),
        ("/a[@b='v'[c]]", "a predicate of a comparison", 10),
        ("/a[@b='v]", "a literal without its closing quote", 7),
        ('/a[@b="v]', "a literal without its closing quote", 7),
        ("/a#b", 'the character "#"', 3),
        ("/a[!b]", 'the character "!"', 4),
        ("/a\u00a0/b", "the character U+00A0 (NO-BREAK SPACE)", 3),
        ("/·a", "the character U+00B7 (MIDDLE DOT)", 2),
        ("/a\x00", "the character U+0000", 3),
        ("/×", "the character U+00D7 (MULTIPLICATION SIGN)", 2),
    ],
)
def test_what_twigs_do_not_have_is_named(xpath: str, construct: str, position: int) -> None:
    with pytest.raises(InvalidTwigError) as caught:
        parse(xpath, NAMESPACES, "mine")
    first, text, caret = str(caught.value).split("\n")
    wrong, _, _hint = first.partition("; ")
    says = "" if construct.endswith("is not declared") else " cannot be used"
    assert wrong == f'query "mine", character {position}: {construct}{says}'
    assert caret.endswith("^")
    assert len(text) >= len(caret) - 1
    assert caret[:-1].isspace()


def test_the_caret_points_at_the_construct() -> None:
    def lines(xpath: str) -> list[str]:
        with pytest.raises(InvalidTwigError) as caught:
            parse(xpath, {})
        return str(caught.value).split("\n")[1:]

    assert lines("//article[1]") == ["  //article[1]", "            ^"]
    assert lines("//日本[1]") == ["  //日本[1]", "         ^"]
    assert lines("//e\u0301[1]") == ["  //e\u0301[1]", "      ^"]
    assert lines("//a\n[1]") == ["  //a [1]", "       ^"]
    text, caret = lines("/a" * 100 + "[1]" + "/b" * 100)
    assert text[len(caret) - 1] == "1"
    assert len(text) < 100


@pytest.mark.parametrize(
    ("xpath", "hint"),
    [
        ("/a[b and c]", "[a][b]"),
        ("/child::a", 'write "/" and the name'),
        ("/a[//b]", 'begin it with a name or with ".//"'),
        ("/a[@year=1999]", 'write it in quotes: [@year="1999"]'),
        ("/lang:a", 'did you mean "long"?'),
        ("/svg:a", 'namespaces={"svg": "http://…"}'),
        ("/xsl:a", 'namespaces={"xsl": "http://…"}'),
        ("//a/@xmlns:p", "namespace declarations are not attributes"),
        ("/a|/b", "write one query per path"),
        ("/{http://x}a", 'namespaces={"p": "http://…"}, and write p:name'),
        ("//a[@b=“c”]", "quotes around values are \" or '"),
        ("//a[@b=‘c’]", "quotes around values are \" or '"),
        ("//a[@b='c]", "write ' at its end, too"),
        ('//a[text()="c]', 'write " at its end, too'),
        ("//a[b,c]", "write a predicate for each, [a][b]"),
    ],
)
def test_errors_say_what_to_write(xpath: str, hint: str) -> None:
    with pytest.raises(InvalidTwigError) as caught:
        parse(xpath, NAMESPACES)
    assert hint in str(caught.value)


def test_any_length_and_depth() -> None:
    size = 20_000
    assert len(parse("/a" * 100_000, {})) == 100_000
    nested = parse("//a" + "[b" * size + "]" * size, {})
    assert (len(nested), nested.parents[-1]) == (size + 1, size - 1)
    assert len(parse("//a" + "[b]" * size, {})) == 2
    assert len(parse("//a" + "".join(f"[@b='{number}']" for number in range(5_000)), {})) == 5_001
    with pytest.raises(InvalidTwigError, match="character 39,999: a predicate that is not closed"):
        parse("/a" * (size - 1) + "[b", {})


NAMES = st.sampled_from(["a", "b", "p:a", "*"])
LEAVES = st.sampled_from(["@a", "@p:b", "@a='v'", "text()='v'", 'text()="\'"'])
SLASHES = st.sampled_from(["/", "//"])
PLAIN = ["/", "//", "[", "]", "@", "=", "a", "p:b", "'v'", "text()", ".", " "]
STRANGE = [
    "q:c",
    "text",
    "(",
    ")",
    "..",
    "*",
    "|",
    "and",
    "1",
    "$x",
    "count(",
    "child::",
    "!=",
    "<",
    "+",
    "-",
    ",",
    "p:*",
]
STRANGE += ["::", ":", "'", "é", "node()", "#"]
TOKENS = st.sampled_from(PLAIN) | st.sampled_from(STRANGE)


@st.composite
def twigs(draw: st.DrawFn, depth: int = 2) -> str:
    """XPath of a twig without its first slashes, as a query or a predicate may have it."""
    steps = []
    for _ in range(draw(st.integers(1, 3))):
        predicates = draw(st.lists(predicate(depth - 1), max_size=2)) if depth else []
        steps.append(draw(NAMES) + "".join(f"[{one}]" for one in predicates))
        steps.append(draw(SLASHES))
    return "".join(steps[:-1])


@st.composite
def predicate(draw: st.DrawFn, depth: int) -> str:
    path = draw(twigs(depth))
    if draw(st.booleans()):
        path = draw(LEAVES) if draw(st.booleans()) else path + draw(SLASHES) + draw(LEAVES)
    return draw(st.sampled_from(["", "./", ".//"])) + path


@given(SLASHES, twigs(), st.randoms(use_true_random=False))
def test_every_twig_of_the_grammar_is_read(slashes: str, path: str, random: Random) -> None:
    xpath = slashes + path
    twig = parse(xpath, NAMESPACES)
    lxml.etree.XPath(xpath, namespaces=NAMESPACES)
    assert all(parent < node for node, parent in enumerate(twig.parents))
    spaced = re.sub(r"('[^']*'|\"[^\"]*\"|//|[/@=()*]|\[|\])", lambda token: f" {token[0]}\n", xpath)
    assert parse(spaced.replace("text (\n ", "text (\t"), NAMESPACES) == twig
    assert parse(shuffled(twig, random), NAMESPACES) == twig


@given(st.lists(TOKENS, max_size=12).map("".join), st.sampled_from(["", "/a", "//a[", "//a[b/"]))
def test_other_texts_are_refused_or_are_xpath(text: str, start: str) -> None:
    xpath = start + text
    try:
        parse(xpath, NAMESPACES)
    except InvalidTwigError:
        return
    lxml.etree.XPath(xpath, namespaces=NAMESPACES)
